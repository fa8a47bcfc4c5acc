//! A batch as rows of the live table: what each event asks, what it lacks, what its columns hold.
//!
//! Reads: the batch, the mapping. Writes: nothing. Invariant: two events have one key here exactly if the table's
//! unique index takes them for one row. Not here: SQL.

use std::cmp::Ordering;
use std::collections::HashSet;

use hapax_engine::batch::{Batch, FieldBytes, Operation, OutputEvent};
use hapax_engine::reduce::{Cover, RowFacts, RowKeys, first_collision, reduce};
use hapax_engine::sink::SinkError;
use hapax_model::letter::{Cause, Stage};
use hapax_model::mode::ConflictMode;

use super::column::{self, LiveColumn, StoredValue as _};
use super::config::UniqueKeys;
use super::mapping::{Feed, Mapping};
use super::shape::{AbsentSet, RowKind};
use super::untyped;

/// An event that is a delete, in a mode that has none.
const UNWANTED_DELETE: &str = "HX2022";
/// An event that has no key, for a table that is written by key.
const NO_KEY: &str = "HX2024";

/// Which incarnation of the source the positions of a batch belong to.
#[derive(Debug, Clone)]
pub enum Incarnations {
    /// All to this one.
    One(u32),
    /// Each input to its own.
    PerInput(Vec<u32>),
}

/// Events in the order of writing, and the places in it where a key is the one before again; ascending.
pub type CutOrder = (Vec<usize>, Vec<usize>);

/// A batch as rows.
#[derive(Debug)]
pub struct Rows<'a, C> {
    /// How the table is written.
    pub mapping: &'a Mapping<C>,
    /// The events.
    pub batch: &'a Batch,
    /// Where each column's field is in this batch, if it has it.
    slots: Vec<Option<usize>>,
    /// Columns that a row may leave out, with their slots.
    optional: Vec<(usize, Option<usize>)>,
    /// Whether a tombstone says all of its row.
    tombstones: Cover,
    incarnations: Incarnations,
}

impl<'a, C: LiveColumn> Rows<'a, C> {
    /// The events of `batch`, for a table that is written as `mapping` says.
    #[must_use]
    pub fn new(mapping: &'a Mapping<C>, batch: &'a Batch, incarnations: Incarnations) -> Self {
        let slot = |feed| match feed {
            Feed::Field(at) => batch.layout().slot_of(&mapping.fields[at]),
            Feed::Key | Feed::Version | Feed::Deleted => None,
        };
        let slots: Vec<Option<usize>> = mapping.columns.iter().map(|column| slot(column.feed)).collect();
        let optional = (0..slots.len()).filter(|at| mapping.may_be_left_out(*at)).map(|at| (at, slots[at])).collect();
        let tombstones = if mapping.tombstone_keeps() { Cover::Part } else { Cover::Whole };
        Self { mapping, batch, slots, optional, tombstones, incarnations }
    }

    /// Refuses to go on without a column that was filled and is gone, as soon as an event has a value for it.
    ///
    /// # Errors
    /// [`SinkError::SchemaEvolution`].
    pub fn refuse_gone(&self, target: &str) -> Result<(), SinkError> {
        for (column, field) in &self.mapping.gone {
            let Some(slot) = self.batch.layout().slot_of(field) else { continue };
            let has =
                |event: &OutputEvent<'_>| !matches!(event.field_bytes(slot), FieldBytes::Absent | FieldBytes::Null);
            if self.batch.events().any(|event| has(&event)) {
                let message = format!(
                    "column \"{column}\" is gone, and events still have a value for it in {field}, which no column takes now; \
                     if it was renamed, map it under columns: {{ NEW_NAME: {field} }}, if it was dropped by mistake, add it \
                     again; a new start goes on without it"
                );
                return Err(SinkError::SchemaEvolution { target: target.to_owned(), message });
            }
        }
        Ok(())
    }

    /// What an event asks of the table.
    ///
    /// # Errors
    /// Why the event is rejected.
    pub fn kind(&self, event: &OutputEvent<'_>) -> Result<RowKind, Cause> {
        match (event.operation(), self.mapping.mode) {
            (Operation::Upsert, _) => Ok(RowKind::Upsert),
            (Operation::Delete, ConflictMode::Update) => Ok(RowKind::Delete),
            (Operation::Delete, ConflictMode::Newer) => Ok(RowKind::Tombstone),
            (Operation::Delete, ConflictMode::Append | ConflictMode::Ignore) => {
                let message =
                    format!("the event is a delete, and onConflict: {} only adds rows", self.mapping.mode.name());
                Err(Cause { stage: Stage::Map, code: UNWANTED_DELETE, fingerprint: message.clone(), message })
            }
        }
    }

