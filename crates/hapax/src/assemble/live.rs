//! The live table of a part, as `check`, `run` and `dlq replay` need it, whatever its database.

use hapax_connect::sqlite::inspect as sqlite;
use hapax_connect::table::mapping::{FedColumn, Feed};
use hapax_connect::table::{LiveColumn, Mapping};
use hapax_model::audit::{KeyIndex, TableKind};
use hapax_model::field::FieldPath;
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
    /// Of these, those that a field of the events feeds, with the field.
    pub(crate) fed: Vec<(String, FieldPath)>,
    /// Of these, those that the database fills by itself where an event does not.
    pub(crate) fills_itself: Vec<String>,
    /// What is no reason to refuse it, but good to know.
    pub(crate) notes: Vec<String>,
    /// Why a run would stop although the table is fit, with the code of its page.
    pub(crate) would_stop: Option<(&'static str, String)>,
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
            fed: fed_columns(&live.mapping),
            fills_itself: filled_columns(&live.mapping),
            why: live.mapping.why,
            columns: live.mapping.columns.into_iter().map(|column| column.live.name).collect(),
            notes: Vec::new(),
            would_stop: None,
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
            fed: fed_columns(&live.mapping),
            fills_itself: filled_columns(&live.mapping),
            why: live.mapping.why,
            columns: live.mapping.columns.into_iter().map(|column| column.live.name).collect(),
            notes: live.notes,
            would_stop: live.would_stop,
        }
    }
}

/// The connector has refused what cannot carry the mode; whether the engine can carry the guarantee, the audit says.
#[cfg(feature = "mysql")]
impl From<hapax_connect::mysql::inspect::LiveCheck> for Live {
    fn from(live: hapax_connect::mysql::inspect::LiveCheck) -> Self {
        let mode = live.mapping.mode;
        Self {
            facts: TableFacts { kind: mysql_kind(&live.engine), mode, index: key_index(mode) },
            fed: fed_columns(&live.mapping),
            fills_itself: filled_columns(&live.mapping),
            why: live.mapping.why,
            columns: live.mapping.columns.into_iter().map(|column| column.live.name).collect(),
            notes: live.notes,
            would_stop: live.would_stop,
        }
    }
}

/// Every other engine than these is judged as the one that promises least after a crash.
#[cfg(feature = "mysql")]
fn mysql_kind(engine: &str) -> TableKind {
    match engine.to_ascii_lowercase().as_str() {
        "innodb" => TableKind::InnoDb,
        "myisam" | "aria" => TableKind::MyIsam,
        _ => TableKind::Memory,
    }
}

/// The columns that fields feed, each with its field.
fn fed_columns<C: LiveColumn>(mapping: &Mapping<C>) -> Vec<(String, FieldPath)> {
    let fed = |column: &FedColumn<C>| match column.feed {
        Feed::Field(at) => Some((column.live.name().to_owned(), mapping.fields.get(at)?.clone())),
        Feed::Key | Feed::Version | Feed::Deleted => None,
    };
    mapping.columns.iter().filter_map(fed).collect()
}

/// The columns that the database fills by itself.
fn filled_columns<C: LiveColumn>(mapping: &Mapping<C>) -> Vec<String> {
    let filled = mapping.columns.iter().filter(|column| column.live.fills_itself());
    filled.map(|column| column.live.name().to_owned()).collect()
}

/// Keyed modes are only resolved where a unique index over the key exists; `append` needs none and uses none.
pub(super) const fn key_index(mode: ConflictMode) -> KeyIndex {
    match mode {
        ConflictMode::Append => KeyIndex::Missing,
        ConflictMode::Ignore | ConflictMode::Update | ConflictMode::Newer => KeyIndex::Only,
    }
}
