//! A SQLite table as a target that holds none of our tables: `progress: state`.
//!
//! One transaction of its own per batch. Invariant: the file gets rows of the user's table and nothing else, no marker
//! either. Not here: progress and letters (the state store's).

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::batch::{Batch, OutputEvent};
use hapax_engine::sink::{IdempotentSink, SinkError, TargetIdentity, Upserted, Written};
use hapax_model::fault::point;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyHash};
use hapax_model::mode::ProgressPlace;
use hapax_sql::sqlite::{Session, checked_commit};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::commit::check_schema;
use super::config::SqliteSinkConfig;
use super::error::{During, after_commit, path_of, sink_error};
use super::inspect::{Inspected, inspect_foreign, inspect_foreign_again};
use super::schema::SqliteColumn;
use super::sink::run;
use super::write::{InsertCounter, write_fast, write_slowly};
use crate::metrics::SinkMetrics;
use crate::table::alone::{alone, refused};
use crate::table::config::TableConfig;
use crate::table::epoch::order;
use crate::table::mapping::Mapping;
use crate::table::rows::{Incarnations, Rows, dedup_key};
use crate::table::tries::{Before, Outcome, Pass, Tries, Trouble};

/// Writes rows by key, with progress elsewhere.
#[derive(Debug)]
pub struct SqliteIdempotentSink {
    config: Arc<SqliteSinkConfig>,
    strategy: DedupStrategy,
    session: Option<Session>,
    inspected: Option<Arc<Inspected>>,
    metrics: SinkMetrics,
}

impl SqliteIdempotentSink {
    /// A sink whose keys are made by `strategy`; nothing is opened before the first question.
    #[must_use]
    pub fn new(config: SqliteSinkConfig, strategy: DedupStrategy) -> Self {
        let table = TableConfig { progress: ProgressPlace::State, ..config.table };
        let config = SqliteSinkConfig { table, ..config };
        Self { config: Arc::new(config), strategy, session: None, inspected: None, metrics: SinkMetrics::default() }
    }

    /// What the sink counted so far.
    #[must_use]
    pub fn metrics(&self) -> SinkMetrics {
        self.metrics.clone()
    }

    /// How the table is written, once it was inspected.
    #[must_use]
    pub fn mapping(&self) -> Option<&Mapping<SqliteColumn>> {
        self.inspected.as_deref().map(|inspected| &inspected.mapping)
    }

    async fn inspected(&mut self) -> Result<Arc<Inspected>, SinkError> {
        if let Some(inspected) = &self.inspected {
            return Ok(Arc::clone(inspected));
        }
        let config = Arc::clone(&self.config);
        let work = move |connection: &mut Connection| inspect_foreign(connection, &config);
        let inspected = Arc::new(run(&mut self.session, &self.config, During::Look, work).await?);
        self.inspected = Some(Arc::clone(&inspected));
        Ok(inspected)
    }

    async fn write(&mut self, batch: Arc<Batch>) -> Result<Upserted, SinkError> {
        let inspected = self.inspected().await?;
        let config = Arc::clone(&self.config);
        let events = batch.len() as u64;
        let work = move |connection: &mut Connection| {
            let begun = Instant::now();
            let (outcome, inspected) = upsert(connection, &config, inspected, &batch)?;
            Ok((outcome, inspected, begun.elapsed()))
        };
        let done = run(&mut self.session, &self.config, During::Look, work).await;
        let (outcome, inspected, took) = done.inspect_err(|_| self.metrics.commit_failures += 1)?;
        self.metrics.committed(events, &outcome.written, took);
        self.inspected = Some(inspected);
        Ok(Upserted { written: outcome.written, rejected: outcome.refused })
    }
}

/// Writes the batch, in as many tries as it takes; only the last one leaves anything behind.
fn upsert(
    connection: &mut Connection,
    config: &SqliteSinkConfig,
    mut inspected: Arc<Inspected>,
    batch: &Batch,
) -> Result<(Outcome, Arc<Inspected>), SinkError> {
    let mut tries = Tries::new(Pass::Fast);
    loop {
        let trouble = match attempt(connection, config, &inspected, batch, &tries.pass) {
            Ok(outcome) => return Ok((outcome, inspected)),
            Err(trouble) => trouble,
        };
        if tries.after(trouble, &config.target_name())? == Before::ReadSchema {
            inspected = Arc::new(inspect_foreign_again(connection, config, &inspected)?);
        }
    }
}

fn attempt(
    connection: &mut Connection,
    config: &SqliteSinkConfig,
    inspected: &Inspected,
    batch: &Batch,
    pass: &Pass,
) -> Result<Outcome, Trouble> {
    let (path, during) = (path_of(connection), During::Look);
    let fail = |error: rusqlite::Error| Trouble::Stop(sink_error(&path, during, &error));
    // No version is made from positions here: the mapping refuses that where progress is elsewhere.
    let rows = Rows::new(&inspected.mapping, batch, Incarnations::One(0));
    rows.refuse_gone(&config.target_name())?;
    let order = order(&rows, config.table.unique_keys, pass)?;
    let counter = InsertCounter::install(connection, inspected).map_err(fail)?;
    let tried = {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
        point("sql.begun");
        let written = check_schema(&transaction, during, inspected).and_then(|()| match pass {
            Pass::Fast => write_fast(&transaction, &rows, &order, config.rows_per_statement, &counter, during),
            Pass::Slow { known } => write_slowly(&transaction, &rows, &order, known, &counter, during),
        });
        if matches!(written, Err(Trouble::Refused)) {
            point("sql.rejected");
        }
        written.and_then(|outcome| {
            point("sql.before_commit");
            let end = checked_commit(&transaction);
            point("sql.commit_sent");
            after_commit(&path, during, end)?;
            Ok(outcome)
        })
        // Dropped without COMMIT, the transaction is rolled back here.
    };
    counter.remove(connection).map_err(fail)?;
    tried
}

impl IdempotentSink for SqliteIdempotentSink {
    fn fields(&self) -> &[FieldPath] {
        self.mapping().map_or(&[], |mapping| &mapping.fields)
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

    fn derive_dedup_key(&self, event: &OutputEvent<'_>) -> Option<KeyHash> {
        let mode = self.mapping().map(|mapping| mapping.mode).or(self.config.table.mode)?;
        dedup_key(mode, event)
    }

    async fn upsert(&mut self, event: &OutputEvent<'_>) -> Result<Written, SinkError> {
        let batch = alone(event);
        let (position, done) = (event.position(), self.write(Arc::new(batch)).await?);
        match done.rejected.into_iter().next() {
            None => Ok(done.written),
            Some((_, cause)) => Err(refused(position, cause)),
        }
    }

    async fn upsert_batch(&mut self, batch: Arc<Batch>) -> Result<Upserted, SinkError> {
        self.write(batch).await
    }

    fn dedup_strategy(&self) -> &DedupStrategy {
        &self.strategy
    }
}

#[cfg(test)]
#[path = "idempotent_tests.rs"]
mod tests;
