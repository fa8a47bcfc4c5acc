//! What a buffer counts, and a buffer without some of its events.

use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, Letter};

use super::{Batch, Operation};

impl Batch {
    /// What an epoch of this buffer counts if the target refuses nothing.
    #[must_use]
    pub fn counts(&self) -> Totals {
        let (read, dead, filtered) = (self.inputs.len() as u64, self.letters.len() as u64, self.filtered);
        Totals { read, dead, filtered, delivered: read - dead - filtered, rows: self.len() as u64 }
    }

    /// The same for its first `inputs` inputs.
    #[must_use]
    pub fn counts_of_first(&self, inputs: usize) -> Totals {
        if inputs >= self.inputs.len() {
            return self.counts();
        }
        let events = self.events.partition_point(|event| (event.input as usize) < inputs);
        let delivered = self.events[..events].chunk_by(|one, other| one.input == other.input).count() as u64;
        let dead = self.letters.partition_point(|(input, _)| *input < inputs) as u64;
        let read = inputs as u64;
        Totals { read, dead, filtered: read - delivered - dead, delivered, rows: events as u64 }
    }

    /// What is left without the first `inputs` inputs.
    #[must_use]
    pub fn after_first(&self, inputs: usize) -> Self {
        let mut rest = self.without_events_before(inputs);
        rest.filtered -= self.counts_of_first(inputs).filtered;
        rest.inputs.entries.drain(..inputs);
        rest.events.iter_mut().for_each(|event| event.input -= u32::try_from(inputs).unwrap_or(u32::MAX));
        let letters = self.letters.iter().filter(|(input, _)| *input >= inputs);
        rest.letters = letters.map(|(input, letter)| (input - inputs, letter.clone())).collect();
        rest
    }

    /// The same inputs, letters and events, less the events of the first `inputs` inputs.
    pub(crate) fn without_events_before(&self, inputs: usize) -> Self {
        let first = self.events.partition_point(|event| (event.input as usize) < inputs);
        let events = self.events[first..].to_vec();
        Self {
            inputs: self.inputs.clone(),
            unescaped: self.unescaped.clone(),
            deletes: events.iter().filter(|event| event.operation == Operation::Delete).count(),
            events,
            cells: self.cells[first * self.width()..].to_vec(),
            layout: self.layout.clone(),
            letters: self.letters.clone(),
            filtered: self.filtered,
        }
    }

    /// The letters, by input.
    pub(crate) fn letters_mut(&mut self) -> &mut [(usize, Letter)] {
        &mut self.letters
    }

    /// Adds a letter for an input that was counted as one without output.
    pub(crate) fn add_letter_of_filtered(&mut self, input: usize, cause: Cause) {
        self.filtered -= 1;
        self.add_letter(input, cause, None);
    }

    /// Adds a letter for an input among those that have letters.
    pub(crate) fn add_letter(&mut self, input: usize, cause: Cause, event_key: Option<String>) {
        let letter = self.letter(input, cause, event_key);
        let at = self.letters.partition_point(|(other, _)| *other < input);
        self.letters.insert(at, (input, letter));
    }
}
