//! The live table of a part, as `check`, `run` and `dlq replay` need it, whatever its database.

use hapax_connect::sqlite::inspect as sqlite;
use hapax_model::audit::{KeyIndex, TableKind};
use hapax_model::mode::ConflictMode;

use super::plan::TableFacts;

/// What a look at the live table told.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    /// What the audit must know.
    pub(crate) facts: TableFacts,
    /// Why the mode is this one.
    pub(crate) why: String,
    /// The columns that are written.
    pub(crate) columns: Vec<String>,
    /// What is no reason to refuse it, but good to know.
    pub(crate) notes: Vec<String>,
}

impl Live {
    /// The mode that is really used.
    pub(crate) const fn mode(&self) -> ConflictMode {
        self.facts.mode
    }
}

impl From<sqlite::LiveCheck> for Live {
    fn from(live: sqlite::LiveCheck) -> Self {
        let mode = live.mapping.mode;
        Self {
            facts: TableFacts { kind: TableKind::Sqlite, mode, index: key_index(mode) },
            why: live.mapping.why,
            columns: live.mapping.columns.into_iter().map(|column| column.live.name).collect(),
            notes: Vec::new(),
        }
    }
}

/// The connector has refused what is not an ordinary or partitioned table that survives a crash.
#[cfg(feature = "postgres")]
impl From<hapax_connect::postgres::inspect::LiveCheck> for Live {
    fn from(live: hapax_connect::postgres::inspect::LiveCheck) -> Self {
        let mode = live.mapping.mode;
        Self {
            facts: TableFacts { kind: TableKind::PostgresLogged, mode, index: key_index(mode) },
            why: live.mapping.why,
            columns: live.mapping.columns.into_iter().map(|column| column.live.name).collect(),
            notes: live.notes,
        }
    }
}

/// Keyed modes are only resolved where a unique index over the key exists; `append` needs none and uses none.
pub(super) const fn key_index(mode: ConflictMode) -> KeyIndex {
    match mode {
        ConflictMode::Append => KeyIndex::Missing,
        ConflictMode::Ignore | ConflictMode::Update | ConflictMode::Newer => KeyIndex::Only,
    }
}
