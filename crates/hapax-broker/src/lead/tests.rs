use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::*;
use crate::config::TopicConfig;
use crate::model::{BrokerId, Offset, PartitionId};
use crate::store::postgres::PostgresStore;
use crate::store::postgres::test_database::TestDatabase;
use crate::store::{Address, Append, Appended, GroupsLed, LedPartition, Log, NewTopic, Row, StoreError, Topics};

/// What a broker serves, without a log: epochs and ends.
#[derive(Default)]
struct Served {
    partitions: Mutex<HashMap<PartitionId, (i32, Offset)>>,
    acknowledged: Mutex<HashMap<PartitionId, Offset>>,
    groups: Mutex<Option<GroupsLed>>,
}

impl Duties for Served {
    fn served(&self) -> HashMap<PartitionId, i32> {
        self.partitions.lock().unwrap().iter().map(|(id, (epoch, _))| (*id, *epoch)).collect()
    }

    fn acknowledged(&self, partition: PartitionId) -> Option<Offset> {
        self.acknowledged.lock().unwrap().get(&partition).copied()
    }

    async fn take_over(&self, led: Vec<LedPartition>) -> Result<(), StoreError> {
        self.partitions.lock().unwrap().extend(led.iter().map(|led| (led.partition, (led.epoch, led.end))));
        Ok(())
    }

    fn coordinates(&self) -> bool {
        self.groups.lock().unwrap().is_some()
    }

    async fn take_over_groups(&self, led: GroupsLed) -> Result<(), StoreError> {
        *self.groups.lock().unwrap() = Some(led);
        Ok(())
    }

    async fn give_up(&self) {
        self.partitions.lock().unwrap().clear();
        *self.groups.lock().unwrap() = None;
    }

