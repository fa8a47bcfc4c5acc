//! The one transaction of an epoch: progress first, rows, dead letters, the epoch's log row last, a checked COMMIT.
//!
//! Reads and writes: the target, over one session. Invariant: whatever ends a try before COMMIT rolls all of it back;
//! the batch is kept by the caller. Not here: states and claims (`sink`), how rows are written (`write`, `slow`).

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hapax_engine::sink::{Committed, SinkError, causes_of};
use hapax_model::contract::TARGET;
use hapax_model::fault::{Bug, planted, point};
use hapax_model::ledger::Totals;
use hapax_model::letter::Letter;
use hapax_model::progress::Progress;
use hapax_sql::mysql::{Session, checked_commit};

use super::chunk::Place;
use super::error::{During, after_commit, sink_error};
use super::inspect::{Inspected, Renumbered, inspect_again};
use super::proof::{Proof, last_written};
use super::schema::version_of;
use super::sink::MysqlDatabase;
use super::slow::write_slowly;
use super::write::write_fast;
use super::{letters, progress, row_error};
use crate::table::epoch;
use crate::table::rows::{Incarnations, Rows};
use crate::table::tries::{Before, Fault, Outcome, Pass, Tries, Trouble};

type Job = crate::table::sink::Job<MysqlDatabase>;

/// Commits the epoch, in as many tries as it takes; only the last one leaves anything behind.
///
/// `was` is a row of an epoch before; the answer's is one of this epoch, if it has one that stays.
pub(super) async fn commit(
    session: &mut Session,
    job: &Job,
    was: &Proof,
) -> Result<(Committed, Arc<Inspected>, Option<Proof>), SinkError> {
    let mut inspected = Arc::clone(&job.inspected);
    let mut tries = Tries::new(Pass::Fast);
    loop {
        let trouble = match attempt(session, job, &inspected, &tries.pass).await {
            Ok((committed, proof)) => return Ok((committed, inspected, proof)),
            Err(trouble) => trouble,
        };
        match tries.after(trouble, &job.target)? {
            Before::Nothing => {}
            Before::Pause => pause().await,
            Before::ReadSchema => {
                inspected = Arc::new(inspect_again(session, &job.config, &job.id, &inspected, was).await?);
            }
        }
    }
}

/// After a deadlock both sides go again: not at the same moment.
pub(super) async fn pause() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(1..50))).await;
}

async fn attempt(
    session: &mut Session,
    job: &Job,
    inspected: &Inspected,
    pass: &Pass,
) -> Result<(Committed, Option<Proof>), Trouble> {
    let during = During::Epoch(job.record.epoch);
    let incarnation = job.record.from.incarnation.number;
    let rows = Rows::new(&inspected.mapping, &job.batch, Incarnations::One(incarnation));
    rows.refuse_gone(&job.target)?;
    let order = epoch::order(&rows, job.config.table.unique_keys, pass)?;
    if planted(Bug::LettersOutsideTransaction) {
        write_letters(session, job, job.batch.letters().iter().map(|(_, letter)| letter.clone()).collect()).await?;
    }
    begin(session, &job.target, during).await?;
    point("sql.begun");
    let place = Place {
        table: &inspected.named,
        rows: &rows,
        per_statement: job.config.rows_per_statement,
        largest: session.largest_packet(),
        target: &job.target,
        during,
    };
    let filled = fill(session, &place, job, inspected, &order, pass).await;
    let committed = end(session, &job.target, during, filled).await?;
    if planted(Bug::ProgressOutsideTransaction) {
        progress_afterwards(session, job, committed.progress.totals).await?;
    }
    let proof = last_written(&rows, &committed.dead_inputs);
    Ok((committed, proof))
}

pub(super) async fn begin(session: &mut Session, target: &str, during: During) -> Result<(), Trouble> {
    session.begin().await.map_err(|fault| Trouble::Stop(sink_error(target, during, &fault)))
}

/// Commits what went well, and rolls back what did not.
pub(super) async fn end<T>(
    session: &mut Session,
    target: &str,
    during: During,
    filled: Result<T, Trouble>,
) -> Result<T, Trouble> {
    match filled {
        Ok(done) => {
            let end = {
                // Sent first, so that the point lies between COMMIT and its answer.
                let mut committing = pin!(checked_commit(session));
                let sent = poll_fn(|context| Poll::Ready(committing.as_mut().poll(context))).await;
                tokio::task::yield_now().await;
                point("sql.commit_sent");
                match sent {
                    Poll::Ready(end) => end,
                    Poll::Pending => committing.await,
                }
            };
            after_commit(target, during, end)?;
            Ok(done)
        }
        Err(trouble) => {
            if matches!(trouble, Trouble::Refused) {
                point("sql.rejected");
            }
            // A session that cannot even roll back is closed, and the server rolls back by itself.
            if let Err(fault) = session.rollback().await {
                tracing::debug!(error = %fault, "no answer to ROLLBACK");
            }
            Err(trouble)
        }
    }
}

