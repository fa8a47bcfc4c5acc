use std::sync::mpsc;

use super::*;

const WAIT: Duration = Duration::from_millis(200);

fn count(connection: &mut Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
}

async fn with_table(path: &Path) -> Session {
    let mut session = Session::open(path, Open::OrCreate, WAIT).await.unwrap();
    session.run(|c| c.execute_batch("CREATE TABLE t (a)").unwrap()).await.unwrap();
    session
}

/// Goal: a commit that was answered is on the disk. Method: ask the connection for its settings.
#[tokio::test]
async fn a_session_is_durable_and_strict() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::open(&folder.path().join("a.db"), Open::OrCreate, WAIT).await.unwrap();
    let ask = |c: &mut Connection, what: &str| {
        c.query_row(&format!("PRAGMA {what}"), [], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap()
    };
    let found = session
        .run(move |c| ["journal_mode", "synchronous", "foreign_keys", "busy_timeout"].map(|what| ask(c, what)))
        .await
        .unwrap();
    let expected: [rusqlite::types::Value; 4] = ["wal".to_owned().into(), 2.into(), 1.into(), 200.into()];
    assert_eq!(found, expected);
}

/// Goal: each bad path has its own message. Method: every kind of bad path that a user can write.
#[tokio::test]
async fn a_bad_path_is_named_with_its_cure() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = "this is a text of more than one hundred bytes, so that SQLite reads all of its header and sees that it is none";
    fs::write(path("text.db"), text).unwrap();
    let open = async |name: &str, open| Session::open(&path(name), open, WAIT).await.err();
    assert!(matches!(open("no/a.db", Open::OrCreate).await, Some(OpenError::MissingFolder { .. })));
    assert!(matches!(open("a.db", Open::Existing).await, Some(OpenError::Missing { .. })));
    assert!(matches!(open("", Open::OrCreate).await, Some(OpenError::Folder { .. })));
    let error = open("text.db", Open::Existing).await.unwrap();
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error}");
    assert!(error.to_string().contains("restore it from a backup"), "{error}");
    assert_eq!(fs::read_to_string(path("text.db")).unwrap(), text);
    assert!(!path("a.db").exists());
}

/// Goal: a file whose rights forbid it is refused with the right error. Method: the pure classification.
#[test]
fn a_read_only_database_is_denied() {
    let failure = |code| Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
    for code in [rusqlite::ffi::SQLITE_PERM, rusqlite::ffi::SQLITE_READONLY, rusqlite::ffi::SQLITE_AUTH] {
        assert!(matches!(open_error(Path::new("/a.db"), &failure(code)), OpenError::Denied { .. }));
    }
    let error = open_error(Path::new("/a.db"), &failure(rusqlite::ffi::SQLITE_BUSY));
    assert!(matches!(error, OpenError::Busy { .. }));
}

/// Goal: many processes may create one database at once. Method: eight sessions on one new file.
#[tokio::test]
async fn sessions_that_create_one_file_at_once_all_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let all: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            tokio::spawn(async move { Session::open(&path, Open::OrCreate, Duration::from_secs(20)).await })
        })
        .collect();
    for one in all {
        one.await.unwrap().unwrap();
    }
}

/// Goal: dropped work never leaks into the next transaction. Method: drop the future while the work holds an open
/// transaction; the work ends on its own, without COMMIT.
#[tokio::test]
async fn work_whose_future_was_dropped_leaves_no_connection_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut session = with_table(&path).await;
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let work = session.run(move |c| {
        c.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").unwrap();
        begun.send(()).unwrap();
        may_go_on.recv().ok();
    });
    tokio::time::timeout(Duration::from_millis(50), work).await.unwrap_err();
    has_begun.recv().unwrap();
    let next = session.run(count);
    let early = tokio::time::timeout(Duration::from_millis(50), next).await;
    assert!(early.is_err(), "the dropped work has not ended: nothing else begins");
    drop(go_on);
    assert_eq!(session.run(count).await, Ok(0));
}

