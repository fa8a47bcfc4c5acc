//! The SQL text for rows of one shape, any number of them. Names are quoted, values are bound.
//!
//! An upsert names no arbiter on MySQL: `inspect` refuses tables with a second unique index. Never `IGNORE` or
//! `REPLACE`: they swallow other violations. Assignments happen from left to right, so the guard of mode `newer` is
//! assigned last.

use hapax_model::fault::{Bug, planted};
use hapax_model::mode::ConflictMode;
use hapax_sql::QuoteError;
use hapax_sql::mysql::quote_identifier;

use super::column::MysqlColumn;
use crate::table::mapping::{FedColumn, Feed, Mapping};
use crate::table::shape::{RowKind, RowShape};

/// What the answer to an INSERT of one row carries as its insert id if the key was there already: the server says
/// nothing else of a single row that tells a new one from one that stayed as it was.
pub const WAS_THERE: u64 = u64::MAX;

/// The name of the row that is being written, where the server wants one.
const NEW_ROW: &str = "`hapax_new`";

/// How an upsert names the row that it would have inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewRow {
    /// `VALUES(c)`: MariaDB, and MySQL before 8.0.20.
    Values,
    /// A row alias: MySQL from 8.0.20 on, where `VALUES(c)` is on its way out.
    Alias,
}

/// A table, as statements name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// With its database, quoted.
    pub quoted: String,
    /// How an upsert names the row that it would have inserted.
    pub new_row: NewRow,
}

/// A statement for rows of one shape, in the parts of which its text is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    head: String,
    row: String,
    between: &'static str,
    tail: String,
    /// What a statement of a single row ends with instead.
    tail_alone: String,
}

impl Statement {
    /// Its text for so many rows.
    #[must_use]
    pub fn sql(&self, rows: usize) -> String {
        let tail = if rows == 1 { &self.tail_alone } else { &self.tail };
        let length = self.head.len() + rows * (self.row.len() + self.between.len()) + tail.len();
        let mut sql = String::with_capacity(length);
        sql.push_str(&self.head);
        for row in 0..rows {
            if row > 0 {
                sql.push_str(self.between);
            }
            sql.push_str(&self.row);
        }
        sql.push_str(tail);
        sql
    }

    /// About how many bytes of text one more row takes.
    #[must_use]
    pub const fn row_bytes(&self) -> usize {
        self.row.len() + self.between.len()
    }

    /// How many bytes of text there are around the rows.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        self.head.len() + self.tail_alone.len()
    }
}

/// What `hapax_deleted` says of a row that is there.
const PRESENT: &str = "0";
/// And of one that was removed.
const REMOVED: &str = "1";

type Columns = Mapping<MysqlColumn>;

/// The statement for rows of this shape; the parameters are the bound columns of the first row, then of the next.
///
/// # Errors
/// If a name cannot be quoted.
pub fn statement(table: &Named, mapping: &Columns, shape: &RowShape) -> Result<Statement, QuoteError> {
    match shape.kind {
        RowKind::Upsert => upsert(table, mapping, shape),
        RowKind::Delete => delete(table, mapping),
        RowKind::Tombstone => tombstone(table, mapping, shape),
    }
}

fn name(column: &FedColumn<MysqlColumn>) -> Result<String, QuoteError> {
    quote_identifier(&column.live.name)
}

impl Named {
    /// A column of the row that is there.
    fn present(&self, column: &str) -> String {
        format!("{}.{column}", self.quoted)
    }

    /// A column of the row that is being written.
    fn given(&self, column: &str) -> String {
        match self.new_row {
            NewRow::Values => format!("VALUES({column})"),
            NewRow::Alias => format!("{NEW_ROW}.{column}"),
        }
    }

    /// What stands between the rows and what is assigned.
    fn on_duplicate(&self) -> String {
        match self.new_row {
            NewRow::Values => " ON DUPLICATE KEY UPDATE ".to_owned(),
            NewRow::Alias => format!(" AS {NEW_ROW} ON DUPLICATE KEY UPDATE "),
        }
    }
}

/// Columns and the value of each, as an INSERT lists them.
#[derive(Default)]
struct Listed {
    columns: Vec<String>,
    values: Vec<&'static str>,
}

impl Listed {
    fn push(&mut self, column: String, value: &'static str) {
        self.columns.push(column);
        self.values.push(value);
    }

    fn insert(self, table: &Named, sets: &[String], marks: Option<String>) -> Statement {
        let (mut tail, mut tail_alone) = (String::new(), String::new());
        if let Some(mark) = marks {
            let on_duplicate = table.on_duplicate();
            tail = format!("{on_duplicate}{}", sets.join(", "));
            tail_alone = format!("{on_duplicate}{mark}, {}", sets.join(", "));
        }
        Statement {
            head: format!("INSERT INTO {} ({}) VALUES ", table.quoted, self.columns.join(", ")),
            row: format!("({})", self.values.join(", ")),
            between: ", ",
            tail,
            tail_alone,
        }
    }
}

