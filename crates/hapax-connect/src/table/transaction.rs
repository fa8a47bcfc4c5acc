//! The one transaction of an epoch, for all SQL databases: progress first, rows, dead letters, the epoch's log row
//! last, a checked COMMIT. This is step 5 of the delivery protocol.
//!
//! Reads and writes: the target, through the few steps in which databases differ. Invariant: whatever ends a try before
//! COMMIT rolls all of it back; the batch is kept by the caller. Not here: states and claims (`sink`), SQL.

use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::bookkeeping::{EpochBooks, expected_progress, judge, prefix_record};
use hapax_engine::second_pass::InputJudge;
use hapax_engine::sink::{Committed, EpochRecord, SinkError, UpsertLimits};
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::fault::{Bug, planted, point};
use hapax_model::ledger::Totals;
use hapax_model::letter::Letter;
use hapax_model::position::{DeliveryId, Incarnation};
use hapax_model::progress::Progress;

use super::config::UniqueKeys;
use super::order::{RowOrder, refused};
use super::rows::{Incarnations, Rows};
use super::seen::Inspection;
use super::shape::AbsentSet;
use super::sink::{Home, Job};
use super::tries::{Before, Outcome, Pass, Tries, Trouble, Turn};

/// What a transaction writes besides rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Besides {
    /// Progress, before anything else.
    Progress,
    /// Perhaps nothing: all rows may be there already.
    Nothing,
}

/// A batch as rows of a table that was read.
pub type RowsOf<'a, I> = Rows<'a, <I as Inspection>::Column>;

/// Rows of one transaction, and how they are tried.
#[derive(Debug, Clone, Copy)]
pub struct RowsToWrite<'a, I: Inspection> {
    pub(crate) table: &'a I,
    pub(crate) rows: &'a Rows<'a, I::Column>,
    pub(crate) order: &'a RowOrder,
    pub(crate) pass: &'a Pass,
}

/// A transaction that writes rows, over one session: the steps in which databases differ.
pub trait RowTransaction: Send {
    /// The live table as it is read there.
    type Table: Inspection;

    /// BEGIN.
    fn begin(&mut self, besides: Besides) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// Holds the table as it is until COMMIT, waits for the turn, and compares the table with what was read: the rows will
    /// go into this one.
    fn hold_table(&mut self, table: &Self::Table, turn: Turn) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// Whether one of these events would be refused before it is sent.
    fn refuses_one(&self, _: &Self::Table, rows: &RowsOf<'_, Self::Table>, events: &[usize]) -> bool {
        let mut absent = AbsentSet::default();
        events.iter().any(|event| rows.misfit(&rows.batch.event(*event), &mut absent).is_some())
    }

    /// Writes the rows. In a second pass `judge` hears of every input that was tried.
    fn write_rows(
        &mut self,
        rows: RowsToWrite<'_, Self::Table>,
        judge: InputJudge<'_>,
    ) -> impl Future<Output = Result<Outcome, Trouble>> + Send;

    /// COMMIT, with its outcome looked at. `sent` is the fault point between COMMIT and its answer.
    fn commit(&mut self, sent: &'static str) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// ROLLBACK. A session that cannot even do that is closed, and the database rolls back by itself.
    fn roll_back(&mut self) -> impl Future<Output = ()> + Send;

    /// Reads the live table again, outside a transaction.
    fn read_table_again(&mut self, was: &Self::Table) -> impl Future<Output = Result<Self::Table, SinkError>> + Send;

    /// A moment of random length: after a deadlock both sides go again, not at the same moment.
    fn pause(&mut self) -> impl Future<Output = ()> + Send;
}

/// The same, with our own tables beside the rows.
pub trait EpochTransaction: RowTransaction {
    /// The compare-and-swap: progress must be exactly `was`, and moves to the record's end.
    fn swap_progress(
        &mut self,
        id: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
    ) -> impl Future<Output = Result<Progress, SinkError>> + Send;

    /// Keeps the contract in step with a table that the database has numbered anew.
    fn follow_table(
        &mut self,
        id: &DeliveryId,
        table: &Self::Table,
        progress: Progress,
    ) -> impl Future<Output = Result<Progress, SinkError>> + Send;

