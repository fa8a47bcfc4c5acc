//! What a broker does while it leads, as leadership sees it.

use std::collections::HashMap;
use std::future::Future;

use crate::model::{Offset, PartitionId};
use crate::store::{GroupsLed, LedPartition, StoreError};

/// What is begun by taking over and ended by giving up.
pub(crate) trait Duties: Send + Sync {
    /// The partitions that are served now, with the epoch of each. One whose state is in doubt is not served.
    fn served(&self) -> HashMap<PartitionId, i32>;

    /// The end that was last acknowledged by this process, also of a partition that is served no more.
    fn acknowledged(&self, partition: PartitionId) -> Option<Offset>;

    /// Begins to serve partitions, new ones and those that were served before: everything is loaded from the store.
    fn take_over(&self, led: Vec<LedPartition>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Whether groups are served now.
    fn coordinates(&self) -> bool;

    /// Begins to serve groups.
    fn take_over_groups(&self, led: GroupsLed) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Serves nothing more, after the commit that runs.
    fn give_up(&self) -> impl Future<Output = ()> + Send;

    /// Ends with partitions that are no more.
    fn forget(&self, partitions: &[PartitionId]) -> impl Future<Output = ()> + Send;

    /// Looks at what other brokers have changed.
    fn refresh(&self) -> impl Future<Output = Result<(), StoreError>> + Send;
}
