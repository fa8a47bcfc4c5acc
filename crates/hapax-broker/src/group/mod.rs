//! The coordinator of groups: members in memory, timers, what is saved before it is answered.

use std::sync::Arc;

use crate::config::BrokerConfig;
use crate::store::Store;

/// All groups of a broker.
pub struct Coordinator<S> {
    store: Arc<S>,
    config: BrokerConfig,
}

impl<S: Store> Coordinator<S> {
    pub(crate) fn new(store: Arc<S>, config: BrokerConfig) -> Self {
        Self { store, config }
    }
}
