use std::time::{Duration, Instant};

use bytes::Bytes;

use super::test_database::TestDatabase;
use super::*;
use crate::config::TopicConfig;
use crate::model::{PartitionId, Topic};
use crate::patience::until;
use crate::store::{Address, Append, Appended, Brokers, Log, NewTopic, Row, StoreError, Topics};

/// The contract over this store.
mod contract {
    use super::*;

    async fn make() -> (TestDatabase, PostgresStore) {
        let database = TestDatabase::new();
        let store = database.store(1).await;
        (database, store)
    }

    crate::store::contract::contract_tests!(make);
}

fn address() -> Address {
    Address { host: "127.0.0.1".to_owned(), port: 9092 }
}

async fn topic(store: &PostgresStore, name: &str) -> Topic {
    store.create_topic(NewTopic { name: name.to_owned(), partitions: 1, config: TopicConfig::default() }).await.unwrap()
}

fn one_row(partition: PartitionId, epoch: i32, offset: i64, data: impl Into<Bytes>) -> Append {
    let row = Row { partition, base_offset: offset, last_offset: offset, high_timestamp: offset, data: data.into() };
    Append { led: vec![(partition, epoch)], rows: vec![row] }
}

async fn joined(database: &TestDatabase, number: i32) -> PostgresStore {
    let store = database.store(number).await;
    store.join(address()).await.unwrap();
    store
}

/// Goal: whoever is led past writes nothing more. Method: a second broker leads after the first's session ended.
#[tokio::test]
async fn the_old_leader_is_refused() {
    let database = TestDatabase::new();
    let (old, new) = (joined(&database, 1).await, joined(&database, 2).await);
    let partition = topic(&old, "t").await.partitions[0];
    let led = old.lead(&[partition]).await.unwrap();
    assert_eq!((led[0].epoch, led[0].end, led[0].high_timestamp), (1, 0, -1));
    assert_eq!(old.append(one_row(partition, 1, 0, "a")).await.unwrap(), Appended::Done);
    database.lend(1);
    assert_eq!(new.lead(&[partition]).await.unwrap(), vec![], "the old one lives");
    assert_eq!(new.lead_groups_or_fenced().await, Ok(()));
    assert_eq!(old.lead_groups_or_fenced().await, Err(StoreError::Fenced));
    old.keeper_close().await;
    let mut led = vec![];
    until("the lock is gone, whatever the lease says", async || {
        led = new.lead(&[partition]).await.unwrap();
        !led.is_empty()
    })
    .await;
    assert_eq!((led[0].epoch, led[0].end, led[0].high_timestamp), (2, 1, 0));
    let refused = old.append(one_row(partition, 1, 1, "b")).await.unwrap();
    assert_eq!(refused, Appended::Refused(vec![partition]));
    assert_eq!(new.append(one_row(partition, 2, 1, "c")).await.unwrap(), Appended::Done);
    let rows = new.read(partition, 0, i64::MAX, 1 << 20).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.data.clone()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(new.leader_epochs(partition).await.unwrap(), vec![(1, 0), (2, 1)]);
}

/// Goal: the check of the epoch is what keeps the log whole. Method: an append function without it; the same scene ends
/// with the old leader's record in the new leader's log.
#[tokio::test]
async fn without_the_check_of_the_epoch_an_old_leader_writes() {
    let database = TestDatabase::new();
    let old = joined(&database, 1).await;
    let partition = topic(&old, "t").await.partitions[0];
    old.lead(&[partition]).await.unwrap();
    old.lead(&[partition]).await.unwrap();
    assert_eq!(old.append(one_row(partition, 1, 0, "a")).await.unwrap(), Appended::Refused(vec![partition]));
    database.sql(
        "CREATE OR REPLACE FUNCTION kafka.append(p int[], e int[], b_p int[], b_base bigint[], b_last bigint[], b_size int[], b_high bigint[], b_data bytea[])
         RETURNS TABLE (what text, which int, code int) LANGUAGE plpgsql AS $$ BEGIN
           INSERT INTO kafka.batches SELECT * FROM unnest(b_p, b_base, b_last, b_size, b_high, b_data);
         END $$",
    );
    assert_eq!(old.append(one_row(partition, 1, 0, "a")).await.unwrap(), Appended::Done);
}

