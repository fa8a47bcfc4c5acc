//! Derives the keys of a delivery's events.
//!
//! Reads: the values of the key fields, and the facts of the event's origin. Writes: nothing but a cached hash.
//! Invariant: a key depends on its arguments alone, on no clock, no randomness, and no earlier call.

use std::sync::OnceLock;

use serde_json::value::RawValue;

use super::custom::{CustomKey, CustomKeys};
use super::encoding::Tuple;
use super::error::{KeyError, Missing};
use super::hash::KeyHash;
use super::strategy::{Contributors, DedupStrategy, IncludeEpoch, Kinds};
use crate::epoch::Epoch;
use crate::fault::{self, Bug};
use crate::field::{FieldPath, FieldValue};
use crate::position::{Incarnation, Position};

/// Whether the key fields alone name an event, or the thing that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniqueness {
    /// The fields alone name the event: `deduplication.unique: true`.
    FieldsAlone,
    /// The fields name a thing that may have many events; the version tells them apart.
    WithVersion,
}

/// Which keys the sink uses; no other is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyNeed {
    /// None: `append` without a key column.
    Nothing,
    /// None, but the fields must hold one: `update` and `newer` by the table's own columns.
    Fields,
    /// The key of the thing: `update`, `newer`, a Kafka record's key.
    Entity,
    /// The key of the event: `ignore`, HTTP, the inbox.
    Event,
    /// Either.
    EntityAndEvent,
}

/// Where an event comes from.
#[derive(Debug, Clone, Copy)]
pub struct KeyFacts<'a> {
    /// The source's identity.
    pub source: &'a str,
    /// The lane within the source.
    pub lane: &'a str,
    /// Which incarnation of the source. Its text enters keys, its number does not: reading the same input again under
    /// another count must give the same key.
    pub incarnation: &'a Incarnation,
    /// Where the event's input is.
    pub position: Position,
    /// Which of its input's events it is.
    pub emit: u32,
    /// The epoch that will deliver it.
    pub epoch: Epoch,
    /// Its number among the epoch's events of this lane.
    pub sequence: u64,
}

/// The keys of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keys {
    /// Names the thing. None if it is not needed, or the strategy has no fields.
    pub entity: Option<KeyHash>,
    /// Names the event. None if it is not needed.
    pub event: Option<KeyHash>,
}

/// What makes two events of one entity different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// Nothing: the fields name the event.
    Absent,
    /// The last of the strategy's fields.
    Field,
    /// The epoch, of a source and lane.
    Epoch,
    /// The epoch and the number of the event in it.
    EpochSequence,
    /// The position in an incarnation of a source's lane, and the emit index.
    Position,
}

impl Version {
    const fn of(strategy: &DedupStrategy, unique: Uniqueness) -> Self {
        match (strategy, unique) {
            (DedupStrategy::EpochSequence, _) => Self::EpochSequence,
            (DedupStrategy::ContentFields { include_epoch: IncludeEpoch::Yes, .. }, _)
            | (DedupStrategy::Composite { .. }, _) => Self::Epoch,
            // The version is one of the fields that the strategy names, so "the fields alone" include it.
            (DedupStrategy::ChangeKey { .. } | DedupStrategy::WindowSequence { .. }, _) => Self::Field,
            (DedupStrategy::Derived { .. }, _) => Self::Absent,
            (DedupStrategy::ContentFields { .. } | DedupStrategy::Custom { .. }, Uniqueness::FieldsAlone) => {
                Self::Absent
            }
            (DedupStrategy::ContentFields { .. } | DedupStrategy::Custom { .. }, Uniqueness::WithVersion)
            | (DedupStrategy::SourceOffset, _) => Self::Position,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Absent => "none",
            Self::Field => "field",
            Self::Epoch => "epoch",
            Self::EpochSequence => "sequence",
            Self::Position => "position",
        }
    }
}

/// Source, lane and incarnation, and the hash that stands for them in keys.
#[derive(Debug, Clone)]
struct Origin {
    source: String,
    lane: String,
    incarnation: String,
    hash: KeyHash,
}

