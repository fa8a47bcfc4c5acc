//! Dead letters written again, where they live, for all SQL databases: lock, outputs, mark, COMMIT, in one transaction.
//!
//! Invariant: a letter is replayed once, by whoever locks it first; no position and no epoch changes. Not here: SQL;
//! decoding the letters' bytes (the caller's).
//! Event `i` of the batch comes from `letters[batch input of i]`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::letters::{ReplayRule, Replayed};
use hapax_engine::rows::RowState;
use hapax_engine::second_pass::{InputJudge, SecondPass};
use hapax_engine::sink::SinkError;
use hapax_model::fault::point;
use hapax_model::letter::Cause;
use hapax_model::position::DeliveryId;
use hapax_model::rejects::{OnReject, RejectRule};

use super::order::RowOrder;
use super::rows::{Incarnations, Rows};
use super::seen::Inspection;
use super::sink::Home;
use super::transaction::{Besides, RowTransaction, RowsToWrite, before_next_try, end, is_decoded_for};
use super::tries::{Before, Outcome, Pass, Tries, Trouble};

/// All that a replay needs.
#[derive(Debug)]
pub struct ReplayJob<H: Home> {
    pub(crate) config: Arc<H::Config>,
    pub(crate) target: String,
    pub(crate) id: DeliveryId,
    pub(crate) inspected: Arc<H::Inspected>,
    pub(crate) letters: Vec<i64>,
    pub(crate) batch: Batch,
    pub(crate) rule: ReplayRule,
}

/// A transaction that writes rows and marks letters: the steps in which databases differ.
pub trait ReplayTransaction: RowTransaction {
    /// Locks those of `letters` that are still dead.
    fn lock_dead_letters(&mut self, letters: &[i64]) -> impl Future<Output = Result<Vec<i64>, SinkError>> + Send;

    /// Locks the progress of all lanes of the delivery's sink: every commit begins with it, so that none of them comes
    /// before the end of this transaction.
    fn lock_progress(&mut self, id: &DeliveryId) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// What is there under the keys of `events`.
    fn row_states(
        &mut self,
        table: &Self::Table,
        batch: &Batch,
        events: &[usize],
    ) -> impl Future<Output = Result<Vec<RowState>, SinkError>> + Send;

    /// The number of the incarnation that each letter's position belongs to.
    fn incarnations(&mut self, letters: &[i64]) -> impl Future<Output = Result<Vec<u32>, SinkError>> + Send;

    /// Marks letters as replayed; how many were.
    fn mark_replayed(&mut self, letters: &[i64]) -> impl Future<Output = Result<u64, SinkError>> + Send;

    /// A letter that was refused again stays dead, with the newer reason.
    fn note_refused(&mut self, refused: &BTreeMap<i64, Cause>) -> impl Future<Output = Result<(), SinkError>> + Send;
}

/// Replays letters, in as many tries as it takes; only the last one leaves anything behind.
pub(crate) async fn replay_letters<H, T>(transaction: &mut T, job: &ReplayJob<H>) -> Result<Replayed, SinkError>
where
    H: Home<Inspected = T::Table>,
    T: ReplayTransaction,
{
    let mut table = Arc::clone(&job.inspected);
    // In lane order with savepoints from the first try on: there are few of them, and each is suspect.
    let mut tries = Tries::new(Pass::slow());
    loop {
        let trouble = match try_replay(transaction, job, &table, &tries).await {
            Ok(replayed) => return Ok(replayed),
            Err(trouble) => trouble,
        };
        let before = tries.after(trouble, &job.target)?;
        before_next_try(transaction, before, &mut table).await?;
        if before == Before::ReadSchema && !is_decoded_for(&job.batch, &*table) {
            return Err(SinkError::FieldsAdded { target: job.target.clone() });
        }
    }
}

async fn try_replay<H, T>(
    transaction: &mut T,
    job: &ReplayJob<H>,
    table: &T::Table,
    tries: &Tries,
) -> Result<Replayed, Trouble>
where
    H: Home<Inspected = T::Table>,
    T: ReplayTransaction,
{
    // All letters may be taken already.
    transaction.begin(Besides::Nothing).await?;
    let filled = fill(transaction, job, table, tries).await;
    end(transaction, "dlq.commit_sent", filled).await
}

