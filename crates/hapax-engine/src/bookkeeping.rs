//! The books of one epoch, for every place where progress can live: what died, whether so much may die, what is counted.
//!
//! Reads: the epoch's record, its batch, and what the target refused. Writes: nothing. Invariant: every input of the
//! epoch has one fate, and a dead one has one letter. Not here: where the books are stored (the sinks).

use std::collections::BTreeSet;

use hapax_model::epoch::Epoch;
use hapax_model::fault::{Bug, planted};
use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, CauseCount, Letter, count_causes};
use hapax_model::position::Bookmark;
use hapax_model::progress::Progress;
use hapax_model::rejects::RejectRule;

use crate::batch::Batch;
use crate::sink::{Committed, EpochRecord, SinkError, WriteOutcome, Written};

/// More causes than this in one epoch are counted under the last one.
const MOST_CAUSES: usize = 64;

/// What an epoch did, as it is written down beside its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EpochBooks {
    /// The epoch's counts, less what the target refused.
    pub counts: Totals,
    /// The letters of the fill and of the refused rows, in lane order, one for each dead input.
    pub letters: Vec<Letter>,
    /// Indexes of the inputs that died, ascending; those of the fill included.
    pub dead_inputs: Vec<usize>,
    /// Why they died, by cause.
    pub causes: Vec<CauseCount>,
    /// Rows by what became of them.
    pub written: Written,
}

impl EpochBooks {
    /// Closes the books of an epoch whose rows were written, with what the target refused.
    ///
    /// # Errors
    /// [`SinkError::Rejected`] if more died than the record allows: the epoch must not commit.
    pub fn close(record: &EpochRecord, batch: &Batch, outcome: &WriteOutcome) -> Result<Self, SinkError> {
        let (refused, inputs) = (&outcome.refused, outcome.inputs.unwrap_or(batch.inputs.len()));
        let dead_inputs = dead_inputs(batch, refused, inputs);
        judge_inputs(&record.rejects, batch, refused, &dead_inputs, inputs)?;
        Ok(Self {
            counts: counts(batch, refused, &dead_inputs, inputs),
            letters: letters(batch, refused, inputs),
            dead_inputs,
            causes: causes(batch, refused, inputs),
            written: outcome.written,
        })
    }

    /// What the sink answers, once the epoch has committed and progress is this.
    #[must_use]
    pub fn committed(self, progress: Progress, stored: bool) -> Committed {
        let Self { written, dead_inputs, causes, .. } = self;
        Committed { progress, stored, written, dead_inputs, causes }
    }
}

/// Progress as it must be for this epoch to be the next one: what the record says, not what we remember.
#[must_use]
pub fn expected_progress(was: &Progress, record: &EpochRecord) -> Progress {
    let epoch = Epoch(record.epoch.0.saturating_sub(1));
    Progress { epoch, bookmark: record.from.clone(), ..was.clone() }
}

/// The epoch, if only the first `inputs` inputs of its batch belong to it: it ends before the next one.
#[must_use]
pub fn prefix_record(record: &EpochRecord, batch: &Batch, inputs: usize) -> EpochRecord {
    if inputs >= batch.inputs.len() {
        return record.clone();
    }
    let (position, facts) = (batch.inputs.position(inputs), record.to.facts.clone());
    let to = Bookmark { incarnation: record.incarnation().clone(), position, facts };
    EpochRecord { to, counts: batch.counts_of_first(inputs), ..record.clone() }
}

/// Why inputs of `batch` died: those of the fill among the first `inputs`, and `refused`, by event, which the target did
/// not take.
#[must_use]
pub fn causes(batch: &Batch, refused: &[(usize, Cause)], inputs: usize) -> Vec<CauseCount> {
    let in_fill = batch.letters().iter().take_while(|(input, _)| *input < inputs).map(|(_, letter)| &letter.cause);
    count_causes(in_fill.chain(refused.iter().map(|(_, cause)| cause)), MOST_CAUSES)
}

/// Inputs of which a row was refused, and those that died in the fill; ascending.
fn dead_inputs(batch: &Batch, refused: &[(usize, Cause)], inputs: usize) -> Vec<usize> {
    let in_fill = batch.letters().iter().map(|(input, _)| *input).take_while(|input| *input < inputs);
    let dead: BTreeSet<usize> = in_fill.chain(inputs_of(batch, refused)).collect();
    dead.into_iter().collect()
}

fn inputs_of(batch: &Batch, refused: &[(usize, Cause)]) -> impl Iterator<Item = usize> {
    refused.iter().map(|(event, _)| batch.event(*event).input())
}

/// Whether so many of a batch may be rejected: those of the fill, and `refused`, by event.
///
/// # Errors
/// [`SinkError::Rejected`] if not: the input that broke the rule, with its own cause.
pub fn judge(rejects: &RejectRule, batch: &Batch, refused: &[(usize, Cause)]) -> Result<(), SinkError> {
    let inputs = batch.inputs.len();
    judge_inputs(rejects, batch, refused, &dead_inputs(batch, refused, inputs), inputs)
}

fn judge_inputs(
    rejects: &RejectRule,
    batch: &Batch,
    refused: &[(usize, Cause)],
    dead: &[usize],
    inputs: usize,
) -> Result<(), SinkError> {
    let Err(stop) = rejects.judge(inputs, dead) else { return Ok(()) };
    let guilty = stop.input();
    // The last that died; the input with which it was too many may be a good one.
    let in_fill = batch.letters().iter().map(|(input, letter)| (*input, &letter.cause));
    let refused = refused.iter().map(|(event, cause)| (batch.event(*event).input(), cause));
    let last = in_fill.chain(refused).filter(|(input, _)| *input <= guilty).max_by_key(|(input, _)| *input);
    let message = last.map(|(_, cause)| cause.message.clone()).unwrap_or_default();
    Err(SinkError::Rejected { stop, position: batch.inputs.position(guilty), message })
}

/// One letter for each dead input, in lane order.
fn letters(batch: &Batch, refused: &[(usize, Cause)], inputs: usize) -> Vec<Letter> {
    let in_fill = batch.letters().iter().take_while(|(input, _)| *input < inputs);
    let in_fill = in_fill.filter(|_| !planted(Bug::LettersOutsideTransaction));
    let mut all: Vec<(usize, Letter)> = in_fill.cloned().collect();
    all.extend(refused.iter().map(|(event, cause)| {
        let event = batch.event(*event);
        let key = event.event_key().map(|key| key.text().to_string());
        (event.input(), batch.letter(event.input(), cause.clone(), key))
    }));
    all.sort_by_key(|(input, _)| *input);
    all.dedup_by_key(|(input, _)| *input);
    all.into_iter().map(|(_, letter)| letter).collect()
}

/// The counts of the batch, less what the target refused. An input whose row was refused has none of its rows written.
fn counts(batch: &Batch, refused: &[(usize, Cause)], dead_inputs: &[usize], inputs: usize) -> Totals {
    let planned = batch.counts_of_first(inputs);
    if refused.is_empty() {
        return planned;
    }
    let refused: BTreeSet<usize> = inputs_of(batch, refused).collect();
    let dead = dead_inputs.len() as u64;
    let events = batch.events().take_while(|event| event.input() < inputs);
    let rows = events.filter(|event| !refused.contains(&event.input())).count() as u64;
    Totals { dead, delivered: planned.read.saturating_sub(planned.filtered + dead), rows, ..planned }
}

#[cfg(test)]
#[path = "bookkeeping_tests.rs"]
mod tests;
