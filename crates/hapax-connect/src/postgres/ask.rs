//! Statements on our own tables: prepared once per session, every error given its meaning.
//!
//! Invariant: [`begin`] is followed by [`end`], or the session is closed; a value that does not read back as what we
//! wrote is damage with a name, never a panic.

use std::borrow::Cow;

use hapax_engine::sink::SinkError;
use hapax_model::position::DeliveryId;
use hapax_sql::postgres::{FaultClass, Session, checked_commit};
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{Row, Statement};

use super::error::{During, after_commit, own_error, target_name};
use super::tables::damaged;
use crate::table::own_row::OwnRow;

/// One bound value.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);
/// The values of a statement, in the order of `$1`, `$2` ….
pub(super) type Values<'a> = &'a [Value<'a>];

pub(super) async fn rows(
    session: &Session,
    during: During,
    sql: &str,
    values: Values<'_>,
) -> Result<Vec<Row>, SinkError> {
    let statement = prepare(session, during, sql).await?;
    session.client().query(&statement, values).await.map_err(|error| own(session, during, &error))
}

pub(super) async fn optional(
    session: &Session,
    during: During,
    sql: &str,
    values: Values<'_>,
) -> Result<Option<Row>, SinkError> {
    Ok(rows(session, during, sql, values).await?.into_iter().next())
}

pub(super) async fn one(session: &Session, during: During, sql: &str, values: Values<'_>) -> Result<Row, SinkError> {
    let found = optional(session, during, sql, values).await?;
    found.ok_or_else(|| damaged(session, "a statement that always answers with a row gave none"))
}

/// Returns how many rows were changed.
pub(super) async fn execute(
    session: &Session,
    during: During,
    sql: &str,
    values: Values<'_>,
) -> Result<u64, SinkError> {
    let statement = prepare(session, during, sql).await?;
    session.client().execute(&statement, values).await.map_err(|error| own(session, during, &error))
}

/// Several statements without values.
pub(super) async fn batch(session: &Session, during: During, sql: &str) -> Result<(), SinkError> {
    session.client().batch_execute(sql).await.map_err(|error| own(session, during, &error))
}

async fn prepare(session: &Session, during: During, sql: &str) -> Result<Statement, SinkError> {
    session.prepare_cached(sql).await.map_err(|error| own(session, during, &error))
}

fn own(session: &Session, during: During, error: &tokio_postgres::Error) -> SinkError {
    let fault = session.fault(error);
    match fault.class {
        // Another session may find another server, or the same one recovered.
        FaultClass::Reconnect | FaultClass::ReadOnly => session.spoil(),
        // A statement that was prepared before a migration must not fail for ever.
        FaultClass::Schema => session.forget_statements(),
        FaultClass::Row | FaultClass::Again | FaultClass::Denied => {}
    }
    own_error(session, during, &fault)
}

/// Opens a transaction of our own: READ COMMITTED, READ WRITE.
pub(super) async fn begin(session: &Session, during: During) -> Result<(), SinkError> {
    session.begin().await.map_err(|fault| own_error(session, during, &fault))
}

/// Opens a transaction that may turn out to have nothing to write. It gets its number at once, because a COMMIT without
/// one is taken for a transaction that was lost.
pub(super) async fn begin_perhaps_empty(session: &Session) -> Result<(), SinkError> {
    begin(session, During::Look).await?;
    batch(session, During::Look, "SELECT txid_current()").await
}

/// Commits what went well, and rolls back what did not.
pub(super) async fn end<T>(session: &Session, during: During, answer: Result<T, SinkError>) -> Result<T, SinkError> {
    match answer {
        Ok(answer) => {
            after_commit(&target_name(session), during, checked_commit(session).await)?;
            Ok(answer)
        }
        Err(error) => {
            // A session that cannot even roll back is closed, and the server rolls back by itself.
            if let Err(fault) = session.rollback().await {
                tracing::debug!(error = %fault, "no answer to ROLLBACK");
            }
            Err(error)
        }
    }
}

/// A column of a row.
pub(super) fn get<'a, T: FromSql<'a>>(session: &Session, row: &'a Row, column: usize) -> Result<T, SinkError> {
    row.try_get(column).map_err(|error| {
        let name = row.columns().get(column).map_or("?", |column| column.name());
        damaged(session, &format!("column {name} of a table of ours was changed: {error}; restore it as it was made"))
    })
}

/// A row of one of our tables.
pub(super) struct Ours<'a> {
    session: &'a Session,
    row: &'a Row,
}

pub(super) const fn ours<'a>(session: &'a Session, row: &'a Row) -> Ours<'a> {
    Ours { session, row }
}

impl OwnRow for Ours<'_> {
    fn number(&self, column: usize) -> Result<i64, SinkError> {
        get(self.session, self.row, column)
    }

    fn text(&self, column: usize) -> Result<String, SinkError> {
        get(self.session, self.row, column)
    }

    fn text_if_any(&self, column: usize) -> Result<Option<String>, SinkError> {
        get(self.session, self.row, column)
    }

    fn bytes(&self, column: usize) -> Result<Vec<u8>, SinkError> {
        get(self.session, self.row, column)
    }

    fn bytes_if_any(&self, column: usize) -> Result<Option<Vec<u8>>, SinkError> {
        get(self.session, self.row, column)
    }

    fn name(&self, column: usize) -> Cow<'_, str> {
        self.row.columns().get(column).map_or("?".into(), |column| column.name().into())
    }

    fn damaged(&self, what: &str) -> SinkError {
        damaged(self.session, what)
    }
}

/// A counter as it was stored.
pub(super) fn unsigned(session: &Session, row: &Row, column: usize) -> Result<u64, SinkError> {
    ours(session, row).unsigned(column)
}

/// The delivery named by the first three columns of a row.
pub(super) fn delivery(session: &Session, row: &Row) -> Result<DeliveryId, SinkError> {
    ours(session, row).delivery()
}
