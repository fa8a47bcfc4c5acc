//! The rows of a MySQL or MariaDB table as they stand: one session that can only read.
//!
//! Reads: the table, and which sessions make others wait. Writes: nothing. Invariant: a row is asked for by the very
//! values that a write would put into its key's columns.

use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::rows::{FoundRow, Hold, RowChoice, RowReader, RowState, TableShape, shown, shown_bytes};
use hapax_engine::sink::SinkError;
use hapax_model::key::KeyHash;
use hapax_model::letter::Cause;
use hapax_sql::QuoteError;
use hapax_sql::mysql::mysql_async::consts::ColumnType;
use hapax_sql::mysql::{FaultClass, Flavour, Row, Session, SqlFault, Value, quote_identifier};

use super::config::MysqlSinkConfig;
use super::error::{During, connect_error, sink_error};
use super::inspect::{self, Inspected};
use super::schema::text;
use super::statement;
use crate::table::kept::now_ms;
use crate::table::mapping::NO_TABLE;
use crate::table::read;

/// How many keys one question asks for.
const KEYS_PER_QUESTION: usize = 256;

/// Looks at one MySQL table.
#[derive(Debug)]
pub struct MysqlRows {
    session: Session,
    name: String,
    inspected: Inspected,
    shape: TableShape,
}

impl MysqlRows {
    /// Connects for reading only, and reads how the table is written.
    ///
    /// # Errors
    /// If the server cannot be reached, or the table is not fit for what the configuration asks of it.
    pub async fn open(config: &MysqlSinkConfig) -> Result<Self, SinkError> {
        let name = config.target_name();
        let connected = Session::connect(&config.url, &config.limits.of_a_look()).await;
        let mut session = connected.map_err(|error| connect_error(&name, &error))?;
        let read_only = session.text("SET SESSION TRANSACTION READ ONLY").await;
        read_only.map_err(|fault| sink_error(&name, During::Look, &fault))?;
        let inspected = inspect::inspect_foreign(&mut session, config).await?;
        let shape = read::shape(name.clone(), &inspected.mapping);
        Ok(Self { session, name, inspected, shape })
    }

    fn failed(&self, fault: &SqlFault) -> SinkError {
        sink_error(&self.name, During::Look, fault)
    }

