//! The SQL text for a run of rows of one shape. Names are quoted, values are bound, the arbiter is named.
//!
//! Never `OR IGNORE` or `REPLACE`: they swallow violations of other rules than the key's.

use hapax_model::fault::{Bug, planted};
use hapax_model::mode::ConflictMode;
use hapax_sql::sqlite::{QuoteError, quote_identifier};

use super::schema::{Affinity, SqliteColumn};
use crate::table::mapping::{FedColumn, Feed, Mapping};
use crate::table::shape::{RowKind, RowShape};

/// How many rows one statement may carry, if `wanted` are wished for.
#[must_use]
pub fn rows_per_statement(shape: &RowShape, wanted: usize) -> usize {
    /// SQLite's own limit on parameters.
    const PARAMETERS: usize = 32_766;
    match (shape.kind, shape.bound.len()) {
        (RowKind::Upsert, columns @ 1..) => wanted.clamp(1, PARAMETERS / columns),
        (RowKind::Upsert | RowKind::Delete | RowKind::Tombstone, _) => 1,
    }
}

/// The statement for `rows` rows of this shape.
///
/// # Errors
/// If a name cannot be quoted.
pub fn sql(shape: &RowShape, mapping: &Mapping<SqliteColumn>, rows: usize) -> Result<String, QuoteError> {
    match shape.kind {
        RowKind::Upsert => upsert(mapping, shape, rows),
        RowKind::Delete => delete(mapping),
        RowKind::Tombstone => tombstone(mapping),
    }
}

fn name(column: &FedColumn<SqliteColumn>) -> Result<String, QuoteError> {
    quote_identifier(&column.live.name)
}

/// The table under the name `present`, so that no column or table of the user's can be mistaken for it.
fn into_table(mapping: &Mapping<SqliteColumn>) -> Result<String, QuoteError> {
    Ok(format!("INSERT INTO main.{} AS present", quote_identifier(&mapping.table)?))
}

fn upsert(mapping: &Mapping<SqliteColumn>, shape: &RowShape, rows: usize) -> Result<String, QuoteError> {
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

fn key(mapping: &Mapping<SqliteColumn>) -> Result<String, QuoteError> {
    let names: Result<Vec<String>, QuoteError> = mapping.key.iter().map(|at| name(&mapping.columns[*at])).collect();
    Ok(names?.join(", "))
}

fn do_update(mapping: &Mapping<SqliteColumn>, shape: &RowShape) -> Result<String, QuoteError> {
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
fn guard(mapping: &Mapping<SqliteColumn>) -> Result<String, QuoteError> {
    if planted(Bug::NewestWinsRemoved) {
        return Ok(String::new());
    }
    let name = name(&mapping.columns[version_of(mapping)])?;
    Ok(format!(" WHERE {}", is_older(mapping, &format!("excluded.{name}"))?))
}

fn version_of(mapping: &Mapping<SqliteColumn>) -> usize {
    mapping.version.expect("mode newer has a version column")
}

/// Whether the row that is there is older than what has this version.
fn is_older(mapping: &Mapping<SqliteColumn>, version: &str) -> Result<String, QuoteError> {
    let name = name(&mapping.columns[version_of(mapping)])?;
    Ok(format!("present.{name} IS NULL OR present.{name} COLLATE BINARY < {version}"))
}

/// The question whether a row of this kind that changed nothing had nothing to do, and the columns that are bound to it; none
/// where every row must change one.
///
/// # Errors
/// If a name cannot be quoted.
pub fn is_done(mapping: &Mapping<SqliteColumn>, kind: RowKind) -> Result<Option<(String, Vec<usize>)>, QuoteError> {
    let (exists, newer) = match (kind, mapping.mode) {
        (RowKind::Upsert, ConflictMode::Append | ConflictMode::Update) => return Ok(None),
        (RowKind::Upsert, ConflictMode::Ignore) => ("EXISTS", None),
        (RowKind::Upsert, ConflictMode::Newer) | (RowKind::Tombstone, _) => ("EXISTS", Some(version_of(mapping))),
        (RowKind::Delete, _) => ("NOT EXISTS", None),
    };
    let mut tests = Vec::new();
    for at in &mapping.key {
        tests.push(format!("present.{} = ?", name(&mapping.columns[*at])?));
    }
    if newer.is_some() {
        tests.push(format!("({}) IS NOT TRUE", is_older(mapping, "?")?));
    }
    let table = quote_identifier(&mapping.table)?;
    let sql = format!("SELECT {exists} (SELECT 1 FROM main.{table} AS present WHERE {})", tests.join(" AND "));
    Ok(Some((sql, mapping.key.iter().copied().chain(newer).collect())))
}

fn delete(mapping: &Mapping<SqliteColumn>) -> Result<String, QuoteError> {
    let mut tests = Vec::new();
    for at in &mapping.key {
        tests.push(format!("{} = ?", name(&mapping.columns[*at])?));
    }
    Ok(format!("DELETE FROM main.{} WHERE {}", quote_identifier(&mapping.table)?, tests.join(" AND ")))
}

/// A tombstone carries its key and version, and clears what a later event may leave out. Where it must be inserted,
/// columns that need a value get an empty one.
fn tombstone(mapping: &Mapping<SqliteColumn>) -> Result<String, QuoteError> {
    let (mut columns, mut values, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    for (at, column) in mapping.columns.iter().enumerate() {
        let value = if mapping.key.contains(&at) || mapping.version == Some(at) {
            "?"
        } else if column.feed == Feed::Deleted {
            "1"
        } else if mapping.is_cleared(at) {
            "NULL"
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
        if mapping.version == Some(at) || column.feed == Feed::Deleted || mapping.is_cleared(at) {
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
