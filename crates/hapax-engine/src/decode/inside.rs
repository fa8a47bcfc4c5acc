//! What nothing takes inside of objects and lists of which a part is wanted.
//!
//! Invariant: a path is written anew only when it is met for the first time. Null is no value, so it is never left out.

use std::fmt::Write as _;

use hapax_model::field::{FieldPath, element};

use super::{Decoder, Level, Pass, Unknown, Wanted};
use crate::batch::{FieldSpan, TakeFields};

/// The path of a field that is left out inside of another, if the name is one: those at the top have none.
#[must_use]
pub fn path_inside(name: &str) -> Option<FieldPath> {
    let path = name.starts_with('.').then(|| name.parse::<FieldPath>().ok()).flatten()?;
    (path.names().len() > 1).then_some(path)
}

impl Level {
    /// Every slot that is taken from it.
    pub(super) fn each_slot(&self, forget: &mut dyn FnMut(usize)) {
        for Wanted { slot, inner, .. } in &self.names {
            slot.iter().for_each(|slot| forget(*slot));
            inner.iter().for_each(|inner| inner.each_slot(forget));
        }
    }

    /// Tells every level its path, and whether something takes the whole of it.
    pub(super) fn find_what_is_whole(&mut self) {
        let Self { names, path, whole } = self;
        for Wanted { name, slot, inner } in names {
            if let Some(inner) = inner {
                inner.path = joined(path, name);
                inner.whole = *whole || slot.is_some();
                inner.find_what_is_whole();
            }
        }
    }
}

impl Unknown {
    /// The event has a field `name` in `level` that nothing takes.
    pub(super) fn note(&mut self, level: &Level, name: &str) {
        let at = if level.path.is_empty() {
            self.place(name)
        } else {
            let mut path = std::mem::take(&mut self.path);
            path.clear();
            path.push_str(&level.path);
            add(&mut path, name);
            let at = self.place(&path);
            self.path = path;
            at
        };
        self.noted.push(at);
    }

    /// The event has a list of so many elements under `wanted`, one of the names of `level`: the first that nothing takes
    /// stands for all.
    pub(super) fn note_elements(&mut self, level: &Level, wanted: &Wanted, inner: &Level, count: usize) {
        if inner.whole || count == 0 {
            return;
        }
        let is_taken = |place: &usize| inner.names.iter().any(|name| element(&name.name) == Some(*place));
        match (0..count).find(|place| !is_taken(place)) {
            None => {}
            Some(0) if !inner.names.iter().any(|name| element(&name.name).is_some()) => self.note(level, &wanted.name),
            Some(place) => self.note(inner, &format!("[{place}]")),
        }
    }
}

impl Decoder {
    /// Names what nothing takes inside of the field `top`, which has this value; nothing if all of it is taken.
    pub fn left_inside(&mut self, top: &str, value: &Value<'_>, name: &mut dyn FnMut(&str)) {
        let Self { root, unknown, .. } = self;
        let Some(wanted) = root.find(top, 0).map(|at| &root.names[at]).filter(|wanted| wanted.slot.is_none()) else {
            return;
        };
        unknown.begin();
        match value {
            Value::Null => {}
            Value::Plain => unknown.note(root, top),
            Value::Json(text) => {
                let mut pass = Pass { text, fields: &mut Nobody, unknown };
                // What is no JSON was refused before anybody asks.
                pass.take::<serde_json::Error>(root, wanted, text).ok();
            }
        }
        unknown.noted.iter().for_each(|at| name(&unknown.names[*at].0));
    }

    /// Whether something inside of the field `top` is wanted, and not the whole of it.
    #[must_use]
    pub fn takes_parts_of(&self, top: &str) -> bool {
        self.root.find(top, 0).is_some_and(|at| self.root.names[at].slot.is_none())
    }
}

/// A value, as far as it matters to what is inside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Nothing is lost with it.
    Null,
    /// Nothing is inside of it.
    Plain,
    /// An object or a list.
    Json(&'a str),
}

/// Fields that nobody wants.
struct Nobody;

impl TakeFields for Nobody {
    fn take(&mut self, _: usize, _: FieldSpan) {}

    fn forget(&mut self, _: usize) {}

    fn start_again(&mut self) {}
}

fn joined(path: &str, name: &str) -> String {
    let mut joined = path.to_owned();
    add(&mut joined, name);
    joined
}

/// Adds a name to a path, as [`FieldPath`] writes it.
fn add(path: &mut String, name: &str) {
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        path.push('.');
        path.push_str(name);
    } else if !path.is_empty() && element(name).is_some() {
        path.push_str(name);
    } else {
        write!(path, "{}", FieldPath::of_name(name)).ok();
    }
}
