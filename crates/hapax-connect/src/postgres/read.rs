//! The rows of a PostgreSQL table as they stand: one session that can only read.
//!
//! Reads: the table, and which sessions make others wait. Writes: nothing. Invariant: a row is asked for by the very
//! values that a write would put into its key's columns.

use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::rows::{FoundRow, Hold, RowChoice, RowReader, RowState, SHOWN_CHARACTERS, TableShape, shown};
use hapax_engine::sink::SinkError;
use hapax_model::key::KeyHash;
use hapax_model::letter::Cause;
use hapax_sql::QuoteError;
use hapax_sql::postgres::{Session, quote_identifier};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::column::{Kind, PostgresColumn};
use super::config::PostgresSinkConfig;
use super::encode::ColumnArray;
use super::error::{During, connect_error, sink_error};
use super::inspect::{self, Inspected};
use crate::table::Mapping;
use crate::table::mapping::{Feed, NO_TABLE};
use crate::table::read;

/// Looks at one PostgreSQL table.
#[derive(Debug)]
pub struct PostgresRows {
    session: Session,
    name: String,
    inspected: Inspected,
    shape: TableShape,
}

impl PostgresRows {
    /// Connects for reading only, and reads how the table is written.
    ///
    /// # Errors
    /// If the server cannot be reached, or the table is not fit for what the configuration asks of it.
    pub async fn open(config: &PostgresSinkConfig) -> Result<Self, SinkError> {
        let name = config.target_name();
        let connected = Session::connect(&config.url, &config.limits.of_a_look()).await;
        let session = connected.map_err(|error| connect_error(&name, &error))?;
        let read_only = session.client().batch_execute("SET default_transaction_read_only = on").await;
        read_only.map_err(|error| sink_error(&name, During::Look, &session.fault(&error)))?;
        let inspected = inspect::inspect_foreign(&session, config).await?;
        let shape = read::shape(name.clone(), &inspected.mapping);
        Ok(Self { session, name, inspected, shape })
    }

