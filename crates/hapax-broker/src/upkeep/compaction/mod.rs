//! Compaction: of each key only the last value stays.
//!
//! A pass maps the keys of what was not looked at yet, as far as memory allows, then rewrites everything up to there, from
//! the front, in place; more keys take more passes. Invariant: a record goes only when a later one of its key is durable, so
//! a kill at any moment leaves a right log; a tombstone goes only when a pass that ended long enough ago had reached it, so
//! what it buried is gone. The last row, and what is younger than `min.compaction.lag.ms`, is never touched.

mod map;
mod rewrite;

use std::collections::{BTreeSet, HashMap, VecDeque};
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
use rewrite::{Rewritten, Rules, Unreadable};

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
    /// The batches of the last pass that could not be read.
    unreadable: BTreeSet<Offset>,
    /// How often one was said to be so.
    said: usize,
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

    /// Says which batches could not be read, each once.
    fn passed_over(&mut self, partition: &Partition, found: Vec<Unreadable>) {
        for batch in &found {
            if !self.unreadable.contains(&batch.offset) {
                let (partition, offset, error) = (partition.id.0, batch.offset, &batch.error);
                tracing::warn!(partition, offset, %error, "compaction passes over a batch that cannot be read");
                self.said += 1;
            }
        }
        self.unreadable = found.into_iter().map(|batch| batch.offset).collect();
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

    /// How many batches of a partition were said to be unreadable.
    #[cfg(test)]
    pub(super) fn passed_over(&self, partition: PartitionId) -> usize {
        self.known.get(&partition).map_or(0, |compacted| compacted.said)
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
            let last = room.map_or_else(LastOffsets::default, LastOffsets::with_room);
            let (last, mapped) = map_keys(store, partition, compacted.upto, below, last).await?;
            let tombstones_below = compacted.tombstones_below(now.saturating_sub(settings.delete_retention_ms));
            let rules = Rules { last: Arc::new(last), tombstones_below };
            let done = rewrite_rows(store, partition, mapped, rules).await?;
            compacted.passed_over(partition, done.unreadable);
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
    mut last: LastOffsets,
) -> Result<(LastOffsets, Offset), StoreError> {
    let mut next = from;
    while next < below && !last.is_full() {
        let rows = store.read(partition.id, next, below, PIECE).await?;
        if rows.is_empty() {
            return Ok((last, below));
        }
        for row in rows {
            if last.is_full() {
                break;
            }
            let (place, upto) = (place(partition, &row), row.last_offset + 1);
            last = aside(move || {
                rewrite::map(&row.data, &mut last).map_err(|error| damaged(&place, &error))?;
                Ok(last)
            })
            .await?;
            next = upto;
        }
    }
    Ok((last, next.min(below)))
}

/// Does what takes long on a thread that serves nobody.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Away(format!("compaction broke off: {error}")))?
}

/// Bytes of rows after a rewrite.
#[derive(Debug, Default)]
struct Done {
    left: u64,
    saved: u64,
    unreadable: Vec<Unreadable>,
}

/// Rewrites the rows that end below `below`, from the front.
async fn rewrite_rows<S: Store>(
    store: &S,
    partition: &Partition,
    below: Offset,
    mut rules: Rules,
) -> Result<Done, StoreError> {
    let (mut next, mut done) = (partition.log_start(), Done::default());
    while next < below {
        let rows = store.read(partition.id, next, below, PIECE).await?;
        let Some(last) = rows.last() else { break };
        next = last.last_offset + 1;
        let mut changed = Vec::new();
        for row in rows.into_iter().filter(|row| row.last_offset < below) {
            let (place, base_offset, size) = (place(partition, &row), row.base_offset, row.data.len());
            let (rewritten, unreadable);
            (rules, rewritten, unreadable) = aside(move || {
                let mut rules = rules;
                let done = rewrite::rewrite(&row.data, &mut rules).map_err(|error| damaged(&place, &error))?;
                Ok((rules, done.0, done.1))
            })
            .await?;
            done.unreadable.extend(unreadable);
            let less = match rewritten {
                Rewritten::Same => None,
                Rewritten::Less(data) => Some(Some(data)),
                Rewritten::Nothing => Some(None),
            };
            let left = less.as_ref().map_or(size, |data| data.as_ref().map_or(0, Bytes::len));
            done.left += left as u64;
            done.saved += size.saturating_sub(left) as u64;
            changed.extend(less.map(|data| Replacement { base_offset, data }));
        }
        if !changed.is_empty() {
            crate::fault::point("compaction.before_replace");
            store.replace(partition.id, partition.epoch(), changed).await?;
            crate::fault::point("compaction.after_replace");
        }
    }
    Ok(done)
}

fn place(partition: &Partition, row: &StoredRow) -> String {
    format!("partition {}, row {}", partition.id.0, row.base_offset)
}

fn damaged(place: &str, error: &BatchError) -> StoreError {
    StoreError::Damaged(format!("{place}: {error}"))
}
