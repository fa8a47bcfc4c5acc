//! What the leader keeps in memory of its partitions: ends, producers, the tail; the appender; waiting readers.
//!
//! Reads: the store, when a partition is taken over, and for what the tail no longer holds. Writes: rows, by the appender
//! alone, one commit at a time. Invariant: memory is durable state plus the group that is being written; the group is
//! thrown away whole if its commit fails. Not here: when to lead (`lead`), what requests mean (`api`).

mod append;
mod appender;
mod cache;
mod commit;
mod load;
mod partition;
mod producer_ids;
mod read;
mod seek;
mod settings;
mod waiter;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{Semaphore, mpsc, watch};

pub use append::{AppendError, Held, NewBatch, Pending, Room, Time, Written};
pub use partition::Partition;
pub use seek::Found;
pub(crate) use waiter::Waiter;

use crate::config::BrokerConfig;
use crate::model::{Offset, PartitionId, Timestamp};
use crate::store::{LedPartition, Store, StoreError};
use append::Work;
use cache::TailCache;
use producer_ids::ProducerIds;
use settings::KnownSettings;

/// All partitions of a broker.
pub struct Logs<S> {
    shared: Arc<Shared<S>>,
    queue: mpsc::UnboundedSender<Work>,
    /// What the appender reads; gone when it runs.
    waiting: Mutex<Option<mpsc::UnboundedReceiver<Work>>>,
    room: Arc<Semaphore>,
    /// Kilobytes for looking into compressed batches.
    memory: Arc<Semaphore>,
}

/// What the appender shares with the rest.
struct Shared<S> {
    store: Arc<S>,
    config: BrokerConfig,
    led: RwLock<HashMap<PartitionId, Arc<Partition>>>,
    cache: TailCache,
    settings: KnownSettings,
    producer_ids: ProducerIds,
    trouble: watch::Sender<Trouble>,
    /// Held while a commit is under way.
    committing: tokio::sync::Mutex<()>,
    /// How far each partition was when we last led it: a store that has less has lost what was acknowledged.
    ends: Mutex<HashMap<PartitionId, Offset>>,
}

/// What the appender met that others must act on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Raised whenever partitions were lost: lead again what should be led.
    pub lost: u64,
    /// Nothing more can be written before the store was opened anew: stop the process.
    pub stop: Option<String>,
}

impl<S: Store> Logs<S> {
    pub(crate) fn new(store: Arc<S>, config: BrokerConfig) -> Self {
        let (queue, waiting) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(config.append_queue));
        let memory = Arc::new(Semaphore::new(config.inflate_memory.div_ceil(1024)));
        let shared = Shared {
            store,
            led: RwLock::default(),
            cache: TailCache::new(config.tail_cache),
            settings: KnownSettings::default(),
            producer_ids: ProducerIds::default(),
            trouble: watch::Sender::new(Trouble::default()),
            committing: tokio::sync::Mutex::new(()),
            ends: Mutex::default(),
            config,
        };
        Self { shared: Arc::new(shared), queue, waiting: Mutex::new(Some(waiting)), room, memory }
    }

    /// A partition that we lead.
    pub fn partition(&self, id: PartitionId) -> Option<Arc<Partition>> {
        read_lock(&self.shared.led).get(&id).cloned()
    }

    /// Everything that we lead, in no order.
    pub fn partitions(&self) -> Vec<Arc<Partition>> {
        read_lock(&self.shared.led).values().cloned().collect()
    }

    /// The epochs under which we lead, by partition.
    pub fn served(&self) -> HashMap<PartitionId, i32> {
        read_lock(&self.shared.led).iter().map(|(id, partition)| (*id, partition.epoch())).collect()
    }

    /// How far a partition was acknowledged by this process, led still or not.
    pub fn acknowledged(&self, id: PartitionId) -> Option<Offset> {
        let led = self.partition(id).map(|partition| partition.end());
        led.max(lock(&self.shared.ends).get(&id).copied())
    }

    /// Tells what the appender met.
    pub fn trouble(&self) -> watch::Receiver<Trouble> {
        self.shared.trouble.subscribe()
    }

    /// Begins with partitions that we lead from now on: reads who wrote last, then serves them. Starts the appender.
    pub(crate) async fn take_over(&self, led: Vec<LedPartition>) -> Result<(), StoreError> {
        let waiting = lock(&self.waiting).take();
        if let Some(waiting) = waiting {
            tokio::spawn(appender::run(Arc::clone(&self.shared), waiting));
        }
        for led in led {
            let partition = load::load(&*self.shared.store, &led).await?;
            self.shared.insert(Arc::new(partition));
        }
        crate::fault::point("broker.taken_over");
        Ok(())
    }

    /// Ends with everything that we lead, after the commit that is under way. Whoever waits is told that we do not lead.
    pub(crate) async fn give_up(&self) {
        let dropped = self.shared.drop_all();
        drop(self.shared.committing.lock().await);
        // The commit that was under way has been acknowledged meanwhile.
        dropped.iter().for_each(|partition| self.shared.note_end(partition));
    }

    /// Ends with partitions that are gone.
    pub(crate) async fn forget(&self, partitions: &[PartitionId]) {
        for id in partitions {
            self.shared.drop_one(*id, None);
            lock(&self.shared.ends).remove(id);
        }
    }
}

impl<S: Store> Shared<S> {
    fn insert(&self, partition: Arc<Partition>) {
        let mut led = self.led.write().unwrap_or_else(PoisonError::into_inner);
        // Two requests may have led the same partition: the later epoch is the one that the store accepts.
        if led.get(&partition.id).is_some_and(|known| known.epoch() > partition.epoch()) {
            return;
        }
        if let Some(old) = led.insert(partition.id, partition) {
            self.retire(&old);
        }
    }

    /// Ends with one partition, if it is led under this epoch, or under any.
    fn drop_one(&self, id: PartitionId, epoch: Option<i32>) {
        let mut led = self.led.write().unwrap_or_else(PoisonError::into_inner);
        if led.get(&id).is_some_and(|known| epoch.is_none_or(|epoch| known.epoch() == epoch))
            && let Some(old) = led.remove(&id)
        {
            self.retire(&old);
        }
    }

    fn drop_all(&self) -> Vec<Arc<Partition>> {
        let all = std::mem::take(&mut *self.led.write().unwrap_or_else(PoisonError::into_inner));
        all.values().for_each(|partition| self.retire(partition));
        all.into_values().collect()
    }

    fn retire(&self, partition: &Partition) {
        partition.retire();
        self.cache.forget(partition);
        self.note_end(partition);
    }

    fn note_end(&self, partition: &Partition) {
        let mut ends = lock(&self.ends);
        let end = ends.entry(partition.id).or_insert(0);
        *end = partition.end().max(*end);
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> Timestamp {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_lock<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[cfg(feature = "embedded")]
pub(crate) mod scripted_store;
#[cfg(test)]
#[cfg(feature = "embedded")]
#[path = "log_tests.rs"]
mod tests;
