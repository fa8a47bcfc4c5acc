//! The rows of a SQLite table as they stand: one connection that can only read.
//!
//! Reads: the table, and who holds the file's lock. Writes: nothing. Invariant: a row is asked for by the very values
//! that a write would put into its key's columns.

use std::path::PathBuf;
use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::rows::{FoundRow, Hold, RowChoice, RowReader, RowState, TableShape, shown, shown_bytes};
use hapax_engine::sink::SinkError;
use hapax_model::letter::Cause;
use hapax_sql::sqlite::{QuoteError, open_to_look, quote_identifier, writer};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, ToSql, Transaction, TransactionBehavior, params_from_iter};

use super::config::SqliteSinkConfig;
use super::convert::Stored;
use super::error::{During, open_error, sink_error, target_name};
use super::inspect;
use super::schema::SqliteColumn;
use crate::table::Mapping;
use crate::table::mapping::NO_TABLE;
use crate::table::read::{self, deleted_column, hash_value, key_values};

/// Looks at one SQLite table.
#[derive(Debug)]
pub struct SqliteRows {
    path: PathBuf,
    name: String,
    /// None while a question is under way, and after one that was dropped.
    connection: Option<Connection>,
    config: SqliteSinkConfig,
    mapping: Arc<Mapping<SqliteColumn>>,
    shape: TableShape,
}

impl SqliteRows {
    /// Opens the file of `config` for reading only, and reads how its table is written.
    ///
    /// # Errors
    /// If the file cannot be read, or the table is not fit for what the configuration asks of it.
    pub async fn open(config: &SqliteSinkConfig) -> Result<Self, SinkError> {
        let (config, name) = (config.clone(), config.target_name());
        let opening = tokio::task::spawn_blocking(move || -> Result<Self, SinkError> {
            let path = std::path::absolute(&config.path).unwrap_or_else(|_| config.path.clone());
            let connection = connect(&path, &config)?;
            let (mapping, _) = inspect::read(&connection, &config)?;
            let shape = read::shape(config.target_name(), &mapping);
            Ok(Self {
                path,
                name: config.target_name(),
                connection: Some(connection),
                config,
                mapping: Arc::new(mapping),
                shape,
            })
        });
        opening
            .await
            .unwrap_or_else(|error| Err(SinkError::ConnectionFailed { target: name, message: error.to_string() }))
    }

    async fn run<R, F>(&mut self, work: F) -> Result<R, SinkError>
    where
        F: FnOnce(&Connection, &Mapping<SqliteColumn>) -> Result<R, Unanswered> + Send + 'static,
        R: Send + 'static,
    {
        let (taken, config, path) = (self.connection.take(), self.config.clone(), self.path.clone());
        let mapping = Arc::clone(&self.mapping);
        let asked = tokio::task::spawn_blocking(move || {
            let connection = taken.map_or_else(|| connect(&path, &config), Ok)?;
            let answer = work(&connection, &mapping).map_err(|unanswered| unanswered.into_error(&path));
            Ok((connection, answer))
        });
        let lost = |message| Err(SinkError::ConnectionLost { target: self.name.clone(), message });
        let (connection, answer) = asked.await.unwrap_or_else(|error| lost(error.to_string()))?;
        self.connection = Some(connection);
        answer
    }
}

/// Why there is no answer.
enum Unanswered {
    Database(rusqlite::Error),
    Name(QuoteError),
}

impl From<rusqlite::Error> for Unanswered {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<QuoteError> for Unanswered {
    fn from(error: QuoteError) -> Self {
        Self::Name(error)
    }
}

impl Unanswered {
    fn into_error(self, path: &std::path::Path) -> SinkError {
        match self {
            Self::Database(error) => sink_error(path, During::Look, &error),
            Self::Name(error) => {
                SinkError::Unfit { code: NO_TABLE, target: target_name(path), message: error.to_string() }
            }
        }
    }
}

fn connect(path: &std::path::Path, config: &SqliteSinkConfig) -> Result<Connection, SinkError> {
    if !path.exists() {
        return Err(open_error(&hapax_sql::sqlite::OpenError::Missing { path: path.to_owned() }));
    }
    open_to_look(path, config.busy_timeout).map_err(|error| sink_error(path, During::Look, &error))
}

impl RowReader for SqliteRows {
    fn shape(&self) -> &TableShape {
        &self.shape
    }

    fn misfits(&self, batch: &Batch) -> Vec<(usize, Cause)> {
        read::misfits(&self.mapping, batch)
    }

    fn row_keys(&self, batch: &Batch) -> Vec<Option<Vec<u8>>> {
        read::row_keys(&self.mapping, batch)
    }

    async fn find(&mut self, choice: RowChoice) -> Result<Option<FoundRow>, SinkError> {
        if self.mapping.key.is_empty() {
            return Ok(None);
        }
        self.run(move |connection, mapping| match choice {
            RowChoice::Event(batch, event) => match key_values(&read::rows(mapping, &batch), &batch.event(event)) {
                Some(values) => find(connection, mapping, &values),
                None => Ok(None),
            },
            RowChoice::Hash(key) => match hash_value(mapping, key) {
                Some(value) => find(connection, mapping, &[value]),
                None => Ok(None),
            },
        })
        .await
    }

