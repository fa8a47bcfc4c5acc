//! The event as a program sees it: fields become VRL values when they are read, and only then.
//!
//! Reads: the spans of one decoded input. Writes: which fields were changed or removed, or what `.` was replaced by.
//! Invariant: a field that the program does not change keeps the text of its source; a number that VRL cannot hold
//! exactly is trouble as soon as the program reads it, or would have to write it again.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use hapax_engine::transform::Given;
use vrl::compiler::{SecretTarget, Target};
use vrl::path::{OwnedSegment, OwnedTargetPath, PathPrefix};
use vrl::value::{ObjectMap, Value};

use crate::json::{Read, TooDeep, read_field};

/// Why an event cannot be worked on, whatever the program made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The field of this number, one of those with a place, holds a number that VRL cannot.
    Inexact(usize),
    /// Another field does, in a program that reads the whole event.
    InexactOther,
    /// The input is nested too deeply.
    TooDeep,
}

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    AsGiven,
    Changed,
    Removed,
}

#[derive(Debug)]
struct Field {
    read: OnceCell<Read>,
    state: State,
}

/// What a program works on; used again for every input.
#[derive(Debug)]
pub(crate) struct Event {
    /// The names of all fields that the program or the target knows: those with a place.
    names: Arc<[String]>,
    fields: Vec<Field>,
    /// Whether the field is removed without anybody looking at what it held.
    dropped: Vec<bool>,
    /// What the program put in the place of the whole event.
    replaced: Option<Value>,
    whole: OnceCell<Value>,
    trouble: Cell<Option<Trouble>>,
}

impl Event {
    pub(crate) fn new(names: Arc<[String]>, dropped: Vec<bool>) -> Self {
        let fields = names.iter().map(|_| Field { read: OnceCell::new(), state: State::AsGiven }).collect();
        Self { names, fields, dropped, replaced: None, whole: OnceCell::new(), trouble: Cell::new(None) }
    }

    /// Begins with the next input.
    pub(crate) fn clear(&mut self) {
        for field in &mut self.fields {
            field.read.take();
            field.state = State::AsGiven;
        }
        self.replaced = None;
        self.whole.take();
        self.trouble.set(None);
    }

    pub(crate) const fn trouble(&self) -> Option<Trouble> {
        self.trouble.get()
    }

    /// The event as a whole, if the program replaced it.
    pub(crate) const fn replaced(&self) -> Option<&Value> {
        self.replaced.as_ref()
    }

    pub(crate) fn state(&self, field: usize) -> State {
        self.fields[field].state
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The value of a field that the program changed.
    pub(crate) fn changed(&self, field: usize) -> Option<&Value> {
        self.fields[field].read.get().map(|read| &read.value)
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    fn note(&self, trouble: Trouble) {
        if self.trouble.get().is_none() {
            self.trouble.set(Some(trouble));
        }
    }
}

/// An event and the input that it came from.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) event: &'a mut Event,
    pub(crate) given: &'a Given<'a>,
}

impl View<'_> {
    /// Field `field` as it stands now.
    fn read(&self, field: usize) -> Option<&Read> {
        let Field { read, state } = &self.event.fields[field];
        match state {
            State::Removed => None,
            State::Changed => read.get(),
            State::AsGiven => {
                let span = self.given.fields[field].as_ref()?;
                Some(read.get_or_init(|| self.read_or_note(read_field(self.given.bytes, span))))
            }
        }
    }

    fn read_or_note(&self, read: Result<Read, TooDeep>) -> Read {
        read.unwrap_or_else(|TooDeep| {
            self.event.note(Trouble::TooDeep);
            Read { value: Value::Null, odd: Vec::new() }
        })
    }

    /// The same, for a program that looks at what is at `path` in it.
    fn look(&self, field: usize, path: &[OwnedSegment]) -> Option<&Value> {
        let read = self.read(field)?;
        if read.odd.iter().any(|odd| meet(&odd.segments, path)) {
            self.event.note(Trouble::Inexact(field));
        }
        if path.is_empty() { Some(&read.value) } else { read.value.get(path) }
    }

    /// Everything, as one object.
    fn whole(&self) -> &Value {
        self.event.whole.get_or_init(|| {
            let mut fields = ObjectMap::new();
            for (place, name) in self.event.names.iter().enumerate() {
                if let Some(value) = self.look(place, &[]) {
                    fields.insert(name.as_str().into(), value.clone());
                }
            }
            for (name, span) in self.given.rest {
                let read = self.read_or_note(read_field(self.given.bytes, span));
                if !read.odd.is_empty() {
                    self.event.note(Trouble::InexactOther);
                }
                fields.insert(name.as_str().into(), read.value);
            }
            Value::Object(fields)
        })
    }

