//! The names and numbers that all parts of the broker share.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::config::TopicConfig;

/// The store's number of a topic; never given out twice, so that a topic made anew under an old name inherits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub i32);

/// The store's number of a partition; never given out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub i32);

/// The number by which clients know a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub i32);

impl fmt::Display for BrokerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A topic as the store knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Topic {
    /// The store's number.
    pub id: TopicId,
    /// What newer clients call it by.
    pub uuid: Uuid,
    /// Its name.
    pub name: Arc<str>,
    /// Its partitions, by index.
    pub partitions: Vec<PartitionId>,
    /// What was said of it; everything else is the broker's default.
    pub config: TopicConfig,
}

/// A broker that shares the store with us, or we ourselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveBroker {
    /// Its number.
    pub id: BrokerId,
    /// The host that clients connect to.
    pub host: String,
    /// The port that clients connect to.
    pub port: u16,
}

/// Milliseconds since 1970, as Kafka counts time; -1 is "none".
pub type Timestamp = i64;

/// A position in a partition.
pub type Offset = i64;
