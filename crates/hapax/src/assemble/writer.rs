//! Where replayed letters are written: beside their mark, or in a target that holds none of our tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::books::Books as _;
use hapax_engine::letters::{ReplayRule, Replayed};
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

    /// Writes the events of `batch`, whose inputs are the letters `ids`, and marks those that went through. Only a table
    /// with our progress beside it can keep to `rule`.
    pub(crate) async fn write(
        &mut self,
        books: &mut AnyBooks,
        ids: &[i64],
        batch: Batch,
        rule: ReplayRule,
    ) -> Result<Replayed, Failure> {
        match self {
            Self::Table(table) => Ok(table.replay(ids, batch, rule).await?),
            Self::Apart(table) => write_apart(table, books, ids, batch).await,
        }
    }
}

async fn write_apart(
    sink: &mut AnyBareTable,
    books: &mut AnyBooks,
    ids: &[i64],
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
    let mut refused: BTreeMap<i64, Cause> =
        batch.letters().iter().map(|(input, letter)| (ids[*input], letter.cause.clone())).collect();
    let events = upserted.refused.iter();
    refused.extend(events.map(|(event, cause)| (ids[batch.event(*event).input()], cause.clone())));
    let good: Vec<i64> = ids.iter().copied().filter(|id| !refused.contains_key(id)).collect();
    let replayed = books.mark_replayed(&good, &refused).await?;
    let refused = refused.into_iter().map(|(id, cause)| (id, cause.to_string())).collect();
    Ok(Replayed { replayed, taken: 0, refused, present: Vec::new(), written: upserted.written })
}
