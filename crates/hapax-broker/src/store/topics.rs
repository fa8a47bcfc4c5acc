//! Topics: their names, partitions and settings.

use std::future::Future;

use crate::config::TopicConfig;
use crate::model::{Topic, TopicId};
use crate::store::StoreError;

/// A topic to be made.
#[derive(Debug, Clone)]
pub struct NewTopic {
    /// Its name, already checked.
    pub name: String,
    /// How many partitions, at least one.
    pub partitions: i32,
    /// What was said of it.
    pub config: TopicConfig,
}

/// Topics. Names are unique, numbers and uuids are never given out twice.
pub trait Topics {
    /// All topics, by name.
    fn topics(&self) -> impl Future<Output = Result<Vec<Topic>, StoreError>> + Send;
    /// One topic as it is now, whatever others did.
    fn topic(&self, name: &str) -> impl Future<Output = Result<Option<Topic>, StoreError>> + Send;
    /// Makes a topic and its partitions (no leader, epoch 0, log start 0). [`StoreError::Conflict`] if the name is taken, or
    /// differs from another's in `.` and `_` only: Kafka's metrics could not tell the two apart.
    fn create_topic(&self, new: NewTopic) -> impl Future<Output = Result<Topic, StoreError>> + Send;
    /// Removes a topic with its rows, snapshots, epochs, sequences, and the groups' offsets in it. False: there was none.
    ///
    /// A producer that writes on by an old number is refused as fenced, whoever leads.
    fn delete_topic(&self, id: TopicId) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// Adds partitions until there are `count`. [`StoreError::Conflict`] if there are not fewer now, or no such topic.
    fn grow_topic(&self, id: TopicId, count: i32) -> impl Future<Output = Result<Topic, StoreError>> + Send;
    /// Replaces what was said of a topic. [`StoreError::Conflict`] if it is no longer `old`, or no such topic.
    fn configure_topic(
        &self,
        id: TopicId,
        old: &TopicConfig,
        new: TopicConfig,
    ) -> impl Future<Output = Result<Topic, StoreError>> + Send;
}
