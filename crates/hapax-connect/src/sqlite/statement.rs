//! The SQL text for a run of rows of one shape. Names are quoted, values are bound, the arbiter is named.
//!
//! Never `OR IGNORE` or `REPLACE`: they swallow violations of other rules than the key's.

use hapax_model::fault::{Bug, planted};
use hapax_model::mode::ConflictMode;
use hapax_sql::sqlite::{QuoteError, quote_identifier};

use super::mapping::{FedColumn, Feed, Mapping};
use super::schema::Affinity;

/// What a row asks of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// Write it, as the mode says.
    Upsert,
    /// Remove it.
    Delete,
    /// Mode `newer`: mark it as removed.
    Tombstone,
}

/// Which fields an event lacks, one bit per column: those columns take their default, or stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AbsentSet(Vec<u64>);

impl AbsentSet {
    /// Forgets all and makes room for `columns` columns.
    pub fn reset(&mut self, columns: usize) {
        self.0.clear();
        self.0.resize(columns.div_ceil(64), 0);
    }

    /// Notes that column `at` is absent.
    pub fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Whether column `at` is absent.
    #[must_use]
    pub fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Whether nothing is absent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

/// Rows that one statement can carry together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowShape {
    /// What they ask.
    pub kind: RowKind,
    /// What they lack.
    pub absent: AbsentSet,
    /// Which of the mapping's columns are bound, in the order of the parameters of one row.
    pub bound: Vec<usize>,
}

impl RowShape {
    /// The shape of rows of `kind` that lack `absent`.
    #[must_use]
    pub fn new(mapping: &Mapping, kind: RowKind, absent: AbsentSet) -> Self {
        let is_bound = |at: &usize| match kind {
            RowKind::Upsert => mapping.columns[*at].feed != Feed::Deleted && !absent.contains(*at),
            RowKind::Delete => mapping.key.contains(at),
            RowKind::Tombstone => mapping.key.contains(at) || mapping.version == Some(*at),
        };
        let bound = (0..mapping.columns.len()).filter(is_bound).collect();
        Self { kind, absent, bound }
    }

    /// How many rows one statement may carry, if `wanted` are wished for.
    #[must_use]
    pub fn rows_per_statement(&self, wanted: usize) -> usize {
        /// SQLite's own limit on parameters.
        const PARAMETERS: usize = 32_766;
        match (self.kind, self.bound.len()) {
            (RowKind::Upsert, columns @ 1..) => wanted.clamp(1, PARAMETERS / columns),
            (RowKind::Upsert | RowKind::Delete | RowKind::Tombstone, _) => 1,
        }
    }

    /// The statement for `rows` rows of this shape.
    ///
    /// # Errors
    /// If a name cannot be quoted.
    pub fn sql(&self, mapping: &Mapping, rows: usize) -> Result<String, QuoteError> {
        match self.kind {
            RowKind::Upsert => upsert(mapping, self, rows),
            RowKind::Delete => delete(mapping),
            RowKind::Tombstone => tombstone(mapping),
        }
    }
}

fn name(column: &FedColumn) -> Result<String, QuoteError> {
    quote_identifier(&column.live.name)
}

/// The table under the name `present`, so that no column or table of the user's can be mistaken for it.
fn into_table(mapping: &Mapping) -> Result<String, QuoteError> {
    Ok(format!("INSERT INTO main.{} AS present", quote_identifier(&mapping.table)?))
}

fn upsert(mapping: &Mapping, shape: &RowShape, rows: usize) -> Result<String, QuoteError> {
    let into = into_table(mapping)?;
    let deleted = mapping.columns.iter().find(|column| column.feed == Feed::Deleted);
    let mut columns = Vec::new();
    for at in &shape.bound {
        columns.push(name(&mapping.columns[*at])?);
    }
    let mut values = vec!["?"; columns.len()];
    if let Some(deleted) = deleted {
        columns.push(name(deleted)?);
        values.push("0");
    }
    if columns.is_empty() {
        return Ok(format!("{into} DEFAULT VALUES"));
    }
    let row = format!("({})", values.join(", "));
    let insert = format!("{into} ({}) VALUES {}", columns.join(", "), vec![row.as_str(); rows].join(", "));
    Ok(match mapping.mode {
        ConflictMode::Append => insert,
        ConflictMode::Ignore => format!("{insert} ON CONFLICT ({}) DO NOTHING", key(mapping)?),
        ConflictMode::Update => format!("{insert} {}", do_update(mapping, shape)?),
        ConflictMode::Newer => format!("{insert} {}{}", do_update(mapping, shape)?, guard(mapping)?),
    })
}

fn key(mapping: &Mapping) -> Result<String, QuoteError> {
    let names: Result<Vec<String>, QuoteError> = mapping.key.iter().map(|at| name(&mapping.columns[*at])).collect();
    Ok(names?.join(", "))
}

fn do_update(mapping: &Mapping, shape: &RowShape) -> Result<String, QuoteError> {
    let mut sets = Vec::new();
    for (at, column) in mapping.columns.iter().enumerate() {
        let written = column.feed == Feed::Deleted || shape.bound.contains(&at);
        if written && !mapping.key.contains(&at) {
            let name = name(column)?;
            sets.push(format!("{name} = excluded.{name}"));
        }
    }
    if sets.is_empty() {
        // Nothing but the key: set to itself, so that the row counts as written.
        let name = name(&mapping.columns[mapping.key[0]])?;
        sets.push(format!("{name} = excluded.{name}"));
    }
    Ok(format!("ON CONFLICT ({}) DO UPDATE SET {}", key(mapping)?, sets.join(", ")))
}

/// The newer row stays. NULL is older than anything; text is compared by its bytes, as the reduction does.
fn guard(mapping: &Mapping) -> Result<String, QuoteError> {
    if planted(Bug::NewestWinsRemoved) {
        return Ok(String::new());
    }
    let version = mapping.version.expect("mode newer has a version column");
    let name = name(&mapping.columns[version])?;
    Ok(format!(" WHERE present.{name} IS NULL OR present.{name} COLLATE BINARY < excluded.{name}"))
}

fn delete(mapping: &Mapping) -> Result<String, QuoteError> {
    let mut tests = Vec::new();
    for at in &mapping.key {
        tests.push(format!("{} = ?", name(&mapping.columns[*at])?));
    }
    Ok(format!("DELETE FROM main.{} WHERE {}", quote_identifier(&mapping.table)?, tests.join(" AND ")))
}

/// A tombstone carries its key and version. Where it must be inserted, columns that need a value get an empty one.
fn tombstone(mapping: &Mapping) -> Result<String, QuoteError> {
    let (mut columns, mut values, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    for (at, column) in mapping.columns.iter().enumerate() {
        let value = if mapping.key.contains(&at) || mapping.version == Some(at) {
            "?"
        } else if column.feed == Feed::Deleted {
            "1"
        } else if column.live.required && !column.live.fills_itself {
            match column.live.affinity {
                Affinity::Text => "''",
                Affinity::Blob => "x''",
                Affinity::Integer | Affinity::Real | Affinity::Numeric | Affinity::Any => "0",
            }
        } else {
            continue;
        };
        let name = name(column)?;
        if mapping.version == Some(at) || column.feed == Feed::Deleted {
            sets.push(format!("{name} = excluded.{name}"));
        }
        columns.push(name);
        values.push(value);
    }
    Ok(format!(
        "{} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}{}",
        into_table(mapping)?,
        columns.join(", "),
        values.join(", "),
        key(mapping)?,
        sets.join(", "),
        guard(mapping)?
    ))
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
