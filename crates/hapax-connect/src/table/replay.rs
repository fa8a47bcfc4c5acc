//! The parts of a replay of dead letters that need no database: whose turn it is, what was refused again.
//!
//! Event `i` of the batch comes from `letters[batch input of i]`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::letters::Replayed;
use hapax_model::letter::Cause;
use hapax_model::position::DeliveryId;

use super::sink::Home;
use super::tries::Outcome;

/// All that a replay needs.
#[derive(Debug)]
pub struct ReplayJob<H: Home> {
    pub(crate) config: Arc<H::Config>,
    pub(crate) target: String,
    pub(crate) id: DeliveryId,
    pub(crate) inspected: Arc<H::Inspected>,
    pub(crate) letters: Vec<i64>,
    pub(crate) batch: Batch,
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
        Self { letters, batch, dead, in_fill }
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
            taken: (self.letters.len() - self.dead.len()) as u64,
            refused: marks.refused.into_iter().map(|(id, cause)| (id, cause.to_string())).collect(),
            written: outcome.written,
        }
    }
}