    fn replace(&mut self) -> &mut Value {
        if self.event.replaced.is_none() {
            let whole = self.whole().clone();
            self.event.replaced = Some(whole);
        }
        self.event.replaced.as_mut().expect("it was just set")
    }

    /// Field `field`, about to be changed at `path` inside it.
    fn change(&mut self, field: usize, path: &[OwnedSegment]) -> &mut Value {
        let odd_elsewhere =
            self.read(field).is_some_and(|read| read.odd.iter().any(|odd| !odd.segments.starts_with(path)));
        if odd_elsewhere {
            self.event.note(Trouble::Inexact(field));
        }
        let Field { read, state } = &mut self.event.fields[field];
        if *state == State::Removed {
            read.take();
        }
        *state = State::Changed;
        self.event.whole.take();
        read.get_or_init(|| Read { value: Value::Null, odd: Vec::new() });
        &mut read.get_mut().expect("it was just set").value
    }

    fn set(&mut self, field: usize, value: Value) {
        self.event.whole.take();
        self.event.fields[field] =
            Field { read: OnceCell::from(Read { value, odd: Vec::new() }), state: State::Changed };
    }

    fn remove(&mut self, field: usize) -> Option<Value> {
        let value = if self.event.dropped[field] { None } else { self.look(field, &[]).cloned() };
        self.event.whole.take();
        self.event.fields[field].state = State::Removed;
        value
    }

    fn remove_inside(&mut self, field: usize, path: &[OwnedSegment], compact: bool) -> Option<Value> {
        self.look(field, path)?;
        let value = self.change(field, path);
        let removed = value.remove(path, compact);
        if compact && value.is_empty() {
            self.event.fields[field].state = State::Removed;
        }
        removed
    }
}

/// Whether one path leads to the other.
fn meet(one: &[OwnedSegment], other: &[OwnedSegment]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

impl Target for View<'_> {
    fn target_get(&self, path: &OwnedTargetPath) -> Result<Option<&Value>, String> {
        if path.prefix == PathPrefix::Metadata {
            return Ok(None);
        }
        let segments = path.path.segments.as_slice();
        if let Some(replaced) = &self.event.replaced {
            return Ok(replaced.get(segments));
        }
        match segments {
            [] => Ok(Some(self.whole())),
            [OwnedSegment::Field(name), inner @ ..] => {
                Ok(self.event.place(name).and_then(|field| self.look(field, inner)))
            }
            [OwnedSegment::Index(_), ..] => Ok(None),
        }
    }

    fn target_get_mut(&mut self, path: &OwnedTargetPath) -> Result<Option<&mut Value>, String> {
        if path.prefix == PathPrefix::Metadata || self.target_get(path)?.is_none() {
            return Ok(None);
        }
        Ok(self.replace().get_mut(path.path.segments.as_slice()))
    }

    fn target_insert(&mut self, path: &OwnedTargetPath, value: Value) -> Result<(), String> {
        if path.prefix == PathPrefix::Metadata {
            return Ok(());
        }
        let segments = path.path.segments.as_slice();
        match (segments, &mut self.event.replaced) {
            ([], replaced) => *replaced = Some(value),
            (_, Some(replaced)) => drop(replaced.insert(segments, value)),
            ([OwnedSegment::Field(name), inner @ ..], None) => match (self.event.place(name), inner) {
                (Some(field), []) => self.set(field, value),
                (Some(field), _) => drop(self.change(field, inner).insert(inner, value)),
                (None, _) => drop(self.replace().insert(segments, value)),
            },
            ([OwnedSegment::Index(_), ..], None) => drop(self.replace().insert(segments, value)),
        }
        Ok(())
    }

    fn target_remove(&mut self, path: &OwnedTargetPath, compact: bool) -> Result<Option<Value>, String> {
        if path.prefix == PathPrefix::Metadata {
            return Ok(None);
        }
        let segments = path.path.segments.as_slice();
        if self.event.replaced.is_some() {
            return Ok(self.replace().remove(segments, compact));
        }
        match segments {
            [] => Ok(self.replace().remove(segments, compact)),
            [OwnedSegment::Field(name), inner @ ..] => Ok(self.event.place(name).and_then(|field| match inner {
                [] => self.remove(field),
                _ => self.remove_inside(field, inner, compact),
            })),
            [OwnedSegment::Index(_), ..] => Ok(None),
        }
    }
}

/// There are no secrets: the functions that read them are not offered.
impl SecretTarget for View<'_> {
    fn get_secret(&self, _: &str) -> Option<&str> {
        None
    }

    fn insert_secret(&mut self, _: &str, _: &str) {}

    fn remove_secret(&mut self, _: &str) {}
}
