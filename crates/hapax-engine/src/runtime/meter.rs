//! How a live delivery stands, readable by anybody at any time.
//!
//! Reads: what the runtime tells at its steps. Invariant: one short lock per step of an epoch, a few atomics per chunk
//! of inputs, nothing per event. Not here: names and formats (the binary).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hapax_model::contract::{Contract, MODE};
use hapax_model::delivery_state::WorkerState;
use hapax_model::epoch::Epoch;
use hapax_model::ledger::{Ledger, Totals};
use hapax_model::letter::CauseCount;
use hapax_model::mode::ConflictMode;
use hapax_model::position::Bookmark;
use hapax_model::tracker::{EpochState, EpochTransactionRecord, EpochTransactionTracker};

use super::latency::{Histogram, Recent, Spread};
use super::{Stop, now_ms};
use crate::pulse::Pulse;
use crate::sink::{Committed, EpochRecord, Written};

/// More causes than this are counted under the last one.
const MOST_CAUSES: usize = 256;

/// Counters of one delivery.
#[derive(Debug)]
pub struct Meter {
    inner: Mutex<Inner>,
    in_flight: AtomicU64,
    bytes_read: AtomicU64,
    turned_at_ms: AtomicU64,
    pulse: Arc<Pulse>,
}

#[derive(Debug)]
struct Inner {
    reading: Reading,
    tracker: EpochTransactionTracker,
    recent: Recent,
    /// When each epoch that holds inputs and has not committed was opened, oldest first: at most three.
    opened: VecDeque<u64>,
}

/// What a meter shows. Counters are since this worker started, unless they say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// How it stands.
    pub state: WorkerState,
    /// Since when, in milliseconds since 1970.
    pub state_since_ms: u64,
    /// What it waits for, or why it stopped.
    pub trouble: Option<Trouble>,
    /// When its loop last turned, in milliseconds since 1970; 0 before the first time.
    pub turned_at_ms: u64,
    /// The books, since the delivery's first claim.
    pub ledger: Ledger,
    /// The last committed epoch.
    pub epoch: u64,
    /// Where the next epoch begins.
    pub bookmark: Option<Bookmark>,
    /// Where the source's end is, if it knows.
    pub extent: Option<u64>,
    /// Bytes of inputs.
    pub bytes_read: u64,
    /// Rows by what became of them.
    pub written: Written,
    /// Epochs committed.
    pub commits: u64,
    /// Of these: those that only moved the position.
    pub empty_commits: u64,
    /// Epochs whose transaction was rolled back, or refused.
    pub aborts: u64,
    /// Commits whose outcome was unknown at first.
    pub in_doubt: u64,
    /// Epochs that a bound closed before their time (`BufferOverflow`).
    pub closed_early: ClosedEarly,
    /// Retries of source or target.
    pub retries: u64,
    /// How long commits took, the finding out after doubt included.
    pub commit_latency: Histogram,
    /// From reading to commit, by input.
    pub delivery_latency: Histogram,
    /// When the last commit was, in milliseconds since 1970.
    pub committed_at_ms: Option<u64>,
    /// Repeats that were kept from the target, by what stopped them.
    pub repeats: Repeats,
    /// Dead letters by cause.
    pub causes: Vec<CauseCount>,
    /// How often another worker fenced this one.
    pub fenced: u64,
    /// How often this worker took the delivery over.
    pub takeovers: TakeOvers,
    /// When this worker last claimed the delivery, in milliseconds since 1970.
    pub claimed_at_ms: Option<u64>,
    /// Fields that no column takes, with how often each came since this worker started, or its table changed.
    pub unknown_fields: Vec<(String, u64)>,
    /// When the oldest input that is not committed yet was read, in milliseconds since 1970.
    pub oldest_in_flight_ms: Option<u64>,
}

impl Reading {
    fn change_state(&mut self, now: WorkerState) {
        if self.state != now {
            (self.state, self.state_since_ms) = (now, now_ms());
        }
    }
}

/// What stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The code of the page that explains it.
    pub code: &'static str,
    /// The message.
    pub message: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Epochs that were closed before their time, by the bound that closed them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClosedEarly {
    /// `epoch.maxEvents`.
    pub events: u64,
    /// `epoch.maxBytes`.
    pub bytes: u64,
    /// The process's `memory`.
    pub memory: u64,
}

impl ClosedEarly {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.events + self.bytes + self.memory
    }
}

/// Which bound closed an epoch before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Events,
    Bytes,
    Memory,
}

/// Events that were not written a second time, by the layer that saw to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repeats {
    /// Their key was there already, or earlier in the epoch (`onConflict: ignore`).
    pub ignore: u64,
    /// The row had the same version or a newer one (`onConflict: newer`).
    pub newer: u64,
    /// Their epoch was found committed after a commit in doubt.
    pub landed: u64,
    /// The compare-and-swap of progress refused their epoch: another worker delivers them.
    pub fence: u64,
}

