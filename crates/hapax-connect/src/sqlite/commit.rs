//! The one transaction of an epoch: progress first, rows, dead letters, the epoch's log row last, a checked COMMIT.
//!
//! Reads and writes: the target, on the session's own thread. Invariant: whatever ends a try before COMMIT rolls all of
//! it back; the batch is kept by the caller. Not here: states and claims (`sink`), how rows are written (`write`).

use std::sync::Arc;

use hapax_engine::sink::{Committed, SinkError, causes_of};
use hapax_model::fault::{Bug, planted, point};
use hapax_model::ledger::Totals;
use hapax_model::letter::Letter;
use hapax_model::progress::Progress;
use hapax_sql::sqlite::checked_commit;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::error::{During, after_commit, path_of, sink_error};
use super::inspect::{Inspected, inspect_again};
use super::progress;
use super::schema::{self, SqliteColumn};
use super::sink::SqliteDatabase;
use super::write::{InsertCounter, write_fast, write_slowly};
use crate::table::epoch::{counts, dead_inputs, expected, judge, letters, order};
use crate::table::rows::{Incarnations, Rows};
use crate::table::tries::{Before, Pass, Tries, Trouble};

type Job = crate::table::sink::Job<SqliteDatabase>;

/// Commits the epoch, in as many tries as it takes; only the last one leaves anything behind.
///
/// With what it did it tells the table as it was read last: it may have changed.
pub(super) fn commit(connection: &mut Connection, job: &Job) -> Result<(Committed, Arc<Inspected>), SinkError> {
    let mut inspected = Arc::clone(&job.inspected);
    let mut tries = Tries::new(Pass::Fast);
    loop {
        let trouble = match attempt(connection, job, &inspected, &tries.pass) {
            Ok(committed) => return Ok((committed, inspected)),
            Err(trouble) => trouble,
        };
        if tries.after(trouble, &job.target)? == Before::ReadSchema {
            inspected = Arc::new(inspect_again(connection, &job.config, &job.id, &inspected)?);
        }
    }
}

fn attempt(connection: &mut Connection, job: &Job, inspected: &Inspected, pass: &Pass) -> Result<Committed, Trouble> {
    let during = During::Epoch(job.record.epoch);
    let path = path_of(connection);
    let fail = |error: rusqlite::Error| Trouble::Stop(sink_error(&path, during, &error));
    let incarnation = job.record.from.incarnation.number;
    let rows = Rows::new(&inspected.mapping, &job.batch, Incarnations::One(incarnation));
    rows.refuse_gone(&job.target)?;
    let order = order(&rows, job.config.table.unique_keys, pass)?;
    let counter = InsertCounter::install(connection, inspected).map_err(fail)?;
    if planted(Bug::LettersOutsideTransaction) {
        write_letters(connection, job, job.batch.letters().iter().map(|(_, letter)| letter.clone()).collect())?;
    }
    let tried = {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
        point("sql.begun");
        let tried = fill(&transaction, job, inspected, &rows, &order, pass, &counter);
        if matches!(tried, Err(Trouble::Refused)) {
            point("sql.rejected");
        }
        tried.and_then(|done| {
            let end = checked_commit(&transaction);
            point("sql.commit_sent");
            after_commit(&path, during, end)?;
            Ok(done)
        })
        // Dropped without COMMIT, the transaction is rolled back here.
    };
    counter.remove(connection).map_err(fail)?;
    let done = tried?;
    if planted(Bug::ProgressOutsideTransaction) {
        progress_afterwards(connection, job, done.progress.totals).map_err(Trouble::Stop)?;
    }
    Ok(done)
}

/// Everything between BEGIN and COMMIT.
fn fill(
    connection: &Connection,
    job: &Job,
    inspected: &Inspected,
    rows: &Rows<'_, SqliteColumn>,
    order: &[usize],
    pass: &Pass,
    counter: &InsertCounter,
) -> Result<Committed, Trouble> {
    let during = During::Epoch(job.record.epoch);
    let after = swap_first(connection, job)?;
    point("sql.cas_done");
    check_schema(connection, during, inspected)?;
    let outcome = match pass {
        Pass::Fast => write_fast(connection, rows, order, job.config.rows_per_statement, counter, during)?,
        Pass::Slow { known } => write_slowly(connection, rows, order, known, counter, during)?,
    };
    let dead_inputs = dead_inputs(&job.batch, &outcome);
    judge(&job.record, &job.batch, &outcome, &dead_inputs)?;
    write_letters(connection, job, letters(&job.batch, &outcome))?;
    point("sql.dead_letters_written");
    let counts = counts(job.record.counts, &job.batch, &outcome);
    let totals = job.was.totals.plus(counts);
    if !planted(Bug::ProgressOutsideTransaction) {
        if !outcome.refused.is_empty() {
            progress::correct_totals(connection, &job.id, job.record.epoch, totals)?;
        }
        progress::log_epoch(connection, &job.id, job.was.generation, &job.record, counts)?;
    }
    point("sql.before_commit");
    let progress = Progress { totals, ..after };
    let causes = causes_of(&job.batch, &outcome.refused);
    Ok(Committed { stored: true, progress, written: outcome.written, dead_inputs, causes })
}

fn swap_first(connection: &Connection, job: &Job) -> Result<Progress, SinkError> {
    if planted(Bug::ProgressOutsideTransaction) {
        let (epoch, bookmark) = (job.record.epoch, job.record.to.clone());
        return Ok(Progress { epoch, bookmark, ..job.was.clone() });
    }
    progress::swap(connection, &job.id, &expected(&job.was, &job.record), &job.record)
}

/// Only with the bug planted: progress in a transaction of its own, after the data.
fn progress_afterwards(connection: &Connection, job: &Job, totals: Totals) -> Result<(), SinkError> {
    let (path, during) = (path_of(connection), During::Epoch(job.record.epoch));
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
        .map_err(|error| sink_error(&path, during, &error))?;
    progress::swap(&transaction, &job.id, &expected(&job.was, &job.record), &job.record)?;
    progress::correct_totals(&transaction, &job.id, job.record.epoch, totals)?;
    progress::log_epoch(&transaction, &job.id, job.was.generation, &job.record, job.record.counts)?;
    after_commit(&path, during, checked_commit(&transaction))
}

/// With the write lock in hand nobody else can move the schema: this is the table that the rows will go into.
pub(super) fn check_schema(connection: &Connection, during: During, inspected: &Inspected) -> Result<(), Trouble> {
    let version =
        schema::version(connection).map_err(|error| Trouble::Stop(sink_error(&path_of(connection), during, &error)))?;
    if version == inspected.version {
        return Ok(());
    }
    Err(Trouble::Schema("the schema changes faster than it can be read".to_owned()))
}

fn write_letters(connection: &Connection, job: &Job, letters: Vec<Letter>) -> Result<(), SinkError> {
    let incarnation = &job.record.from.incarnation;
    progress::insert_letters(connection, &job.id, job.was.generation, job.record.epoch, incarnation, &letters)
}
