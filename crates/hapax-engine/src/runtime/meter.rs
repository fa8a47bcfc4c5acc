//! How a live delivery stands, readable by anybody at any time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hapax_model::epoch::Epoch;
use hapax_model::ledger::{Ledger, Totals};
use hapax_model::position::Bookmark;
use hapax_model::tracker::{EpochState, EpochTransactionTracker};

use crate::sink::Written;

/// Counters of one delivery. One lock per epoch, none per event.
#[derive(Debug)]
pub struct Meter {
    inner: Mutex<Inner>,
    in_flight: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    reading: Reading,
    tracker: EpochTransactionTracker,
}

/// What a meter shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// One word: `starting`, `standby`, `running`, `waiting`, `finished`, `drained`, `stopped`.
    pub state: String,
    /// The books.
    pub ledger: Ledger,
    /// The last committed epoch.
    pub epoch: u64,
    /// Where the next epoch begins.
    pub bookmark: Option<Bookmark>,
    /// Rows by what became of them, since this worker started.
    pub written: Written,
    /// Epochs committed, aborted and in doubt since this worker started.
    pub commits: u64,
    /// Epochs whose transaction was rolled back.
    pub aborts: u64,
    /// Commits whose outcome was unknown at first.
    pub in_doubt: u64,
    /// Epochs that a bound closed before their time (`BufferOverflow`).
    pub closed_early: u64,
    /// Retries of source or target.
    pub retries: u64,
    /// Total and longest commit, in microseconds.
    pub commit_micros: u64,
    /// Longest commit, in microseconds.
    pub commit_micros_max: u64,
    /// Where the source's end is, if it knows.
    pub extent: Option<u64>,
    /// Fields that no column takes, with how often each came since this worker started, or its table changed.
    pub unknown_fields: Vec<(String, u64)>,
    /// When the oldest input that is not committed yet was read, in milliseconds since 1970.
    pub oldest_in_flight_ms: Option<u64>,
}

impl Default for Meter {
    fn default() -> Self {
        let reading = Reading { state: "starting".into(), ..Reading::default() };
        Self {
            inner: Mutex::new(Inner { reading, tracker: EpochTransactionTracker::new(64) }),
            in_flight: AtomicU64::new(0),
        }
    }
}

impl Meter {
    /// The counters now.
    #[must_use]
    pub fn read(&self) -> Reading {
        let mut reading = self.with(|inner| inner.reading.clone());
        reading.ledger.in_flight = self.in_flight.load(Ordering::Relaxed);
        reading
    }

    /// The last epochs and how each ended, oldest first.
    #[must_use]
    pub fn epochs(&self) -> Vec<hapax_model::tracker::EpochTransactionRecord> {
        self.with(|inner| inner.tracker.records().cloned().collect())
    }

    pub(super) fn set_state(&self, word: &str) {
        self.with(|inner| word.clone_into(&mut inner.reading.state));
    }

    pub(super) fn claimed(&self, totals: Totals, epoch: Epoch, bookmark: &Bookmark, extent: Option<u64>) {
        self.with(|inner| {
            inner.reading.ledger.totals = totals;
            inner.reading.epoch = epoch.0;
            inner.reading.bookmark = Some(bookmark.clone());
            inner.reading.extent = extent;
        });
        self.in_flight.store(0, Ordering::Relaxed);
    }

    pub(super) fn read_inputs(&self, inputs: usize, now_ms: u64) {
        if self.in_flight.fetch_add(inputs as u64, Ordering::Relaxed) == 0 {
            self.with(|inner| inner.reading.oldest_in_flight_ms = Some(now_ms));
        }
    }

    pub(super) fn set_unknown(&self, unknown: &[(String, u64)]) {
        self.with(|inner| unknown.clone_into(&mut inner.reading.unknown_fields));
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

    pub(super) fn closed_early(&self) {
        self.with(|inner| inner.reading.closed_early += 1);
    }

    pub(super) fn retried(&self) {
        self.with(|inner| inner.reading.retries += 1);
    }

    pub(super) fn committed(
        &self,
        inputs: usize,
        after: &hapax_model::progress::Progress,
        written: Written,
        micros: u64,
    ) {
        let left = self.in_flight.fetch_sub(inputs as u64, Ordering::Relaxed) - inputs as u64;
        self.with(|inner| {
            let reading = &mut inner.reading;
            reading.ledger.totals = after.totals;
            reading.epoch = after.epoch.0;
            reading.bookmark = Some(after.bookmark.clone());
            reading.commits += 1;
            reading.commit_micros += micros;
            reading.commit_micros_max = reading.commit_micros_max.max(micros);
            if left == 0 {
                reading.oldest_in_flight_ms = None;
            }
            let sum = &mut reading.written;
            sum.upserts += written.upserts;
            sum.inserts += written.inserts;
            sum.updates += written.updates;
            sum.deletes += written.deletes;
            sum.unchanged += written.unchanged;
            sum.failures += written.failures;
        });
    }

    fn with<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        f(&mut self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}
