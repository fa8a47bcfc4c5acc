//! Who leads: our lease, the other brokers, taking over and giving up.

use std::sync::Arc;

use crate::store::Store;

/// What a broker knows of leadership.
pub struct Leadership<S> {
    store: Arc<S>,
}

impl<S: Store> Leadership<S> {
    pub(crate) fn new(store: Arc<S>) -> Self {
        Self { store }
    }
}
