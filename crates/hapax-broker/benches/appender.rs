//! What the broker itself costs per record: checking, appending over the embedded store, reading the tail, and all of it
//! over a socket. Run: `cargo bench -p hapax-broker --bench appender`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hapax_broker::batch::{BatchBuilder, Compression, FirstBatch, Keys, Limits, check};
use hapax_broker::broker::Broker;
use hapax_broker::config::{BrokerConfig, TopicConfig};
use hapax_broker::log::{NewBatch, Partition, Time};
use hapax_broker::model::Topic;
use hapax_broker::server::{Listener, Server};
use hapax_broker::store::embedded::{Embedded, EmbeddedOptions};
use hapax_broker::store::{Address, Append, Appended, Log as _, NewTopic, Row, Topics as _};
use hapax_kafka::{Acks, Connection, Options, produce_request};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use kafka_protocol::messages::{ProduceRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

/// Records of 100 bytes in a batch: about what librdkafka sends under load.
const PER_BATCH: i32 = 1_000;
const RECORDS: i64 = 500_000;
const IN_FLIGHT: usize = 5;

fn batch(producer: i64, sequence: i32) -> Bytes {
    let builder = BatchBuilder::new().producer(producer, 0, sequence);
    let value = [b'x'; 100];
    (0..PER_BATCH).fold(builder, |builder, _| builder.record(1_000, None, Some(&value))).build().expect("a batch")
}

/// Seconds of processor time of this process, all threads.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit(") ").next().unwrap_or_default();
    let ticks: Vec<f64> = after.split(' ').skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    ticks.iter().sum::<f64>() / 100.0
}

fn report(what: &str, records: i64, begun: Instant, before: f64) {
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), processor() - before);
    let each = 1e6 / records as f64;
    println!("{what:<44} {:>10.0} records/s   {:.3} µs of processor each", records as f64 / wall, cpu * each);
}

fn checking() {
    let sound = batch(1, 0);
    let (begun, before) = (Instant::now(), processor());
    for _ in 0..RECORDS / i64::from(PER_BATCH) * 10 {
        check(&sound, Keys::Optional, Limits::default()).expect("sound");
    }
    report("check a batch of 1,000", RECORDS * 10, begun, before);
    let packed = hapax_broker::batch::rewrite(&sound, Compression::Lz4, Limits::default()).expect("packs");
    let (begun, before) = (Instant::now(), processor());
    for _ in 0..RECORDS / i64::from(PER_BATCH) {
        hapax_broker::batch::rewrite(&packed, Compression::None, Limits::default()).expect("unpacks");
    }
    report("rewrite an lz4 batch uncompressed", RECORDS, begun, before);
}

struct Rig {
    broker: Arc<Broker<Embedded>>,
    server: Server,
    topic: Arc<Topic>,
    _directory: tempfile::TempDir,
}

impl Rig {
    async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Embedded::open(directory.path(), EmbeddedOptions::default()).expect("opens");
        // Small enough that the older half must come from the store.
        let config = BrokerConfig { tail_cache: 32 << 20, ..BrokerConfig::default() };
        let broker = Broker::new(Arc::new(store), config);
        let listener = Listener::bind("127.0.0.1:0").await.expect("a port");
        let address = Address { host: "127.0.0.1".to_owned(), port: listener.address().port() };
        broker.start(address).await.expect("starts");
        let new = NewTopic { name: "t".to_owned(), partitions: 1, config: TopicConfig::default() };
        let topic = broker.create_topic(new).await.expect("a topic");
        let server = listener.serve(Arc::clone(&broker));
        Self { broker, server, topic, _directory: directory }
    }

    fn partition(&self) -> Arc<Partition> {
        self.broker.logs.partition(self.topic.partitions[0]).expect("led")
    }
}

/// What the store takes for the same bytes, five batches to a commit: the rest of the next figure is the broker's.
async fn storing() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Embedded::open(directory.path(), EmbeddedOptions::default()).expect("opens");
    let new = NewTopic { name: "bare".to_owned(), partitions: 1, config: TopicConfig::default() };
    let topic = store.create_topic(new).await.expect("a topic");
    let led = store.lead(&topic.partitions).await.expect("leads");
    let data: Bytes = (0..IN_FLIGHT as i32).flat_map(|index| batch(1, index * PER_BATCH)).collect::<Vec<u8>>().into();
    let per_row = i64::from(PER_BATCH) * IN_FLIGHT as i64;
    let (begun, before) = (Instant::now(), processor());
    for index in 0..RECORDS / per_row {
        let base_offset = index * per_row;
        let (partition, last_offset) = (topic.partitions[0], base_offset + per_row - 1);
        let row = Row { partition, base_offset, last_offset, high_timestamp: 1_000, data: data.clone() };
        let group = Append { led: vec![(partition, led[0].epoch)], rows: vec![row] };
        assert_eq!(store.append(group).await, Ok(Appended::Done));
    }
    report("the store alone, rows of five batches", RECORDS, begun, before);
}

