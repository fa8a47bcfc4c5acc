//! Planted bugs of any campaign, and those of the workflows: with the bug the prover must fail, without it the same seed must pass.

use crate::catalog::cells;
use crate::cell::Cell;
use crate::run::{Done, Keep, Surroundings as _, Trial, Verdict, run_cell};

/// Each bug and a cell that catches it; over PostgreSQL and MariaDB those that are in their own code, once more.
pub static PLANTS: [(&str, &str); 42] = [
    ("no-fence", "scenario/zombie-early/exactly-once/append+sink"),
    ("ack-before-commit", "scenario/first-epoch/exactly-once/append+sink"),
    ("progress-before-fence", "scenario/take-over/exactly-once/append+sink"),
    ("commit-outcome-ignored", "scenario/failing-last-commit/exactly-once/append+sink"),
    ("unconditional-reclaim", "scenario/doubtful-zombie/exactly-once/append+sink"),
    ("offsets-before-effect", "scenario/naive-kills/at-least-once/append+state"),
    ("progress-outside-transaction", "point/sql.commit_sent/kill/exactly-once/append+sink"),
    ("reduction-keeps-last-in-ignore", "scenario/plain/at-most-once/ignore-differing+sink"),
    ("sorted-bisect", "scenario/plain/exactly-once/update-slots+sink"),
    ("newest-wins-removed", "scenario/plain/exactly-once/newer-declared+sink"),
    ("key-of-joined-fields", "scenario/plain/exactly-once/update-joined+sink"),
    ("key-without-version", "scenario/plain/exactly-once/ignore-event+sink"),
    ("position-without-incarnation", "scenario/replaced/exactly-once/append+sink"),
    ("latest-at-every-start", "scenario/latest-start/exactly-once/append+sink"),
    ("letters-outside-transaction", "point/sql.dead_letters_written/kill/exactly-once/append+sink"),
    ("prefix-saves-whole-position", "point/sql.prefix_committed/kill/exactly-once/append+sink"),
    ("no-reserve", "scenario/blocked-neighbours/exactly-once/append+sink"),
    ("no-fence", "scenario/zombie-early/exactly-once/append+sink/postgres"),
    ("ack-before-commit", "scenario/first-epoch/exactly-once/append+sink/postgres"),
    ("progress-before-fence", "scenario/take-over/exactly-once/append+sink/postgres"),
    ("commit-outcome-ignored", "scenario/failing-last-commit/exactly-once/append+sink/postgres"),
    ("commit-outcome-ignored", "scenario/spoiled-commit/exactly-once/append+sink/postgres"),
    ("unconditional-reclaim", "scenario/doubtful-zombie/exactly-once/append+sink/postgres"),
    ("offsets-before-effect", "scenario/naive-kills/at-least-once/append+state/postgres"),
    ("progress-outside-transaction", "point/sql.commit_sent/kill/exactly-once/append+sink/postgres"),
    ("reduction-keeps-last-in-ignore", "scenario/plain/at-most-once/ignore-differing+sink/postgres"),
    ("sorted-bisect", "scenario/plain/exactly-once/update-slots+sink/postgres"),
    ("newest-wins-removed", "scenario/plain/exactly-once/newer-declared+sink/postgres"),
    ("letters-outside-transaction", "point/sql.dead_letters_written/kill/exactly-once/append+sink/postgres"),
    ("prefix-saves-whole-position", "point/sql.prefix_committed/kill/exactly-once/append+sink/postgres"),
    ("no-fence", "scenario/zombie-early/exactly-once/append+sink/mysql"),
    ("ack-before-commit", "scenario/first-epoch/exactly-once/append+sink/mysql"),
    ("progress-before-fence", "scenario/take-over/exactly-once/append+sink/mysql"),
    ("commit-outcome-ignored", "scenario/failing-last-commit/exactly-once/append+sink/mysql"),
    ("commit-outcome-ignored", "scenario/spoiled-commit/exactly-once/append+sink/mysql"),
    ("unconditional-reclaim", "scenario/doubtful-zombie/exactly-once/append+sink/mysql"),
    ("offsets-before-effect", "scenario/naive-kills/at-least-once/append+state/mysql"),
    ("progress-outside-transaction", "point/sql.commit_sent/kill/exactly-once/append+sink/mysql"),
    ("reduction-keeps-last-in-ignore", "scenario/plain/at-most-once/ignore-differing+sink/mysql"),
    ("newest-wins-removed", "scenario/plain/exactly-once/newer-declared+sink/mysql"),
    ("letters-outside-transaction", "point/sql.dead_letters_written/kill/exactly-once/append+sink/mysql"),
    ("prefix-saves-whole-position", "point/sql.prefix_committed/kill/exactly-once/append+sink/mysql"),
];

