//! One broker: what all requests share.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::config::BrokerConfig;
use crate::group::Coordinator;
use crate::lead::Leadership;
use crate::log::Logs;
use crate::store::Store;

/// One broker: its store, what it leads, the groups it coordinates.
pub struct Broker<S> {
    /// What is durable.
    pub store: Arc<S>,
    /// What it was told.
    pub config: BrokerConfig,
    /// Topics.
    pub catalog: Catalog<S>,
    /// Who leads.
    pub lead: Leadership<S>,
    /// The partitions it leads.
    pub logs: Logs<S>,
    /// Groups.
    pub groups: Coordinator<S>,
}

impl<S: Store> Broker<S> {
    /// Puts a broker together. It serves nothing before it leads.
    pub fn new(store: Arc<S>, config: BrokerConfig) -> Arc<Self> {
        let catalog = Catalog::new(Arc::clone(&store));
        let lead = Leadership::new(Arc::clone(&store));
        let logs = Logs::new(Arc::clone(&store), config.clone());
        let groups = Coordinator::new(Arc::clone(&store), config.clone());
        Arc::new(Self { store, config, catalog, lead, logs, groups })
    }
}
