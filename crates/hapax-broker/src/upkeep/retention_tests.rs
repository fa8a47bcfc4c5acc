//! Retention over the embedded store: by time, by size, behind DeleteRecords, and what stays known of producers.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use tempfile::TempDir;

use super::super::rig::Rig;
use super::super::{look, snapshots};
use super::pass;
use crate::batch::BatchBuilder;
use crate::log::now;
use crate::model::Offset;
use crate::store::{Log, Producers};

const HOUR: i64 = 3_600_000;

async fn bases(rig: &Rig) -> Vec<Offset> {
    let rows = rig.broker.store.list(rig.partition().id, 0, 1000).await.unwrap();
    rows.iter().map(|row| row.base_offset).collect()
}

/// Goal: what is older than `retention.ms` goes, and nothing that came after something younger.
/// Method: ages 5, 4, 1, 6 and 0 hours, with a limit of 3; the sixth hour hides behind the first.
#[tokio::test]
async fn old_records_go_from_the_front() {
    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &[("retention.ms", "10800000")]).await;
    let time = now();
    for hours in [5, 4, 1, 6, 0] {
        rig.put(time - hours * HOUR, "k", Some("v")).await;
    }
    pass(&rig.broker, time).await;
    assert_eq!(rig.partition().log_start(), 2);
    assert_eq!(bases(&rig).await, [2, 3, 4]);
    assert_eq!(rig.records().await.len(), 3);
    // Later all are too old: the log is empty for readers, and its end stays known.
    pass(&rig.broker, time + 4 * HOUR).await;
    assert_eq!((rig.partition().log_start(), rig.partition().end()), (5, 5));
    assert_eq!(bases(&rig).await, [4]);
    assert_eq!(rig.records().await, []);
    assert_eq!(rig.put(time, "k", Some("next")).await, 5);
}

/// Goal: a log is cut to `retention.bytes`, never below. Method: ten rows, a limit between three and four of them.
#[tokio::test]
async fn too_many_bytes_go_from_the_front() {
    let directory = TempDir::new().unwrap();
    let value = "x".repeat(10_000);
    let rig = Rig::open(directory.path(), &[("retention.bytes", "35000"), ("retention.ms", "-1")]).await;
    for _ in 0..10 {
        rig.put(1, "k", Some(&value)).await;
    }
    pass(&rig.broker, now()).await;
    assert_eq!(rig.partition().log_start(), 6);
    assert_eq!(bases(&rig).await, [6, 7, 8, 9]);
    let size = rig.size().await;
    assert!((35_000..50_000).contains(&size), "{size}");
}

/// Goal: a topic that keeps everything keeps everything. Method: old records, no limits; and a compacted topic.
#[tokio::test]
async fn without_a_limit_nothing_goes() {
    for settings in [[("retention.ms", "-1")], [("cleanup.policy", "compact")]] {
        let directory = TempDir::new().unwrap();
        let rig = Rig::open(directory.path(), &settings).await;
        for _ in 0..3 {
            rig.put(1, "k", Some("v")).await;
        }
        pass(&rig.broker, now()).await;
        assert_eq!((rig.partition().log_start(), bases(&rig).await.len()), (0, 3));
    }
}

/// Goal: records without a time go with the first old one after them. Method: -1, -1, old, new.
#[tokio::test]
async fn records_without_a_time_wait_for_the_next() {
    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &[("retention.ms", "3600000")]).await;
    let time = now();
    for timestamp in [-1, -1] {
        rig.put(timestamp, "k", Some("v")).await;
    }
    pass(&rig.broker, time).await;
    assert_eq!(rig.partition().log_start(), 0);
    for timestamp in [time - 2 * HOUR, time] {
        rig.put(timestamp, "k", Some("v")).await;
    }
    pass(&rig.broker, time).await;
    assert_eq!(rig.partition().log_start(), 3);
}

