//! The embedded store under kill -9 and under a real I/O error, each in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::super::{BROKEN, Embedded, EmbeddedOptions};
use crate::model::{Offset, PartitionId};
use crate::store::contract::{row, topic};
use crate::store::{Append, Appended, Brokers, Log, Store, StoreError};

const DIRECTORY: &str = "HAPAX_TEST_EMBEDDED_DIRECTORY";

fn open(directory: &Path) -> Embedded {
    Embedded::open(directory, EmbeddedOptions::default()).unwrap()
}

fn directory_of_the_other_test() -> std::path::PathBuf {
    std::env::var_os(DIRECTORY).expect("another test runs this one and names the directory").into()
}

/// Both partitions of the topic, made by whoever comes first.
async fn partitions<S: Store>(store: &S) -> Vec<PartitionId> {
    match store.topic("orders").await.unwrap() {
        Some(topic) => topic.partitions,
        None => topic(store, "orders", 2).await.partitions,
    }
}

/// One row of every length into both partitions.
fn group(led: &[crate::store::LedPartition], n: Offset) -> Append {
    let size = 100 + usize::try_from(n % 7).unwrap() * 20_000;
    let rows = led.iter().map(|led| row(led.partition, n * 3, n * 3 + 2, n, size)).collect();
    Append { led: led.iter().map(|led| (led.partition, led.epoch)).collect(), rows }
}

/// Not a test of its own: appends until it is killed, and says what was acknowledged.
#[tokio::test]
#[ignore = "the other process of what_was_acknowledged_survives_a_kill"]
async fn appends_until_it_is_killed() {
    let store = open(&directory_of_the_other_test());
    let partitions = partitions(&store).await;
    let led = store.lead(&partitions).await.unwrap();
    let first = led[0].end / 3;
    for n in first.. {
        assert_eq!(store.append(group(&led, n)).await, Ok(Appended::Done));
        let mut out = std::io::stdout().lock();
        writeln!(out, "acknowledged {n}").unwrap();
        out.flush().unwrap();
    }
}

fn start(name: &str, directory: &Path) -> Child {
    let me = format!("store::embedded::tests::crash::{name}");
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", &me])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Goal: an acknowledged row survives kill -9, no row is half there, offsets have no hole.
/// Method: a process that appends to two partitions, killed at random moments, eight times over one file.
#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let directory = TempDir::new().unwrap();
    let mut epochs = 0;
    for round in 0..8 {
        let mut child = start("appends_until_it_is_killed", directory.path());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Killed after a random number of acknowledgements, and a random moment into the next append.
        let wanted = fastrand::usize(1..60);
        let mut acknowledged = lines.by_ref().map_while(Result::ok).filter_map(said);
        let mut last = acknowledged.nth(wanted).expect("it appends until it is killed");
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..3000)));
        child.kill().unwrap();
        child.wait().unwrap();
        last = acknowledged.last().unwrap_or(last);
        let store = open(directory.path());
        let partitions = partitions(&store).await;
        let led = store.lead(&partitions).await.unwrap();
        epochs += 2;
        assert!(led.iter().all(|led| led.epoch == epochs), "round {round}: {led:?}");
        let end = led[0].end;
        assert!(end > last * 3 + 2, "round {round}: {last} was acknowledged, the log ends at {end}");
        assert!(led.iter().all(|led| led.end == end), "round {round}: a group is all or nothing: {led:?}");
        check(&store, &led, end).await;
    }
}

fn said(line: String) -> Option<Offset> {
    line.split("acknowledged ").nth(1)?.trim().parse().ok()
}

async fn check(store: &Embedded, led: &[crate::store::LedPartition], end: Offset) {
    for (index, partition) in led.iter().map(|led| led.partition).enumerate() {
        let mut next = 0;
        while next < end {
            for found in store.read(partition, next, Offset::MAX, 1 << 20).await.unwrap() {
                assert_eq!(found.base_offset, next, "a hole");
                assert_eq!(found.data, group(led, next / 3).rows[index].data);
                next = found.last_offset + 1;
            }
        }
        assert_eq!(next, end);
    }
}

/// Not a test of its own: appends into a file that may not grow, and says what came of it.
#[tokio::test]
#[ignore = "the other process of an_io_error_on_a_commit_ends_all_writing"]
async fn appends_until_the_file_may_not_grow() {
    let store = open(&directory_of_the_other_test());
    let partitions = partitions(&store).await;
    let led = store.lead(&partitions).await.unwrap();
    for n in 0.. {
        match store.append(group(&led, n)).await {
            Ok(done) => assert_eq!(done, Appended::Done),
            Err(first) => {
                let second = store.append(group(&led, n)).await.unwrap_err();
                let third = store.read(partitions[0], 0, 1, 1).await.unwrap_err();
                assert!(matches!(first, StoreError::InDoubt(_) | StoreError::Broken(_)), "{first}");
                assert!(matches!(&second, StoreError::Broken(why) if why.contains("HX4554")), "{second}");
                assert_eq!(second, third);
                assert_eq!(second, store.brokers().await.unwrap_err());
                println!("acknowledged {n}");
                return;
            }
        }
    }
}

/// Goal: after an I/O error on a commit nothing is written or read any more, and the file is sound when opened again.
/// Method: a process whose files may not grow beyond 2 MiB (the signal that says so is ignored, so write fails).
#[tokio::test]
async fn an_io_error_on_a_commit_ends_all_writing() {
    let directory = TempDir::new().unwrap();
    partitions(&open(directory.path())).await;
    let me = "store::embedded::tests::crash::appends_until_the_file_may_not_grow";
    let program = std::env::current_exe().unwrap();
    let output = Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$@\"", "bash"])
        .arg(program)
        .args(["--ignored", "--exact", "--nocapture", me])
        .env(DIRECTORY, directory.path())
        .output()
        .unwrap();
    let said_all = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said_all}\n{}", String::from_utf8_lossy(&output.stderr));
    let failed = said_all.lines().find_map(|line| said(line.to_owned())).expect("it says where it failed");
    assert!(failed > 0, "some appends fit");
    let store = open(directory.path());
    let led = store.lead(&partitions(&store).await).await.unwrap();
    assert!(led[0].end >= failed * 3 && led[0].end <= failed * 3 + 3, "{led:?}, failed at {failed}");
    check(&store, &led, led[0].end).await;
    assert_eq!(BROKEN, "HX4554");
}
