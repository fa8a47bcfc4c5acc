//! What people see when they look into the tables.

use bytes::Bytes;

use super::test_database::TestDatabase;
use crate::store::contract::{append_tens, led};
use crate::store::{
    CommittedOffset, GroupRow, Groups, ProducerRow, ProducerSnapshot, ProducerState, Producers, RingEntry, StoreError,
    Topics, TransactionalRow,
};

fn text(database: &TestDatabase, sql: &str) -> String {
    let rows = database.sql(sql);
    let value = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_owned());
    let lines: Vec<String> =
        rows.into_iter().map(|row| row.into_iter().map(value).collect::<Vec<_>>().join(" ")).collect();
    lines.join("\n")
}

fn transactional(id: &str, producer_id: i64, epoch: i16, revision: i64) -> TransactionalRow {
    TransactionalRow {
        id: id.to_owned(),
        revision,
        serial: 0,
        state: 0,
        version: 1,
        producer_id,
        epoch,
        last_epoch: -1,
        prev_producer_id: -1,
        next_producer_id: -1,
        timeout_ms: 60_000,
        updated: 1_700_000_000_000,
    }
}

/// Goal: `kafka.producer_ids` tells who has which id, and a transactional id has one producer. Method: notes; the same
/// transactional id moves to another producer; one by hand is refused by the unique index.
#[tokio::test]
async fn producer_ids_can_be_looked_at() {
    let database = TestDatabase::new();
    let store = database.store(1).await;
    let note = ProducerRow { producer_id: 7, epoch: 0, client_id: Some("shop".to_owned()), transactional_id: None };
    store.note_producer(note).await.unwrap();
    store.swap_transactional(None, transactional("orders", 8, 0, 1)).await.unwrap();
    store.swap_transactional(Some(1), transactional("orders", 8, 3, 2)).await.unwrap();
    let look = "SELECT producer_id, epoch, client_id, transactional_id, created_at <= last_active_at AND last_active_at <= now() \
         FROM kafka.producer_ids ORDER BY 1";
    assert_eq!(text(&database, look), "7 0 shop NULL t\n8 3 NULL orders t");
    store.swap_transactional(Some(2), transactional("orders", 9, 0, 3)).await.unwrap();
    assert_eq!(text(&database, look), "7 0 shop NULL t\n8 3 NULL NULL t\n9 0 NULL orders t");
    let again = store.swap_transactional(Some(2), transactional("orders", 10, 0, 3)).await;
    assert_eq!(again, Err(StoreError::Conflict));
    let index = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'kafka' AND indexname = 'idx_producer_ids_txn_id'";
    let index = text(&database, index);
    assert!(
        index.starts_with("CREATE UNIQUE INDEX") && index.ends_with("WHERE (transactional_id IS NOT NULL)"),
        "{index}"
    );
}

/// Goal: `kafka.producer_sequences` has one row per producer and partition, and goes with its topic. Method: save, look,
/// save again, delete the topic.
#[tokio::test]
async fn producer_sequences_can_be_looked_at() {
    let database = TestDatabase::new();
    let store = database.store(1).await;
    let led = led(&store).await;
    append_tens(&store, &led, 4).await;
    let producer = |producer_id, last_sequence| ProducerState {
        producer_id,
        epoch: 2,
        ring: vec![RingEntry { first_sequence: 0, last_sequence, base_offset: 10, timestamp: 5 }],
        open_since: None,
        updated: 1_700_000_000_123,
    };
    let first = ProducerSnapshot { upto: 20, producers: vec![producer(7, 9), producer(8, 4)] };
    store.save_snapshot(led.partition, led.epoch, first).await.unwrap();
    let second = ProducerSnapshot { upto: 40, producers: vec![producer(7, 9), producer(9, 1)] };
    store.save_snapshot(led.partition, led.epoch, second.clone()).await.unwrap();
    assert_eq!(store.snapshot(led.partition).await, Ok(second));
    let look = "SELECT producer_id, topic_id, partition_id, epoch, last_sequence, upto, updated_at FROM kafka.producer_sequences ORDER BY 1";
    // Who wrote nothing since keeps the row as it was.
    let time = "2023-11-14 22:13:20.123+00";
    let (topic, partition) = (store.topic("orders").await.unwrap().unwrap().id.0, led.partition.0);
    let expected = format!("7 {topic} {partition} 2 9 20 {time}\n9 {topic} {partition} 2 1 40 {time}");
    database.on_server(&format!("ALTER DATABASE {} SET TimeZone = 'UTC'", database.name()));
    assert_eq!(text(&database, look), expected);
    let key = "SELECT string_agg(a.attname, ' ' ORDER BY a.attnum) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid \
         AND a.attnum = ANY (i.indkey) WHERE i.indrelid = 'kafka.producer_sequences'::regclass AND i.indisprimary";
    assert_eq!(text(&database, key), "producer_id topic_id partition_id");
    store.delete_topic(crate::model::TopicId(topic)).await.unwrap();
    assert_eq!(text(&database, "SELECT count(*) FROM kafka.producer_sequences"), "0");
    assert_eq!(text(&database, "SELECT count(*) FROM kafka.snapshots"), "0");
}

