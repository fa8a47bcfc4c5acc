//! OffsetCommit.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};

use super::group_fields::{code, identity};
use super::{Call, Close};
use crate::broker::Broker;
use crate::group::Committer;
use crate::model::Topic;
use crate::store::{CommittedOffset, Store};

/// From this version on clients know that a group may not exist.
const KNOWS_NO_GROUP: i16 = 9;

/// Characters that a client may add to an offset.
const METADATA_MAX: usize = 4096;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: OffsetCommitRequest,
) -> Result<OffsetCommitResponse, Close> {
    let committer = Committer {
        identity: identity(&request.member_id, request.group_instance_id.as_ref()),
        generation: request.generation_id_or_member_epoch,
        unknown_group: match call.version {
            KNOWS_NO_GROUP.. => ResponseError::GroupIdNotFound,
            _ => ResponseError::IllegalGeneration,
        },
    };
    let mut offsets = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let checks = check(broker, &topic, &mut offsets).await;
        topics.push((topic, checks));
    }
    let committed = match broker.coordinates() {
        Ok(()) if offsets.is_empty() => Ok(()),
        Ok(()) => broker.groups.commit(&request.group_id, &committer, offsets).await,
        Err(error) => Err(error),
    };
    let answered = topics.into_iter().map(|(topic, checks)| answer(topic, &checks, committed));
    Ok(OffsetCommitResponse::default().with_topics(answered.collect()))
}

/// One check per partition; what passes is added to `offsets`.
async fn check<S: Store>(
    broker: &Broker<S>,
    topic: &OffsetCommitRequestTopic,
    offsets: &mut Vec<CommittedOffset>,
) -> Vec<Result<(), ResponseError>> {
    let known = match broker.coordinates() {
        Ok(()) => broker.catalog.topic(&topic.name).await,
        Err(error) => return vec![Err(error); topic.partitions.len()],
    };
    let partitions = topic.partitions.iter();
    match known {
        Ok(Some(known)) => partitions.map(|partition| check_partition(&known, partition, offsets)).collect(),
        Ok(None) => partitions.map(|_| Err(ResponseError::UnknownTopicOrPartition)).collect(),
        Err(_) => partitions.map(|_| Err(ResponseError::CoordinatorLoadInProgress)).collect(),
    }
}

fn check_partition(
    topic: &Topic,
    partition: &OffsetCommitRequestPartition,
    offsets: &mut Vec<CommittedOffset>,
) -> Result<(), ResponseError> {
    let exists = usize::try_from(partition.partition_index).is_ok_and(|index| index < topic.partitions.len());
    if !exists {
        return Err(ResponseError::UnknownTopicOrPartition);
    }
    let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
    if metadata.chars().count() > METADATA_MAX {
        return Err(ResponseError::OffsetMetadataTooLarge);
    }
    offsets.push(CommittedOffset {
        topic: topic.id,
        index: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: metadata.to_owned(),
        // The writer knows the time.
        committed: 0,
    });
    Ok(())
}

fn answer(
    topic: OffsetCommitRequestTopic,
    checks: &[Result<(), ResponseError>],
    committed: Result<(), ResponseError>,
) -> OffsetCommitResponseTopic {
    let partitions = topic.partitions.iter().zip(checks).map(|(partition, check)| {
        let answered = OffsetCommitResponsePartition::default().with_partition_index(partition.partition_index);
        answered.with_error_code(code(&check.and(committed)))
    });
    OffsetCommitResponseTopic::default().with_partitions(partitions.collect()).with_name(topic.name)
}
