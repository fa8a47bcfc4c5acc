//! Finding what a request names: topics, the partitions of them that we lead, and who leads the others.

use std::collections::HashMap;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use uuid::Uuid;

use crate::broker::Broker;
use crate::log::Partition;
use crate::model::{LiveBroker, PartitionId, Topic};
use crate::store::{Store, StoreError};

/// A topic by its name.
pub(crate) async fn topic_named<S: Store>(broker: &Broker<S>, name: &str) -> Result<Arc<Topic>, ResponseError> {
    match broker.catalog.topic(name).await {
        Ok(Some(topic)) => Ok(topic),
        Ok(None) => Err(ResponseError::UnknownTopicOrPartition),
        Err(error) => Err(read_code(&error)),
    }
}

/// A topic by its uuid. One that is not known here may have been made by another broker a moment ago.
pub(crate) async fn topic_of<S: Store>(broker: &Broker<S>, uuid: Uuid) -> Result<Arc<Topic>, ResponseError> {
    if let Some(topic) = broker.catalog.by_uuid(uuid) {
        return Ok(topic);
    }
    broker.catalog.refresh().await.map_err(|error| read_code(&error))?;
    broker.catalog.by_uuid(uuid).ok_or(ResponseError::UnknownTopicId)
}

/// The number of a topic's partition.
pub(crate) fn numbered(topic: &Topic, index: i32) -> Result<PartitionId, ResponseError> {
    let found = usize::try_from(index).ok().and_then(|index| topic.partitions.get(index));
    found.copied().ok_or(ResponseError::UnknownTopicOrPartition)
}

/// A partition that we lead, and of which an answer may be given from memory.
pub(crate) fn led<S: Store>(broker: &Broker<S>, id: PartitionId) -> Result<Arc<Partition>, ResponseError> {
    let partition = broker.logs.partition(id).filter(|partition| partition.is_led() && broker.lead.fresh());
    partition.ok_or(ResponseError::NotLeaderOrFollower)
}

/// Compares the leader epoch that a client knows with ours; -1: it knows none.
pub(crate) fn check_epoch(partition: &Partition, known: i32) -> Result<(), ResponseError> {
    match known {
        -1 => Ok(()),
        old if old < partition.epoch() => Err(ResponseError::FencedLeaderEpoch),
        new if new > partition.epoch() => Err(ResponseError::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}

/// The code for a read that the store did not do.
pub(crate) fn read_code(error: &StoreError) -> ResponseError {
    match error {
        StoreError::Fenced | StoreError::Conflict | StoreError::InDoubt(_) | StoreError::Away(_) => {
            ResponseError::NotLeaderOrFollower
        }
        StoreError::Full(_) | StoreError::Broken(_) | StoreError::Damaged(_) => {
            tracing::error!(%error, "a read failed");
            ResponseError::KafkaStorageError
        }
    }
}

/// Who leads what we do not: read once per request, when the first such partition is met.
#[derive(Default)]
pub(crate) struct Hints {
    leaders: Option<HashMap<PartitionId, (LiveBroker, i32)>>,
}

impl Hints {
    /// Who leads a partition, and under which epoch, if it is known.
    pub(crate) async fn leader<S: Store>(&mut self, broker: &Broker<S>, id: PartitionId) -> Option<(LiveBroker, i32)> {
        if self.leaders.is_none() {
            let live = broker.lead.brokers();
            let known = |(id, leader, epoch): (PartitionId, Option<crate::model::BrokerId>, i32)| {
                let leader = live.iter().find(|live| Some(live.id) == leader)?;
                Some((id, (leader.clone(), epoch)))
            };
            let all = broker.store.leaders().await.unwrap_or_default();
            self.leaders = Some(all.into_iter().filter_map(known).collect());
        }
        self.leaders.as_ref()?.get(&id).cloned()
    }
}