/// Goal: batches are compressed by lz4, or not at all, and old rows are removed soon. Method: ask the catalog.
#[tokio::test]
async fn batches_are_kept_as_told() {
    let database = TestDatabase::new();
    drop(database.store(1).await);
    let kept = "SELECT attcompression = 'l' OR attstorage = 'e' FROM pg_attribute WHERE attrelid = 'kafka.batches'::regclass AND attname = 'data'";
    assert_eq!(text(&database, kept), "t");
    let options = "SELECT reloptions::text FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'kafka.batches'::regclass)";
    let options = text(&database, options);
    assert!(options.contains("autovacuum_vacuum_scale_factor=0") && options.contains("cost_delay=0"), "{options}");
}

/// Goal: text that PostgreSQL cannot hold comes back as it was. Method: NUL in a group's name, metadata, a client's id.
#[tokio::test]
async fn names_with_nul_come_back() {
    let database = TestDatabase::new();
    let store = database.store(1).await;
    let fence = store.lead_groups().await.unwrap().fence;
    let group = GroupRow { id: "a\0b".to_owned(), empty_since: Some(12), state: Bytes::from_static(b"state") };
    store.save_group(&fence, group.clone()).await.unwrap();
    let offset = CommittedOffset {
        topic: crate::model::TopicId(1),
        index: 0,
        offset: 5,
        leader_epoch: -1,
        metadata: "\0\u{F8FF}".to_owned(),
        committed: 77,
    };
    store.commit_offsets(&fence, vec![("a\0b".to_owned(), offset.clone())]).await.unwrap();
    assert_eq!(store.lead_groups().await.unwrap().groups, vec![group]);
    assert_eq!(store.offsets("a\0b").await, Ok(vec![offset]));
    assert_eq!(store.groups_with_offsets().await, Ok(vec![("a\0b".to_owned(), 77)]));
    let note = ProducerRow { producer_id: 1, epoch: 0, client_id: Some("c\0".to_owned()), transactional_id: None };
    store.note_producer(note.clone()).await.unwrap();
    assert_eq!(store.producer(1).await, Ok(Some(note)));
    assert_eq!(store.topic("t\0").await, Ok(None));
}

/// Goal: a lock of somebody else on an offset keeps groups waiting for a second, not for ever, and nothing is written.
/// Method: a transaction that holds the row.
#[tokio::test]
async fn a_held_offset_is_given_up_after_a_second() {
    let database = TestDatabase::new();
    let store = database.store(1).await;
    let fence = store.lead_groups().await.unwrap().fence;
    let offset = |offset| CommittedOffset {
        topic: crate::model::TopicId(1),
        index: 0,
        offset,
        leader_epoch: -1,
        metadata: String::new(),
        committed: 0,
    };
    store.commit_offsets(&fence, vec![("g".to_owned(), offset(1))]).await.unwrap();
    let mut holder = hapax_services::Client::connect(database.url().hosts()[0].1, database.name()).unwrap();
    holder.query("BEGIN; UPDATE kafka.group_offsets SET \"offset\" = 9").unwrap();
    let refused = store.commit_offsets(&fence, vec![("g".to_owned(), offset(2))]).await;
    assert!(matches!(refused, Err(StoreError::Away(_))), "{refused:?}");
    holder.query("COMMIT").unwrap();
    assert_eq!(store.offsets("g").await, Ok(vec![offset(9)]));
    store.commit_offsets(&fence, vec![("g".to_owned(), offset(10))]).await.unwrap();
}
