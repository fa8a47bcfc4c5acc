//! From inputs to events: decode, key, and what `deleteWhen` says. Pure but for the counters it keeps.
//!
//! Reads: inputs of a batch. Writes: events and letters of the same batch. Invariant: the same inputs give the same
//! events and keys, however they are batched. Not here: where inputs come from, where events go.

use std::sync::Arc;

use hapax_model::condition::Condition;
use hapax_model::epoch::Epoch;
use hapax_model::fault;
use hapax_model::field::{FieldPath, FieldValue};
use hapax_model::key::{KeyFacts, KeyNeed, Keyer};
use hapax_model::letter::{Cause, Stage};
use hapax_model::position::{Incarnation, Position};

use crate::batch::{Batch, Layout, Operation, TakeFields as _};
use crate::decode::{Decoder, UnknownFields};
use crate::pulse::{Pulse, Verdict};
use crate::transform::{MakeTransform, Others, Rest, Taken, Transform};

/// Which input stream the pipeline works on: what the keys of its events depend on.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The source's identity, as in the contract.
    pub source: String,
    /// The lane.
    pub lane: String,
}

/// Turns inputs into events.
#[derive(Debug)]
pub struct Pipeline {
    decoder: Decoder,
    keyer: Keyer,
    key_slots: Vec<usize>,
    delete_when: Option<(Condition, usize)>,
    layout: Layout,
    origin: Origin,
    unknown_fields: UnknownFields,
    transform: Option<Box<Transformed>>,
}

/// The way through a transform.
#[derive(Debug)]
struct Transformed {
    transform: Box<dyn Transform>,
    taken: Taken,
    rest: Rest,
    pulse: Arc<Pulse>,
    /// Inputs of the chunk that must not be run, and the turn of the chunk's first input.
    set_aside: Vec<(Position, Verdict)>,
    turn: u64,
}

/// An input's emitted events are numbered in 16 bits.
const EMITTED_MAX: usize = 1 << 16;

impl Pipeline {
    /// A pipeline whose events carry `sink_fields`, and keys by `keyer`.
    #[must_use]
    pub fn new(
        sink_fields: &[FieldPath],
        keyer: Keyer,
        delete_when: Option<Condition>,
        unknown_fields: UnknownFields,
        origin: Origin,
    ) -> Self {
        let mut paths = sink_fields.to_vec();
        let key_slots: Vec<usize> = keyer.fields().iter().map(|path| slot_of(&mut paths, path)).collect();
        let delete_when = delete_when.map(|condition| {
            let slot = slot_of(&mut paths, &condition.path);
            (condition, slot)
        });
        let decoder = Decoder::new(&paths, unknown_fields);
        let layout = Layout::new(&paths);
        Self { decoder, keyer, key_slots, delete_when, layout, origin, unknown_fields, transform: None }
    }

    /// The same pipeline with a program between decoding and keys; what it does is shown to `pulse`.
    #[must_use]
    pub fn with_transform(mut self, make: &dyn MakeTransform, pulse: Arc<Pulse>) -> Self {
        let transform = make.make(&self.layout, self.keyer.fields());
        let wants = transform.wants();
        self.decoder = Decoder::new(&wants.fields, self.unknown_fields);
        let (taken, rest) = (Taken::of(wants.fields.len()), wants.rest);
        self.transform = Some(Box::new(Transformed { transform, taken, rest, pulse, set_aside: Vec::new(), turn: 0 }));
        self
    }

    /// An empty batch for this pipeline's events.
    #[must_use]
    pub fn batch(&self) -> Batch {
        Batch::new(self.layout.clone())
    }

    /// Which field is in which slot of this pipeline's batches.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Names of fields that nothing takes, with in how many events each was: none, if a transform left it out of all.
    #[must_use]
    pub fn unknown(&self) -> &[(String, u64)] {
        self.decoder.unknown()
    }

    /// Works on the inputs of `batch` from `first` on.
    pub fn process(&mut self, batch: &mut Batch, first: usize, epoch: Epoch, incarnation: &Incarnation) {
        self.decoder.use_format(batch.inputs.format());
        if let Some(mut transformed) = self.transform.take() {
            self.process_transformed(&mut transformed, batch, first, epoch, incarnation);
            self.transform = Some(transformed);
            return;
        }
        for input in first..batch.inputs.len() {
            if let Err(cause) = self.process_one(batch, input, epoch, incarnation) {
                push_letter(batch, input, cause);
            }
        }
    }

    fn process_one(
        &mut self,
        batch: &mut Batch,
        input: usize,
        epoch: Epoch,
        incarnation: &Incarnation,
    ) -> Result<(), Cause> {
        if let Some(length) = batch.inputs.oversized_length(input) {
            return Err(too_long(length));
        }
        let mut event = batch.push_event(input, 0, Operation::Upsert);
        let (bytes, mut fields) = event.reading();
        if let Err(cause) = self.decoder.decode(bytes, &mut fields) {
            batch.pop_event();
            return Err(cause);
        }
        self.finish_event(batch, epoch, incarnation)
    }

