//! Whole brokers in processes of their own, killed and stopped, seen by a client.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hapax_kafka::batch::NewRecord;
use hapax_kafka::{At, Client, ClientError, Connection, Options, Patience, Producer, Reader};
use hapax_sql::postgres::PostgresUrl;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{BrokerId as WireBroker, ListOffsetsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use rustix::process::{Pid, Signal, kill_process};

use crate::broker::Broker;
use crate::config::BrokerConfig;
use crate::model::BrokerId;
use crate::patience::{LIMIT, until};
use crate::server::Listener;
use crate::store::Address;
use crate::store::postgres::test_database::TestDatabase;
use crate::store::postgres::{PostgresOptions, PostgresStore};

const DATABASE: &str = "HAPAX_TEST_BROKER_DATABASE";
const NUMBER: &str = "HAPAX_TEST_BROKER_NUMBER";
const TOPIC: &str = "orders";

/// Not a test of its own: a broker that serves until it is killed.
#[tokio::test]
#[ignore = "the other process of the tests below"]
async fn serves_until_it_is_killed() {
    let url = PostgresUrl::parse(&std::env::var(DATABASE).unwrap()).unwrap();
    let number = std::env::var(NUMBER).unwrap().parse().unwrap();
    let store = PostgresStore::open(PostgresOptions { url, broker: BrokerId(number) }).await.unwrap();
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.address();
    let broker = Broker::new(Arc::new(store), BrokerConfig::default());
    broker.start(Address { host: address.ip().to_string(), port: address.port() }).await.unwrap();
    let server = listener.serve(Arc::clone(&broker));
    println!("listens on {}", server.address());
    panic!("{}", broker.lead.failed().await);
}

/// A broker in a process of its own.
struct Process {
    child: Child,
    address: String,
}

impl Process {
    fn start(database: &TestDatabase, number: i32) -> Self {
        let port = database.url().hosts()[0].1;
        Self::start_on(&format!("postgres://postgres@127.0.0.1:{port}/{}", database.name()), number)
    }

    fn start_on(url: &str, number: i32) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "lead::process_tests::serves_until_it_is_killed"])
            .env(DATABASE, url)
            .env(NUMBER, number.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = lines.map_while(Result::ok).find_map(|line| Some(line.split_once("listens on ")?.1.to_owned()));
        Self { child, address: said.expect("the broker starts") }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        if signal == Signal::STOP {
            self.wait_until_it_stands_still();
        }
    }

    /// A stop takes effect when one of the process's threads next runs; another may still answer a request until then.
    fn wait_until_it_stands_still(&self) {
        let stat = format!("/proc/{}/stat", self.child.id());
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops it, and waits until every thread stands still: until then it may answer, and rightly.
    fn stop(&self) {
        self.signal(Signal::STOP);
        while !self.stands_still() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn stands_still(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default()).all(
            |stat| {
                // The state comes after the name, which stands in parentheses.
                stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
            },
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn client(processes: &[&Process]) -> Client {
    let options = Options { answer: Duration::from_secs(5), ..Options::default() };
    Client::new(processes.iter().map(|process| process.address.clone()), options)
}

fn producer(processes: &[&Process]) -> Producer {
    Producer::new(client(processes), Patience { total: LIMIT, ..Patience::default() })
}

fn record(number: usize) -> NewRecord {
    NewRecord::of(number.to_string())
}

/// Asks until there is an answer: a broker that has just lost its sessions says for a moment that it does not lead, and a client
/// is to ask again, as all clients do.
async fn patiently<T>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, ClientError>) -> T {
    let begun = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} for {what}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// All records, up to the end that the leader tells.
async fn all(mut client: Client) -> Vec<(i64, String)> {
    let end = patiently("the end of the log", async || client.offset(TOPIC, 0, At::End).await).await;
    let mut reader = Reader::new(client, TOPIC, 0, 0, Duration::from_millis(200));
    let mut found = Vec::new();
    while reader.position() < end {
        let records = patiently("the records below the end", async || reader.read().await).await;
        let value = |value: bytes::Bytes| String::from_utf8(value.to_vec()).unwrap();
        found.extend(records.into_iter().map(|record| (record.offset, value(record.value.unwrap()))));
    }
    found
}

fn dense(count: usize) -> Vec<(i64, String)> {
    (0..count).map(|number| (i64::try_from(number).unwrap(), number.to_string())).collect()
}

/// Goal: kill -9 of the leader loses nothing and doubles nothing. Method: an idempotent producer that goes on through it;
/// twice, with the first broker back in between.
#[tokio::test]
async fn a_killed_leader_is_followed_without_loss() {
    let database = TestDatabase::new();
    let first = Process::start(&database, 1);
    let second = Process::start(&database, 2);
    let mut producer = producer(&[&first, &second]);
    producer.client().create_topic(TOPIC, 1, &[]).await.unwrap();
    for number in 0..20 {
        producer.send(TOPIC, 0, &[record(number)]).await.unwrap();
    }
    first.signal(Signal::KILL);
    let begun = Instant::now();
    producer.send(TOPIC, 0, &[record(20)]).await.unwrap();
    println!("written again {:?} after kill -9", begun.elapsed());
    for number in 21..40 {
        producer.send(TOPIC, 0, &[record(number)]).await.unwrap();
    }
    assert_eq!(all(client(&[&second])).await, dense(40));
    drop(first);
}

/// Goal: a leader that was stopped past its lease neither writes nor reports an old end. Method: requests that lie in its
/// socket while another broker leads and writes; then it is let go on.
#[tokio::test]
async fn a_stopped_leader_reports_nothing_old() {
    let database = TestDatabase::new();
    let first = Process::start(&database, 1);
    let second = Process::start(&database, 2);
    let mut producer = producer(&[&first]);
    producer.client().create_topic(TOPIC, 1, &[]).await.unwrap();
    for number in 0..3 {
        producer.send(TOPIC, 0, &[record(number)]).await.unwrap();
    }
    let mut old = Connection::connect(&first.address, &Options::default()).await.unwrap();
    assert_eq!(end_of(&mut old).await, Ok(3));
    first.stop();
    let begun = Instant::now();
    let version = old.version::<ListOffsetsRequest>(i16::MAX).unwrap();
    let asked = old.begin(version, &end_request()).await.unwrap();
    let mut after = self::producer(&[&second]);
    for number in 3..6 {
        after.send(TOPIC, 0, &[record(number)]).await.unwrap();
    }
    println!("written by another {:?} after the stop", begun.elapsed());
    first.signal(Signal::CONT);
    let answer = old.finish::<ListOffsetsRequest>(asked).await.unwrap();
    let found = &answer.topics[0].partitions[0];
    assert!(found.error_code == 6 || found.offset >= 6, "an old end was reported: {found:?}");
    // Now it leads again, as the lowest number, and knows what the other wrote.
    for number in 6..9 {
        producer.send(TOPIC, 0, &[record(number)]).await.unwrap();
    }
    assert_eq!(all(client(&[&first, &second])).await, dense(9));
    let mut client = client(&[&second]);
    assert_eq!(patiently("the end by the other's word", async || client.offset(TOPIC, 0, At::End).await).await, 9);
}

/// Goal: a broker that stops hands over at once, with a snapshot of who wrote last. Method: two in this process; stop one.
#[tokio::test]
async fn a_broker_that_stops_hands_over_at_once() {
    let database = TestDatabase::new();
    let mut running = Vec::new();
    for number in [1, 2] {
        let listener = Listener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.address();
        let broker = Broker::new(Arc::new(database.store(number).await), BrokerConfig::default());
        broker.start(Address { host: address.ip().to_string(), port: address.port() }).await.unwrap();
        running.push((Arc::clone(&broker), listener.serve(broker)));
    }
    let (first, first_server) = running.remove(0);
    let (second, second_server) = running.remove(0);
    let addresses = [first_server.address().to_string(), second_server.address().to_string()];
    let mut producer = Producer::new(Client::new(addresses, Options::default()), Patience::default());
    producer.client().create_topic(TOPIC, 1, &[]).await.unwrap();
    for number in 0..5 {
        producer.send(TOPIC, 0, &[record(number)]).await.unwrap();
    }
    first_server.stop(Duration::from_secs(1)).await;
    first.stop().await;
    assert!(!first.lead.fresh() && !first.lead.leads());
    let upto = database.sql("SELECT upto, (SELECT count(*) FROM kafka.producer_sequences) FROM kafka.snapshots");
    assert_eq!(upto, vec![vec![Some("5".to_owned()), Some("1".to_owned())]]);
    let left = database.sql("SELECT id FROM kafka.brokers");
    assert_eq!(left, [[Some("2".to_owned())]], "nobody has to wait for its lease");
    producer.send(TOPIC, 0, &[record(5)]).await.unwrap();
    assert!(second.lead.leads());
    second_server.stop(Duration::from_secs(1)).await;
    second.stop().await;
    assert_eq!(database.sql("SELECT count(*) FROM kafka.brokers")[0][0].as_deref(), Some("0"));
}

/// Goal: sessions that the server ends lose nothing and double nothing. Method: all of the broker's sessions ended again and
/// again, in mid-append among others, under an idempotent producer.
#[tokio::test]
async fn sessions_that_end_lose_and_double_nothing() {
    let database = TestDatabase::new();
    let broker = Process::start(&database, 1);
    let mut producer = producer(&[&broker]);
    producer.client().create_topic(TOPIC, 1, &[]).await.unwrap();
    let is_ended = Cell::new(false);
    // Goes on for a while after the last session was ended, however long that takes.
    let writing = async {
        let mut after = 0;
        for number in 0.. {
            producer.send(TOPIC, 0, &[record(number)]).await.unwrap();
            after += usize::from(is_ended.get());
            if after > 20 {
                return number + 1;
            }
        }
        unreachable!("numbers do not end");
    };
    let ending = async {
        for pause in [150, 230, 410, 70, 300, 20] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            database.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND application_name LIKE 'hapax %'",
            );
        }
        is_ended.set(true);
    };
    let (written, ()) = tokio::join!(writing, ending);
    assert_eq!(all(client(&[&broker])).await, dense(written));
    let epochs = database.sql("SELECT max(leader_epoch) FROM kafka.partitions");
    assert!(epochs[0][0].as_deref().unwrap().parse::<i32>().unwrap() > 1, "it never had to lead again");
}

