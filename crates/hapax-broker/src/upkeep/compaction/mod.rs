//! Compaction: of each key only the last value stays.
//!
//! A pass maps the keys of what was not looked at yet, as far as memory allows, then rewrites everything up to there, from
//! the front, in place; more keys take more passes. Invariant: a record goes only when a later one of its key is durable, so
//! a kill at any moment leaves a right log; a tombstone goes only when a pass that ended long enough ago had reached it, so
//! what it buried is gone. The last row, and what is younger than `min.compaction.lag.ms`, is never touched.

mod map;
mod rewrite;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::{not_now, snapshots};
use crate::batch::BatchError;
use crate::broker::Broker;
use crate::config::TopicSettings;
use crate::log::Partition;
use crate::model::{Offset, PartitionId, Timestamp};
use crate::store::{Replacement, RowInfo, Store, StoreError, StoredRow};
use map::LastOffsets;
use rewrite::{Rewritten, Rules};

/// Bytes read, and rewritten, at once.
const PIECE: usize = 4 << 20;
/// Rows looked at at once.
const PAGE: usize = 512;
/// Passes nearer to each other than this part of `delete.retention.ms` are remembered as the later one.
const SPACING: i64 = 16;

/// What was compacted since this process started. After a restart everything is looked at once more.
#[derive(Debug, Default)]
pub(super) struct Compactor {
    known: HashMap<PartitionId, Compacted>,
    /// Keys of one pass, if not as many as usual.
    room: Option<usize>,
}

/// What was compacted of one partition.
#[derive(Debug, Default)]
struct Compacted {
    /// Below here each key has one value, as far as it was not written again above.
    upto: Offset,
    /// Bytes that were left below there.
    bytes: u64,
    /// How far passes reached, and when they ended, oldest first.
    passes: VecDeque<(Offset, Timestamp)>,
}

impl Compacted {
    /// Remembers a pass. What is forgotten of earlier ones only keeps a tombstone for longer.
    fn ended(&mut self, upto: Offset, bytes: u64, now: Timestamp, delete_retention_ms: i64) {
        (self.upto, self.bytes) = (upto, bytes);
        let ends = |passes: &VecDeque<(Offset, Timestamp)>, index: usize| passes.get(index).map(|pass| pass.1);
        while ends(&self.passes, 1).is_some_and(|second| second <= now.saturating_sub(delete_retention_ms)) {
            self.passes.pop_front();
        }
        let count = self.passes.len();
        if count >= 2 && self.passes[count - 1].1 - self.passes[count - 2].1 < delete_retention_ms / SPACING {
            self.passes.pop_back();
        }
        self.passes.push_back((upto, now));
    }

    /// Below here a tombstone was there for everybody to see since `before`.
    fn tombstones_below(&self, before: Timestamp) -> Offset {
        self.passes.iter().rev().find(|(_, ended)| *ended <= before).map_or(0, |(upto, _)| *upto)
    }
}

