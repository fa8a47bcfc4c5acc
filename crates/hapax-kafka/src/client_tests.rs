//! The client against servers that play a part: closing, silent, wrong.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BrokerId, InitProducerIdResponse, MetadataRequest, MetadataResponse, ProduceRequest,
    ProduceResponse, ProducerId, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records::RecordBatchDecoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::batch::{self, BatchHeader, NewRecord};
use super::cluster::topic_name;
use super::*;

/// What the played server does with the next Produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Answer(i16),
    Close,
    BeSilent,
}

#[derive(Debug, Default)]
struct Stage {
    parts: Vec<Part>,
    received: Vec<Bytes>,
}

fn options() -> Options {
    // Some parts are silent, so this is also how long a test takes; all others are answered well before.
    Options { answer: Duration::from_secs(5), connect: Duration::from_secs(120), ..Options::default() }
}

/// A server that plays `parts`, one per Produce, then answers all. Its address, and what it received.
async fn play(parts: &[Part]) -> (String, Arc<Mutex<Stage>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let stage = Arc::new(Mutex::new(Stage { parts: parts.iter().rev().copied().collect(), received: Vec::new() }));
    let (port, shared) = (listener.local_addr().expect("an address").port(), Arc::clone(&stage));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, port, Arc::clone(&shared)));
        }
    });
    (address, stage)
}

async fn serve(mut stream: TcpStream, port: u16, stage: Arc<Mutex<Stage>>) {
    while let Ok(length) = stream.read_i32().await {
        let mut frame = vec![0; usize::try_from(length).expect("a length")];
        stream.read_exact(&mut frame).await.expect("a frame");
        let mut frame = Bytes::from(frame);
        let (api, version) = ((&frame[..2]).get_i16(), (&frame[2..4]).get_i16());
        let api = ApiKey::try_from(api).expect("an API");
        let header = RequestHeader::decode(&mut frame, api.request_header_version(version)).expect("a header");
        let mut body = BytesMut::new();
        if api == ApiKey::Produce {
            let request = ProduceRequest::decode(&mut frame, version).expect("a request");
            let records = request.topic_data[0].partition_data[0].records.clone().expect("records");
            let part = {
                let mut stage = stage.lock().expect("nobody panicked");
                stage.received.push(records);
                stage.parts.pop().unwrap_or(Part::Answer(0))
            };
            match part {
                Part::Answer(code) => produced(code).encode(&mut body, version).expect("an answer"),
                Part::Close => return,
                Part::BeSilent => continue,
            }
        } else {
            other(api, port, &mut frame, &mut body, version);
        }
        let mut answer = BytesMut::new();
        let head = ResponseHeader::default().with_correlation_id(header.correlation_id);
        head.encode(&mut answer, api.response_header_version(version)).expect("a header");
        stream.write_i32(i32::try_from(answer.len() + body.len()).expect("a length")).await.expect("written");
        stream.write_all(&answer).await.expect("written");
        stream.write_all(&body).await.expect("written");
    }
}

fn produced(code: i16) -> ProduceResponse {
    let partition = PartitionProduceResponse::default().with_error_code(code).with_base_offset(7);
    let topic = TopicProduceResponse::default().with_name(topic_name("t")).with_partition_responses(vec![partition]);
    ProduceResponse::default().with_responses(vec![topic])
}

fn other(api: ApiKey, port: u16, frame: &mut Bytes, body: &mut BytesMut, version: i16) {
    if api == ApiKey::ApiVersions {
        let range = |key: ApiKey, max: i16| {
            ApiVersion::default().with_api_key(key as i16).with_min_version(0).with_max_version(max)
        };
        let keys = vec![range(ApiKey::Produce, 9), range(ApiKey::Metadata, 9), range(ApiKey::InitProducerId, 3)];
        ApiVersionsResponse::default().with_api_keys(keys).encode(body, version).expect("an answer");
    } else if api == ApiKey::Metadata {
        MetadataRequest::decode(frame, version).expect("a request");
        let host = StrBytes::from_static_str("127.0.0.1");
        let broker = MetadataResponseBroker::default().with_node_id(BrokerId(3)).with_host(host);
        let partition = MetadataResponsePartition::default().with_leader_id(BrokerId(3));
        let topic = MetadataResponseTopic::default().with_name(Some(topic_name("t")));
        MetadataResponse::default()
            .with_brokers(vec![broker.with_port(i32::from(port))])
            .with_topics(vec![topic.with_partitions(vec![partition])])
            .encode(body, version)
            .expect("an answer");
    } else {
        let answer = InitProducerIdResponse::default().with_producer_id(ProducerId(41)).with_producer_epoch(0);
        answer.encode(body, version).expect("an answer");
    }
}