    async fn ask(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, SinkError> {
        ask(&self.session, &self.name, sql, values).await
    }

    async fn find_row(&self, values: &[&(dyn ToSql + Sync)]) -> Result<Option<FoundRow>, SinkError> {
        let sql = format!(
            "SELECT {}, field.key, left(field.value, {}) FROM {} \
             CROSS JOIN LATERAL json_each_text(row_to_json(present)) WITH ORDINALITY AS field (key, value, at) \
             ORDER BY field.at",
            deleted(&self.name, &self.inspected)?,
            SHOWN_CHARACTERS + 1,
            joined(&self.name, &self.inspected)?
        );
        let mut found: Option<FoundRow> = None;
        for row in self.ask(&sql, values).await? {
            let (removed, name): (bool, String) = (self.get(&row, 0)?, self.get(&row, 1)?);
            let value: Option<String> = self.get(&row, 2)?;
            let state = if removed { RowState::Tombstone } else { RowState::Present };
            let found = found.get_or_insert_with(|| FoundRow { columns: Vec::new(), state });
            found.columns.push((name, value.as_deref().map(shown)));
        }
        Ok(found)
    }

    fn get<'a, T: tokio_postgres::types::FromSql<'a>>(&self, row: &'a Row, at: usize) -> Result<T, SinkError> {
        get(&self.name, row, at)
    }

    async fn find_hash(&self, key: KeyHash) -> Result<Option<FoundRow>, SinkError> {
        let mapping: &Mapping<PostgresColumn> = &self.inspected.mapping;
        let column = mapping.key.first().map(|at| &mapping.columns[*at]).filter(|column| column.feed == Feed::Key);
        match column.map(|column| column.live.kind) {
            None => Ok(None),
            Some(Kind::Bytea) => self.find_row(&[&vec![key.0.to_vec()]]).await,
            Some(_) => self.find_row(&[&vec![key.text().to_string()]]).await,
        }
    }

    fn has_key(&self, batch: &Batch, event: usize) -> bool {
        read::key_values(&read::rows(&self.inspected.mapping, batch), &batch.event(event)).is_some()
    }
}

async fn ask(session: &Session, name: &str, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, SinkError> {
    let failed = |error: tokio_postgres::Error| sink_error(name, During::Look, &session.fault(&error));
    let statement = session.prepare_cached(sql).await.map_err(failed)?;
    session.client().query(&statement, values).await.map_err(failed)
}

fn get<'a, T: tokio_postgres::types::FromSql<'a>>(name: &str, row: &'a Row, at: usize) -> Result<T, SinkError> {
    let unread = |error: tokio_postgres::Error| SinkError::ConnectionLost {
        target: name.to_owned(),
        message: format!("the server answered with something else than was asked for: {error}"),
    };
    row.try_get(at).map_err(unread)
}

fn unquotable(name: &str, error: &QuoteError) -> SinkError {
    SinkError::Unfit { code: NO_TABLE, target: name.to_owned(), message: error.to_string() }
}

/// `table AS present JOIN unnest($1::int8[], …) WITH ORDINALITY AS given (c0, …, n) ON …`.
fn joined(name: &str, inspected: &Inspected) -> Result<String, SinkError> {
    let mapping = &inspected.mapping;
    let mut arrays = Vec::with_capacity(mapping.key.len());
    let mut names = Vec::with_capacity(mapping.key.len());
    let mut tests = Vec::with_capacity(mapping.key.len());
    for (n, at) in (1..).zip(&mapping.key) {
        let live = &mapping.columns[*at].live;
        let column = quote_identifier(&live.name).map_err(|error| unquotable(name, &error))?;
        let cast = if live.kind.is_cast() { format!("::{}", live.declared) } else { String::new() };
        arrays.push(format!("${n}::{}[]", live.kind.wire().name()));
        names.push(format!("c{at}"));
        tests.push(format!("present.{column} = given.c{at}{cast}"));
    }
    Ok(format!(
        "{} AS present JOIN unnest({}) WITH ORDINALITY AS given ({}, n) ON {}",
        inspected.named.quoted,
        arrays.join(", "),
        names.join(", "),
        tests.join(" AND ")
    ))
}

/// Whether `present` is a tombstone.
fn deleted(name: &str, inspected: &Inspected) -> Result<String, SinkError> {
    let column = inspected.mapping.columns.iter().find(|column| column.feed == Feed::Deleted);
    let Some(column) = column else { return Ok("false".to_owned()) };
    let quoted = quote_identifier(&column.live.name).map_err(|error| unquotable(name, &error))?;
    let test = if column.live.kind == Kind::Bool { "IS TRUE" } else { "IS NOT DISTINCT FROM 1" };
    Ok(format!("present.{quoted} {test}"))
}

/// What is there under the key of each of `events`; inside a transaction of the caller, or at one moment of its own.
///
/// # Errors
/// If the table cannot be read.
pub(super) async fn states(
    session: &Session,
    name: &str,
    inspected: &Inspected,
    batch: &Batch,
    events: &[usize],
) -> Result<Vec<RowState>, SinkError> {
    let (keyed, places): (Vec<usize>, Vec<usize>) = {
        let rows = read::rows(&inspected.mapping, batch);
        let has_key = |(_, event): &(usize, &usize)| read::key_values(&rows, &batch.event(**event)).is_some();
        events.iter().enumerate().filter(has_key).map(|(at, event)| (*event, at)).unzip()
    };
    let mut states = vec![RowState::NoKey; events.len()];
    if !keyed.is_empty() {
        let known = known_states(session, name, inspected, batch, &keyed).await?;
        places.into_iter().zip(known).for_each(|(at, state)| states[at] = state);
    }
    Ok(states)
}

/// The states of events that all have a key; events that the table does not know are absent.
async fn known_states(
    session: &Session,
    name: &str,
    inspected: &Inspected,
    batch: &Batch,
    events: &[usize],
) -> Result<Vec<RowState>, SinkError> {
    let mut states = vec![RowState::Absent; events.len()];
    let sql = format!("SELECT given.n, {} FROM {}", deleted(name, inspected)?, joined(name, inspected)?);
    let answer = {
        let rows = read::rows(&inspected.mapping, batch);
        let arrays: Vec<ColumnArray<'_>> =
            inspected.mapping.key.iter().map(|at| ColumnArray { rows: &rows, events, at: *at }).collect();
        let values: Vec<&(dyn ToSql + Sync)> = arrays.iter().map(|array| array as &(dyn ToSql + Sync)).collect();
        ask(session, name, &sql, &values).await?
    };
    for row in answer {
        let (n, removed): (i64, bool) = (get(name, &row, 0)?, get(name, &row, 1)?);
        let at = usize::try_from(n - 1).ok().filter(|at| *at < states.len());
        if let Some(at) = at {
            states[at] = if removed { RowState::Tombstone } else { RowState::Present };
        }
    }
    Ok(states)
}

impl RowReader for PostgresRows {
    fn shape(&self) -> &TableShape {
        &self.shape
    }

    fn misfits(&self, batch: &Batch) -> Vec<(usize, Cause)> {
        read::misfits(&self.inspected.mapping, batch)
    }

    fn row_keys(&self, batch: &Batch) -> Vec<Option<Vec<u8>>> {
        read::row_keys(&self.inspected.mapping, batch)
    }

    async fn find(&mut self, choice: RowChoice) -> Result<Option<FoundRow>, SinkError> {
        match choice {
            RowChoice::Hash(key) => self.find_hash(key).await,
            RowChoice::Event(batch, event) if self.has_key(&batch, event) => {
                let rows = read::rows(&self.inspected.mapping, &batch);
                let events = [event];
                let arrays: Vec<ColumnArray<'_>> = self
                    .inspected
                    .mapping
                    .key
                    .iter()
                    .map(|at| ColumnArray { rows: &rows, events: &events, at: *at })
                    .collect();
                let values: Vec<&(dyn ToSql + Sync)> =
                    arrays.iter().map(|array| array as &(dyn ToSql + Sync)).collect();
                self.find_row(&values).await
            }
            RowChoice::Event(_, _) => Ok(None),
        }
    }

    async fn states(&mut self, batch: Arc<Batch>, events: Vec<usize>) -> Result<Vec<RowState>, SinkError> {
        states(&self.session, &self.name, &self.inspected, &batch, &events).await
    }

    async fn count(&mut self) -> Result<u64, SinkError> {
        let rows = self.ask(&format!("SELECT count(*) FROM {}", self.inspected.named.quoted), &[]).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| self.get(row, 0))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Sessions that others wait for, and the oldest transaction if it is older than ten minutes.
    async fn holds(&mut self) -> Result<Vec<Hold>, SinkError> {
        let mut holds = Vec::new();
        for row in self.ask(BLOCKERS, &[]).await? {
            let (pid, who): (i32, String) = (self.get(&row, 0)?, self.get(&row, 1)?);
            let waiting: i64 = self.get(&row, 3)?;
            let what = format!("makes {waiting} other session(s) wait for its locks");
            holds.push(Hold { who, what, since_ms: self.since(&row)?, cure: ending(pid) });
        }
        for row in self.ask(OLDEST, &[]).await? {
            let (pid, who): (i32, String) = (self.get(&row, 0)?, self.get(&row, 1)?);
            let what = "has an old transaction open: nothing that it may still see can be cleaned up".to_owned();
            holds.push(Hold { who, what, since_ms: self.since(&row)?, cure: ending(pid) });
        }
        Ok(holds)
    }
}

impl PostgresRows {
    fn since(&self, row: &Row) -> Result<Option<u64>, SinkError> {
        let found: Option<i64> = self.get(row, 2)?;
        Ok(found.and_then(|millis| u64::try_from(millis).ok()))
    }
}

fn ending(pid: i32) -> String {
    match pid {
        0 => "see pg_prepared_xacts, and end it with COMMIT PREPARED or ROLLBACK PREPARED".to_owned(),
        pid => format!("end its transaction, or SELECT pg_terminate_backend({pid})"),
    }
}

/// A session for people: `process 4711 of "ann" ("psql", idle in transaction)`.
macro_rules! who {
    () => {
        "CASE WHEN b.pid = 0 THEN 'a prepared transaction' ELSE 'process ' || b.pid || \
         coalesce(' of \"' || a.usename || '\"', '') || ' (\"' || coalesce(a.application_name, '') || '\"' || \
         coalesce(', ' || a.state, '') || ')' END"
    };
}

const BLOCKERS: &str = concat!(
    "SELECT b.pid, ",
    who!(),
    ", (extract(epoch FROM a.xact_start) * 1000)::int8, count(DISTINCT w.pid) \
     FROM pg_catalog.pg_stat_activity w CROSS JOIN LATERAL unnest(pg_catalog.pg_blocking_pids(w.pid)) AS b (pid) \
     LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = b.pid \
     WHERE w.datname = pg_catalog.current_database() AND w.wait_event_type = 'Lock' \
     GROUP BY b.pid, a.usename, a.application_name, a.state, a.xact_start ORDER BY b.pid"
);

const OLDEST: &str = concat!(
    "SELECT b.pid, ",
    who!(),
    ", (extract(epoch FROM a.xact_start) * 1000)::int8 \
     FROM pg_catalog.pg_stat_activity a CROSS JOIN LATERAL (SELECT a.pid) AS b (pid) \
     WHERE a.datname = pg_catalog.current_database() AND a.backend_xmin IS NOT NULL \
     AND a.xact_start < pg_catalog.now() - interval '10 minutes' ORDER BY a.xact_start LIMIT 1"
);

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
