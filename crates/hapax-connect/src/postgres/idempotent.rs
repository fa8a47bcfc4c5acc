//! A PostgreSQL table as a target that holds none of our tables: `progress: state`.
//!
//! One transaction of its own per batch. Invariant: the database gets rows of the user's table and nothing else.
//! Not here: the sink (`table::idempotent`), progress and letters (the state store's).

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::batch::Batch;
use hapax_engine::sink::{SinkError, UpsertLimits};
use hapax_model::key::DedupStrategy;
use hapax_model::mode::ProgressPlace;
use hapax_sql::postgres::Pool;

use super::config::PostgresSinkConfig;
use super::error::During;
use super::inspect::{Inspected, inspect_foreign};
use super::sink::PostgresDatabase;
use super::transaction::PostgresTransaction;
use crate::metrics::SinkMetrics;
use crate::table::config::TableConfig;
use crate::table::idempotent::{Foreign, KeyedSink};
use crate::table::transaction::{UpsertJob, commit_rows};
use crate::table::tries::Outcome;

/// Writes rows by key, with progress elsewhere.
pub type PostgresIdempotentSink = KeyedSink<PostgresDatabase>;

impl PostgresIdempotentSink {
    /// A sink whose keys are made by `strategy`; nothing is opened before the first question.
    #[must_use]
    pub fn new(config: PostgresSinkConfig, pool: Pool, strategy: DedupStrategy) -> Self {
        let table = TableConfig { progress: ProgressPlace::State, ..config.table };
        Self::over(PostgresDatabase::new(PostgresSinkConfig { table, ..config }, pool), strategy)
    }
}

impl Foreign for PostgresDatabase {
    type Inspected = Inspected;

    fn table(&self) -> &TableConfig {
        &self.config.table
    }

    async fn inspect_foreign(&mut self) -> Result<Inspected, SinkError> {
        let session = self.session().await?;
        inspect_foreign(&session, &self.config).await
    }

    async fn upsert(
        &mut self,
        table: Arc<Inspected>,
        batch: Arc<Batch>,
        limits: &UpsertLimits,
        metrics: &mut SinkMetrics,
    ) -> Result<(Option<Outcome>, Arc<Inspected>), SinkError> {
        let session = self.session().await?;
        let begun = Instant::now();
        let job = UpsertJob { target: &self.target, unique: self.config.table.unique_keys, batch: &batch, limits };
        let mut transaction = PostgresTransaction {
            session: &session,
            config: &self.config,
            target: &self.target,
            during: During::Epoch(limits.epoch),
            delivery: None,
        };
        let done = Box::pin(commit_rows(&mut transaction, &job, table)).await;
        let (outcome, inspected) = done.inspect_err(|_| metrics.commit_failures += 1)?;
        if let Some(outcome) = &outcome {
            metrics.committed(batch.len() as u64, &outcome.written, begun.elapsed());
        }
        Ok((outcome, inspected))
    }
}

#[cfg(test)]
#[path = "idempotent_tests.rs"]
mod tests;
