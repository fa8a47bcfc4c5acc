//! The SQL text for rows of one shape, as arrays that the server takes apart. Names are quoted, values are bound, the
//! arbiter is named.
//!
//! Where a mode leaves it open whether a row was created or overwritten, the statement answers with both counts, or
//! leaves that to the table's own counters, which is cheaper.

use hapax_model::fault::{Bug, planted};
use hapax_model::mode::ConflictMode;
use hapax_sql::QuoteError;
use hapax_sql::postgres::quote_identifier;

use super::column::{Kind, PostgresColumn};
use super::schema::Partitioned;
use crate::table::live::SilentDrop;
use crate::table::mapping::{FedColumn, Feed, Mapping};
use crate::table::shape::{RowKind, RowShape};

/// A table, as statements name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// With its schema, quoted.
    pub quoted: String,
    /// Whether rows go into partitions.
    pub partitioned: Partitioned,
}

impl Named {
    /// The question how many rows were created in the table `$1`, and in its partitions, since the server last took
    /// this session's counters.
    #[must_use]
    pub const fn inserted(&self) -> &'static str {
        match self.partitioned {
            Partitioned::No => {
                "SELECT CASE WHEN current_setting('track_counts')::bool \
                 THEN pg_catalog.pg_stat_get_xact_tuples_inserted(pg_catalog.to_regclass($1)) END"
            }
            Partitioned::Yes => {
                "SELECT CASE WHEN current_setting('track_counts')::bool \
                 THEN sum(pg_catalog.pg_stat_get_xact_tuples_inserted(part.relid))::int8 END \
                 FROM pg_catalog.pg_partition_tree(pg_catalog.to_regclass($1)) AS part"
            }
        }
    }
}

/// How a statement tells what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// By the number of rows that it changed.
    Changed,
    /// By a row: how many it changed, and how many of them it created.
    Counts,
    /// The same, and how many rows had nothing to do.
    CountsAndIdle,
}

/// A statement for rows of one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its text.
    pub sql: String,
    /// How it tells what it did.
    pub answer: Answer,
    /// The same without telling created rows from overwritten ones, if `sql` does that.
    pub unsplit: Option<String>,
}

/// Who tells created rows from overwritten ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitBy {
    /// The statement, row by row.
    Statement,
    /// The table's counters, for all statements of the transaction at once.
    Table,
}

impl Statement {
    /// The text to send, and how it answers.
    #[must_use]
    pub fn for_split(&self, by: SplitBy) -> (&str, Answer) {
        match (by, &self.unsplit) {
            (SplitBy::Table, Some(unsplit)) => (unsplit, Answer::Changed),
            (SplitBy::Table | SplitBy::Statement, _) => (&self.sql, self.answer),
        }
    }
}

fn plain(sql: String) -> Statement {
    Statement { sql, answer: Answer::Changed, unsplit: None }
}

/// What `hapax_deleted` says of a row that is there, whatever its type: the server reads it as the column's.
const PRESENT: &str = "'0'";
/// And of one that was removed.
const REMOVED: &str = "'1'";

type Sql = Result<String, QuoteError>;
type Columns = Mapping<PostgresColumn>;

/// The statement for rows of this shape; parameter `n` is the array of the `n`-th bound column.
///
/// # Errors
/// If a name cannot be quoted.
pub fn statement(table: &Named, mapping: &Columns, shape: &RowShape) -> Result<Statement, QuoteError> {
    let statement = match shape.kind {
        RowKind::Upsert => upsert(table, mapping, shape),
        RowKind::Delete => delete(table, mapping, shape).map(plain),
        RowKind::Tombstone => tombstone(table, mapping, shape).map(plain),
    }?;
    if mapping.silent_drop == SilentDrop::Impossible {
        return Ok(statement);
    }
    count_idle(table, mapping, shape, statement)
}

