//! A SQLite table as a target that holds none of our tables: `progress: state`.
//!
//! One transaction of its own per batch. Invariant: the file gets rows of the user's table and nothing else, no marker
//! either. Not here: the sink (`table::idempotent`), progress and letters (the state store's).

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::batch::Batch;
use hapax_engine::sink::{SinkError, UpsertLimits};
use hapax_model::key::DedupStrategy;
use hapax_model::mode::ProgressPlace;
use rusqlite::Connection;

use super::config::SqliteSinkConfig;
use super::error::During;
use super::inspect::{Inspected, inspect_foreign};
use super::sink::SqliteDatabase;
use super::transaction::{Reread, SqliteTransaction, run_to_end};
use crate::metrics::SinkMetrics;
use crate::table::config::TableConfig;
use crate::table::idempotent::{Foreign, KeyedSink};
use crate::table::transaction::{UpsertJob, commit_rows};
use crate::table::tries::Outcome;

/// Writes rows by key, with progress elsewhere.
pub type SqliteIdempotentSink = KeyedSink<SqliteDatabase>;

impl SqliteIdempotentSink {
    /// A sink whose keys are made by `strategy`; nothing is opened before the first question.
    #[must_use]
    pub fn new(config: SqliteSinkConfig, strategy: DedupStrategy) -> Self {
        let table = TableConfig { progress: ProgressPlace::State, ..config.table };
        Self::over(SqliteDatabase::new(SqliteSinkConfig { table, ..config }), strategy)
    }
}

impl Foreign for SqliteDatabase {
    type Inspected = Inspected;

    fn table(&self) -> &TableConfig {
        &self.config.table
    }

    async fn inspect_foreign(&mut self) -> Result<Inspected, SinkError> {
        let config = Arc::clone(&self.config);
        self.run(During::Look, move |connection| inspect_foreign(connection, &config)).await
    }

    async fn upsert(
        &mut self,
        table: Arc<Inspected>,
        batch: Arc<Batch>,
        limits: &UpsertLimits,
        metrics: &mut SinkMetrics,
    ) -> Result<(Option<Outcome>, Arc<Inspected>), SinkError> {
        let config = Arc::clone(&self.config);
        let (events, during, limits) = (batch.len() as u64, During::Epoch(limits.epoch), limits.clone());
        let work = move |connection: &mut Connection| {
            let begun = Instant::now();
            let target = config.target_name();
            let job = UpsertJob { target: &target, unique: config.table.unique_keys, batch: &batch, limits: &limits };
            let mut transaction =
                SqliteTransaction { connection, config: &config, during, delivery: None, reread: Reread::No };
            let (outcome, inspected) = run_to_end(commit_rows(&mut transaction, &job, table))?;
            Ok((outcome, inspected, begun.elapsed()))
        };
        let done = self.run(during, work).await;
        let (outcome, inspected, took) = done.inspect_err(|_| metrics.commit_failures += 1)?;
        if let Some(outcome) = &outcome {
            metrics.committed(events, &outcome.written, took);
        }
        Ok((outcome, inspected))
    }
}

#[cfg(test)]
#[path = "idempotent_tests.rs"]
mod tests;
