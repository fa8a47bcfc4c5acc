//! Produce, InitProducerId, Fetch.

use anyhow::{Context as _, Result};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use kafka_protocol::messages::fetch_response::FetchResponse;
use kafka_protocol::messages::init_producer_id_request::InitProducerIdRequest;
use kafka_protocol::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use kafka_protocol::messages::produce_response::ProduceResponse;
use kafka_protocol::messages::{ProducerId, TransactionalId};
use uuid::Uuid;

use super::super::batch::{Batch, gzip};
use super::{STRANGER, Script, Stage, text, topic_name, topics};

/// A topic as Produce and Fetch name it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    name: String,
    id: Uuid,
}

/// What ours answers to a transactional id.
const NO_TRANSACTIONS: i16 = 53;

pub(super) async fn play(script: &mut Script, stage: &Stage) -> Result<()> {
    for version in 0..=5 {
        producers(script, version).await?;
    }
    for version in 3..=13 {
        let place = place(script, &format!("produced-{version}")).await?;
        plain(script, version, &place).await?;
        idempotent(script, version).await?;
        compressed(script, version, "producer").await?;
        compressed(script, version, "uncompressed").await?;
    }
    for version in 4..=18 {
        fetching(script, version, stage).await?;
    }
    Ok(())
}

/// A new topic with one partition.
pub(super) async fn place(script: &mut Script, name: &str) -> Result<Place> {
    topics::create(script, name, 1).await?;
    find(script, name).await
}

/// A topic that is there.
pub(super) async fn find(script: &mut Script, name: &str) -> Result<Place> {
    let id = topics::wait(script, name).await?.topics.first().context("the topic")?.topic_id;
    script.name("", id, format!("<id of {name}>"));
    Ok(Place { name: name.to_owned(), id })
}

/// A Produce of one partition.
pub(super) fn produce(version: i16, place: &Place, partition: i32, records: Bytes) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(records));
    let mut topic = TopicProduceData::default().with_partition_data(vec![data]);
    if version >= 13 {
        topic.topic_id = place.id;
    } else {
        topic.name = topic_name(&place.name);
    }
    ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic])
}

/// What is wrong with a batch is said in each broker's own words.
fn words(response: &mut ProduceResponse) {
    for partition in response.responses.iter_mut().flat_map(|topic| &mut topic.partition_responses) {
        partition.error_message = partition.error_message.take().map(|_| text("(words)"));
        for record in &mut partition.record_errors {
            record.batch_index_error_message = record.batch_index_error_message.take().map(|_| text("(words)"));
        }
    }
}

async fn plain(script: &mut Script, version: i16, place: &Place) -> Result<()> {
    let good = Batch::plain(3).bytes();
    script.say(version, "three records", &produce(version, place, 0, good.clone())).await?;
    script.say(version, "three more", &produce(version, place, 0, good.clone())).await?;
    script.say(version, "by the leader alone", &produce(version, place, 0, good.clone()).with_acks(1)).await?;
    let stranger = Place { name: "nowhere-at-all!".to_owned(), id: STRANGER };
    script.say_but(version, "an unknown topic", &produce(version, &stranger, 0, good.clone()), words).await?;
    script.say_but(version, "an unknown partition", &produce(version, place, 7, good.clone()), words).await?;
    script
        .say_but(version, "two acknowledgements", &produce(version, place, 0, good.clone()).with_acks(2), words)
        .await?;
    let mut broken = BytesMut::from(&good[..]);
    let last = broken.len() - 1;
    broken[last] ^= 1;
    script.say_but(version, "a wrong checksum", &produce(version, place, 0, broken.freeze()), words).await?;
    let old = Batch { magic: 1, ..Batch::plain(3) };
    script.say_but(version, "an old format", &produce(version, place, 0, old.bytes()), words).await?;
    let control = Batch { attributes: 0x20, ..Batch::idempotent(5, 0, 0) };
    script.say_but(version, "a control batch", &produce(version, place, 0, control.bytes()), words).await?;
    let without = Batch { sequence: -1, ..Batch::idempotent(5, 0, 0) };
    script.say_but(version, "an id without a sequence", &produce(version, place, 0, without.bytes()), words).await?;
    let two = [good.clone(), good.clone()].concat();
    script.say_but(version, "two batches", &produce(version, place, 0, two.into()), words).await?;
    let cut = good.slice(..good.len() - 3);
    script.say_but(version, "a batch cut short", &produce(version, place, 0, cut), words).await?;
    let late = Batch { first_time: 4_102_444_800_000, ..Batch::plain(3) };
    script.say_but(version, "records of the year 2100", &produce(version, place, 0, late.bytes()), words).await?;
    if version < 7 {
        let zstd = Batch { attributes: 4, ..Batch::plain(3) };
        script.say_but(version, "zstd in an old version", &produce(version, place, 0, zstd.bytes()), words).await?;
    }
    Ok(())
}

