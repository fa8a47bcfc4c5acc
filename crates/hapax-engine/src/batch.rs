//! The buffer of one epoch: source bytes in one arena, events as spans into it. No allocation per event.

mod fields;
mod parts;

use std::sync::Arc;

pub use fields::{EventFields, FieldSpan, Made, TakeFields};
use hapax_model::field::{FieldPath, FieldValue};
use hapax_model::key::KeyHash;
use hapax_model::letter::{Cause, Letter, LetterBytes};
use hapax_model::position::Position;

use crate::decode::csv::Format;

/// How much of an oversized input a letter keeps.
pub const LETTER_HEAD_BYTES: usize = 64 * 1024;

/// A span of an arena. Arenas are bounded far below 4 GiB (`epoch.maxBytes`, `maxLine`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Span {
    start: u32,
    length: u32,
}

impl Span {
    fn new(start: usize, length: usize) -> Self {
        let narrow = |n| u32::try_from(n).expect("arenas are bounded below 4 GiB");
        Self { start: narrow(start), length: narrow(length) }
    }

    const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.length as usize
    }
}

/// One input as the source gave it.
#[derive(Debug, Clone)]
struct InputEntry {
    position: Position,
    span: Span,
    /// Which line of its file it begins in; 0 if nobody counted.
    line: u64,
    oversized: Option<Box<Oversized>>,
}

#[derive(Debug, Clone)]
struct Oversized {
    length: u64,
    sha256: [u8; 32],
}

/// What a source fills: inputs with their positions, in lane order.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    bytes: Vec<u8>,
    entries: Vec<InputEntry>,
    format: Format,
}

impl Inputs {
    /// How all inputs are written; JSON unless the source says otherwise. Set before the first is added.
    pub fn set_format(&mut self, format: &Format) {
        if self.format != *format {
            self.format = format.clone();
        }
    }

    /// How all inputs are written.
    #[must_use]
    pub const fn format(&self) -> &Format {
        &self.format
    }

    /// Says in which line of its file the last input begins, counted from 1.
    pub fn at_line(&mut self, line: u64) {
        if let Some(entry) = self.entries.last_mut() {
            entry.line = line;
        }
    }

    /// In which line of its file input `index` begins, if the source has counted.
    #[must_use]
    pub fn line(&self, index: usize) -> Option<u64> {
        Some(self.entries[index].line).filter(|line| *line > 0)
    }

    /// The bytes of input `index` so that they can be read again without the source: a CSV record comes with its header.
    #[must_use]
    pub fn standing_alone(&self, index: usize) -> Vec<u8> {
        let mut bytes = match &self.format {
            Format::Csv(csv) if self.entries[index].oversized.is_none() => csv.header_record(),
            Format::Csv(_) | Format::Json => Vec::new(),
        };
        bytes.extend_from_slice(self.bytes(index));
        bytes
    }

    /// Adds one input.
    pub fn push(&mut self, position: Position, bytes: &[u8]) {
        let span = Span::new(self.bytes.len(), bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.entries.push(InputEntry { position, span, line: 0, oversized: None });
    }

    /// Adds one input that `write` appends to the arena: for sources that make their bytes.
    pub fn push_with(&mut self, position: Position, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let span = Span::new(start, self.bytes.len() - start);
        self.entries.push(InputEntry { position, span, line: 0, oversized: None });
    }

    /// Adds an input that is longer than `maxLine`: it becomes a dead letter with what is known of it.
    pub fn push_oversized(&mut self, position: Position, head: &[u8], length: u64, sha256: [u8; 32]) {
        self.push(position, &head[..head.len().min(LETTER_HEAD_BYTES)]);
        if let Some(entry) = self.entries.last_mut() {
            entry.oversized = Some(Box::new(Oversized { length, sha256 }));
        }
    }

    /// How many inputs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many bytes the inputs have.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Where input `index` was.
    #[must_use]
    pub fn position(&self, index: usize) -> Position {
        self.entries[index].position
    }

    /// The bytes of input `index` (the beginning, if it was oversized).
    #[must_use]
    pub fn bytes(&self, index: usize) -> &[u8] {
        &self.bytes[self.entries[index].span.range()]
    }

    /// The full length of input `index`, if it was longer than `maxLine`.
    #[must_use]
    pub fn oversized_length(&self, index: usize) -> Option<u64> {
        self.entries[index].oversized.as_ref().map(|o| o.length)
    }

    /// The bytes of input `index` as a letter keeps them: it outlives the source.
    #[must_use]
    pub fn letter_bytes(&self, index: usize) -> LetterBytes {
        let bytes = self.standing_alone(index);
        match &self.entries[index].oversized {
            None => LetterBytes::Whole(bytes),
            Some(cut) => LetterBytes::Cut { head: bytes, length: cut.length, sha256: cut.sha256 },
        }
    }
}

/// What an event asks of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Write it.
    Upsert,
    /// Remove it (`deleteWhen` matched).
    Delete,
}

