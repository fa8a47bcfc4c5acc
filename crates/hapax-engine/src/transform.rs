//! The seam for a program between decoding and keys: one input becomes no event, one, or several.
//!
//! Reads: the fields of one decoded input. Writes: the slots of its events, without going through JSON text.
//! Invariant: the same input gives the same events, however inputs are batched and whoever runs them.
//! Not here: any language (`hapax-transform`), when it took too long ([`crate::pulse`]).

use std::fmt;

use hapax_model::field::FieldPath;
use hapax_model::letter::Cause;

use crate::batch::{EventFields, FieldSpan, Layout, TakeFields};

/// A program as the configuration has it; every lane gets a transform of its own from it.
pub trait MakeTransform: fmt::Debug + Send + Sync {
    /// A transform for events with the fields of `layout`; those at `keys` must come through it as they were.
    fn make(&self, layout: &Layout, keys: &[FieldPath]) -> Box<dyn Transform>;
}

/// Runs a program on the inputs of one lane.
///
/// Call order, for each input: `run`, then for each event that it counted, in order, `write`, `others` and `left_out`. An error
/// of either makes the whole input a dead letter: none of its events stays.
pub trait Transform: fmt::Debug + Send {
    /// What it wants to be given of every input. The answer holds for all inputs.
    fn wants(&self) -> &Wants;

    /// Runs the program; how many events came of it. None: the input is filtered out.
    ///
    /// # Errors
    /// The cause for which the input becomes a dead letter.
    fn run(&mut self, given: &Given<'_>) -> Result<usize, Cause>;

    /// Writes the fields of event `event` of the last run, which was given the same.
    ///
    /// # Errors
    /// The cause for which the input becomes a dead letter.
    fn write(&mut self, event: usize, given: &Given<'_>, into: &mut EventFields<'_>) -> Result<(), Cause>;

    /// What became, in event `event`, of fields that it was not given.
    fn others(&self, event: usize) -> Others;

    /// Names the fields of event `event` that no slot takes, of those that it was given or made; those inside of others by
    /// their path.
    fn left_out(&mut self, event: usize, given: &Given<'_>, name: &mut dyn FnMut(&str));
}

/// What a transform wants to be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wants {
    /// These fields, in this order.
    pub fields: Vec<FieldPath>,
    /// What of all others.
    pub rest: Rest,
}

/// Whether fields without a place of their own are wanted too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// The program cannot see them.
    Left,
    /// The program looks at the event as a whole.
    Given,
}

/// What became of the fields that a transform was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// They are in the event as they were in the input.
    Kept,
    /// The event has none of them.
    Gone,
}

/// One decoded input.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Its bytes; spans are ranges in them, and what they span is UTF-8.
    pub bytes: &'a [u8],
    /// The wanted fields; `None` where the input has no such field.
    pub fields: &'a [Option<FieldSpan>],
    /// All other fields at the top of the event, by name, if they are wanted. Of a name that stands twice the last
    /// one counts.
    pub rest: &'a [(String, FieldSpan)],
}

/// Keeps the fields of the input that is being decoded.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) fields: Vec<Option<FieldSpan>>,
    pub(crate) rest: Vec<(String, FieldSpan)>,
}

impl Taken {
    pub(crate) fn of(width: usize) -> Self {
        Self { fields: vec![None; width], rest: Vec::new() }
    }

    pub(crate) fn given<'a>(&'a self, bytes: &'a [u8]) -> Given<'a> {
        Given { bytes, fields: &self.fields, rest: &self.rest }
    }
}

impl TakeFields for Taken {
    #[inline]
    fn take(&mut self, slot: usize, field: FieldSpan) {
        self.fields[slot] = Some(field);
    }

    fn forget(&mut self, slot: usize) {
        self.fields[slot] = None;
    }

    fn start_again(&mut self) {
        self.fields.fill(None);
    }
}