/// Goal: a writer that is ended in mid-append is in doubt, and leading again shows what became of it.
/// Method: a transaction holds the partition's row, the append waits for it, and its session is ended.
#[tokio::test]
async fn a_writer_ended_in_mid_append_is_in_doubt() {
    let database = TestDatabase::new();
    let store = joined(&database, 1).await;
    let partition = topic(&store, "t").await.partitions[0];
    store.lead(&[partition]).await.unwrap();
    assert_eq!(store.append(one_row(partition, 1, 0, "a")).await.unwrap(), Appended::Done);
    let pid = store.writer_pid().await;
    let mut holder = hapax_services::Client::connect(database.url().hosts()[0].1, database.name()).unwrap();
    holder.query("BEGIN; SELECT 1 FROM kafka.partitions FOR UPDATE").unwrap();
    let append = store.append(one_row(partition, 1, 1, "b"));
    let ended = async {
        let waits = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'");
        until("the append waits for the row", async || database.sql(&waits)[0][0].as_deref() == Some("1")).await;
        database.sql(&format!("SELECT pg_terminate_backend({pid})"));
    };
    let (outcome, ()) = tokio::join!(append, ended);
    assert!(matches!(outcome, Err(StoreError::InDoubt(_))), "{outcome:?}");
    holder.query("ROLLBACK").unwrap();
    let led = store.lead(&[partition]).await.unwrap();
    assert_eq!((led[0].epoch, led[0].end), (2, 1), "the append was waiting, so it cannot be there");
    assert_eq!(store.append(one_row(partition, 1, 1, "b")).await.unwrap(), Appended::Refused(vec![partition]));
    assert_eq!(store.append(one_row(partition, 2, 1, "c")).await.unwrap(), Appended::Done);
}

/// Goal: of two brokers that make topics whose names differ in `.` and `_` only, at the same moment, one wins. Method: a hundred
/// pairs, each by two brokers at once.
#[tokio::test(flavor = "multi_thread")]
async fn two_brokers_make_no_topics_that_collide() {
    let database = TestDatabase::new();
    let (first, second) = (joined(&database, 1).await, joined(&database, 2).await);
    let new = |name: String| NewTopic { name, partitions: 1, config: TopicConfig::default() };
    for n in 0..100 {
        let (one, other) = tokio::join!(
            first.create_topic(new(format!("orders.{n}"))),
            second.create_topic(new(format!("orders_{n}")))
        );
        let refused = [one, other].into_iter().filter_map(Result::err).collect::<Vec<_>>();
        assert_eq!(refused, [StoreError::Conflict], "pair {n}");
    }
    assert_eq!(first.topics().await.unwrap().len(), 100);
}

/// Goal: a number has one holder, and a broker that lost it learns that. Method: a second store with the same number.
#[tokio::test]
async fn a_number_has_one_holder() {
    let database = TestDatabase::new();
    let first = joined(&database, 1).await;
    let second = database.store(1).await;
    let (refused, renewed) = tokio::join!(second.join(address()), first.renew());
    assert_eq!(refused, Err(StoreError::Fenced));
    assert_eq!(renewed, Ok(()));
    first.keeper_close().await;
    second.join(address()).await.unwrap();
    assert_eq!(first.renew().await, Err(StoreError::Fenced));
    assert_eq!(second.renew().await, Ok(()));
    let live: Vec<_> = second.brokers().await.unwrap().into_iter().map(|broker| (broker.id, broker.port)).collect();
    assert_eq!(live, vec![(BrokerId(1), 9092)]);
    second.leave().await.unwrap();
    assert_eq!(second.brokers().await.unwrap(), vec![]);
}

