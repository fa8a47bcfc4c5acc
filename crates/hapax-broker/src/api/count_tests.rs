//! What produce and fetch leave in the broker's counters.

use super::log_rig::{Rig, fetch, init, send};
use crate::batch::BatchBuilder;
use crate::log::scripted_store::batch_of;

/// Goal: records, bytes, commits, repetitions and refusals are counted once each. Method: one of each over the wire.
#[tokio::test]
async fn what_is_written_read_repeated_and_refused_is_counted() {
    let place = tempfile::tempdir().unwrap();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    let id = init(&mut connection, 4, None, (-1, -1)).await.producer_id.0;
    let bytes = batch_of(id, 0, 3).len() as u64;
    assert_eq!(send(&mut connection, &topic, batch_of(id, 0, 3)).await, (0, 0));
    assert_eq!(send(&mut connection, &topic, batch_of(id, 0, 3)).await, (0, 0), "a repetition");
    assert_eq!(send(&mut connection, &topic, batch_of(id, 7, 1)).await, (45, -1), "a gap");
    let newer = BatchBuilder::new().producer(id, 1, 0).record(0, None, Some(b"x")).build().unwrap();
    let newer_bytes = newer.len() as u64;
    assert_eq!(send(&mut connection, &topic, newer).await, (0, 3));
    assert_eq!(send(&mut connection, &topic, batch_of(id, 3, 1)).await, (47, -1), "an old epoch");
    connection.call_at(12, &fetch(&topic, 0, 12)).await.unwrap();
    let metrics = &rig.broker.config.metrics;
    assert_eq!((metrics.produced_records.get(), metrics.produced_bytes.get()), (4, bytes + newer_bytes));
    assert_eq!((metrics.fetched_records.get(), metrics.fetched_bytes.get()), (4, bytes + newer_bytes));
    assert_eq!((metrics.duplicates.get(), metrics.out_of_order.get(), metrics.fenced.get()), (1, 1, 1));
    assert_eq!((metrics.commits.read().count(), metrics.commits_failed.get()), (2, 0));
    let produced: Vec<_> = metrics.requests().into_iter().filter(|((api, _), _)| *api == 0).collect();
    assert_eq!(produced, [((0, 0), 3), ((0, 45), 1), ((0, 47), 1)]);
}
