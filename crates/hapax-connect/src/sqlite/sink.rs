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
use hapax_model::transaction::TransactionState;
use hapax_sql::sqlite::{Open, Session};
use rusqlite::Connection;

use super::commit::{Done, Job, commit};
use super::config::SqliteSinkConfig;
use super::error::{During, open_error, session_lost, sink_error};
use super::inspect::{Inspected, inspect};
use super::progress;
use super::schema::SqliteColumn;
use crate::metrics::SinkMetrics;
use crate::table::life::Life;
use crate::table::mapping::Mapping;

/// Delivers one lane into one table, with progress in the same file.
#[derive(Debug)]
pub struct SqliteSink {
    config: Arc<SqliteSinkConfig>,
    id: DeliveryId,
    session: Option<Session>,
    inspected: Option<Arc<Inspected>>,
    life: Life,
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
            life: Life::default(),
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
    pub fn mapping(&self) -> Option<&Mapping<SqliteColumn>> {
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
        let (was, batch) = self.life.work(|| self.config.target_name())?;
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

impl Target for SqliteSink {
    fn fields(&self) -> &[FieldPath] {
        self.known_fields()
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        let was = self.inspected.take();
        let mut inspected = match self.inspected().await {
            Ok(inspected) => inspected,
            Err(error) => {
                self.inspected = was;
                return Err(error);
            }
        };
        // A worker that looks again, after an outage, still knows which columns it has filled.
        if let Some(was) = was.filter(|was| was.identity == inspected.identity) {
            Arc::make_mut(&mut inspected).mapping.remember(&was.mapping);
            self.inspected = Some(Arc::clone(&inspected));
        }
        Ok(inspected.identity.clone())
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
        self.life.may_claim()?;
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
        self.life.claimed(progress.clone())?;
        Ok(progress)
    }

    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError> {
        self.life.begin(epoch, || self.config.target_name())
    }

    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        self.life.write(batch)
    }

    async fn commit_transaction(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let committing = self.life.committing()?;
        let committed = self.commit(record).await.inspect_err(|_| self.metrics.commit_failures += 1)?;
        self.life.committed(committing, committed.progress.clone())?;
        Ok(committed)
    }

    async fn abort_transaction(&mut self) -> Result<(), SinkError> {
        self.life.abort()?;
        self.metrics.aborts += 1;
        Ok(())
    }

    fn transaction_state(&self) -> TransactionState {
        self.life.state()
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        // Progress commits with every epoch.
        Ok(())
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