/// Derives the keys of a delivery's events; built once per delivery.
#[derive(Debug, Clone)]
pub struct Keyer {
    strategy: DedupStrategy,
    need: KeyNeed,
    kinds: Kinds,
    fields: Vec<FieldPath>,
    /// How many of the fields name the entity; the rest is the version.
    naming: usize,
    version: Version,
    custom: Option<CustomKey>,
    /// The origin that was seen first. A delivery has one lane and rarely a second incarnation, so this saves most
    /// events a hash over the same three texts.
    origin: OnceLock<Origin>,
}

impl Keyer {
    /// A keyer for a delivery.
    #[must_use]
    pub fn new(strategy: DedupStrategy, unique: Uniqueness, need: KeyNeed) -> Self {
        let fields = strategy.fields();
        let version = Version::of(&strategy, unique);
        let naming = fields.len() - usize::from(version == Version::Field);
        let kinds = strategy.kinds();
        Self { strategy, need, kinds, fields, naming, version, custom: None, origin: OnceLock::new() }
    }

    /// With the functions that the embedding program registered.
    #[must_use]
    pub fn with_custom(mut self, functions: &CustomKeys) -> Self {
        if let DedupStrategy::Custom { name } = &self.strategy
            && let Some(custom) = functions.get(name)
        {
            self.fields = custom.fields().to_vec();
            self.naming = self.fields.len();
            self.custom = Some(custom.clone());
        }
        self
    }

    /// The strategy.
    #[must_use]
    pub const fn strategy(&self) -> &DedupStrategy {
        &self.strategy
    }

    /// Which keys the sink uses.
    #[must_use]
    pub const fn need(&self) -> KeyNeed {
        self.need
    }

    /// The fields whose values [`derive`](Self::derive) wants, in order.
    #[must_use]
    pub fn fields(&self) -> &[FieldPath] {
        &self.fields
    }