fn record(text: &str) -> NewRecord {
    NewRecord { timestamp: 1_000, ..NewRecord::of(text.to_owned()) }
}

/// Goal: a retry is the same batch, byte for byte, and the next batch goes on where it ended. Method: a server that closes,
/// is silent, refuses for a while; what it received.
#[tokio::test]
async fn a_retry_sends_the_same_bytes_and_the_next_batch_follows() {
    let busy = ResponseError::NotLeaderOrFollower.code();
    let (address, stage) = play(&[Part::Close, Part::BeSilent, Part::Answer(busy)]).await;
    let patience = Patience { pause: Duration::from_millis(5), ..Patience::default() };
    let mut producer = Producer::new(Client::new([address], options()), patience);
    let delivery = producer.send("t", 0, &[record("a"), record("b")]).await.expect("it arrives");
    assert_eq!(delivery.base_offset, 7);
    producer.send("t", 0, &[record("c")]).await.expect("it arrives");
    let received = stage.lock().expect("nobody panicked").received.clone();
    assert_eq!(received.len(), 5);
    assert!(received[..4].iter().all(|bytes| *bytes == received[0]));
    let sequence = |bytes: &Bytes| (bytes.slice(43..51).get_i64(), bytes.slice(53..57).get_i32());
    assert_eq!((sequence(&received[0]), sequence(&received[4])), ((41, 0), (41, 2)));
}

/// Goal: a batch whose outcome is unknown bars the way until it is sent again. Method: patience that ends at once.
#[tokio::test]
async fn nothing_is_sent_past_a_batch_in_doubt() {
    let (address, stage) = play(&[Part::BeSilent]).await;
    let patience = Patience { total: Duration::ZERO, pause: Duration::ZERO };
    let mut producer = Producer::new(Client::new([address], options()), patience);
    let error = producer.send("t", 0, &[record("a")]).await.expect_err("it is silent");
    assert!(matches!(error, ClientError::Late { .. }) && error.outcome() == Outcome::Unknown, "{error}");
    let error = producer.send("t", 0, &[record("b")]).await.expect_err("the first is in doubt");
    assert!(matches!(error, ClientError::InDoubt { .. }), "{error}");
    assert!(producer.resend("t", 0).await.expect("it arrives").is_some());
    producer.send("t", 0, &[record("b")]).await.expect("it arrives");
    assert_eq!(producer.resend("t", 0).await.expect("nothing to do"), None);
    assert_eq!(stage.lock().expect("nobody panicked").received.len(), 3);
}

/// Goal: what the broker refuses for good is not tried again and not in doubt. Method: one such code.
#[tokio::test]
async fn a_refusal_for_good_is_reported_at_once() {
    let (address, stage) = play(&[Part::Answer(ResponseError::MessageTooLarge.code())]).await;
    let mut producer = Producer::new(Client::new([address], options()), Patience::default());
    let error = producer.send("t", 0, &[record("a")]).await.expect_err("it is too large");
    assert_eq!((error.code(), error.outcome()), (Some(ResponseError::MessageTooLarge), Outcome::NotDone));
    producer.send("t", 0, &[record("b")]).await.expect("it arrives");
    let received = stage.lock().expect("nobody panicked").received.clone();
    assert!(received.iter().all(|bytes| bytes.slice(53..57).get_i32() == 0), "no sequence was used up");
}

