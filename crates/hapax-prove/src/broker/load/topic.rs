//! The topic that all write to: made, removed, read to its end.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use hapax_kafka::{At, ClientError};
use kafka_protocol::error::ResponseError;

use super::{FINISH, Log, PARTITIONS, Shared, TOPIC};
use crate::broker::history::{Cleanup, Logged, Name};

/// How long a topic may be unknown to a broker that has just started.
const GONE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// Makes the topic, and waits until somebody leads it.
pub(super) async fn make(shared: &Shared) -> anyhow::Result<()> {
    let until = Instant::now() + FINISH;
    let mut client = shared.client(0, Duration::from_secs(10));
    let limit = match shared.cleanup {
        Cleanup::Bytes(limit) => limit.to_string(),
        Cleanup::Nothing | Cleanup::Compact => String::new(),
    };
    let settings = match shared.cleanup {
        Cleanup::Nothing => Vec::new(),
        Cleanup::Bytes(_) => vec![("retention.bytes", limit.as_str())],
        Cleanup::Compact => vec![("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0")],
    };
    loop {
        let made = client.create_topic(TOPIC, PARTITIONS, &settings).await;
        let there = match &made {
            Ok(()) => true,
            Err(error) => error.code() == Some(ResponseError::TopicAlreadyExists),
        };
        if there && client.offset(TOPIC, PARTITIONS - 1, At::End).await.is_ok() {
            return Ok(());
        }
        if Instant::now() > until {
            made.context("the topic could not be made")?;
            anyhow::bail!("the topic was made, and nobody led it");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Removes the topic, and waits until it is known to be gone.
pub(super) async fn delete(shared: &Shared) -> anyhow::Result<()> {
    let until = Instant::now() + FINISH;
    let mut client = shared.client(0, Duration::from_secs(10));
    loop {
        match client.delete_topic(TOPIC).await {
            Ok(()) => return Ok(()),
            Err(error) if error.code() == Some(ResponseError::UnknownTopicOrPartition) => return Ok(()),
            Err(error) if Instant::now() > until => return Err(error).context("the topic could not be removed"),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Waits until the log of partition 0 begins after this offset.
pub(super) async fn wait_start_after(shared: &Shared, offset: i64) -> anyhow::Result<()> {
    let until = Instant::now() + FINISH;
    let mut client = shared.client(0, Duration::from_secs(10));
    while !client.offset(TOPIC, 0, At::Start).await.is_ok_and(|start| start > offset) {
        anyhow::ensure!(Instant::now() < until, "the log still begins at or before {offset}");
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Where the log of partition 0 ends.
pub(super) async fn end(shared: &Shared) -> anyhow::Result<i64> {
    let until = Instant::now() + FINISH;
    let mut client = shared.client(0, Duration::from_secs(10));
    loop {
        match client.offset(TOPIC, 0, At::End).await {
            Ok(end) => return Ok(end),
            Err(error) if Instant::now() > until => return Err(error).context("nobody says where the log ends"),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Waits until most of what is between these offsets of partition 0 is gone.
pub(super) async fn wait_compacted(shared: &Shared, from: i64, upto: i64) -> anyhow::Result<()> {
    let until = Instant::now() + FINISH;
    anyhow::ensure!(upto > from, "nothing was written from {from} on");
    loop {
        let left = match read_partition(shared, 0).await {
            Ok((_, records)) => records.iter().filter(|record| (from..upto).contains(&record.offset)).count(),
            Err(error) if Instant::now() > until => return Err(error).context("the log could not be read"),
            Err(_) => usize::MAX,
        };
        if left < usize::try_from(upto - from)? / 2 {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < until, "{left} records of {from} to {upto} are left: nothing compacts them");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads all of it.
pub(super) async fn read(shared: &Shared) -> anyhow::Result<Log> {
    let mut log = Log::new();
    for partition in 0..PARTITIONS {
        let (soon, until) = (Instant::now() + GONE, Instant::now() + FINISH);
        let records = loop {
            match read_partition(shared, partition).await {
                Ok(records) => break records,
                // The topic itself is gone, and all that was in it.
                Err(error) if error.code() == Some(ResponseError::UnknownTopicOrPartition) && Instant::now() > soon => {
                    break (0, Vec::new());
                }
                // It began later meanwhile.
                Err(error) if error.code() == Some(ResponseError::OffsetOutOfRange) && Instant::now() < until => {}
                Err(error) if !error.is_retriable() || Instant::now() > until => {
                    return Err(error).context("the log could not be read at the end");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        log.insert(partition, records);
    }
    Ok(log)
}

async fn read_partition(shared: &Shared, partition: i32) -> Result<(i64, Vec<Logged>), ClientError> {
    let mut client = shared.client(0, Duration::from_secs(10));
    let end = client.offset(TOPIC, partition, At::End).await?;
    let start = client.offset(TOPIC, partition, At::Start).await?;
    let (mut records, mut next) = (Vec::new(), start);
    while next < end {
        let fetched = client.fetch((TOPIC, partition), next, Duration::from_secs(5), 4 << 20).await?;
        let before = next;
        for batch in fetched.batches {
            let leader_epoch = batch.leader_epoch;
            let logged = |record: hapax_kafka::records::FetchedRecord| Logged {
                offset: record.offset,
                name: record.value.as_deref().and_then(Name::read),
                leader_epoch,
                bytes: record.value.as_ref().map_or(0, |value| u32::try_from(value.len()).unwrap_or(u32::MAX)),
            };
            let fresh = batch.records.into_iter().filter(|record| record.offset >= before.max(next));
            records.extend(fresh.map(logged));
            next = next.max(batch.last_offset + 1);
        }
        if next == before {
            let reason = format!("nothing at {next}, and the end is {end}");
            return Err(ClientError::Malformed { address: format!("{TOPIC}-{partition}"), reason });
        }
    }
    Ok((start, records))
}
