//! Where partitions are, as Metadata and DescribeTopicPartitions tell it.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::broker::Broker;
use crate::model::{PartitionId, Topic};
use crate::store::Store;

/// Kafka's bits of everything that may be done with a topic, and with a cluster.
pub(crate) const TOPIC_OPERATIONS: i32 = 0b1101_1111_1000;
pub(crate) const CLUSTER_OPERATIONS: i32 = 0b1_1111_1010_0000;
/// "Was not asked."
pub(crate) const NOT_ASKED: i32 = i32::MIN;

/// Where one partition is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) error: i16,
    pub(crate) leader: BrokerId,
    pub(crate) epoch: i32,
    /// The leader alone: the store keeps the log, brokers do not copy it from each other.
    pub(crate) replicas: Vec<BrokerId>,
}

impl Place {
    fn none() -> Self {
        let error = ResponseError::LeaderNotAvailable.code();
        Self { error, leader: BrokerId(-1), epoch: -1, replicas: Vec::new() }
    }
}

/// Leads what is not led yet of a topic (another broker may have made it), so that an answer can name a leader.
pub(crate) async fn settle<S: Store>(broker: &Arc<Broker<S>>, topic: &Topic) {
    if let Err(error) = broker.lead_partitions(&topic.partitions).await {
        tracing::warn!(topic = %topic.name, %error, "a topic could not be led yet");
    }
}

/// Where a partition is.
pub(crate) fn place<S: Store>(broker: &Broker<S>, partition: PartitionId) -> Place {
    let Some(leader) = broker.lead.leader() else { return Place::none() };
    let id = BrokerId(leader.id.0);
    let at = |epoch| Place { error: 0, leader: id, epoch, replicas: vec![id] };
    if !broker.lead.leads() {
        return at(-1);
    }
    match broker.logs.partition(partition) {
        Some(led) => at(led.epoch()),
        None => Place::none(),
    }
}

/// The number of the broker that changes topics, or -1.
pub(crate) fn controller<S: Store>(broker: &Broker<S>) -> BrokerId {
    BrokerId(broker.lead.leader().map_or(-1, |leader| leader.id.0))
}

/// A name as answers carry it.
pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
