//! Runs a program on the inputs of one lane.
//!
//! Invariant: nothing is kept from one input to the next but memory to work in. A key field that the input has comes
//! out as it went in, or the input dies.

use std::sync::Arc;

use hapax_engine::batch::{EventFields, FieldSpan, Layout, TakeFields as _};
use hapax_engine::decode::{Decoder, UnknownFields, Value as Inner};
use hapax_engine::transform::{Given, Others, Rest, Transform, Wants};
use hapax_model::field::FieldPath;
use hapax_model::letter::{Cause, Stage};
use vrl::compiler::state::RuntimeState;
use vrl::compiler::{Context, ExpressionError, TimeZone};
use vrl::path::OwnedSegment;
use vrl::value::Value;

use crate::event::{Event, State, Trouble, View};
use crate::json::read_field;
use crate::program::Program;
use crate::write::{Unwritable, write_value};

/// A field of the event, or one inside of it.
#[derive(Debug)]
struct Place {
    /// Where it is among the wanted fields.
    wanted: usize,
    /// The field at the top that it is, or is in.
    top: usize,
    /// The path inside of that one.
    inner: Vec<OwnedSegment>,
    path: FieldPath,
}

/// The program of one lane.
#[derive(Debug)]
pub(crate) struct Lane {
    program: Arc<Program>,
    wants: Wants,
    event: Event,
    /// By slot.
    slots: Vec<Place>,
    keys: Vec<Place>,
    /// Whether the field at the top is taken by a slot, by the field's number.
    taken: Vec<bool>,
    /// Which of these are taken in part only.
    in_parts: Vec<bool>,
    /// What of them is taken.
    parts: Decoder,
    state: RuntimeState,
    zone: TimeZone,
}

impl Lane {
    pub(crate) fn new(program: Arc<Program>, layout: &Layout, keys: &[FieldPath]) -> Self {
        let mut names = program.names.clone();
        let paths = || layout.paths().iter().chain(keys);
        for name in paths().map(|path| &path.names()[0]) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let mut fields: Vec<FieldPath> = names.iter().map(|name| FieldPath::of_name(name)).collect();
        for path in paths() {
            if !fields.contains(path) {
                fields.push(path.clone());
            }
        }
        let place = |path: &FieldPath| Place {
            wanted: fields.iter().position(|known| known == path).expect("every path was added"),
            top: names.iter().position(|name| *name == path.names()[0]).expect("every name was added"),
            inner: path.names()[1..].iter().map(|name| OwnedSegment::field(name)).collect(),
            path: path.clone(),
        };
        let slots: Vec<Place> = layout.paths().iter().map(place).collect();
        let keys = keys.iter().map(place).collect();
        let parts = Decoder::new(layout.paths(), UnknownFields::Counted);
        let in_parts = names.iter().map(|name| parts.takes_parts_of(name)).collect();
        let taken = (0..names.len()).map(|top| slots.iter().any(|slot| slot.top == top)).collect();
        let dropped = names.iter().map(|name| program.dropped.contains(name)).collect();
        let rest = if program.reads_all { Rest::Given } else { Rest::Left };
        Self {
            event: Event::new(names.into(), dropped),
            wants: Wants { fields, rest },
            slots,
            keys,
            taken,
            in_parts,
            parts,
            state: RuntimeState::default(),
            zone: TimeZone::parse("UTC").expect("UTC is a time zone"),
            program,
        }
    }

    /// The event of this number, if the program replaced the whole.
    fn replaced(&self, event: usize) -> Option<&Value> {
        replaced(&self.event, event)
    }

    fn died(&self, error: &ExpressionError) -> Cause {
        let (span, message) = match error {
            ExpressionError::Error { message, labels, .. } => {
                let inmost = labels.iter().find(|label| label.primary);
                (inmost.map(|label| label.span), inmost.map_or(message.as_str(), |label| label.message.as_str()))
            }
            ExpressionError::Fallible { span } => (Some(*span), "an error was not handled"),
            ExpressionError::Missing { span, .. } => (Some(*span), "a part of the language is missing"),
            ExpressionError::Interrupted
            | ExpressionError::Abort { .. }
            | ExpressionError::Return { .. }
            | ExpressionError::Break { .. } => (None, "the program ended in an unusual way"),
        };
        let Some(span) = span else {
            return cause("HX2100", format!("the transform failed: {message}"), "transform failed".into());
        };
        let line = self.program.line_of(span.start());
        let source = self.program.text().get(span.start()..span.end()).unwrap_or_default();
        let call: String = source.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
        cause(
            "HX2100",
            format!("the transform failed at line {line}, {call}: {message}"),
            format!("transform line {line}: {call}"),
        )
    }

