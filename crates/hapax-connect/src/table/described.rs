//! A live table as a person would describe it, whatever its database: for whoever writes a configuration for it.
//!
//! Reads: a live table that a dialect has read. Writes: nothing. Also the types that a new table would have for a sample
//! of events. Not here: reading (each dialect's `describe`).

use hapax_model::field::FieldPath;

use super::column::LiveColumn;
use super::live::LiveTable;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedTable {
    /// Its columns in their order; those that nobody can write are left out.
    pub columns: Vec<DescribedColumn>,
    /// The columns of its primary key.
    pub primary_key: Vec<String>,
    /// The columns of its other unique indexes that could be a key.
    pub unique: Vec<Vec<String>>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedColumn {
    /// Its name.
    pub name: String,
    /// Its type as declared.
    pub declared: String,
    /// Whether NULL is refused.
    pub required: bool,
    /// Whether the database fills it in by itself.
    pub fills_itself: bool,
}

/// What is under a table's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Described {
    /// A table.
    Table(DescribedTable),
    /// Nothing.
    Nothing,
    /// Something that rows cannot be delivered into: says what.
    Other(String),
}

impl<C: LiveColumn> From<&LiveTable<C>> for DescribedTable {
    fn from(live: &LiveTable<C>) -> Self {
        let columns = live.columns.iter().map(|column| DescribedColumn {
            name: column.name().to_owned(),
            declared: column.declared().to_owned(),
            required: column.required(),
            fills_itself: column.fills_itself(),
        });
        let others = live.unique.iter().filter(|index| index.flaw.is_none() && index.columns != live.primary_key);
        Self {
            columns: columns.collect(),
            primary_key: live.primary_key.clone(),
            unique: others.map(|index| index.columns.clone()).collect(),
        }
    }
}

/// Whether a column is part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InKey {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// A field of the first events, and what its values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledField {
    /// Where it is in an event.
    pub path: FieldPath,
    /// What its values are.
    pub sort: Sort,
}

/// What the values of a field are, as far as a sample tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Only NULL was seen.
    Unknown,
    /// `true`, `false`.
    Boolean,
    /// Whole numbers.
    Integer,
    /// Numbers with digits behind the point.
    Decimal,
    /// `2026-11-16`.
    Date,
    /// `2026-11-16T03:25:42Z`.
    Timestamp,
    /// Thirty-two hexadecimal digits in groups.
    Uuid,
    /// Objects and arrays.
    Json,
    /// Any text.
    Text,
}

impl Sort {
    /// What values of both sorts are together.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (Self::Integer, Self::Decimal) | (Self::Decimal, Self::Integer) => Self::Decimal,
            (Self::Date, Self::Timestamp) | (Self::Timestamp, Self::Date) => Self::Timestamp,
            (_, _) => Self::Text,
        }
    }
}
