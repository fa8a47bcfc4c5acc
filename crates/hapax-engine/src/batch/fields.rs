//! How the fields of an event get into its batch: as spans of the input's own bytes, or as texts made for it.

use hapax_model::field::FieldValue;

use super::{Cell, Span};

/// A field on its way into a batch: spans are byte ranges within the event's own input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldSpan {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number's text.
    Number(std::ops::Range<usize>),
    /// A string without escapes.
    Text(std::ops::Range<usize>),
    /// A string that had escapes.
    Unescaped(String),
    /// An array or object.
    Json(std::ops::Range<usize>),
}

/// Takes the fields of one event as a decoder finds them.
pub trait TakeFields {
    /// The next field, in the order of the text; a later one for the same slot counts.
    fn take(&mut self, slot: usize, field: FieldSpan);

    /// What was taken for this slot does not count: the object that it was in comes again, and its last counts.
    fn forget(&mut self, slot: usize);

    /// The event is read again from its beginning.
    fn start_again(&mut self);
}

impl TakeFields for Vec<(usize, FieldSpan)> {
    fn take(&mut self, slot: usize, field: FieldSpan) {
        self.push((slot, field));
    }

    fn forget(&mut self, slot: usize) {
        self.retain(|(taken, _)| *taken != slot);
    }

    fn start_again(&mut self) {
        self.clear();
    }
}

/// The fields of the event that was pushed last.
#[derive(Debug)]
pub struct EventFields<'a> {
    /// Where the event's input begins.
    pub(super) base: usize,
    pub(super) cells: &'a mut [Cell],
    pub(super) unescaped: &'a mut String,
}

/// What kind of value a text made for an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// A JSON number.
    Number,
    /// A string, unescaped.
    Text,
    /// A JSON array or object.
    Json,
}

impl EventFields<'_> {
    /// Sets field `slot` to a text of this kind, which `write` appends: for what is not in the input's own bytes.
    #[inline]
    pub fn make(&mut self, slot: usize, kind: Made, write: impl FnOnce(&mut String)) {
        let start = self.unescaped.len();
        write(self.unescaped);
        let span = Span::new(start, self.unescaped.len() - start);
        self.cells[slot] = match kind {
            Made::Number => Cell::MadeNumber(span),
            Made::Text => Cell::Unescaped(span),
            Made::Json => Cell::MadeJson(span),
        };
    }

    /// Sets field `slot` to a copy of `value`.
    pub fn copy(&mut self, slot: usize, value: FieldValue<'_>) {
        match value {
            FieldValue::Absent => self.cells[slot] = Cell::Absent,
            FieldValue::Null => self.cells[slot] = Cell::Null,
            FieldValue::Bool(value) => self.cells[slot] = Cell::Bool(value),
            FieldValue::Number(text) => self.make(slot, Made::Number, |made| made.push_str(text)),
            FieldValue::Text(text) => self.make(slot, Made::Text, |made| made.push_str(text)),
            FieldValue::Json(text) => self.make(slot, Made::Json, |made| made.push_str(text)),
        }
    }
}

impl TakeFields for EventFields<'_> {
    #[inline]
    fn take(&mut self, slot: usize, field: FieldSpan) {
        let shift = |range: std::ops::Range<usize>| Span::new(self.base + range.start, range.len());
        self.cells[slot] = match field {
            FieldSpan::Null => Cell::Null,
            FieldSpan::Bool(value) => Cell::Bool(value),
            FieldSpan::Number(range) => Cell::Number(shift(range)),
            FieldSpan::Text(range) => Cell::Text(shift(range)),
            FieldSpan::Json(range) => Cell::Json(shift(range)),
            FieldSpan::Unescaped(text) => {
                let start = self.unescaped.len();
                self.unescaped.push_str(&text);
                Cell::Unescaped(Span::new(start, text.len()))
            }
        };
    }

    fn forget(&mut self, slot: usize) {
        self.cells[slot] = Cell::Absent;
    }

    fn start_again(&mut self) {
        self.cells.fill(Cell::Absent);
    }
}
