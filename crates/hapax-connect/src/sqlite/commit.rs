//! The one transaction of an epoch: progress first, rows, dead letters, the epoch's log row last, a checked COMMIT.
//!
//! Reads and writes: the target, on the session's own thread. Invariant: whatever ends a try before COMMIT rolls all of
//! it back; the batch is kept by the caller. Not here: states and claims (`sink`), how rows are written (`write`).

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::sink::{EpochRecord, SinkError, Written, causes_of};
use hapax_model::epoch::Epoch;
use hapax_model::fault::{Bug, planted, point};
use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, CauseCount, Letter};
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_model::rejects::RejectStop;
use hapax_sql::sqlite::checked_commit;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::config::SqliteSinkConfig;
use super::error::{During, after_commit, path_of, sink_error};
use super::inspect::{Inspected, inspect_again};
use super::progress;
use super::rows::{Incarnations, Rows};
use super::schema;
use super::write::{InsertCounter, Outcome, Pass, Trouble, write_fast, write_slowly};

/// How often one commit reads the schema again before it gives up.
const SCHEMA_READS: u32 = 2;

/// All that a commit needs, to be moved to the session's thread.
pub(super) struct Job {
    pub(super) config: Arc<SqliteSinkConfig>,
    pub(super) id: DeliveryId,
    pub(super) inspected: Arc<Inspected>,
    pub(super) was: Progress,
    pub(super) record: EpochRecord,
    pub(super) batch: Arc<Batch>,
}

/// What a commit did.
pub(super) struct Done {
    pub(super) progress: Progress,
    pub(super) written: Written,
    pub(super) dead_inputs: Vec<usize>,
    pub(super) causes: Vec<CauseCount>,
    /// The table as it was read last: the schema may have moved.
    pub(super) inspected: Arc<Inspected>,
}

/// Commits the epoch, in as many tries as it takes; only the last one leaves anything behind.
pub(super) fn commit(connection: &mut Connection, job: &Job) -> Result<Done, SinkError> {
    let mut inspected = Arc::clone(&job.inspected);
    let mut pass = Pass::Fast;
    let mut schema_reads = 0;
    loop {
        let trouble = match attempt(connection, job, &inspected, &pass) {
            Ok(mut done) => {
                done.inspected = inspected;
                return Ok(done);
            }
            Err(trouble) => trouble,
        };
        pass = match trouble {
            Trouble::Stop(error) => return Err(error),
            Trouble::Refused => Pass::Slow { known: BTreeMap::new() },
            Trouble::Without(event, cause) => pass.without(event, cause),
            Trouble::Schema(message) if schema_reads == SCHEMA_READS => {
                return Err(SinkError::SchemaEvolution { target: job.config.target_name(), message });
            }
            Trouble::Schema(_) => {
                schema_reads += 1;
                inspected = Arc::new(inspect_again(connection, &job.config, &job.id, &inspected)?);
                pass
            }
        };
    }
}

impl Pass {
    /// The same, but in lane order and without an event whose row ends the whole transaction.
    pub(super) fn without(self, event: usize, cause: Cause) -> Self {
        let mut known = match self {
            Self::Fast => BTreeMap::new(),
            Self::Slow { known } => known,
        };
        known.insert(event, cause);
        Self::Slow { known }
    }
}

