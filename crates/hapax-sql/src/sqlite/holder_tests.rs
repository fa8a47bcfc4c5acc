use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::*;

const HOLD: &str = "HAPAX_TEST_HOLD_LOCK";

/// Not a test of its own: run as another process by the tests below, it holds a write lock until its input ends.
#[test]
#[ignore = "the other process of the_process_that_holds_the_write_lock_is_named"]
fn holds_a_lock_when_another_test_asks_for_it() {
    let path = std::env::var_os(HOLD).expect("another test runs this one and names the database");
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    println!("\nholding");
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    connection.execute_batch("COMMIT").unwrap();
}

fn another_process_that_holds(path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "sqlite::holder::tests::holds_a_lock_when_another_test_asks_for_it",
            "--nocapture",
        ])
        .env(HOLD, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"), "the other process ended before it held the lock");
    child
}

/// Goal: the message can name the process that holds the lock. Method: a second process with an open write
/// transaction, running and stopped, while this process has the same database open and reads from it.
#[test]
fn the_process_that_holds_the_write_lock_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let own = rusqlite::Connection::open(&path).unwrap();
    own.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); BEGIN; SELECT count(*) FROM t").unwrap();
    let mut child = another_process_that_holds(&path);
    let error = own.execute_batch("COMMIT; PRAGMA busy_timeout = 0; BEGIN IMMEDIATE").unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
    let named = holder(&path).unwrap();
    assert!(named.starts_with(&format!("pid {} (", child.id())), "{named}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    while process::stat(child.id()).unwrap().state != 'T' {
        std::thread::yield_now();
    }
    assert!(holder(&path).unwrap().contains("which is stopped"), "{:?}", holder(&path));
    child.kill().unwrap();
    child.wait().unwrap();
    own.execute_batch("BEGIN IMMEDIATE").unwrap();
    let named = holder(&path).unwrap();
    assert!(named.contains("this process"), "{named}");
}

/// Goal: only locks of this database are taken for its own. Method: lines as Linux prints them.
#[test]
fn a_lock_line_is_read_as_linux_prints_it() {
    let files = Files { main: 10, shared: Some(11), device: rustix::fs::makedev(0xfe, 1) };
    let pid = 4711;
    let cases = [
        ("1: POSIX  ADVISORY  WRITE 4711 fe:01:11 120 120", Some(Strength::Writer)),
        ("1: POSIX  ADVISORY  WRITE 4711 fe:01:11 123 123", Some(Strength::Exclusive)),
        ("1: POSIX  ADVISORY  WRITE 4711 fe:01:10 1073741824 1073742335", Some(Strength::Exclusive)),
        ("1: POSIX  ADVISORY  READ 4711 fe:01:11 128 128", Some(Strength::Shared)),
        ("1: POSIX  ADVISORY  WRITE 4711 fe:01:10 0 EOF", Some(Strength::Exclusive)),
        ("1: POSIX  ADVISORY  WRITE 4711 fe:02:11 120 120", None),
        ("1: POSIX  ADVISORY  WRITE 4711 fe:01:12 120 120", None),
        ("1: -> POSIX  ADVISORY  WRITE 4711 fe:01:11 120 120", None),
        ("1: FLOCK  ADVISORY  WRITE 4711 fe:01:10 0 EOF", None),
        ("1: POSIX  ADVISORY  WRITE 0 fe:01:11 120 120", None),
        ("1: POSIX", None),
        ("", None),
    ];
    for (line, strength) in cases {
        assert_eq!(parse(line, &files), strength.map(|strength| Lock { strength, pid }), "{line}");
    }
}
