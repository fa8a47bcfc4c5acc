//! The one transaction of an epoch: progress first, rows, dead letters, the epoch's log row last, a checked COMMIT.
//!
//! Reads and writes: the target, over one session. Invariant: whatever ends a try before COMMIT rolls all of it back;
//! the batch is kept by the caller. Not here: states and claims (`sink`), how rows are written (`write`, `slow`).

use std::sync::Arc;
use std::time::Duration;

use hapax_engine::sink::{Committed, SinkError, causes_of};
use hapax_model::fault::{Bug, planted, point};
use hapax_model::ledger::Totals;
use hapax_model::letter::Letter;
use hapax_model::progress::Progress;
use hapax_sql::postgres::{Session, checked_commit};

use super::chunk::Place;
use super::error::{During, after_commit, sink_error};
use super::flight::Flights;
use super::inspect::{Inspected, inspect_again};
use super::schema::VERSION;
use super::sink::PostgresDatabase;
use super::slow::write_slowly;
use super::write::write_fast;
use super::{letters, progress, row_error};
use crate::table::config::UniqueKeys;
use crate::table::epoch;
use crate::table::rows::{Incarnations, Rows};
use crate::table::tries::{Before, Fault, Outcome, Pass, Tries, Trouble};

type Job = crate::table::sink::Job<PostgresDatabase>;

/// Commits the epoch, in as many tries as it takes; only the last one leaves anything behind.
///
/// With what it did it tells the table as it was read last: it may have changed.
pub(super) async fn commit(session: &Session, job: &Job) -> Result<(Committed, Arc<Inspected>), SinkError> {
    let mut inspected = Arc::clone(&job.inspected);
    let mut tries = Tries::new(Pass::Fast);
    loop {
        let trouble = match attempt(session, job, &inspected, &tries.pass).await {
            Ok(committed) => return Ok((committed, inspected)),
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

/// After a deadlock both sides go again: not at the same moment.
pub(super) async fn pause() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(1..50))).await;
}

async fn attempt(session: &Session, job: &Job, inspected: &Inspected, pass: &Pass) -> Result<Committed, Trouble> {
    let during = During::Epoch(job.record.epoch);
    let incarnation = job.record.from.incarnation.number;
    let rows = Rows::new(&inspected.mapping, &job.batch, Incarnations::One(incarnation));
    rows.refuse_gone(&job.target)?;
    let order = Order::of(&rows, job.config.table.unique_keys, pass)?;
    if planted(Bug::LettersOutsideTransaction) {
        write_letters(session, job, job.batch.letters().iter().map(|(_, letter)| letter.clone()).collect()).await?;
    }
    begin(session, &job.target, during).await?;
    point("sql.begun");
    let place = Place {
        session,
        table: &inspected.named,
        rows: &rows,
        per_statement: job.config.rows_per_statement,
        target: &job.target,
        during,
    };
    let filled = fill(&place, job, inspected, &order, pass).await;
    let committed = end(session, &job.target, during, filled).await?;
    if planted(Bug::ProgressOutsideTransaction) {
        progress_afterwards(session, job, committed.progress.totals).await?;
    }
    Ok(committed)
}

pub(super) async fn begin(session: &Session, target: &str, during: During) -> Result<(), Trouble> {
    session.begin().await.map_err(|fault| Trouble::Stop(sink_error(target, during, &fault)))
}