/// Everything between BEGIN and COMMIT.
async fn fill<H, T>(
    transaction: &mut T,
    job: &ReplayJob<H>,
    table: &T::Table,
    tries: &Tries,
) -> Result<Replayed, Trouble>
where
    H: Home<Inspected = T::Table>,
    T: ReplayTransaction,
{
    let mut locked = Locked::new(&job.letters, &job.batch, transaction.lock_dead_letters(&job.letters).await?);
    point("dlq.locked");
    if job.rule == ReplayRule::OnlyAbsent {
        // Before the table, as every commit does: whoever takes two locks in one order does not wait in a circle.
        transaction.lock_progress(&job.id).await?;
    }
    let turn = tries.turn(table.mapping());
    transaction.hold_table(table, turn).await?;
    if job.rule == ReplayRule::OnlyAbsent {
        let events = locked.order();
        let states = transaction.row_states(table, &job.batch, &events).await?;
        locked.leave_present(&events, &states);
    }
    let numbers = transaction.incarnations(&job.letters).await?;
    let rows = Rows::new(table.mapping(), &job.batch, Incarnations::PerInput(numbers));
    let order = RowOrder::as_given(locked.order());
    // A replay judges no letter by the others, and is short.
    let (all_may_die, whole) = (RejectRule::new(OnReject::DeadLetter, 1000), SecondPass::default());
    let judge = InputJudge::new(&job.batch, &all_may_die, &whole);
    let to_write = RowsToWrite { table, rows: &rows, order: &order, pass: &tries.pass };
    let outcome = transaction.write_rows(to_write, judge).await?;
    point("dlq.output_written");
    let marks = locked.marks(&outcome);
    let replayed = transaction.mark_replayed(&marks.good).await?;
    transaction.note_refused(&marks.refused).await?;
    point("dlq.marked");
    Ok(locked.done(replayed, marks, &outcome))
}

/// A replay whose letters are locked.
#[derive(Debug)]
pub struct Locked<'a> {
    letters: &'a [i64],
    batch: &'a Batch,
    /// Those of `letters` that were still dead.
    dead: BTreeSet<i64>,
    /// Inputs that died again before they reached the table.
    in_fill: BTreeMap<usize, Cause>,
    /// Those of `letters` that are left alone, because a row of theirs is there.
    present: BTreeSet<i64>,
}

/// What is to be written down about the letters.
#[derive(Debug, PartialEq, Eq)]
pub struct Marks {
    /// Letters whose outputs are in the table now.
    pub good: Vec<i64>,
    /// Letters refused again, with the newer reason.
    pub refused: BTreeMap<i64, Cause>,
}

impl<'a> Locked<'a> {
    /// `dead` are those of `letters` that are locked by us.
    #[must_use]
    pub fn new(letters: &'a [i64], batch: &'a Batch, dead: impl IntoIterator<Item = i64>) -> Self {
        let dead: BTreeSet<i64> = dead.into_iter().collect();
        let ours = |input: usize| letters.get(input).is_some_and(|id| dead.contains(id));
        let died = batch.letters().iter().filter(|(input, _)| ours(*input));
        let in_fill = died.map(|(input, letter)| (*input, letter.cause.clone())).collect();
        Self { letters, batch, dead, in_fill, present: BTreeSet::new() }
    }

    /// Leaves letters alone that have a row: `states` is what is there under the keys of `events`.
    pub fn leave_present(&mut self, events: &[usize], states: &[RowState]) {
        for (event, state) in events.iter().zip(states) {
            let id = self.letters.get(self.batch.event(*event).input()).copied();
            if let (Some(id), RowState::Present | RowState::Tombstone) = (id, state) {
                self.dead.remove(&id);
                self.present.insert(id);
            }
        }
    }

    /// The events to write, in lane order.
    #[must_use]
    pub fn order(&self) -> Vec<usize> {
        let writes = |event: &usize| {
            let input = self.batch.event(*event).input();
            let ours = self.letters.get(input).is_some_and(|id| self.dead.contains(id));
            ours && !self.in_fill.contains_key(&input)
        };
        (0..self.batch.len()).filter(writes).collect()
    }

    /// How the letters are to be marked after the rows were written.
    #[must_use]
    pub fn marks(&self, outcome: &Outcome) -> Marks {
        let again = outcome.refused.iter().map(|(event, cause)| (self.batch.event(*event).input(), cause));
        let refused = self.in_fill.iter().map(|(input, cause)| (*input, cause)).chain(again);
        let refused: BTreeMap<i64, Cause> =
            refused.filter_map(|(input, cause)| Some((*self.letters.get(input)?, cause.clone()))).collect();
        let good = self.dead.iter().copied().filter(|id| !refused.contains_key(id)).collect();
        Marks { good, refused }
    }

    /// What the replay did, once `replayed` letters are marked.
    #[must_use]
    pub fn done(&self, replayed: u64, marks: Marks, outcome: &Outcome) -> Replayed {
        Replayed {
            replayed,
            taken: (self.letters.len() - self.dead.len() - self.present.len()) as u64,
            refused: marks.refused.into_iter().map(|(id, cause)| (id, cause.to_string())).collect(),
            present: self.present.iter().copied().collect(),
            written: outcome.written,
        }
    }
}