    fn troubled(&self, trouble: Trouble) -> Cause {
        let inexact = |what: String| {
            let message = format!(
                "the transform reads {what}, which holds a number with more digits than it can calculate with; leave \
                 the field alone and it comes through with every digit"
            );
            cause("HX2103", message, format!("{what} holds a number with too many digits"))
        };
        match trouble {
            Trouble::Inexact(field) => inexact(format!("the field \"{}\"", self.event.names()[field])),
            Trouble::InexactOther => inexact("the whole event".into()),
            Trouble::TooDeep => cause(
                "HX2106",
                "the input is nested more than 128 times where the transform reads it".into(),
                "nested too deeply".into(),
            ),
        }
    }

    /// How many events the value is that the program put in the place of the event.
    fn count(&self) -> Result<usize, Cause> {
        let wrong = |what: &str| {
            let message = format!(
                "the transform made {what} of the event; an event is an object, and several events are an array of objects"
            );
            cause("HX2101", message, format!("the transform made {what} of the event"))
        };
        match self.event.replaced() {
            None | Some(Value::Object(_)) => Ok(1),
            Some(Value::Array(items)) => match items.iter().find(|item| !matches!(item, Value::Object(_))) {
                None => Ok(items.len()),
                Some(odd) => Err(wrong(&format!("an array with {} in it", kind(odd)))),
            },
            Some(other) => Err(wrong(kind(other))),
        }
    }

    /// Whether the key fields that the input has are in event `event` as they were.
    fn check_keys(&self, event: usize, given: &Given<'_>) -> Result<(), Cause> {
        let replaced = self.replaced(event);
        for key in &self.keys {
            let now = match replaced {
                Some(value) => value.get(&[OwnedSegment::field(&key.path.names()[0])][..]),
                None => match self.event.state(key.top) {
                    State::AsGiven => continue,
                    State::Changed => self.event.changed(key.top),
                    State::Removed => None,
                },
            };
            let now =
                now.and_then(|value| if key.inner.is_empty() { Some(value) } else { value.get(key.inner.as_slice()) });
            let Some(span) = &given.fields[key.wanted] else { continue };
            let was = read_field(given.bytes, span).ok().filter(|read| read.odd.is_empty()).map(|read| read.value);
            let harm = match (was, now) {
                (Some(Value::Null), _) => continue,
                (Some(was), Some(now)) if same(&was, now) => continue,
                (_, None) => "drops",
                (_, Some(_)) => "overwrites",
            };
            let path = &key.path;
            let message =
                format!("the transform {harm} the key field {path} of this event, by which rows find their place");
            return Err(cause("HX2105", message, format!("the transform {harm} the key field {path}")));
        }
        Ok(())
    }
}

impl Transform for Lane {
    fn wants(&self) -> &Wants {
        &self.wants
    }

    fn run(&mut self, given: &Given<'_>) -> Result<usize, Cause> {
        self.event.clear();
        self.state.clear();
        let Self { program, event, state, zone, .. } = self;
        let mut view = View { event, given };
        let ended = program.compiled.resolve(&mut Context::new(&mut view, state, zone));
        if let Some(trouble) = self.event.trouble() {
            return Err(self.troubled(trouble));
        }
        match ended {
            Ok(_) | Err(ExpressionError::Return { .. }) => self.count(),
            Err(ExpressionError::Abort { .. }) => Ok(0),
            Err(error) => Err(self.died(&error)),
        }
    }

    fn write(&mut self, event: usize, given: &Given<'_>, into: &mut EventFields<'_>) -> Result<(), Cause> {
        self.check_keys(event, given)?;
        let replaced = self.replaced(event);
        for (slot, place) in self.slots.iter().enumerate() {
            let top = match replaced {
                Some(Value::Object(fields)) => fields.get(place.path.names()[0].as_str()),
                Some(_) => None,
                None => match self.event.state(place.top) {
                    State::AsGiven => {
                        if let Some(span) = &given.fields[place.wanted] {
                            into.take(slot, span.clone());
                        }
                        continue;
                    }
                    State::Changed => self.event.changed(place.top),
                    State::Removed => None,
                },
            };
            let value =
                top.and_then(|top| if place.inner.is_empty() { Some(top) } else { top.get(place.inner.as_slice()) });
            if let Some(value) = value {
                write_value(value, slot, into).map_err(|error| unwritable(&place.path, error))?;
            }
        }
        Ok(())
    }

