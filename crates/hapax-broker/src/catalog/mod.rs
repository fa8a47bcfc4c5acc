//! Topics as this broker knows them: by name, by number, by uuid.

use std::sync::Arc;

use crate::store::Store;

/// All topics.
pub struct Catalog<S> {
    store: Arc<S>,
}

impl<S: Store> Catalog<S> {
    pub(crate) fn new(store: Arc<S>) -> Self {
        Self { store }
    }
}
