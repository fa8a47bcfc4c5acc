//! A MySQL or MariaDB table as a target that holds our progress beside the data: `progress: sink`.
//!
//! Invariant: a session whose commit's future was dropped is closed. Not here: the sink's life (`table::sink`), the
//! transaction itself (`table::transaction`), progress (`progress`), the table (`inspect`).

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::sink::{Claim, SinkError};
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_sql::mysql::{Pool, Taken};

use super::config::MysqlSinkConfig;
use super::error::{During, connect_error};
use super::inspect::{Inspected, inspect};
use super::progress;
use super::proof::{Proof, last_written};
use super::transaction::MysqlTransaction;
use crate::table::rows::{Incarnations, Rows};
use crate::table::sink::{Done, Home, Job, TableSink};
use crate::table::transaction::commit_epoch;

/// Delivers one lane into one table, with progress in the same database.
pub type MysqlSink = TableSink<MysqlDatabase>;

/// A database as a sink asks it: over a pool that all lanes into this target share.
#[derive(Debug)]
pub struct MysqlDatabase {
    pub(super) config: Arc<MysqlSinkConfig>,
    pub(super) target: String,
    pool: Pool,
    /// A row that was written last, by its key.
    proof: Proof,
}

impl MysqlDatabase {
    pub(super) fn new(config: MysqlSinkConfig, pool: Pool) -> Self {
        Self { target: config.target_name(), config: Arc::new(config), pool, proof: Proof::new() }
    }

    /// A session of the pool; it goes back when dropped, or is closed if it is not fit for that.
    pub(super) async fn session(&self) -> Result<Taken, SinkError> {
        let taken = self.pool.take(self.config.patience).await;
        taken.map_err(|error| connect_error(&self.target, &error))
    }
}

impl MysqlSink {
    /// A sink for `id` over a pool that all lanes into this target share ([`MysqlSinkConfig::pool`]); nothing is
    /// opened before the first question.
    #[must_use]
    pub fn new(config: MysqlSinkConfig, pool: Pool, id: DeliveryId) -> Self {
        Self::over(MysqlDatabase::new(config, pool), id)
    }
}

impl Home for MysqlDatabase {
    type Config = MysqlSinkConfig;
    type Inspected = Inspected;

    fn config(&self) -> &Arc<MysqlSinkConfig> {
        &self.config
    }

    fn target(&self) -> &str {
        &self.target
    }

    async fn inspect(&mut self) -> Result<Inspected, SinkError> {
        let mut session = self.session().await?;
        inspect(&mut session, &self.config).await
    }

    async fn look(&mut self, id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
        let mut session = self.session().await?;
        progress::look(&mut session, id).await
    }

    async fn others(&mut self, id: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        let mut session = self.session().await?;
        progress::others(&mut session, id).await
    }

    async fn claim(&mut self, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
        let mut session = self.session().await?;
        let claiming = progress::claim_past_blockers(&self.pool, &mut session, id, claim, self.config.claim_timeout);
        Box::pin(claiming).await
    }

    async fn commit(&mut self, job: Job<Self>) -> Result<Done<Inspected>, SinkError> {
        let mut session = self.session().await?;
        let begun = Instant::now();
        let mut transaction = MysqlTransaction {
            session: &mut session,
            config: &job.config,
            target: &job.target,
            during: During::Epoch(job.record.epoch),
            delivery: Some(&job.id),
            proof: &self.proof,
            turn: None,
        };
        let committing = commit_epoch(&mut transaction, &job, job.config.table.unique_keys);
        let (committed, inspected) = Box::pin(committing).await?;
        let incarnation = Incarnations::One(job.record.incarnation().number);
        let rows = Rows::new(&inspected.mapping, &job.batch, incarnation);
        let proof = committed.as_ref().and_then(|committed| last_written(&rows, &committed.dead_inputs));
        self.proof = proof.unwrap_or_else(|| std::mem::take(&mut self.proof));
        Ok(Done { committed, inspected, took: begun.elapsed() })
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod lanes_tests;
#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
