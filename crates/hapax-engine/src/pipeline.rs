//! From inputs to events: decode, key, and what `deleteWhen` says. Pure but for the counters it keeps.
//!
//! Reads: inputs of a batch. Writes: events and letters of the same batch. Invariant: the same inputs give the same
//! events and keys, however they are batched. Not here: where inputs come from, where events go.

use hapax_model::condition::Condition;
use hapax_model::epoch::Epoch;
use hapax_model::field::{FieldPath, FieldValue};
use hapax_model::key::{KeyFacts, KeyNeed, Keyer};
use hapax_model::letter::{Cause, Stage};
use hapax_model::position::Incarnation;

use crate::batch::{Batch, Layout, Operation};
use crate::decode::{Decoder, UnknownFields};

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
}

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
        Self { decoder, keyer, key_slots, delete_when, layout: Layout::new(&paths), origin }
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

    /// The decoder, for its counts of unknown fields.
    #[must_use]
    pub const fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Works on the inputs of `batch` from `first` on.
    pub fn process(&mut self, batch: &mut Batch, first: usize, epoch: Epoch, incarnation: &Incarnation) {
        self.decoder.use_format(batch.inputs.format());
        for input in first..batch.inputs.len() {
            if let Err(mut cause) = self.process_one(batch, input, epoch, incarnation) {
                if let Some(line) = batch.inputs.line(input) {
                    cause.message = format!("line {line}: {}", cause.message);
                }
                batch.push_letter(input, cause, None);
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
        let sequence = batch.len() as u64;
        let mut event = batch.push_event(input, 0, Operation::Upsert);
        let (bytes, mut fields) = event.reading();
        if let Err(cause) = self.decoder.decode(bytes, &mut fields) {
            batch.pop_event();
            return Err(cause);
        }
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
