//! The log: rows of batches per partition, written only by the partition's leader.

use std::future::Future;

use bytes::Bytes;

use crate::model::{Offset, PartitionId, Timestamp};
use crate::store::StoreError;

/// What one commit appends to one partition: one or many wire batches end to end, at most 1 MiB unless one batch is larger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Where it goes.
    pub partition: PartitionId,
    /// The first batch's base offset.
    pub base_offset: Offset,
    /// The last offset of the last batch.
    pub last_offset: Offset,
    /// The greatest timestamp of this row and all before it, so it only grows.
    pub high_timestamp: Timestamp,
    /// The batches, with their offsets and leader epoch written in.
    pub data: Bytes,
}

/// A group commit.
#[derive(Debug, Clone, Default)]
pub struct Append {
    /// The partitions touched, sorted, each once, with the epoch under which we lead it.
    pub led: Vec<(PartitionId, i32)>,
    /// The rows, in offset order per partition.
    pub rows: Vec<Row>,
}

/// What became of a group commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// All of it is durable.
    Done,
    /// Nothing was written: these partitions are led under another epoch, or are gone.
    Refused(Vec<PartitionId>),
}

/// A partition that we lead now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedPartition {
    /// Which.
    pub partition: PartitionId,
    /// Under which epoch: one more than before.
    pub epoch: i32,
    /// The first offset that readers may have.
    pub log_start: Offset,
    /// The offset that the next record gets.
    pub end: Offset,
    /// The greatest timestamp so far, or -1.
    pub high_timestamp: Timestamp,
}

/// A row as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRow {
    /// The offset under which it is kept. After compaction its first batch may begin later.
    pub base_offset: Offset,
    /// The last offset it stands for.
    pub last_offset: Offset,
    /// The batches.
    pub data: Bytes,
}

/// A row without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowInfo {
    /// The offset under which it is kept.
    pub base_offset: Offset,
    /// The last offset it stands for.
    pub last_offset: Offset,
    /// Bytes of data.
    pub size: u32,
    /// As in [`Row`].
    pub high_timestamp: Timestamp,
}

/// A row that compaction has rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Which row.
    pub base_offset: Offset,
    /// What it holds now; `None` removes the row.
    pub data: Option<Bytes>,
}

/// The log.
///
/// Only the leader writes: each write names the epoch under which the caller leads, and is refused, whole, if the store's
/// epoch is another. Correctness never rests on a clock.
pub trait Log {
    /// Whether batches stay compressed as the producer sent them, where neither topic nor broker says otherwise.
    fn keeps_compression(&self) -> bool {
        true
    }

    /// Makes us leader of those among `partitions` that nobody else alive leads, raises their epochs, notes where each
    /// epoch begins, and tells how they stand. The end is read after the epoch was raised: whatever an older leader still
    /// had under way is either in it or refused for ever.
    fn lead(&self, partitions: &[PartitionId]) -> impl Future<Output = Result<Vec<LedPartition>, StoreError>> + Send;

    /// Writes a group: all or nothing, durable when it returns. An error other than [`StoreError::InDoubt`] wrote nothing.
    fn append(&self, group: Append) -> impl Future<Output = Result<Appended, StoreError>> + Send;

    /// Rows from the one that holds `from` (or the next after it) on, below `below`, until `max_bytes` are reached; the
    /// first always comes. At most 64 rows.
    fn read(
        &self,
        partition: PartitionId,
        from: Offset,
        below: Offset,
        max_bytes: usize,
    ) -> impl Future<Output = Result<Vec<StoredRow>, StoreError>> + Send;

    /// The first row whose greatest timestamp so far is `timestamp` or later.
    fn row_at_time(
        &self,
        partition: PartitionId,
        timestamp: Timestamp,
    ) -> impl Future<Output = Result<Option<StoredRow>, StoreError>> + Send;

    /// Rows without data, from the first whose base offset is `from` or later, at most `limit`.
    fn list(
        &self,
        partition: PartitionId,
        from: Offset,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<RowInfo>, StoreError>> + Send;

    /// Bytes per partition, of those asked.
    fn sizes(
        &self,
        partitions: &[PartitionId],
    ) -> impl Future<Output = Result<Vec<(PartitionId, u64)>, StoreError>> + Send;

    /// All epochs of a partition with the offset at which each began, oldest first.
    fn leader_epochs(
        &self,
        partition: PartitionId,
    ) -> impl Future<Output = Result<Vec<(i32, Offset)>, StoreError>> + Send;

    /// Moves the log start forward; a smaller one changes nothing.
    fn advance_log_start(
        &self,
        partition: PartitionId,
        epoch: i32,
        log_start: Offset,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Removes rows wholly below the log start, about `max_bytes` of them. How many bytes went; 0: none are left.
    /// The last row always stays: the next offset follows from it. The caller has saved a snapshot that reaches beyond.
    fn trim(
        &self,
        partition: PartitionId,
        epoch: i32,
        max_bytes: usize,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Puts other data into rows, or removes them; base and last offset stay. Never the last row.
    fn replace(
        &self,
        partition: PartitionId,
        epoch: i32,
        rows: Vec<Replacement>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
