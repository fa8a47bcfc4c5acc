//! One partition that we lead.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, OnceCell};

use crate::log::lock;
use crate::model::{Offset, PartitionId, Timestamp};
use crate::rules::producer::{Draft, Producers};
use crate::store::{LedPartition, ProducerSnapshot};

/// A partition that we lead, or led: one who holds it may still read it when we no longer do.
#[derive(Debug)]
pub struct Partition {
    /// The store's number.
    pub id: PartitionId,
    epoch: i32,
    is_led: AtomicBool,
    log_start: AtomicI64,
    end: AtomicI64,
    state: Mutex<State>,
    waiters: Mutex<HashMap<u64, Arc<Notify>>>,
    /// Under which epoch what was written, once somebody has asked.
    pub(super) epochs: OnceCell<Vec<(i32, Offset)>>,
}

/// What only changes when a commit is durable.
#[derive(Debug)]
pub(super) struct State {
    pub(super) producers: Producers,
    pub(super) end: Offset,
    pub(super) high_timestamp: Timestamp,
    /// How far the last snapshot reaches, and what was appended since.
    snapshot_upto: Offset,
    appended: u64,
}

impl Partition {
    pub(super) fn new(led: &LedPartition, producers: Producers, snapshot_upto: Offset) -> Self {
        let state = State { producers, end: led.end, high_timestamp: led.high_timestamp, snapshot_upto, appended: 0 };
        Self {
            id: led.partition,
            epoch: led.epoch,
            is_led: AtomicBool::new(true),
            log_start: AtomicI64::new(led.log_start),
            end: AtomicI64::new(led.end),
            state: Mutex::new(state),
            waiters: Mutex::default(),
            epochs: OnceCell::new(),
        }
    }

    /// Under which epoch we lead.
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Whether we still lead it under this epoch, as far as we know.
    pub fn is_led(&self) -> bool {
        self.is_led.load(Ordering::Acquire)
    }

    /// The first offset that readers may have.
    pub fn log_start(&self) -> Offset {
        self.log_start.load(Ordering::Acquire)
    }

    /// The offset that the next record gets: everything below is durable.
    pub fn end(&self) -> Offset {
        self.end.load(Ordering::Acquire)
    }

    /// Everything below is decided: no transaction is open there. None are served yet, so it is the end.
    pub fn last_stable(&self) -> Offset {
        self.end()
    }

    /// The greatest timestamp so far, or -1.
    pub fn high_timestamp(&self) -> Timestamp {
        lock(&self.state).high_timestamp
    }

    /// How many producers are remembered.
    pub fn producer_count(&self) -> usize {
        lock(&self.state).producers.len()
    }

    /// Readers may have nothing below this any more; the store knows it already.
    pub fn advance_log_start(&self, log_start: Offset) {
        self.log_start.fetch_max(log_start, Ordering::AcqRel);
    }

    /// The producers as they are durable now.
    pub fn snapshot(&self) -> ProducerSnapshot {
        let state = lock(&self.state);
        state.producers.snapshot(state.end)
    }

    /// Bytes appended since the last snapshot, and how far that one reaches.
    pub fn since_snapshot(&self) -> (u64, Offset) {
        let state = lock(&self.state);
        (state.appended, state.snapshot_upto)
    }

    /// Says that a snapshot that reaches to `upto` is durable, with what had been appended when it was taken.
    pub fn note_snapshot(&self, upto: Offset, appended: u64) {
        let mut state = lock(&self.state);
        state.snapshot_upto = state.snapshot_upto.max(upto);
        state.appended = state.appended.saturating_sub(appended);
    }

    /// Forgets producers that wrote nothing since `before`. How many went.
    pub fn expire_producers(&self, before: Timestamp) -> usize {
        lock(&self.state).producers.expire(before)
    }

    /// Looks at what is durable, while nothing is published.
    pub(super) fn durable<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&lock(&self.state))
    }

    /// Makes a commit visible.
    pub(super) fn publish(&self, draft: Draft, end: Offset, high_timestamp: Timestamp, bytes: u64) {
        let mut state = lock(&self.state);
        state.producers.keep(draft);
        state.end = end;
        state.high_timestamp = high_timestamp;
        state.appended += bytes;
        self.end.store(end, Ordering::Release);
        drop(state);
        self.wake();
    }

    pub(super) fn retire(&self) {
        self.is_led.store(false, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        lock(&self.waiters).values().for_each(|waiter| waiter.notify_one());
    }

    pub(super) fn register(&self, key: u64, waiter: Arc<Notify>) {
        lock(&self.waiters).insert(key, waiter);
    }

    pub(super) fn deregister(&self, key: u64) {
        lock(&self.waiters).remove(&key);
    }
}