/// A bug that was planted, and what came of it.
#[derive(Debug, Clone)]
pub struct Planted<C> {
    /// Its name.
    pub bug: &'static str,
    /// The run's seed.
    pub seed: u64,
    /// With the bug.
    pub with: Done<C>,
    /// Without it.
    pub without: Done<C>,
}

impl<C: Trial> Planted<C> {
    /// Whether the judge saw the bug: a cell that could not be run is no catch.
    #[must_use]
    pub fn caught(&self) -> bool {
        match &self.with.verdict {
            Verdict::Failed { anomalies, .. } => anomalies.iter().any(|anomaly| !C::NO_CATCH.contains(anomaly)),
            Verdict::Passed | Verdict::Refused { .. } => false,
        }
    }

    /// Whether the same seed passes without it.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.without.verdict == Verdict::Passed
    }

    /// One line about it.
    #[must_use]
    pub fn line(&self) -> String {
        let caught = if self.caught() { "caught" } else { "ESCAPED" };
        let clean = if self.clean() { "passes without" } else { "FAILS WITHOUT" };
        format!("{caught:8} {} ({clean}) by {}", self.bug, self.caught_by())
    }

    /// The cell, and which anomalies were found in it.
    #[must_use]
    pub fn caught_by(&self) -> String {
        let anomalies = match &self.with.verdict {
            Verdict::Failed { anomalies, .. } => anomalies.join(", "),
            Verdict::Passed | Verdict::Refused { .. } => "nothing".to_owned(),
        };
        format!("{}: {anomalies}", self.with.cell.name())
    }
}

/// The cell with this name.
#[must_use]
pub fn cell(name: &str) -> Option<Cell> {
    cells().into_iter().find(|cell| cell.name() == name)
}

/// Runs the cell of `bug` with the bug and without, with another seed if the bug escaped and may.
#[must_use]
pub fn run<C: Trial>(environment: &C::Environment, bug: &'static str, cell: C, seed: u64) -> Planted<C> {
    let (planted, honest) = (environment.with_plant(Some(bug)), environment.with_plant(None));
    let mut result = Planted {
        bug,
        seed,
        with: run_cell(&planted, cell, seed, Keep::Failed),
        without: run_cell(&honest, cell, seed, Keep::Failed),
    };
    while !result.caught() && result.clean() && result.seed + 1 < seed + C::CHANCES {
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::{broker, sources};

    /// Goal: every bug has a cell that exists, and none is listed twice with the same.
    #[test]
    fn every_bug_has_a_cell() {
        let mut pairs = PLANTS.to_vec();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), PLANTS.len());
        for (bug, name) in PLANTS {
            assert!(cell(name).is_some(), "{bug} names {name}, which is no cell");
        }
    }

    /// Goal: every bug that can be planted is planted, and no other. Method: the names in the production code, which is
    /// only read here, beside the lists of all campaigns.
    #[test]
    fn every_bug_is_planted_by_a_campaign() {
        let code = include_str!("../../hapax-model/src/fault.rs");
        let names = code.lines().filter_map(|line| line.trim().strip_prefix("(Self::")?.split('"').nth(1));
        let known: BTreeSet<&str> = names.collect();
        let of_broker = broker::plants::PLANTS.iter().map(|(bug, _)| *bug).chain([broker::plants::POWER_PLANT]);
        let of_sources = sources::plants::PLANTS.iter().map(|(bug, _)| *bug);
        let planted: BTreeSet<&str> = PLANTS.iter().map(|(bug, _)| *bug).chain(of_broker).chain(of_sources).collect();
        assert_eq!(planted, known);
    }
}
