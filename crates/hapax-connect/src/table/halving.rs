//! The order of a second try: ranges of inputs in lane order, halved until only the guilty are left. Pure.
//!
//! Invariant: an input's events stay together; what lies before another in the lane comes before it.

use std::ops::Range;

use hapax_engine::batch::Batch;
use hapax_engine::sink::Written;
use hapax_model::fault::point;
use hapax_model::letter::Cause;

use super::tries::Outcome;

/// Events that were refused, and why.
pub(crate) type Refused = Vec<(usize, Cause)>;

/// The events of `order`, input by input; those of an input with a `misfit` are refused, for what we can tell ourselves
/// costs no round trip.
pub(crate) fn fitting_inputs<'a>(
    batch: &Batch,
    order: &'a [usize],
    mut misfit: impl FnMut(usize) -> Option<Cause>,
) -> (Vec<&'a [usize]>, Refused) {
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

/// What became of the rows, with the refused in lane order.
pub(crate) fn outcome(mut written: Written, mut refused: Refused) -> Outcome {
    written.failures = refused.len() as u64;
    refused.sort_by_key(|(event, _)| *event);
    Outcome { written, refused }
}

/// Ranges of inputs that wait for their turn.
pub(crate) struct Halving {
    /// The nearest is last.
    waiting: Vec<Range<usize>>,
    middle: usize,
    passed: bool,
}

impl Halving {
    /// Begins with ranges of about as many events as one statement carries.
    pub(crate) fn new(inputs: &[&[usize]], per_statement: usize) -> Self {
        let mut waiting = ranges(inputs, per_statement);
        waiting.reverse();
        Self { waiting, middle: inputs.len() / 2, passed: false }
    }

    /// The next range.
    pub(crate) fn next(&mut self) -> Option<Range<usize>> {
        let range = self.waiting.pop()?;
        if !self.passed && range.end > self.middle {
            self.passed = true;
            point("sql.bisect_middle");
        }
        Some(range)
    }

    /// A row of this range was refused: its halves come next. False if it is one input, which is guilty.
    pub(crate) fn halve(&mut self, range: Range<usize>) -> bool {
        if range.len() == 1 {
            return false;
        }
        let half = range.start + range.len() / 2;
        self.waiting.push(half..range.end);
        self.waiting.push(range.start..half);
        true
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

    /// Goal: every input is tried alone at last, in lane order. Method: refuse every range that can be halved.
    #[test]
    fn halves_come_in_lane_order_down_to_single_inputs() {
        let inputs: [&[usize]; 5] = [&[0], &[1, 2], &[3], &[4], &[5]];
        let mut halving = Halving::new(&inputs, 3);
        let mut alone = Vec::new();
        while let Some(range) = halving.next() {
            if !halving.halve(range.clone()) {
                alone.push(range.start);
            }
        }
        assert_eq!(alone, [0, 1, 2, 3, 4]);
        assert_eq!(ranges(&inputs, 3), [0..2, 2..5]);
    }
}
