//! The parts of an epoch's commit that need no database: what died, what is judged, what is counted.

use hapax_engine::batch::Batch;
use hapax_engine::sink::{EpochRecord, SinkError};
use hapax_model::epoch::Epoch;
use hapax_model::fault::{Bug, planted, point};
use hapax_model::ledger::Totals;
use hapax_model::letter::Letter;
use hapax_model::progress::Progress;

use super::column::LiveColumn;
use super::config::UniqueKeys;
use super::rows::Rows;
use super::tries::{Outcome, Pass, Trouble};

/// The events of the first try, reduced and sorted; all of them in lane order for the slow one.
///
/// # Errors
/// [`Trouble::Refused`] if an event has no key and must be found.
pub fn order<C: LiveColumn>(rows: &Rows<'_, C>, unique: UniqueKeys, pass: &Pass) -> Result<Vec<usize>, Trouble> {
    match pass {
        Pass::Fast => rows.reduced(unique)?.ok_or_else(|| {
            point("sql.rejected");
            Trouble::Refused
        }),
        Pass::Slow { .. } if planted(Bug::SortedBisect) => Ok(rows.sorted_by_key()),
        Pass::Slow { .. } => Ok((0..rows.batch.len()).collect()),
    }
}

/// Progress as it must be for this epoch to be the next one: what the record says, not what we remember.
#[must_use]
pub fn expected(was: &Progress, record: &EpochRecord) -> Progress {
    let epoch = Epoch(record.epoch.0.saturating_sub(1));
    Progress { epoch, bookmark: record.from.clone(), ..was.clone() }
}

/// Inputs of which a row was refused, and those that died in the fill; ascending.
#[must_use]
pub fn dead_inputs(batch: &Batch, outcome: &Outcome) -> Vec<usize> {
    let filled = batch.letters().iter().map(|(input, _)| *input);
    let refused = outcome.refused.iter().map(|(event, _)| batch.event(*event).input());
    let mut dead: Vec<usize> = filled.chain(refused).collect();
    dead.sort_unstable();
    dead.dedup();
    dead
}

/// Whether so many may be rejected.
///
/// # Errors
/// [`SinkError::Rejected`] if not.
pub fn judge(record: &EpochRecord, batch: &Batch, outcome: &Outcome, dead: &[usize]) -> Result<(), SinkError> {
    let Err(stop) = record.rejects.judge(batch.inputs.len(), dead) else { return Ok(()) };
    let guilty = stop.input();
    let in_fill = batch.letters().iter().find(|(input, _)| *input == guilty).map(|(_, letter)| &letter.cause);
    let refused = outcome.refused.iter().find(|(event, _)| batch.event(*event).input() == guilty);
    let cause = in_fill.or(refused.map(|(_, cause)| cause));
    let message = cause.map(|cause| cause.message.clone()).unwrap_or_default();
    Err(SinkError::Rejected { stop, position: batch.inputs.position(guilty), message })
}

/// The letters of the fill and of the refused rows, in lane order.
#[must_use]
pub fn letters(batch: &Batch, outcome: &Outcome) -> Vec<Letter> {
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

/// The epoch's counts, less what the table refused. An input whose row was refused has none of its rows written.
#[must_use]
pub fn counts(planned: Totals, batch: &Batch, outcome: &Outcome) -> Totals {
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
