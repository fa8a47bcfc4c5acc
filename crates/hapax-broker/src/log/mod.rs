//! What the leader keeps in memory of its partitions: ends, producers, the tail; the appender; waiting readers.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::config::BrokerConfig;
use crate::model::PartitionId;
use crate::store::{LedPartition, Store, StoreError};

/// All partitions of a broker.
pub struct Logs<S> {
    store: Arc<S>,
    config: BrokerConfig,
    led: RwLock<HashMap<PartitionId, Arc<Partition>>>,
}

/// A partition that we lead.
pub struct Partition {
    led: LedPartition,
}

impl Partition {
    /// Under which epoch.
    pub fn epoch(&self) -> i32 {
        self.led.epoch
    }
}

impl<S: Store> Logs<S> {
    pub(crate) fn new(store: Arc<S>, config: BrokerConfig) -> Self {
        Self { store, config, led: RwLock::default() }
    }

    /// A partition that we lead.
    pub fn partition(&self, id: PartitionId) -> Option<Arc<Partition>> {
        self.led.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Begins with partitions that we lead from now on.
    pub(crate) async fn take_over(&self, led: Vec<LedPartition>) -> Result<(), StoreError> {
        let mut all = self.led.write().unwrap_or_else(PoisonError::into_inner);
        all.extend(led.into_iter().map(|led| (led.partition, Arc::new(Partition { led }))));
        Ok(())
    }

    /// Ends with partitions that are gone.
    pub(crate) async fn forget(&self, partitions: &[PartitionId]) {
        self.led.write().unwrap_or_else(PoisonError::into_inner).retain(|id, _| !partitions.contains(id));
    }
}
