//! Planted bugs of the broker: with the bug the judge must find something, without it the same seed must pass.

use super::cell::BrokerCell;
use super::run::{Done, run_cell};
use super::world::Environment;
use crate::run::{Keep, Verdict};

/// Each bug and a cell that catches it.
pub static PLANTS: [(&str, &str); 7] = [
    ("broker-no-fence", "broker/stopped-before-append/postgres"),
    ("broker-ring-in-memory", "broker/point/append.before_answer/kill/embedded"),
    ("broker-ring-in-memory", "broker/point/append.before_answer/kill/postgres"),
    ("broker-undurable-snapshot", "broker/point/append.before_commit/kill/embedded"),
    ("broker-undurable-snapshot", "broker/point/append.before_commit/kill/postgres"),
    ("broker-answer-before-commit", "broker/point/append.before_commit/kill/embedded"),
    ("broker-answer-before-commit", "broker/point/append.before_commit/kill/postgres"),
];

/// A bug that was planted, and what came of it.
#[derive(Debug, Clone)]
pub struct Planted {
    /// Its name.
    pub bug: &'static str,
    /// The run's seed.
    pub seed: u64,
    /// With the bug.
    pub with: Done,
    /// Without it.
    pub without: Done,
}

impl Planted {
    /// Whether the judge saw the bug in the history: a cell that could not be told is no catch.
    #[must_use]
    pub fn caught(&self) -> bool {
        match &self.with.verdict {
            Verdict::Failed { anomalies, .. } => {
                anomalies.iter().any(|anomaly| !["could not be run", "conduct"].contains(anomaly))
            }
            Verdict::Passed | Verdict::Refused { .. } => false,
        }
    }

    /// Whether the same seed passes without it.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.without.verdict == Verdict::Passed
    }
}

/// How many seeds a bug may escape: whether it shows is a race, which the bug may win now and then.
const SEEDS: u64 = 3;

/// Runs the cell of `bug` with the bug and without, with another seed if the bug escaped.
#[must_use]
pub fn run(environment: &Environment, bug: &'static str, cell: BrokerCell, seed: u64) -> Planted {
    let planted = Environment { plant: Some(bug.to_owned()), ..environment.clone() };
    let honest = Environment { plant: None, ..environment.clone() };
    let mut result = Planted {
        bug,
        seed,
        with: run_cell(&planted, cell, seed, Keep::Failed),
        without: run_cell(&honest, cell, seed, Keep::Failed),
    };
    while !result.caught() && result.clean() && result.seed + 1 < seed + SEEDS {
        result.seed += 1;
        result.with = run_cell(&planted, cell, result.seed, Keep::Failed);
    }
    // A bug that was caught did what it should; only one that escaped leaves something to look at.
    if matches!(result.with.verdict, Verdict::Failed { .. })
        && let Some(dir) = result.with.kept.take()
    {
        drop(std::fs::remove_dir_all(dir));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::cell::{cell, cells};

    /// Goal: every bug has a cell that exists, and cells have names of their own.
    #[test]
    fn every_bug_has_a_cell() {
        for (bug, name) in PLANTS {
            assert!(cell(name).is_some(), "{bug} names {name}, which is no cell");
        }
        let mut names: Vec<String> = cells().iter().map(BrokerCell::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), cells().len());
    }
}
