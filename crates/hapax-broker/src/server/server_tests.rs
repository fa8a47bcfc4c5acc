use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, FetchRequest, MetadataRequest, ProduceRequest, TopicName,
};
use kafka_protocol::protocol::{Decodable, StrBytes};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::trial::{Trial, frame};
use super::*;
use crate::api::{ROUTES, empty_request};
use crate::patience::{LIMIT, until, within};
use crate::wire::author::Author;
use crate::wire::shape::shape;
use hapax_kafka::batch::{BatchHeader, NewRecord, encode};
use hapax_kafka::{Acks, produce_request};

fn named() -> ApiVersionsRequest {
    let text = StrBytes::from_static_str;
    ApiVersionsRequest::default().with_client_software_name(text("trial")).with_client_software_version(text("1.0"))
}

/// Whether the peer closes, and nothing else comes.
async fn closes(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    matches!(within("the end of a connection", stream.read(&mut byte)).await, Ok(0) | Err(_))
}

async fn raw(trial: &Trial) -> TcpStream {
    TcpStream::connect(trial.server.address()).await.expect("connects")
}

/// Goal: a new client learns what is served. Method: every version of ApiVersions, and one that nobody knows.
#[tokio::test]
async fn api_versions_answers_every_version() {
    let trial = Trial::start().await;
    let mut client = trial.open().await;
    for version in 0..=4 {
        let answer = client.call_at(version, &named()).await.expect("answers");
        assert_eq!(answer.error_code, 0);
        assert_eq!(answer.api_keys.len(), ROUTES.len(), "version {version}");
        let produce = answer.api_keys.iter().find(|api| api.api_key == 0).expect("Produce is served");
        assert_eq!(
            (produce.min_version, produce.max_version),
            (0, 13),
            "librdkafka drops codecs when the minimum is not 0"
        );
    }
    let all = client.call_at(4, &named()).await.expect("answers");
    let producer_ids = all.api_keys.iter().find(|api| api.api_key == 22).expect("InitProducerId is served");
    assert_eq!((producer_ids.min_version, producer_ids.max_version), (0, 5));
    client.send_bytes(&frame(ApiKey::ApiVersions, 99, 77, &[])).await.expect("sent");
    let mut answer = client.receive_bytes().await.expect("answers");
    assert_eq!(&answer.split_to(4)[..], &77_i32.to_be_bytes(), "the header of version 0");
    let body = ApiVersionsResponse::decode(&mut answer, 0).expect("a body of version 0");
    assert_eq!((body.error_code, body.api_keys.len(), answer.len()), (35, 1, 0));
    assert_eq!((body.api_keys[0].api_key, body.api_keys[0].max_version), (18, 4));
    let nameless = client.call_at(3, &ApiVersionsRequest::default()).await.expect("answers");
    assert_eq!(nameless.error_code, 42);
}

/// Goal: every API in every version is answered in its own form. Method: requests that say nothing, to a running broker.
#[tokio::test]
async fn every_served_version_of_every_api_is_answered() {
    let trial = Trial::start().await;
    for route in ROUTES.iter().filter(|route| route.key != ApiKey::Produce) {
        for version in route.min..=route.max {
            let mut client = trial.open().await;
            let body = empty_request(route.key, version).expect("encodes");
            client.send_bytes(&frame(route.key, version, 5, &body)).await.expect("sent");
            let answer = client.receive_bytes().await;
            let answer = answer.unwrap_or_else(|error| panic!("{} version {version}: {error}", route.name));
            assert_eq!(&answer[..4], &5_i32.to_be_bytes(), "{} version {version}", route.name);
        }
    }
}

/// Goal: whatever a request says, it is answered or the connection is closed, and the broker lives on. Method: requests with
/// random content, every API in every version.
#[tokio::test]
async fn requests_with_random_content_break_nothing() {
    let trial = Trial::start().await;
    for route in ROUTES {
        let shape = shape(route.key).expect("every route has a shape");
        for version in route.min..=route.max {
            for seed in 0..2 {
                let mut client = trial.open().await;
                let body = Author::write(shape, version, seed, None).out;
                client.send_bytes(&frame(route.key, version, 5, &body)).await.expect("sent");
                let ended = tokio::time::timeout(LIMIT, client.receive_bytes()).await;
                assert!(ended.is_ok(), "{} version {version} is neither answered nor closed", route.name);
            }
        }
    }
    let answer = trial.connect().await.call_at(0, &named()).await.expect("the broker lives");
    assert_eq!(answer.error_code, 0);
    assert_eq!(trial.server.traffic().panics(), 0);
}