/// A field of an event, as spans.
#[derive(Debug, Clone, Copy)]
enum Cell {
    Absent,
    Null,
    Bool(bool),
    Number(Span),
    /// A string without escapes, in the input's own bytes.
    Text(Span),
    /// A string that had escapes, or that a transform made, in the side arena.
    Unescaped(Span),
    Json(Span),
    /// What a transform made, in the side arena.
    MadeNumber(Span),
    MadeJson(Span),
}

#[derive(Debug, Clone, Copy)]
struct EventEntry {
    input: u32,
    emit: u16,
    operation: Operation,
    entity_key: Option<KeyHash>,
    event_key: Option<KeyHash>,
}

/// The buffer of one epoch.
#[derive(Debug, Default)]
pub struct Batch {
    /// The inputs, in lane order.
    pub inputs: Inputs,
    unescaped: String,
    events: Vec<EventEntry>,
    /// How many of the events are deletes: mostly none, and then nobody needs to look at each.
    deletes: usize,
    cells: Vec<Cell>,
    layout: Layout,
    letters: Vec<(usize, Letter)>,
    filtered: u64,
}

/// Which field is in which slot. A target's columns may change while a batch waits: whoever reads a batch asks its
/// layout where a field is, once per batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout(Arc<[FieldPath]>);

impl Layout {
    /// Field `i` is the one at `paths[i]`.
    #[must_use]
    pub fn new(paths: &[FieldPath]) -> Self {
        Self(paths.into())
    }

    /// All fields, in the order of their slots.
    #[must_use]
    pub fn paths(&self) -> &[FieldPath] {
        &self.0
    }

    /// The slot of `path`, if the batch has it.
    #[must_use]
    pub fn slot_of(&self, path: &FieldPath) -> Option<usize> {
        self.0.iter().position(|known| known == path)
    }
}

/// A field's value as bytes: [`FieldValue`] without looking at its text again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldBytes<'a> {
    /// The event has no such field.
    Absent,
    /// The field is there and says `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A JSON number, as written.
    Number(&'a [u8]),
    /// A JSON string, unescaped.
    Text(&'a [u8]),
    /// A JSON array or object, as written.
    Json(&'a [u8]),
}

impl<'a> From<FieldValue<'a>> for FieldBytes<'a> {
    fn from(value: FieldValue<'a>) -> Self {
        match value {
            FieldValue::Absent => Self::Absent,
            FieldValue::Null => Self::Null,
            FieldValue::Bool(value) => Self::Bool(value),
            FieldValue::Number(text) => Self::Number(text.as_bytes()),
            FieldValue::Text(text) => Self::Text(text.as_bytes()),
            FieldValue::Json(text) => Self::Json(text.as_bytes()),
        }
    }
}

/// One event of a batch, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct OutputEvent<'a> {
    batch: &'a Batch,
    index: usize,
}