/// Goal: an answer that came too late is not taken for the next one's. Method: call after a deadline.
#[tokio::test]
async fn a_connection_is_spent_after_a_deadline() {
    let (address, _stage) = play(&[Part::BeSilent]).await;
    let mut connection = Connection::connect(&address, &options()).await.expect("it connects");
    let request = produce_request("t", 0, batch::encode(BatchHeader::PLAIN, &[record("a")]), Acks::All, Duration::ZERO);
    let error = connection.call_at(9, &request).await.expect_err("it is silent");
    assert_eq!(error.outcome(), Outcome::Unknown);
    let error = connection.call_at(9, &request).await.expect_err("it is spent");
    assert!(matches!(error, ClientError::Spent { .. }) && error.outcome() == Outcome::NotDone, "{error}");
    assert!(!connection.is_usable());
}

/// Goal: a version that one side does not know is refused before anything is sent. Method: too new for each side.
#[tokio::test]
async fn versions_that_one_side_does_not_know_are_refused() {
    let (address, _stage) = play(&[]).await;
    let mut connection = Connection::connect(&address, &options()).await.expect("it connects");
    assert_eq!(connection.version::<ProduceRequest>(i16::MAX).expect("both know some"), 9);
    let fetch = kafka_protocol::messages::FetchRequest::default();
    assert!(matches!(connection.call(&fetch).await, Err(ClientError::Unsupported { api: 1, .. })));
    assert!(matches!(connection.call_at(99, &fetch).await, Err(ClientError::Unspeakable { version: 99, .. })));
    assert!(connection.is_usable());
}

/// Goal: no bytes of a server make the client panic or take much memory. Method: lengths and bodies that lie.
#[tokio::test]
async fn lying_servers_are_errors() {
    let mut lies: Vec<Vec<u8>> =
        vec![vec![0xff; 4], vec![0x7f, 0xff, 0xff, 0xff], vec![0, 0, 0, 2, 0, 0], vec![0, 0, 0, 0]];
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..50 {
        let body: Vec<u8> = (0..random.usize(0..60)).map(|_| random.u8(0..4)).collect();
        let mut frame = BytesMut::new();
        frame.put_i32(i32::try_from(body.len()).expect("it is short") + 4);
        frame.put_i32(1);
        frame.put_slice(&body);
        lies.push(frame.to_vec());
    }
    for lie in lies {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let said = lie.clone();
        let liar = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            stream.write_all(&said).await.expect("written");
        });
        let answer = Connection::connect(&address, &options()).await;
        if let Ok(connection) = answer {
            // Random bytes may be a legal answer that serves next to nothing.
            assert!(connection.version::<ProduceRequest>(i16::MAX).is_err(), "{lie:?}");
        }
        liar.await.expect("the liar ends");
    }
}

/// Goal: a count buys no memory, over the wire as well. Method: a server whose every answer to ApiVersions claims two thousand
/// million elements, in the newest version and, after a refusal, in version 0.
#[tokio::test]
async fn a_lying_count_is_an_error_before_room_is_made() {
    let newest = [&[0, 0, 0, 11, 0, 0, 0, 1, 0, 0][..], &[0xff, 0xff, 0xff, 0xff, 0x07]].concat();
    let refusal = vec![0, 0, 0, 6, 0, 0, 0, 1, 0, 35];
    let oldest = vec![0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0x7f, 0xff, 0xff, 0xff];
    for lies in [vec![newest], vec![refusal, oldest]] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let liar = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            for lie in lies {
                let length = stream.read_i32().await.expect("a length");
                let mut question = vec![0; usize::try_from(length).expect("a length")];
                stream.read_exact(&mut question).await.expect("a question");
                stream.write_all(&lie).await.expect("written");
            }
        });
        let error = Connection::connect(&address, &options()).await.expect_err("it lies");
        assert!(matches!(&error, ClientError::Malformed { reason, .. } if reason.contains("elements")), "{error}");
        liar.await.expect("the liar ends");
    }
}

