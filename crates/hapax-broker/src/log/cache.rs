//! The newest rows of all partitions, for readers at the tail.
//!
//! Invariant: what is here of a partition is one piece that reaches to its end, under one epoch.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use bytes::Bytes;

use crate::log::{Partition, lock};
use crate::model::{Offset, PartitionId};
use crate::store::Row;

type Key = (PartitionId, i32);

/// The newest rows, at most so many bytes, the oldest go first.
pub(super) struct TailCache {
    max: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    rows: HashMap<Key, VecDeque<CachedRow>>,
    /// Whose row is the oldest; a partition that was forgotten leaves its turns behind.
    order: VecDeque<Key>,
    bytes: usize,
}

/// A row.
#[derive(Debug, Clone)]
pub(super) struct CachedRow {
    pub(super) base_offset: Offset,
    pub(super) last_offset: Offset,
    pub(super) data: Bytes,
}

impl TailCache {
    pub(super) fn new(max: usize) -> Self {
        Self { max, held: Mutex::default() }
    }

    /// Adds rows that were just committed.
    pub(super) fn push(&self, partition: &Partition, rows: Vec<Row>) {
        let key = (partition.id, partition.epoch());
        let mut held = lock(&self.held);
        let held = &mut *held;
        let tail = held.rows.entry(key).or_default();
        for row in rows {
            held.bytes += row.data.len();
            held.order.push_back(key);
            tail.push_back(CachedRow { base_offset: row.base_offset, last_offset: row.last_offset, data: row.data });
        }
        while held.bytes > self.max
            && let Some(oldest) = held.order.pop_front()
        {
            if let Some(rows) = held.rows.get_mut(&oldest) {
                held.bytes -= rows.pop_front().map_or(0, |row| row.data.len());
                if rows.is_empty() {
                    held.rows.remove(&oldest);
                }
            }
        }
    }

    /// Drops all of a partition.
    pub(super) fn forget(&self, partition: &Partition) {
        let mut held = lock(&self.held);
        if let Some(rows) = held.rows.remove(&(partition.id, partition.epoch())) {
            held.bytes -= rows.iter().map(|row| row.data.len()).sum::<usize>();
        }
    }

    /// Rows from the one that holds `from` on, until `max_bytes` are reached; `None`: the tail begins later.
    pub(super) fn read(&self, partition: &Partition, from: Offset, max_bytes: usize) -> Option<Vec<CachedRow>> {
        let held = lock(&self.held);
        let rows = held.rows.get(&(partition.id, partition.epoch()))?;
        if rows.front().is_none_or(|first| first.base_offset > from) {
            return None;
        }
        let start = rows.partition_point(|row| row.last_offset < from);
        let mut bytes = 0;
        let wanted = rows.iter().skip(start).take_while(|row| {
            let wanted = bytes < max_bytes.max(1);
            bytes += row.data.len();
            wanted
        });
        Some(wanted.cloned().collect())
    }

    /// Bytes held.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        lock(&self.held).bytes
    }
}
