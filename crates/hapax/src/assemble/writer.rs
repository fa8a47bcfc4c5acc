//! Where replayed letters are written: beside their mark, or in a target that holds none of our tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::books::Books as _;
use hapax_engine::in_doubt::still_in_doubt;
use hapax_engine::letters::{ReplayRule, Replayed, StoredLetter};
use hapax_engine::second_pass::SecondPass;
use hapax_engine::sink::{IdempotentSink as _, Target as _, UpsertLimits};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::letter::Cause;
use hapax_model::mode::ProgressPlace;
use hapax_model::rejects::{OnReject, RejectRule};

use super::{AnyBareTable, AnyBooks, AnyTable, Part, Purpose, plan};
use crate::exit::Failure;

/// A target into which letters are replayed.
#[derive(Debug)]
pub(crate) enum Writer {
    /// Row and mark in one transaction.
    Table(AnyTable),
    /// The row in the target, then the mark in the state store.
    Apart(AnyBareTable),
}

impl Writer {
    /// Opens the target and reads its table.
    pub(crate) async fn open(part: &Part<'_>) -> Result<Self, Failure> {
        match part.table().progress {
            ProgressPlace::Sink => {
                let mut table = AnyTable::of_part(part, part.id(), Purpose::Change);
                table.inspect().await?;
                Ok(Self::Table(table))
            }
            ProgressPlace::State => {
                let mut table = AnyBareTable::of_part(part, plan::strategy(&part.workflow.delivery), Purpose::Change);
                table.inspect().await?;
                Ok(Self::Apart(table))
            }
        }
    }

    /// The fields that the table wants.
    pub(crate) fn fields(&self) -> &[FieldPath] {
        match self {
            Self::Table(table) => table.fields(),
            Self::Apart(table) => table.fields(),
        }
    }

    /// Writes the events of `batch`, whose inputs are `letters`, and marks those that went through. Only a table
    /// with our progress beside it can keep to `rule`.
    pub(crate) async fn write(
        &mut self,
        books: &mut AnyBooks,
        letters: &[StoredLetter],
        batch: Batch,
        rule: ReplayRule,
    ) -> Result<Replayed, Failure> {
        match self {
            Self::Table(table) => {
                let ids: Vec<i64> = letters.iter().map(|letter| letter.id).collect();
                Ok(table.replay(&ids, batch, rule).await?)
            }
            Self::Apart(table) => write_apart(table, books, letters, batch).await,
        }
    }
}

async fn write_apart(
    sink: &mut AnyBareTable,
    books: &mut AnyBooks,
    letters: &[StoredLetter],
    batch: Batch,
) -> Result<Replayed, Failure> {
    let batch = Arc::new(batch);
    // A replay judges no letter by the others.
    let limits = UpsertLimits {
        epoch: Epoch(0),
        rejects: RejectRule::new(OnReject::DeadLetter, 1000),
        pass: SecondPass::default(),
    };
    let upserted = sink.upsert_batch(Arc::clone(&batch), &limits).await?;
    // What was in doubt before this replay, as it was listed, still is: it may have been sent then.
    let reason = |input: usize, cause: &Cause| {
        let letter = &letters[input];
        (letter.id, if letter.is_in_doubt() { still_in_doubt(cause) } else { cause.clone() })
    };
    let in_fill = batch.letters().iter().map(|(input, letter)| reason(*input, &letter.cause));
    let again = upserted.refused.iter().map(|(event, cause)| reason(batch.event(*event).input(), cause));
    let refused: BTreeMap<i64, Cause> = in_fill.chain(again).collect();
    let good: Vec<i64> = letters.iter().map(|letter| letter.id).filter(|id| !refused.contains_key(id)).collect();
    let replayed = books.mark_replayed(&good, &refused).await?;
    let refused = refused.into_iter().map(|(id, cause)| (id, cause.to_string())).collect();
    Ok(Replayed { replayed, taken: 0, refused, present: Vec::new(), written: upserted.written })
}
