//! Changes to topics: first durable, then led, then known.

use std::sync::Arc;

use crate::broker::Broker;
use crate::config::TopicConfig;
use crate::model::{PartitionId, Topic};
use crate::store::{NewTopic, Store, StoreError};

impl<S: Store> Broker<S> {
    /// Makes a topic and leads it at once, so that the answer can name a leader.
    pub async fn create_topic(&self, new: NewTopic) -> Result<Arc<Topic>, StoreError> {
        let topic = self.store.create_topic(new).await?;
        self.lead_partitions(&topic.partitions).await?;
        Ok(self.catalog.keep(topic))
    }

    /// Removes a topic. False: it was gone already.
    pub async fn delete_topic(&self, topic: &Topic) -> Result<bool, StoreError> {
        let deleted = self.store.delete_topic(topic.id).await?;
        self.catalog.forget(topic.id);
        self.logs.forget(&topic.partitions).await;
        Ok(deleted)
    }

    /// Adds partitions until there are `count`, and leads them at once.
    pub async fn grow_topic(&self, topic: &Topic, count: i32) -> Result<Arc<Topic>, StoreError> {
        let grown = self.store.grow_topic(topic.id, count).await?;
        self.lead_partitions(&grown.partitions).await?;
        Ok(self.catalog.keep(grown))
    }

    /// Replaces what was said of a topic, if nobody else has changed it since.
    pub async fn configure_topic(&self, topic: &Topic, config: TopicConfig) -> Result<Arc<Topic>, StoreError> {
        let configured = self.store.configure_topic(topic.id, &topic.config, config).await?;
        Ok(self.catalog.keep(configured))
    }

    /// Leads those of a topic's partitions that nobody leads yet: another broker may have made the topic.
    pub(crate) async fn lead_partitions(&self, partitions: &[PartitionId]) -> Result<(), StoreError> {
        if !self.lead.leads() || partitions.iter().all(|id| self.logs.partition(*id).is_some()) {
            return Ok(());
        }
        let _turn = self.lead.turn().await;
        let unled: Vec<_> = partitions.iter().copied().filter(|id| self.logs.partition(*id).is_none()).collect();
        if unled.is_empty() {
            return Ok(());
        }
        let led = self.store.lead(&unled).await?;
        self.logs.take_over(led).await
    }
}