/// Where a trigger can leave out a row without a word, a statement that may rightly change nothing also counts the rows
/// that had nothing to do, as they were before it.
fn count_idle(
    table: &Named,
    mapping: &Columns,
    shape: &RowShape,
    statement: Statement,
) -> Result<Statement, QuoteError> {
    let newer = || is_older(mapping, &cast(mapping, version_of(mapping)));
    let (idle, created) = match (shape.kind, mapping.mode) {
        // Every row must change one.
        (RowKind::Upsert, ConflictMode::Append | ConflictMode::Update) => return Ok(statement),
        (RowKind::Upsert, ConflictMode::Ignore) => ("count(*)".to_owned(), "(SELECT count(*) FROM written)"),
        (RowKind::Upsert, ConflictMode::Newer) => {
            (format!("count(*) FILTER (WHERE ({}) IS NOT TRUE)", newer()?), "cardinality($1) - there")
        }
        (RowKind::Tombstone, _) => (format!("count(*) FILTER (WHERE ({}) IS NOT TRUE)", newer()?), "0::int8"),
        (RowKind::Delete, _) => ("cardinality($1) - count(*)".to_owned(), "0::int8"),
    };
    let sql = format!(
        "WITH known AS (SELECT count(*) AS there, {idle} AS idle FROM {} AS present JOIN {} ON {}), \
         written AS ({} RETURNING true) SELECT (SELECT count(*) FROM written), {created}, idle FROM known",
        table.quoted,
        given(mapping, shape),
        same_key(mapping)?,
        statement.unsplit.as_ref().unwrap_or(&statement.sql)
    );
    Ok(Statement { sql, answer: Answer::CountsAndIdle, unsplit: None })
}

/// The COPY for rows of this shape, if binary COPY can carry all of it: only where no conflict can occur.
///
/// # Errors
/// If a name cannot be quoted.
pub fn copy(table: &Named, mapping: &Columns, shape: &RowShape) -> Result<Option<String>, QuoteError> {
    let carried = |at: &usize| mapping.columns[*at].live.kind.is_copied();
    if mapping.mode != ConflictMode::Append || shape.bound.is_empty() || !shape.bound.iter().all(carried) {
        return Ok(None);
    }
    let names = names(mapping, &shape.bound)?;
    Ok(Some(format!("COPY {} ({}) FROM STDIN (FORMAT binary)", table.quoted, names.join(", "))))
}

fn name(column: &FedColumn<PostgresColumn>) -> Sql {
    quote_identifier(&column.live.name)
}

fn names(mapping: &Columns, columns: &[usize]) -> Result<Vec<String>, QuoteError> {
    columns.iter().map(|at| name(&mapping.columns[*at])).collect()
}

/// `unnest($1::int8[], …) AS given (c0, …)`: the bound columns of all rows.
fn given(mapping: &Columns, shape: &RowShape) -> String {
    let arrays: Vec<String> = (1..)
        .zip(&shape.bound)
        .map(|(n, at)| format!("${n}::{}[]", mapping.columns[*at].live.kind.wire().name()))
        .collect();
    let names: Vec<String> = shape.bound.iter().map(|at| format!("c{at}")).collect();
    format!("unnest({}) AS given ({})", arrays.join(", "), names.join(", "))
}

/// A bound column in the list of a SELECT without FROM: the arrays are taken apart side by side, without a table of them
/// in between. All are of one length.
fn taken(mapping: &Columns, shape: &RowShape, at: usize) -> String {
    let live = &mapping.columns[at].live;
    let n = 1 + shape.bound.iter().position(|bound| *bound == at).expect("a bound column");
    let cast = if live.kind.is_cast() { format!("::{}", live.declared) } else { String::new() };
    format!("unnest(${n}::{}[]){cast}", live.kind.wire().name())
}

/// A bound column of `given`.
fn cast(mapping: &Columns, at: usize) -> String {
    let live = &mapping.columns[at].live;
    if live.kind.is_cast() { format!("given.c{at}::{}", live.declared) } else { format!("given.c{at}") }
}

