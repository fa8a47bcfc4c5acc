//! OffsetFetch: what groups have committed, as the store has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{GroupId, OffsetFetchRequest, OffsetFetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::group_fields::text;
use super::{Call, Close};
use crate::broker::Broker;
use crate::model::TopicId;
use crate::store::{CommittedOffset, Store};

/// From this version on many groups are asked for at once.
const MANY: i16 = 8;

/// From this version on an error has a place of its own; before, every partition carries it.
const HAS_ERROR: i16 = 2;

/// Which partitions of which topics; `None`: all that have an offset.
type Asked = Option<Vec<(TopicName, Vec<i32>)>>;

/// An offset, or none, per partition asked for.
type Found = Vec<(TopicName, Vec<(i32, Option<CommittedOffset>)>)>;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: OffsetFetchRequest,
) -> Result<OffsetFetchResponse, Close> {
    if call.version >= MANY {
        let mut groups = Vec::with_capacity(request.groups.len());
        for group in request.groups {
            groups.push(fetch_group(broker, group).await);
        }
        return Ok(OffsetFetchResponse::default().with_groups(groups));
    }
    let topics = request.topics.map(|topics| topics.into_iter().map(|topic| (topic.name, topic.partition_indexes)));
    let asked: Asked = topics.map(Iterator::collect);
    Ok(match find(broker, &request.group_id, asked.as_deref()).await {
        Ok(found) => OffsetFetchResponse::default().with_topics(found.into_iter().map(single_topic).collect()),
        Err(error) if call.version >= HAS_ERROR => OffsetFetchResponse::default().with_error_code(error.code()),
        Err(error) => OffsetFetchResponse::default().with_topics(refused(asked.unwrap_or_default(), error)),
    })
}

async fn fetch_group<S: Store>(broker: &Broker<S>, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup {
    let topics = group.topics.map(|topics| topics.into_iter().map(|topic| (topic.name, topic.partition_indexes)));
    let asked: Asked = topics.map(Iterator::collect);
    let found = find(broker, &group.group_id, asked.as_deref()).await;
    let response = OffsetFetchResponseGroup::default().with_group_id(group.group_id);
    match found {
        Ok(found) => response.with_topics(found.into_iter().map(group_topic).collect()),
        Err(error) => response.with_error_code(error.code()),
    }
}

async fn find<S: Store>(
    broker: &Broker<S>,
    group: &GroupId,
    asked: Option<&[(TopicName, Vec<i32>)]>,
) -> Result<Found, ResponseError> {
    broker.coordinates()?;
    let offsets = broker.groups.offsets(group).await?;
    let mut by_topic: BTreeMap<TopicId, BTreeMap<i32, CommittedOffset>> = BTreeMap::new();
    for offset in offsets {
        by_topic.entry(offset.topic).or_default().insert(offset.index, offset);
    }
    match asked {
        Some(asked) => find_asked(broker, asked, &by_topic).await,
        None => Ok(find_all(broker, by_topic).await),
    }
}

async fn find_asked<S: Store>(
    broker: &Broker<S>,
    asked: &[(TopicName, Vec<i32>)],
    by_topic: &BTreeMap<TopicId, BTreeMap<i32, CommittedOffset>>,
) -> Result<Found, ResponseError> {
    let mut found = Vec::with_capacity(asked.len());
    for (name, indexes) in asked {
        let topic = broker.catalog.topic(name).await.map_err(|_| ResponseError::CoordinatorLoadInProgress)?;
        let offsets = topic.and_then(|topic| by_topic.get(&topic.id));
        let of = |index: &i32| offsets.and_then(|offsets| offsets.get(index)).cloned();
        found.push((name.clone(), indexes.iter().map(|index| (*index, of(index))).collect()));
    }
    Ok(found)
}

async fn find_all<S: Store>(broker: &Broker<S>, by_topic: BTreeMap<TopicId, BTreeMap<i32, CommittedOffset>>) -> Found {
    if by_topic.keys().any(|id| broker.catalog.by_id(*id).is_none())
        && let Err(error) = broker.catalog.refresh().await
    {
        tracing::warn!(%error, "topics could not be read anew");
    }
    // A topic that is gone takes its offsets with it.
    let named = by_topic.into_iter().filter_map(|(id, offsets)| {
        let topic = broker.catalog.by_id(id)?;
        let offsets = offsets.into_iter().map(|(index, offset)| (index, Some(offset)));
        Some((TopicName(text(&topic.name)), offsets.collect()))
    });
    named.collect()
}

fn single_topic((name, partitions): (TopicName, Vec<(i32, Option<CommittedOffset>)>)) -> OffsetFetchResponseTopic {
    let partitions = partitions.into_iter().map(|(index, offset)| {
        let (offset, epoch, metadata) = fields(offset);
        let found = OffsetFetchResponsePartition::default().with_partition_index(index).with_committed_offset(offset);
        found.with_committed_leader_epoch(epoch).with_metadata(Some(metadata))
    });
    OffsetFetchResponseTopic::default().with_name(name).with_partitions(partitions.collect())
}

fn group_topic((name, partitions): (TopicName, Vec<(i32, Option<CommittedOffset>)>)) -> OffsetFetchResponseTopics {
    let partitions = partitions.into_iter().map(|(index, offset)| {
        let (offset, epoch, metadata) = fields(offset);
        let found = OffsetFetchResponsePartitions::default().with_partition_index(index).with_committed_offset(offset);
        found.with_committed_leader_epoch(epoch).with_metadata(Some(metadata))
    });
    OffsetFetchResponseTopics::default().with_name(name).with_partitions(partitions.collect())
}

/// No offset is -1.
fn fields(offset: Option<CommittedOffset>) -> (i64, i32, StrBytes) {
    match offset {
        Some(offset) => (offset.offset, offset.leader_epoch, StrBytes::from_string(offset.metadata)),
        None => (-1, -1, StrBytes::default()),
    }
}

fn refused(asked: Vec<(TopicName, Vec<i32>)>, error: ResponseError) -> Vec<OffsetFetchResponseTopic> {
    let topics = asked.into_iter().map(|(name, indexes)| {
        let partitions = indexes.into_iter().map(|index| {
            let refused = OffsetFetchResponsePartition::default().with_partition_index(index);
            refused.with_committed_offset(-1).with_error_code(error.code())
        });
        OffsetFetchResponseTopic::default().with_name(name).with_partitions(partitions.collect())
    });
    topics.collect()
}
