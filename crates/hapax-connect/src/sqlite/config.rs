//! What a workflow says about its SQLite table, checked as far as it can be without the file.

use std::path::PathBuf;
use std::time::Duration;

use hapax_model::field::FieldPath;
use hapax_model::mode::{ConflictMode, ProgressPlace};

/// How many rows one INSERT carries unless the workflow says otherwise: measured, 25 to 50 % faster than one row each.
pub const ROWS_PER_STATEMENT: usize = 64;
/// How long a wait for the file's lock lasts unless the workflow says otherwise.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// A table of a SQLite file as a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteSinkConfig {
    /// The file. It must exist: a target is the user's database.
    pub path: PathBuf,
    /// The table, as it is named in the file; quoted wherever it is used.
    pub table: String,
    /// What happens to a key that is already there. None: `update` where key fields or a primary key are known, else
    /// `append`; [`Mapping::mode`](super::mapping::Mapping::mode) says which, and why.
    pub mode: Option<ConflictMode>,
    /// The fields that name a row (`deduplication.keyFields`); their columns need a unique index in keyed modes.
    pub key_fields: Vec<FieldPath>,
    /// The column that takes the key's hash instead: 16 bytes in a BLOB column, 29 characters in a TEXT column.
    pub key_column: Option<String>,
    /// Mode `newer`: the column whose higher value wins, fed by an event field. None: `hapax_version`.
    pub version_column: Option<String>,
    /// Which field feeds which column.
    pub columns: Columns,
    /// Whether events may ask for their row to be removed (`deleteWhen`).
    pub deletes: Deletes,
    /// Where progress is kept. In the state store, mode `newer` needs a `versionColumn`: a version made from positions
    /// would go back when the source's incarnation changes, of which the target then knows nothing.
    pub progress: ProgressPlace,
    /// Whether the key strategy promises that two different events never share an event key.
    pub unique_keys: UniqueKeys,
    /// How long a wait for the file's lock may last.
    pub busy_timeout: Duration,
    /// How long a claim waits for the transaction of a worker that is still at it (`claimTimeout`).
    pub claim_timeout: Duration,
    /// How many rows one statement carries at most; at least 1.
    pub rows_per_statement: usize,
}

/// Which field feeds which column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Columns {
    /// Column and field, where the names differ. Every other column takes the field of its own name.
    pub map: Vec<(String, FieldPath)>,
    /// What becomes of a field that no column takes.
    pub strictness: Strictness,
}

/// What becomes of a field that no column takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// It is counted, and named once.
    #[default]
    CountUnknown,
    /// The event is rejected.
    Strict,
}

/// Whether events may ask for their row to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deletes {
    /// Every event is a row.
    #[default]
    Never,
    /// Some events are deletes.
    Some,
}

/// Whether two different events may share an event key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UniqueKeys {
    /// Nobody says that they do not.
    #[default]
    NotPromised,
    /// The strategy promises it: two such events in one epoch stop the workflow.
    Promised,
}

impl SqliteSinkConfig {
    /// The table `table` of the file at `path`, with the defaults for everything else.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, table: &str) -> Self {
        Self {
            path: path.into(),
            table: table.to_owned(),
            mode: None,
            key_fields: Vec::new(),
            key_column: None,
            version_column: None,
            columns: Columns::default(),
            deletes: Deletes::Never,
            progress: ProgressPlace::Sink,
            unique_keys: UniqueKeys::NotPromised,
            busy_timeout: BUSY_TIMEOUT,
            claim_timeout: BUSY_TIMEOUT,
            rows_per_statement: ROWS_PER_STATEMENT,
        }
    }

    /// The target as messages name it.
    #[must_use]
    pub fn target_name(&self) -> String {
        format!("table \"{}\" of SQLite database {}", self.table, self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the defaults are those that the reference states.
    #[test]
    fn the_defaults_are_the_documented_ones() {
        let config = SqliteSinkConfig::new("a.db", "orders");
        assert_eq!(config.mode, None);
        assert_eq!((config.deletes, config.unique_keys), (Deletes::Never, UniqueKeys::NotPromised));
        assert_eq!(config.columns, Columns { map: Vec::new(), strictness: Strictness::CountUnknown });
        assert_eq!((config.rows_per_statement, config.busy_timeout), (64, Duration::from_secs(10)));
        assert_eq!(config.target_name(), "table \"orders\" of SQLite database a.db");
    }
}
