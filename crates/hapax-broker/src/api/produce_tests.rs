use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ProduceRequest;
use tokio::time::timeout;

use super::log_rig::{Rig, fetch, fetched, for_version, init, produce, produced, send};
use crate::batch::{
    BatchBuilder, Batches, Compression, Header, Limits, Records, set_max_timestamp, stamp, uncompressed,
};
use crate::log::scripted_store::{Step, batch_of};
use crate::rules::init_producer::Ask;
use crate::store::{Producers, StoreError};

fn one(key: Option<&[u8]>) -> BatchBuilder {
    BatchBuilder::new().record(1_000, key, Some(b"value"))
}

fn plain() -> Bytes {
    one(None).build().unwrap()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Goal: every version writes, and every version of Fetch reads it. Method: one batch per version.
#[tokio::test]
async fn every_version_of_produce_and_fetch_works() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    for version in 3..=13 {
        let request = for_version(produce(&topic, &[(0, plain())], -1), version);
        let response = connection.call_at(version, &request).await.unwrap();
        let answer = &produced(&response)[0];
        assert_eq!((answer.error_code, answer.base_offset), (0, i64::from(version) - 3), "version {version}");
        assert_eq!(answer.log_append_time_ms, -1);
    }
    for version in 4..=18 {
        let response = connection.call_at(version, &fetch(&topic, 2, version)).await.unwrap();
        let answer = fetched(&response);
        assert_eq!((answer.error_code, answer.high_watermark), (0, 11), "version {version}");
        let records = answer.records.clone().unwrap();
        let bases: Vec<_> = Batches::new(&records).map(|batch| batch.unwrap().1.base_offset).collect();
        assert_eq!(bases, (2..11).collect::<Vec<_>>(), "version {version}");
    }
}

/// Goal: each bad batch has its code, and does not touch the partition beside it. Method: a table, sent with a good batch.
#[tokio::test]
async fn a_bad_batch_is_refused_and_its_neighbour_is_not() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 2, &[]).await;
    let mut connection = rig.connect().await;
    let mut offset = BytesMut::from(&plain()[..]);
    stamp(&mut offset, 5, 0);
    let mut flipped = BytesMut::from(&plain()[..]);
    flipped[70] ^= 1;
    let mut old = BytesMut::from(&plain()[..]);
    old[16] = 1;
    let future = crate::log::now() + 2 * 3_600_000;
    let large = BatchBuilder::new().record(0, None, Some(&vec![0; 1_100_000])).build().unwrap();
    let cases: [(&str, Bytes, i16); 9] = [
        ("empty", Bytes::new(), 87),
        ("cut", plain().slice(..40), 87),
        ("two batches", [&plain()[..], &plain()[..]].concat().into(), 87),
        ("base offset", offset.freeze(), 87),
        ("checksum", flipped.freeze(), 2),
        ("old format", old.freeze(), 87),
        ("too large", large, 10),
        ("in the future", BatchBuilder::new().record(future, None, None).build().unwrap(), 32),
        ("transactional", batch_of_transaction(), 48),
    ];
    for (index, (name, batch, code)) in cases.into_iter().enumerate() {
        let request = for_version(produce(&topic, &[(0, batch), (1, plain())], -1), 9);
        let response = connection.call_at(9, &request).await.unwrap();
        let answers = produced(&response);
        assert_eq!((answers[0].error_code, answers[0].base_offset), (code, -1), "{name}");
        assert_eq!((answers[1].error_code, answers[1].base_offset), (0, index as i64), "{name}");
    }
    assert_eq!(rig.broker.logs.partition(topic.partitions[0]).unwrap().end(), 0);
}

fn batch_of_transaction() -> Bytes {
    BatchBuilder::new().producer(5, 0, 0).transactional().record(0, None, None).build().unwrap()
}

