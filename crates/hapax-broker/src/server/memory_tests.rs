//! How much memory strangers can make a broker take: a broker in a process of its own, which tells its resident memory, and
//! clients here, whose memory does not count.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bytes::Bytes;
use hapax_kafka::{Connection, Options};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, CreateTopicsRequest, FetchRequest, ProduceRequest, TopicName,
};
use kafka_protocol::protocol::{Encodable, StrBytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::trial::{Trial, frame};
use crate::batch::{BatchBuilder, Compression};
use crate::patience::LIMIT;
#[cfg(feature = "postgres")]
use crate::store::postgres::test_database::TestDatabase;

const PER_ADDRESS: &str = "HAPAX_TEST_CONNECTIONS_PER_ADDRESS";
/// Where it is set, the broker's store is in this database of PostgreSQL.
#[cfg(feature = "postgres")]
const DATABASE: &str = "HAPAX_TEST_BROKER_DATABASE";
const MIB: usize = 1 << 20;

/// Not a test of its own: a broker that serves, and tells its memory when it is asked by a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other process of the tests below"]
async fn serves_and_tells_its_memory() {
    #[cfg(feature = "postgres")]
    if let Ok(url) = std::env::var(DATABASE) {
        return serve_over_postgres(&url).await;
    }
    let most = std::env::var(PER_ADDRESS).expect("another test runs this one").parse().expect("a number");
    let trial = Trial::with(|config| config.max_connections_per_address = most).await;
    tell_memory(trial.server.address()).await;
}

/// A broker with all defaults, its store in this database.
#[cfg(feature = "postgres")]
async fn serve_over_postgres(url: &str) {
    use crate::store::postgres::{PostgresOptions, PostgresStore};

    let url = hapax_sql::postgres::PostgresUrl::parse(url).expect("a URL");
    let options = PostgresOptions { url, broker: crate::model::BrokerId(1) };
    let store = PostgresStore::open(options).await.expect("opens");
    let broker = crate::broker::Broker::new(std::sync::Arc::new(store), crate::config::BrokerConfig::default());
    let listener = crate::server::Listener::bind("127.0.0.1:0").await.expect("a free port");
    let address = crate::store::Address { host: "127.0.0.1".to_owned(), port: listener.address().port() };
    broker.start(address).await.expect("starts");
    let server = listener.serve(broker);
    tell_memory(server.address()).await;
}

/// Says where the broker listens, then its memory whenever it is asked.
async fn tell_memory(address: std::net::SocketAddr) {
    println!("listens on {address}");
    let told = tokio::task::spawn_blocking(|| {
        for line in std::io::stdin().lines() {
            match line.expect("a line").as_str() {
                "now" => println!("memory {}", told("VmRSS:")),
                "forget" => std::fs::write("/proc/self/clear_refs", "5").expect("the peak is forgotten"),
                "peak" => println!("memory {}", told("VmHWM:")),
                other => panic!("{other}"),
            }
        }
    });
    told.await.expect("asked until the other one ends");
}

fn told(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("it is there");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

/// A broker in a process of its own.
struct Measured {
    child: Child,
    asked: ChildStdin,
    said: BufReader<ChildStdout>,
    address: String,
}

impl Measured {
    fn start(per_address: usize) -> Self {
        Self::start_with(PER_ADDRESS, &per_address.to_string())
    }

    fn start_with(variable: &str, value: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--ignored", "--exact", "--nocapture", "server::memory_tests::serves_and_tells_its_memory"])
            .env(variable, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let asked = child.stdin.take().expect("piped");
        let said = BufReader::new(child.stdout.take().expect("piped"));
        let mut measured = Self { child, asked, said, address: String::new() };
        measured.address = measured.line("listens on ");
        measured
    }

    fn line(&mut self, start: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.said.read_line(&mut line).expect("it talks") > 0, "it ended without a line {start:?}");
            // The harness writes the test's name before the first line.
            if let Some((_, rest)) = line.split_once(start) {
                return rest.trim().to_owned();
            }
        }
    }

    fn ask(&mut self, what: &str) -> usize {
        writeln!(self.asked, "{what}").expect("it listens");
        self.line("memory ").parse().expect("a number")
    }

    /// Resident now; the peak is counted from here on.
    fn begin(&mut self) -> usize {
        writeln!(self.asked, "forget").expect("it listens");
        self.ask("now")
    }

    async fn connect(&self) -> Connection {
        let options = Options { answer: LIMIT, connect: LIMIT, ..Options::default() };
        Connection::connect(&self.address, &options).await.expect("connects")
    }

    async fn raw(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.expect("connects")
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

async fn create(client: &mut Connection, topic: &str, partitions: i32, compression: &'static str) {
    let setting = CreatableTopicConfig::default()
        .with_name(StrBytes::from_static_str("compression.type"))
        .with_value(Some(StrBytes::from_static_str(compression)));
    create_with(client, topic, partitions, vec![setting]).await;
}

async fn create_with(client: &mut Connection, topic: &str, partitions: i32, settings: Vec<CreatableTopicConfig>) {
    let topic = CreatableTopic::default()
        .with_name(name(topic))
        .with_num_partitions(partitions)
        .with_replication_factor(-1)
        .with_configs(settings);
    let answer = client.call_at(5, &CreateTopicsRequest::default().with_topics(vec![topic])).await.expect("answers");
    assert_eq!(answer.topics[0].error_code, 0);
}

async fn produce(client: &mut Connection, topic: &str, batches: Vec<Bytes>) -> Vec<i16> {
    let data = |(index, batch)| PartitionProduceData::default().with_index(index).with_records(Some(batch));
    let data =
        TopicProduceData::default().with_name(name(topic)).with_partition_data((0..).zip(batches).map(data).collect());
    let request = ProduceRequest::default().with_acks(-1).with_timeout_ms(60_000).with_topic_data(vec![data]);
    let answer = client.call_at(9, &request).await.expect("answers");
    answer.responses[0].partition_responses.iter().map(|answer| answer.error_code).collect()
}

/// Goal: a connection that waits costs a few kilobytes, whatever it has sent before. Method: a thousand that have each sent a
/// request of 200 KiB and had its answer; what the broker's memory has grown by.
#[tokio::test]
async fn memory_is_bounded_whoever_connects() {
    let mut broker = Measured::start(2_000);
    let data = PartitionProduceData::default().with_records(Some(vec![0; 200 << 10].into()));
    let data = TopicProduceData::default().with_name(name("nowhere")).with_partition_data(vec![data]);
    let request = ProduceRequest::default().with_acks(-1).with_topic_data(vec![data]);
    let mut body = bytes::BytesMut::new();
    request.encode(&mut body, 5).expect("encodes");
    let large = frame(ApiKey::Produce, 5, 1, &body);
    let mut clients = Vec::new();
    let mut before = 0;
    for round in 0..1_100 {
        if round == 100 {
            before = broker.begin(); // what any first requests need is there by now
        }
        let mut client = broker.raw().await;
        client.write_all(&large).await.expect("sent");
        let length = client.read_u32().await.expect("answered");
        tokio::io::copy(&mut (&mut client).take(u64::from(length)), &mut tokio::io::sink()).await.expect("whole");
        clients.push(client);
    }
    let each = broker.ask("now").saturating_sub(before) / 1_000;
    println!("{each} bytes for each idle connection");
    assert!(each < 24 * 1024, "{each} bytes for each of 1,000 idle connections");
    let mut served = broker.connect().await;
    assert_eq!(served.call_at(0, &ApiVersionsRequest::default()).await.expect("served").error_code, 0);
}

/// Goal: connections that are too many cost nothing that stays, and harm nobody. Method: ten thousand, one after the other,
/// against a broker that is full; then its memory, and one of those that are served.
#[tokio::test]
async fn ten_thousand_connections_too_many_harm_nobody() {
    let mut broker = Measured::start(100);
    let mut served = Vec::new();
    for _ in 0..100 {
        served.push(broker.connect().await);
    }
    let before = broker.begin();
    for _ in 0..10_000 {
        let mut byte = [0];
        let ended = broker.raw().await.read(&mut byte).await;
        assert!(matches!(ended, Ok(0) | Err(_)), "it was served");
    }
    let grown = broker.ask("now").saturating_sub(before);
    assert!(grown < 4 * MIB, "{grown} bytes stay of connections that were refused");
    let answer = served[50].call_at(0, &ApiVersionsRequest::default()).await.expect("still served");
    assert_eq!(answer.error_code, 0);
}

/// 60 MiB in some 70 KB.
fn bomb() -> Bytes {
    let mut value = vec![0; 60 * MIB];
    fastrand::Rng::with_seed(1).fill(&mut value[..66_000]);
    let batch =
        BatchBuilder::new().compression(Compression::Zstd).record(0, None, Some(&value)).build().expect("a batch");
    assert!((60_000..75_000).contains(&batch.len()), "{}", batch.len());
    batch
}

/// Goal: a small request buys little memory, however much it inflates. Method: 0.8 MB that hold 12 times 60 MiB, to a topic
/// that keeps compression and to one that undoes it; the broker's peak.
#[tokio::test]
async fn a_small_request_that_inflates_takes_little_memory() {
    let mut broker = Measured::start(10);
    let mut client = broker.connect().await;
    let batch = bomb();
    for (topic, compression, code) in [("kept", "producer", 0), ("undone", "uncompressed", 10)] {
        create(&mut client, topic, 12, compression).await;
        let before = broker.begin();
        let codes = produce(&mut client, topic, vec![batch.clone(); 12]).await;
        let grown = broker.ask("peak").saturating_sub(before);
        println!("{topic}: {} MiB for {} bytes", grown / MIB, 12 * batch.len());
        assert!(grown < 160 * MIB, "{topic}: {} MiB for a request of {} bytes", grown / MIB, 12 * batch.len());
        assert_eq!(codes, [code; 12], "{topic}");
    }
}

/// Goal: where the store undoes compression unless it is told otherwise, `max.message.bytes` bounds what is stored, and what is
/// undone is counted. Method: PostgreSQL, a topic and a broker that were told nothing, 0.8 MB that hold 12 times 60 MiB; the
/// codes, the broker's peak, the rows; then what is within the limit.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn what_inflates_is_no_row_of_postgres() {
    let database = TestDatabase::new();
    let url = format!("postgres://postgres@127.0.0.1:{}/{}", database.url().hosts()[0].1, database.name());
    let mut broker = Measured::start_with(DATABASE, &url);
    let mut client = broker.connect().await;
    create_with(&mut client, "plain", 12, Vec::new()).await;
    let rows = || database.sql("SELECT count(*), coalesce(max(octet_length(data)), 0) FROM kafka.batches").remove(0);
    let batch = bomb();
    let before = broker.begin();
    let codes = produce(&mut client, "plain", vec![batch.clone(); 12]).await;
    let grown = broker.ask("peak").saturating_sub(before);
    println!("{} MiB for {} bytes", grown / MIB, 12 * batch.len());
    assert_eq!(codes, [10; 12], "as Kafka: MESSAGE_TOO_LARGE");
    assert_eq!(rows(), [Some("0".to_owned()), Some("0".to_owned())], "nothing is stored");
    assert!(grown < 160 * MIB, "{} MiB for a request of {} bytes", grown / MIB, 12 * batch.len());
    let zeros = BatchBuilder::new().compression(Compression::Zstd).record(0, None, Some(&vec![0; MIB - 200]));
    assert_eq!(produce(&mut client, "plain", vec![zeros.build().expect("a batch")]).await, [0]);
    let [count, largest] = rows().try_into().expect("two columns");
    let largest: usize = largest.expect("a number").parse().expect("a number");
    assert_eq!(count.as_deref(), Some("1"));
    assert!((MIB - 200..=MIB).contains(&largest), "it is stored undone: {largest}");
}

/// Goal: clients that ask for much and read nothing share a budget, and those that read are served meanwhile.
/// Method: sixteen that fetch 50 MiB and do not read; the broker's peak; then one that reads all.
#[tokio::test]
async fn readers_that_do_not_read_take_little_memory() {
    let mut broker = Measured::start(100);
    let mut client = broker.connect().await;
    create(&mut client, "large", 1, "producer").await;
    let batch = BatchBuilder::new().record(0, None, Some(&vec![7; MIB - 100])).build().expect("a batch");
    for _ in 0..52 {
        assert_eq!(produce(&mut client, "large", vec![batch.clone()]).await, [0]);
    }
    let request = |offset| {
        let partition = FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(51 << 20);
        let topic = FetchTopic::default().with_topic(name("large")).with_partitions(vec![partition]);
        FetchRequest::default()
            .with_max_bytes(51 << 20)
            .with_min_bytes(1)
            .with_max_wait_ms(1_000)
            .with_topics(vec![topic])
    };
    let mut body = bytes::BytesMut::new();
    request(0).encode(&mut body, 11).expect("encodes");
    let before = broker.begin();
    let mut silent = Vec::new();
    for _ in 0..16 {
        let mut client = broker.raw().await;
        client.write_all(&frame(ApiKey::Fetch, 11, 1, &body)).await.expect("sent");
        client.readable().await.expect("the answer has begun");
        silent.push(client);
    }
    let mut offset = 0;
    while offset < 52 {
        let answer = client.call_at(11, &request(offset)).await.expect("answers");
        let answer = &answer.responses[0].partitions[0];
        assert_eq!(answer.error_code, 0);
        let records = answer.records.as_ref().map_or(0, Bytes::len);
        offset += i64::try_from(records / batch.len()).expect("a number");
        assert!(records > 0, "who reads gets something");
    }
    let grown = broker.ask("peak").saturating_sub(before);
    println!("{} MiB for 16 readers that do not read", grown / MIB);
    assert!(grown < 320 * MIB, "{} MiB for 16 readers that do not read", grown / MIB);
    drop(silent);
}