fn attempt(connection: &mut Connection, job: &Job, inspected: &Inspected, pass: &Pass) -> Result<Done, Trouble> {
    let during = During::Epoch(job.record.epoch);
    let path = path_of(connection);
    let fail = |error: rusqlite::Error| Trouble::Stop(sink_error(&path, during, &error));
    let incarnation = job.record.from.incarnation.number;
    let rows = Rows::new(&inspected.mapping, &job.batch, Incarnations::One(incarnation));
    let order = order(&rows, job, pass)?;
    let counter = InsertCounter::install(connection, &inspected.mapping).map_err(fail)?;
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

/// The events of the first try, reduced and sorted; all of them in lane order for the slow one.
fn order(rows: &Rows<'_>, job: &Job, pass: &Pass) -> Result<Vec<usize>, Trouble> {
    match pass {
        Pass::Fast => rows.reduced(job.config.unique_keys)?.ok_or_else(|| {
            point("sql.rejected");
            Trouble::Refused
        }),
        Pass::Slow { .. } if planted(Bug::SortedBisect) => Ok(rows.sorted_by_key()),
        Pass::Slow { .. } => Ok((0..job.batch.len()).collect()),
    }
}

/// Everything between BEGIN and COMMIT.
fn fill(
    connection: &Connection,
    job: &Job,
    inspected: &Inspected,
    rows: &Rows<'_>,
    order: &[usize],
    pass: &Pass,
    counter: &InsertCounter,
) -> Result<Done, Trouble> {
    let during = During::Epoch(job.record.epoch);
    let after = swap_first(connection, job)?;
    point("sql.cas_done");
    check_schema(connection, during, inspected)?;
    let outcome = match pass {
        Pass::Fast => write_fast(connection, rows, order, job.config.rows_per_statement, counter, during)?,
        Pass::Slow { known } => write_slowly(connection, rows, order, known, counter, during)?,
    };
    let dead_inputs = dead_inputs(&job.batch, &outcome);
    judge(job, &outcome, &dead_inputs)?;
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
    Ok(Done { progress, written: outcome.written, dead_inputs, causes, inspected: Arc::clone(&job.inspected) })
}

fn swap_first(connection: &Connection, job: &Job) -> Result<Progress, SinkError> {
    if planted(Bug::ProgressOutsideTransaction) {
        let (epoch, bookmark) = (job.record.epoch, job.record.to.clone());
        return Ok(Progress { epoch, bookmark, ..job.was.clone() });
    }
    progress::swap(connection, &job.id, &expected(job), &job.record)
}

/// Progress as it must be for this epoch to be the next one: what the record says, not what we remember.
fn expected(job: &Job) -> Progress {
    let epoch = Epoch(job.record.epoch.0.saturating_sub(1));
    Progress { epoch, bookmark: job.record.from.clone(), ..job.was.clone() }
}

/// Only with the bug planted: progress in a transaction of its own, after the data.
fn progress_afterwards(connection: &Connection, job: &Job, totals: Totals) -> Result<(), SinkError> {
    let (path, during) = (path_of(connection), During::Epoch(job.record.epoch));
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
        .map_err(|error| sink_error(&path, during, &error))?;
    progress::swap(&transaction, &job.id, &expected(job), &job.record)?;
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

/// Inputs of which a row was refused, and those that died in the fill; ascending.
fn dead_inputs(batch: &Batch, outcome: &Outcome) -> Vec<usize> {
    let filled = batch.letters().iter().map(|(input, _)| *input);
    let refused = outcome.refused.iter().map(|(event, _)| batch.event(*event).input());
    let mut dead: Vec<usize> = filled.chain(refused).collect();
    dead.sort_unstable();
    dead.dedup();
    dead
}

fn judge(job: &Job, outcome: &Outcome, dead: &[usize]) -> Result<(), SinkError> {
    let Err(stop) = job.record.rejects.judge(job.batch.inputs.len(), dead) else { return Ok(()) };
    let guilty = match stop {
        RejectStop::First { input } => input,
        RejectStop::TooMany { .. } => dead.last().copied().unwrap_or_default(),
    };
    let in_fill = job.batch.letters().iter().find(|(input, _)| *input == guilty).map(|(_, letter)| &letter.cause);
    let refused = outcome.refused.iter().find(|(event, _)| job.batch.event(*event).input() == guilty);
    let cause = in_fill.or(refused.map(|(_, cause)| cause));
    let message = cause.map(|cause| cause.message.clone()).unwrap_or_default();
    Err(SinkError::Rejected { stop, position: job.batch.inputs.position(guilty), message })
}

/// The letters of the fill and of the refused rows, in lane order.
fn letters(batch: &Batch, outcome: &Outcome) -> Vec<Letter> {
    let in_fill = batch.letters().iter().filter(|_| !planted(Bug::LettersOutsideTransaction));
    let mut all: Vec<(usize, Letter)> = in_fill.cloned().collect();
    all.extend(outcome.refused.iter().map(|(event, cause)| {
        let event = batch.event(*event);
        let key = event.event_key().map(|key| key.text().to_string());
        (event.input(), batch.letter(event.input(), cause.clone(), key))
    }));
    all.sort_by_key(|(input, _)| *input);
    all.into_iter().map(|(_, letter)| letter).collect()
}

fn write_letters(connection: &Connection, job: &Job, letters: Vec<Letter>) -> Result<(), SinkError> {
    let incarnation = &job.record.from.incarnation;
    progress::insert_letters(connection, &job.id, job.was.generation, job.record.epoch, incarnation, &letters)
}

/// The epoch's counts, less what the table refused. An input whose row was refused has none of its rows written.
fn counts(planned: Totals, batch: &Batch, outcome: &Outcome) -> Totals {
    if outcome.refused.is_empty() {
        return planned;
    }
    let refused: Vec<usize> = outcome.refused.iter().map(|(event, _)| batch.event(*event).input()).collect();
    let inputs = refused.len() as u64;
    let rows = batch.events().filter(|event| refused.binary_search(&event.input()).is_ok()).count() as u64;
    Totals {
        delivered: planned.delivered.saturating_sub(inputs),
        dead: planned.dead + inputs,
        rows: planned.rows.saturating_sub(rows),
        ..planned
    }
}