fn sample() -> Vec<NewRecord> {
    let headers = vec![("h".to_owned(), Some(Bytes::from_static(b"1"))), ("h".to_owned(), None)];
    vec![
        NewRecord { headers, ..record("first").with_key("k") },
        NewRecord { timestamp: 990, ..record("earlier") },
        NewRecord { value: None, timestamp: 1_500, ..NewRecord::default().with_key("gone") },
    ]
}

const HEADER: BatchHeader = BatchHeader { producer_id: 9, epoch: 2, first_sequence: 2_147_483_646, attributes: 0 };

/// Goal: what is written is read back, by us and by another decoder. Method: keys, tombstones, repeated headers, times.
#[test]
fn batches_are_read_as_they_were_written() {
    let bytes = batch::encode(HEADER, &sample());
    let batches = records::decode(bytes.clone()).expect("it can be read");
    let [read] = batches.as_slice() else { panic!("one batch, not {}", batches.len()) };
    assert_eq!((read.producer_id, read.epoch, read.first_sequence), (9, 2, 2_147_483_646));
    assert_eq!((read.base_offset, read.last_offset, read.leader_epoch, read.max_timestamp), (0, 2, -1, 1_500));
    for (record, wanted) in read.records.iter().zip(sample()) {
        assert_eq!((&record.key, &record.value, record.timestamp), (&wanted.key, &wanted.value, wanted.timestamp));
    }
    assert_eq!(read.records[0].headers.len(), 2);
    let by_another = RecordBatchDecoder::decode(&mut bytes.clone()).expect("another reads it, too");
    let values = by_another.records.iter().map(|record| record.value.clone());
    assert!(values.eq(sample().into_iter().map(|record| record.value)));
}

/// Goal: all ways of packing are read. Method: pack the body of a batch by each library, Java's frames for snappy too.
#[test]
fn packed_batches_are_read() {
    let plain = batch::encode(HEADER, &sample());
    let body = &plain[61..];
    let gzip = {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut out, body).expect("packed");
        out.finish().expect("packed")
    };
    let raw = snap::raw::Encoder::new().compress_vec(body).expect("packed");
    let mut java = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    java.put_u32(u32::try_from(raw.len()).expect("it is short"));
    java.extend(&raw);
    let lz4 = {
        let mut out = lz4_flex::frame::FrameEncoder::new(Vec::new());
        std::io::Write::write_all(&mut out, body).expect("packed");
        out.finish().expect("packed")
    };
    let zstd = zstd::encode_all(body, 1).expect("packed");
    let expected = records::decode(plain.clone()).expect("it can be read")[0].records.clone();
    for (way, packed) in [(1_i16, gzip), (2, raw), (2, java), (3, lz4), (4, zstd)] {
        let mut bytes = BytesMut::from(&plain[..61]);
        bytes[21..23].copy_from_slice(&way.to_be_bytes());
        bytes.extend_from_slice(&packed);
        let length = i32::try_from(bytes.len() - 12).expect("it is short");
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        batch::seal(&mut bytes);
        let read = records::decode(bytes.freeze()).unwrap_or_else(|error| panic!("way {way}: {error}"));
        assert_eq!(read[0].records, expected, "way {way}");
    }
}

/// Goal: damaged batches are errors, or read as something, and never a panic; a cut one is left out. Method: every cut, and
/// random bytes changed with the CRC made right again.
#[test]
fn damaged_batches_never_panic() {
    let bytes = batch::encode(HEADER, &sample());
    for cut in 0..bytes.len() {
        assert_eq!(records::decode(bytes.slice(..cut)), Ok(Vec::new()), "{cut}");
    }
    let mut flipped = BytesMut::from(&bytes[..]);
    flipped[70] ^= 1;
    assert!(records::decode(flipped.freeze()).is_err());
    let mut random = fastrand::Rng::with_seed(11);
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut damaged = BytesMut::from(&bytes[..]);
        for _ in 0..random.usize(1..4) {
            let at = random.usize(12..damaged.len());
            damaged[at] = random.u8(..);
        }
        batch::seal(&mut damaged);
        refused += u32::from(records::decode(damaged.freeze()).is_err());
    }
    assert!(refused > 1_000, "{refused}");
}
