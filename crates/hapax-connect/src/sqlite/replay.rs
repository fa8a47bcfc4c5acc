//! The steps of a replay of dead letters that this database does in its own way; their order is `table::replay`'s.
//!
//! Reads and writes the target and `hapax_dead_letters`. Not here: decoding the letters' bytes (the
//! caller's).

use std::collections::BTreeMap;
use std::future::ready;

use hapax_engine::batch::Batch;
use hapax_engine::letters::{LetterChoice, LetterStore, Replay, ReplayRule, Replayed, StoredLetter};
use hapax_engine::rows::RowState;
use hapax_engine::sink::SinkError;
use hapax_model::letter::Cause;
use hapax_model::position::{DeliveryId, Incarnation};
use rusqlite::Connection;

use super::error::{During, path_of, sink_error};
use super::inspect::Inspected;
use super::sink::SqliteSink;
use super::transaction::{Reread, SqliteTransaction, run_to_end};
use super::{letters, read};
use crate::table::replay::{ReplayTransaction, replay_letters};

impl LetterStore for SqliteSink {
    async fn list(&mut self, choice: &LetterChoice, after: i64, limit: usize) -> Result<Vec<StoredLetter>, SinkError> {
        let choice = choice.clone();
        self.home().run(During::Look, move |connection| letters::list(connection, &choice, after, limit)).await
    }

    async fn discard(&mut self, ids: &[i64]) -> Result<u64, SinkError> {
        let ids = ids.to_vec();
        self.home().run(During::Look, move |connection| letters::discard(connection, &ids)).await
    }
}

impl Replay for SqliteSink {
    async fn replay(&mut self, letters: &[i64], batch: Batch, rule: ReplayRule) -> Result<Replayed, SinkError> {
        let job = self.replay_job(letters, batch, rule).await?;
        let work = move |connection: &mut Connection| {
            let (config, delivery) = (&job.config, Some(&job.id));
            let mut transaction =
                SqliteTransaction { connection, config, during: During::Look, delivery, reread: Reread::No };
            run_to_end(replay_letters(&mut transaction, &job))
        };
        self.home().run(During::Look, work).await
    }
}

impl ReplayTransaction for SqliteTransaction<'_> {
    fn lock_dead_letters(&mut self, letters: &[i64]) -> impl Future<Output = Result<Vec<i64>, SinkError>> + Send {
        ready(letters::still_dead(self.connection, letters))
    }

    /// The transaction is the file's only writer as it is.
    fn lock_progress(&mut self, _id: &DeliveryId) -> impl Future<Output = Result<(), SinkError>> + Send {
        ready(Ok(()))
    }

    fn row_states(
        &mut self,
        table: &Inspected,
        batch: &Batch,
        events: &[usize],
    ) -> impl Future<Output = Result<Vec<RowState>, SinkError>> + Send {
        ready(read::states_within(self.connection, &table.mapping, batch, events))
    }

    fn incarnations(&mut self, letters: &[i64]) -> impl Future<Output = Result<Vec<u32>, SinkError>> + Send {
        ready(incarnations(self.connection, letters))
    }

    fn mark_replayed(&mut self, letters: &[i64]) -> impl Future<Output = Result<u64, SinkError>> + Send {
        ready(letters::mark_replayed(self.connection, letters))
    }

    fn note_refused(&mut self, refused: &BTreeMap<i64, Cause>) -> impl Future<Output = Result<(), SinkError>> + Send {
        ready(letters::note_refused(self.connection, refused))
    }
}

/// The number of the incarnation that each letter's position belongs to, in the order of `ids`.
fn incarnations(connection: &Connection, ids: &[i64]) -> Result<Vec<u32>, SinkError> {
    let fail = |error: rusqlite::Error| sink_error(&path_of(connection), During::Look, &error);
    let mut statement =
        connection.prepare_cached("SELECT incarnation FROM hapax_dead_letters WHERE id = ?1").map_err(fail)?;
    let mut numbers = Vec::with_capacity(ids.len());
    for id in ids {
        let mut rows = statement.query([id]).map_err(fail)?;
        let text: Option<String> = rows.next().and_then(|row| row.map(|row| row.get(0)).transpose()).map_err(fail)?;
        let number = text.and_then(|text| text.parse::<Incarnation>().ok()).map_or(1, |found| found.number);
        numbers.push(number);
    }
    Ok(numbers)
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
