//! One session for one kind of work, opened when it is needed and again when it was lost.
//!
//! Invariant: a write whose answer did not come is `InDoubt`; a write that the server refused did nothing. A read may be
//! asked twice. Not here: what is asked.

use std::fmt;
use std::sync::Arc;

use hapax_sql::postgres::tokio_postgres::error::Severity;
use hapax_sql::postgres::tokio_postgres::types::ToSql;
use hapax_sql::postgres::tokio_postgres::{Error, Row};
use hapax_sql::postgres::{ConnectError, FaultClass, Limits, PostgresUrl, Session, SqlFault};
use tokio::sync::Mutex;

use crate::store::StoreError;

/// What a statement's parameters are.
pub(super) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A session that comes back.
pub(super) struct Link {
    url: PostgresUrl,
    limits: Limits,
    setup: &'static str,
    session: Mutex<Option<Arc<Session>>>,
}

/// Names are looked up nowhere but where they are written, short statements are not compiled, and the arrays of a group
/// commit stay in memory instead of a temporary file.
const SETUP: &str = "SET search_path = pg_catalog; SET jit = off; SET work_mem = '64MB'";
const LAZY: &str = "SET search_path = pg_catalog; SET jit = off; SET synchronous_commit = off";

impl Link {
    pub(super) fn new(url: PostgresUrl, limits: Limits) -> Self {
        Self { url, limits, setup: SETUP, session: Mutex::new(None) }
    }

    /// For what may be lost with the power.
    pub(super) fn lazy_commit(self) -> Self {
        Self { setup: LAZY, ..self }
    }

    /// The session, opened if there is none that lives.
    pub(super) async fn session(&self) -> Result<Arc<Session>, StoreError> {
        let mut place = self.session.lock().await;
        if let Some(session) = place.as_ref().filter(|session| session.is_reusable()) {
            return Ok(Arc::clone(session));
        }
        *place = None;
        let session = Session::connect(&self.url, &self.limits).await.map_err(|error| unreachable(&error))?;
        session
            .client()
            .batch_execute(self.setup)
            .await
            .map_err(|error| StoreError::Away(session.fault(&error).to_string()))?;
        let session = Arc::new(session);
        *place = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Closes the session, and with it whatever it holds.
    pub(super) async fn close(&self) {
        *self.session.lock().await = None;
    }

    /// Asks for rows. What was lost on the way is asked once more.
    pub(super) async fn read(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        let first = self.once(sql, parameters).await;
        match first {
            Err(Failure::Lost(message)) => {
                tracing::debug!(%message, "asking once more on a new session");
                self.once(sql, parameters).await.map_err(|failure| failure.of_a_read())
            }
            other => other.map_err(|failure| failure.of_a_read()),
        }
    }

    /// Runs a statement that writes, once.
    pub(super) async fn write(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        self.once(sql, parameters).await.map_err(|failure| failure.of_a_write())
    }

    async fn once(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, Failure> {
        let session = self.session().await.map_err(Failure::Plain)?;
        run(&session, sql, parameters).await
    }
}

/// Why a statement gave no rows.
pub(super) enum Failure {
    /// Nothing was done.
    Plain(StoreError),
    /// The session ended under it: it may have been done.
    Lost(String),
}

impl Failure {
    pub(super) fn of_a_read(self) -> StoreError {
        match self {
            Self::Plain(error) => error,
            Self::Lost(message) => StoreError::Away(message),
        }
    }

    pub(super) fn of_a_write(self) -> StoreError {
        match self {
            Self::Plain(error) => error,
            Self::Lost(message) => StoreError::InDoubt(message),
        }
    }
}

/// Runs one statement on a session; a session that failed is not used again.
pub(super) async fn run(session: &Session, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, Failure> {
    let statement = match session.prepare_cached(sql).await {
        Ok(statement) => statement,
        Err(error) => {
            // Nothing was run yet, so nothing can be in doubt.
            return Err(Failure::Plain(failure(session, &error).of_a_read()));
        }
    };
    session.client().query(&statement, parameters).await.map_err(|error| failure(session, &error))
}

fn failure(session: &Session, error: &Error) -> Failure {
    let fault = session.fault(error);
    let message = fault.to_string();
    let answered = error.as_db_error().is_some_and(|answer| answer.parsed_severity() == Some(Severity::Error));
    // 40003: the server itself does not know.
    if !answered || fault.sqlstate.as_deref() == Some("40003") {
        session.spoil();
        return Failure::Lost(message);
    }
    if !matches!(fault.class, FaultClass::Again | FaultClass::Row) {
        // A fresh session has fresh statements, and perhaps another server.
        session.spoil();
    }
    Failure::Plain(refused(&fault, message))
}

/// What an answer of the server means: it did nothing.
fn refused(fault: &SqlFault, message: String) -> StoreError {
    match fault.sqlstate.as_deref().unwrap_or_default() {
        "53100" => StoreError::Full(message),
        "XX001" | "XX002" => StoreError::Damaged(message),
        // The schema is no longer what it was when the store was opened.
        "42P01" | "42883" | "42703" | "3F000" => StoreError::Broken(message),
        // A row is there that we did not know of: our memory is not what the store has.
        "23505" => StoreError::Conflict,
        _ => StoreError::Away(message),
    }
}

fn unreachable(error: &ConnectError) -> StoreError {
    StoreError::Away(error.to_string())
}

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Link").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what the server refuses is told apart: full, damaged, gone for good, taken, worth another try. Method: one
    /// SQLSTATE of each.
    #[test]
    fn a_refusal_says_what_to_do() {
        let refusal = |state: &str| {
            let fault = SqlFault { sqlstate: Some(state.to_owned()), ..SqlFault::lost("words") };
            refused(&fault, "words".to_owned())
        };
        let words = || "words".to_owned();
        assert_eq!(refusal("53100"), StoreError::Full(words()));
        assert_eq!(refusal("XX001"), StoreError::Damaged(words()));
        assert_eq!(refusal("42P01"), StoreError::Broken(words()));
        assert_eq!(refusal("23505"), StoreError::Conflict);
        for state in ["55P03", "57014", "40P01", "25006", "42501", "53200"] {
            assert_eq!(refusal(state), StoreError::Away(words()), "{state}");
        }
    }

    /// Goal: a lost answer is doubt for a write and nothing for a read. Method: both.
    #[test]
    fn a_lost_answer_is_doubt_only_for_a_write() {
        assert_eq!(Failure::Lost("x".to_owned()).of_a_write(), StoreError::InDoubt("x".to_owned()));
        assert_eq!(Failure::Lost("x".to_owned()).of_a_read(), StoreError::Away("x".to_owned()));
        assert_eq!(Failure::Plain(StoreError::Fenced).of_a_write(), StoreError::Fenced);
    }
}
