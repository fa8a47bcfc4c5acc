//! Statements on our own tables: prepared once per session, every error given its meaning.
//!
//! Invariant: [`begin`] is followed by [`end`], or the session is closed; a value that does not read back as what we
//! wrote is damage with a name, never a panic.

use std::borrow::Cow;

use hapax_engine::sink::SinkError;
use hapax_model::position::DeliveryId;
use hapax_sql::mysql::mysql_async::FromValueError;
use hapax_sql::mysql::mysql_async::prelude::FromValue;
use hapax_sql::mysql::{FaultClass, Row, Session, SqlFault, Value, checked_commit};

use super::error::{During, after_commit, own_error, target_name};
use super::tables::damaged;
use crate::table::own_row::OwnRow;

/// The values of a statement, in the order of its question marks.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(hapax_sql::mysql::Value::from($value)),*]
    };
}
pub(super) use values;

pub(super) async fn rows(
    session: &mut Session,
    during: During,
    sql: &str,
    values: Vec<Value>,
) -> Result<Vec<Row>, SinkError> {
    session.rows(sql, values).await.map_err(|fault| own(session, during, &fault))
}

pub(super) async fn optional(
    session: &mut Session,
    during: During,
    sql: &str,
    values: Vec<Value>,
) -> Result<Option<Row>, SinkError> {
    Ok(rows(session, during, sql, values).await?.into_iter().next())
}

pub(super) async fn one(
    session: &mut Session,
    during: During,
    sql: &str,
    values: Vec<Value>,
) -> Result<Row, SinkError> {
    let found = optional(session, during, sql, values).await?;
    found.ok_or_else(|| damaged(session, "a statement that always answers with a row gave none"))
}

/// Returns how many rows were found and changed; of an upsert, 0 only if there was none.
pub(super) async fn execute(
    session: &mut Session,
    during: During,
    sql: &str,
    values: Vec<Value>,
) -> Result<u64, SinkError> {
    match session.execute(sql, values).await {
        Ok(outcome) => Ok(outcome.affected),
        Err(fault) => Err(own(session, during, &fault)),
    }
}

/// Statements without values, such as DDL and SET.
pub(super) async fn run(session: &mut Session, during: During, sql: &str) -> Result<(), SinkError> {
    match session.text(sql).await {
        Ok(_) => Ok(()),
        Err(fault) => Err(own(session, during, &fault)),
    }
}

/// What an error of a statement on our tables means; the session draws its own conclusions.
pub(super) fn own(session: &mut Session, during: During, fault: &SqlFault) -> SinkError {
    match fault.class {
        // Another session may find another server, or the same one recovered.
        FaultClass::Reconnect | FaultClass::ReadOnly => session.spoil(),
        // A statement that was prepared before a migration must not fail for ever.
        FaultClass::Schema => session.forget_statements(),
        FaultClass::Row | FaultClass::Again | FaultClass::Denied => {}
    }
    own_error(session, during, fault)
}

/// Opens a transaction of our own: READ COMMITTED, READ WRITE.
pub(super) async fn begin(session: &mut Session, during: During) -> Result<(), SinkError> {
    session.begin().await.map_err(|fault| own(session, during, &fault))
}

/// Commits what went well, and rolls back what did not.
pub(super) async fn end<T>(
    session: &mut Session,
    during: During,
    answer: Result<T, SinkError>,
) -> Result<T, SinkError> {
    match answer {
        Ok(answer) => {
            let end = checked_commit(session).await;
            after_commit(&target_name(session), during, end)?;
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
pub(super) fn get<T: FromValue>(session: &Session, row: &Row, column: usize) -> Result<T, SinkError> {
    let changed = |why: String| {
        let name = row.columns_ref().get(column).map_or("?".into(), |column| column.name_str());
        let text = format!("column {name} of a table of ours was changed: {why}; restore it as it was made");
        damaged(session, &text)
    };
    match row.get_opt::<T, usize>(column) {
        None => Err(changed("it is not there".to_owned())),
        Some(Ok(value)) => Ok(value),
        Some(Err(FromValueError(_))) => Err(changed("its value is of another type".to_owned())),
    }
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
        self.row.columns_ref().get(column).map_or("?".into(), |column| column.name_str())
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