/// Compressed batches are judged by what is in them, where compression is kept and where it is undone.
async fn compressed(script: &mut Script, version: i16, kind: &str) -> Result<()> {
    let name = format!("compressed-{kind}-{version}");
    topics::create_with(script, &name, "compression.type", kind).await?;
    let place = find(script, &name).await?;
    let good = Batch { attributes: 1, ..Batch::plain(3) };
    let (three, late) = (gzip(&good.records(b"val")), Batch { first_time: 4_102_444_800_000, ..good });
    let large = Batch { count: 1, ..good };
    for (what, batch) in [
        ("three compressed records", good.around(&three)),
        ("no gzip", good.around(&[0xa5; 64])),
        ("gzip cut short", good.around(&three[..20])),
        ("fewer compressed records", Batch { count: 4, ..good }.around(&three)),
        ("more compressed records", Batch { count: 2, ..good }.around(&three)),
        ("compressed records of the year 2100", late.around(&three)),
        ("a megabyte and more, compressed", large.around(&gzip(&large.records(&[0; 1_100_000])))),
    ] {
        let what = format!("{what}, {kind}");
        script.say_but(version, &what, &produce(version, &place, 0, batch), words).await?;
    }
    Ok(())
}

async fn idempotent(script: &mut Script, version: i16) -> Result<()> {
    let place = place(script, &format!("idempotent-{version}")).await?;
    let made = script.ask(4, &InitProducerIdRequest::default().with_transaction_timeout_ms(60_000)).await?;
    let (id, epoch) = (made.producer_id.0, made.producer_epoch);
    for (what, epoch, sequence) in [
        ("first sequence", epoch, 0),
        ("second sequence", epoch, 3),
        ("the first again", epoch, 0),
        ("the second again", epoch, 3),
        ("a gap", epoch, 9),
        ("an overlap", epoch, 4),
        ("a new epoch from the middle", epoch + 1, 6),
        ("a new epoch", epoch + 1, 0),
        ("the old epoch", epoch, 6),
    ] {
        let batch = Batch::idempotent(id, epoch, sequence).bytes();
        script.say_but(version, what, &produce(version, &place, 0, batch), words).await?;
    }
    let unknown = Batch::idempotent(id + 999_999, 0, 5).bytes();
    script
        .say_but(version, "an unknown producer from the middle", &produce(version, &place, 0, unknown), words)
        .await?;
    Ok(())
}

async fn producers(script: &mut Script, version: i16) -> Result<()> {
    let request = |id: Option<&str>| {
        let id = id.map(|id| TransactionalId(text(id)));
        InitProducerIdRequest::default().with_transactional_id(id).with_transaction_timeout_ms(60_000)
    };
    let tidy = |response: &mut kafka_protocol::messages::InitProducerIdResponse| {
        response.producer_id = ProducerId(response.producer_id.0.min(0));
    };
    script.patient(version, &request(None), |response| response.error_code == 0).await?;
    script.say_but(version, "a new producer", &request(None), tidy).await?;
    script.say_but(version, "an empty name", &request(Some("")), tidy).await?;
    let name = format!("named-{version}");
    // Apache Kafka's coordinators load the parts of a topic first: names enough that every part has one.
    for other in 0..12 {
        let other = request(Some(&format!("other-{version}-{other}")));
        script.patient(version, &other, |response| [0, NO_TRANSACTIONS].contains(&response.error_code)).await?;
    }
    let slow = request(Some(&name)).with_transaction_timeout_ms(3_600_000);
    script.say_but(version, "too long a timeout", &slow, tidy).await?;
    let never = request(Some(&name)).with_transaction_timeout_ms(0);
    script.say_but(version, "no timeout", &never, tidy).await?;
    let first = script.say_but(version, "a named producer", &request(Some(&name)), tidy).await?;
    script.say_but(version, "the same again", &request(Some(&name)), tidy).await?;
    if version >= 3 {
        let first = first.context("an answer")?;
        let given = |id: ProducerId, epoch| request(Some(&name)).with_producer_id(id).with_producer_epoch(epoch);
        script.say_but(version, "with its epoch", &given(first.producer_id, 1), tidy).await?;
        script.say_but(version, "with its epoch, again", &given(first.producer_id, 1), tidy).await?;
        script.say_but(version, "with an old epoch", &given(first.producer_id, 0), tidy).await?;
        script.say_but(version, "with another's id", &given(ProducerId(first.producer_id.0 + 77), 0), tidy).await?;
        let nameless = script.ask(version, &request(None)).await?;
        let odd = request(None).with_producer_id(nameless.producer_id).with_producer_epoch(1);
        script.say_but(version, "an epoch without a name", &odd, tidy).await?;
    }
    Ok(())
}

