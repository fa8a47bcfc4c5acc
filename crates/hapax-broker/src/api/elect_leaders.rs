//! ElectLeaders: there is nothing to elect, the one leader is the preferred one.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::store::Store;

/// Says of every partition that it has its leader, or that it is not there.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: ElectLeadersRequest,
) -> Result<ElectLeadersResponse, Close> {
    let mut results = Vec::new();
    for asked in request.topic_partitions.unwrap_or_default() {
        let count = match broker.catalog.topic(&asked.topic).await {
            Ok(topic) => topic.map_or(0, |topic| topic.partitions.len()),
            Err(_) => 0,
        };
        let verdict = |index: i32| {
            let there = usize::try_from(index).is_ok_and(|index| index < count);
            let (error, message) = if there {
                (ResponseError::ElectionNotNeeded, "Leader election not needed for topic partition.")
            } else {
                (ResponseError::UnknownTopicOrPartition, "This server does not host this topic-partition.")
            };
            PartitionResult::default()
                .with_partition_id(index)
                .with_error_code(error.code())
                .with_error_message(Some(StrBytes::from_static_str(message)))
        };
        results.push(
            ReplicaElectionResult::default()
                .with_topic(asked.topic)
                .with_partition_result(asked.partitions.into_iter().map(verdict).collect()),
        );
    }
    Ok(ElectLeadersResponse::default().with_replica_election_results(results))
}
