//! A SQLite table as a target that holds our progress beside the data: `progress: sink`.
//!
//! Invariant: after doubt the connection is thrown away. Not here: the sink's life (`table::sink`), the transaction
//! itself (`table::transaction`), progress (`progress`), the live table (`inspect`).

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::sink::{Claim, Reaction, SinkError};
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_sql::sqlite::Session;
use rusqlite::Connection;

use super::config::SqliteSinkConfig;
use super::error::{During, open_error, session_lost, sink_error};
use super::inspect::{Inspected, inspect};
use super::progress;
use super::transaction::{Reread, SqliteTransaction, run_to_end};
use crate::table::sink::{Done, Home, Job, TableSink};
use crate::table::transaction::commit_epoch;

/// Delivers one lane into one table, with progress in the same file.
pub type SqliteSink = TableSink<SqliteDatabase>;

/// A file as a sink asks it: over one session, on a thread of its own.
#[derive(Debug)]
pub struct SqliteDatabase {
    pub(super) config: Arc<SqliteSinkConfig>,
    target: String,
    session: Option<Session>,
}

impl SqliteDatabase {
    pub(super) fn new(config: SqliteSinkConfig) -> Self {
        Self { target: config.target_name(), config: Arc::new(config), session: None }
    }

    /// Runs `work` on the session, opening it first if there is none; after doubt the connection is thrown away.
    pub(super) async fn run<R, F>(&mut self, during: During, work: F) -> Result<R, SinkError>
    where
        F: FnOnce(&mut Connection) -> Result<R, SinkError> + Send + 'static,
        R: Send + 'static,
    {
        if self.session.is_none() {
            let opened = Session::open(&self.config.path, self.config.open, self.config.busy_timeout).await;
            self.session = Some(opened.map_err(|error| open_error(&error))?);
        }
        let session = self.session.as_mut().expect("it was opened just now");
        let done = session.run(work).await;
        let answer = done.map_err(|lost| session_lost(session.path(), during, &lost))?;
        if answer.as_ref().is_err_and(|error| error.reaction() == Reaction::InDoubt) {
            session.discard();
        }
        answer
    }
}

impl SqliteSink {
    /// A sink for `id`; nothing is opened before the first question.
    #[must_use]
    pub fn new(config: SqliteSinkConfig, id: DeliveryId) -> Self {
        Self::over(SqliteDatabase::new(config), id)
    }
}

impl Home for SqliteDatabase {
    type Config = SqliteSinkConfig;
    type Inspected = Inspected;

    fn config(&self) -> &Arc<SqliteSinkConfig> {
        &self.config
    }

    fn target(&self) -> &str {
        &self.target
    }

    async fn inspect(&mut self) -> Result<Inspected, SinkError> {
        let config = Arc::clone(&self.config);
        self.run(During::Look, move |connection| inspect(connection, &config)).await
    }

    async fn look(&mut self, id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
        let id = id.clone();
        self.run(During::Look, move |connection| progress::look(connection, &id)).await
    }

    async fn others(&mut self, id: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        let id = id.clone();
        self.run(During::Look, move |connection| progress::others(connection, &id)).await
    }

    async fn claim(&mut self, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
        let (id, claim) = (id.clone(), claim.clone());
        let (path, waits) = (self.config.path.clone(), (self.config.claim_timeout, self.config.busy_timeout));
        let take = move |connection: &mut Connection| {
            let fail = |error| sink_error(&path, During::Claim, &error);
            connection.busy_timeout(waits.0).map_err(fail)?;
            let claimed = progress::claim(connection, &id, &claim);
            connection.busy_timeout(waits.1).map_err(fail)?;
            claimed
        };
        self.run(During::Claim, take).await
    }

    async fn commit(&mut self, job: Job<Self>) -> Result<Done<Inspected>, SinkError> {
        let during = During::Epoch(job.record.epoch);
        let work = move |connection: &mut Connection| {
            let begun = Instant::now();
            let mut transaction = SqliteTransaction {
                connection,
                config: &job.config,
                during,
                delivery: Some(&job.id),
                reread: Reread::No,
            };
            let unique = job.config.table.unique_keys;
            let (committed, inspected) = run_to_end(commit_epoch(&mut transaction, &job, unique))?;
            Ok(Done { committed, inspected, took: begun.elapsed() })
        };
        self.run(during, work).await
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
