//! The second pass over an epoch of which the target refused rows: its inputs are judged one after the other, in lane order.
//!
//! Reads: the batch, the rule for rejects, the clock. Writes: what a person is told meanwhile. Invariant: the pass ends at
//! the input with which too many were refused, and may end early after an input that was judged, never inside one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hapax_model::letter::Cause;
use hapax_model::rejects::RejectRule;

use crate::batch::Batch;
use crate::sink::{SinkError, WriteOutcome, Written};

/// How a second pass goes, if there is one.
#[derive(Debug, Clone, Default)]
pub struct SecondPass {
    /// From then on the inputs that were judged are committed as an epoch of their own; never if none.
    pub prefix_from: Option<Instant>,
    /// What a person is told meanwhile.
    pub watch: Arc<PassWatch>,
}

/// What a second pass has done so far, for whoever waits for it.
#[derive(Debug, Default)]
pub struct PassWatch {
    judged: AtomicUsize,
    refused: AtomicUsize,
    said: Mutex<Option<Cause>>,
}

impl PassWatch {
    /// What the target said when it refused a row last, and how far the pass has come; none if it refused none.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let (judged, refused) = (self.judged.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed));
        Some(format!(
            "rows are refused and tried one by one: {judged} inputs so far, {refused} refused; the last: {said}"
        ))
    }

    /// What the target said when it refused a row last.
    #[must_use]
    pub fn said(&self) -> Option<Cause> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn refused(&self, cause: &Cause) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.say(cause);
    }

    fn say(&self, cause: &Cause) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause.clone());
    }
}

/// Whether the pass goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Judged {
    /// With the next input.
    GoOn,
    /// No further: what was judged is committed.
    EndHere,
}

/// Judges the inputs of a batch in lane order.
#[derive(Debug)]
pub struct InputJudge<'a> {
    batch: &'a Batch,
    pass: &'a SecondPass,
    rule: RejectRule,
    /// The first input that was not judged yet.
    next: usize,
    /// Inputs that died in the fill or were refused, by their index, with what was said.
    dead: BTreeMap<usize, String>,
    refused: Vec<(usize, Cause)>,
}

impl<'a> InputJudge<'a> {
    /// Nothing was judged yet; `rejects` is the rule as it stood after the epoch before.
    #[must_use]
    pub fn new(batch: &'a Batch, rejects: &RejectRule, pass: &'a SecondPass) -> Self {
        let dead = batch.letters().iter().map(|(input, letter)| (*input, letter.cause.message.clone())).collect();
        Self { batch, pass, rule: rejects.clone(), next: 0, dead, refused: Vec::new() }
    }

    /// The target, or the mapping, refused this event: its input is dead.
    pub fn refuse(&mut self, event: usize, cause: Cause) {
        let input = self.batch.event(event).input();
        self.pass.watch.refused(&cause);
        self.dead.entry(input).or_insert_with(|| cause.message.clone());
        self.refused.push((event, cause));
    }

    /// The target refused a row among several: which, is not known yet.
    pub fn heard(&self, cause: &Cause) {
        self.pass.watch.say(cause);
    }

    /// All inputs up to and with that of `event` have been tried.
    ///
    /// # Errors
    /// [`SinkError::Rejected`] at the input with which it was too many.
    pub fn tried(&mut self, event: usize) -> Result<Judged, SinkError> {
        self.judge_before(self.batch.event(event).input() + 1)?;
        let due = self.pass.prefix_from.is_some_and(|from| Instant::now() >= from);
        Ok(if due && self.next < self.batch.inputs.len() { Judged::EndHere } else { Judged::GoOn })
    }

    fn judge_before(&mut self, end: usize) -> Result<(), SinkError> {
        while self.next < end {
            let input = self.next;
            self.next += 1;
            if let Err(stop) = self.rule.note(input, self.dead.contains_key(&input)) {
                let message = self.dead.range(..=input).next_back().map(|(_, said)| said.clone()).unwrap_or_default();
                return Err(SinkError::Rejected { stop, position: self.batch.inputs.position(input), message });
            }
        }
        self.pass.watch.judged.store(self.next, Ordering::Relaxed);
        Ok(())
    }

