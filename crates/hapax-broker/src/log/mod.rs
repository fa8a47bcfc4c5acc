//! What the leader keeps in memory of its partitions: ends, producers, the tail; the appender; waiting readers.

use std::sync::Arc;

use crate::config::BrokerConfig;
use crate::store::Store;

/// All partitions of a broker.
pub struct Logs<S> {
    store: Arc<S>,
    config: BrokerConfig,
}

impl<S: Store> Logs<S> {
    pub(crate) fn new(store: Arc<S>, config: BrokerConfig) -> Self {
        Self { store, config }
    }
}