impl Batch {
    /// An empty buffer for events with these fields.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self { layout, ..Self::default() }
    }

    /// Which field is in which slot.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    fn width(&self) -> usize {
        self.layout.0.len()
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are no events (there may be inputs and letters).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Event `index`, in lane order.
    #[must_use]
    #[inline]
    pub fn event(&self, index: usize) -> OutputEvent<'_> {
        assert!(index < self.events.len(), "event index is within the batch");
        OutputEvent { batch: self, index }
    }

    /// All events, in lane order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = OutputEvent<'_>> {
        (0..self.events.len()).map(|index| OutputEvent { batch: self, index })
    }

    /// Inputs that died before they reached the sink, by their index; ascending.
    #[must_use]
    pub fn letters(&self) -> &[(usize, Letter)] {
        &self.letters
    }

    /// Inputs that had no output and are no letters.
    #[must_use]
    pub const fn filtered(&self) -> u64 {
        self.filtered
    }

    /// A letter for input `input`, with its bytes.
    #[must_use]
    pub fn letter(&self, input: usize, cause: Cause, event_key: Option<String>) -> Letter {
        Letter { position: self.inputs.position(input), cause, bytes: self.inputs.letter_bytes(input), event_key }
    }

    /// What the buffer holds in memory, allocations included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.inputs.bytes.capacity()
            + self.unescaped.capacity()
            + self.inputs.entries.capacity() * size_of::<InputEntry>()
            + self.events.capacity() * size_of::<EventEntry>()
            + self.cells.capacity() * size_of::<Cell>()
            + self.letters.iter().map(|(_, l)| size_of::<(usize, Letter)>() + letter_bytes(l)).sum::<usize>()
    }

    /// Adds a letter for an input that died in the fill.
    pub fn push_letter(&mut self, input: usize, cause: Cause, event_key: Option<String>) {
        let letter = self.letter(input, cause, event_key);
        self.letters.push((input, letter));
    }

    /// Counts an input that has no output.
    pub const fn push_filtered(&mut self) {
        self.filtered += 1;
    }

    /// Opens an event of `input`; its fields follow by [`EventWriter::reading`] or [`EventWriter::set`].
    #[inline]
    pub fn push_event(&mut self, input: usize, emit: u16, operation: Operation) -> EventWriter<'_> {
        let input = u32::try_from(input).expect("an epoch has fewer than 2^32 inputs");
        self.events.push(EventEntry { input, emit, operation, entity_key: None, event_key: None });
        self.deletes += usize::from(operation == Operation::Delete);
        self.cells.resize(self.events.len() * self.width(), Cell::Absent);
        EventWriter { batch: self }
    }

    /// The event that was pushed last, to be gone on with.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(crate) fn last_event(&mut self) -> EventWriter<'_> {
        assert!(!self.events.is_empty(), "an event was pushed");
        EventWriter { batch: self }
    }

    /// Takes the last event back: its input died or was filtered after all.
    pub fn pop_event(&mut self) {
        let popped = self.events.pop();
        self.deletes -= usize::from(popped.is_some_and(|entry| entry.operation == Operation::Delete));
        self.cells.truncate(self.events.len() * self.width());
    }

    /// Forgets everything and keeps the allocations.
    pub fn clear(&mut self) {
        self.inputs.bytes.clear();
        self.inputs.entries.clear();
        self.unescaped.clear();
        self.events.clear();
        self.deletes = 0;
        self.cells.clear();
        self.letters.clear();
        self.filtered = 0;
    }

    fn value(&self, cell: Cell) -> FieldValue<'_> {
        match cell {
            Cell::Absent => FieldValue::Absent,
            Cell::Null => FieldValue::Null,
            Cell::Bool(value) => FieldValue::Bool(value),
            Cell::Number(span) => FieldValue::Number(self.text(span)),
            Cell::Text(span) => FieldValue::Text(self.text(span)),
            Cell::Json(span) => FieldValue::Json(self.text(span)),
            Cell::Unescaped(span) => FieldValue::Text(&self.unescaped[span.range()]),
            Cell::MadeNumber(span) => FieldValue::Number(&self.unescaped[span.range()]),
            Cell::MadeJson(span) => FieldValue::Json(&self.unescaped[span.range()]),
        }
    }

    fn text(&self, span: Span) -> &str {
        std::str::from_utf8(&self.inputs.bytes[span.range()]).expect("the decoder found this input to be UTF-8")
    }
}

fn letter_bytes(letter: &Letter) -> usize {
    match &letter.bytes {
        LetterBytes::Whole(bytes) | LetterBytes::Cut { head: bytes, .. } => bytes.capacity(),
    }
}

/// Fills in the event that was pushed last.
#[derive(Debug)]
pub struct EventWriter<'a> {
    batch: &'a mut Batch,
}