/// The leader's epoch in every batch is the broker's own; it lies outside the checksum.
pub(super) fn same_epoch(response: &mut FetchResponse) {
    for partition in response.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
        let Some(records) = &partition.records else { continue };
        let mut bytes = BytesMut::from(&records[..]);
        let mut at = 0;
        while at + 61 <= bytes.len() {
            let length = i32::from_be_bytes([bytes[at + 8], bytes[at + 9], bytes[at + 10], bytes[at + 11]]);
            bytes[at + 12..at + 16].fill(0);
            at += usize::try_from(length).unwrap_or(usize::MAX / 2) + 12;
        }
        partition.records = Some(bytes.freeze());
    }
}

pub(super) fn fetch(version: i16, place: &Place, partition: FetchPartition) -> FetchRequest {
    let mut topic = FetchTopic::default().with_partitions(vec![partition]);
    if version >= 13 {
        topic.topic_id = place.id;
    } else {
        topic.topic = topic_name(&place.name);
    }
    let mut request = FetchRequest::default().with_max_wait_ms(0).with_max_bytes(1 << 20).with_topics(vec![topic]);
    if version >= 7 {
        request.session_epoch = -1;
    }
    request
}

async fn fetching(script: &mut Script, version: i16, stage: &Stage) -> Result<()> {
    let place = place(script, &format!("fetched-{version}")).await?;
    for _ in 0..2 {
        let batch = Batch::plain(3).bytes();
        let answer = script.ask(12, &produce(12, &place, 0, batch)).await?;
        anyhow::ensure!(answer.responses[0].partition_responses[0].error_code == 0, "{answer:?}");
    }
    let from = |offset: i64| {
        let partition = FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
        if version >= 9 { partition.with_current_leader_epoch(-1) } else { partition }
    };
    for (what, partition) in [
        ("from the start", from(0)),
        ("from within a batch", from(1)),
        ("at the end", from(6)),
        ("after the end", from(7)),
        ("before the start", from(-7)),
        ("an unknown partition", from(0).with_partition(9)),
        ("little room", from(0).with_partition_max_bytes(1)),
    ] {
        script.say_but(version, what, &fetch(version, &place, partition), same_epoch).await?;
    }
    let committed = fetch(version, &place, from(0)).with_isolation_level(1);
    script.say_but(version, "committed records only", &committed, same_epoch).await?;
    let stranger = Place { name: "nowhere".to_owned(), id: STRANGER };
    script.say_but(version, "an unknown topic", &fetch(version, &stranger, from(0)), same_epoch).await?;
    if version >= 7 {
        let odd = fetch(version, &place, from(0)).with_session_id(1_234_567).with_session_epoch(1);
        script.say_but(version, "an unknown session", &odd, same_epoch).await?;
        let wanted = fetch(version, &place, from(0)).with_session_epoch(0);
        script
            .say_but(version, "a session is wanted", &wanted, |response| {
                response.session_id = 0; // legal: none was given
                same_epoch(response);
            })
            .await?;
    }
    if version >= 9 {
        for (what, epoch) in [("the leader's epoch", stage.epoch), ("a future epoch", stage.epoch + 5)] {
            let request = fetch(version, &place, from(0).with_current_leader_epoch(epoch));
            script.say_but(version, what, &request, same_epoch).await?;
        }
    }
    if version >= 12 {
        let diverged = from(6).with_last_fetched_epoch(stage.epoch).with_current_leader_epoch(stage.epoch);
        script.say_but(version, "after the last epoch", &fetch(version, &place, diverged), same_epoch).await?;
    }
    Ok(())
}
