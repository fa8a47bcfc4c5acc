//! What happened, in order, and what was there at the end: the facts that checkers judge.

use crate::shape::Row;
use crate::truth::Digest;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// A process was started to do something: its effect is open from here on.
    Invoked {
        /// Which process.
        worker: String,
        /// With which arguments.
        what: String,
    },
    /// A process ended.
    Ended {
        /// Which process.
        worker: String,
        /// How.
        outcome: Outcome,
    },
    /// A process was stopped, continued or made to fail.
    Faulted {
        /// Which process.
        worker: String,
        /// What was done to it.
        fault: String,
    },
    /// The reader looked.
    Saw(Sample),
    /// The target was replaced by an older copy: what was seen before binds no more.
    Restored,
}

/// How an operation ended, as a client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0: it took effect.
    Ok,
    /// Another exit code: it says that it failed.
    Failed(i32),
    /// It was killed: it took effect, or not, or in part.
    Unknown,
}

/// What one read transaction of the reader saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The delivery's progress.
    pub progress: ProgressRow,
    /// The rows visible, as a digest.
    pub digest: Digest,
    /// Sum of the rows' amounts and their count, if a trigger keeps a balance beside them, and what it says.
    pub balance: Option<BalanceSeen>,
    /// Letters visible.
    pub letters: u64,
}

/// Rows against the balance that a trigger keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BalanceSeen {
    /// Sum of the rows' amounts.
    pub rows: i64,
    /// Sum of the balances.
    pub kept: i64,
}

/// Progress as the target shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgressRow {
    /// Who owns the delivery.
    pub generation: u64,
    /// The last epoch.
    pub epoch: u64,
    /// The next input, as text.
    pub position: String,
    /// Inputs read.
    pub read: u64,
    /// Inputs delivered.
    pub delivered: u64,
    /// Inputs without output.
    pub filtered: u64,
    /// Inputs that died.
    pub dead: u64,
    /// Rows written.
    pub rows: u64,
}

/// One row of the epoch log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochRow {
    /// Its number.
    pub epoch: u64,
    /// Who wrote it.
    pub generation: u64,
}

/// One dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterRow {
    /// The source's bytes.
    pub bytes: Vec<u8>,
    /// `dead`, `replayed` or `discarded`.
    pub state: String,
    /// Why it died.
    pub code: String,
}

/// The code of a letter whose input may have been sent, and is never sent again.
pub const IN_DOUBT: &str = "HX2040";

/// One account's balance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalanceRow {
    /// Whose.
    pub account: String,
    /// How much.
    pub amount: i64,
    /// From how many rows.
    pub entries: u64,
}

/// What is there at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The table's rows, in the order in which they were inserted.
    pub rows: Vec<Row>,
    /// The balances, if a trigger keeps them.
    pub balance: Vec<BalanceRow>,
    /// The delivery's progress, in the target or in the state store.
    pub progress: Option<ProgressRow>,
    /// The epoch log, ascending; in the state store one entry may stand for several epochs.
    pub epochs: Vec<EpochRow>,
    /// Dead letters.
    pub letters: Vec<LetterRow>,
}

/// Everything that happened, in order.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The moments.
    pub moments: Vec<Moment>,
}

impl History {
    /// What the reader saw, in runs that a restored copy interrupts.
    pub fn runs(&self) -> impl Iterator<Item = Vec<&Sample>> {
        self.moments.split(|moment| matches!(moment, Moment::Restored)).map(|run| {
            run.iter()
                .filter_map(|moment| match moment {
                    Moment::Saw(sample) => Some(sample),
                    Moment::Invoked { .. } | Moment::Ended { .. } | Moment::Faulted { .. } | Moment::Restored => None,
                })
                .collect()
        })
    }

    /// Whether the outcome of every process is known: if so, an input that is neither delivered nor dead was lost
    /// by someone who said that he had done it.
    #[must_use]
    pub fn all_answered(&self) -> bool {
        let unknown = |m: &Moment| matches!(m, Moment::Ended { outcome: Outcome::Unknown, .. });
        !self.moments.iter().any(unknown)
    }
}
