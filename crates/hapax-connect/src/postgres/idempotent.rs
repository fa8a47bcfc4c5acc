//! A PostgreSQL table as a target that holds none of our tables: `progress: state`.
//!
//! One transaction of its own per batch. Invariant: the database gets rows of the user's table and nothing else.
//! Not here: the sink (`table::idempotent`), progress and letters (the state store's).

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::batch::Batch;
use hapax_engine::sink::SinkError;
use hapax_model::fault::point;
use hapax_model::key::DedupStrategy;
use hapax_model::mode::ProgressPlace;
use hapax_sql::postgres::{Pool, Session};

use super::ask;
use super::chunk::Place;
use super::commit::{Order, begin, check_schema, end, pause, write};
use super::config::PostgresSinkConfig;
use super::error::During;
use super::inspect::{Inspected, inspect_foreign, inspect_foreign_again};
use super::sink::PostgresDatabase;
use crate::metrics::SinkMetrics;
use crate::table::config::TableConfig;
use crate::table::idempotent::{Foreign, KeyedSink};
use crate::table::rows::{Incarnations, Rows};
use crate::table::tries::{Before, Outcome, Pass, Tries, Trouble};

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
        metrics: &mut SinkMetrics,
    ) -> Result<(Outcome, Arc<Inspected>), SinkError> {
        let session = self.session().await?;
        let begun = Instant::now();
        let job = Job { config: &self.config, target: &self.target, batch: &batch };
        let done = Box::pin(upsert(&session, &job, table)).await;
        let (outcome, inspected) = done.inspect_err(|_| metrics.commit_failures += 1)?;
        metrics.committed(batch.len() as u64, &outcome.written, begun.elapsed());
        Ok((outcome, inspected))
    }
}

struct Job<'a> {
    config: &'a PostgresSinkConfig,
    target: &'a str,
    batch: &'a Batch,
}

/// Writes the batch, in as many tries as it takes; only the last one leaves anything behind.
async fn upsert(
    session: &Session,
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

async fn attempt(session: &Session, job: &Job<'_>, inspected: &Inspected, pass: &Pass) -> Result<Outcome, Trouble> {
    let during = During::Look;
    // No version is made from positions here: the mapping refuses that where progress is elsewhere.
    let rows = Rows::new(&inspected.mapping, job.batch, Incarnations::One(0));
    rows.refuse_gone(job.target)?;
    let order = Order::of(&rows, job.config.table.unique_keys, pass)?;
    begin(session, job.target, during).await?;
    point("sql.begun");
    let place = Place {
        session,
        table: &inspected.named,
        rows: &rows,
        per_statement: job.config.rows_per_statement,
        target: job.target,
        during,
    };
    let written = fill(&place, inspected, &order, pass).await;
    end(session, job.target, during, written).await
}

async fn fill(place: &Place<'_>, inspected: &Inspected, order: &Order, pass: &Pass) -> Result<Outcome, Trouble> {
    // All rows may be there already: a COMMIT that finds nothing written would be taken for a lost transaction.
    ask::batch(place.session, place.during, "SELECT txid_current()").await?;
    check_schema(place.session, place.target, place.during, inspected).await?;
    let outcome = write(place, order, pass).await?;
    point("sql.before_commit");
    Ok(outcome)
}

#[cfg(test)]
#[path = "idempotent_tests.rs"]
mod tests;