impl Compactor {
    /// With room for so many keys in one pass.
    #[cfg(test)]
    pub(super) fn with_room(keys: usize) -> Self {
        Self { room: Some(keys), ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn passed_over(&self, _partition: PartitionId) -> usize {
        0
    }

    /// Looks at every partition that we lead, and compacts what is worth it.
    pub(super) async fn pass<S: Store>(&mut self, broker: &Broker<S>, now: Timestamp) {
        let topics = broker.catalog.all();
        self.known.retain(|id, _| broker.logs.partition(*id).is_some());
        for topic in topics {
            let settings = broker.logs.settings(&topic);
            if !settings.cleanup.compacts() {
                continue;
            }
            for partition in topic.partitions.iter().filter_map(|id| broker.logs.partition(*id)) {
                match self.compact(&*broker.store, &partition, &settings, now).await {
                    Ok(saved) => broker.config.metrics.compacted_bytes.add(saved),
                    Err(error) => not_now("compaction", &error),
                }
            }
        }
    }

    /// How many bytes went.
    async fn compact<S: Store>(
        &mut self,
        store: &S,
        partition: &Arc<Partition>,
        settings: &TopicSettings,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let (room, mut saved) = (self.room, 0);
        let compacted = self.known.entry(partition.id).or_default();
        let Some(below) = due(store, partition, compacted, settings, now).await? else { return Ok(0) };
        // Rewritten rows may lose the batch by which a retry would be recognised after a restart.
        snapshots::reach(store, partition, below).await?;
        while compacted.upto < below {
            let mut last = room.map_or_else(LastOffsets::default, LastOffsets::with_room);
            let mapped = map_keys(store, partition, compacted.upto, below, &mut last).await?;
            let tombstones_below = compacted.tombstones_below(now.saturating_sub(settings.delete_retention_ms));
            let done = rewrite_rows(store, partition, mapped, &Rules { last: &last, tombstones_below }).await?;
            saved += done.saved;
            compacted.ended(mapped, done.left, now, settings.delete_retention_ms);
            tracing::debug!(partition = partition.id.0, upto = mapped, "compacted");
        }
        Ok(saved)
    }
}

/// Below which offset rows may be touched, if enough was written since the last pass, or long enough ago.
async fn due<S: Store>(
    store: &S,
    partition: &Partition,
    compacted: &Compacted,
    settings: &TopicSettings,
    now: Timestamp,
) -> Result<Option<Offset>, StoreError> {
    let young = now.saturating_sub(settings.min_compaction_lag_ms);
    let may_go = |row: &RowInfo| {
        row.last_offset < partition.last_stable()
            && (settings.min_compaction_lag_ms == 0 || row.high_timestamp <= young)
    };
    let (mut dirty, mut oldest, mut below) = (0_u64, None, compacted.upto);
    let (mut from, mut before) = (compacted.upto, None);
    'rows: loop {
        let page = store.list(partition.id, from, PAGE).await?;
        let Some(last) = page.last() else { break };
        from = last.base_offset + 1;
        for row in page {
            // A row counts when the next one is seen, so that the last one never does.
            let Some(row) = before.replace(row) else { continue };
            if !may_go(&row) {
                break 'rows;
            }
            dirty += u64::from(row.size);
            oldest = oldest.or(Some(row.high_timestamp));
            below = row.last_offset + 1;
        }
    }
    let ratio = dirty as f64 / (compacted.bytes + dirty).max(1) as f64;
    let overdue = oldest.is_some_and(|oldest| oldest <= now.saturating_sub(settings.max_compaction_lag_ms));
    Ok((dirty > 0 && (overdue || ratio >= settings.min_cleanable_ratio)).then_some(below))
}

/// Maps keys from `from` on until `below`, or until the map is full. How far it came: always some way.
async fn map_keys<S: Store>(
    store: &S,
    partition: &Partition,
    from: Offset,
    below: Offset,
    last: &mut LastOffsets,
) -> Result<Offset, StoreError> {
    let mut next = from;
    while next < below && !last.is_full() {
        let rows = store.read(partition.id, next, below, PIECE).await?;
        if rows.is_empty() {
            return Ok(below);
        }
        for row in rows {
            if last.is_full() {
                break;
            }
            rewrite::map(&row.data, last).map_err(|error| damaged(partition, &row, &error))?;
            next = row.last_offset + 1;
            tokio::task::yield_now().await;
        }
    }
    Ok(next.min(below))
}

/// Bytes of rows after a rewrite.
#[derive(Debug, Default)]
struct Done {
    left: u64,
    saved: u64,
}

/// Rewrites the rows that end below `below`, from the front.
async fn rewrite_rows<S: Store>(
    store: &S,
    partition: &Partition,
    below: Offset,
    rules: &Rules<'_>,
) -> Result<Done, StoreError> {
    let (mut next, mut done) = (partition.log_start(), Done::default());
    while next < below {
        let rows = store.read(partition.id, next, below, PIECE).await?;
        let Some(last) = rows.last() else { break };
        next = last.last_offset + 1;
        let mut changed = Vec::new();
        for row in rows.into_iter().filter(|row| row.last_offset < below) {
            let less = less_of(partition, &row, rules)?;
            let left = less.as_ref().map_or(row.data.len(), |data| data.as_ref().map_or(0, Bytes::len));
            done.left += left as u64;
            done.saved += row.data.len().saturating_sub(left) as u64;
            changed.extend(less.map(|data| Replacement { base_offset: row.base_offset, data }));
            tokio::task::yield_now().await;
        }
        if !changed.is_empty() {
            crate::fault::point("compaction.before_replace");
            store.replace(partition.id, partition.epoch(), changed).await?;
            crate::fault::point("compaction.after_replace");
        }
    }
    Ok(done)
}

/// What a row becomes; `None`: it stays as it is.
fn less_of(partition: &Partition, row: &StoredRow, rules: &Rules<'_>) -> Result<Option<Option<Bytes>>, StoreError> {
    match rewrite::rewrite(&row.data, rules).map_err(|error| damaged(partition, row, &error))? {
        Rewritten::Same => Ok(None),
        Rewritten::Less(data) => Ok(Some(Some(data))),
        Rewritten::Nothing => Ok(Some(None)),
    }
}

fn damaged(partition: &Partition, row: &StoredRow, error: &BatchError) -> StoreError {
    StoreError::Damaged(format!("partition {}, row {}: {error}", partition.id.0, row.base_offset))
}