    async fn ask(&mut self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, SinkError> {
        let answer = self.session.rows(sql, values).await;
        answer.map_err(|fault| self.failed(&fault))
    }

    async fn command(&mut self, sql: &str) -> Result<(), SinkError> {
        let answer = self.session.text(sql).await;
        answer.map(|_| ()).map_err(|fault| self.failed(&fault))
    }

    async fn find_row(&mut self, key: Vec<Value>) -> Result<Option<FoundRow>, SinkError> {
        let sql = format!(
            "SELECT {}, present.* FROM {} AS present WHERE {}",
            deleted(&self.name, &self.inspected)?,
            self.inspected.named.quoted,
            by_key(&self.name, &self.inspected)?
        );
        let rows = self.ask(&sql, key).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let columns = row.columns_ref().iter().enumerate().skip(1);
        let columns = columns.map(|(at, column)| (column.name_str().into_owned(), shown_value(row, at))).collect();
        Ok(Some(FoundRow { columns, state: state(row, 0) }))
    }

    async fn find_hash(&mut self, key: KeyHash) -> Result<Option<FoundRow>, SinkError> {
        match read::hash_value(&self.inspected.mapping, key).map(|value| value.bound()) {
            None => Ok(None),
            Some(value) => self.find_row(vec![value]).await,
        }
    }
}

fn unquotable(name: &str, error: &QuoteError) -> SinkError {
    SinkError::Unfit { code: NO_TABLE, target: name.to_owned(), message: error.to_string() }
}

fn by_key(name: &str, inspected: &Inspected) -> Result<String, SinkError> {
    statement::by_key(&inspected.mapping).map_err(|error| unquotable(name, &error))
}

/// Whether a row is a tombstone.
fn deleted(name: &str, inspected: &Inspected) -> Result<String, SinkError> {
    match read::deleted_column(&inspected.mapping) {
        None => Ok("FALSE".to_owned()),
        Some(column) => {
            let column = quote_identifier(column).map_err(|error| unquotable(name, &error))?;
            Ok(format!("COALESCE({column} = 1, FALSE)"))
        }
    }
}

/// What a write would put into the key's columns of an event; none if it would be refused, or there is no key.
fn key_of(inspected: &Inspected, batch: &Batch, event: usize) -> Option<Vec<Value>> {
    keys_of(inspected, batch, &[event]).pop().flatten()
}

/// The same for many events.
fn keys_of(inspected: &Inspected, batch: &Batch, events: &[usize]) -> Vec<Option<Vec<Value>>> {
    let rows = read::rows(&inspected.mapping, batch);
    let key = |event: &usize| {
        let values = read::key_values(&rows, &batch.event(*event))?;
        Some(values.iter().map(super::value::Stored::bound).collect())
    };
    events.iter().map(key).collect()
}

/// What is there under the key of each of `events`, inside a transaction of the caller.
///
/// # Errors
/// If the table cannot be read.
pub(super) async fn states(
    session: &mut Session,
    name: &str,
    inspected: &Inspected,
    batch: &Batch,
    events: &[usize],
) -> Result<Vec<RowState>, SinkError> {
    let keys = keys_of(inspected, batch, events);
    states_under(session, name, inspected, keys).await
}

/// What is there under each of `keys`, where it is one.
async fn states_under(
    session: &mut Session,
    name: &str,
    inspected: &Inspected,
    given: Vec<Option<Vec<Value>>>,
) -> Result<Vec<RowState>, SinkError> {
    let mut states = vec![RowState::NoKey; given.len()];
    let (places, keys) = given.into_iter().enumerate().filter_map(|(at, key)| Some((at, key?))).unzip();
    let places: Vec<usize> = places;
    let known = states_of(session, name, inspected, keys).await?;
    places.into_iter().zip(known).for_each(|(at, state)| states[at] = state);
    Ok(states)
}

/// The states of keys, in their order.
async fn states_of(
    session: &mut Session,
    name: &str,
    inspected: &Inspected,
    keys: Vec<Vec<Value>>,
) -> Result<Vec<RowState>, SinkError> {
    let (deleted, by_key) = (deleted(name, inspected)?, by_key(name, inspected)?);
    let mut states = vec![RowState::Absent; keys.len()];
    let mut rest = keys.into_iter();
    let mut done = 0;
    while done < states.len() {
        let count = super::plan::next_size(states.len() - done, KEYS_PER_QUESTION);
        let parts: Vec<String> = (0..count)
            .map(|n| format!("SELECT {n}, {deleted} FROM {} WHERE {by_key}", inspected.named.quoted))
            .collect();
        let values = rest.by_ref().take(count).flatten().collect();
        let answer = session.rows(&parts.join(" UNION ALL "), values).await;
        for row in answer.map_err(|fault| sink_error(name, During::Look, &fault))? {
            let at = text(&row, 0).and_then(|n| n.parse::<usize>().ok()).filter(|at| *at < count);
            if let Some(at) = at {
                states[done + at] = state(&row, 1);
            }
        }
        done += count;
    }
    Ok(states)
}

fn state(row: &Row, at: usize) -> RowState {
    match text(row, at).as_deref() {
        Some("1") => RowState::Tombstone,
        Some(_) | None => RowState::Present,
    }
}

/// A value for people; none for NULL.
fn shown_value(row: &Row, at: usize) -> Option<String> {
    match row.as_ref(at)? {
        Value::NULL => None,
        Value::Bytes(bytes) if row.columns_ref().get(at)?.column_type() == ColumnType::MYSQL_TYPE_BIT => {
            Some(bytes.iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte)).to_string())
        }
        Value::Bytes(bytes) => Some(match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => shown(text),
            Ok(_) | Err(_) => shown_bytes(bytes),
        }),
        value @ (Value::Date(..) | Value::Time(..)) => Some(value.as_sql(true).trim_matches('\'').to_owned()),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) => text(row, at),
    }
}

