//! What a workflow says about its table, checked as far as it can be without the database.

use hapax_model::field::FieldPath;
use hapax_model::mode::{ConflictMode, ProgressPlace};

use super::described::SampledField;

/// A table as a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableConfig {
    /// The table, as it is named in its database; quoted wherever it is used.
    pub name: String,
    /// What happens to a key that is already there. None: `update` where key fields or a primary key are known, else
    /// `append`; [`Mapping::mode`](super::mapping::Mapping::mode) says which, and why.
    pub mode: Option<ConflictMode>,
    /// The fields that name a row (`deduplication.keyFields`); their columns need a unique index in keyed modes.
    pub key_fields: Vec<FieldPath>,
    /// The column that takes the key's hash instead: 16 bytes in a column of bytes, 29 characters in one of text.
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
    /// What the first events hold, where somebody looked: for the table that is proposed where there is none.
    pub sampled: Vec<SampledField>,
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

impl TableConfig {
    /// The table `name`, with the defaults for everything else.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            mode: None,
            key_fields: Vec::new(),
            key_column: None,
            version_column: None,
            columns: Columns::default(),
            deletes: Deletes::Never,
            progress: ProgressPlace::Sink,
            unique_keys: UniqueKeys::NotPromised,
            sampled: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the defaults are those that the reference states.
    #[test]
    fn the_defaults_are_the_documented_ones() {
        let config = TableConfig::new("orders");
        assert_eq!((config.mode, config.progress), (None, ProgressPlace::Sink));
        assert_eq!((config.deletes, config.unique_keys), (Deletes::Never, UniqueKeys::NotPromised));
        assert_eq!(config.columns, Columns { map: Vec::new(), strictness: Strictness::CountUnknown });
    }
}