/// How often a delivery was taken over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakeOvers {
    /// After standing by: the other worker ended, or let its lease run out.
    pub standby: u64,
    /// By `--take-over`.
    pub forced: u64,
    /// From itself, after a commit in doubt.
    pub reclaim: u64,
}

/// How a worker came to own a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakenBy {
    Standby,
    Force,
    Reclaim,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            inner: Mutex::new(Inner {
                reading: Reading { state_since_ms: now_ms(), ..Reading::default() },
                tracker: EpochTransactionTracker::new(64),
                recent: Recent::default(),
                opened: VecDeque::new(),
            }),
            in_flight: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            turned_at_ms: AtomicU64::new(0),
            pulse: Arc::default(),
        }
    }
}

impl Meter {
    /// What its transform is doing.
    #[must_use]
    pub const fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// The counters now.
    #[must_use]
    pub fn read(&self) -> Reading {
        let mut reading = self.with(|inner| {
            let oldest_in_flight_ms = inner.opened.front().copied();
            Reading { oldest_in_flight_ms, ..inner.reading.clone() }
        });
        reading.ledger.in_flight = self.in_flight.load(Ordering::Relaxed);
        reading.bytes_read = self.bytes_read.load(Ordering::Relaxed);
        reading.turned_at_ms = self.turned_at_ms.load(Ordering::Relaxed);
        reading
    }

    /// From reading to commit: the duration that `share` (0 to 1) of the inputs of the last epochs did not exceed.
    #[must_use]
    pub fn recent_latency(&self, share: f64) -> Option<Duration> {
        let recent = self.with(|inner| inner.recent.clone());
        recent.quantile(share)
    }

    /// The last epochs and how each ended, oldest first.
    #[must_use]
    pub fn epochs(&self) -> Vec<EpochTransactionRecord> {
        self.with(|inner| inner.tracker.records().cloned().collect())
    }

    /// Says that the delivery did not start, and why.
    pub fn refused(&self, stop: &Stop) {
        self.set_state(WorkerState::Stopped);
        self.troubled(stop.code, &stop.message);
    }

    /// The target is away before the delivery could begin: it waits, and will try again.
    pub fn waits_to_start(&self, code: &'static str, message: &str) {
        self.set_state(WorkerState::Waiting);
        self.troubled(code, message);
        self.retried();
    }

    /// Another worker has it, and this one waits for its turn.
    pub fn stands_by(&self) {
        self.set_state(WorkerState::Standby);
    }

    pub(super) fn set_state(&self, state: WorkerState) {
        self.with(|inner| {
            if matches!(state, WorkerState::Running | WorkerState::Standby | WorkerState::Paused) {
                inner.reading.trouble = None;
            }
            inner.reading.change_state(state);
        });
    }

    /// Notes what stands in the way; the time is that of the first such note.
    pub(super) fn troubled(&self, code: &'static str, message: &str) {
        self.with(|inner| {
            let since_ms = inner.reading.trouble.as_ref().map_or_else(now_ms, |trouble| trouble.since_ms);
            inner.reading.trouble = Some(Trouble { code, message: message.to_owned(), since_ms });
        });
    }

    /// What stood in the way is gone.
    pub(super) fn recovered(&self) {
        self.with(|inner| {
            if inner.reading.state == WorkerState::Waiting {
                inner.reading.change_state(WorkerState::Running);
                inner.reading.trouble = None;
            }
        });
    }

    /// The delivery's loop turned: it is not stuck.
    pub(super) fn turned(&self) {
        self.turned_at_ms.store(now_ms(), Ordering::Relaxed);
    }

    pub(super) fn claimed(&self, totals: Totals, epoch: Epoch, bookmark: &Bookmark, extent: Option<u64>) {
        self.with(|inner| {
            inner.reading.ledger.totals = totals;
            inner.reading.epoch = epoch.0;
            inner.reading.bookmark = Some(bookmark.clone());
            inner.reading.extent = extent;
            inner.reading.claimed_at_ms = Some(now_ms());
            inner.opened.clear();
        });
        self.in_flight.store(0, Ordering::Relaxed);
    }

    pub(super) fn taken_over(&self, by: TakenBy) {
        self.with(|inner| {
            let takeovers = &mut inner.reading.takeovers;
            match by {
                TakenBy::Standby => takeovers.standby += 1,
                TakenBy::Force => takeovers.forced += 1,
                TakenBy::Reclaim => takeovers.reclaim += 1,
            }
        });
    }

    pub(super) fn fenced(&self) {
        self.with(|inner| inner.reading.fenced += 1);
    }

    /// The first inputs of an epoch were read at `at_ms`.
    pub(super) fn epoch_begun(&self, at_ms: u64) {
        self.with(|inner| inner.opened.push_back(at_ms));
    }