/// Goal: a server that goes down at once and recovers loses nothing and doubles nothing. Method: stop it under an idempotent
/// producer that does not pause, start it again, twice; each time once more records are written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_goes_down_at_once_loses_nothing() {
    let mut server = hapax_services::Postgres::builder().start().unwrap();
    let broker = Process::start_on(&server.url("postgres"), 1);
    let mut producer = producer(&[&broker]);
    producer.client().create_topic(TOPIC, 1, &[]).await.unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn({
        let (written, is_over) = (Arc::clone(&written), Arc::clone(&is_over));
        async move {
            while !is_over.load(Ordering::Relaxed) {
                producer.send(TOPIC, 0, &[record(written.load(Ordering::Relaxed))]).await.unwrap();
                written.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let more = async || {
        let enough = written.load(Ordering::Relaxed) + 20;
        until("20 more records are written", async || {
            written.load(Ordering::Relaxed) >= enough || writing.is_finished()
        })
        .await;
    };
    for _ in 0..2 {
        more().await;
        tokio::task::block_in_place(|| {
            server.stop(hapax_services::Stop::Immediate);
            server.start_again().unwrap();
        });
    }
    more().await;
    is_over.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    assert_eq!(all(client(&[&broker])).await, dense(written.load(Ordering::Relaxed)));
}

fn end_request() -> ListOffsetsRequest {
    let wanted = ListOffsetsPartition::default().with_current_leader_epoch(-1).with_timestamp(-1);
    let name = TopicName(StrBytes::from_static_str(TOPIC));
    let topic = ListOffsetsTopic::default().with_name(name).with_partitions(vec![wanted]);
    ListOffsetsRequest::default().with_replica_id(WireBroker(-1)).with_topics(vec![topic])
}

async fn end_of(connection: &mut Connection) -> Result<i64, i16> {
    let version = connection.version::<ListOffsetsRequest>(i16::MAX).unwrap();
    let answer = connection.call_at(version, &end_request()).await.unwrap();
    let found = &answer.topics[0].partitions[0];
    if found.error_code == 0 { Ok(found.offset) } else { Err(found.error_code) }
}
