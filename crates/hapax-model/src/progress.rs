//! Progress: the one row per delivery that says how far it came and who owns it.

use crate::contract::Contract;
use crate::epoch::{Epoch, Generation};
use crate::ledger::Totals;
use crate::position::Bookmark;

/// Progress as a claim or a look finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The owner; a claim adds one.
    pub generation: Generation,
    /// The last committed epoch.
    pub epoch: Epoch,
    /// Where the next input is.
    pub bookmark: Bookmark,
    /// What must not have changed since.
    pub contract: Contract,
    /// Name of the operator snapshot that belongs to `epoch`; stateless workflows have none.
    pub snapshot: Option<String>,
    /// Who claimed last, for people: process and host.
    pub session: String,
    /// What was committed so far.
    pub totals: Totals,
}

impl Progress {
    /// That of a delivery which nobody has claimed yet: its first claim makes it generation 1.
    #[must_use]
    pub fn first(start: &Bookmark, contract: &Contract, session: &str) -> Self {
        Self {
            generation: Generation(0),
            epoch: Epoch(0),
            bookmark: start.clone(),
            contract: contract.clone(),
            snapshot: None,
            session: session.to_owned(),
            totals: Totals::default(),
        }
    }
}

/// The last progress that a worker saw, kept outside the target: compared, never an authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Its epoch.
    pub epoch: Epoch,
    /// Its bookmark.
    pub bookmark: Bookmark,
}

/// What the witness says about progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WitnessVerdict {
    /// Progress is where the witness saw it, or further: the witness may lag.
    Fine,
    /// Progress lies before what was once seen: the target was restored to an older copy.
    WentBack,
}

/// Pure: compares by epoch, which only grows, because positions of two incarnations have no order.
#[must_use]
pub fn decide_witness(progress: Option<&Progress>, witness: Option<&Witness>) -> WitnessVerdict {
    let found = progress.map_or(Epoch(0), |p| p.epoch);
    match witness {
        Some(seen) if found < seen.epoch => WitnessVerdict::WentBack,
        Some(_) | None => WitnessVerdict::Fine,
    }
}
