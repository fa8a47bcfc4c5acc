//! Dead letters written again, where they live: lock, outputs, mark, COMMIT, in one transaction.
//!
//! Reads and writes the target and `hapax_dead_letters`. Invariant: a letter is replayed once, by whoever locks it
//! first; no position and no epoch changes. Not here: decoding the letters' bytes (the caller's).

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::letters::{LetterChoice, LetterStore, Replay, Replayed, StoredLetter};
use hapax_engine::sink::SinkError;
use hapax_model::fault::point;
use hapax_model::letter::Cause;
use hapax_model::position::Incarnation;
use hapax_sql::sqlite::checked_commit;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::commit::check_schema;
use super::error::{During, after_commit, path_of, sink_error};
use super::inspect::{Inspected, inspect_again};
use super::letters;
use super::sink::{SqliteDatabase, SqliteSink};
use super::write::{InsertCounter, write_slowly};
use crate::table::replay::{Locked, ReplayJob};
use crate::table::rows::{Incarnations, Rows};
use crate::table::tries::{Before, Pass, Tries, Trouble};

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
    async fn replay(&mut self, letters: &[i64], batch: Batch) -> Result<Replayed, SinkError> {
        let job = self.replay_job(letters, batch).await?;
        self.home().run(During::Look, move |connection| replay(connection, &job)).await
    }
}

type Job = ReplayJob<SqliteDatabase>;

fn replay(connection: &mut Connection, job: &Job) -> Result<Replayed, SinkError> {
    let mut inspected = Arc::clone(&job.inspected);
    // Already in lane order with savepoints: there are few of them, and each is suspect.
    let mut tries = Tries::new(Pass::slow());
    loop {
        let trouble = match attempt(connection, job, &inspected, &tries.pass) {
            Ok(replayed) => return Ok(replayed),
            Err(trouble) => trouble,
        };
        if tries.after(trouble, &job.target)? == Before::ReadSchema {
            inspected = Arc::new(inspect_again(connection, &job.config, &job.id, &inspected)?);
        }
    }
}

fn attempt(connection: &mut Connection, job: &Job, inspected: &Inspected, pass: &Pass) -> Result<Replayed, Trouble> {
    let path = path_of(connection);
    let fail = |error: rusqlite::Error| Trouble::Stop(sink_error(&path, During::Look, &error));
    let counter = InsertCounter::install(connection, inspected).map_err(fail)?;
    let tried = {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
        fill(&transaction, job, inspected, pass, &counter).and_then(|replayed| {
            let end = checked_commit(&transaction);
            point("dlq.commit_sent");
            after_commit(&path, During::Look, end)?;
            Ok(replayed)
        })
        // Dropped without COMMIT, the transaction is rolled back here.
    };
    counter.remove(connection).map_err(fail)?;
    tried
}

/// Everything between BEGIN and COMMIT.
fn fill(
    connection: &Connection,
    job: &Job,
    inspected: &Inspected,
    pass: &Pass,
    counter: &InsertCounter,
) -> Result<Replayed, Trouble> {
    let locked = Locked::new(&job.letters, &job.batch, letters::still_dead(connection, &job.letters)?);
    point("dlq.locked");
    check_schema(connection, During::Look, inspected)?;
    let numbers = incarnations(connection, &job.letters)?;
    let rows = Rows::new(&inspected.mapping, &job.batch, Incarnations::PerInput(numbers));
    let known = match pass {
        Pass::Slow { known } => known,
        Pass::Fast => &BTreeMap::new(),
    };
    let outcome = write_slowly(connection, &rows, &locked.order(), known, counter, During::Look)?;
    point("dlq.output_written");
    let marks = locked.marks(&outcome);
    let replayed = letters::mark_replayed(connection, &marks.good)?;
    note_refused(connection, &marks.refused)?;
    point("dlq.marked");
    Ok(locked.done(replayed, marks, &outcome))
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

/// A letter that was refused again stays dead, with the newer reason.
fn note_refused(connection: &Connection, refused: &BTreeMap<i64, Cause>) -> Result<(), SinkError> {
    let sql = "UPDATE hapax_dead_letters SET stage = ?2, code = ?3, message = ?4, fingerprint = ?5, \
               replay_count = replay_count + 1 WHERE id = ?1 AND state = 'dead'";
    for (id, cause) in refused {
        let values = params![id, cause.stage.name(), cause.code, cause.message, cause.fingerprint];
        let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        done.map_err(|error| sink_error(&path_of(connection), During::Look, &error))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
