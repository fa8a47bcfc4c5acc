//! One who waits for partitions to grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::log::Partition;

/// Waits for any of several partitions. A change between registering and waiting is not missed.
pub(crate) struct Waiter {
    key: u64,
    notify: Arc<Notify>,
    registered: Vec<Arc<Partition>>,
}

impl Waiter {
    /// Registers with all of them; do so before reading.
    pub(crate) fn new<'a>(partitions: impl Iterator<Item = &'a Arc<Partition>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let key = NEXT.fetch_add(1, Ordering::Relaxed);
        let notify = Arc::new(Notify::new());
        let registered: Vec<_> = partitions.cloned().collect();
        registered.iter().for_each(|partition| partition.register(key, Arc::clone(&notify)));
        Self { key, notify, registered }
    }

    /// Until one of them has grown, or is no longer led.
    pub(crate) async fn changed(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.registered.iter().for_each(|partition| partition.deregister(self.key));
    }
}
