//! The coordinator of groups: members in memory, timers, what is saved before it is answered.
//!
//! Reads: requests, the store when it takes over, the clock. Writes: groups and offsets, under one fence.
//! Invariant: an answer that ends a rebalance is sent only after the state behind it is durable; whoever waits when we stop
//! leading is told to look for the coordinator.
//! Not here: the rules (`rules::group`), the wire (`api`).

mod admin;
mod clock;
mod commit;
mod expire;
mod member;
mod ready;
mod term;

#[cfg(all(test, feature = "embedded", feature = "postgres"))]
mod commit_tests;
#[cfg(all(test, feature = "embedded", feature = "postgres"))]
mod coordinator_tests;
#[cfg(all(test, feature = "embedded", feature = "postgres"))]
mod rig;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use kafka_protocol::error::ResponseError;

use crate::config::BrokerConfig;
use crate::metrics::Metrics;
use crate::model::Timestamp;
use crate::rules::group::Limits;
use crate::store::{GroupsLed, Store};

pub use admin::{DescribedGroup, DescribedMember, ListedGroup, TopicOffsets};
pub use commit::Committer;
pub(crate) use member::UNNUMBERED;
use term::Term;

/// All groups of a broker.
pub struct Coordinator<S> {
    store: Arc<S>,
    limits: Limits,
    offsets_retention: std::time::Duration,
    term: RwLock<Option<Arc<Term<S>>>>,
    metrics: Arc<Metrics>,
}

impl<S: Store> Coordinator<S> {
    pub(crate) fn new(store: Arc<S>, config: BrokerConfig) -> Self {
        let limits = Limits {
            initial_delay: config.initial_rebalance_delay,
            // More members than connections there cannot be.
            members_max: config.max_connections.max(1),
            ..Limits::default()
        };
        Self::with_limits(store, &config, limits)
    }

    pub(crate) fn with_limits(store: Arc<S>, config: &BrokerConfig, limits: Limits) -> Self {
        Self {
            store,
            limits,
            offsets_retention: config.offsets_retention,
            term: RwLock::new(None),
            metrics: Arc::clone(&config.metrics),
        }
    }

    /// Begins to coordinate: members keep ids and generation, and have their full sessions anew. Whatever an older term of
    /// ours still had waiting is told to look for the coordinator. Needs a running Tokio.
    pub fn take_over(&self, led: GroupsLed) {
        let metrics = Arc::clone(&self.metrics);
        let term = Term::begin(Arc::clone(&self.store), self.limits.clone(), self.offsets_retention, led, metrics);
        let before = self.term.write().unwrap_or_else(PoisonError::into_inner).replace(term);
        if let Some(before) = before {
            before.close();
        }
    }

    /// Stops coordinating: everyone who waits is told so.
    pub fn give_up(&self) {
        let before = self.term.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(before) = before {
            before.close();
        }
    }

    /// Whether groups are coordinated here. False after the store has refused us or left us in doubt, too: then
    /// [`Groups::lead_groups`](crate::store::Groups::lead_groups) and `take_over` must follow.
    pub fn is_led(&self) -> bool {
        self.term().is_ok()
    }

    /// How many groups are in memory: those with members, and those that had some.
    pub fn known(&self) -> usize {
        self.term().map_or(0, |term| term.names().len())
    }

    fn term(&self) -> Result<Arc<Term<S>>, ResponseError> {
        let term = self.term.read().unwrap_or_else(PoisonError::into_inner).clone();
        term.filter(|term| !term.is_closed()).ok_or(ResponseError::NotCoordinator)
    }
}

impl<S> Drop for Coordinator<S> {
    fn drop(&mut self) {
        if let Some(term) = self.term.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            term.close();
        }
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