    /// Which columns an event leaves to their default, or as they are.
    pub fn absent(&self, event: &OutputEvent<'_>, kind: RowKind, absent: &mut AbsentSet) {
        absent.reset(self.mapping.columns.len());
        if kind == RowKind::Upsert {
            for (at, slot) in &self.optional {
                if slot.is_none_or(|slot| !event.has(slot)) {
                    absent.insert(*at);
                }
            }
        }
    }

    /// Whether `absent` are the columns that an event leaves out which is to be written.
    #[inline]
    #[must_use]
    pub fn lacks_just(&self, event: &OutputEvent<'_>, absent: &AbsentSet) -> bool {
        self.optional.iter().all(|(at, slot)| slot.is_none_or(|slot| !event.has(slot)) == absent.contains(*at))
    }

    /// Where the field that feeds column `at` is in the batch, if a field does and the batch has it.
    #[must_use]
    pub fn slot(&self, at: usize) -> Option<usize> {
        self.slots[at]
    }

    /// What an event puts into column `at` of the mapping.
    ///
    /// # Errors
    /// Why the event is rejected.
    #[inline]
    pub fn value<'b>(&self, event: &OutputEvent<'b>, at: usize) -> Result<C::Value<'b>, Cause> {
        let column = &self.mapping.columns[at];
        match column.feed {
            Feed::Field(_) => {
                let field = self.slots[at].map_or(FieldBytes::Absent, |slot| event.field_bytes(slot));
                if event.is_untyped() { untyped::field(&column.live, field) } else { column.live.field(field) }
            }
            Feed::Key => match self.key(event) {
                Some(key) => Ok(column.live.key(key)),
                None => Err(self.no_key()),
            },
            Feed::Version => {
                let incarnation = match &self.incarnations {
                    Incarnations::One(number) => *number,
                    Incarnations::PerInput(numbers) => numbers.get(event.input()).copied().unwrap_or(1),
                };
                Ok(column.live.version(column::version(incarnation, event.position(), event.emit())))
            }
            Feed::Deleted => Ok(column.live.deleted(event.operation())),
        }
    }

    /// Why an event would be refused before it is sent, if it would. `absent` is room for what it lacks.
    pub fn misfit(&self, event: &OutputEvent<'_>, absent: &mut AbsentSet) -> Option<Cause> {
        let kind = match self.kind(event) {
            Ok(kind) => kind,
            Err(cause) => return Some(cause),
        };
        self.absent(event, kind, absent);
        let filled = (0..self.mapping.columns.len()).filter(|at| kind.fills(self.mapping, absent, *at));
        filled.map(|at| self.value(event, at)).find_map(Result::err)
    }

    fn key(&self, event: &OutputEvent<'_>) -> Option<hapax_model::key::KeyHash> {
        dedup_key(self.mapping.mode, event)
    }

    #[inline]
    fn plain_integer(&self, event: &OutputEvent<'_>, at: usize) -> Option<i64> {
        self.mapping.columns[at].live.plain_integer(event.field_bytes(self.slots[at]?))
    }

    fn no_key(&self) -> Cause {
        let message =
            "the event has no key for the key column; name its fields under deduplication.keyFields".to_owned();
        Cause { stage: Stage::Key, code: NO_KEY, fingerprint: message.clone(), message }
    }

    /// The keys of all events, as the table compares them; an error if an event has none.
    fn keys(&self) -> Result<RowKeys, Cause> {
        let mut keys = RowKeys::with_capacity(self.batch.len());
        for event in self.batch.events() {
            let mut failed = None;
            keys.push(|bytes| {
                for at in &self.mapping.key {
                    if let Some(value) = self.plain_integer(&event, *at) {
                        column::append_integer(bytes, value);
                        continue;
                    }
                    match self.value(&event, *at) {
                        Ok(value) => value.append_key(bytes),
                        Err(cause) => failed = Some(cause),
                    }
                }
            });
            if let Some(cause) = failed {
                return Err(cause);
            }
        }
        Ok(keys)
    }

    /// Whether the events' keys are whole numbers, each greater than the one before: no key comes twice, and lane order
    /// is key order. So it is where events create things; elsewhere the first few events say no.
    fn counts_up(&self) -> bool {
        let [at] = self.mapping.key[..] else { return false };
        let mut last = None;
        self.batch.events().all(|event| {
            let key = self.plain_integer(&event, at);
            let greater = key.is_some() && key > last;
            last = key;
            greater
        })
    }

    /// The keys of all events, none if one has none; refuses collisions of keys that are promised to be unique.
    fn checked_keys(&self, unique: UniqueKeys) -> Result<Option<RowKeys>, SinkError> {
        let Ok(keys) = self.keys() else { return Ok(None) };
        if self.mapping.mode == ConflictMode::Ignore && unique == UniqueKeys::Promised {
            self.refuse_collision(&keys)?;
        }
        Ok(Some(keys))
    }

    /// The events to write in the first try, reduced and sorted, and the places in that order where a key is the one
    /// before again; none if an event has no key and must be found.
    ///
    /// # Errors
    /// [`SinkError::DedupKeyCollision`].
    pub fn reduced(&self, unique: UniqueKeys) -> Result<Option<CutOrder>, SinkError> {
        if self.mapping.mode == ConflictMode::Append || self.counts_up() {
            return Ok(Some(((0..self.batch.len()).collect(), Vec::new())));
        }
        let Some(keys) = self.checked_keys(unique)? else { return Ok(None) };
        let order = reduce(self.mapping.mode, &keys, self);
        let repeats = |at: &usize| keys.key(order[*at]) == keys.key(order[*at - 1]);
        let cuts = (1..order.len()).filter(repeats).collect();
        Ok(Some((order, cuts)))
    }

    /// Places in lane order where a statement must end, because a key comes again in it; none if an event has no key.
    ///
    /// # Errors
    /// [`SinkError::DedupKeyCollision`].
    pub fn repeats(&self, unique: UniqueKeys) -> Result<Option<Vec<usize>>, SinkError> {
        if self.mapping.mode == ConflictMode::Append || self.counts_up() {
            return Ok(Some(Vec::new()));
        }
        let Some(keys) = self.checked_keys(unique)? else { return Ok(None) };
        let mut seen = HashSet::new();
        let mut cuts = Vec::new();
        for event in 0..keys.len() {
            if !seen.insert(keys.key(event)) {
                seen.clear();
                seen.insert(keys.key(event));
                cuts.push(event);
            }
        }
        Ok(Some(cuts))
    }

    /// The key of one event, as the table compares it; none in `append`.
    ///
    /// # Errors
    /// Why it has none.
    pub fn key_bytes(&self, event: usize) -> Result<Option<Vec<u8>>, Cause> {
        if self.mapping.key.is_empty() {
            return Ok(None);
        }
        let event = self.batch.event(event);
        let mut bytes = Vec::new();
        for at in &self.mapping.key {
            self.value(&event, *at)?.append_key(&mut bytes);
        }
        Ok(Some(bytes))
    }

    /// All events by key: only for the planted bug that tries the rows of a rejected epoch in this order.
    #[must_use]
    pub fn sorted_by_key(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.batch.len()).collect();
        if let Ok(keys) = self.keys() {
            order.sort_by(|a, b| keys.key(*b).cmp(keys.key(*a)));
        }
        order
    }

    fn refuse_collision(&self, keys: &RowKeys) -> Result<(), SinkError> {
        let width = self.batch.layout().paths().len();
        let differ = |a: usize, b: usize| {
            let (a, b) = (self.batch.event(a), self.batch.event(b));
            (0..width).any(|slot| a.field_bytes(slot) != b.field_bytes(slot))
        };
        let Some((first, second)) = first_collision(keys, differ) else { return Ok(()) };
        let (first, second) = (self.batch.event(first), self.batch.event(second));
        let key = self.key(&first).map(|key| key.text().to_string()).unwrap_or_default();
        Err(SinkError::DedupKeyCollision { first: first.position(), second: second.position(), key })
    }
}