/// Goal: damaged batches are refused one by one, and the log stays dense. Method: a good batch of three records bent at random
/// places, between good ones.
#[tokio::test]
async fn damaged_batches_are_answered_and_leave_no_trace() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    make_topic(&mut client, "letters").await;
    let good = encode(BatchHeader::PLAIN, &["a", "b", "c"].map(NewRecord::of));
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut end, mut refused) = (0, 0);
    for round in 0..1_500 {
        let mut bytes = good.to_vec();
        match round % 4 {
            0 => {}
            1 => bytes.truncate(rng.usize(0..bytes.len())),
            2 => bytes.extend((0..rng.usize(1..80)).map(|_| rng.u8(..)).collect::<Vec<_>>()),
            _ => {
                for _ in 0..rng.usize(1..4) {
                    let at = rng.usize(0..bytes.len());
                    bytes[at] = rng.u8(..);
                }
            }
        }
        let request = produce_request("letters", 0, Bytes::from(bytes), Acks::All, Duration::from_secs(5));
        let answer = client.call_at(9, &request).await.expect("answered");
        let verdict = verdict(&answer);
        assert!(round % 4 != 0 || verdict.error_code == 0, "a good batch is taken");
        match verdict.error_code {
            0 => {
                assert_eq!(verdict.base_offset, end, "no hole, nothing twice");
                end += 3;
            }
            2 | 10 | 32 | 42 | 45 | 47 | 48 | 76 | 87 => refused += 1,
            code => panic!("round {round}: {code}"),
        }
    }
    assert!(refused > 900, "{refused} of 1,125 damaged batches were refused");
    assert_eq!(trial.server.traffic().panics(), 0);
}

/// Goal: bytes that are no request end their connection and no other. Method: noise, wrong lengths, unknown APIs and versions.
#[tokio::test]
async fn what_is_no_request_closes_its_connection_only() {
    let trial = Trial::start().await;
    let mut witness = trial.connect().await;
    let bad: [Bytes; 8] = [
        Bytes::from_static(b"GET / HTTP/1.1\r\n\r\n"),
        Bytes::from_static(&[0xff; 64]),
        Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0]),
        Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        frame(ApiKey::Vote, 0, 1, &[]),
        frame(ApiKey::Produce, 2, 1, &[]),
        frame(ApiKey::Fetch, 99, 1, &[0; 40]),
        frame(ApiKey::Metadata, 1, 1, &[0x7f, 0xff, 0xff, 0xff]),
    ];
    for bytes in bad {
        let mut stream = raw(&trial).await;
        tokio::io::AsyncWriteExt::write_all(&mut stream, &bytes).await.expect("sent");
        assert!(closes(&mut stream).await, "{bytes:?}");
    }
    assert_eq!(witness.call_at(1, &named()).await.expect("still served").error_code, 0);
}

/// Goal: nobody holds a connection by saying nothing, or saying it slowly. Method: short deadlines, one peer of each kind, and
/// one that talks.
#[tokio::test]
async fn idle_and_slow_peers_are_closed() {
    let trial = Trial::with(|config| {
        config.idle = Duration::from_secs(3);
        config.frame_deadline = Duration::from_millis(300);
    })
    .await;
    let (mut idle, mut slow, mut talker) = (raw(&trial).await, raw(&trial).await, trial.connect().await);
    let begun = Instant::now();
    tokio::io::AsyncWriteExt::write_all(&mut slow, &[0, 0, 0]).await.expect("sent");
    assert!(closes(&mut slow).await);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    // Longer than anybody may be idle, with ten words in that time.
    while begun.elapsed() < Duration::from_secs(4) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        talker.call_at(0, &named()).await.expect("who talks stays");
    }
    assert!(closes(&mut idle).await);
}

