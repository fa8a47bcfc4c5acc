//! A MySQL or MariaDB table as a target that holds none of our tables: `progress: state`.
//!
//! One transaction of its own per batch. Invariant: the database gets rows of the user's table and nothing else.
//! Not here: progress and letters (the state store's).

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::batch::{Batch, OutputEvent};
use hapax_engine::sink::{IdempotentSink, SinkError, TargetIdentity, Upserted, Written};
use hapax_model::fault::point;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyHash};
use hapax_model::mode::ProgressPlace;
use hapax_sql::mysql::{Pool, Session};

use super::chunk::Place;
use super::column::MysqlColumn;
use super::commit::{begin, check_schema, end, pause, write};
use super::config::MysqlSinkConfig;
use super::error::During;
use super::inspect::{Inspected, inspect_foreign, inspect_foreign_again};
use super::sink::take;
use crate::metrics::SinkMetrics;
use crate::table::alone::{alone, refused};
use crate::table::config::TableConfig;
use crate::table::epoch;
use crate::table::mapping::Mapping;
use crate::table::rows::{Incarnations, Rows, dedup_key};
use crate::table::tries::{Before, Outcome, Pass, Tries, Trouble};

/// Writes rows by key, with progress elsewhere.
#[derive(Debug)]
pub struct MysqlIdempotentSink {
    config: Arc<MysqlSinkConfig>,
    pool: Pool,
    target: String,
    strategy: DedupStrategy,
    inspected: Option<Arc<Inspected>>,
    metrics: SinkMetrics,
}

impl MysqlIdempotentSink {
    /// A sink whose keys are made by `strategy`; nothing is opened before the first question.
    #[must_use]
    pub fn new(config: MysqlSinkConfig, pool: Pool, strategy: DedupStrategy) -> Self {
        let table = TableConfig { progress: ProgressPlace::State, ..config.table };
        let config = MysqlSinkConfig { table, ..config };
        Self {
            target: config.target_name(),
            config: Arc::new(config),
            pool,
            strategy,
            inspected: None,
            metrics: SinkMetrics::default(),
        }
    }

    /// What the sink counted so far.
    #[must_use]
    pub fn metrics(&self) -> SinkMetrics {
        self.metrics.clone()
    }

    /// How the table is written, once it was inspected.
    #[must_use]
    pub fn mapping(&self) -> Option<&Mapping<MysqlColumn>> {
        self.inspected.as_deref().map(|inspected| &inspected.mapping)
    }

    async fn inspected(&mut self) -> Result<Arc<Inspected>, SinkError> {
        if let Some(inspected) = &self.inspected {
            return Ok(Arc::clone(inspected));
        }
        let mut session = take(&self.pool, &self.config).await?;
        let inspected = Arc::new(inspect_foreign(&mut session, &self.config).await?);
        self.inspected = Some(Arc::clone(&inspected));
        Ok(inspected)
    }

    async fn write(&mut self, batch: Arc<Batch>) -> Result<Upserted, SinkError> {
        let inspected = self.inspected().await?;
        let mut session = take(&self.pool, &self.config).await?;
        let begun = Instant::now();
        let job = Job { config: &self.config, target: &self.target, batch: &batch };
        let done = Box::pin(upsert(&mut session, &job, inspected)).await;
        let (outcome, inspected) = done.inspect_err(|_| self.metrics.commit_failures += 1)?;
        self.metrics.committed(batch.len() as u64, &outcome.written, begun.elapsed());
        self.inspected = Some(inspected);
        Ok(Upserted { written: outcome.written, rejected: outcome.refused })
    }
}

struct Job<'a> {
    config: &'a MysqlSinkConfig,
    target: &'a str,
    batch: &'a Batch,
}

/// Writes the batch, in as many tries as it takes; only the last one leaves anything behind.
async fn upsert(
    session: &mut Session,
    job: &Job<'_>,
    mut inspected: Arc<Inspected>,
) -> Result<(Outcome, Arc<Inspected>), SinkError> {
    let mut tries = Tries::new(Pass::Fast);
    loop {
        let trouble = match attempt(session, job, &inspected, &tries.pass).await {
            Ok(outcome) => return Ok((outcome, inspected)),
            Err(trouble) => trouble,
        };
        match tries.after(trouble, job.target)? {
            Before::Nothing => {}
            Before::Pause => pause().await,
            Before::ReadSchema => {
                inspected = Arc::new(inspect_foreign_again(session, job.config, &inspected).await?);
            }
        }
    }
}

async fn attempt(session: &mut Session, job: &Job<'_>, inspected: &Inspected, pass: &Pass) -> Result<Outcome, Trouble> {
    let during = During::Look;
    // No version is made from positions here: the mapping refuses that where progress is elsewhere.
    let rows = Rows::new(&inspected.mapping, job.batch, Incarnations::One(0));
    rows.refuse_gone(job.target)?;
    let order = epoch::order(&rows, job.config.table.unique_keys, pass)?;
    begin(session, job.target, during).await?;
    point("sql.begun");
    let place = Place {
        table: &inspected.named,
        rows: &rows,
        per_statement: job.config.rows_per_statement,
        largest: session.largest_packet(),
        target: job.target,
        during,
    };
    let written = fill(session, &place, inspected, &order, pass).await;
    end(session, job.target, during, written).await
}

async fn fill(
    session: &mut Session,
    place: &Place<'_>,
    inspected: &Inspected,
    order: &[usize],
    pass: &Pass,
) -> Result<Outcome, Trouble> {
    check_schema(session, place.target, place.during, inspected).await?;
    let outcome = write(session, place, order, pass).await?;
    point("sql.before_commit");
    Ok(outcome)
}

impl IdempotentSink for MysqlIdempotentSink {
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
