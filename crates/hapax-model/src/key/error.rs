//! Why an event has no key. Each is that event's dead letter, never a key shared with other events.

use super::number::NUMBER_DIGITS_MAX;
use crate::field::FieldPath;
use crate::letter::{Cause, Stage};

/// How a key field has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The event has no such field.
    Absent,
    /// The field says `null`.
    Null,
    /// The field is an empty list of contributors.
    Empty,
}

impl Missing {
    const fn word(self) -> &'static str {
        match self {
            Self::Absent => "missing",
            Self::Null => "null",
            Self::Empty => "an empty array",
        }
    }
}

/// Why an event has no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A key field has no value.
    #[error(
        "key field {path} is {}: the event cannot be told from others; fill the field or choose other key fields",
        missing.word()
    )]
    NullField {
        /// Which field.
        path: FieldPath,
        /// How it has no value.
        missing: Missing,
    },
    /// A key field is an array or object.
    #[error(
        "key field {path} is an array or object: a key is made of strings, numbers and booleans; name a field inside it"
    )]
    NonScalar {
        /// Which field.
        path: FieldPath,
    },
    /// A key field is a number that would be absurdly long if written out.
    #[error(
        "key field {path} is the number {number}: written out, a number in a key has at most {NUMBER_DIGITS_MAX} \
         digits on each side of its point; send it as a string"
    )]
    ExtremeNumber {
        /// Which field.
        path: FieldPath,
        /// The number as written, shortened.
        number: String,
    },
    /// The strategy is custom and the program registered no function of that name.
    #[error("no custom key function is named \"{name}\": register it with CustomKeys, or choose another strategy")]
    NoFunction {
        /// The name that was configured.
        name: String,
    },
    /// The custom function made no key of this event.
    #[error("the custom key function \"{name}\" refused the event: {message}")]
    Refused {
        /// Which function.
        name: String,
        /// What it said.
        message: String,
    },
    /// The strategy takes its key from fields, and names none.
    #[error("the key strategy {strategy} names no field, so that all events would share one key: name at least one")]
    NoFields {
        /// The strategy's name.
        strategy: &'static str,
    },
}

impl KeyError {
    /// The code of the page that explains this error.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NullField { .. } => "HX2010",
            Self::NonScalar { .. } => "HX2011",
            Self::ExtremeNumber { .. } => "HX2012",
            Self::NoFunction { .. } => "HX2013",
            Self::Refused { .. } => "HX2014",
            Self::NoFields { .. } => "HX2015",
        }
    }

    /// The message without the event's own values: letters with one fingerprint have one cause.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match self {
            Self::NullField { path, missing } => format!("key field {path} is {}", missing.word()),
            Self::NonScalar { path } => format!("key field {path} is an array or object"),
            Self::ExtremeNumber { path, .. } => format!("key field {path} is too long a number"),
            Self::NoFunction { name } => format!("no custom key function \"{name}\""),
            Self::Refused { name, .. } => format!("custom key function \"{name}\" refused the event"),
            Self::NoFields { strategy } => format!("{strategy} without fields"),
        }
    }

    /// What the dead letter says.
    #[must_use]
    pub fn cause(&self) -> Cause {
        Cause { stage: Stage::Key, code: self.code(), message: self.to_string(), fingerprint: self.fingerprint() }
    }
}
