//! Upkeep over both stores; and over the embedded one in a process that is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::compaction::Compactor;
use super::contract::compaction::{COMPACTED, table};
use super::contract::retention::of_producer;
use super::retention;
use super::rig::{Rig, Seen};
use crate::log::now;
use crate::model::Offset;
use crate::store::embedded::{Embedded, EmbeddedOptions};

mod embedded {
    use super::*;

    async fn make() -> (TempDir, Embedded) {
        let directory = TempDir::new().unwrap();
        let store = Embedded::open(directory.path(), EmbeddedOptions::default()).unwrap();
        (directory, store)
    }

    crate::upkeep::contract::upkeep_tests!(make);
}

#[cfg(feature = "postgres")]
mod postgres {
    use crate::store::postgres::PostgresStore;
    use crate::store::postgres::test_database::TestDatabase;

    async fn make() -> (TestDatabase, PostgresStore) {
        let database = TestDatabase::new();
        let store = database.store(1).await;
        (database, store)
    }

    crate::upkeep::contract::upkeep_tests!(make);
}

async fn open(directory: &Path, settings: &[(&str, &str)]) -> Rig<Embedded> {
    let store = Embedded::open(directory, EmbeddedOptions::default()).unwrap();
    Rig::over(Arc::new(store), "orders", settings).await
}

const DIRECTORY: &str = "HAPAX_TEST_UPKEEP_DIRECTORY";
const SETTINGS: [(&str, &str); 1] = [("retention.ms", "3600000")];

/// Not a test of its own: writes as a producer, lets retention remove all that may go, and is killed.
#[tokio::test]
#[ignore = "the other process of a_retry_is_recognised_after_retention_removed_the_rows"]
async fn writes_and_forgets_until_it_is_killed() {
    let directory = std::env::var_os(DIRECTORY).expect("another test runs this one and names the directory");
    let rig = open(Path::new(&directory), &SETTINGS).await;
    for sequence in 0..8 {
        assert_eq!(rig.append(of_producer(7, sequence)).await.unwrap().base_offset, i64::from(sequence));
        retention::pass(&rig.broker, now()).await;
    }
    assert_eq!(rig.records().await, []);
    assert_eq!(rig.bases().await, [7]);
    println!("retention is done");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// Goal: a retry is recognised though retention removed its rows, and the process was killed since.
/// Method: another process writes eight batches, removes their rows, and is killed; here the last five are sent again, then
/// an older one, then the next.
#[tokio::test]
async fn a_retry_is_recognised_after_retention_removed_the_rows() {
    let directory = TempDir::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("upkeep::tests::writes_and_forgets_until_it_is_killed")
        .env(DIRECTORY, directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let done = lines.by_ref().map_while(Result::ok).any(|line| line.contains("retention is done"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(done, "the other process did not come so far");
    let rig = open(directory.path(), &SETTINGS).await;
    for sequence in 3..8 {
        let again = rig.append(of_producer(7, sequence)).await.unwrap();
        assert_eq!(again.base_offset, i64::from(sequence), "answered as the first time");
    }
    assert_eq!(rig.partition().end(), 8, "nothing was written twice");
    rig.append(of_producer(7, 2)).await.unwrap_err();
    assert_eq!(rig.append(of_producer(7, 8)).await.unwrap().base_offset, 8);
}

/// Not a test of its own: produces and compacts until it is killed, and says what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other process of a_kill_in_the_middle_of_a_rewrite_loses_nothing"]
async fn produces_and_compacts_until_it_is_killed() {
    let directory = std::env::var_os(DIRECTORY).expect("another test runs this one and names the directory");
    let rig = Arc::new(open(Path::new(&directory), &COMPACTED).await);
    let compacting = Arc::clone(&rig);
    tokio::spawn(async move {
        let mut compactor = Compactor::with_room(7);
        loop {
            compactor.pass(&compacting.broker, now()).await;
            tokio::task::yield_now().await;
        }
    });
    for n in rig.partition().end().. {
        let offset = rig.put(now(), &format!("key {}", n % 20), Some(&n.to_string())).await;
        assert_eq!(offset, n);
        let mut out = std::io::stdout().lock();
        writeln!(out, "acknowledged {n}").unwrap();
        out.flush().unwrap();
    }
}

/// Goal: a kill in the middle of a rewrite loses no key's last value, and moves no offset.
/// Method: a process that produces and compacts without pause, killed at random moments, six times over one log. Key k is
/// written at every offset that is k modulo 20, with the offset as its value.
#[tokio::test]
async fn a_kill_in_the_middle_of_a_rewrite_loses_nothing() {
    let directory = TempDir::new().unwrap();
    for round in 0..6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("upkeep::tests::produces_and_compacts_until_it_is_killed")
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = |line: String| line.split("acknowledged ").nth(1)?.trim().parse::<Offset>().ok();
        let mut acknowledged = lines.map_while(Result::ok).filter_map(said);
        let mut last = acknowledged.nth(fastrand::usize(30..80)).expect("it goes on until it is killed");
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..3000)));
        child.kill().unwrap();
        child.wait().unwrap();
        last = acknowledged.last().unwrap_or(last);
        check(&read_after(directory.path()), last, round);
    }
    let (records, end) = read_after(directory.path());
    assert!((records.len() as Offset) < end / 2, "it was compacted meanwhile: {} of {end} are left", records.len());
}

/// Opens, reads and closes, in a runtime of its own, so that the next process finds the directory free.
fn read_after(directory: &Path) -> (Vec<Seen>, Offset) {
    let read = |runtime: tokio::runtime::Runtime| {
        runtime.block_on(async {
            let rig = open(directory, &COMPACTED).await;
            (rig.records().await, rig.partition().end())
        })
    };
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()));
        reading.join().unwrap()
    })
}

fn check((records, end): &(Vec<Seen>, Offset), acknowledged: Offset, round: usize) {
    assert!(*end > acknowledged, "round {round}: {acknowledged} was acknowledged, the log ends at {end}");
    assert!(records.iter().all(|record| record.value.as_deref() == Some(&*record.offset.to_string())));
    assert!(records.iter().all(|record| record.key == format!("key {}", record.offset % 20)));
    let table = table(records);
    for last in (0..*end).rev().take(20) {
        let key = format!("key {}", last % 20);
        assert_eq!(table.get(&key), Some(&last.to_string()), "round {round}: {key}");
    }
}
