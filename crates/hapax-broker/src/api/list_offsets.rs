//! ListOffsets 1–10: the earliest, the latest, the newest, or the first at a time.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};

use crate::api::place::{check_epoch, led, numbered, read_code, topic_named};
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::log::{Found, Partition};
use crate::model::{Offset, Timestamp};
use crate::store::Store;

const LATEST: Timestamp = -1;
const EARLIEST: Timestamp = -2;
const NEWEST: Timestamp = -3;
const EARLIEST_LOCAL: Timestamp = -4;
const LATEST_TIERED: Timestamp = -5;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: ListOffsetsRequest,
) -> Result<ListOffsetsResponse, Close> {
    let mut response = ListOffsetsResponse::default();
    for topic in request.topics {
        let found = topic_named(broker, &topic.name).await;
        let mut answers = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let id = found.as_ref().map_err(|code| *code).and_then(|topic| numbered(topic, asked.partition_index));
            let outcome = match id.and_then(|id| led(broker, id)) {
                Ok(partition) => find(broker, &partition, asked, call.version, request.isolation_level).await,
                Err(code) => Err(code),
            };
            answers.push(answer(asked.partition_index, call.version, outcome));
        }
        let topic = ListOffsetsTopicResponse::default().with_name(topic.name).with_partitions(answers);
        response.topics.push(topic);
    }
    Ok(response)
}

fn answer(index: i32, version: i16, outcome: Result<Option<Found>, ResponseError>) -> ListOffsetsPartitionResponse {
    let answer = ListOffsetsPartitionResponse::default().with_partition_index(index);
    match outcome {
        Ok(None) => answer,
        Ok(Some(found)) => {
            let leader_epoch = if version >= 4 { found.leader_epoch } else { -1 };
            answer.with_offset(found.offset).with_timestamp(found.timestamp).with_leader_epoch(leader_epoch)
        }
        Err(code) => answer.with_error_code(code.code()),
    }
}

async fn find<S: Store>(
    broker: &Broker<S>,
    partition: &Partition,
    asked: &ListOffsetsPartition,
    version: i16,
    isolation_level: i8,
) -> Result<Option<Found>, ResponseError> {
    check_epoch(partition, asked.current_leader_epoch)?;
    let at = |offset: Offset, leader_epoch| Some(Found { offset, timestamp: -1, leader_epoch });
    let last = if isolation_level == 1 { partition.last_stable() } else { partition.end() };
    let found = match asked.timestamp {
        LATEST => Ok(at(last, partition.epoch())),
        EARLIEST => earliest(broker, partition).await,
        NEWEST if version >= 7 => broker.logs.newest(partition).await.map_err(|error| read_code(&error)),
        EARLIEST_LOCAL if version >= 8 => earliest(broker, partition).await,
        LATEST_TIERED if version >= 9 => Ok(None),
        timestamp if timestamp < 0 => Err(ResponseError::UnsupportedVersion),
        timestamp => broker.logs.seek(partition, timestamp).await.map_err(|error| read_code(&error)),
    };
    // The store was asked meanwhile: an answer that another leader has overtaken is none.
    if !partition.is_led() || !broker.lead.fresh() {
        return Err(ResponseError::NotLeaderOrFollower);
    }
    found.map(|found| found.filter(|found| found.offset <= last))
}

async fn earliest<S: Store>(broker: &Broker<S>, partition: &Partition) -> Result<Option<Found>, ResponseError> {
    let offset = partition.log_start();
    let epochs = broker.logs.epochs(partition).await.map_err(|error| read_code(&error))?;
    let leader_epoch = epochs.iter().rev().find(|(_, start)| *start <= offset).map_or(-1, |(epoch, _)| *epoch);
    Ok(Some(Found { offset, timestamp: -1, leader_epoch }))
}