    /// What became of the rows. `ended` says whether the pass went to its end; else only the inputs that were judged
    /// belong to it.
    ///
    /// # Errors
    /// [`SinkError::Rejected`] if inputs after the last event were too many.
    pub fn outcome(mut self, written: Written, ended: Judged) -> Result<WriteOutcome, SinkError> {
        let inputs = match ended {
            Judged::GoOn => {
                self.judge_before(self.batch.inputs.len())?;
                None
            }
            Judged::EndHere => Some(self.next),
        };
        let (batch, end) = (self.batch, self.next);
        let mut refused = self.refused;
        refused.retain(|(event, _)| batch.event(*event).input() < end);
        refused.sort_by_key(|(event, _)| *event);
        let written = Written { failures: refused.len() as u64, ..written };
        Ok(WriteOutcome { written, refused, inputs })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hapax_model::letter::Stage;
    use hapax_model::position::Position;
    use hapax_model::rejects::{OnReject, RejectStop};

    use super::*;
    use crate::batch::{Layout, Operation};

    fn batch(inputs: u64) -> Batch {
        let mut batch = Batch::new(Layout::new(&[]));
        for input in 0..inputs {
            batch.inputs.push(Position::at(input), b"{}");
            batch.push_event(usize::try_from(input).expect("small"), 0, Operation::Upsert);
        }
        batch
    }

    fn cause(message: &str) -> Cause {
        Cause { stage: Stage::Write, code: "HX2033", message: message.into(), fingerprint: "foreign key".into() }
    }

    /// Goal: a mapping mistake ends the pass at the input with which it was too many, with what the target said. Method:
    /// every row refused, ten percent allowed.
    #[test]
    fn the_pass_ends_where_too_many_were_refused() {
        let (batch, pass) = (batch(5_000), SecondPass::default());
        let mut judge = InputJudge::new(&batch, &RejectRule::new(OnReject::DeadLetter, 100), &pass);
        let stopped = (0..5_000).find_map(|event| {
            judge.refuse(event, cause("foreign key"));
            judge.tried(event).err()
        });
        let Some(SinkError::Rejected { stop, position, message }) = stopped else { panic!("{stopped:?}") };
        assert_eq!(stop, RejectStop::TooMany { input: 99, dead: 100, of: 100 });
        assert_eq!((position, message.as_str()), (Position::at(99), "foreign key"));
        let sentence = pass.watch.sentence().expect("rows were refused");
        assert!(sentence.contains("100 refused") && sentence.contains("HX2033: foreign key"), "{sentence}");
    }

    /// Goal: a pass whose time is over ends after an input that was judged, and says which inputs belong to it. Method: the
    /// time is over from the start; a later row was refused already.
    #[test]
    fn a_pass_whose_time_is_over_ends_after_a_judged_input() {
        let batch = batch(10);
        let pass = SecondPass { prefix_from: Some(Instant::now()), ..SecondPass::default() };
        let mut judge = InputJudge::new(&batch, &RejectRule::new(OnReject::DeadLetter, 1000), &pass);
        for event in [1, 7] {
            judge.refuse(event, cause("no"));
        }
        assert_eq!(judge.tried(3).expect("all may die"), Judged::EndHere);
        let outcome = judge.outcome(Written::default(), Judged::EndHere).expect("all may die");
        assert_eq!(outcome.inputs, Some(4));
        assert_eq!(outcome.refused.iter().map(|(event, _)| *event).collect::<Vec<_>>(), [1]);
        let later = SecondPass { prefix_from: Some(Instant::now() + Duration::from_secs(3_600)), ..pass };
        let mut judge = InputJudge::new(&batch, &RejectRule::new(OnReject::DeadLetter, 1000), &later);
        assert_eq!(judge.tried(9).expect("all may die"), Judged::GoOn);
        assert_eq!(judge.outcome(Written::default(), Judged::GoOn).expect("all may die").inputs, None);
    }
}
