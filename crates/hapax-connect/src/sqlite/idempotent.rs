//! A SQLite table as a target that holds none of our tables: `progress: state`.
//!
//! One transaction of its own per batch. Invariant: the file gets rows of the user's table and nothing else, no marker
//! either. Not here: the sink (`table::idempotent`), progress and letters (the state store's).

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::batch::Batch;
use hapax_engine::sink::SinkError;
use hapax_model::fault::point;
use hapax_model::key::DedupStrategy;
use hapax_model::mode::ProgressPlace;
use hapax_sql::sqlite::checked_commit;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::commit::check_schema;
use super::config::SqliteSinkConfig;
use super::error::{During, after_commit, path_of, sink_error};
use super::inspect::{Inspected, inspect_foreign, inspect_foreign_again};
use super::sink::SqliteDatabase;
use super::write::{InsertCounter, write_fast, write_slowly};
use crate::metrics::SinkMetrics;
use crate::table::config::TableConfig;
use crate::table::epoch::order;
use crate::table::idempotent::{Foreign, KeyedSink};
use crate::table::rows::{Incarnations, Rows};
use crate::table::tries::{Before, Outcome, Pass, Tries, Trouble};

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
        metrics: &mut SinkMetrics,
    ) -> Result<(Outcome, Arc<Inspected>), SinkError> {
        let config = Arc::clone(&self.config);
        let events = batch.len() as u64;
        let work = move |connection: &mut Connection| {
            let begun = Instant::now();
            let (outcome, inspected) = upsert(connection, &config, table, &batch)?;
            Ok((outcome, inspected, begun.elapsed()))
        };
        let done = self.run(During::Look, work).await;
        let (outcome, inspected, took) = done.inspect_err(|_| metrics.commit_failures += 1)?;
        metrics.committed(events, &outcome.written, took);
        Ok((outcome, inspected))
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

#[cfg(test)]
#[path = "idempotent_tests.rs"]
mod tests;
