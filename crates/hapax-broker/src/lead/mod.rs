//! Who leads: our lease, the other brokers, taking over and giving up.

use std::sync::{Arc, PoisonError, RwLock};

use crate::model::LiveBroker;
use crate::store::Store;

/// What a broker knows of leadership.
pub struct Leadership<S> {
    store: Arc<S>,
    live: RwLock<Vec<LiveBroker>>,
}

impl<S: Store> Leadership<S> {
    pub(crate) fn new(store: Arc<S>) -> Self {
        Self { store, live: RwLock::default() }
    }

    /// Whether this broker leads everything.
    pub fn leads(&self) -> bool {
        self.leader().is_some_and(|leader| leader.id == self.store.me())
    }

    /// Whether an answer from memory may be given: nobody else can have led meanwhile.
    pub fn fresh(&self) -> bool {
        self.leads()
    }

    /// The broker with the lowest number leads everything.
    pub fn leader(&self) -> Option<LiveBroker> {
        self.brokers().into_iter().min_by_key(|broker| broker.id)
    }

    /// Who lives.
    pub fn brokers(&self) -> Vec<LiveBroker> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg(test)]
    pub(crate) fn note(&self, live: Vec<LiveBroker>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = live;
    }
}