/// The key under which an event is written: the entity key in `update` and `newer`, else the event key.
#[must_use]
pub fn dedup_key(mode: ConflictMode, event: &OutputEvent<'_>) -> Option<hapax_model::key::KeyHash> {
    match mode {
        ConflictMode::Update | ConflictMode::Newer => event.entity_key(),
        ConflictMode::Ignore | ConflictMode::Append => event.event_key(),
    }
}

impl<C: LiveColumn> RowFacts for Rows<'_, C> {
    fn cover(&self, event: usize) -> Cover {
        let event = self.batch.event(event);
        let lacks = |(_, slot): &(usize, Option<usize>)| slot.is_none_or(|slot| !event.has(slot));
        match (event.operation(), self.mapping.mode) {
            (Operation::Delete, ConflictMode::Newer) => self.tombstones,
            (Operation::Upsert, _) if self.optional.iter().any(lacks) => Cover::Part,
            (Operation::Upsert | Operation::Delete, _) => Cover::Whole,
        }
    }

    fn removes(&self, event: usize) -> bool {
        self.batch.event(event).operation() == Operation::Delete
    }

    /// As the guard of mode `newer` does: NULL gives way to everything, and equal versions leave what is there. Where a
    /// version cannot be read either will do: the first try ends, whether that event is written or not.
    fn replaces(&self, earlier: usize, later: usize) -> bool {
        let Some(at) = self.mapping.version else { return true };
        let (earlier, later) = (self.batch.event(earlier), self.batch.event(later));
        match (self.value(&earlier, at), self.value(&later, at)) {
            (Ok(earlier), _) if earlier.is_null() => true,
            (_, Ok(later)) if later.is_null() => false,
            (Ok(earlier), Ok(later)) => earlier.order(&later) == Ordering::Less,
            (Err(_), _) | (_, Err(_)) => false,
        }
    }
}
