//! The order of a second pass: ranges of inputs in lane order, halved where a row is refused, and tried one by one where
//! several are. Pure.
//!
//! Invariant: an input's events stay together; what lies before another in the lane comes before it; statements that fail
//! stay below about twice the inputs that are refused.

use std::ops::Range;

use hapax_engine::batch::Batch;
use hapax_model::fault::point;
use hapax_model::letter::Cause;

/// After so many statements that failed, the rest of the first one's inputs go one by one.
const FAILED_STATEMENTS: usize = 3;
/// If so many inputs of a statement were refused, the next statement's inputs go one by one from the start.
const DENSE: usize = 3;

/// The events of `order`, input by input, and those that are refused without being sent, because of a `misfit`: what we can
/// tell ourselves costs no round trip.
pub(crate) fn fitting_inputs<'a>(
    batch: &Batch,
    order: &'a [usize],
    mut misfit: impl FnMut(usize) -> Option<Cause>,
) -> (Vec<&'a [usize]>, Vec<(usize, Cause)>) {
    let same_input = |a: &usize, b: &usize| batch.event(*a).input() == batch.event(*b).input();
    let mut refused = Vec::new();
    let mut inputs: Vec<&[usize]> = Vec::new();
    for events in order.chunk_by(same_input) {
        match events.iter().find_map(|event| Some((*event, misfit(*event)?))) {
            Some(guilty) => refused.push(guilty),
            None => inputs.push(events),
        }
    }
    (inputs, refused)
}

/// How a range of inputs is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextTry {
    /// In as few statements as they fit into.
    Together(Range<usize>),
    /// Each by itself.
    OneByOne(Range<usize>),
}

/// Ranges of inputs that wait for their turn.
pub(crate) struct Halving {
    /// What one statement carries, each; the nearest is last.
    statements: Vec<Range<usize>>,
    /// Parts of the statement that is being tried; the nearest is last.
    parts: Vec<Range<usize>>,
    /// Statements that failed among those parts.
    failed: usize,
    /// Inputs that were refused among them.
    refused: usize,
    /// Inputs always go one by one.
    alone: bool,
    middle: usize,
    passed: bool,
}

impl Halving {
    /// Begins with ranges of about as many events as one statement carries; `alone`: inputs always go one by one.
    pub(crate) fn new(inputs: &[&[usize]], per_statement: usize, alone: bool) -> Self {
        let mut statements = ranges(inputs, per_statement);
        statements.reverse();
        let middle = inputs.len() / 2;
        Self { statements, parts: Vec::new(), failed: 0, refused: 0, alone, middle, passed: false }
    }

    /// What is tried next.
    pub(crate) fn next(&mut self) -> Option<NextTry> {
        if self.parts.is_empty() {
            self.parts.push(self.statements.pop()?);
            // Where many were refused just now, more will be.
            self.failed = if self.alone || self.refused >= DENSE { FAILED_STATEMENTS } else { 0 };
            self.refused = 0;
        }
        let next = match self.failed >= FAILED_STATEMENTS {
            false => self.parts.pop()?,
            // All that is left of this statement, at once.
            true => {
                let parts = std::mem::take(&mut self.parts);
                parts.last()?.start..parts.first()?.end
            }
        };
        if !self.passed && next.end > self.middle {
            self.passed = true;
            point("sql.bisect_middle");
        }
        let alone = next.len() == 1 || self.failed >= FAILED_STATEMENTS;
        Some(if alone { NextTry::OneByOne(next) } else { NextTry::Together(next) })
    }

    /// A row of this range, which was tried together, was refused: its halves come next.
    pub(crate) fn refused_together(&mut self, range: Range<usize>) {
        self.failed += 1;
        let half = range.start + range.len() / 2;
        self.parts.push(half..range.end);
        self.parts.push(range.start..half);
    }

    /// So many inputs of a range that was tried one by one were refused.
    pub(crate) const fn refused_alone(&mut self, inputs: usize) {
        self.refused += inputs;
    }
}

/// Runs of inputs of about as many events as one statement carries.
fn ranges(inputs: &[&[usize]], per_statement: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut events) = (0, 0);
    for (at, input) in inputs.iter().enumerate() {
        if events > 0 && events + input.len() > per_statement {
            ranges.push(start..at);
            (start, events) = (at, 0);
        }
        events += input.len();
    }
    ranges.push(start..inputs.len());
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries everything where the inputs at `bad` are refused; those found, and how many statements failed.
    fn try_all(inputs: usize, per_statement: usize, bad: impl Fn(usize) -> bool) -> (Vec<usize>, usize) {
        let events: Vec<[usize; 1]> = (0..inputs).map(|event| [event]).collect();
        let inputs: Vec<&[usize]> = events.iter().map(<[usize; 1]>::as_slice).collect();
        let mut halving = Halving::new(&inputs, per_statement, false);
        let (mut refused, mut failed, mut tried) = (Vec::new(), 0, 0);
        while let Some(next) = halving.next() {
            match next {
                NextTry::Together(range) => match range.clone().any(&bad) {
                    true => {
                        failed += 1;
                        halving.refused_together(range);
                    }
                    false => {
                        assert_eq!(range.start, tried, "in lane order");
                        tried = range.end;
                    }
                },
                NextTry::OneByOne(range) => {
                    assert_eq!(range.start, tried, "in lane order");
                    tried = range.end;
                    let before = refused.len();
                    refused.extend(range.filter(|input| bad(*input)));
                    halving.refused_alone(refused.len() - before);
                }
            }
        }
        assert_eq!(tried, inputs.len(), "every input is tried");
        let failed = failed + refused.len();
        (refused, failed)
    }

    /// Goal: every guilty input is found, and statements that fail stay below about twice as many. Method: none, one, a few,
    /// nine percent, and all of a large epoch.
    #[test]
    fn the_guilty_are_found_with_few_statements_that_fail() {
        for every in [100_001, 50_000, 997, 11, 2, 1] {
            let bad = |input: usize| input % every == every / 2;
            let (refused, failed) = try_all(100_000, 1_000, bad);
            assert_eq!(refused, (0..100_000).filter(|input| bad(*input)).collect::<Vec<_>>(), "every {every}");
            assert!(failed <= 2 * refused.len() + 4 * 101.min(refused.len()), "every {every}: {failed} failed");
        }
        let (refused, failed) = try_all(100_000, 1_000, |_| true);
        assert!(failed < refused.len() + 10, "{failed}");
    }

    /// Goal: inputs are cut into statements whole.
    #[test]
    fn statements_hold_whole_inputs() {
        let inputs: [&[usize]; 5] = [&[0], &[1, 2], &[3], &[4], &[5]];
        assert_eq!(ranges(&inputs, 3), [0..2, 2..5]);
    }
}
