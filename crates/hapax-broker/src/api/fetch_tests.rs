use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use super::log_rig::{Rig, fetch, fetched, named, send};
use crate::batch::{BatchBuilder, Batches};
use crate::model::Topic;
use crate::store::Log;
use hapax_kafka::Connection;

fn batch(time: i64, bytes: usize) -> Bytes {
    BatchBuilder::new().record(time, Some(b"k"), Some(&vec![b'x'; bytes])).build().unwrap()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn bases(records: &Bytes) -> Vec<i64> {
    Batches::new(records).map(|batch| batch.unwrap().1.base_offset).collect()
}

/// Longer than a client waits for its answer: who is answered only when this is over fails.
const LONG_MS: i32 = 590_000;

async fn three(rig: &Rig, connection: &mut Connection) -> Arc<Topic> {
    let topic = rig.topic("t", 2, &[]).await;
    for time in [100, 300, 200] {
        send(connection, &topic, batch(time, 1_000)).await;
    }
    topic
}

/// Goal: a reader at the end waits, and is answered by an append, or when its time is up. Method: both, timed.
#[tokio::test]
async fn a_reader_at_the_end_waits() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let topic = three(&rig, &mut connection).await;
    let begun = Instant::now();
    let response = connection.call_at(12, &fetch(&topic, 3, 12).with_max_wait_ms(150)).await.unwrap();
    assert_eq!(fetched(&response).records.as_deref(), Some(&[][..]));
    assert!(begun.elapsed() >= Duration::from_millis(150));
    let ticket = connection.begin(12, &fetch(&topic, 3, 12).with_max_wait_ms(LONG_MS)).await.unwrap();
    let mut other = rig.connect().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    send(&mut other, &topic, batch(0, 10)).await;
    let response = connection.finish::<FetchRequest>(ticket).await.unwrap();
    assert_eq!(bases(fetched(&response).records.as_ref().unwrap()), [3]);
    // Too little is there: it waits for more, and gets all of it.
    let request = fetch(&topic, 3, 12).with_min_bytes(500).with_max_wait_ms(LONG_MS);
    let ticket = connection.begin(12, &request).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    send(&mut other, &topic, batch(0, 1_000)).await;
    let response = connection.finish::<FetchRequest>(ticket).await.unwrap();
    assert_eq!(bases(fetched(&response).records.as_ref().unwrap()), [3, 4]);
}

/// Goal: an error answers at once, with its code. Method: each, with a long wait.
#[tokio::test]
async fn an_error_is_answered_at_once() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let topic = three(&rig, &mut connection).await;
    let epoch = rig.broker.logs.partition(topic.partitions[0]).unwrap().epoch();
    let mut code = async |change: &dyn Fn(&mut FetchRequest), version| {
        let mut request = fetch(&topic, 3, version).with_max_wait_ms(LONG_MS);
        change(&mut request);
        let response = connection.call_at(version, &request).await.unwrap();
        if response.error_code != 0 { response.error_code } else { fetched(&response).error_code }
    };
    let offset = |offset| move |request: &mut FetchRequest| request.topics[0].partitions[0].fetch_offset = offset;
    let known = |epoch| move |request: &mut FetchRequest| request.topics[0].partitions[0].current_leader_epoch = epoch;
    assert_eq!(code(&offset(4), 12).await, 1);
    assert_eq!(code(&offset(-1), 12).await, 1);
    assert_eq!(code(&known(epoch - 1), 12).await, 74);
    assert_eq!(code(&known(epoch + 1), 12).await, 75);
    assert_eq!(code(&|request| request.topics[0].topic = named("nobody"), 12).await, 3);
    assert_eq!(code(&|request| request.topics[0].topic_id = uuid::Uuid::from_u128(9), 13).await, 100);
    assert_eq!(code(&|request| request.topics[0].partitions[0].partition = 2, 12).await, 3);
    assert_eq!(code(&|request| (request.session_id, request.session_epoch) = (5, 1), 12).await, 70);
    rig.broker.logs.give_up().await;
    assert_eq!(code(&|_| {}, 12).await, 6);
}

/// Goal: a reader that waits is told when we stop leading. Method: give up while it waits.
#[tokio::test]
async fn a_waiting_reader_is_told_when_we_stop_leading() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let topic = three(&rig, &mut connection).await;
    let ticket = connection.begin(16, &fetch(&topic, 3, 16).with_max_wait_ms(LONG_MS)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    rig.broker.logs.give_up().await;
    let response = connection.finish::<FetchRequest>(ticket).await.unwrap();
    assert_eq!(fetched(&response).error_code, 6);
    assert_eq!(fetched(&response).current_leader.leader_id.0, 1);
    assert_eq!(response.node_endpoints.len(), 1);
}

/// Goal: limits hold, but the first batch always comes. Method: limits of one byte, of one batch, over two partitions.
#[tokio::test]
async fn the_first_batch_comes_though_it_is_too_large() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let topic = three(&rig, &mut connection).await;
    let mut request = fetch(&topic, 0, 12).with_max_bytes(1);
    let second = request.topics[0].partitions[0].clone().with_partition(1);
    request.topics[0].partitions.push(second);
    let response = connection.call_at(12, &request).await.unwrap();
    assert_eq!(bases(fetched(&response).records.as_ref().unwrap()), [0]);
    request.max_bytes = 1 << 20;
    request.topics[0].partitions[0].partition_max_bytes = 2_500;
    let response = connection.call_at(12, &request).await.unwrap();
    assert_eq!(bases(fetched(&response).records.as_ref().unwrap()), [0, 1]);
    assert_eq!(response.responses[0].partitions[1].records.as_deref(), Some(&[][..]));
    let committed = connection.call_at(12, &request.clone().with_isolation_level(1)).await.unwrap();
    assert_eq!(fetched(&committed).aborted_transactions, Some(vec![]));
    assert_eq!(fetched(&response).aborted_transactions, None);
    assert_eq!(fetched(&committed).last_stable_offset, 3);
}

