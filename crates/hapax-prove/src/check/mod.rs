//! The judge: pure functions from what was seen to what is wrong with it.
//!
//! Reads: the truth, a history, what the target holds at the end. Writes: findings.
//! Not here: which findings a guarantee allows (`setting`), reading the target (`observe`).

pub mod books;
pub mod doubt;
pub mod history;
pub mod rows;
pub mod timeline;

use std::fmt;

use crate::setting::Place;
use crate::truth::Truth;
use doubt::Doubt;
use history::{Found, History};

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Anomaly {
    /// An input that took no effect.
    Lost,
    /// An input that took effect twice.
    Doubled,
    /// Two events of one key in the wrong order.
    Reordered,
    /// A row that no input explains.
    Phantom,
    /// A key whose row is that of another event than the mode says.
    WrongState,
    /// A moment at which part of an epoch was visible.
    Torn,
    /// An epoch of a generation that had already been fenced.
    ZombieWrite,
    /// Progress that went back.
    WentBack,
    /// Totals that do not add up, or disagree with the data.
    Ledger,
    /// A rejected input without a dead letter.
    LetterLost,
    /// A rejected input with two dead letters.
    LetterDoubled,
    /// A dead letter of an input that could be delivered.
    InnocentDied,
    /// The witness knew more than the target.
    WitnessAhead,
    /// A process that did not do what the protocol says: an exit code, a missing message, a fault that never came.
    Conduct,
}

impl Anomaly {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Lost,
        Self::Doubled,
        Self::Reordered,
        Self::Phantom,
        Self::WrongState,
        Self::Torn,
        Self::ZombieWrite,
        Self::WentBack,
        Self::Ledger,
        Self::LetterLost,
        Self::LetterDoubled,
        Self::InnocentDied,
        Self::WitnessAhead,
        Self::Conduct,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Doubled => "doubled",
            Self::Reordered => "reordered",
            Self::Phantom => "phantom",
            Self::WrongState => "wrong state",
            Self::Torn => "torn epoch",
            Self::ZombieWrite => "zombie write",
            Self::WentBack => "progress went back",
            Self::Ledger => "ledger",
            Self::LetterLost => "dead letter lost",
            Self::LetterDoubled => "dead letter doubled",
            Self::InnocentDied => "innocent died",
            Self::WitnessAhead => "witness ahead",
            Self::Conduct => "conduct",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind.
    pub anomaly: Anomaly,
    /// The facts.
    pub detail: String,
}

impl Finding {
    /// A finding.
    pub fn new(anomaly: Anomaly, detail: impl Into<String>) -> Self {
        Self { anomaly, detail: detail.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.anomaly.name(), self.detail)
    }
}

/// By what a cell is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Where progress is kept.
    pub place: Place,
    /// Whether an input may be in doubt.
    pub doubt: Doubt,
}

/// Everything that is wrong with a finished cell in which the first `read` inputs should have been delivered.
#[must_use]
pub fn judge(truth: &Truth, read: usize, terms: Terms, found: &Found, history: &History) -> Vec<Finding> {
    let mut expected = truth.contents_after(read);
    let doubtful = doubt::doubtful(terms.doubt, truth.inputs.iter().take(read), &found.letters);
    let mut findings = doubt::excuse(truth.shape, terms.place, &mut expected, found, &doubtful);
    findings.extend(rows::judge(truth.shape, &expected, &found.rows, |n| truth.event(n)));
    let in_doubt = doubtful.iter().map(|input| input.line.as_str());
    let dead: Vec<&str> = truth.dead_after(read).chain(in_doubt).collect();
    findings.extend(books::judge_ledger(found, terms.place, read as u64, dead.len() as u64));
    findings.extend(books::judge_letters(&dead, &found.letters));
    findings.extend(books::judge_balance(&found.rows, &found.balance));
    findings.extend(timeline::judge(truth, history, &found.epochs));
    findings
}

/// The first few of many, as one text.
pub(crate) fn some<T: fmt::Display>(items: &[T]) -> String {
    let shown: Vec<String> = items.iter().take(5).map(ToString::to_string).collect();
    let more = items.len().saturating_sub(5);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
