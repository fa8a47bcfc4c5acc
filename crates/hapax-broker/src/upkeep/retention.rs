//! Retention: what is too old, or too much, goes from the front of a log.
//!
//! First a snapshot that reaches beyond it, then the log start, then the rows, a few megabytes at a time. A row is what one
//! commit appended, so a log is cut more finely than Kafka's, which goes by segments.

use std::sync::Arc;

use super::{not_now, snapshots};
use crate::broker::Broker;
use crate::config::TopicSettings;
use crate::log::Partition;
use crate::model::{Offset, Timestamp};
use crate::store::{RowInfo, Store, StoreError};

/// Bytes removed at once.
const TRIM: usize = 8 << 20;
/// Rows looked at at once.
const PAGE: usize = 512;

/// Looks at every partition that we lead.
pub(super) async fn pass<S: Store>(broker: &Broker<S>, now: Timestamp) {
    for topic in broker.catalog.all() {
        let settings = broker.logs.settings(&topic);
        for partition in topic.partitions.iter().filter_map(|id| broker.logs.partition(*id)) {
            match keep_within(&*broker.store, &partition, &settings, now).await {
                Ok(removed) => broker.config.metrics.removed_bytes.add(removed),
                Err(error) => not_now("retention", &error),
            }
        }
    }
}

/// Removes from one partition what is over its limits, and what lies below its log start. How many bytes went.
async fn keep_within<S: Store>(
    store: &S,
    partition: &Arc<Partition>,
    settings: &TopicSettings,
    now: Timestamp,
) -> Result<u64, StoreError> {
    if settings.cleanup.deletes() {
        let before = settings.retention_ms.map(|kept| now.saturating_sub(kept));
        let start = start(store, partition, before, settings.retention_bytes).await?;
        if start > partition.log_start() {
            snapshots::reach(store, partition, start).await?;
            store.advance_log_start(partition.id, partition.epoch(), start).await?;
            crate::fault::point("retention.start_moved");
            partition.advance_log_start(start);
            tracing::info!(partition = partition.id.0, start, "retention: the log begins later");
        }
    }
    trim(store, partition).await
}

/// Removes rows that lie wholly below the log start: retention and DeleteRecords only move the start.
async fn trim<S: Store>(store: &S, partition: &Partition) -> Result<u64, StoreError> {
    let front = store.list(partition.id, 0, 2).await?;
    let start = partition.log_start();
    if front.len() < 2 || front[0].last_offset >= start {
        return Ok(0);
    }
    snapshots::reach(store, partition, start).await?;
    let mut removed = 0;
    loop {
        crate::fault::point("retention.before_trim");
        match store.trim(partition.id, partition.epoch(), TRIM).await? {
            0 => return Ok(removed),
            some => removed += some,
        }
        tokio::task::yield_now().await;
    }
}

/// Where the log is to begin: behind the rows at its front that are too old, or too many.
async fn start<S: Store>(
    store: &S,
    partition: &Partition,
    before: Option<Timestamp>,
    max_bytes: Option<u64>,
) -> Result<Offset, StoreError> {
    let mut limits = Limits { before, over: 0, start: partition.log_start() };
    if let Some(max_bytes) = max_bytes {
        let sizes = store.sizes(&[partition.id]).await?;
        limits.over = sizes.first().map_or(0, |(_, size)| size.saturating_sub(max_bytes));
    }
    if limits.before.is_none() && limits.over == 0 {
        return Ok(limits.start);
    }
    // Rows appended from here on are not looked at: their offsets are not known to this pass.
    let end = partition.end();
    let mut from = 0;
    loop {
        let page = store.list(partition.id, from, PAGE).await?;
        let Some(last) = page.last() else { return Ok(limits.start.min(end)) };
        from = last.base_offset + 1;
        if !page.iter().all(|row| limits.pass(row)) {
            return Ok(limits.start.min(end));
        }
    }
}

/// What is still to go.
struct Limits {
    before: Option<Timestamp>,
    over: u64,
    start: Offset,
}

impl Limits {
    /// Whether rows after this one may have to go, too.
    fn pass(&mut self, row: &RowInfo) -> bool {
        let size = u64::from(row.size);
        // As Kafka: never below the limit, so a row stays when what is over is less than it.
        let too_many = self.over > 0 && self.over >= size;
        let too_old = self.before.is_some_and(|before| row.high_timestamp >= 0 && row.high_timestamp < before);
        if too_many || too_old {
            self.over = self.over.saturating_sub(size);
            self.start = self.start.max(row.last_offset + 1);
            return true;
        }
        // Without any timestamp so far, the next row decides.
        self.before.is_some() && row.high_timestamp < 0
    }
}