    /// Adds dead letters of an epoch.
    fn insert_letters(
        &mut self,
        epoch: LetterEpoch<'_>,
        letters: &[Letter],
    ) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Writes other totals than the swap did.
    fn correct_totals(
        &mut self,
        id: &DeliveryId,
        epoch: Epoch,
        totals: Totals,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Moves the position to the record's end, which is earlier than the one that the swap wrote.
    fn end_earlier(
        &mut self,
        id: &DeliveryId,
        record: &EpochRecord,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// The epoch's log row.
    fn log_epoch(
        &mut self,
        id: &DeliveryId,
        generation: Generation,
        record: &EpochRecord,
        counts: Totals,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;
}

/// Which epoch letters belong to.
#[derive(Debug, Clone, Copy)]
pub struct LetterEpoch<'a> {
    pub(crate) id: &'a DeliveryId,
    pub(crate) generation: Generation,
    pub(crate) epoch: Epoch,
    pub(crate) incarnation: &'a Incarnation,
}

/// Commits the epoch, in as many tries as it takes; only the last one leaves anything behind.
///
/// With what it did it tells the table as it was read last: it may have changed. If it has columns now that the events
/// were not decoded for, nothing was committed.
pub(crate) async fn commit_epoch<H, T>(
    transaction: &mut T,
    job: &Job<H>,
    unique: UniqueKeys,
) -> Result<(Option<Committed>, Arc<T::Table>), SinkError>
where
    H: Home<Inspected = T::Table>,
    T: EpochTransaction,
{
    let mut table = Arc::clone(&job.inspected);
    let mut tries = Tries::new(Pass::Fast);
    loop {
        let trouble = match try_epoch(transaction, job, unique, &table, &tries).await {
            Ok(committed) => return Ok((Some(committed), table)),
            Err(trouble) => trouble,
        };
        let before = tries.after(trouble, &job.target)?;
        before_next_try(transaction, before, &mut table).await?;
        if before == Before::ReadSchema && !is_decoded_for(&job.batch, &*table) {
            return Ok((None, table));
        }
    }
}

/// What must happen between two tries.
pub(crate) async fn before_next_try<T: RowTransaction>(
    transaction: &mut T,
    before: Before,
    table: &mut Arc<T::Table>,
) -> Result<(), SinkError> {
    match before {
        Before::Nothing => {}
        Before::Pause => transaction.pause().await,
        Before::ReadSchema => *table = Arc::new(transaction.read_table_again(table).await?),
    }
    Ok(())
}

/// Whether the events have all fields that the table takes: it may have got columns since they were read.
pub(crate) fn is_decoded_for(batch: &Batch, table: &impl Inspection) -> bool {
    batch.is_empty() || table.mapping().fields.iter().all(|field| batch.layout().slot_of(field).is_some())
}

async fn try_epoch<H, T>(
    transaction: &mut T,
    job: &Job<H>,
    unique: UniqueKeys,
    table: &T::Table,
    tries: &Tries,
) -> Result<Committed, Trouble>
where
    H: Home<Inspected = T::Table>,
    T: EpochTransaction,
{
    let incarnation = job.record.incarnation().number;
    let rows = Rows::new(table.mapping(), &job.batch, Incarnations::One(incarnation));
    rows.refuse_gone(&job.target)?;
    let order = judged_order(transaction, table, &rows, unique, &tries.pass)?;
    if planted(Bug::LettersOutsideTransaction) {
        let letters: Vec<Letter> = job.batch.letters().iter().map(|(_, letter)| letter.clone()).collect();
        transaction.insert_letters(letter_epoch(job), &letters).await?;
    }
    transaction.begin(Besides::Progress).await?;
    point("sql.begun");
    let turn = tries.turn(table.mapping());
    let to_write = RowsToWrite { table, rows: &rows, order: &order, pass: &tries.pass };
    let filled = fill(transaction, job, to_write, turn).await;
    // The position says which it was, if the answer to COMMIT is lost.
    let whole = filled.as_ref().map_or(true, |committed| committed.progress.bookmark == job.record.to);
    let sent = if whole { "sql.commit_sent" } else { "sql.prefix_committed" };
    let committed = end(transaction, sent, filled).await?;
    if planted(Bug::ProgressOutsideTransaction) {
        progress_afterwards(transaction, job, committed.progress.totals).await?;
    }
    Ok(committed)
}

/// The order of writing. An event is judged whether or not another of its key takes its place in this epoch: where an
/// epoch is cut must not show.
fn judged_order<T: RowTransaction>(
    transaction: &T,
    table: &T::Table,
    rows: &RowsOf<'_, T::Table>,
    unique: UniqueKeys,
    pass: &Pass,
) -> Result<RowOrder, Trouble> {
    let order = RowOrder::of(rows, unique, pass)?;
    let unfit = !order.superseded.is_empty() && transaction.refuses_one(table, rows, &order.superseded);
    if unfit { Err(refused()) } else { Ok(order) }
}

/// Everything between BEGIN and COMMIT.
async fn fill<H, T>(
    transaction: &mut T,
    job: &Job<H>,
    rows: RowsToWrite<'_, T::Table>,
    turn: Turn,
) -> Result<Committed, Trouble>
where
    H: Home<Inspected = T::Table>,
    T: EpochTransaction,
{
    let Job { id, was, record, batch, .. } = job;
    let swapped = swap_first(transaction, job).await?;
    point("sql.cas_done");
    transaction.hold_table(rows.table, turn).await?;
    let swapped = transaction.follow_table(id, rows.table, swapped).await?;
    let judge = InputJudge::new(batch, &record.rejects, &record.pass);
    let outcome = transaction.write_rows(rows, judge).await?;
    let books = EpochBooks::close(record, batch, &outcome)?;
    let record = &prefix_record(record, batch, outcome.inputs.unwrap_or(batch.inputs.len()));
    transaction.insert_letters(letter_epoch(job), &books.letters).await?;
    point("sql.dead_letters_written");
    let totals = was.totals.plus(books.counts);
    if !planted(Bug::ProgressOutsideTransaction) {
        if outcome.inputs.is_some() && !planted(Bug::PrefixSavesWholePosition) {
            transaction.end_earlier(id, record).await?;
        }
        if outcome.inputs.is_some() || !outcome.refused.is_empty() {
            transaction.correct_totals(id, record.epoch, totals).await?;
        }
        transaction.log_epoch(id, was.generation, record, books.counts).await?;
    }
    point("sql.before_commit");
    Ok(books.committed(Progress { totals, bookmark: record.to.clone(), ..swapped }, true))
}

/// Commits what went well, and rolls back what did not.
pub(crate) async fn end<T: RowTransaction, R>(
    transaction: &mut T,
    sent: &'static str,
    filled: Result<R, Trouble>,
) -> Result<R, Trouble> {
    match filled {
        Ok(done) => {
            transaction.commit(sent).await?;
            Ok(done)
        }
        Err(trouble) => {
            if matches!(trouble, Trouble::Refused) {
                point("sql.rejected");
            }
            transaction.roll_back().await;
            Err(trouble)
        }
    }
}

async fn swap_first<H, T>(transaction: &mut T, job: &Job<H>) -> Result<Progress, SinkError>
where
    H: Home<Inspected = T::Table>,
    T: EpochTransaction,
{
    if planted(Bug::ProgressOutsideTransaction) {
        let (epoch, bookmark) = (job.record.epoch, job.record.to.clone());
        return Ok(Progress { epoch, bookmark, ..job.was.clone() });
    }
    transaction.swap_progress(&job.id, &expected_progress(&job.was, &job.record), &job.record).await
}

/// Only with the bug planted: progress in a transaction of its own, after the data. Its COMMIT is at no fault point: at
/// `sql.commit_sent` an epoch's rows are always there, and its progress is not.
async fn progress_afterwards<H, T>(transaction: &mut T, job: &Job<H>, totals: Totals) -> Result<(), Trouble>
where
    H: Home<Inspected = T::Table>,
    T: EpochTransaction,
{
    transaction.begin(Besides::Progress).await?;
    transaction.swap_progress(&job.id, &expected_progress(&job.was, &job.record), &job.record).await?;
    transaction.correct_totals(&job.id, job.record.epoch, totals).await?;
    transaction.log_epoch(&job.id, job.was.generation, &job.record, job.record.counts).await?;
    Ok(transaction.commit("planted.progress_sent").await?)
}

fn letter_epoch<H: Home>(job: &Job<H>) -> LetterEpoch<'_> {
    let Job { id, was, record, .. } = job;
    LetterEpoch { id, generation: was.generation, epoch: record.epoch, incarnation: record.incarnation() }
}

/// A batch for a table whose database holds nothing of ours.
#[derive(Debug)]
pub(crate) struct UpsertJob<'a> {
    pub(crate) target: &'a str,
    pub(crate) unique: UniqueKeys,
    pub(crate) batch: &'a Batch,
    pub(crate) limits: &'a UpsertLimits,
}

/// Writes a batch and nothing else, in as many tries as it takes; only the last one leaves anything behind. Nothing is
/// written if the table has columns now that the events were not decoded for.
pub(crate) async fn commit_rows<T: RowTransaction>(
    transaction: &mut T,
    job: &UpsertJob<'_>,
    mut table: Arc<T::Table>,
) -> Result<(Option<Outcome>, Arc<T::Table>), SinkError> {
    let mut tries = Tries::new(Pass::Fast);
    loop {
        let trouble = match try_rows(transaction, job, &table, &tries).await {
            Ok(outcome) => return Ok((Some(outcome), table)),
            Err(trouble) => trouble,
        };
        let before = tries.after(trouble, job.target)?;
        before_next_try(transaction, before, &mut table).await?;
        if before == Before::ReadSchema && !is_decoded_for(job.batch, &*table) {
            return Ok((None, table));
        }
    }
}

async fn try_rows<T: RowTransaction>(
    transaction: &mut T,
    job: &UpsertJob<'_>,
    table: &T::Table,
    tries: &Tries,
) -> Result<Outcome, Trouble> {
    // No version is made from positions here: the mapping refuses that where progress is elsewhere.
    let rows = Rows::new(table.mapping(), job.batch, Incarnations::One(0));
    rows.refuse_gone(job.target)?;
    let order = judged_order(transaction, table, &rows, job.unique, &tries.pass)?;
    transaction.begin(Besides::Nothing).await?;
    point("sql.begun");
    let turn = tries.turn(table.mapping());
    let written = match transaction.hold_table(table, turn).await {
        Ok(()) => {
            let judge = InputJudge::new(job.batch, &job.limits.rejects, &job.limits.pass);
            let to_write = RowsToWrite { table, rows: &rows, order: &order, pass: &tries.pass };
            transaction.write_rows(to_write, judge).await
        }
        Err(trouble) => Err(trouble),
    };
    let judged = written.and_then(|outcome| {
        judge(&job.limits.rejects, job.batch, &outcome.refused)?;
        point("sql.before_commit");
        Ok(outcome)
    });
    end(transaction, "sql.commit_sent", judged).await
}
