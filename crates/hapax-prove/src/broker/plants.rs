//! Planted bugs of the broker: with the bug the judge must find something, without it the same seed must pass.

/// The bug that only a power cut shows.
pub static POWER_PLANT: &str = "broker-no-sync";

/// Each other bug and a cell that catches it.
pub static PLANTS: [(&str, &str); 13] = [
    ("broker-no-fence", "broker/stopped-before-append/postgres"),
    ("broker-ring-in-memory", "broker/point/append.before_answer/kill/embedded"),
    ("broker-ring-in-memory", "broker/point/append.before_answer/kill/postgres"),
    ("broker-undurable-snapshot", "broker/point/append.before_commit/kill/embedded"),
    ("broker-undurable-snapshot", "broker/point/append.before_commit/kill/postgres"),
    ("broker-answer-before-commit", "broker/point/append.before_commit/kill/embedded"),
    ("broker-answer-before-commit", "broker/point/append.before_commit/kill/postgres"),
    ("broker-trim-without-snapshot", "broker/retention/embedded"),
    ("broker-trim-without-snapshot", "broker/retention/postgres"),
    ("broker-start-in-memory", "broker/delete-records/embedded"),
    ("broker-start-in-memory", "broker/delete-records/postgres"),
    ("broker-compacts-last", "broker/compaction/embedded"),
    ("broker-compacts-last", "broker/compaction/postgres"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::cell::{BrokerCell, cell, cells};

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
