//! DeleteRecords 0–2: the log of a partition begins later.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsRequest};
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use crate::api::place::{led, numbered, read_code, topic_named};
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::fault::{Bug, planted};
use crate::model::{Offset, Topic};
use crate::store::Store;

/// "Up to the end."
const END: Offset = -1;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: DeleteRecordsRequest,
) -> Result<DeleteRecordsResponse, Close> {
    let mut response = DeleteRecordsResponse::default();
    for topic in request.topics {
        let found = topic_named(broker, &topic.name).await;
        let mut answers = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let outcome = match &found {
                Ok(found) => delete(broker, found, asked).await,
                Err(code) => Err(*code),
            };
            let answer = DeleteRecordsPartitionResult::default().with_partition_index(asked.partition_index);
            answers.push(match outcome {
                Ok(log_start) => answer.with_low_watermark(log_start),
                Err(code) => answer.with_low_watermark(-1).with_error_code(code.code()),
            });
        }
        response.topics.push(DeleteRecordsTopicResult::default().with_name(topic.name).with_partitions(answers));
    }
    Ok(response)
}

async fn delete<S: Store>(
    broker: &Broker<S>,
    topic: &Arc<Topic>,
    asked: &DeleteRecordsPartition,
) -> Result<Offset, ResponseError> {
    let partition = led(broker, numbered(topic, asked.partition_index)?)?;
    if !broker.logs.settings(topic).cleanup.deletes() {
        return Err(ResponseError::PolicyViolation);
    }
    let log_start = if asked.offset == END { partition.end() } else { asked.offset };
    if log_start < 0 || log_start > partition.end() {
        return Err(ResponseError::OffsetOutOfRange);
    }
    if log_start > partition.log_start() {
        if !planted(Bug::BrokerStartInMemory) {
            let stored = broker.store.advance_log_start(partition.id, partition.epoch(), log_start).await;
            stored.map_err(|error| read_code(&error))?;
        }
        partition.advance_log_start(log_start);
    }
    Ok(partition.log_start())
}