    async fn states(&mut self, batch: Arc<Batch>, events: Vec<usize>) -> Result<Vec<RowState>, SinkError> {
        self.run(move |connection, mapping| states(connection, mapping, &batch, &events)).await
    }

    async fn count(&mut self) -> Result<u64, SinkError> {
        self.run(|connection, mapping| {
            let sql = format!("SELECT count(*) FROM main.{}", quote_identifier(&mapping.table)?);
            let count: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
            Ok(u64::try_from(count).unwrap_or_default())
        })
        .await
    }

    /// Who writes to the file. A worker does while it commits, so one look means little.
    async fn holds(&mut self) -> Result<Vec<Hold>, SinkError> {
        let path = self.path.clone();
        let found = tokio::task::spawn_blocking(move || writer(&path)).await.ok().flatten();
        Ok(found
            .map(|who| Hold {
                who,
                what: "holds the file's lock for writing".to_owned(),
                since_ms: None,
                cure: "let it finish, or end it".to_owned(),
            })
            .into_iter()
            .collect())
    }
}

fn key_is(mapping: &Mapping<SqliteColumn>) -> Result<String, QuoteError> {
    let names = mapping.key.iter().map(|at| quote_identifier(&mapping.columns[*at].live.name));
    let tests: Result<Vec<String>, QuoteError> = names.map(|name| Ok(format!("{} = ?", name?))).collect();
    Ok(format!("FROM main.{} WHERE {}", quote_identifier(&mapping.table)?, tests?.join(" AND ")))
}

/// The column that marks a removed row, or a constant where there is none.
fn deleted(mapping: &Mapping<SqliteColumn>) -> Result<String, QuoteError> {
    deleted_column(mapping).map_or_else(|| Ok("0".to_owned()), quote_identifier)
}

fn find(
    connection: &Connection,
    mapping: &Mapping<SqliteColumn>,
    values: &[Stored<'_>],
) -> Result<Option<FoundRow>, Unanswered> {
    let sql = format!("SELECT {} IS TRUE, * {} LIMIT 1", deleted(mapping)?, key_is(mapping)?);
    let mut statement = connection.prepare_cached(&sql)?;
    let names: Vec<String> = statement.column_names().skip(1).map(str::to_owned).collect();
    let mut rows = statement.query(params_from_iter(values.iter().map(|value| value as &dyn ToSql)))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let columns = names.into_iter().enumerate().map(|(at, name)| Ok((name, text(row.get_ref(at + 1)?))));
    Ok(Some(FoundRow { state: state(row)?, columns: columns.collect::<rusqlite::Result<_>>()? }))
}

fn state(row: &Row<'_>) -> rusqlite::Result<RowState> {
    Ok(if row.get(0)? { RowState::Tombstone } else { RowState::Present })
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) => Some(shown(&String::from_utf8_lossy(text))),
        ValueRef::Blob(bytes) => Some(shown_bytes(bytes)),
    }
}

fn states(
    connection: &Connection,
    mapping: &Mapping<SqliteColumn>,
    batch: &Batch,
    events: &[usize],
) -> Result<Vec<RowState>, Unanswered> {
    // One moment for all: a reader of a write-ahead log waits for nobody, and nobody waits for it.
    let moment = Transaction::new_unchecked(connection, TransactionBehavior::Deferred)?;
    states_now(&moment, mapping, batch, events)
}

/// What is there under the key of each of `events`, inside a transaction of the caller.
///
/// # Errors
/// If the table cannot be read.
pub(super) fn states_within(
    connection: &Connection,
    mapping: &Mapping<SqliteColumn>,
    batch: &Batch,
    events: &[usize],
) -> Result<Vec<RowState>, SinkError> {
    let failed = |unanswered: Unanswered| unanswered.into_error(&super::error::path_of(connection));
    states_now(connection, mapping, batch, events).map_err(failed)
}

fn states_now(
    connection: &Connection,
    mapping: &Mapping<SqliteColumn>,
    batch: &Batch,
    events: &[usize],
) -> Result<Vec<RowState>, Unanswered> {
    if mapping.key.is_empty() {
        return Ok(vec![RowState::NoKey; events.len()]);
    }
    let sql = format!("SELECT {} IS TRUE {} LIMIT 1", deleted(mapping)?, key_is(mapping)?);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = read::rows(mapping, batch);
    let mut found = Vec::with_capacity(events.len());
    for event in events {
        let Some(values) = key_values(&rows, &batch.event(*event)) else {
            found.push(RowState::NoKey);
            continue;
        };
        let mut answer = statement.query(params_from_iter(values.iter().map(|value| value as &dyn ToSql)))?;
        found.push(answer.next()?.map_or(Ok(RowState::Absent), state)?);
    }
    Ok(found)
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