    /// What the contract remembers: encoding version, strategy, fields, version.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{} version {}", self.strategy.identity_with(&self.fields), self.version.word())
    }

    /// Whether keys contain the epoch: then an event must be delivered by the epoch that it was keyed for.
    #[must_use]
    pub fn contains_epoch(&self) -> bool {
        matches!(self.version, Version::Epoch | Version::EpochSequence)
    }

    /// Whether two different events of an epoch must have two event keys, so that one key for both is an error. Not
    /// so with fields and epoch: there one event per epoch survives by design.
    #[must_use]
    pub fn promises_uniqueness(&self) -> bool {
        self.version != Version::Epoch
    }

    /// The keys that the sink needs. Allocates nothing unless a key is long, a number is no plain integer, or the
    /// strategy is derived or custom.
    ///
    /// # Errors
    /// If a key field has no value or none that a key can hold: the event is a dead letter.
    ///
    /// # Panics
    /// If there is not one value for each of [`fields`](Self::fields).
    pub fn derive(&self, facts: &KeyFacts<'_>, values: &[FieldValue<'_>]) -> Result<Keys, KeyError> {
        let mut keys = Keys::default();
        if self.has_entity() && matches!(self.need, KeyNeed::Fields | KeyNeed::Entity | KeyNeed::EntityAndEvent) {
            let mut tuple = Tuple::new();
            self.write_entity(&mut tuple, facts, values)?;
            keys.entity = (self.need != KeyNeed::Fields).then(|| tuple.hash());
        }
        if matches!(self.need, KeyNeed::Event | KeyNeed::EntityAndEvent) {
            let mut tuple = Tuple::new();
            self.write_event(&mut tuple, facts, values)?;
            keys.event = Some(tuple.hash());
        }
        Ok(keys)
    }

    /// Which key [`explain`](Self::explain) shows: the entity key if that is all the sink uses and there is one.
    pub(super) fn explains_entity(&self) -> bool {
        matches!(self.need, KeyNeed::Fields | KeyNeed::Entity) && self.has_entity()
    }

    const fn has_entity(&self) -> bool {
        !matches!(self.strategy, DedupStrategy::EpochSequence | DedupStrategy::SourceOffset)
    }

    /// How many of the fields name the entity.
    pub(super) const fn naming(&self) -> usize {
        self.naming
    }

    pub(super) fn version_is_position(&self) -> bool {
        self.version == Version::Position
    }

    /// Writes the tuple of the entity key, which strategies without fields do not have.
    pub(super) fn write_entity(
        &self,
        tuple: &mut Tuple,
        facts: &KeyFacts<'_>,
        values: &[FieldValue<'_>],
    ) -> Result<(), KeyError> {
        tuple.kind(self.kinds.entity);
        self.write_names(tuple, facts, values)
    }

    /// Writes the tuple of the event key.
    pub(super) fn write_event(
        &self,
        tuple: &mut Tuple,
        facts: &KeyFacts<'_>,
        values: &[FieldValue<'_>],
    ) -> Result<(), KeyError> {
        tuple.kind(self.kinds.event);
        self.write_names(tuple, facts, values)?;
        if !fault::planted(Bug::KeyWithoutVersion) {
            self.write_version(tuple, facts, values)?;
        }
        Ok(())
    }

    /// What names the entity.
    fn write_names(&self, tuple: &mut Tuple, facts: &KeyFacts<'_>, values: &[FieldValue<'_>]) -> Result<(), KeyError> {
        assert_eq!(values.len(), self.fields.len(), "derive gets one value for each of the keyer's fields");
        if self.strategy.lacks_fields() {
            return Err(KeyError::NoFields { strategy: self.strategy.name() });
        }
        match &self.strategy {
            DedupStrategy::EpochSequence | DedupStrategy::SourceOffset => Ok(()),
            DedupStrategy::ContentFields { .. }
            | DedupStrategy::Composite { .. }
            | DedupStrategy::ChangeKey { .. }
            | DedupStrategy::WindowSequence { .. } => {
                let mut named = self.fields.iter().zip(values).take(self.naming);
                named.try_for_each(|(path, value)| write_value(tuple, path, *value))
            }
            DedupStrategy::Derived { contributors, window } => write_derived(tuple, contributors, window, values),
            DedupStrategy::Custom { name } => {
                let function = self.custom.as_ref().ok_or_else(|| KeyError::NoFunction { name: name.clone() })?;
                let refused = |message| KeyError::Refused { name: name.clone(), message };
                tuple.text(name);
                tuple.bytes(&function.call(facts, values).map_err(refused)?);
                Ok(())
            }
        }
    }

    /// What tells the events of one entity apart.
    fn write_version(
        &self,
        tuple: &mut Tuple,
        facts: &KeyFacts<'_>,
        values: &[FieldValue<'_>],
    ) -> Result<(), KeyError> {
        if self.version == Version::Absent {
            return Ok(());
        }
        tuple.version(self.version.word());
        match self.version {
            Version::Absent => {}
            Version::Field => write_value(tuple, &self.fields[self.naming], values[self.naming])?,
            Version::Epoch | Version::EpochSequence => {
                tuple.text(facts.source);
                tuple.text(facts.lane);
                tuple.count(facts.epoch.0);
                if self.version == Version::EpochSequence {
                    tuple.count(facts.sequence);
                }
            }
            Version::Position => {
                tuple.bytes(&self.origin_of(facts).0);
                tuple.count(facts.position.offset);
                tuple.count(facts.position.index.into());
                tuple.count(facts.emit.into());
            }
        }
        Ok(())
    }

    fn origin_of(&self, facts: &KeyFacts<'_>) -> KeyHash {
        let first = self.origin.get_or_init(|| Origin {
            source: facts.source.to_owned(),
            lane: facts.lane.to_owned(),
            incarnation: facts.incarnation.text.to_string(),
            hash: origin_hash(facts),
        });
        let same =
            first.source == facts.source && first.lane == facts.lane && *first.incarnation == *facts.incarnation.text;
        if same { first.hash } else { origin_hash(facts) }
    }
}

/// Source, lane and incarnation as one hash.
fn origin_hash(facts: &KeyFacts<'_>) -> KeyHash {
    let mut tuple = Tuple::new();
    tuple.kind("origin");
    tuple.text(facts.source);
    tuple.text(facts.lane);
    tuple.text(&facts.incarnation.text);
    tuple.hash()
}

/// The window, then the contributors in the order of their encodings, so that order of arrival does not matter.
fn write_derived(
    tuple: &mut Tuple,
    contributors: &Contributors,
    window: &FieldPath,
    values: &[FieldValue<'_>],
) -> Result<(), KeyError> {
    let (window_value, contributing) = values.split_last().expect("a derived key has at least its window");
    write_value(tuple, window, *window_value)?;
    let mut encoded = match contributors {
        Contributors::Array(path) => encode_array(path, contributing[0])?,
        Contributors::Fields(paths) => {
            paths.iter().zip(contributing).map(|(path, value)| encode_one(path, *value)).collect::<Result<_, _>>()?
        }
    };
    encoded.sort_unstable();
    encoded.iter().for_each(|element| tuple.append(element));
    Ok(())
}

/// One key field.
#[inline]
fn write_value(tuple: &mut Tuple, path: &FieldPath, value: FieldValue<'_>) -> Result<(), KeyError> {
    match value {
        FieldValue::Text(text) => tuple.text(text),
        FieldValue::Number(number) => tuple.number(number).map_err(|_| extreme(path, number))?,
        FieldValue::Bool(value) => tuple.boolean(value),
        FieldValue::Null => return Err(KeyError::NullField { path: path.clone(), missing: Missing::Null }),
        FieldValue::Absent => return Err(KeyError::NullField { path: path.clone(), missing: Missing::Absent }),
        FieldValue::Json(_) => return Err(KeyError::NonScalar { path: path.clone() }),
    }
    Ok(())
}

#[cold]
fn extreme(path: &FieldPath, number: &str) -> KeyError {
    let mut shown: String = number.chars().take(40).collect();
    if shown.len() < number.len() {
        shown.push('…');
    }
    KeyError::ExtremeNumber { path: path.clone(), number: shown }
}

fn encode_one(path: &FieldPath, value: FieldValue<'_>) -> Result<Vec<u8>, KeyError> {
    let mut element = Tuple::new();
    write_value(&mut element, path, value)?;
    Ok(element.as_bytes().to_vec())
}

/// The elements of a JSON array, each encoded; numbers keep their digits.
fn encode_array(path: &FieldPath, value: FieldValue<'_>) -> Result<Vec<Vec<u8>>, KeyError> {
    let missing = |missing| KeyError::NullField { path: path.clone(), missing };
    let non_scalar = || KeyError::NonScalar { path: path.clone() };
    let array = match value {
        FieldValue::Json(array) => array,
        FieldValue::Null => return Err(missing(Missing::Null)),
        FieldValue::Absent => return Err(missing(Missing::Absent)),
        // A single contributor that was not wrapped in an array is still one contributor.
        FieldValue::Bool(_) | FieldValue::Number(_) | FieldValue::Text(_) => return Ok(vec![encode_one(path, value)?]),
    };
    let elements: Vec<&RawValue> = serde_json::from_str(array).map_err(|_| non_scalar())?;
    if elements.is_empty() {
        return Err(missing(Missing::Empty));
    }
    let encode = |element: &RawValue| match element.get() {
        "null" => Err(missing(Missing::Null)),
        "true" => encode_one(path, FieldValue::Bool(true)),
        "false" => encode_one(path, FieldValue::Bool(false)),
        text if text.starts_with('"') => {
            let text: String = serde_json::from_str(text).map_err(|_| non_scalar())?;
            encode_one(path, FieldValue::Text(&text))
        }
        text if text.starts_with(['[', '{']) => Err(non_scalar()),
        number => encode_one(path, FieldValue::Number(number)),
    };
    elements.into_iter().map(encode).collect()
}

#[cfg(test)]
#[path = "keyer_tests.rs"]
mod tests;