/// Commits what went well, and rolls back what did not.
pub(super) async fn end<T>(
    session: &Session,
    target: &str,
    during: During,
    filled: Result<T, Trouble>,
) -> Result<T, Trouble> {
    match filled {
        Ok(done) => {
            // Sent first, so that the point lies between COMMIT and its answer.
            let mut flights = Flights::new();
            flights.start(checked_commit(session), 0).await;
            tokio::task::yield_now().await;
            point("sql.commit_sent");
            if let Some(end) = flights.land().await {
                after_commit(target, during, end)?;
            }
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

/// Which events are written, in which order.
pub(super) struct Order {
    events: Vec<usize>,
    /// Where a key is the one before again; ascending.
    cuts: Vec<usize>,
}

impl Order {
    /// Reduced and sorted in the first try; all of them in lane order in the slow one.
    pub(super) fn of(
        rows: &Rows<'_, super::column::PostgresColumn>,
        unique: UniqueKeys,
        pass: &Pass,
    ) -> Result<Self, Trouble> {
        match pass {
            Pass::Fast => {
                let (events, cuts) = rows.reduced_with_cuts(unique)?.ok_or_else(|| {
                    point("sql.rejected");
                    Trouble::Refused
                })?;
                Ok(Self { events, cuts })
            }
            Pass::Slow { .. } => Ok(Self { events: epoch::order(rows, unique, pass)?, cuts: Vec::new() }),
        }
    }
}

pub(super) async fn write(place: &Place<'_>, order: &Order, pass: &Pass) -> Result<Outcome, Trouble> {
    match pass {
        Pass::Fast => write_fast(place, &order.events, &order.cuts).await,
        Pass::Slow { known } => write_slowly(place, &order.events, known).await,
    }
}

/// Everything between BEGIN and COMMIT.
async fn fill(
    place: &Place<'_>,
    job: &Job,
    inspected: &Inspected,
    order: &Order,
    pass: &Pass,
) -> Result<Committed, Trouble> {
    let session = place.session;
    let after = swap_first(session, job).await?;
    point("sql.cas_done");
    check_schema(session, &job.target, place.during, inspected).await?;
    let outcome = write(place, order, pass).await?;
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

async fn swap_first(session: &Session, job: &Job) -> Result<Progress, SinkError> {
    if planted(Bug::ProgressOutsideTransaction) {
        let (epoch, bookmark) = (job.record.epoch, job.record.to.clone());
        return Ok(Progress { epoch, bookmark, ..job.was.clone() });
    }
    progress::swap(session, &job.id, &epoch::expected(&job.was, &job.record), &job.record).await
}

/// Only with the bug planted: progress in a transaction of its own, after the data.
async fn progress_afterwards(session: &Session, job: &Job, totals: Totals) -> Result<(), Trouble> {
    let during = During::Epoch(job.record.epoch);
    begin(session, &job.target, during).await?;
    progress::swap(session, &job.id, &epoch::expected(&job.was, &job.record), &job.record).await?;
    progress::correct_totals(session, &job.id, job.record.epoch, totals).await?;
    progress::log_epoch(session, &job.id, job.was.generation, &job.record, job.record.counts).await?;
    Ok(after_commit(&job.target, during, checked_commit(session).await)?)
}

/// Constraints are checked at once from here on, and nobody can change the table's columns or indexes until COMMIT:
/// this is the table that the rows will go into.
pub(super) async fn check_schema(
    session: &Session,
    target: &str,
    during: During,
    inspected: &Inspected,
) -> Result<(), Trouble> {
    let fail = |error: tokio_postgres::Error| match row_error::fault(session, target, during, &error) {
        Fault::Row(cause) => Trouble::Schema(cause.message),
        fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_)) => fault.into(),
    };
    let version = session.prepare_cached(VERSION).await.map_err(fail)?;
    let lock =
        format!("SET CONSTRAINTS ALL IMMEDIATE; LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE", inspected.named.quoted);
    // Both are on their way at once, in this order.
    let client = session.client();
    let name: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&inspected.named.quoted];
    let (locked, now) = tokio::join!(client.batch_execute(&lock), client.query_opt(&version, &name));
    locked.map_err(fail)?;
    let now = now.and_then(|row| row.map(|row| row.try_get::<_, String>(0)).transpose()).map_err(fail)?;
    match now {
        Some(now) if now == inspected.version => Ok(()),
        Some(_) => Err(Trouble::Schema("the table changes faster than it can be read".to_owned())),
        None => Err(Trouble::Schema("the table is gone".to_owned())),
    }
}

async fn write_letters(session: &Session, job: &Job, letters: Vec<Letter>) -> Result<(), SinkError> {
    let incarnation = &job.record.from.incarnation;
    letters::insert_letters(session, &job.id, job.was.generation, job.record.epoch, incarnation, &letters).await
}