fn upsert(table: &Named, mapping: &Columns, shape: &RowShape) -> Result<Statement, QuoteError> {
    let mut listed = Listed::default();
    for at in &shape.bound {
        listed.push(name(&mapping.columns[*at])?, "?");
    }
    if let Some(deleted) = mapping.columns.iter().find(|column| column.feed == Feed::Deleted) {
        listed.push(name(deleted)?, PRESENT);
    }
    let written =
        |at: usize, column: &FedColumn<MysqlColumn>| column.feed == Feed::Deleted || shape.bound.contains(&at);
    match mapping.mode {
        ConflictMode::Append => Ok(listed.insert(table, &[], None)),
        ConflictMode::Ignore => Ok(listed.insert(table, &[itself(table, mapping)?], Some(mark(table, mapping)?))),
        ConflictMode::Update | ConflictMode::Newer => {
            let sets = assignments(table, mapping, written)?;
            Ok(listed.insert(table, &sets, Some(mark(table, mapping)?)))
        }
    }
}

/// The first column of the key, set to what it is.
fn itself(table: &Named, mapping: &Columns) -> Result<String, QuoteError> {
    let key = name(&mapping.columns[mapping.key[0]])?;
    Ok(format!("{key} = {}", table.present(&key)))
}

/// The same, and the answer says so.
fn mark(table: &Named, mapping: &Columns) -> Result<String, QuoteError> {
    let key = name(&mapping.columns[mapping.key[0]])?;
    let present = table.present(&key);
    Ok(format!("{key} = IF(LAST_INSERT_ID({WAS_THERE}), {present}, {present})"))
}

/// What becomes of a row that is there: `c = new`, in mode `newer` only if the guard lets it, with the guard's own
/// column last.
fn assignments(
    table: &Named,
    mapping: &Columns,
    written: impl Fn(usize, &FedColumn<MysqlColumn>) -> bool,
) -> Result<Vec<String>, QuoteError> {
    let guard = guard(table, mapping)?;
    let (mut sets, mut last) = (Vec::new(), None);
    for (at, column) in mapping.columns.iter().enumerate() {
        if !written(at, column) || mapping.key.contains(&at) {
            continue;
        }
        let name = name(column)?;
        let given = table.given(&name);
        let set = match &guard {
            None => format!("{name} = {given}"),
            Some(guard) => format!("{name} = IF({guard}, {given}, {})", table.present(&name)),
        };
        if mapping.version == Some(at) {
            last = Some(set);
        } else {
            sets.push(set);
        }
    }
    sets.extend(last);
    if sets.is_empty() {
        // Nothing but the key: set to itself.
        sets.push(itself(table, mapping)?);
    }
    Ok(sets)
}

/// The newer row stays; none outside mode `newer`. NULL is older than anything; text is compared by its bytes, as the
/// reduction does.
fn guard(table: &Named, mapping: &Columns) -> Result<Option<String>, QuoteError> {
    let Some(at) = mapping.version.filter(|_| !planted(Bug::NewestWinsRemoved)) else { return Ok(None) };
    let column = &mapping.columns[at];
    let name = name(column)?;
    let (present, given) = (table.present(&name), table.given(&name));
    let compared = match column.live.kind.is_text() {
        true => format!("CAST({present} AS BINARY) < CAST({given} AS BINARY)"),
        false => format!("{present} < {given}"),
    };
    Ok(Some(format!("{present} IS NULL OR {compared}")))
}

/// `k = ? AND …`: the key's columns, compared with what a write would put there.
///
/// # Errors
/// If a name cannot be quoted.
pub fn by_key(mapping: &Columns) -> Result<String, QuoteError> {
    let test = |at: &usize| {
        let column = &mapping.columns[*at];
        Ok(format!("{} = {}", name(column)?, column.live.compared_to()))
    };
    let tests: Result<Vec<String>, QuoteError> = mapping.key.iter().map(test).collect();
    Ok(tests?.join(" AND "))
}

fn delete(table: &Named, mapping: &Columns) -> Result<Statement, QuoteError> {
    let head = format!("DELETE FROM {} WHERE ", table.quoted);
    if let [only] = mapping.key[..] {
        let column = &mapping.columns[only];
        return Ok(Statement {
            head: format!("{head}{} IN (", name(column)?),
            row: column.live.compared_to(),
            between: ", ",
            tail: ")".to_owned(),
            tail_alone: ")".to_owned(),
        });
    }
    Ok(Statement {
        head,
        row: format!("({})", by_key(mapping)?),
        between: " OR ",
        tail: String::new(),
        tail_alone: String::new(),
    })
}

/// A tombstone carries its key and version, and clears what a later event may leave out. Where it must be inserted,
/// columns that need a value get a neutral one.
fn tombstone(table: &Named, mapping: &Columns, shape: &RowShape) -> Result<Statement, QuoteError> {
    let mut listed = Listed::default();
    for (at, column) in mapping.columns.iter().enumerate() {
        let value = if shape.bound.contains(&at) {
            "?"
        } else if column.feed == Feed::Deleted {
            REMOVED
        } else if mapping.is_cleared(at) {
            "NULL"
        } else if column.live.required && !column.live.fills_itself {
            column.live.kind.neutral().unwrap_or("NULL")
        } else {
            continue;
        };
        listed.push(name(column)?, value);
    }
    let written = |at: usize, column: &FedColumn<MysqlColumn>| {
        mapping.version == Some(at) || column.feed == Feed::Deleted || mapping.is_cleared(at)
    };
    let sets = assignments(table, mapping, written)?;
    Ok(listed.insert(table, &sets, Some(mark(table, mapping)?)))
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
