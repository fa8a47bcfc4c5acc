//! What a client left in the log, read as raw batches: the codec that it used, the producer id and sequences.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use bytes::{Buf, Bytes};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{FetchRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::wire::Connection;

/// The last version of Fetch that names topics.
const FETCH: i16 = 12;
const HEAD: usize = 61;

/// A batch's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// The offset of its first record.
    pub base_offset: i64,
    /// How many records it has.
    pub count: i32,
    /// The number of its codec.
    pub codec: i16,
    /// Who produced it; −1 without idempotence.
    pub producer_id: i64,
    /// The sequence of its first record.
    pub base_sequence: i32,
}

/// All batches of a partition.
///
/// # Errors
/// If the broker answers with an error, or with bytes that are no batches.
pub async fn batches(broker: SocketAddr, topic: &str, partition: i32) -> Result<Vec<Batch>> {
    let mut connection = Connection::open(broker).await?;
    let mut found: Vec<Batch> = Vec::new();
    loop {
        let from = found.last().map_or(0, |last| last.base_offset + i64::from(last.count));
        let place = FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(from)
            .with_current_leader_epoch(-1)
            .with_partition_max_bytes(8 << 20);
        let name = TopicName(StrBytes::from_string(topic.to_owned()));
        let request = FetchRequest::default()
            .with_max_wait_ms(0)
            .with_max_bytes(8 << 20)
            .with_session_epoch(-1)
            .with_topics(vec![FetchTopic::default().with_topic(name).with_partitions(vec![place])]);
        let response = connection.call(FETCH, &request).await?;
        let answered = response.responses.first().and_then(|topic| topic.partitions.first()).context("no partition")?;
        ensure!(answered.error_code == 0, "{topic}-{partition} answers {}", answered.error_code);
        let new = heads(answered.records.clone().unwrap_or_default())?;
        if new.is_empty() {
            return Ok(found);
        }
        found.extend(new);
    }
}

fn heads(mut bytes: Bytes) -> Result<Vec<Batch>> {
    let mut found = Vec::new();
    while bytes.len() >= HEAD {
        let size = usize::try_from((&bytes[8..12]).get_i32())? + 12;
        if bytes.len() < size {
            break;
        }
        let at = |from: usize| &bytes[from..HEAD];
        found.push(Batch {
            base_offset: at(0).get_i64(),
            codec: at(21).get_i16() & 7,
            producer_id: at(43).get_i64(),
            base_sequence: at(53).get_i32(),
            count: at(57).get_i32(),
        });
        bytes.advance(size);
    }
    Ok(found)
}

/// Checks that idempotent batches follow one another without a gap.
///
/// # Errors
/// If one was produced without an id, is missing, or is there twice.
pub fn check_sequences(batches: &[Batch]) -> Result<()> {
    for (at, batch) in batches.iter().enumerate() {
        ensure!(batch.producer_id >= 0, "the batch at {} was produced without idempotence", batch.base_offset);
        let before = batches[..at].iter().rev().find(|before| before.producer_id == batch.producer_id);
        let expected = before.map_or(0, |before| before.base_sequence + before.count);
        ensure!(batch.base_sequence == expected, "{batch:?} should have sequence {expected}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(producer_id: i64, base_sequence: i32) -> Batch {
        Batch { base_offset: 0, count: 3, codec: 0, producer_id, base_sequence }
    }

    /// Goal: a lost and a doubled batch are seen. Method: good rows of two producers, a gap, a repetition, no id.
    #[test]
    fn a_gap_and_a_repetition_are_seen() {
        assert!(check_sequences(&[batch(1, 0), batch(2, 0), batch(1, 3), batch(2, 3)]).is_ok());
        assert!(check_sequences(&[batch(1, 0), batch(1, 6)]).is_err());
        assert!(check_sequences(&[batch(1, 0), batch(1, 0)]).is_err());
        assert!(check_sequences(&[batch(-1, -1)]).is_err());
    }
}