impl RowReader for MysqlRows {
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
            RowChoice::Event(batch, event) => match key_of(&self.inspected, &batch, event) {
                None => Ok(None),
                Some(key) => self.find_row(key).await,
            },
        }
    }

    async fn states(&mut self, batch: Arc<Batch>, events: Vec<usize>) -> Result<Vec<RowState>, SinkError> {
        // Before the transaction: while it is open, nothing but questions is done.
        let keys = keys_of(&self.inspected, &batch, &events);
        // One moment for all.
        let snapshot = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; \
                        START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
        self.command(snapshot).await?;
        let known = states_under(&mut self.session, &self.name, &self.inspected, keys).await;
        self.command("ROLLBACK").await?;
        known
    }

    async fn count(&mut self) -> Result<u64, SinkError> {
        let rows = self.ask(&format!("SELECT COUNT(*) FROM {}", self.inspected.named.quoted), Vec::new()).await?;
        Ok(rows.first().and_then(|row| text(row, 0)).and_then(|count| count.parse().ok()).unwrap_or_default())
    }

    /// Sessions that others wait for, and the oldest transaction if it is older than ten minutes.
    async fn holds(&mut self) -> Result<Vec<Hold>, SinkError> {
        let waits = match self.session.server().flavour {
            Flavour::MariaDb => WAITS_OF_MARIADB,
            Flavour::Mysql => WAITS_OF_MYSQL,
        };
        let mut holds = Vec::new();
        for (sql, old) in [(format!("{WHO}{waits}"), false), (format!("{WHO}{OLDEST}"), true)] {
            match self.session.rows(&sql, Vec::new()).await {
                Ok(rows) => holds.extend(rows.iter().map(|row| hold(row, if old { Why::Old } else { Why::Waits }))),
                // What cannot be seen is no reason to call for a person: `stuck` serves as a probe.
                Err(fault) if fault.class == FaultClass::Denied => {
                    tracing::debug!(error = %fault, "who waits for whom is told to users with the right PROCESS only");
                    return Ok(Vec::new());
                }
                Err(fault) => return Err(self.failed(&fault)),
            }
        }
        Ok(holds)
    }
}

/// Why a session is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Waits,
    Old,
}

fn hold(row: &Row, why: Why) -> Hold {
    let number = |at| text(row, at).and_then(|number| number.parse::<u64>().ok());
    let id = number(0).unwrap_or_default();
    let user = text(row, 1).unwrap_or_default();
    let command = text(row, 2).unwrap_or_default();
    let what = match why {
        Why::Waits => {
            format!("makes {} other transaction(s) wait for its locks", number(4).unwrap_or_default())
        }
        Why::Old => "has an old transaction open: nothing that it may still see can be cleaned up".to_owned(),
    };
    let (who, cure) = match id {
        0 => (
            "a prepared XA transaction".to_owned(),
            "see XA RECOVER, and end it with XA COMMIT or XA ROLLBACK".to_owned(),
        ),
        id => (format!("connection {id} of \"{user}\" ({command})"), format!("end its transaction, or KILL {id}")),
    };
    Hold { who, what, since_ms: number(3).map(|seconds| now_ms().saturating_sub(seconds * 1_000)), cure }
}

/// The connection, its user, what it does, and for how many seconds its transaction has been open. The server tells its
/// beginning in its own zone.
const WHO: &str = "SELECT b.trx_mysql_thread_id, COALESCE(p.user, ''), COALESCE(p.command, ''), \
     GREATEST(0, TIMESTAMPDIFF(SECOND, b.trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'))), ";
const WAITS_OF_MARIADB: &str = "COUNT(DISTINCT w.requesting_trx_id) FROM information_schema.INNODB_LOCK_WAITS w \
     JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id \
     LEFT JOIN information_schema.PROCESSLIST p ON p.id = b.trx_mysql_thread_id \
     GROUP BY b.trx_mysql_thread_id, p.user, p.command, b.trx_started ORDER BY b.trx_mysql_thread_id";
const WAITS_OF_MYSQL: &str = "COUNT(DISTINCT w.requesting_engine_transaction_id) FROM performance_schema.data_lock_waits w \
     JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_engine_transaction_id \
     LEFT JOIN information_schema.PROCESSLIST p ON p.id = b.trx_mysql_thread_id \
     GROUP BY b.trx_mysql_thread_id, p.user, p.command, b.trx_started ORDER BY b.trx_mysql_thread_id";
const OLDEST: &str = "0 FROM information_schema.INNODB_TRX b \
     LEFT JOIN information_schema.PROCESSLIST p ON p.id = b.trx_mysql_thread_id \
     WHERE b.trx_started < CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM') - INTERVAL 10 MINUTE \
     ORDER BY b.trx_started LIMIT 1";

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
