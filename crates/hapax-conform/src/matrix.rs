//! One client against one broker: its program, the proxy, and a look at what it left in the log.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::cells::{Cell, Outcome};
use crate::client::Client;
use crate::log_check::{batches, check_sequences};
use crate::proxy::Proxy;
use crate::target::Target;
use crate::wire::Connection;

/// Fewer lost answers would not be a trial.
const LOST_MIN: u32 = 2;

/// Whether batches must lie in the log with the codec that the client chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codecs {
    /// They are kept.
    Kept,
    /// The broker may undo them.
    Undone,
}

/// Runs a client's cells against a broker.
///
/// # Errors
/// If its program cannot run; what a cell finds wrong is its outcome.
pub fn run(client: Client, target: &Target, codecs: Codecs, cells: &[Cell]) -> Result<BTreeMap<Cell, Outcome>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let prefix = format!("{}-{}", client.word(), unique());
    if client == Client::Kcat {
        for cell in cells {
            let partitions = if *cell == Cell::Time { 1 } else { 2 };
            runtime.block_on(create(target.address, &format!("{prefix}-{cell}"), partitions))?;
        }
    }
    let proxy = Proxy::start(target.address)?;
    let mut found = client.run(&target.address.to_string(), &proxy.address().to_string(), &prefix, cells)?;
    for (cell, outcome) in &mut found {
        if !matches!(outcome, Outcome::Pass(_)) {
            continue;
        }
        let topic = format!("{prefix}-{cell}");
        let looked = if *cell == Cell::Idempotent {
            runtime.block_on(look_at_sequences(target.address, &topic, proxy.lost()))
        } else if codecs == Codecs::Kept {
            runtime.block_on(look_at_codec(target.address, &topic, *cell))
        } else {
            Ok(())
        };
        if let Err(error) = looked {
            *outcome = Outcome::Fail(format!("the client is content, the log is not: {error:#}"));
        }
    }
    Ok(found)
}

async fn look_at_sequences(address: SocketAddr, topic: &str, lost: u32) -> Result<()> {
    ensure!(lost >= LOST_MIN, "only {lost} answers were lost");
    for partition in 0..2 {
        let found = batches(address, topic, partition).await?;
        ensure!(!found.is_empty(), "partition {partition} is empty");
        check_sequences(&found)?;
    }
    Ok(())
}

/// A client may leave small batches alone that would not shrink; one that used the codec is enough.
async fn look_at_codec(address: SocketAddr, topic: &str, cell: Cell) -> Result<()> {
    let Some(codec) = cell.codec() else { return Ok(()) };
    let found = [batches(address, topic, 0).await?, batches(address, topic, 1).await?].concat();
    ensure!(found.iter().any(|batch| batch.codec == codec), "no batch has codec {codec}: {found:?}");
    ensure!(found.iter().all(|batch| [0, codec].contains(&batch.codec)), "a batch has another codec: {found:?}");
    Ok(())
}

/// Creates a topic, for clients that cannot.
///
/// # Errors
/// If the broker refuses.
pub async fn create(address: SocketAddr, topic: &str, partitions: i32) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    let wanted = CreatableTopic::default()
        .with_name(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_num_partitions(partitions)
        .with_replication_factor(1);
    let request = CreateTopicsRequest::default().with_topics(vec![wanted]).with_timeout_ms(30_000);
    let response = connection.call(5, &request).await?;
    let error = response.topics.first().context("an answer for the topic")?.error_code;
    ensure!(error == 0, "creating {topic} was answered with {error}");
    // Apache Kafka's brokers learn of a topic a moment after its controller has answered.
    for _ in 0..12_000 {
        let metadata = kafka_protocol::messages::MetadataRequest::default().with_topics(Some(vec![
            kafka_protocol::messages::metadata_request::MetadataRequestTopic::default()
                .with_name(Some(TopicName(StrBytes::from_string(topic.to_owned())))),
        ]));
        let known = connection.call(5, &metadata.with_allow_auto_topic_creation(false)).await?;
        let led = |topic: &kafka_protocol::messages::metadata_response::MetadataResponseTopic| {
            topic.error_code == 0 && topic.partitions.iter().all(|partition| partition.leader_id >= BrokerId(0))
        };
        if known.topics.first().is_some_and(led) {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    anyhow::bail!("{topic} had no leader for two minutes")
}

/// A word that no earlier run used on the same broker.
fn unique() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}", now.as_millis())
}