    fn others(&self, event: usize) -> Others {
        // A program that was given everything has told of everything.
        match (self.replaced(event), self.wants.rest) {
            (None, Rest::Left) => Others::Kept,
            (Some(_), _) | (None, Rest::Given) => Others::Gone,
        }
    }

    fn left_out(&mut self, event: usize, given: &Given<'_>, name: &mut dyn FnMut(&str)) {
        let Self { event: all, taken, in_parts, parts, .. } = self;
        let names = all.names();
        if let Some(Value::Object(fields)) = replaced(all, event) {
            for (field, value) in fields {
                match names.iter().position(|known| known == field.as_str()) {
                    Some(top) if in_parts[top] => left_inside(parts, field, value, name),
                    Some(top) if taken[top] => {}
                    Some(_) | None => name(field),
                }
            }
            return;
        }
        for (top, known) in names.iter().enumerate().filter(|(top, _)| !taken[*top] || in_parts[*top]) {
            match (all.state(top), in_parts[top]) {
                (State::AsGiven, true) => left_inside_given(parts, known, given, top, name),
                (State::Changed, true) => {
                    all.changed(top).into_iter().for_each(|value| left_inside(parts, known, value, name));
                }
                (State::AsGiven, false) if given.fields[top].is_some() => name(known),
                (State::Changed, false) => name(known),
                (State::AsGiven, false) | (State::Removed, _) => {}
            }
        }
        given.rest.iter().for_each(|(field, _)| name(field));
    }
}

/// The event of this number, if the program replaced the whole.
fn replaced(event: &Event, number: usize) -> Option<&Value> {
    match event.replaced() {
        Some(Value::Array(items)) => items.get(number),
        other => other,
    }
}

/// Names what nothing takes inside of a field that the program left alone.
fn left_inside_given(parts: &mut Decoder, top: &str, given: &Given<'_>, field: usize, name: &mut dyn FnMut(&str)) {
    let value = match &given.fields[field] {
        None | Some(FieldSpan::Null) => Inner::Null,
        Some(FieldSpan::Json(range)) => match given.bytes.get(range.clone()).map(std::str::from_utf8) {
            Some(Ok(text)) => Inner::Json(text),
            Some(Err(_)) | None => Inner::Plain,
        },
        Some(FieldSpan::Text(_) | FieldSpan::Unescaped(_) | FieldSpan::Number(_) | FieldSpan::Bool(_)) => Inner::Plain,
    };
    parts.left_inside(top, &value, name);
}

/// Names what nothing takes inside of a field that the program made.
fn left_inside(parts: &mut Decoder, top: &str, value: &Value, name: &mut dyn FnMut(&str)) {
    match value {
        Value::Null => {}
        Value::Object(_) | Value::Array(_) => {
            let text = serde_json::to_string(value).unwrap_or_default();
            parts.left_inside(top, &Inner::Json(&text), name);
        }
        Value::Bytes(_)
        | Value::String(_)
        | Value::Regex(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Timestamp(_) => parts.left_inside(top, &Inner::Plain, name),
    }
}

/// Whether two values are one key: the same number may be spelled with a point and without.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Integer(whole), Value::Float(float)) | (Value::Float(float), Value::Integer(whole)) => {
            *whole as f64 == float.into_inner() && float.into_inner() as i64 == *whole
        }
        _ => one == other,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bytes(_) | Value::String(_) => "a string",
        Value::Regex(_) => "a regular expression",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "a boolean",
        Value::Timestamp(_) => "a timestamp",
        Value::Object(_) => "an object",
        Value::Array(_) => "an array",
        Value::Null => "null",
    }
}

fn unwritable(path: &FieldPath, error: Unwritable) -> Cause {
    let message = format!("the transform put into {path} {error}");
    cause("HX2102", message.clone(), message)
}

fn cause(code: &'static str, message: String, fingerprint: String) -> Cause {
    Cause { stage: Stage::Transform, code, message, fingerprint }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
