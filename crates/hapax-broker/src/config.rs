//! What a broker and a topic can be told.

mod settings;
mod topic;

use std::sync::Arc;
use std::time::Duration;

use crate::metrics::Metrics;

pub use settings::{Kind, SETTINGS, Setting};
pub use topic::{Cleanup, Compression, ConfigError, TimestampType, TopicConfig, TopicSettings};

/// How long a client may say nothing, or read nothing.
const IDLE: Duration = Duration::from_secs(600);
/// How long a client may read nothing while others wait for the memory of its answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// What a broker is told, with the defaults of Kafka where Kafka has one.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// The largest request frame.
    pub max_frame: usize,
    /// The largest frame that is not Produce.
    pub max_small_frame: usize,
    /// Connections in all.
    pub max_connections: usize,
    /// Connections of one address.
    pub max_connections_per_address: usize,
    /// A connection that says nothing for so long is closed.
    pub idle: Duration,
    /// A frame that has begun must be whole after so long.
    pub frame_deadline: Duration,
    /// Requests of one connection in work at once.
    pub requests_in_work: usize,
    /// Bytes that wait for the appender, of all connections; more stops reading sockets.
    pub append_queue: usize,
    /// Bytes of memory for looking into compressed batches, of all connections; more waits.
    pub inflate_memory: usize,
    /// Bytes in one commit.
    pub append_group: usize,
    /// Bytes of answers to Fetch that wait for their clients to read them, of all connections; fewer records are sent where
    /// little is left.
    pub answer_memory: usize,
    /// How long an answer may stand still while others wait for its memory.
    pub answer_patience: Duration,
    /// Bytes of the newest batches kept for readers.
    pub tail_cache: usize,
    /// Make a topic when a client asks for it by Metadata.
    pub auto_create_topics: bool,
    /// Partitions of a topic of which nobody said how many.
    pub default_partitions: i32,
    /// How long the first join of an empty group waits for others.
    pub initial_rebalance_delay: Duration,
    /// Offsets of an empty group are kept for so long.
    pub offsets_retention: Duration,
    /// A producer that wrote nothing for so long is forgotten.
    pub producer_id_expiration: Duration,
    /// How often retention looks.
    pub retention_interval: Duration,
    /// What topics get that say nothing themselves.
    pub topic_defaults: TopicConfig,
    /// Where all parts count what they do.
    pub metrics: Arc<Metrics>,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        const DAY: Duration = Duration::from_secs(24 * 3600);
        Self {
            max_frame: 100 * MIB,
            max_small_frame: 4 * MIB,
            max_connections: 10_000,
            max_connections_per_address: 10_000,
            idle: IDLE,
            frame_deadline: Duration::from_secs(30),
            requests_in_work: 32,
            append_queue: 64 * MIB,
            inflate_memory: 96 * MIB,
            append_group: 8 * MIB,
            answer_memory: 128 * MIB,
            answer_patience: ANSWER_PATIENCE,
            tail_cache: 64 * MIB,
            auto_create_topics: true,
            default_partitions: 1,
            initial_rebalance_delay: Duration::from_secs(3),
            offsets_retention: DAY * 7,
            producer_id_expiration: DAY,
            retention_interval: Duration::from_secs(30),
            topic_defaults: TopicConfig::default(),
            metrics: Arc::default(),
        }
    }
}
