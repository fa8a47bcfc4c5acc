//! Compaction: what a reader sees, while producing goes on, too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::batch::{BatchBuilder, Compression, Header, assemble, crc_of};
use crate::log::now;
use crate::model::Offset;
use crate::store::Store;
use crate::upkeep::compaction::Compactor;
use crate::upkeep::rig::{Rig, Seen};

const DAY: i64 = 86_400_000;
pub(crate) const COMPACTED: [(&str, &str); 2] = [("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.01")];

/// The last value of each key, as somebody who reads everything has it.
pub(crate) fn table(records: &[Seen]) -> BTreeMap<String, String> {
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
pub(crate) async fn the_last_value_of_each_key_stays_at_its_offset<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &COMPACTED).await;
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
pub(crate) async fn little_memory_takes_more_passes<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &COMPACTED).await;
    for n in 0..200 {
        rig.put(n, &format!("key {}", n * 7 % 50), Some(&n.to_string())).await;
    }
    let before = rig.records().await;
    let mut compactor = Compactor::with_room(10);
    compactor.pass(&rig.broker, now()).await;
    let after = rig.records().await;
    assert_eq!(table(&after), table(&before));
    // The last row is left out of the passes, so its key may stand twice.
    assert!((50..=51).contains(&after.len()), "{}", after.len());
}

/// Goal: nothing is compacted before enough is worth it, nor what is too young.
/// Method: the default ratio after a first pass; a lag of an hour.
pub(crate) async fn young_records_and_a_clean_log_are_left_alone<S: Store>(store: Arc<S>) {
    let lag = [("cleanup.policy", "compact"), ("min.compaction.lag.ms", "3600000")];
    let rig = Rig::over(Arc::clone(&store), "orders", &lag).await;
    let time = now();
    for n in 0..10 {
        rig.put(if n < 5 { time - DAY } else { time }, "a", Some("v")).await;
    }
    let mut compactor = Compactor::default();
    compactor.pass(&rig.broker, time).await;
    assert_eq!(offsets(&rig.records().await), [4, 5, 6, 7, 8, 9]);

    let rig = Rig::over(Arc::clone(&store), "others", &[("cleanup.policy", "compact")]).await;
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
pub(crate) async fn a_tombstone_stays_for_its_time_and_goes<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &COMPACTED).await;
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
pub(crate) async fn a_retry_is_recognised_after_compaction_removed_its_batch<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &COMPACTED).await;
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
    let led = rig.broker.store.lead(&[rig.partition().id]).await.unwrap();
    rig.broker.logs.take_over(led).await.unwrap();
    for sequence in 0..4 {
        assert_eq!(rig.append(batch(sequence)).await.unwrap().base_offset, i64::from(sequence));
    }
    assert_eq!(rig.partition().end(), 6);
}

/// Goal: a batch that cannot be read, as earlier versions took them, stays where it is and holds nothing up; what it may
/// have buried stays buried. Method: bytes that are no gzip between records of the same keys, written and deleted.
pub(crate) async fn a_batch_that_cannot_be_read_is_passed_over<S: Store>(store: Arc<S>) {
    let settings = [COMPACTED[0], COMPACTED[1], ("delete.retention.ms", "0")];
    let rig = Rig::over(Arc::clone(&store), "orders", &settings).await;
    for n in 0..10 {
        rig.put(1000 + n, ["a", "b"][n as usize % 2], Some(&n.to_string())).await;
    }
    rig.append(unreadable()).await.unwrap();
    for n in 11..21 {
        rig.put(1000 + n, ["a", "b"][n as usize % 2], Some(&n.to_string())).await;
    }
    rig.put(2000, "a", None).await;
    rig.put(2001, "b", Some("last")).await;
    let mut compactor = Compactor::default();
    for pass in 0..3 {
        compactor.pass(&rig.broker, now() + pass).await;
        rig.put(3000 + pass, "c", Some("more")).await;
    }
    let (partition, mut bases) = (rig.partition(), rig.bases().await);
    assert!(bases.contains(&10), "it is still there: {bases:?}");
    bases.retain(|base| *base < 21);
    assert_eq!(bases, [10], "what was superseded is gone before and after it");
    assert_eq!(partition.end(), 26);
    assert!(rig.bases().await.contains(&21), "the deletion stays: nobody knows what is in the batch before it");
    assert_eq!(compactor.passed_over(partition.id), 1, "it is said once");
}

