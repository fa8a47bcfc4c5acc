//! What a workflow says about its SQLite file and table.

use std::path::PathBuf;
use std::time::Duration;

use hapax_sql::sqlite::Open;

pub use crate::table::config::{Columns, Deletes, Strictness, TableConfig, UniqueKeys};

/// How many rows one INSERT carries unless the workflow says otherwise: measured, 25 to 50 % faster than one row each.
pub const ROWS_PER_STATEMENT: usize = 64;
/// How long a wait for the file's lock lasts unless the workflow says otherwise; the default of `busyTimeout` is this.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a claim waits for the transaction of another worker unless the workflow says otherwise.
pub const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);

/// A table of a SQLite file as a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteSinkConfig {
    /// The file. It must exist: a target is the user's database.
    pub path: PathBuf,
    /// The table.
    pub table: TableConfig,
    /// How long a wait for the file's lock may last.
    pub busy_timeout: Duration,
    /// How long a claim waits for the transaction of a worker that is still at it (`claimTimeout`).
    pub claim_timeout: Duration,
    /// How many rows one statement carries at most; at least 1.
    pub rows_per_statement: usize,
    /// How the file is opened: `ToLook` makes nothing in it, neither our tables nor a marker.
    pub open: Open,
}

impl SqliteSinkConfig {
    /// The table `table` of the file at `path`, with the defaults for everything else.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, table: &str) -> Self {
        Self {
            path: path.into(),
            table: TableConfig::new(table),
            busy_timeout: BUSY_TIMEOUT,
            claim_timeout: CLAIM_TIMEOUT,
            rows_per_statement: ROWS_PER_STATEMENT,
            open: Open::Existing,
        }
    }

    /// The target as messages name it.
    #[must_use]
    pub fn target_name(&self) -> String {
        format!("table \"{}\" of SQLite database {}", self.table.name, self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the defaults are those that the reference states.
    #[test]
    fn the_defaults_are_the_documented_ones() {
        let config = SqliteSinkConfig::new("a.db", "orders");
        assert_eq!((config.rows_per_statement, config.busy_timeout), (64, Duration::from_secs(5)));
        assert_eq!(config.target_name(), "table \"orders\" of SQLite database a.db");
    }
}