/// Goal: who asks and never reads costs little and is closed in the end. Method: a flood of requests with large answers.
#[tokio::test]
async fn a_peer_that_never_reads_is_stopped() {
    let trial = Trial::with(|config| config.idle = Duration::from_millis(500)).await;
    let mut client = trial.connect().await;
    let names: Vec<String> = (0..40).map(|number| format!("{number}-{}", "x".repeat(200))).collect();
    let topics = names.iter().map(|name| {
        let name = TopicName(StrBytes::from_string(name.clone()));
        kafka_protocol::messages::metadata_request::MetadataRequestTopic::default().with_name(Some(name))
    });
    let made = MetadataRequest::default().with_topics(Some(topics.collect())).with_allow_auto_topic_creation(true);
    client.call_at(12, &made).await.expect("made");
    let all = frame(ApiKey::Metadata, 1, 1, &[0xff; 4]);
    let mut stream = raw(&trial).await;
    let flood = async { while tokio::io::AsyncWriteExt::write_all(&mut stream, &all).await.is_ok() {} };
    within("a peer that is not read any more, then closed", flood).await;
    let written = trial.server.traffic().bytes_out();
    assert!(written < 64 << 20, "{written} bytes of answers were made");
}

/// Goal: an answer that nobody reads gives its memory up to those who wait for it, and only then. Method: memory for one
/// answer, which is larger than any socket's buffers; a client that does not read, alone for a while, then beside one that does.
#[tokio::test]
async fn who_does_not_read_is_left_when_others_wait() {
    const LARGE: usize = 24 << 20;
    let patience = Duration::from_millis(300);
    let trial = Trial::with(|config| {
        (config.answer_memory, config.answer_patience) = (1 << 20, patience);
        config.topic_defaults.0.insert("max.message.bytes".to_owned(), (LARGE + 1_000).to_string());
    })
    .await;
    let mut client = trial.connect().await;
    make_topic(&mut client, "letters").await;
    let records = encode(BatchHeader::PLAIN, &[NewRecord::of("x".repeat(LARGE))]);
    let produce = produce_request("letters", 0, records, Acks::All, Duration::from_secs(5));
    assert_eq!(verdict(&client.call_at(9, &produce).await.expect("answered")).error_code, 0);
    let fetch = fetch_letters(100, 30 << 20);
    let mut body = bytes::BytesMut::new();
    kafka_protocol::protocol::Encodable::encode(&fetch, &mut body, 11).expect("encodes");
    let mut silent = raw(&trial).await;
    tokio::io::AsyncWriteExt::write_all(&mut silent, &frame(ApiKey::Fetch, 11, 1, &body)).await.expect("sent");
    silent.readable().await.expect("its answer has begun");
    tokio::time::sleep(patience * 4).await;
    assert_eq!(trial.server.traffic().connections(), 2, "nobody else wants the memory");
    let answer = loop {
        let answer = client.call_at(11, &fetch).await.expect("answered");
        let partition = &answer.responses[0].partitions[0];
        assert_eq!((partition.error_code, partition.high_watermark), (0, 1));
        if let Some(records) = partition.records.clone().filter(|records| !records.is_empty()) {
            break records;
        }
    };
    assert!(answer.len() > LARGE);
    let taken = tokio::io::copy(&mut silent, &mut tokio::io::sink()).await.unwrap_or(0);
    assert!(taken < LARGE as u64, "{taken} bytes: it was not left");
}

/// Goal: connections are bounded, and an end makes room. Method: two allowed, a third is closed, and taken after one left.
#[tokio::test]
async fn too_many_connections_are_closed_at_once() {
    let trial = Trial::with(|config| config.max_connections = 2).await;
    let (first, _second) = (trial.connect().await, trial.connect().await);
    assert!(closes(&mut raw(&trial).await).await);
    assert_eq!(trial.server.traffic().connections_refused(), 1);
    drop(first);
    until("the end of a connection is noticed", async || trial.server.traffic().connections() <= 1).await;
    trial.connect().await;
}

/// Goal: strangers on other machines cannot connect, and a taken port is named. Method: both, with their codes.
#[tokio::test]
async fn it_listens_on_loopback_only() {
    for outside in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9092"] {
        let refused = Listener::bind(outside).await.err().expect("refused");
        assert_eq!(refused.code(), "HX4570", "{refused}");
    }
    let taken = Listener::bind("127.0.0.1:0").await.expect("a free port");
    let refused = Listener::bind(&taken.address().to_string()).await.err().expect("refused");
    assert_eq!(refused.code(), "HX4571", "{refused}");
    let localhost = Listener::bind("localhost:0").await.expect("loopback by name");
    assert!(localhost.address().ip().is_loopback());
}

fn batch(value: &'static str) -> ProduceRequest {
    let records = encode(BatchHeader::PLAIN, &[NewRecord::of(value)]);
    produce_request("letters", 0, records, Acks::All, Duration::from_secs(5))
}