    pub(super) fn read_inputs(&self, inputs: usize, bytes: usize) {
        self.in_flight.fetch_add(inputs as u64, Ordering::Relaxed);
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn set_unknown(&self, unknown: &[(String, u64)]) {
        self.with(|inner| {
            let seen = unknown.iter().filter(|(_, events)| *events > 0);
            inner.reading.unknown_fields.clear();
            inner.reading.unknown_fields.extend(seen.cloned());
        });
    }

    pub(super) fn opened(&self, epoch: Epoch, events: usize, now_ms: u64) {
        self.with(|inner| {
            inner.tracker.opened(epoch, now_ms);
            inner.tracker.wrote(epoch, events as u64);
        });
    }

    pub(super) fn ended(&self, epoch: Epoch, state: EpochState, now_ms: u64) {
        self.with(|inner| {
            inner.tracker.ended(epoch, state, now_ms);
            match state {
                EpochState::Committed | EpochState::Open => {}
                EpochState::Aborted => inner.reading.aborts += 1,
                EpochState::InDoubt => inner.reading.in_doubt += 1,
            }
        });
    }

    /// The worker ends without waiting for an answer: a commit that is under way is in doubt.
    pub(super) fn left(&self, now_ms: u64) {
        let open = self.epochs().into_iter().rfind(|record| record.state == EpochState::Open);
        if let Some(record) = open {
            self.ended(record.epoch, EpochState::InDoubt, now_ms);
        }
    }

    pub(super) fn closed_early(&self, by: Bound) {
        self.with(|inner| {
            let closed = &mut inner.reading.closed_early;
            match by {
                Bound::Events => closed.events += 1,
                Bound::Bytes => closed.bytes += 1,
                Bound::Memory => closed.memory += 1,
            }
        });
    }

    pub(super) fn retried(&self) {
        self.with(|inner| inner.reading.retries += 1);
    }

    /// An epoch of `events` was found committed after doubt.
    pub(super) fn landed(&self, events: usize) {
        self.with(|inner| inner.reading.repeats.landed += events as u64);
    }

    /// The fence refused an epoch of `events`.
    pub(super) fn refused_by_fence(&self, events: usize) {
        self.with(|inner| inner.reading.repeats.fence += events as u64);
    }

    /// An epoch committed; `took` is from its first try to the answer.
    pub(super) fn committed(
        &self,
        record: &EpochRecord,
        committed: &Committed,
        contract: &Contract,
        events: usize,
        took: Duration,
    ) {
        let (inputs, now) = (record.counts.read, now_ms());
        self.in_flight.fetch_sub(inputs, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.with(|inner| {
            if inputs > 0 {
                inner.opened.pop_front();
                let since = |at_ms: u64| now.saturating_sub(at_ms).saturating_mul(1000);
                let (shortest_us, longest_us) = (since(record.closed_at_ms), since(record.opened_at_ms));
                let spread = Spread {
                    shortest_us: shortest_us.min(longest_us).max(micros.min(longest_us)),
                    longest_us,
                    count: inputs,
                };
                inner.reading.delivery_latency.add_spread(spread);
                inner.recent.add(spread);
            }
            let reading = &mut inner.reading;
            let progress = &committed.progress;
            reading.ledger.totals = progress.totals;
            reading.epoch = progress.epoch.0;
            reading.bookmark = Some(progress.bookmark.clone());
            reading.commits += 1;
            reading.empty_commits += u64::from(events == 0 && committed.dead_inputs.is_empty());
            reading.commit_latency.add(micros);
            reading.committed_at_ms = Some(now);
            add_written(&mut reading.written, committed.written);
            reading.repeats.add(contract, events as u64, committed.written);
            add_causes(&mut reading.causes, &committed.causes);
        });
    }

    fn with<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        f(&mut self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Repeats {
    /// Rows that the mode left as they were are repeats; in `ignore` so is what the reduction dropped.
    fn add(&mut self, contract: &Contract, events: u64, written: Written) {
        let mode = contract.fact(MODE);
        // Of an epoch that landed without an answer nobody knows the split; it is counted as landed.
        let known = written.inserts + written.unchanged > 0;
        if mode == ConflictMode::Ignore.name() && known {
            self.ignore += events.saturating_sub(written.inserts + written.failures);
        } else if mode == ConflictMode::Newer.name() {
            self.newer += written.unchanged;
        }
    }
}

fn add_written(sum: &mut Written, written: Written) {
    sum.upserts += written.upserts;
    sum.inserts += written.inserts;
    sum.updates += written.updates;
    sum.deletes += written.deletes;
    sum.unchanged += written.unchanged;
    sum.failures += written.failures;
}

fn add_causes(sum: &mut Vec<CauseCount>, causes: &[CauseCount]) {
    for cause in causes {
        let full = sum.len() >= MOST_CAUSES;
        let same = sum.iter_mut().find(|known| known.code == cause.code && known.fingerprint == cause.fingerprint);
        match same {
            Some(known) => known.count += cause.count,
            None if full => sum.last_mut().into_iter().for_each(|last| last.count += cause.count),
            None => sum.push(cause.clone()),
        }
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