impl EventWriter<'_> {
    /// The bytes of the event's input, and where the fields go that a decoder finds in them.
    #[inline]
    pub fn reading(&mut self) -> (&[u8], EventFields<'_>) {
        let Batch { inputs, unescaped, events, cells, layout, .. } = &mut *self.batch;
        let last = events.len() - 1;
        let span = inputs.entries[events[last].input as usize].span;
        let cells = &mut cells[last * layout.0.len()..];
        (&inputs.bytes[span.range()], EventFields { base: span.start as usize, cells, unescaped })
    }

    /// Sets field `slot`.
    pub fn set(&mut self, slot: usize, field: &FieldSpan) {
        self.reading().1.take(slot, field.clone());
    }

    /// The event as it stands.
    #[must_use]
    pub fn view(&self) -> OutputEvent<'_> {
        OutputEvent { batch: self.batch, index: self.batch.events.len() - 1 }
    }

    /// Sets what the event asks of its row.
    pub fn set_operation(&mut self, operation: Operation) {
        if let Some(entry) = self.batch.events.last_mut() {
            self.batch.deletes -= usize::from(entry.operation == Operation::Delete);
            entry.operation = operation;
            self.batch.deletes += usize::from(operation == Operation::Delete);
        }
    }

    /// Sets the event's keys.
    pub fn set_keys(&mut self, entity: Option<KeyHash>, event: Option<KeyHash>) {
        if let Some(entry) = self.batch.events.last_mut() {
            entry.entity_key = entity;
            entry.event_key = event;
        }
    }
}

impl<'a> OutputEvent<'a> {
    /// Its index in the batch: lane order.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// The index of the input that it came from.
    #[must_use]
    #[inline]
    pub fn input(&self) -> usize {
        self.entry().input as usize
    }

    /// Which of its input's events it is.
    #[must_use]
    pub fn emit(&self) -> u32 {
        u32::from(self.entry().emit)
    }

    /// Where its input was.
    #[must_use]
    pub fn position(&self) -> Position {
        self.batch.inputs.position(self.input())
    }

    /// What it asks of its row.
    #[must_use]
    #[inline]
    pub fn operation(&self) -> Operation {
        if self.batch.deletes == 0 { Operation::Upsert } else { self.entry().operation }
    }

    /// Names the thing: the row to overwrite.
    #[must_use]
    pub fn entity_key(&self) -> Option<KeyHash> {
        self.entry().entity_key
    }

    /// Names this one event: what is dropped as a duplicate.
    #[must_use]
    pub fn event_key(&self) -> Option<KeyHash> {
        self.entry().event_key
    }

    /// How its input was written.
    #[must_use]
    pub const fn format(&self) -> &'a Format {
        self.batch.inputs.format()
    }

    /// Whether its fields are texts that stand for values of any type, as in CSV: a column reads them by its own type.
    #[must_use]
    #[inline]
    pub const fn is_untyped(&self) -> bool {
        matches!(self.batch.inputs.format, Format::Csv(_))
    }

    /// Which field is in which slot.
    #[must_use]
    pub const fn layout(&self) -> &'a Layout {
        self.batch.layout()
    }

    /// Field `slot` of the batch's layout.
    #[must_use]
    pub fn field(&self, slot: usize) -> FieldValue<'a> {
        self.batch.value(self.cell(slot))
    }

    /// Whether the event has field `slot` at all; cheaper than reading it.
    #[must_use]
    #[inline]
    pub fn has(&self, slot: usize) -> bool {
        !matches!(self.cell(slot), Cell::Absent)
    }

    /// Field `slot` as bytes, which the decoder found to be UTF-8: for sinks that hand bytes on, row after row.
    #[must_use]
    #[inline(always)]
    pub fn field_bytes(&self, slot: usize) -> FieldBytes<'a> {
        let bytes = |span: Span| &self.batch.inputs.bytes[span.range()];
        let made = |span: Span| &self.batch.unescaped.as_bytes()[span.range()];
        match self.cell(slot) {
            Cell::Absent => FieldBytes::Absent,
            Cell::Null => FieldBytes::Null,
            Cell::Bool(value) => FieldBytes::Bool(value),
            Cell::Number(span) => FieldBytes::Number(bytes(span)),
            Cell::Text(span) => FieldBytes::Text(bytes(span)),
            Cell::Json(span) => FieldBytes::Json(bytes(span)),
            Cell::Unescaped(span) => FieldBytes::Text(made(span)),
            Cell::MadeNumber(span) => FieldBytes::Number(made(span)),
            Cell::MadeJson(span) => FieldBytes::Json(made(span)),
        }
    }

    #[inline(always)]
    fn cell(&self, slot: usize) -> Cell {
        self.batch.cells[self.index * self.batch.width() + slot]
    }

    /// The whole input that the event came from, as text.
    #[must_use]
    pub fn payload(&self) -> &'a str {
        self.batch.text(self.batch.inputs.entries[self.input()].span)
    }

    #[inline]
    fn entry(&self) -> &'a EventEntry {
        &self.batch.events[self.index]
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