async fn list(connection: &mut Connection, topic: &Topic, time: i64, version: i16) -> (i16, i64, i64, i32) {
    let partition = ListOffsetsPartition::default().with_timestamp(time).with_current_leader_epoch(-1);
    let wanted = ListOffsetsTopic::default().with_name(named(&topic.name)).with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![wanted]);
    let response = connection.call_at(version, &request).await.unwrap();
    let answer = &response.topics[0].partitions[0];
    (answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch)
}

/// Goal: offsets are listed by name and by time, in every version. Method: three records, times up and down.
#[tokio::test]
async fn offsets_are_listed_by_name_and_by_time() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let topic = three(&rig, &mut connection).await;
    let led = rig.broker.logs.partition(topic.partitions[0]).unwrap().epoch();
    for version in 1..=10 {
        let epoch = if version >= 4 { led } else { -1 };
        let newest = if version >= 7 { (0, 1, 300, epoch) } else { (35, -1, -1, -1) };
        let local = if version >= 8 { (0, 0, -1, epoch) } else { (35, -1, -1, -1) };
        let tiered = if version >= 9 { (0, -1, -1, -1) } else { (35, -1, -1, -1) };
        let cases = [
            (-1, (0, 3, -1, epoch)),
            (-2, (0, 0, -1, epoch)),
            (-3, newest),
            (-4, local),
            (-5, tiered),
            (-6, (35, -1, -1, -1)),
            (0, (0, 0, 100, epoch)),
            (101, (0, 1, 300, epoch)),
            (301, (0, -1, -1, -1)),
        ];
        for (time, expected) in cases {
            let found = list(&mut connection, &topic, time, version).await;
            assert_eq!(found, expected, "time {time}, version {version}");
        }
    }
}

/// Goal: an epoch's end is told, and epochs are compared. Method: lead twice.
#[tokio::test]
async fn the_end_of_an_epoch_is_told() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let topic = three(&rig, &mut connection).await;
    let first = rig.broker.logs.partition(topic.partitions[0]).unwrap().epoch();
    let led = rig.broker.store.lead(&topic.partitions).await.unwrap();
    rig.broker.logs.take_over(led).await.unwrap();
    send(&mut connection, &topic, batch(0, 1)).await;
    for version in 2..=4 {
        for (asked, current, expected) in [
            (first, -1, (0, first, 3)),
            (first + 1, first + 1, (0, first + 1, 4)),
            (first + 2, -1, (0, -1, -1)),
            (first, first, (74, -1, -1)),
            (first, first + 2, (75, -1, -1)),
        ] {
            let partition =
                OffsetForLeaderPartition::default().with_leader_epoch(asked).with_current_leader_epoch(current);
            let wanted = OffsetForLeaderTopic::default().with_topic(named("t")).with_partitions(vec![partition]);
            let mut request = OffsetForLeaderEpochRequest::default().with_topics(vec![wanted]);
            if version >= 3 {
                request = request.with_replica_id((-1).into());
            }
            let response = connection.call_at(version, &request).await.unwrap();
            let answer = &response.topics[0].partitions[0];
            assert_eq!((answer.error_code, answer.leader_epoch, answer.end_offset), expected, "epoch {asked}");
        }
    }
}

/// Goal: records are deleted up to an offset, and stay so. Method: each answer, and a reader below the new start.
#[tokio::test]
async fn records_are_deleted_up_to_an_offset() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let topic = three(&rig, &mut connection).await;
    let compacted = rig.topic("compacted", 1, &[("cleanup.policy", "compact")]).await;
    for version in 0..=2 {
        for (name, offset, expected) in [
            ("t", 2, (0, 2)),
            ("t", 1, (0, 2)),
            ("t", 9, (1, -1)),
            ("t", -2, (1, -1)),
            ("nobody", 0, (3, -1)),
            (&compacted.name, 0, (44, -1)),
        ] {
            let partition = DeleteRecordsPartition::default().with_offset(offset);
            let wanted = DeleteRecordsTopic::default().with_name(named(name)).with_partitions(vec![partition]);
            let request = DeleteRecordsRequest::default().with_timeout_ms(1_000).with_topics(vec![wanted]);
            let response = connection.call_at(version, &request).await.unwrap();
            let answer = &response.topics[0].partitions[0];
            assert_eq!((answer.error_code, answer.low_watermark), expected, "{name} up to {offset}");
        }
    }
    let below = connection.call_at(12, &fetch(&topic, 1, 12)).await.unwrap();
    assert_eq!(fetched(&below).error_code, 1);
    let at = connection.call_at(12, &fetch(&topic, 2, 12)).await.unwrap();
    assert_eq!((fetched(&at).error_code, fetched(&at).log_start_offset), (0, 2));
    assert_eq!(list(&mut connection, &topic, -2, 10).await.1, 2);
}
