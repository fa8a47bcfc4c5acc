//! A key with its components in sight: for `check`, traces and people. The slow path; sinks use [`Keyer::derive`].

use super::encoding::Tuple;
use super::error::KeyError;
use super::keyer::{KeyFacts, Keyer};
use super::number::canonical;
use super::strategy::{DedupStrategy, IncludeEpoch};
use crate::epoch::Epoch;
use crate::field::FieldValue;
use crate::position::Position;

/// A key and what it was made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DedupKey {
    /// The key's text form.
    pub value: String,
    /// What it was made of.
    pub components: DedupKeyComponents,
}

/// A field of a key: its path, and its value as the key sees it (numbers in canonical form).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamedValue {
    /// The field's path.
    pub path: String,
    /// Its value.
    pub value: String,
}

/// What a key was made of. The separators that people see never enter the hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DedupKeyComponents {
    /// The values of fields; see [`DedupStrategy::ContentFields`].
    ContentBased {
        /// The fields, in order.
        fields: Vec<NamedValue>,
    },
    /// The epoch and the number in it; see [`DedupStrategy::EpochSequence`].
    EpochBased {
        /// The lane, which has its own epochs.
        lane: String,
        /// The epoch.
        epoch: Epoch,
        /// The event's number in it.
        sequence: u64,
    },
    /// The position; see [`DedupStrategy::SourceOffset`].
    SourceOffset {
        /// The source's identity.
        source_id: String,
        /// The lane: what Kafka calls topic and partition.
        lane: String,
        /// The incarnation's own description.
        incarnation: String,
        /// The position of the input.
        position: Position,
        /// Which of the input's events.
        emit: u32,
    },
    /// A natural key and the epoch; see [`DedupStrategy::Composite`] and [`IncludeEpoch::Yes`].
    Composite {
        /// The fields of the natural key, in order.
        natural_key: Vec<NamedValue>,
        /// The epoch.
        epoch: Epoch,
    },
    /// Fields and the position; see [`Uniqueness::WithVersion`](super::Uniqueness::WithVersion).
    ContentAtOffset {
        /// The fields, in order.
        fields: Vec<NamedValue>,
        /// The lane.
        lane: String,
        /// The position of the input.
        position: Position,
        /// Which of the input's events.
        emit: u32,
    },
    /// A change of a row; see [`DedupStrategy::ChangeKey`]. Database, schema, table, primary key, version, in order.
    Change {
        /// The fields, in order; the entity key lacks the last.
        fields: Vec<NamedValue>,
    },
    /// An event made from others; see [`DedupStrategy::Derived`]. Contributors as they came, and the window last.
    Derived {
        /// The fields.
        fields: Vec<NamedValue>,
    },
    /// An aggregate of a window; see [`DedupStrategy::WindowSequence`].
    WindowSequence {
        /// Window and sequence; the entity key lacks the second.
        fields: Vec<NamedValue>,
    },
    /// A custom function's key.
    Custom {
        /// The function's name.
        name: String,
        /// The fields that it saw.
        fields: Vec<NamedValue>,
    },
}

impl Keyer {
    /// A key with its components: the entity key if that is all the sink uses and the strategy has one, else the event
    /// key.
    ///
    /// # Errors
    /// As [`derive`](Self::derive).
    ///
    /// # Panics
    /// As [`derive`](Self::derive).
    pub fn explain(&self, facts: &KeyFacts<'_>, values: &[FieldValue<'_>]) -> Result<DedupKey, KeyError> {
        let mut tuple = Tuple::new();
        let shown = if self.explains_entity() {
            self.write_entity(&mut tuple, facts, values)?;
            self.naming()
        } else {
            self.write_event(&mut tuple, facts, values)?;
            self.fields().len()
        };
        let fields = self
            .fields()
            .iter()
            .zip(values)
            .take(shown)
            .map(|(path, value)| NamedValue { path: path.to_string(), value: shown_value(*value) });
        let components = self.components(facts, fields.collect());
        Ok(DedupKey { value: tuple.hash().text().to_string(), components })
    }

    fn components(&self, facts: &KeyFacts<'_>, fields: Vec<NamedValue>) -> DedupKeyComponents {
        let (lane, position, emit) = (facts.lane.to_owned(), facts.position, facts.emit);
        match self.strategy() {
            DedupStrategy::ContentFields { include_epoch: IncludeEpoch::Yes, .. } | DedupStrategy::Composite { .. }
                if !self.explains_entity() =>
            {
                DedupKeyComponents::Composite { natural_key: fields, epoch: facts.epoch }
            }
            DedupStrategy::ContentFields { .. } if self.version_is_position() && !self.explains_entity() => {
                DedupKeyComponents::ContentAtOffset { fields, lane, position, emit }
            }
            DedupStrategy::ContentFields { .. } | DedupStrategy::Composite { .. } => {
                DedupKeyComponents::ContentBased { fields }
            }
            DedupStrategy::EpochSequence => {
                DedupKeyComponents::EpochBased { lane, epoch: facts.epoch, sequence: facts.sequence }
            }
            DedupStrategy::SourceOffset => DedupKeyComponents::SourceOffset {
                source_id: facts.source.to_owned(),
                lane,
                incarnation: facts.incarnation.text.to_string(),
                position,
                emit,
            },
            DedupStrategy::ChangeKey { .. } => DedupKeyComponents::Change { fields },
            DedupStrategy::Derived { .. } => DedupKeyComponents::Derived { fields },
            DedupStrategy::WindowSequence { .. } => DedupKeyComponents::WindowSequence { fields },
            DedupStrategy::Custom { name } => DedupKeyComponents::Custom { name: name.clone(), fields },
        }
    }
}

fn shown_value(value: FieldValue<'_>) -> String {
    match value {
        FieldValue::Absent => "nothing".to_owned(),
        FieldValue::Null => "null".to_owned(),
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::Number(number) => canonical(number).map_or_else(|_| number.to_owned(), Into::into),
        FieldValue::Text(text) | FieldValue::Json(text) => text.to_owned(),
    }
}
