//! Producers: their ids, their transactional ids, and the snapshot of what each last wrote per partition.

use std::future::Future;
use std::ops::Range;

use crate::model::{Offset, PartitionId, Timestamp};
use crate::store::StoreError;

/// One of the last five batches of a producer in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingEntry {
    /// Sequence of its first record.
    pub first_sequence: i32,
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Its greatest timestamp, or the time of append where the topic says so.
    pub timestamp: Timestamp,
}

/// What is known of one producer in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerState {
    /// Who.
    pub producer_id: i64,
    /// The epoch of its last batch.
    pub epoch: i16,
    /// Its last batches, oldest first, at most five.
    pub ring: Vec<RingEntry>,
    /// Where its open transaction began.
    pub open_since: Option<Offset>,
    /// When it last wrote.
    pub updated: Timestamp,
}

/// All producers of a partition, as of an offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerSnapshot {
    /// Everything below this offset is in it.
    pub upto: Offset,
    /// The producers, by id.
    pub producers: Vec<ProducerState>,
}

/// A producer id that was given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerRow {
    /// The id.
    pub producer_id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// What the client called itself.
    pub client_id: Option<String>,
    /// Its transactional id, if it has one.
    pub transactional_id: Option<String>,
}

/// A transactional id: who may write under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionalRow {
    /// The id.
    pub id: String,
    /// Raised by every change; compared before it.
    pub revision: i64,
    /// Counts the transactions of this id.
    pub serial: i64,
    /// 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 CompleteCommit, 5 CompleteAbort.
    pub state: i16,
    /// Which of Kafka's two transaction protocols its producer speaks.
    pub version: i16,
    /// The producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// The epoch before, accepted once for a retry; -1: none.
    pub last_epoch: i16,
    /// The producer id before the epochs ran out; -1: none.
    pub prev_producer_id: i64,
    /// The producer id that follows when the running transaction ends; -1: none.
    pub next_producer_id: i64,
    /// A transaction that is open longer is aborted.
    pub timeout_ms: i32,
    /// When it was last changed.
    pub updated: Timestamp,
}

/// Producers.
pub trait Producers {
    /// Ids that nobody else gets, ever.
    fn producer_id_block(&self) -> impl Future<Output = Result<Range<i64>, StoreError>> + Send;

    /// Notes who got an id, for people to look at; a known id gets the newer epoch and `last_active_at`.
    fn note_producer(&self, row: ProducerRow) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// A producer id as noted.
    fn producer(&self, producer_id: i64) -> impl Future<Output = Result<Option<ProducerRow>, StoreError>> + Send;

    /// Removes notes of producers without a transactional id that were last active before `before`.
    fn forget_producers(&self, before: Timestamp) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// A transactional id as it is now.
    fn transactional(&self, id: &str) -> impl Future<Output = Result<Option<TransactionalRow>, StoreError>> + Send;

    /// Writes `row` if the id still stands at `expected` (`None`: is not there), and the note of its producer with it.
    /// [`StoreError::Conflict`] otherwise.
    fn swap_transactional(
        &self,
        expected: Option<i64>,
        row: TransactionalRow,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The snapshot of a partition.
    fn snapshot(&self, partition: PartitionId) -> impl Future<Output = Result<ProducerSnapshot, StoreError>> + Send;

    /// Replaces the snapshot of a partition, all or nothing. Fenced by the epoch like a row; one that does not reach
    /// further than the stored one changes nothing. The caller puts only durable state into it.
    fn save_snapshot(
        &self,
        partition: PartitionId,
        epoch: i32,
        snapshot: ProducerSnapshot,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