/// Goal: a session that is lost and comes back is no reason to stop. Method: end the keeper's session, renew.
#[tokio::test]
async fn a_lost_session_takes_its_number_again() {
    let database = TestDatabase::new();
    let store = joined(&database, 1).await;
    database.sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = 1");
    until("the number is taken again", async || {
        let renewed = store.renew().await;
        assert_ne!(renewed, Err(StoreError::Fenced));
        renewed.is_ok()
    })
    .await;
    assert_eq!(store.brokers().await.unwrap().len(), 1);
}

/// Goal: a removed topic leaves nothing behind, however much it held. Method: more rows than go at once.
#[tokio::test]
async fn the_rows_of_a_removed_topic_go() {
    let database = TestDatabase::new();
    let store = joined(&database, 1).await;
    let doomed = topic(&store, "t").await;
    store.lead(&doomed.partitions).await.unwrap();
    database.sql(&format!(
        "INSERT INTO kafka.batches SELECT {}, n, n, 1, n, 'x' FROM generate_series(0, 4999) n",
        doomed.partitions[0].0
    ));
    assert!(store.delete_topic(doomed.id).await.unwrap());
    let left = "SELECT (SELECT count(*) FROM kafka.batches) + (SELECT count(*) FROM kafka.dropped)";
    until("all rows are gone", async || database.sql(left)[0][0].as_deref() == Some("0")).await;
}

/// Goal: an old transaction is seen. Method: one that stays open.
#[tokio::test]
async fn the_age_of_the_oldest_transaction_is_told() {
    let database = TestDatabase::new();
    let store = database.store(1).await;
    let mut holder = hapax_services::Client::connect(database.url().hosts()[0].1, database.name()).unwrap();
    holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let age = store.oldest_transaction().await.unwrap().unwrap();
    assert!(age >= Duration::from_millis(300), "{age:?}");
}

/// Goal: how fast a commit is. Method: eight rows of 1 MiB per commit, 64 commits; rows that lz4 cannot shrink.
#[tokio::test]
#[ignore = "a measurement, to be run alone"]
async fn megabytes_per_second() {
    let database = TestDatabase::new();
    let store = joined(&database, 1).await;
    let partition = topic(&store, "t").await.partitions[0];
    store.lead(&[partition]).await.unwrap();
    let mut noise = vec![0; 1 << 20];
    fastrand::Rng::with_seed(7).fill(&mut noise);
    for (what, data) in
        [("noise", Bytes::from(noise)), ("text", Bytes::from("0123456789 ordinary text ".repeat(41_944)))]
    {
        for rows_per_commit in [1, 8] {
            let begun = Instant::now();
            let base = store.lead(&[partition]).await.unwrap()[0].clone();
            for commit in 0..(64 / rows_per_commit) {
                let row = |n| {
                    let offset = base.end + commit * rows_per_commit + n;
                    Row { partition, base_offset: offset, last_offset: offset, high_timestamp: 0, data: data.clone() }
                };
                let group =
                    Append { led: vec![(partition, base.epoch)], rows: (0..rows_per_commit).map(row).collect() };
                assert_eq!(store.append(group).await.unwrap(), Appended::Done);
            }
            println!("{what}, {rows_per_commit} MiB per commit: {:.0} MiB/s", 64.0 / begun.elapsed().as_secs_f64());
        }
    }
    let begun = Instant::now();
    let (mut from, mut bytes) = (0, 0);
    while let Some(last) = store.read(partition, from, i64::MAX, 8 << 20).await.unwrap().last() {
        bytes += 8;
        from = last.last_offset + 1;
    }
    println!("cold reads: {:.0} MiB/s", f64::from(bytes) / begun.elapsed().as_secs_f64());
}

impl PostgresStore {
    async fn keeper_close(&self) {
        self.keeper.close().await;
    }

    async fn lead_groups_or_fenced(&self) -> Result<(), StoreError> {
        crate::store::Groups::lead_groups(self).await.map(drop)
    }
}