/// Goal: work that was given up cannot overtake what comes after it. Method: a write waits for a lock, longer than its
/// caller does; a newer write follows; then the lock is free.
#[tokio::test]
async fn a_write_that_was_given_up_does_not_overtake_a_newer_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    drop(with_table(&path).await);
    let mut session = Session::open(&path, Open::Existing, Duration::from_secs(60)).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("DELETE FROM t; INSERT INTO t VALUES (0); BEGIN IMMEDIATE").unwrap();
    let set = |value: i64| move |c: &mut Connection| c.execute("UPDATE t SET a = ?1", [value]).map(drop);
    let older = tokio::time::timeout(Duration::from_millis(200), session.run(set(1))).await;
    assert!(older.is_err(), "the lock is held");
    let unlock = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        other.execute_batch("COMMIT").unwrap();
    });
    session.run(set(2)).await.unwrap().unwrap();
    unlock.join().unwrap();
    // A write that still waited would come now.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let value = session.run(|c| c.query_row("SELECT a FROM t", [], |row| row.get::<_, i64>(0)).unwrap()).await;
    assert_eq!(value, Ok(2));
}

/// Goal: a panic, an open transaction and a discard each cost only the connection. Method: all three, then count.
#[tokio::test]
async fn a_lost_connection_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut session = with_table(&path).await;
    let lost = session
        .run(|c| {
            c.execute_batch("BEGIN; INSERT INTO t VALUES (1)").unwrap();
            assert!(c.is_autocommit(), "planned panic");
        })
        .await;
    assert!(matches!(lost, Err(SessionLost::Panicked { .. })));
    assert_eq!(session.run(count).await, Ok(0));
    session.run(|c| c.execute_batch("BEGIN; INSERT INTO t VALUES (1)").unwrap()).await.unwrap();
    assert_eq!(session.run(count).await, Ok(0));
    session.discard();
    assert_eq!(session.run(count).await, Ok(0));
}

/// Goal: rows never go into a file that no longer has a name. Method: delete the file, then replace it.
#[tokio::test]
async fn a_file_that_vanished_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut session = with_table(&path).await;
    fs::rename(&path, folder.path().join("b.db")).unwrap();
    let lost = session.run(count).await;
    assert_eq!(lost, Err(SessionLost::Reopen(OpenError::Missing { path: path.clone() })));
    assert!(!path.exists(), "a vanished file is not made anew");
    let mut other = with_table(&path).await;
    other.run(|c| c.execute_batch("INSERT INTO t VALUES (1)").unwrap()).await.unwrap();
    assert_eq!(session.run(count).await, Ok(1));
}

/// Goal: a look changes nothing: neither the file, nor what lies beside it, nor what a killed worker left there. Method: a file
/// with a rollback journal, one at rest with a write-ahead log, one whose log was left behind; every name and byte but the
/// shared memory's compared; a write is refused.
#[tokio::test]
async fn a_look_changes_nothing() {
    let files = |folder: &Path| {
        let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let all = all.filter(|path| !path.to_string_lossy().ends_with("-shm"));
        all.map(|path| (path.clone(), fs::read(path).unwrap())).collect::<std::collections::BTreeMap<_, _>>()
    };
    for left in ["rollback", "at rest", "killed"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        if left == "rollback" {
            Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
        } else {
            drop(with_table(&path).await);
        }
        if left == "killed" {
            let busy = tempfile::tempdir().unwrap();
            let (at, writer) = (busy.path().join("a.db"), Connection::open(&path).unwrap());
            writer.execute_batch("INSERT INTO t VALUES (1)").unwrap();
            for end in ["", "-wal"] {
                fs::copy(format!("{}{end}", path.display()), format!("{}{end}", at.display())).unwrap();
            }
            look(&at, &files, busy.path(), 1).await;
        }
        look(&path, &files, folder.path(), i64::from(left == "killed")).await;
    }
}

async fn look(
    path: &Path,
    files: &impl Fn(&Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>>,
    folder: &Path,
    rows: i64,
) {
    let before = files(folder);
    let mut session = Session::open(path, Open::ToLook, WAIT).await.unwrap();
    assert_eq!(session.run(count).await.unwrap(), rows);
    let refused = session.run(|c| c.execute_batch("CREATE TABLE u (a)")).await.unwrap();
    assert!(refused.is_err(), "a look cannot write");
    drop(session);
    let after = files(folder);
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert!(after == before, "a byte was changed");
}
