//! Retention, expiry and snapshots.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::batch::BatchBuilder;
use crate::log::now;
use crate::store::{ProducerRow, Store};
use crate::upkeep::look;
use crate::upkeep::retention::pass;
use crate::upkeep::rig::Rig;
use crate::upkeep::snapshots::{self, Snapshots};

pub(crate) const HOUR: i64 = 3_600_000;

/// Goal: what is older than `retention.ms` goes, and nothing that came after something younger.
/// Method: ages 5, 4, 1, 6 and 0 hours, with a limit of 3; the sixth hour hides behind the first.
pub(crate) async fn old_records_go_from_the_front<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &[("retention.ms", "10800000")]).await;
    let time = now();
    for hours in [5, 4, 1, 6, 0] {
        rig.put(time - hours * HOUR, "k", Some("v")).await;
    }
    pass(&rig.broker, time).await;
    assert_eq!(rig.partition().log_start(), 2);
    assert_eq!(rig.bases().await, [2, 3, 4]);
    assert_eq!(rig.records().await.len(), 3);
    // Later all are too old: the log is empty for readers, and its end stays known.
    pass(&rig.broker, time + 4 * HOUR).await;
    assert_eq!((rig.partition().log_start(), rig.partition().end()), (5, 5));
    assert_eq!(rig.bases().await, [4]);
    assert_eq!(rig.records().await, []);
    assert_eq!(rig.put(time, "k", Some("next")).await, 5);
}

/// Goal: a log is cut to `retention.bytes`, never below. Method: ten rows, a limit between three and four of them.
pub(crate) async fn too_many_bytes_go_from_the_front<S: Store>(store: Arc<S>) {
    let value = "x".repeat(10_000);
    let rig = Rig::over(Arc::clone(&store), "orders", &[("retention.bytes", "35000"), ("retention.ms", "-1")]).await;
    for _ in 0..10 {
        rig.put(1, "k", Some(&value)).await;
    }
    pass(&rig.broker, now()).await;
    assert_eq!(rig.partition().log_start(), 6);
    assert_eq!(rig.bases().await, [6, 7, 8, 9]);
    let size = rig.size().await;
    assert!((35_000..50_000).contains(&size), "{size}");
}

/// Goal: a topic that keeps everything keeps everything. Method: old records, no limits; and a compacted topic.
pub(crate) async fn without_a_limit_nothing_goes<S: Store>(store: Arc<S>) {
    for settings in [[("retention.ms", "-1")], [("cleanup.policy", "compact")]] {
        let rig = Rig::over(Arc::clone(&store), settings[0].0, &settings).await;
        for _ in 0..3 {
            rig.put(1, "k", Some("v")).await;
        }
        pass(&rig.broker, now()).await;
        assert_eq!((rig.partition().log_start(), rig.bases().await.len()), (0, 3));
    }
}

/// Goal: records without a time go with the first old one after them. Method: -1, -1, old, new.
pub(crate) async fn records_without_a_time_wait_for_the_next<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &[("retention.ms", "3600000")]).await;
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
pub(crate) async fn rows_below_a_moved_log_start_go<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &[]).await;
    for sequence in 0..5 {
        rig.append(of_producer(7, sequence)).await.unwrap();
    }
    let partition = rig.partition();
    rig.broker.store.advance_log_start(partition.id, partition.epoch(), 3).await.unwrap();
    partition.advance_log_start(3);
    pass(&rig.broker, now()).await;
    assert_eq!(rig.bases().await, [3, 4]);
    let snapshot = rig.broker.store.snapshot(partition.id).await.unwrap();
    assert_eq!((snapshot.upto, snapshot.producers.len()), (5, 1));
}

pub(crate) fn of_producer(id: i64, sequence: i32) -> Bytes {
    let batch = BatchBuilder::new().producer(id, 0, sequence);
    batch.record(now() - 2 * HOUR, Some(b"k"), Some(b"v")).build().unwrap()
}

/// Goal: who wrote nothing for long is forgotten, in memory and in the notes, and not before.
/// Method: a producer that is noted and writes; a look an hour before its day is over, and one an hour after.
pub(crate) async fn idle_producers_are_forgotten<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &[]).await;
    let note = ProducerRow { producer_id: 7, epoch: 0, client_id: None, transactional_id: None };
    store.note_producer(note.clone()).await.unwrap();
    rig.append(of_producer(7, 0)).await.unwrap();
    look(&rig.broker, now() + 23 * HOUR).await;
    assert_eq!((rig.partition().producer_count(), store.producer(7).await), (1, Ok(Some(note))));
    look(&rig.broker, now() + 25 * HOUR).await;
    assert_eq!((rig.partition().producer_count(), store.producer(7).await), (0, Ok(None)));
}

/// Goal: a stop leaves a snapshot, so that the next start reads nothing twice. Method: append, save all, look.
pub(crate) async fn a_stop_saves_what_changed<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &[]).await;
    rig.append(of_producer(7, 0)).await.unwrap();
    assert!(rig.partition().since_snapshot().0 > 0);
    snapshots::save_all(&rig.broker.logs, &*rig.broker.store).await;
    assert_eq!(rig.partition().since_snapshot(), (0, 1));
    let snapshot = rig.broker.store.snapshot(rig.partition().id).await.unwrap();
    assert_eq!(snapshot.producers[0].ring[0].first_sequence, 0);
}

/// Goal: a restart reads little: a snapshot comes after 16 MiB, or after 30 s if anything was written.
/// Method: ticks at chosen times, with little and with much written.
pub(crate) async fn snapshots_come_after_enough_bytes_or_time<S: Store>(store: Arc<S>) {
    let rig = Rig::over(Arc::clone(&store), "orders", &[]).await;
    let (start, mut snapshots) = (Instant::now(), Snapshots::default());
    let reach = async |snapshots: &mut Snapshots, seconds| {
        let at = start + std::time::Duration::from_secs(seconds);
        snapshots.tick(&rig.broker.logs, &*rig.broker.store, at).await;
        rig.broker.store.snapshot(rig.partition().id).await.unwrap().upto
    };
    rig.put(1, "k", Some("v")).await;
    assert_eq!(reach(&mut snapshots, 100).await, 0, "seen for the first time");
    assert_eq!(reach(&mut snapshots, 129).await, 0);
    assert_eq!(reach(&mut snapshots, 130).await, 1, "30 s after that");
    assert_eq!(reach(&mut snapshots, 200).await, 1, "nothing new");
    let large = "x".repeat(900_000);
    for _ in 0..18 {
        rig.put(1, "k", Some(&large)).await;
    }
    assert_eq!(reach(&mut snapshots, 201).await, 1, "just below 16 MiB");
    rig.put(1, "k", Some(&large)).await;
    assert_eq!(reach(&mut snapshots, 202).await, 20);
}
