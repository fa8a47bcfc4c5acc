//! OffsetDelete: offsets of topics that nobody in the group reads any more.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::offset_delete_request::OffsetDeleteRequestTopic;
use kafka_protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

use super::group_fields::{check_name, code};
use super::{Call, Close};
use crate::broker::Broker;
use crate::group::TopicOffsets;
use crate::store::Store;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: OffsetDeleteRequest,
) -> Result<OffsetDeleteResponse, Close> {
    Ok(match delete(broker, &request).await {
        Ok(topics) => OffsetDeleteResponse::default().with_topics(topics),
        Err(error) => OffsetDeleteResponse::default().with_error_code(error.code()),
    })
}

async fn delete<S: Store>(
    broker: &Broker<S>,
    request: &OffsetDeleteRequest,
) -> Result<Vec<OffsetDeleteResponseTopic>, ResponseError> {
    check_name(&request.group_id)?;
    broker.coordinates()?;
    let mut known = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let found = broker.catalog.topic(&topic.name).await;
        known.push(found.map_err(|_| ResponseError::CoordinatorLoadInProgress)?);
    }
    let targets = request.topics.iter().zip(&known).map(|(topic, known)| {
        let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
        TopicOffsets {
            topic: known.as_ref().map(|known| known.id),
            partitions: known.as_ref().map_or(0, |known| known.partitions.len()),
            name: topic.name.to_string(),
            indexes: indexes.collect(),
        }
    });
    let targets: Vec<TopicOffsets> = targets.collect();
    let answers = broker.groups.delete_offsets(&request.group_id, &targets).await?;
    let answered = request.topics.iter().zip(answers);
    Ok(answered.map(|(topic, answers)| answer(topic, &answers)).collect())
}

fn answer(topic: &OffsetDeleteRequestTopic, answers: &[Result<(), ResponseError>]) -> OffsetDeleteResponseTopic {
    let partitions = topic.partitions.iter().zip(answers).map(|(partition, answer)| {
        let answered = OffsetDeleteResponsePartition::default().with_partition_index(partition.partition_index);
        answered.with_error_code(code(answer))
    });
    OffsetDeleteResponseTopic::default().with_name(topic.name.clone()).with_partitions(partitions.collect())
}
