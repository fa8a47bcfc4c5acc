//! Compaction over the embedded store: what a reader sees, while producing goes on, and after a kill.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::log::now;
use crate::upkeep::rig::{Rig, Seen};

const DAY: i64 = 86_400_000;
const COMPACTED: [(&str, &str); 2] = [("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.01")];

/// The last value of each key, as somebody who reads everything has it.
fn table(records: &[Seen]) -> BTreeMap<String, String> {
    let mut table = BTreeMap::new();
    for record in records {
        match &record.value {
            Some(value) => table.insert(record.key.clone(), value.clone()),
            None => table.remove(&record.key),
        };
    }
    table
}

fn offsets(records: &[Seen]) -> Vec<Offset> {
    records.iter().map(|record| record.offset).collect()
}

/// Goal: of each key the last value stays, at its offset. Method: three keys, written again and again; the last row is never
/// touched, so a key may be there twice once.
#[tokio::test]
async fn the_last_value_of_each_key_stays_at_its_offset() {
    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &COMPACTED).await;
    for n in 0..30 {
        rig.put(1000 + n, ["a", "b", "c"][n as usize % 3], Some(&n.to_string())).await;
    }
    let (before, size) = (rig.records().await, rig.size().await);
    Compactor::default().pass(&rig.broker, now()).await;
    let after = rig.records().await;
    assert_eq!(table(&after), table(&before));
    assert_eq!(offsets(&after), [26, 27, 28, 29]);
    assert!(after.iter().all(|record| before.contains(record)), "{after:?}");
    assert!(rig.size().await < size / 5);
    assert_eq!((rig.partition().log_start(), rig.partition().end()), (0, 30));
    assert_eq!(rig.put(2000, "a", Some("next")).await, 30);
}

/// Goal: more keys than memory holds take more passes, with the same result. Method: room for 10 keys, 50 keys, many writes.
#[tokio::test]
async fn little_memory_takes_more_passes() {
    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &COMPACTED).await;
    for n in 0..200 {
        rig.put(n, &format!("key {}", n * 7 % 50), Some(&n.to_string())).await;
    }
    let before = rig.records().await;
    let mut compactor = Compactor { room: Some(10), ..Compactor::default() };
    compactor.pass(&rig.broker, now()).await;
    let after = rig.records().await;
    assert_eq!(table(&after), table(&before));
    // The last row is left out of the passes, so its key may stand twice.
    assert!((50..=51).contains(&after.len()), "{}", after.len());
}

/// Goal: nothing is compacted before enough is worth it, nor what is too young.
/// Method: the default ratio after a first pass; a lag of an hour.
#[tokio::test]
async fn young_records_and_a_clean_log_are_left_alone() {
    let directory = TempDir::new().unwrap();
    let lag = [("cleanup.policy", "compact"), ("min.compaction.lag.ms", "3600000")];
    let rig = Rig::open(directory.path(), &lag).await;
    let time = now();
    for n in 0..10 {
        rig.put(if n < 5 { time - DAY } else { time }, "a", Some("v")).await;
    }
    let mut compactor = Compactor::default();
    compactor.pass(&rig.broker, time).await;
    assert_eq!(offsets(&rig.records().await), [4, 5, 6, 7, 8, 9]);

    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &[("cleanup.policy", "compact")]).await;
    let large = "x".repeat(1000);
    for n in 0..10 {
        rig.put(n, &format!("key {n}"), Some(&large)).await;
    }
    compactor.pass(&rig.broker, time).await;
    for _ in 0..3 {
        rig.put(time, "again", Some("v")).await;
    }
    compactor.pass(&rig.broker, time).await;
    assert_eq!(rig.records().await.len(), 13, "three small records are not worth a pass");
}

/// Goal: a tombstone is there for `delete.retention.ms` after the pass that removed what it buries, then it goes.
/// Method: passes at chosen times, each with something new to make it worth while.
#[tokio::test]
async fn a_tombstone_stays_for_its_time_and_goes() {
    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &COMPACTED).await;
    let mut compactor = Compactor::default();
    rig.put(1, "a", Some("v")).await;
    rig.put(2, "a", None).await;
    let time = now();
    let mut seen = Vec::new();
    for at in [time, time + DAY / 2, time + DAY - 1, time + DAY] {
        for _ in 0..2 {
            rig.put(3, "other", Some("v")).await;
        }
        compactor.pass(&rig.broker, at).await;
        let records = rig.records().await;
        seen.push(records.iter().any(|record| record.key == "a" && record.value.is_none()));
        assert!(!table(&records).contains_key("a"), "what was buried never comes back");
    }
    assert_eq!(seen, [true, true, true, false]);
}