/// Goal: rows that DeleteRecords has put below the log start go, and a snapshot is there before.
/// Method: move the start as that API does; look.
#[tokio::test]
async fn rows_below_a_moved_log_start_go() {
    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &[]).await;
    for sequence in 0..5 {
        rig.append(of_producer(7, sequence)).await.unwrap();
    }
    let partition = rig.partition();
    rig.broker.store.advance_log_start(partition.id, partition.epoch(), 3).await.unwrap();
    partition.advance_log_start(3);
    pass(&rig.broker, now()).await;
    assert_eq!(bases(&rig).await, [3, 4]);
    let snapshot = rig.broker.store.snapshot(partition.id).await.unwrap();
    assert_eq!((snapshot.upto, snapshot.producers.len()), (5, 1));
}

fn of_producer(id: i64, sequence: i32) -> Bytes {
    let batch = BatchBuilder::new().producer(id, 0, sequence);
    batch.record(now() - 2 * HOUR, Some(b"k"), Some(b"v")).build().unwrap()
}

/// Goal: who wrote nothing for long is forgotten, in memory and in the notes; who wrote lately is not.
/// Method: two producers; time passes for one.
#[tokio::test]
async fn idle_producers_are_forgotten() {
    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &[]).await;
    rig.append(of_producer(7, 0)).await.unwrap();
    look(&rig.broker, now() + 23 * HOUR).await;
    assert_eq!(rig.partition().producer_count(), 1);
    look(&rig.broker, now() + 25 * HOUR).await;
    assert_eq!(rig.partition().producer_count(), 0);
}

/// Goal: a stop leaves a snapshot, so that the next start reads nothing twice. Method: append, save all, look.
#[tokio::test]
async fn a_stop_saves_what_changed() {
    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &[]).await;
    rig.append(of_producer(7, 0)).await.unwrap();
    assert!(rig.partition().since_snapshot().0 > 0);
    snapshots::save_all(&rig.broker.logs, &*rig.broker.store).await;
    assert_eq!(rig.partition().since_snapshot(), (0, 1));
    let snapshot = rig.broker.store.snapshot(rig.partition().id).await.unwrap();
    assert_eq!(snapshot.producers[0].ring[0].first_sequence, 0);
}

const DIRECTORY: &str = "HAPAX_TEST_RETENTION_DIRECTORY";
const SETTINGS: [(&str, &str); 1] = [("retention.ms", "3600000")];

/// Not a test of its own: writes as a producer, lets retention remove all that may go, and is killed.
#[tokio::test]
#[ignore = "the other process of a_retry_is_recognised_after_retention_removed_the_rows"]
async fn writes_and_forgets_until_it_is_killed() {
    let directory = std::env::var_os(DIRECTORY).expect("another test runs this one and names the directory");
    let rig = Rig::open(Path::new(&directory), &SETTINGS).await;
    for sequence in 0..8 {
        assert_eq!(rig.append(of_producer(7, sequence)).await.unwrap().base_offset, i64::from(sequence));
        pass(&rig.broker, now()).await;
    }
    assert_eq!(rig.records().await, []);
    assert_eq!(bases(&rig).await, [7]);
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
        .arg("upkeep::retention::tests::writes_and_forgets_until_it_is_killed")
        .env(DIRECTORY, directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let done = lines.by_ref().map_while(Result::ok).any(|line| line.contains("retention is done"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(done, "the other process did not come so far");
    let rig = Rig::open(directory.path(), &SETTINGS).await;
    for sequence in 3..8 {
        let again = rig.append(of_producer(7, sequence)).await.unwrap();
        assert_eq!(again.base_offset, i64::from(sequence), "answered as the first time");
    }
    assert_eq!(rig.partition().end(), 8, "nothing was written twice");
    rig.append(of_producer(7, 2)).await.unwrap_err();
    assert_eq!(rig.append(of_producer(7, 8)).await.unwrap().base_offset, 8);
}
