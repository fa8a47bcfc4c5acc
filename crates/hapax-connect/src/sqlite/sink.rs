//! A SQLite table as a target that holds our progress beside the data: `progress: sink`.
//!
//! Invariant: what was staged is kept until its outcome is known; a commit whose future was dropped counts as in doubt.
//! Not here: the transaction itself (`commit`), progress (`progress`), the live table (`inspect`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_engine::batch::Batch;
use hapax_engine::sink::{
    Claim, Committed, EpochRecord, Reaction, SinkError, Target, TargetIdentity, TransactionalSink,
};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_model::transaction::{IllegalMove, Move, TransactionState};
use hapax_sql::sqlite::{Open, Session};
use rusqlite::Connection;

use super::commit::{Done, Job, commit};
use super::config::SqliteSinkConfig;
use super::error::{During, open_error, session_lost, sink_error};
use super::inspect::{Inspected, inspect};
use super::mapping::Mapping;
use super::progress;
use crate::metrics::SinkMetrics;

/// Delivers one lane into one table, with progress in the same file.
#[derive(Debug)]
pub struct SqliteSink {
    config: Arc<SqliteSinkConfig>,
    id: DeliveryId,
    session: Option<Session>,
    inspected: Option<Arc<Inspected>>,
    progress: Option<Progress>,
    state: TransactionState,
    staged: Option<Arc<Batch>>,
    metrics: SinkMetrics,
}

impl SqliteSink {
    /// A sink for `id`; nothing is opened before the first question.
    #[must_use]
    pub fn new(config: SqliteSinkConfig, id: DeliveryId) -> Self {
        Self {
            config: Arc::new(config),
            id,
            session: None,
            inspected: None,
            progress: None,
            state: TransactionState::Idle,
            staged: None,
            metrics: SinkMetrics::default(),
        }
    }

    /// What the sink counted so far.
    #[must_use]
    pub fn metrics(&self) -> SinkMetrics {
        self.metrics.clone()
    }

    /// How the table is written, once it was inspected: the resolved mode, why it is this one, the columns.
    #[must_use]
    pub fn mapping(&self) -> Option<&Mapping> {
        self.inspected.as_deref().map(|inspected| &inspected.mapping)
    }

    /// What happens to a key that is already there, and why; once the table was inspected.
    #[must_use]
    pub fn resolved_mode(&self) -> Option<(ConflictMode, &str)> {
        self.mapping().map(|mapping| (mapping.mode, mapping.why.as_str()))
    }

    /// The fields that columns take: whatever else an event has is unknown to the table.
    #[must_use]
    pub fn known_fields(&self) -> &[FieldPath] {
        self.mapping().map_or(&[], |mapping| &mapping.fields)
    }

    pub(super) const fn config(&self) -> &Arc<SqliteSinkConfig> {
        &self.config
    }

    pub(super) const fn id(&self) -> &DeliveryId {
        &self.id
    }

    pub(super) async fn run<R, F>(&mut self, during: During, work: F) -> Result<R, SinkError>
    where
        F: FnOnce(&mut Connection) -> Result<R, SinkError> + Send + 'static,
        R: Send + 'static,
    {
        run(&mut self.session, &self.config, during, work).await
    }

    fn step(&mut self, step: Move) -> Result<(), SinkError> {
        self.state = self.state.after(step)?;
        Ok(())
    }

    pub(super) async fn inspected(&mut self) -> Result<Arc<Inspected>, SinkError> {
        if let Some(inspected) = &self.inspected {
            return Ok(Arc::clone(inspected));
        }
        let config = Arc::clone(&self.config);
        let inspected = Arc::new(self.run(During::Look, move |connection| inspect(connection, &config)).await?);
        self.inspected = Some(Arc::clone(&inspected));
        Ok(inspected)
    }

    async fn commit(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let inspected = self.inspected().await?;
        let was = self.progress.clone().ok_or_else(|| not_claimed(&self.config))?;
        let batch = self.staged.clone().unwrap_or_default();
        let events = batch.len() as u64;
        let during = During::Epoch(record.epoch);
        let config = Arc::clone(&self.config);
        let job = Job { config, id: self.id.clone(), inspected, was, record: record.clone(), batch };
        let work = move |connection: &mut Connection| {
            let begun = Instant::now();
            commit(connection, &job).map(|done| (done, begun.elapsed()))
        };
        let (done, took): (_, Duration) = self.run(during, work).await?;
        self.metrics.committed(events, &done.written, took);
        self.inspected = Some(Arc::clone(&done.inspected));
        self.progress = Some(done.progress.clone());
        let Done { progress, written, dead_inputs, causes, .. } = done;
        Ok(Committed { stored: true, progress, written, dead_inputs, causes })
    }
}

