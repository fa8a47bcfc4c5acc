//! OffsetForLeaderEpoch 2–4: where an epoch ended, so that a reader sees whether what it read is still there.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition,
};
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
};

use crate::api::place::{check_epoch, led, numbered, read_code, topic_named};
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::log::Partition;
use crate::model::Offset;
use crate::store::Store;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: OffsetForLeaderEpochRequest,
) -> Result<OffsetForLeaderEpochResponse, Close> {
    let mut response = OffsetForLeaderEpochResponse::default();
    for topic in request.topics {
        let found = topic_named(broker, &topic.topic).await;
        let mut answers = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let id = found.as_ref().map_err(|code| *code).and_then(|topic| numbered(topic, asked.partition));
            let outcome = match id.and_then(|id| led(broker, id)) {
                Ok(partition) => find(broker, &partition, asked).await,
                Err(code) => Err(code),
            };
            let answer = EpochEndOffset::default().with_partition(asked.partition);
            answers.push(match outcome {
                Ok((epoch, end)) => answer.with_leader_epoch(epoch).with_end_offset(end),
                Err(code) => answer.with_error_code(code.code()),
            });
        }
        response.topics.push(OffsetForLeaderTopicResult::default().with_topic(topic.topic).with_partitions(answers));
    }
    Ok(response)
}

async fn find<S: Store>(
    broker: &Broker<S>,
    partition: &Partition,
    asked: &OffsetForLeaderPartition,
) -> Result<(i32, Offset), ResponseError> {
    check_epoch(partition, asked.current_leader_epoch)?;
    let epochs = broker.logs.epochs(partition).await.map_err(|error| read_code(&error))?;
    Ok(end_of(epochs, asked.leader_epoch, partition.end()))
}

/// The greatest epoch up to the one asked for, and where the next one begins; the running one ends at the end. -1 and -1 if
/// nobody knows an epoch that is later.
pub(crate) fn end_of(epochs: &[(i32, Offset)], asked: i32, end: Offset) -> (i32, Offset) {
    let next = epochs.iter().position(|(epoch, _)| *epoch > asked);
    let known = next.map_or(epochs.last(), |next| next.checked_sub(1).map(|before| &epochs[before]));
    match (known, next) {
        (Some((epoch, _)), None) if *epoch == asked => (asked, end),
        (_, None) => (-1, -1),
        (known, Some(next)) => (known.map_or(asked, |(epoch, _)| *epoch), epochs[next].1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every epoch is answered as Kafka does. Method: epochs 2, 5 and 6, and all around them.
    #[test]
    fn an_epoch_ends_where_the_next_one_begins() {
        let epochs = [(2, 0), (5, 100), (6, 250)];
        let cases =
            [(0, (0, 0)), (2, (2, 100)), (3, (2, 100)), (4, (2, 100)), (5, (5, 250)), (6, (6, 300)), (7, (-1, -1))];
        for (asked, expected) in cases {
            assert_eq!(end_of(&epochs, asked, 300), expected, "epoch {asked}");
        }
        assert_eq!(end_of(&[], 3, 9), (-1, -1));
    }
}
