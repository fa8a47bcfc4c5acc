//! Producer ids, taken from the store by the block.

use std::ops::Range;

use tokio::sync::Mutex;

use crate::log::Logs;
use crate::store::{Store, StoreError};

#[derive(Default)]
pub(super) struct ProducerIds {
    left: Mutex<Range<i64>>,
}

impl<S: Store> Logs<S> {
    /// An id that nobody else gets, ever. What is left of a block when the process ends is lost, and that is fine.
    pub async fn new_producer_id(&self) -> Result<i64, StoreError> {
        let mut left = self.shared.producer_ids.left.lock().await;
        loop {
            if let Some(id) = left.next() {
                return Ok(id);
            }
            *left = self.shared.store.producer_id_block().await?;
        }
    }
}