pub(super) async fn write(
    session: &mut Session,
    place: &Place<'_>,
    order: &[usize],
    pass: &Pass,
) -> Result<Outcome, Trouble> {
    match pass {
        Pass::Fast => write_fast(session, place, order).await,
        Pass::Slow { known } => write_slowly(session, place, order, known).await,
    }
}

/// Everything between BEGIN and COMMIT.
async fn fill(
    session: &mut Session,
    place: &Place<'_>,
    job: &Job,
    inspected: &Inspected,
    order: &[usize],
    pass: &Pass,
) -> Result<Committed, Trouble> {
    let after = swap_first(session, job).await?;
    point("sql.cas_done");
    check_schema(session, &job.target, place.during, inspected).await?;
    let after = with_contract(session, job, inspected, after).await?;
    let outcome = write(session, place, order, pass).await?;
    let dead_inputs = epoch::dead_inputs(&job.batch, &outcome);
    epoch::judge(&job.record, &job.batch, &outcome, &dead_inputs)?;
    write_letters(session, job, epoch::letters(&job.batch, &outcome)).await?;
    point("sql.dead_letters_written");
    let counts = epoch::counts(job.record.counts, &job.batch, &outcome);
    let totals = job.was.totals.plus(counts);
    if !planted(Bug::ProgressOutsideTransaction) {
        if !outcome.refused.is_empty() {
            progress::correct_totals(session, &job.id, job.record.epoch, totals).await?;
        }
        progress::log_epoch(session, &job.id, job.was.generation, &job.record, counts).await?;
    }
    point("sql.before_commit");
    let progress = Progress { totals, ..after };
    let causes = causes_of(&job.batch, &outcome.refused);
    Ok(Committed { stored: true, progress, written: outcome.written, dead_inputs, causes })
}

async fn swap_first(session: &mut Session, job: &Job) -> Result<Progress, SinkError> {
    if planted(Bug::ProgressOutsideTransaction) {
        let (epoch, bookmark) = (job.record.epoch, job.record.to.clone());
        return Ok(Progress { epoch, bookmark, ..job.was.clone() });
    }
    progress::swap(session, &job.id, &epoch::expected(&job.was, &job.record), &job.record).await
}

/// The contract names the table by its new number, if it got one.
async fn with_contract(
    session: &mut Session,
    job: &Job,
    inspected: &Inspected,
    after: Progress,
) -> Result<Progress, SinkError> {
    let identity = &inspected.identity.0;
    if inspected.renumbered == Renumbered::No || after.contract.fact(TARGET) == identity {
        return Ok(after);
    }
    let contract = after.contract.clone().with(TARGET, identity.clone());
    progress::set_contract(session, &job.id, job.record.epoch, &contract).await?;
    Ok(Progress { contract, ..after })
}

/// Only with the bug planted: progress in a transaction of its own, after the data.
async fn progress_afterwards(session: &mut Session, job: &Job, totals: Totals) -> Result<(), Trouble> {
    let during = During::Epoch(job.record.epoch);
    begin(session, &job.target, during).await?;
    progress::swap(session, &job.id, &epoch::expected(&job.was, &job.record), &job.record).await?;
    progress::correct_totals(session, &job.id, job.record.epoch, totals).await?;
    progress::log_epoch(session, &job.id, job.was.generation, &job.record, job.record.counts).await?;
    Ok(after_commit(&job.target, during, checked_commit(session).await)?)
}

/// From here on nobody can change the table until COMMIT: every statement that names it takes its metadata lock. So this
/// is the table that the rows will go into.
pub(super) async fn check_schema(
    session: &mut Session,
    target: &str,
    during: During,
    inspected: &Inspected,
) -> Result<(), Trouble> {
    let answer = session.text_rows(&inspected.version_question).await;
    let answer = answer.map_err(|fault| match row_error::fault(target, during, &fault) {
        Fault::Row(cause) => Trouble::Schema(cause.message),
        fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_)) => fault.into(),
    })?;
    if version_of(&answer) == inspected.version {
        return Ok(());
    }
    Err(Trouble::Schema("the table changes faster than it can be read".to_owned()))
}

async fn write_letters(session: &mut Session, job: &Job, letters: Vec<Letter>) -> Result<(), SinkError> {
    let incarnation = &job.record.from.incarnation;
    letters::insert_letters(session, &job.id, job.was.generation, job.record.epoch, incarnation, &letters).await
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod change_tests;
#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