    async fn forget(&self, partitions: &[PartitionId]) {
        self.partitions.lock().unwrap().retain(|id, _| !partitions.contains(id));
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// One broker's leadership, with its tasks.
struct Member {
    store: Arc<PostgresStore>,
    lead: Arc<Leadership<PostgresStore>>,
    served: Arc<Served>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Member {
    async fn start(database: &TestDatabase, number: i32) -> Self {
        let store = Arc::new(database.store(number).await);
        let lead = Arc::new(Leadership::new(Arc::clone(&store), Arc::default()));
        lead.join(Address { host: "127.0.0.1".to_owned(), port: 9092 }).await.unwrap();
        let served = Arc::new(Served::default());
        lead.look(served.as_ref()).await.unwrap();
        let mut member = Self { store, lead, served, tasks: vec![] };
        member.resume();
        member
    }

    fn resume(&mut self) {
        let (keeper, watcher, served) = (Arc::clone(&self.lead), Arc::clone(&self.lead), Arc::clone(&self.served));
        self.tasks.push(tokio::spawn(async move { keeper.keep().await }));
        self.tasks.push(tokio::spawn(async move { watcher.watch(served.as_ref()).await }));
    }

    /// As a process that stands still: its sessions stay, nothing is sent.
    async fn pause(&mut self) {
        let _turn = self.lead.turn().await;
        self.tasks.drain(..).for_each(|task| task.abort());
    }

    fn epoch(&self, partition: PartitionId) -> Option<i32> {
        self.served.served().get(&partition).copied()
    }

    async fn until(&self, what: &str, limit: Duration, holds: impl Fn(&Self) -> bool) -> Duration {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < limit, "{what}: not within {limit:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        begun.elapsed()
    }

    async fn append(&self, partition: PartitionId, epoch: i32, offset: Offset) -> Result<Appended, StoreError> {
        let data = Bytes::from_static(b"x");
        let row = Row { partition, base_offset: offset, last_offset: offset, high_timestamp: 0, data };
        self.store.append(Append { led: vec![(partition, epoch)], rows: vec![row] }).await
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.tasks.drain(..).for_each(|task| task.abort());
    }
}

async fn partition(store: &PostgresStore) -> PartitionId {
    let new = NewTopic { name: "t".to_owned(), partitions: 1, config: TopicConfig::default() };
    store.create_topic(new).await.unwrap().partitions[0]
}

/// Generous beside what is promised (1.5 s, 6 s): a busy machine must not fail a test.
const SOON: Duration = crate::patience::LIMIT;

/// Goal: the lowest number leads, the other stands by, and takes over when the first dies. Method: drop its sessions.
#[tokio::test]
async fn a_second_broker_takes_over_from_a_dead_one() {
    let database = TestDatabase::new();
    let first = Member::start(&database, 1).await;
    let id = partition(&first.store).await;
    first.until("a new topic is led", SOON, |first| first.epoch(id) == Some(1)).await;
    let second = Member::start(&database, 2).await;
    second.until("both are known", SOON, |second| second.lead.brokers().len() == 2).await;
    assert!(first.lead.leads() && !second.lead.leads());
    assert_eq!(second.epoch(id), None);
    assert_eq!(second.lead.leader().unwrap().id, BrokerId(1));
    assert_eq!(first.append(id, 1, 0).await, Ok(Appended::Done));
    drop(first);
    let took =
        second.until("taken over", SOON, |second| second.epoch(id) == Some(2) && second.served.coordinates()).await;
    println!("taken over {took:?} after the death");
    assert!(second.lead.leads());
    assert_eq!(second.served.partitions.lock().unwrap()[&id].1, 1, "the end is where the dead one left it");
    assert_eq!(second.append(id, 2, 1).await, Ok(Appended::Done));
}

/// Goal: a broker that stood still past its lease neither answers from memory nor writes. Method: stop its tasks, keep its
/// sessions; after the other took over let it go on.
#[tokio::test]
async fn a_broker_that_stood_still_leads_no_more() {
    let database = TestDatabase::new();
    let mut first = Member::start(&database, 1).await;
    let id = partition(&first.store).await;
    first.until("led", SOON, |first| first.epoch(id) == Some(1)).await;
    let second = Member::start(&database, 2).await;
    assert!(first.lead.fresh());
    first.pause().await;
    let took = second.until("taken over", SOON * 2, |second| second.epoch(id) == Some(2)).await;
    println!("taken over {took:?} after the pause");
    assert!(!first.lead.fresh(), "it would report an old end");
    assert_eq!(first.epoch(id), Some(1), "it does not know yet");
    assert_eq!(first.append(id, 1, 0).await, Ok(Appended::Refused(vec![id])));
    assert_eq!(second.append(id, 2, 0).await, Ok(Appended::Done));
    // Awake again it renews, and as the lowest number gets everything back, with the other's record.
    first.resume();
    first.until("back", SOON, |first| first.served.partitions.lock().unwrap().get(&id) == Some(&(3, 1))).await;
    second.until("stood down", SOON, |second| second.epoch(id).is_none() && !second.served.coordinates()).await;
    assert_eq!(second.append(id, 2, 1).await, Ok(Appended::Refused(vec![id])));
}

/// Goal: who leaves is followed at once, without waiting for the lease. Method: leave while the tasks run.
#[tokio::test]
async fn a_broker_that_leaves_is_followed_at_once() {
    let database = TestDatabase::new();
    let mut first = Member::start(&database, 1).await;
    let id = partition(&first.store).await;
    first.until("led", SOON, |first| first.epoch(id) == Some(1)).await;
    let second = Member::start(&database, 2).await;
    first.pause().await;
    database.lend(1); // its lease does not end while the test runs
    first.lead.leave().await.unwrap();
    assert!(!first.lead.fresh());
    second.until("followed, whatever its lease says", SOON, |second| second.epoch(id) == Some(2)).await;
}

/// Goal: a broker that lives but lost the session that shows it gives no answer from memory, because another may lead at
/// once. Method: end that session only.
#[tokio::test]
async fn a_broker_without_its_session_is_not_fresh() {
    let database = TestDatabase::new();
    let mut first = Member::start(&database, 1).await;
    let id = partition(&first.store).await;
    first.until("led", SOON, |first| first.epoch(id) == Some(1)).await;
    let second = Member::start(&database, 2).await;
    first.pause().await;
    database.lend(1); // its lease does not end while the test runs
    database.sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = 1");
    second.until("taken over, whatever its lease says", SOON, |second| second.epoch(id) == Some(2)).await;
    assert!(!first.lead.fresh(), "its lease holds, and means nothing");
    first.resume();
    first.until("back", SOON, |first| first.epoch(id) == Some(3) && first.lead.fresh()).await;
}

/// Goal: the same number twice is an error with its page, HX4507. Method: a second process takes it while the first is cut
/// off, and then the first comes back.
#[tokio::test]
async fn a_number_that_another_process_has_ends_this_one() {
    let database = TestDatabase::new();
    let first = Member::start(&database, 1).await;
    let second = Arc::new(database.store(1).await);
    let lead = Leadership::new(Arc::clone(&second), Arc::default());
    let address = || Address { host: "127.0.0.1".to_owned(), port: 9093 };
    let error = lead.join(address()).await.unwrap_err();
    assert_eq!((error.clone(), error.code()), (LeadError::NumberTaken(BrokerId(1)), "HX4507"));
    assert!(first.lead.fresh());
    database.sql("UPDATE kafka.brokers SET incarnation = gen_random_uuid()");
    let error = tokio::time::timeout(SOON, first.lead.failed()).await.unwrap();
    assert_eq!(error, LeadError::NumberTaken(BrokerId(1)));
    assert_eq!(LeadError::Store(StoreError::Broken("gone".to_owned())).code(), "HX4508");
    first.until("given up", SOON, |first| first.epoch(PartitionId(1)).is_none() && !first.served.coordinates()).await;
}

/// Goal: what is in doubt is led anew, at once when nudged. Method: serve nothing more, as a log does after a doubt.
#[tokio::test]
async fn what_is_in_doubt_is_led_anew() {
    let database = TestDatabase::new();
    let first = Member::start(&database, 1).await;
    let id = partition(&first.store).await;
    first.until("led", SOON, |first| first.epoch(id) == Some(1)).await;
    first.served.forget(&[id]).await;
    first.lead.nudge();
    first.until("led anew", SOON, |first| first.epoch(id) == Some(2)).await;
    // A removed topic is not served on.
    let topic = first.store.topic("t").await.unwrap().unwrap();
    first.store.delete_topic(topic.id).await.unwrap();
    first.until("forgotten", SOON, |first| first.epoch(id).is_none()).await;
}

/// Goal: a server that restarts at once loses nothing and is led again; one that lost what was acknowledged is told
/// (HX4509). Method: a server of our own, stopped immediate; an acknowledged end that is not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_is_led_again() {
    let mut server = hapax_services::Postgres::builder().start().unwrap();
    let url = hapax_sql::postgres::PostgresUrl::parse(&server.url("postgres")).unwrap();
    let options = crate::store::postgres::PostgresOptions { url, broker: BrokerId(1) };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let lead = Arc::new(Leadership::new(Arc::clone(&store), Arc::default()));
    lead.join(Address { host: "127.0.0.1".to_owned(), port: 9092 }).await.unwrap();
    let id = partition(&store).await;
    let mut member = Member { store, lead, served: Arc::default(), tasks: vec![] };
    member.resume();
    member.until("led", SOON, |member| member.epoch(id) == Some(1)).await;
    assert_eq!(member.append(id, 1, 0).await, Ok(Appended::Done));
    member.served.acknowledged.lock().unwrap().insert(id, 1);
    server.stop(hapax_services::Stop::Immediate);
    assert!(matches!(member.append(id, 1, 1).await, Err(StoreError::InDoubt(_) | StoreError::Away(_))));
    member.served.forget(&[id]).await;
    server.start_again().unwrap();
    member.until("led again", SOON * 2, |member| member.epoch(id).is_some() && member.lead.fresh()).await;
    let (epoch, end) = member.served.partitions.lock().unwrap()[&id];
    assert_eq!(end, 1, "what was confirmed is there");
    assert_eq!(member.lead.lost_records(), 0);
    assert_eq!(member.append(id, epoch, 1).await, Ok(Appended::Done));
    // Now as if a standby without the newest records had taken over.
    member.served.acknowledged.lock().unwrap().insert(id, 5);
    member.served.forget(&[id]).await;
    member.lead.nudge();
    member.until("HX4509 is told", SOON, |member| member.lead.lost_records() == 3).await;
}