/// A batch that says gzip and holds something else.
fn unreadable() -> bytes::Bytes {
    let plain = BatchBuilder::new().record(1_010, Some(b"a"), Some(b"hidden")).build().unwrap();
    let header = Header::read(&plain).unwrap();
    let mut bytes = bytes::BytesMut::from(&assemble(&header, Compression::None, &[0xa5; 64]).unwrap()[..]);
    bytes[22] |= 1;
    let crc = crc_of(&bytes);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes.freeze()
}

/// Goal: a reader sees the last value of each key, at offsets that only grow, while producing and compaction go on: of every
/// key what was acknowledged when the reader began, or something later.
/// Method: a producer of 600 records over 20 keys, a compactor and readers at once. A reader goes on to the end that is there
/// when it arrives: one that stops at the end that was there when it began may miss a key that was written again since, here
/// as on Kafka.
pub(crate) async fn a_reader_sees_the_last_values_while_producing_goes_on<S: Store>(store: Arc<S>) {
    let rig = Arc::new(Rig::over(Arc::clone(&store), "orders", &COMPACTED).await);
    let (producing, acknowledged) = (Arc::clone(&rig), Arc::new(Mutex::new(BTreeMap::new())));
    let written = Arc::clone(&acknowledged);
    let producer = tokio::spawn(async move {
        for n in 0..600 {
            let key = format!("key {}", n * 13 % 20);
            producing.put(now(), &key, Some(&n.to_string())).await;
            written.lock().unwrap().insert(key, n);
        }
    });
    let compacting = Arc::clone(&rig);
    let cleaner = tokio::spawn(async move {
        let mut compactor = Compactor::default();
        loop {
            compactor.pass(&compacting.broker, now()).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let (mut looks, mut ended) = (0, false);
    // The last look begins after the last record was written.
    while !ended {
        ended = producer.is_finished();
        let before = acknowledged.lock().unwrap().clone();
        let records = rig.records().await;
        let read = offsets(&records);
        assert!(read.windows(2).all(|pair| pair[0] < pair[1]), "{read:?}");
        let seen = table(&records);
        for (key, n) in before {
            let value = seen.get(&key).map(|value| value.parse::<i32>().unwrap());
            assert!(value >= Some(n), "{key}: {n} was acknowledged before, {value:?} is seen, of {read:?}");
        }
        looks += 1;
    }
    producer.await.unwrap();
    cleaner.abort();
    assert!(cleaner.await.unwrap_err().is_cancelled());
    assert!(looks > 1);
    let written: BTreeMap<_, _> =
        acknowledged.lock().unwrap().iter().map(|(key, n)| (key.clone(), n.to_string())).collect();
    assert_eq!(table(&rig.records().await), written);
    Compactor::default().pass(&rig.broker, now()).await;
    let records = rig.records().await;
    assert_eq!(table(&records), written);
    assert!((20..=21).contains(&records.len()), "{}", records.len());
}

/// Goal: a reader that has come to any place of a log misses no key by what compaction does behind and before it.
/// Method: every place to stop at; there all keys are written again and the log is compacted; then the reader goes on.
pub(crate) async fn a_reader_in_the_middle_misses_no_key<S: Store>(store: Arc<S>) {
    for stop in [0, 1, 7, 12, 19] {
        let rig = Rig::over(Arc::clone(&store), &format!("orders-{stop}"), &COMPACTED).await;
        let put = async |from: i64| {
            for n in from..from + 20 {
                rig.put(now(), &format!("key {}", n * 7 % 10), Some(&n.to_string())).await;
            }
        };
        put(0).await;
        let mut records = rig.records_from(0, stop).await;
        for round in 1..4 {
            put(round * 20).await;
            Compactor::default().pass(&rig.broker, now()).await;
        }
        records.extend(rig.records_from(stop, Offset::MAX).await);
        let read = offsets(&records);
        assert!(read.windows(2).all(|pair| pair[0] < pair[1]), "{read:?}");
        let expected = (70..80).map(|n| (format!("key {}", n * 7 % 10), n.to_string())).collect();
        assert_eq!(table(&records), expected, "stopped at {stop}");
        assert_eq!(records.last().map(|record| record.offset), Some(79));
    }
}
