//! Dead letters written again, where they live: lock, outputs, mark, COMMIT, in one transaction.
//!
//! Reads and writes the target and `hapax.dead_letters`. Invariant: a letter is replayed once, by whoever locks it
//! first; no position and no epoch changes. Not here: decoding the letters' bytes (the caller's).

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::letters::{LetterChoice, LetterStore, Replay, Replayed, StoredLetter};
use hapax_engine::sink::SinkError;
use hapax_model::fault::point;
use hapax_sql::postgres::{Session, checked_commit};

use super::chunk::Place;
use super::commit::{begin, check_schema, pause};
use super::error::{During, after_commit};
use super::inspect::{Inspected, inspect_again};
use super::sink::{PostgresDatabase, PostgresSink};
use super::slow::write_slowly;
use super::{ask, letters};
use crate::table::replay::{Locked, ReplayJob};
use crate::table::rows::{Incarnations, Rows};
use crate::table::tries::{Before, Pass, Tries, Trouble};

impl LetterStore for PostgresSink {
    async fn list(&mut self, choice: &LetterChoice, after: i64, limit: usize) -> Result<Vec<StoredLetter>, SinkError> {
        let session = self.home().session().await?;
        letters::list(&session, choice, after, limit).await
    }

    async fn discard(&mut self, ids: &[i64]) -> Result<u64, SinkError> {
        let session = self.home().session().await?;
        letters::discard(&session, ids).await
    }
}

impl Replay for PostgresSink {
    async fn replay(&mut self, letters: &[i64], batch: Batch) -> Result<Replayed, SinkError> {
        let job = self.replay_job(letters, batch).await?;
        let session = self.home().session().await?;
        Box::pin(replay(&session, &job)).await
    }
}

type Job = ReplayJob<PostgresDatabase>;

async fn replay(session: &Session, job: &Job) -> Result<Replayed, SinkError> {
    let mut inspected = Arc::clone(&job.inspected);
    // Already in lane order with savepoints: there are few of them, and each is suspect.
    let mut tries = Tries::new(Pass::slow());
    loop {
        let trouble = match attempt(session, job, &inspected).await {
            Ok(replayed) => return Ok(replayed),
            Err(trouble) => trouble,
        };
        match tries.after(trouble, &job.target)? {
            Before::Nothing => {}
            Before::Pause => pause().await,
            Before::ReadSchema => {
                inspected = Arc::new(inspect_again(session, &job.config, &job.id, &inspected).await?);
            }
        }
    }
}

async fn attempt(session: &Session, job: &Job, inspected: &Inspected) -> Result<Replayed, Trouble> {
    begin(session, &job.target, During::Look).await?;
    match fill(session, job, inspected).await {
        Ok(replayed) => {
            let end = checked_commit(session).await;
            point("dlq.commit_sent");
            after_commit(&job.target, During::Look, end)?;
            Ok(replayed)
        }
        Err(trouble) => {
            if let Err(fault) = session.rollback().await {
                tracing::debug!(error = %fault, "no answer to ROLLBACK");
            }
            Err(trouble)
        }
    }
}

/// Everything between BEGIN and COMMIT.
async fn fill(session: &Session, job: &Job, inspected: &Inspected) -> Result<Replayed, Trouble> {
    // All letters may be taken already: a COMMIT that finds nothing written would be taken for a lost transaction.
    ask::batch(session, During::Look, "SELECT txid_current()").await?;
    let locked = Locked::new(&job.letters, &job.batch, letters::still_dead(session, &job.letters).await?);
    point("dlq.locked");
    check_schema(session, &job.target, During::Look, inspected).await?;
    let numbers = letters::incarnations(session, &job.letters).await?;
    let rows = Rows::new(&inspected.mapping, &job.batch, Incarnations::PerInput(numbers));
    let place = Place {
        session,
        table: &inspected.named,
        rows: &rows,
        per_statement: job.config.rows_per_statement,
        target: &job.target,
        during: During::Look,
    };
    let outcome = write_slowly(&place, &locked.order(), &BTreeMap::new()).await?;
    point("dlq.output_written");
    let marks = locked.marks(&outcome);
    let replayed = letters::mark_replayed(session, &marks.good).await?;
    letters::note_refused(session, &marks.refused).await?;
    point("dlq.marked");
    Ok(locked.done(replayed, marks, &outcome))
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
