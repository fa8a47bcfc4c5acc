//! Who leads: our lease, the other brokers, taking over and giving up.
//!
//! Reads: the brokers that live, who leads what. Writes: our lease; epochs, by leading. Invariant: correctness never rests
//! on a clock; leases only decide when to try, the epoch in every write decides who wins.
//! Not here: what is served (`log`, `group`), how epochs are kept (`store`).

mod duties;
mod error;
mod keep;
mod lease;
mod placement;
mod reconcile;

#[cfg(test)]
#[cfg(feature = "postgres")]
mod process_tests;
#[cfg(test)]
#[cfg(feature = "postgres")]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard, Notify, watch};

use crate::metrics::Metrics;
use crate::model::LiveBroker;
use crate::store::Store;
pub(crate) use duties::Duties;
pub use error::LeadError;
use lease::Lease;

/// A transaction that is open for longer makes every update slower, and is worth a word.
const OLD_TRANSACTION: Duration = Duration::from_secs(600);

/// What a broker knows of leadership.
pub struct Leadership<S> {
    store: Arc<S>,
    lease: Lease,
    live: RwLock<Vec<LiveBroker>>,
    /// Look at once, not only at the next tick.
    nudge: Notify,
    /// Held while partitions are led and loaded: two at once would outlaw each other.
    turn: Mutex<()>,
    /// Whatever is served must be led anew.
    doubted: AtomicBool,
    looks: AtomicU64,
    /// Why this broker cannot go on.
    failure: watch::Sender<Option<LeadError>>,
    lost_records: AtomicU64,
    metrics: Arc<Metrics>,
}

impl<S: Store> Leadership<S> {
    pub(crate) fn new(store: Arc<S>, metrics: Arc<Metrics>) -> Self {
        let lease = Lease::new(store.lease());
        Self {
            store,
            lease,
            live: RwLock::default(),
            nudge: Notify::new(),
            turn: Mutex::new(()),
            doubted: AtomicBool::new(false),
            looks: AtomicU64::new(0),
            failure: watch::Sender::new(None),
            lost_records: AtomicU64::new(0),
            metrics,
        }
    }

    /// Whether an answer from memory may be given: nobody else can have led meanwhile.
    pub fn fresh(&self) -> bool {
        self.lease.holds_at(Instant::now()) && self.store.attached()
    }

    /// Whether this broker leads everything.
    pub fn leads(&self) -> bool {
        self.fresh() && placement::leads(&self.read(), self.store.me())
    }

    /// Who leads everything, as far as is known here.
    pub fn leader(&self) -> Option<LiveBroker> {
        placement::leader(&self.read()).cloned()
    }

    /// Who lives, as far as is known here, by number.
    pub fn brokers(&self) -> Vec<LiveBroker> {
        self.read().clone()
    }

    /// Looks at once whether everything that should be served is: to be called by whoever stopped serving something
    /// because its state was in doubt or refused.
    pub fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// To be held while partitions are led and taken over outside of the regular look.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// This broker cannot go on: everything ends.
    pub fn fail(&self, error: LeadError) {
        self.failure.send_if_modified(|failure| {
            let first = failure.is_none();
            failure.get_or_insert(error);
            first
        });
        self.nudge();
    }

    /// Waits until this broker cannot go on, and tells why.
    pub async fn failed(&self) -> LeadError {
        let mut failure = self.failure.subscribe();
        match failure.wait_for(Option::is_some).await.map(|failure| failure.clone()) {
            Ok(Some(error)) => error,
            // The sender is ours and outlives this.
            _ => std::future::pending().await,
        }
    }

    /// Records that this process had acknowledged and that the database no longer has.
    pub fn lost_records(&self) -> u64 {
        self.lost_records.load(Ordering::Relaxed)
    }

    fn know(&self, live: Vec<LiveBroker>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = live;
    }

    /// Leads without a store's word, for tests of what follows from it.
    #[cfg(test)]
    pub(crate) fn note(&self, live: Vec<LiveBroker>) {
        self.lease.renewed(Instant::now());
        self.know(live);
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<LiveBroker>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner)
    }
}