fn fetch_letters(max_wait_ms: i32, max_bytes: i32) -> FetchRequest {
    let partition = kafka_protocol::messages::fetch_request::FetchPartition::default();
    let topic = kafka_protocol::messages::fetch_request::FetchTopic::default()
        .with_topic(TopicName(StrBytes::from_static_str("letters")))
        .with_partitions(vec![partition.with_partition_max_bytes(max_bytes)]);
    let request = FetchRequest::default().with_max_wait_ms(max_wait_ms).with_min_bytes(1);
    request.with_max_bytes(max_bytes).with_topics(vec![topic])
}

fn verdict(answer: &kafka_protocol::messages::ProduceResponse) -> &PartitionProduceResponse {
    &answer.responses[0].partition_responses[0]
}

async fn make_topic(client: &mut hapax_kafka::Connection, name: &'static str) {
    let asked = kafka_protocol::messages::metadata_request::MetadataRequestTopic::default()
        .with_name(Some(TopicName(StrBytes::from_static_str(name))));
    let request = MetadataRequest::default().with_topics(Some(vec![asked])).with_allow_auto_topic_creation(true);
    let answer = client.call_at(12, &request).await.expect("answers");
    assert_eq!(answer.topics[0].error_code, 0);
}

/// Goal: requests of one connection are answered in their order, with Produce under way at once. Method: 20 produces and other
/// requests between them without reading, then all answers.
#[tokio::test]
async fn answers_come_in_the_order_of_the_requests() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    make_topic(&mut client, "letters").await;
    let mut tickets = Vec::new();
    for _ in 0..20 {
        tickets
            .push((client.begin(9, &batch("a")).await.expect("sent"), client.begin(0, &named()).await.expect("sent")));
    }
    for (offset, (produce, versions)) in (0..).zip(tickets) {
        let answer = client.finish::<ProduceRequest>(produce).await.expect("in order");
        assert_eq!((verdict(&answer).error_code, verdict(&answer).base_offset), (0, offset));
        assert_eq!(client.finish::<ApiVersionsRequest>(versions).await.expect("in order").error_code, 0);
    }
}

/// Goal: acks=0 gets no answer, and an error behind it ends the connection. Method: a good one before another request, then
/// one to a topic that is not there.
#[tokio::test]
async fn without_acks_there_is_no_answer_and_an_error_closes() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    make_topic(&mut client, "letters").await;
    client.begin(9, &batch("a").with_acks(0)).await.map(drop).expect("sent");
    assert_eq!(client.call_at(0, &named()).await.expect("the next answer").error_code, 0);
    let mut lost = batch("b").with_acks(0);
    lost.topic_data[0].name = TopicName(StrBytes::from_static_str("nowhere"));
    client.begin(9, &lost).await.map(drop).expect("sent");
    assert!(client.call_at(0, &named()).await.is_err(), "closed");
}

/// Goal: a request that cannot be read does not swallow the answers before it. Method: three produces, then noise.
#[tokio::test]
async fn what_was_asked_before_an_error_is_answered() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    make_topic(&mut client, "letters").await;
    let mut tickets = Vec::new();
    for _ in 0..3 {
        tickets.push(client.begin(9, &batch("a")).await.expect("sent"));
    }
    client.send_bytes(&frame(ApiKey::Vote, 0, 1, &[])).await.expect("sent");
    for ticket in tickets {
        client.finish::<ProduceRequest>(ticket).await.expect("answered first");
    }
    assert!(client.receive_bytes().await.is_err(), "then closed");
}

/// Goal: a graceful end answers what is in work. Method: a fetch that waits, then the server stops.
#[tokio::test]
async fn a_stop_answers_what_is_in_work() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    make_topic(&mut client, "letters").await;
    let ticket = client.begin(11, &fetch_letters(700, 1_000)).await.expect("sent");
    let taken_up = async || trial.server.traffic().requests().any(|(name, count)| name == "Fetch" && count > 0);
    until("the fetch is in work", taken_up).await;
    let address = trial.server.address();
    let stopping = tokio::spawn(trial.server.stop(LIMIT));
    let answer = client.finish::<FetchRequest>(ticket).await.expect("answered");
    assert_eq!(answer.error_code, 0);
    assert!(client.receive_bytes().await.is_err(), "then closed");
    stopping.await.expect("stopped");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
}
