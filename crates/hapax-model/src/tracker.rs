//! The last epochs of a delivery and how each ended.

use std::collections::VecDeque;

use crate::epoch::Epoch;

/// How an epoch's transaction stands or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochState {
    /// Its transaction is open or being committed.
    Open,
    /// Visible in the target.
    Committed,
    /// Nothing of it is visible, and it will not come back under this number of attempts.
    Aborted,
    /// The commit was sent and no clear answer came; a later record of the same epoch resolves it.
    InDoubt,
}

impl EpochState {
    /// The name under which the epoch log stores it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::InDoubt => "in doubt",
        }
    }
}

/// One epoch's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochTransactionRecord {
    /// Its number.
    pub epoch: Epoch,
    /// How it stands.
    pub state: EpochState,
    /// Events staged in it.
    pub events_written: u64,
    /// When it was opened, in milliseconds since 1970; the caller's clock.
    pub opened_at_ms: u64,
    /// When it ended.
    pub completed_at_ms: Option<u64>,
}

/// Records of the last epochs, oldest first, bounded.
#[derive(Debug)]
pub struct EpochTransactionTracker {
    records: VecDeque<EpochTransactionRecord>,
    capacity: usize,
}

impl EpochTransactionTracker {
    /// A tracker that keeps the last `capacity` epochs (at least one).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { records: VecDeque::new(), capacity: capacity.max(1) }
    }

    /// Notes that `epoch` was opened. A repeated epoch (committed again after doubt) replaces its record.
    pub fn opened(&mut self, epoch: Epoch, now_ms: u64) {
        self.records.retain(|r| r.epoch != epoch);
        while self.records.len() >= self.capacity {
            self.records.pop_front();
        }
        self.records.push_back(EpochTransactionRecord {
            epoch,
            state: EpochState::Open,
            events_written: 0,
            opened_at_ms: now_ms,
            completed_at_ms: None,
        });
    }

    /// Adds to the events staged in `epoch`.
    pub fn wrote(&mut self, epoch: Epoch, events: u64) {
        if let Some(record) = self.records.iter_mut().find(|r| r.epoch == epoch) {
            record.events_written += events;
        }
    }

    /// Notes how `epoch` ended.
    pub fn ended(&mut self, epoch: Epoch, state: EpochState, now_ms: u64) {
        if let Some(record) = self.records.iter_mut().find(|r| r.epoch == epoch) {
            record.state = state;
            record.completed_at_ms = Some(now_ms);
        }
    }

    /// One epoch's record, if it is still kept.
    #[must_use]
    pub fn record(&self, epoch: Epoch) -> Option<&EpochTransactionRecord> {
        self.records.iter().find(|r| r.epoch == epoch)
    }

    /// All records kept, oldest first.
    pub fn records(&self) -> impl Iterator<Item = &EpochTransactionRecord> {
        self.records.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: open, commit, abort and doubt are each seen. Method: one epoch for each, and the bound.
    #[test]
    fn the_tracker_records_each_life_cycle() {
        let mut tracker = EpochTransactionTracker::new(3);
        for (n, end) in [(1, EpochState::Committed), (2, EpochState::Aborted), (3, EpochState::InDoubt)] {
            tracker.opened(Epoch(n), 10 * n);
            assert_eq!(tracker.record(Epoch(n)).map(|r| r.state), Some(EpochState::Open));
            tracker.wrote(Epoch(n), 5);
            tracker.wrote(Epoch(n), 2);
            tracker.ended(Epoch(n), end, 10 * n + 1);
            let expected = EpochTransactionRecord {
                epoch: Epoch(n),
                state: end,
                events_written: 7,
                opened_at_ms: 10 * n,
                completed_at_ms: Some(10 * n + 1),
            };
            assert_eq!(tracker.record(Epoch(n)), Some(&expected));
        }
        tracker.opened(Epoch(3), 99);
        assert_eq!(tracker.records().count(), 3);
        tracker.opened(Epoch(4), 100);
        assert_eq!(tracker.records().map(|r| r.epoch.0).collect::<Vec<_>>(), [2, 3, 4]);
    }
}
