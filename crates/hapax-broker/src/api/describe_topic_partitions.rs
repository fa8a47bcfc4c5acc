//! DescribeTopicPartitions: Metadata in pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};

use crate::api::leaders::{TOPIC_OPERATIONS, place, settle, topic_name};
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::catalog::check_name;
use crate::model::Topic;
use crate::store::Store;

/// Partitions in one answer, whatever is asked; Kafka's default.
const MAX_PARTITIONS: usize = 2_000;

/// Tells where partitions are, from the cursor on, as many as fit.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: DescribeTopicPartitionsRequest,
) -> Result<DescribeTopicPartitionsResponse, Close> {
    let mut names: BTreeSet<String> = request.topics.iter().map(|topic| topic.name.to_string()).collect();
    let asked_for_all = names.is_empty();
    if asked_for_all {
        names = broker.catalog.all().iter().map(|topic| topic.name.to_string()).collect();
    }
    let mut start = 0;
    if let Some(cursor) = &request.cursor {
        start = usize::try_from(cursor.partition_index).unwrap_or(0);
        let first = cursor.topic_name.to_string();
        names.retain(|name| *name >= first);
        if names.first() != Some(&first) {
            start = 0; // the topic is gone: go on with the next
        }
    }
    let mut left = usize::try_from(request.response_partition_limit).unwrap_or(0).clamp(1, MAX_PARTITIONS);
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        if left == 0 {
            let cursor = Cursor::default().with_topic_name(topic_name(&name)).with_partition_index(0);
            response.next_cursor = Some(cursor);
            break;
        }
        match broker.catalog.topic(&name).await {
            Ok(Some(topic)) => {
                settle(broker, &topic).await;
                let (shown, next) = page(broker, &topic, start, left);
                left -= shown.partitions.len();
                response.topics.push(shown);
                if let Some(index) = next {
                    let cursor = Cursor::default().with_topic_name(topic_name(&name)).with_partition_index(index);
                    response.next_cursor = Some(cursor);
                    break;
                }
            }
            Ok(None) if asked_for_all => {}
            Ok(None) if check_name(&name).is_err() => {
                response.topics.push(failed(&name, ResponseError::InvalidTopicException));
            }
            Ok(None) => response.topics.push(failed(&name, ResponseError::UnknownTopicOrPartition)),
            Err(_) => response.topics.push(failed(&name, ResponseError::LeaderNotAvailable)),
        }
        start = 0;
    }
    Ok(response)
}

/// A topic from partition `start` on, at most `count` of them, and the first partition that is left.
fn page<S: Store>(
    broker: &Broker<S>,
    topic: &Topic,
    start: usize,
    count: usize,
) -> (DescribeTopicPartitionsResponseTopic, Option<i32>) {
    let mut rest = (0..).zip(topic.partitions.iter().copied()).skip(start);
    let partitions = rest
        .by_ref()
        .take(count)
        .map(|(index, id)| {
            let place = place(broker, id);
            DescribeTopicPartitionsResponsePartition::default()
                .with_error_code(place.error)
                .with_partition_index(index)
                .with_leader_id(place.leader)
                .with_leader_epoch(place.epoch)
                .with_isr_nodes(place.replicas.clone())
                .with_replica_nodes(place.replicas)
                .with_eligible_leader_replicas(Some(Vec::new()))
                .with_last_known_elr(Some(Vec::new()))
        })
        .collect();
    let shown = DescribeTopicPartitionsResponseTopic::default()
        .with_name(Some(topic_name(&topic.name)))
        .with_topic_id(topic.uuid)
        .with_topic_authorized_operations(TOPIC_OPERATIONS)
        .with_partitions(partitions);
    (shown, rest.next().map(|(index, _)| index))
}

fn failed(name: &str, error: ResponseError) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic::default()
        .with_error_code(error.code())
        .with_name(Some(topic_name(name)))
        .with_topic_authorized_operations(TOPIC_OPERATIONS)
}