fn upsert(table: &Named, mapping: &Columns, shape: &RowShape) -> Result<Statement, QuoteError> {
    let mut columns = names(mapping, &shape.bound)?;
    let mut values: Vec<String> = shape.bound.iter().map(|at| taken(mapping, shape, *at)).collect();
    if let Some(deleted) = mapping.columns.iter().find(|column| column.feed == Feed::Deleted) {
        columns.push(name(deleted)?);
        values.push(PRESENT.to_owned());
    }
    if columns.is_empty() {
        // Every column takes its default: only how many rows there are is given.
        return Ok(plain(format!("INSERT INTO {} SELECT FROM generate_series(1, $1::int8)", table.quoted)));
    }
    let (list, values) = (columns.join(", "), values.join(", "));
    let insert = format!("INSERT INTO {} AS present ({list}) SELECT {values}", table.quoted);
    match mapping.mode {
        ConflictMode::Append => Ok(plain(insert)),
        ConflictMode::Ignore => Ok(plain(format!("{insert} ON CONFLICT ({}) DO NOTHING", key(mapping)?))),
        ConflictMode::Update => told_apart(table, mapping, shape, format!("{insert} {}", do_update(mapping, shape)?)),
        ConflictMode::Newer => {
            let sql = format!("{insert} {}{}", do_update(mapping, shape)?, guard(mapping)?);
            told_apart(table, mapping, shape, sql)
        }
    }
}

/// Tells created rows from overwritten ones. A row that was never anything else has no `xmax`. Partitioned tables have
/// no such column in RETURNING: there, keys that are present before are counted, at the price of looking them up.
fn told_apart(table: &Named, mapping: &Columns, shape: &RowShape, statement: String) -> Result<Statement, QuoteError> {
    let sql = if table.partitioned == Partitioned::No {
        format!(
            "WITH written AS ({statement} RETURNING (present.xmax = 0) AS created) \
             SELECT count(*), count(*) FILTER (WHERE created) FROM written"
        )
    } else {
        format!(
            "WITH known AS (SELECT count(*) FROM {} AS present JOIN {} ON {}), written AS ({statement} RETURNING true) \
             SELECT count(*), cardinality($1) - (SELECT * FROM known) FROM written",
            table.quoted,
            given(mapping, shape),
            same_key(mapping)?
        )
    };
    Ok(Statement { sql, answer: Answer::Counts, unsplit: Some(statement) })
}

fn key(mapping: &Columns) -> Sql {
    Ok(names(mapping, &mapping.key)?.join(", "))
}

fn same_key(mapping: &Columns) -> Sql {
    let tests: Result<Vec<String>, QuoteError> = mapping
        .key
        .iter()
        .map(|at| Ok(format!("present.{} = {}", name(&mapping.columns[*at])?, cast(mapping, *at))))
        .collect();
    Ok(tests?.join(" AND "))
}

fn do_update(mapping: &Columns, shape: &RowShape) -> Sql {
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
fn guard(mapping: &Columns) -> Sql {
    if planted(Bug::NewestWinsRemoved) {
        return Ok(String::new());
    }
    let name = name(&mapping.columns[version_of(mapping)])?;
    Ok(format!(" WHERE {}", is_older(mapping, &format!("excluded.{name}"))?))
}

fn version_of(mapping: &Columns) -> usize {
    mapping.version.expect("mode newer has a version column")
}

/// Whether the row that is there is older than what has this version.
fn is_older(mapping: &Columns, version: &str) -> Sql {
    let column = &mapping.columns[version_of(mapping)];
    let is_text = matches!(column.live.kind, Kind::Text { .. } | Kind::Char { .. });
    let bytes = if is_text { " COLLATE \"C\"" } else { "" };
    let name = name(column)?;
    Ok(format!("present.{name} IS NULL OR present.{name}{bytes} < {version}"))
}

fn delete(table: &Named, mapping: &Columns, shape: &RowShape) -> Sql {
    Ok(format!("DELETE FROM {} AS present USING {} WHERE {}", table.quoted, given(mapping, shape), same_key(mapping)?))
}

/// A tombstone carries its key and version, and clears what a later event may leave out. Where it must be inserted,
/// columns that need a value get a neutral one.
fn tombstone(table: &Named, mapping: &Columns, shape: &RowShape) -> Sql {
    let (mut columns, mut values, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    for (at, column) in mapping.columns.iter().enumerate() {
        let value = if shape.bound.contains(&at) {
            taken(mapping, shape, at)
        } else if column.feed == Feed::Deleted {
            REMOVED.to_owned()
        } else if mapping.is_cleared(at) {
            "NULL".to_owned()
        } else if column.live.required && !column.live.fills_itself {
            column.live.kind.neutral().unwrap_or("NULL").to_owned()
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
        "INSERT INTO {} AS present ({}) SELECT {} ON CONFLICT ({}) DO UPDATE SET {}{}",
        table.quoted,
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
