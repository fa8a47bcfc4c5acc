//! The judge of a broker: pure, from a history to what is wrong with it.
//!
//! Reads: a history. Writes: findings. Time: sorting and hashing, so hundreds of thousands of operations take seconds.

mod ends;
mod groups;
mod log;
mod starts;

use std::collections::BTreeMap;
use std::fmt;

use super::history::{History, Moment};

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "removal_tests.rs"]
mod removal_tests;

/// What can be wrong with a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Anomaly {
    /// A record that was acknowledged is not in the log.
    Lost,
    /// A record that was acknowledged under one offset is under another.
    Moved,
    /// A record that somebody has read is gone, or another is in its place.
    Vanished,
    /// A record of an idempotent producer is there twice.
    Doubled,
    /// Offsets are not dense: one is missing, or used twice.
    Hole,
    /// Two records of an idempotent producer are in the wrong order.
    Reordered,
    /// A record that nobody wrote, or whose write was refused.
    Phantom,
    /// An idempotent producer that did nothing wrong was refused.
    Refused,
    /// The end of a log went back.
    EndBack,
    /// A reader was told an end below what had been acknowledged before it asked.
    Stale,
    /// The start of a log went back, or did not go where it was said to be.
    StartBack,
    /// Records went from the front of a log that nobody allowed to go.
    Removed,
    /// A group's offset went back.
    OffsetBack,
    /// A group's offset that nobody committed.
    OffsetPhantom,
    /// The leader's epoch went back along the log.
    EpochBack,
    /// The broker did not do in time what it must be able to do: start, answer, take over.
    Conduct,
}

impl Anomaly {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Moved => "moved",
            Self::Vanished => "vanished",
            Self::Doubled => "doubled",
            Self::Hole => "hole",
            Self::Reordered => "reordered",
            Self::Phantom => "phantom",
            Self::Refused => "refused",
            Self::EndBack => "end went back",
            Self::Stale => "stale read",
            Self::StartBack => "start went back",
            Self::Removed => "removed",
            Self::OffsetBack => "group offset went back",
            Self::OffsetPhantom => "group offset of nobody",
            Self::EpochBack => "leader epoch went back",
            Self::Conduct => "conduct",
        }
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub anomaly: Anomaly,
    /// Where.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.anomaly.name(), self.detail)
    }
}

/// So many of one kind are told in full; the rest is counted.
const TOLD: usize = 4;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    told: Vec<Finding>,
    counts: BTreeMap<Anomaly, usize>,
}

impl Findings {
    fn add(&mut self, anomaly: Anomaly, detail: impl FnOnce() -> String) {
        let count = self.counts.entry(anomaly).or_default();
        *count += 1;
        if *count <= TOLD {
            self.told.push(Finding { anomaly, detail: detail() });
        }
    }

    fn finish(mut self) -> Vec<Finding> {
        for (anomaly, count) in self.counts {
            if count > TOLD {
                self.told.push(Finding { anomaly, detail: format!("{count} times in all") });
            }
        }
        self.told.sort_by_key(|finding| finding.anomaly);
        self.told
    }
}

/// Everything that is wrong with a history.
#[must_use]
pub fn judge(history: &History) -> Vec<Finding> {
    let mut findings = Findings::default();
    log::judge(history, &mut findings);
    ends::judge(history, &mut findings);
    starts::judge(history, &mut findings);
    groups::judge(history, &mut findings);
    findings.finish()
}

/// The greatest value known at each moment.
///
/// A value counts from the moment at which somebody knew it: whoever asks later must not be told less.
#[derive(Debug, Default)]
struct Known<T> {
    /// By time, each greater than the one before.
    steps: Vec<(Moment, i64, T)>,
}

impl<T: Copy> Known<T> {
    fn of(mut values: Vec<(Moment, i64, T)>) -> Self {
        values.sort_by_key(|(moment, value, _)| (*moment, *value));
        let mut steps: Vec<(Moment, i64, T)> = Vec::new();
        for step in values {
            if steps.last().is_none_or(|last| step.1 > last.1) {
                steps.push(step);
            }
        }
        Self { steps }
    }

    /// What was known before `moment`.
    fn before(&self, moment: Moment) -> Option<(i64, T)> {
        let until = self.steps.partition_point(|(at, _, _)| *at < moment);
        until.checked_sub(1).map(|last| (self.steps[last].1, self.steps[last].2))
    }
}
