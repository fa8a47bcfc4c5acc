//! The configuration as checked: the same tree, with values of the kinds that the schema names.

use std::time::Duration;

use hapax_model::units::{ByteSize, Rate, Share};

use super::node::{Node, Origin};
use super::problem::Place;

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// Where it was written; the file as a whole for a default.
    pub(crate) place: Place,
    pub(crate) origin: Origin,
    pub(crate) held: Held,
}

/// What a checked value holds, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    Text(String),
    Integer(u64),
    Duration(Duration),
    Size(ByteSize),
    Share(Share),
    Rate(Rate),
    Boolean(bool),
    Choice(&'static str),
    List(Vec<Value>),
    /// Free names, in the order of the file.
    Map(Vec<(String, Value)>),
    /// An event of a test, as written.
    Event(Box<Node>),
    /// Fields of a table; those that are not written and have no default are missing.
    Object(Vec<(&'static str, Value)>),
}

impl Value {
    /// The field of that name, if this is an object that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Held::Object(fields) = &self.held else { return None };
        fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The field at a path of names with points between them.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |value, name| value.get(name))
    }

    /// The text, or the chosen name.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Held::Text(text) = &self.held {
            return Some(text);
        }
        if let Held::Choice(name) = &self.held { Some(name) } else { None }
    }

    pub(crate) fn integer(&self) -> Option<u64> {
        if let Held::Integer(number) = self.held { Some(number) } else { None }
    }

    pub(crate) fn duration(&self) -> Option<Duration> {
        if let Held::Duration(duration) = self.held { Some(duration) } else { None }
    }

    pub(crate) fn size(&self) -> Option<ByteSize> {
        if let Held::Size(size) = self.held { Some(size) } else { None }
    }

    pub(crate) fn share(&self) -> Option<Share> {
        if let Held::Share(share) = self.held { Some(share) } else { None }
    }

    pub(crate) fn rate(&self) -> Option<Rate> {
        if let Held::Rate(rate) = self.held { Some(rate) } else { None }
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        if let Held::Boolean(value) = self.held { Some(value) } else { None }
    }

    /// The items of a list; none if this is no list.
    pub(crate) fn items(&self) -> &[Self] {
        if let Held::List(items) = &self.held { items } else { &[] }
    }
}