/// Goal: what does not exist is told apart. Method: unknown topic, partition and uuid.
#[tokio::test]
async fn unknown_topics_and_partitions_are_refused() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    let mut stranger = (*topic).clone();
    (stranger.name, stranger.uuid) = ("nobody".into(), uuid::Uuid::from_u128(7));
    let code = async |connection: &mut hapax_kafka::Connection, request: ProduceRequest, version| {
        let response = connection.call_at(version, &for_version(request, version)).await.unwrap();
        produced(&response)[0].error_code
    };
    assert_eq!(code(&mut connection, produce(&stranger, &[(0, plain())], -1), 9).await, 3);
    assert_eq!(code(&mut connection, produce(&stranger, &[(0, plain())], -1), 13).await, 100);
    for index in [-1, 1, i32::MAX] {
        assert_eq!(code(&mut connection, produce(&topic, &[(index, plain())], -1), 9).await, 3);
    }
    for acks in [2, -2, 100] {
        assert_eq!(code(&mut connection, produce(&topic, &[(0, plain())], acks), 9).await, 21);
    }
    assert_eq!(code(&mut connection, produce(&topic, &[(0, plain())], 1), 9).await, 0);
}

/// Goal: acks=0 gets no answer, and an error ends the connection. Method: send, ask something else, then send a bad batch.
#[tokio::test]
async fn without_acks_there_is_no_answer() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    let silent = for_version(produce(&topic, &[(0, plain())], 0), 9);
    let _never_answered = connection.begin(9, &silent).await.unwrap();
    // The next frame that comes is the answer to the next request: both are in order.
    assert_eq!(send(&mut connection, &topic, plain()).await, (0, 1));
    let bad = for_version(produce(&topic, &[(0, plain().slice(..50))], 0), 9);
    let _never_answered = connection.begin(9, &bad).await.unwrap();
    let ended = timeout(crate::patience::LIMIT, connection.receive_bytes()).await.unwrap();
    assert!(ended.is_err());
}

/// Goal: an idempotent producer's retry is answered with its offset, a gap is not taken, an old epoch is fenced, and a
/// producer without id is not checked. Method: each over the wire.
#[tokio::test]
async fn an_idempotent_producer_is_checked_and_others_are_not() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    let id = init(&mut connection, 4, None, (-1, -1)).await.producer_id.0;
    assert_eq!(send(&mut connection, &topic, batch_of(id, 0, 3)).await, (0, 0));
    assert_eq!(send(&mut connection, &topic, batch_of(id, 3, 2)).await, (0, 3));
    assert_eq!(send(&mut connection, &topic, batch_of(id, 0, 3)).await, (0, 0), "a retry of the last but one");
    assert_eq!(send(&mut connection, &topic, batch_of(id, 3, 2)).await, (0, 3), "a retry of the last");
    assert_eq!(send(&mut connection, &topic, batch_of(id, 7, 1)).await, (45, -1), "a gap");
    assert_eq!(send(&mut connection, &topic, batch_of(id, 1, 2)).await, (45, -1), "an overlap");
    let newer = one(None).producer(id, 1, 0).build().unwrap();
    assert_eq!(send(&mut connection, &topic, newer).await, (0, 5));
    assert_eq!(send(&mut connection, &topic, batch_of(id, 5, 1)).await, (47, -1), "an old epoch");
    for offset in 6..9 {
        assert_eq!(send(&mut connection, &topic, plain()).await, (0, offset), "the same batch, without an id");
    }
}

/// Goal: a retry is recognised after the process is gone. Method: stop without a word, open again, send again.
#[tokio::test]
async fn a_retry_is_recognised_by_the_next_process() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    let id = init(&mut connection, 4, None, (-1, -1)).await.producer_id.0;
    for sequence in 0..6 {
        assert_eq!(send(&mut connection, &topic, batch_of(id, sequence, 1)).await, (0, i64::from(sequence)));
    }
    let Rig { broker, server } = rig;
    server.stop(Duration::ZERO).await;
    drop((connection, broker));
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    assert_eq!(send(&mut connection, &topic, batch_of(id, 5, 1)).await, (0, 5));
    assert_eq!(send(&mut connection, &topic, batch_of(id, 1, 1)).await, (0, 1));
    assert_eq!(send(&mut connection, &topic, batch_of(id, 0, 1)).await, (45, -1));
    assert_eq!(send(&mut connection, &topic, batch_of(id, 6, 1)).await, (0, 6));
    assert_ne!(init(&mut connection, 4, None, (-1, -1)).await.producer_id.0, id);
}