/// Runs `work` on the session, opening it first if there is none; after doubt the connection is thrown away.
pub(super) async fn run<R, F>(
    session: &mut Option<Session>,
    config: &SqliteSinkConfig,
    during: During,
    work: F,
) -> Result<R, SinkError>
where
    F: FnOnce(&mut Connection) -> Result<R, SinkError> + Send + 'static,
    R: Send + 'static,
{
    if session.is_none() {
        let opened = Session::open(&config.path, Open::Existing, config.busy_timeout).await;
        *session = Some(opened.map_err(|error| open_error(&error))?);
    }
    let session = session.as_mut().expect("it was opened just now");
    let done = session.run(work).await;
    let answer = done.map_err(|lost| session_lost(session.path(), during, &lost))?;
    if answer.as_ref().is_err_and(|error| error.reaction() == Reaction::InDoubt) {
        session.discard();
    }
    answer
}

fn not_claimed(config: &SqliteSinkConfig) -> SinkError {
    let message = "the delivery was not claimed".to_owned();
    SinkError::TransactionInitFailed { target: config.target_name(), message }
}

impl Target for SqliteSink {
    fn fields(&self) -> &[FieldPath] {
        self.known_fields()
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        self.inspected = None;
        Ok(self.inspected().await?.identity.clone())
    }

    async fn look(&mut self) -> Result<Option<Progress>, SinkError> {
        let id = self.id.clone();
        self.run(During::Look, move |connection| progress::look(connection, &id)).await
    }

    async fn others(&mut self) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        let id = self.id.clone();
        self.run(During::Look, move |connection| progress::others(connection, &id)).await
    }
}

impl TransactionalSink for SqliteSink {
    async fn init_transactions(&mut self, claim: &Claim) -> Result<Progress, SinkError> {
        let after = self.state.after(Move::Claim)?;
        self.inspected().await?;
        let (id, claim) = (self.id.clone(), claim.clone());
        let (path, waits) = (self.config.path.clone(), (self.config.claim_timeout, self.config.busy_timeout));
        let take = move |connection: &mut Connection| {
            let fail = |error| sink_error(&path, During::Claim, &error);
            connection.busy_timeout(waits.0).map_err(fail)?;
            let claimed = progress::claim(connection, &id, &claim);
            connection.busy_timeout(waits.1).map_err(fail)?;
            claimed
        };
        let progress = self.run(During::Claim, take).await?;
        self.progress = Some(progress.clone());
        self.state = after;
        Ok(progress)
    }

    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError> {
        let after = self.state.after(Move::Begin(epoch))?;
        if self.progress.is_none() {
            return Err(not_claimed(&self.config));
        }
        self.state = after;
        Ok(())
    }

    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        let after = self.state.after(Move::Write)?;
        if self.staged.is_some() {
            return Err(IllegalMove { state: self.state, tried: Move::Write }.into());
        }
        self.staged = Some(batch);
        self.state = after;
        Ok(())
    }

    async fn commit_transaction(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let committing = self.state.after(Move::Commit)?;
        // As if it had failed, until we know better: if this future is dropped, the outcome is unknown.
        self.state = committing.after(Move::Fail)?;
        let result = self.commit(record).await;
        match &result {
            Ok(_) => {
                self.state = committing.after(Move::Committed)?;
                self.staged = None;
            }
            Err(_) => self.metrics.commit_failures += 1,
        }
        result
    }

    async fn abort_transaction(&mut self) -> Result<(), SinkError> {
        self.step(Move::Abort)?;
        // The target knows nothing of the epoch yet: its transaction opens at the commit.
        self.staged = None;
        self.metrics.aborts += 1;
        self.step(Move::Aborted)
    }

    fn transaction_state(&self) -> TransactionState {
        self.state
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        // Progress commits with every epoch.
        Ok(())
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
