//! A MySQL or MariaDB table as a target that holds our progress beside the data: `progress: sink`.
//!
//! Invariant: what was staged is kept until its outcome is known; a commit whose future was dropped counts as in doubt,
//! and its session is closed. Not here: the transaction itself (`commit`), progress (`progress`), the table (`inspect`).

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::batch::Batch;
use hapax_engine::sink::{Claim, Committed, EpochRecord, SinkError, Target, TargetIdentity, TransactionalSink};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_model::transaction::TransactionState;
use hapax_sql::mysql::{Pool, Taken};

use super::column::MysqlColumn;
use super::commit::{Job, commit};
use super::config::MysqlSinkConfig;
use super::error::connect_error;
use super::inspect::{Inspected, inspect};
use super::progress;
use super::proof::Proof;
use crate::metrics::SinkMetrics;
use crate::table::life::Life;
use crate::table::mapping::Mapping;

/// Delivers one lane into one table, with progress in the same database.
#[derive(Debug)]
pub struct MysqlSink {
    config: Arc<MysqlSinkConfig>,
    pool: Pool,
    target: String,
    id: DeliveryId,
    inspected: Option<Arc<Inspected>>,
    /// A row that was written last, by its key.
    proof: Proof,
    life: Life,
    metrics: SinkMetrics,
}

impl MysqlSink {
    /// A sink for `id` over a pool that all lanes into this target share ([`MysqlSinkConfig::pool`]); nothing is
    /// opened before the first question.
    #[must_use]
    pub fn new(config: MysqlSinkConfig, pool: Pool, id: DeliveryId) -> Self {
        Self {
            target: config.target_name(),
            config: Arc::new(config),
            pool,
            id,
            inspected: None,
            proof: Proof::new(),
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
    pub fn mapping(&self) -> Option<&Mapping<MysqlColumn>> {
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

    pub(super) const fn config(&self) -> &Arc<MysqlSinkConfig> {
        &self.config
    }

    pub(super) const fn id(&self) -> &DeliveryId {
        &self.id
    }

    /// A session of the pool; it goes back when dropped, or is closed if it is not fit for that.
    pub(super) async fn session(&self) -> Result<Taken, SinkError> {
        take(&self.pool, &self.config).await
    }

    pub(super) async fn inspected(&mut self) -> Result<Arc<Inspected>, SinkError> {
        if let Some(inspected) = &self.inspected {
            return Ok(Arc::clone(inspected));
        }
        let mut session = self.session().await?;
        let inspected = Arc::new(inspect(&mut session, &self.config).await?);
        self.inspected = Some(Arc::clone(&inspected));
        Ok(inspected)
    }

    async fn commit(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let inspected = self.inspected().await?;
        let (was, batch) = self.life.work(|| self.target.clone())?;
        let events = batch.len() as u64;
        let job = Job {
            config: Arc::clone(&self.config),
            target: self.target.clone(),
            id: self.id.clone(),
            inspected,
            was,
            record: record.clone(),
            batch,
            proof: self.proof.clone(),
        };
        let mut session = self.session().await?;
        let begun = Instant::now();
        let done = Box::pin(commit(&mut session, &job)).await?;
        self.metrics.committed(events, &done.committed.written, begun.elapsed());
        self.inspected = Some(done.inspected);
        if let Some(proof) = done.proof {
            self.proof = proof;
        }
        Ok(done.committed)
    }
}

pub(super) async fn take(pool: &Pool, config: &MysqlSinkConfig) -> Result<Taken, SinkError> {
    pool.take(config.patience).await.map_err(|error| connect_error(&config.target_name(), &error))
}

impl Target for MysqlSink {
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
        let mut session = self.session().await?;
        progress::look(&mut session, &self.id).await
    }

    async fn others(&mut self) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        let mut session = self.session().await?;
        progress::others(&mut session, &self.id).await
    }
}

impl TransactionalSink for MysqlSink {
    async fn init_transactions(&mut self, claim: &Claim) -> Result<Progress, SinkError> {
        self.life.may_claim()?;
        self.inspected().await?;
        let mut session = self.session().await?;
        let claiming =
            progress::claim_past_blockers(&self.pool, &mut session, &self.id, claim, self.config.claim_timeout);
        let progress = Box::pin(claiming).await?;
        self.life.claimed(progress.clone())?;
        Ok(progress)
    }

    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError> {
        self.life.begin(epoch, || self.target.clone())
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
#[path = "lanes_tests.rs"]
mod lanes_tests;
#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