/// Goal: a topic made anew under an old name inherits nothing, and its old uuid is unknown. Method: delete and make again while
/// a producer goes on.
#[tokio::test]
async fn a_topic_made_anew_knows_no_producer() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let old = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    for sequence in 0..3 {
        assert_eq!(send(&mut connection, &old, batch_of(9, sequence, 1)).await, (0, i64::from(sequence)));
    }
    assert!(rig.broker.delete_topic(&old).await.unwrap());
    assert_eq!(send(&mut connection, &old, batch_of(9, 3, 1)).await, (3, -1));
    let new = rig.topic("t", 1, &[]).await;
    assert_ne!((new.uuid, new.partitions[0]), (old.uuid, old.partitions[0]));
    assert_eq!(send(&mut connection, &new, batch_of(9, 2, 1)).await, (0, 0), "not a retry of anything here");
    assert_eq!(send(&mut connection, &new, batch_of(9, 2, 1)).await, (0, 0), "but now it is");
    assert_eq!(send(&mut connection, &new, batch_of(9, 3, 1)).await, (0, 1));
    let request = for_version(produce(&old, &[(0, plain())], -1), 13);
    let response = connection.call_at(13, &request).await.unwrap();
    assert_eq!(produced(&response)[0].error_code, 100);
}

/// Goal: five requests in flight are written in order. Method: begin all, then read all answers; one of them is a retry.
#[tokio::test]
async fn requests_in_flight_keep_their_order() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    let mut tickets = Vec::new();
    for sequence in [0, 1, 2, 2, 3] {
        let request = for_version(produce(&topic, &[(0, batch_of(9, sequence, 1))], -1), 9);
        tickets.push(connection.begin(9, &request).await.unwrap());
    }
    let mut offsets = Vec::new();
    for ticket in tickets {
        let response = connection.finish::<ProduceRequest>(ticket).await.unwrap();
        offsets.push(produced(&response)[0].base_offset);
    }
    assert_eq!(offsets, [0, 1, 2, 2, 3]);
}

/// Goal: a topic's settings hold: compression, time of append, keys. Method: one topic of each kind.
#[tokio::test]
async fn the_settings_of_a_topic_hold() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    for (setting, wanted) in [("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)] {
        let topic = rig.topic(&format!("c-{setting}"), 1, &[("compression.type", setting)]).await;
        for (index, compression) in Compression::ALL.into_iter().enumerate() {
            let batch = one(None).compression(compression).build().unwrap();
            assert_eq!(send(&mut connection, &topic, batch).await, (0, index as i64));
        }
        let response = connection.call_at(12, &fetch(&topic, 0, 12)).await.unwrap();
        let records = fetched(&response).records.clone().unwrap();
        for batch in Batches::new(&records) {
            let (range, header) = batch.unwrap();
            assert_eq!(header.compression().unwrap().id(), wanted);
            let plain = uncompressed(&header, &records[range], Limits::default()).unwrap();
            assert_eq!(Records::new(&plain).next().unwrap().unwrap().value, Some(&b"value"[..]));
        }
    }
    let compacted = rig.topic("compacted", 1, &[("cleanup.policy", "compact")]).await;
    assert_eq!(send(&mut connection, &compacted, plain()).await, (87, -1));
    assert_eq!(send(&mut connection, &compacted, one(Some(b"k")).build().unwrap()).await, (0, 0));
    let timed = rig.topic("timed", 1, &[("message.timestamp.type", "LogAppendTime")]).await;
    let request = for_version(produce(&timed, &[(0, plain())], -1), 9);
    let before = crate::log::now();
    let response = connection.call_at(9, &request).await.unwrap();
    assert!(produced(&response)[0].log_append_time_ms >= before);
    let zstd = one(None).compression(Compression::Zstd).build().unwrap();
    let request = for_version(produce(&timed, &[(0, zstd)], -1), 6);
    let response = connection.call_at(6, &request).await.unwrap();
    assert_eq!(produced(&response)[0].error_code, 76);
}

/// Goal: a wrong greatest timestamp is put right. Method: one far in the future in the header alone.
#[tokio::test]
async fn a_wrong_greatest_timestamp_is_put_right() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    let mut batch = BytesMut::from(&plain()[..]);
    set_max_timestamp(&mut batch, i64::MAX);
    assert_eq!(send(&mut connection, &topic, batch.freeze()).await, (0, 0));
    let response = connection.call_at(12, &fetch(&topic, 0, 12)).await.unwrap();
    let records = fetched(&response).records.clone().unwrap();
    assert_eq!(Header::read(&records).unwrap().max_timestamp, 1_000);
}

