//! Snapshots of who wrote last, so that a restart reads little, and rows may go.
//!
//! Invariant: a snapshot holds durable state only; it is taken from what was published after a commit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::not_now;
use crate::fault::{Bug, planted};
use crate::log::{Logs, Partition};
use crate::model::PartitionId;
use crate::store::{Store, StoreError};

/// Bytes after which a partition gets a new snapshot.
const BYTES: u64 = 16 << 20;
/// Time after which it gets one, if anything was appended.
const AGE: Duration = Duration::from_secs(30);
/// Snapshots saved at once; a store may put them into one commit.
const AT_ONCE: usize = 64;

/// Which partitions have something to save, and since when.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    dirty: HashMap<(PartitionId, i32), Instant>,
}

impl Snapshots {
    /// Saves what is due.
    pub(super) async fn tick<S: Store>(&mut self, logs: &Logs<S>, store: &S, now: Instant) {
        let led = logs.partitions();
        let mut before = std::mem::take(&mut self.dirty);
        let mut due = Vec::new();
        for partition in led {
            let (appended, _) = partition.since_snapshot();
            if appended == 0 {
                continue;
            }
            let key = (partition.id, partition.epoch());
            let since = before.remove(&key).unwrap_or(now);
            if appended >= BYTES || now.duration_since(since) >= AGE {
                due.push(partition);
            } else {
                self.dirty.insert(key, since);
            }
        }
        save_many(store, &due).await;
    }
}

/// Saves a snapshot of everything that has changed; for a stop.
pub(crate) async fn save_all<S: Store>(logs: &Logs<S>, store: &S) {
    let changed: Vec<_> = logs.partitions().into_iter().filter(|partition| partition.since_snapshot().0 > 0).collect();
    save_many(store, &changed).await;
}

async fn save_many<S: Store>(store: &S, partitions: &[Arc<Partition>]) {
    for some in partitions.chunks(AT_ONCE) {
        for saved in join_all(some.iter().map(|partition| save(store, partition))).await {
            if let Err(error) = saved {
                not_now("saving a snapshot", &error);
            }
        }
    }
}

/// Saves who wrote last in a partition.
pub(super) async fn save<S: Store>(store: &S, partition: &Partition) -> Result<(), StoreError> {
    // Read before the snapshot is taken: what is published between the two is counted again, never left out.
    let (appended, _) = partition.since_snapshot();
    let snapshot = partition.snapshot();
    let upto = snapshot.upto;
    store.save_snapshot(partition.id, partition.epoch(), snapshot).await?;
    partition.note_snapshot(upto, appended);
    Ok(())
}

/// Makes sure that a snapshot reaches to `upto`, which is not beyond the end.
pub(super) async fn reach<S: Store>(
    store: &S,
    partition: &Partition,
    upto: crate::model::Offset,
) -> Result<(), StoreError> {
    if partition.since_snapshot().1 >= upto || planted(Bug::BrokerTrimWithoutSnapshot) {
        Ok(())
    } else {
        save(store, partition).await
    }
}