    /// Says whether the last event is a delete, and keys it. An event that cannot be keyed is taken back.
    #[inline]
    fn finish_event(&self, batch: &mut Batch, epoch: Epoch, incarnation: &Incarnation) -> Result<(), Cause> {
        let sequence = batch.len() as u64 - 1;
        let mut event = batch.last_event();
        if let Some((condition, slot)) = &self.delete_when
            && condition.matches(event.view().field(*slot))
        {
            event.set_operation(Operation::Delete);
        }
        if self.keyer.need() == KeyNeed::Nothing {
            return Ok(());
        }
        let view = event.view();
        let mut few = [FieldValue::Absent; 8];
        let many: Vec<FieldValue<'_>>;
        let values = if let Some(few) = few.get_mut(..self.key_slots.len()) {
            few.iter_mut().zip(&self.key_slots).for_each(|(value, slot)| *value = view.field(*slot));
            &*few
        } else {
            many = self.key_slots.iter().map(|slot| view.field(*slot)).collect();
            &many
        };
        let facts = KeyFacts {
            source: &self.origin.source,
            lane: &self.origin.lane,
            incarnation,
            position: view.position(),
            emit: view.emit(),
            epoch,
            sequence,
        };
        match self.keyer.derive(&facts, values) {
            Ok(keys) => {
                event.set_keys(keys.entity, keys.event);
                Ok(())
            }
            Err(error) => {
                let (code, message, fingerprint) = (error.code(), error.to_string(), error.fingerprint());
                batch.pop_event();
                Err(Cause { stage: Stage::Key, code, message, fingerprint })
            }
        }
    }

    fn process_transformed(
        &mut self,
        transformed: &mut Transformed,
        batch: &mut Batch,
        first: usize,
        epoch: Epoch,
        incarnation: &Incarnation,
    ) {
        let positions = (first..batch.inputs.len()).map(|input| batch.inputs.position(input));
        (transformed.turn, transformed.set_aside) = transformed.pulse.begin(positions, incarnation);
        for input in first..batch.inputs.len() {
            let before = batch.len();
            transformed.pulse.beat(transformed.turn);
            transformed.turn += 1;
            if let Err(cause) = self.transform_one(transformed, batch, input, epoch, incarnation) {
                while batch.len() > before {
                    batch.pop_event();
                }
                push_letter(batch, input, cause);
            } else if batch.len() == before {
                batch.push_filtered();
            }
        }
        transformed.pulse.rest();
    }

    /// One input and all that comes of it, which is in one epoch because the epoch closes between inputs.
    fn transform_one(
        &mut self,
        Transformed { transform, taken, rest, set_aside, .. }: &mut Transformed,
        batch: &mut Batch,
        input: usize,
        epoch: Epoch,
        incarnation: &Incarnation,
    ) -> Result<(), Cause> {
        if let Some(length) = batch.inputs.oversized_length(input) {
            return Err(too_long(length));
        }
        let position = batch.inputs.position(input);
        if let Some((_, verdict)) = set_aside.iter().find(|(at, _)| *at == position) {
            return Err(verdict.cause());
        }
        let bytes = batch.inputs.bytes(input);
        taken.start_again();
        self.decoder.read(bytes, taken)?;
        if *rest == Rest::Given {
            taken.rest.clear();
            self.decoder.read_rest(bytes, &mut taken.rest)?;
        }
        let count = transform.run(&taken.given(bytes))?;
        if count > EMITTED_MAX {
            return Err(too_many(count));
        }
        for emit in 0..count {
            if emit == 1 {
                fault::point("fill.input_half_emitted");
            }
            let mut event = batch.push_event(input, emit as u16, Operation::Upsert);
            let (bytes, mut fields) = event.reading();
            let given = taken.given(bytes);
            transform.write(emit, &given, &mut fields)?;
            if transform.others(emit) == Others::Gone {
                self.decoder.forget_passed_over();
            }
            transform.left_out(emit, &given, &mut |name| self.decoder.pass_over(name));
            self.decoder.settle_passed_over()?;
            self.finish_event(batch, epoch, incarnation)?;
        }
        Ok(())
    }
}

/// The cause names the line, where the source counts lines.
fn push_letter(batch: &mut Batch, input: usize, mut cause: Cause) {
    if let Some(line) = batch.inputs.line(input) {
        cause.message = format!("line {line}: {}", cause.message);
    }
    batch.push_letter(input, cause, None);
}

/// The slot of `path`, added if no field had it yet: a key field that is also a column is read once.
fn slot_of(paths: &mut Vec<FieldPath>, path: &FieldPath) -> usize {
    paths.iter().position(|known| known == path).unwrap_or_else(|| {
        paths.push(path.clone());
        paths.len() - 1
    })
}

fn too_long(length: u64) -> Cause {
    Cause {
        stage: Stage::Decode,
        code: "HX2003",
        message: format!(
            "the input has {length} bytes, more than maxLine allows; its beginning and its hash are kept: shorten such \
             lines, or raise maxLine"
        ),
        fingerprint: "longer than maxLine".into(),
    }
}

fn too_many(count: usize) -> Cause {
    Cause {
        stage: Stage::Transform,
        code: "HX2104",
        message: format!("the transform made {count} events of one input; {EMITTED_MAX} are the most"),
        fingerprint: "too many events of one input".into(),
    }
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