/// Goal: one who no longer leads says so, and who does. Method: a commit in doubt, then nobody leads.
#[tokio::test]
async fn one_who_does_not_lead_says_who_does() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let topic = rig.topic("t", 1, &[]).await;
    let mut connection = rig.connect().await;
    rig.broker.store.next(Step::Fail(StoreError::InDoubt("cut".to_owned())));
    for _ in 0..2 {
        let request = for_version(produce(&topic, &[(0, plain())], -1), 10);
        let response = connection.call_at(10, &request).await.unwrap();
        let answer = &produced(&response)[0];
        assert_eq!(answer.error_code, 6);
        assert_eq!(answer.current_leader.leader_id.0, 1);
        assert_eq!(response.node_endpoints[0].port, i32::from(rig.server.address().port()));
    }
    rig.broker.lead_partitions(&topic.partitions).await.unwrap();
    assert_eq!(send(&mut connection, &topic, plain()).await, (0, 0));
}

/// Goal: InitProducerId without a transactional id gives a new id every time, and reads the id and epoch that it is sent.
/// Method: every version, over the wire; then a pair, and half a pair.
#[tokio::test]
async fn a_producer_id_is_new_every_time() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let mut seen = Vec::new();
    for version in 0..=5 {
        let answer = init(&mut connection, version, None, (-1, -1)).await;
        assert_eq!((answer.error_code, answer.producer_epoch), (0, 0));
        assert!(!seen.contains(&answer.producer_id.0));
        seen.push(answer.producer_id.0);
    }
    let again = init(&mut connection, 4, None, (seen[0], 3)).await;
    assert!(again.producer_epoch == 0 && !seen.contains(&again.producer_id.0), "always new without a transactional id");
    for half in [(5, -1), (-1, 5)] {
        assert_eq!(init(&mut connection, 4, None, half).await.error_code, 42, "id and epoch come together: {half:?}");
    }
    let noted = rig.broker.store.producer(seen[5]).await.unwrap().unwrap();
    assert_eq!((noted.epoch, noted.client_id.as_deref()), (0, Some("hapax")));
}

/// Goal: a transactional producer is refused at once, as long as its transactions could not be ended, and leaves nothing.
/// Method: a transactional id in every version, new and with an id and epoch of its own; then the store.
#[tokio::test]
async fn a_transactional_producer_is_refused_at_once() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    for version in 0..=5 {
        let answer = init(&mut connection, version, Some("orders"), (-1, -1)).await;
        let answered = (answer.error_code, answer.producer_id.0, answer.producer_epoch);
        assert_eq!(answered, (53, -1, -1), "version {version}");
        if version >= 3 {
            assert_eq!(init(&mut connection, version, Some("orders"), (7, 0)).await.error_code, 53);
        }
        assert_eq!(init(&mut connection, version, Some(""), (-1, -1)).await.error_code, 42);
    }
    assert_eq!(rig.broker.store.transactional("orders").await.unwrap(), None);
}

/// Goal: the rules for a transactional id hold over the store: raised, fenced by version, a retry answered alike.
/// Method: what the API asks of them once transactions are served.
#[tokio::test]
async fn a_transactional_id_is_raised_or_fenced() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let asked = async |version, producer| {
        let peer = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 1));
        let call = crate::api::Call { version, client_id: None, peer };
        let ask = Ask { transactional_id: Some("orders".to_owned()), timeout_ms: 60_000, producer };
        super::init_producer_id::identify(&rig.broker, &call, &ask).await.map_err(|code| code.code())
    };
    let (id, first) = asked(4, (-1, -1)).await.unwrap();
    assert_eq!((first, asked(4, (-1, -1)).await), (0, Ok((id, 1))));
    assert_eq!((asked(4, (id, 0)).await, asked(3, (id, 0)).await), (Err(90), Err(47)));
    assert_eq!(asked(4, (id, 1)).await, Ok((id, 2)));
    assert_eq!(asked(4, (id, 1)).await, Ok((id, 2)), "a retry gets the same answer");
    let noted = rig.broker.store.producer(id).await.unwrap().unwrap();
    assert_eq!((noted.epoch, noted.transactional_id.as_deref()), (2, Some("orders")));
}