/// Goal: a retry is recognised though compaction removed its batch, after a new leader has loaded.
/// Method: a producer whose keys are all superseded; compact; lead again, so that memory is loaded from the store.
#[tokio::test]
async fn a_retry_is_recognised_after_compaction_removed_its_batch() {
    let directory = TempDir::new().unwrap();
    let rig = Rig::open(directory.path(), &COMPACTED).await;
    let batch = |sequence| {
        let batch = crate::batch::BatchBuilder::new().producer(7, 0, sequence);
        batch.record(now(), Some(b"a"), Some(b"v")).build().unwrap()
    };
    for sequence in 0..4 {
        rig.append(batch(sequence)).await.unwrap();
    }
    rig.put(now(), "a", Some("last")).await;
    rig.put(now(), "a", Some("last")).await;
    Compactor::default().pass(&rig.broker, now()).await;
    assert_eq!(offsets(&rig.records().await), [4, 5]);
    let led = crate::store::Log::lead(&*rig.broker.store, &[rig.partition().id]).await.unwrap();
    rig.broker.logs.take_over(led).await.unwrap();
    for sequence in 0..4 {
        assert_eq!(rig.append(batch(sequence)).await.unwrap().base_offset, i64::from(sequence));
    }
    assert_eq!(rig.partition().end(), 6);
}

/// Goal: a reader sees the last value of each key, at offsets that only grow, while producing and compaction go on.
/// Method: a producer of 600 records over 20 keys, a compactor and a reader at once; the reader follows to the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_the_last_values_while_producing_goes_on() {
    let directory = TempDir::new().unwrap();
    let rig = Arc::new(Rig::open(directory.path(), &COMPACTED).await);
    let producing = Arc::clone(&rig);
    let producer = tokio::spawn(async move {
        let mut written = BTreeMap::new();
        for n in 0..600 {
            let (key, value) = (format!("key {}", n * 13 % 20), n.to_string());
            producing.put(now(), &key, Some(&value)).await;
            written.insert(key, value);
        }
        written
    });
    let compacting = Arc::clone(&rig);
    let cleaner = tokio::spawn(async move {
        let mut compactor = Compactor::default();
        loop {
            compactor.pass(&compacting.broker, now()).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let mut looks = 0;
    while !producer.is_finished() {
        let end = rig.partition().end();
        let records = rig.records().await;
        let read = offsets(&records);
        assert!(read.windows(2).all(|pair| pair[0] < pair[1]), "{read:?}");
        // Of the keys that were written by then, each is seen.
        let keys: HashSet<_> = records.iter().map(|record| &record.key).collect();
        assert!(keys.len() as Offset >= end.min(20), "{end} written, {} keys seen", keys.len());
        looks += 1;
    }
    let written = producer.await.unwrap();
    cleaner.abort();
    assert!(cleaner.await.unwrap_err().is_cancelled());
    assert!(looks > 1);
    assert_eq!(table(&rig.records().await), written);
    Compactor::default().pass(&rig.broker, now()).await;
    let records = rig.records().await;
    assert_eq!(table(&records), written);
    assert!((20..=21).contains(&records.len()), "{}", records.len());
}

const DIRECTORY: &str = "HAPAX_TEST_COMPACTION_DIRECTORY";

/// Not a test of its own: produces and compacts until it is killed, and says what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other process of a_kill_in_the_middle_of_a_rewrite_loses_nothing"]
async fn produces_and_compacts_until_it_is_killed() {
    let directory = std::env::var_os(DIRECTORY).expect("another test runs this one and names the directory");
    let rig = Arc::new(Rig::open(Path::new(&directory), &COMPACTED).await);
    let compacting = Arc::clone(&rig);
    tokio::spawn(async move {
        let mut compactor = Compactor { room: Some(7), ..Compactor::default() };
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
            .arg("upkeep::compaction::tests::produces_and_compacts_until_it_is_killed")
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
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
            let rig = Rig::open(directory, &COMPACTED).await;
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