/// Straight into the appender, five batches in flight.
async fn appending(rig: &Rig) {
    let batches: Vec<_> = (0..RECORDS / i64::from(PER_BATCH)).map(|index| batch(1, index as i32 * PER_BATCH)).collect();
    let (begun, before) = (Instant::now(), processor());
    let mut flying = std::collections::VecDeque::new();
    for bytes in batches {
        let header = check(&bytes, Keys::Optional, Limits::default()).expect("sound").header;
        let room = rig.broker.logs.room(bytes.len()).await;
        let new = NewBatch { partition: rig.partition(), bytes, header, time: Time::Kept, held: None };
        flying.push_back(rig.broker.logs.append(new, &room));
        if flying.len() == IN_FLIGHT {
            flying.pop_front().expect("five").outcome().await.expect("written");
        }
    }
    for pending in flying {
        pending.outcome().await.expect("written");
    }
    report("check and append, five in flight", RECORDS, begun, before);
}

async fn reading(rig: &Rig) {
    let partition = rig.partition();
    let tail = partition.end() - RECORDS / 2;
    for (what, from) in [("read the tail, 1 MiB at a time", tail), ("read the store, 1 MiB at a time", 0)] {
        let (begun, before) = (Instant::now(), processor());
        let mut next = from;
        while next < from + RECORDS / 4 {
            let end = partition.end();
            let read = rig.broker.logs.read(&partition, next, end, 1 << 20, FirstBatch::Always).await.expect("reads");
            let batches = hapax_broker::batch::Batches::new(&read).map(|batch| batch.expect("sound").1);
            next = batches.last().expect("records").last_offset() + 1;
        }
        report(what, next - from, begun, before);
    }
}

/// Over a socket, requests in flight as a client has them; the client's own work is in the figure.
async fn socket(rig: &Rig) {
    let mut connection =
        Connection::connect(&rig.server.address().to_string(), &Options::default()).await.expect("connects");
    let batches: Vec<_> = (0..RECORDS / i64::from(PER_BATCH)).map(|index| batch(2, index as i32 * PER_BATCH)).collect();
    let (begun, before) = (Instant::now(), processor());
    let mut flying = std::collections::VecDeque::new();
    for bytes in batches {
        let request = produce_request("t", 0, bytes, Acks::All, Duration::from_secs(10));
        flying.push_back(connection.begin(9, &request).await.expect("sent"));
        if flying.len() == IN_FLIGHT {
            let ticket = flying.pop_front().expect("five");
            let answer = connection.finish::<ProduceRequest>(ticket).await.expect("answered");
            assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
        }
    }
    for ticket in flying {
        connection.finish::<ProduceRequest>(ticket).await.expect("answered");
    }
    report("produce over a socket, five in flight", RECORDS, begun, before);
    let end = rig.partition().end();
    let (begun, before) = (Instant::now(), processor());
    let mut next = end - RECORDS;
    while next < end {
        let partition = FetchPartition::default().with_fetch_offset(next).with_partition_max_bytes(1 << 20);
        let name = TopicName(StrBytes::from_static_str("t"));
        let wanted = FetchTopic::default().with_topic(name).with_partitions(vec![partition]);
        let request = FetchRequest::default().with_max_bytes(50 << 20).with_min_bytes(1).with_max_wait_ms(500);
        let answer = connection.call_at(12, &request.with_topics(vec![wanted])).await.expect("answered");
        let records = answer.responses[0].partitions[0].records.clone().expect("records");
        let batches = hapax_broker::batch::Batches::new(&records).map(|batch| batch.expect("sound").1);
        next = batches.last().expect("records").last_offset() + 1;
    }
    report("fetch over a socket, 1 MiB at a time", RECORDS, begun, before);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    checking();
    storing().await;
    let rig = Rig::new().await;
    appending(&rig).await;
    reading(&rig).await;
    socket(&rig).await;
    rig.broker.stop().await;
}
