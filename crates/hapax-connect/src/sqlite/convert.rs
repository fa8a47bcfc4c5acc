//! An event's field as a column stores it: exactly, or not at all.
//!
//! Reads: the field and the live column. Writes: nothing.
//! Invariant: what is stored reads back as the same value; SQLite's own affinity never changes it on the way in.

use std::cmp::Ordering;

use hapax_engine::batch::FieldBytes;
use hapax_model::key::{KeyHash, KeyText};
use hapax_model::letter::Cause;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::schema::{Affinity, SqliteColumn};
use crate::table::column::{StoredValue, VersionBytes, append_counted, append_integer, misfit, missing};
use crate::table::number::{double, integer, keeps_digits, short_integer};

/// A value on its way into a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stored<'a> {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// A double.
    Real(f64),
    /// Text, in UTF-8.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
    /// A key in a BLOB column.
    KeyBytes(KeyHash),
    /// A key in a TEXT column.
    KeyText(KeyText),
    /// A row's version.
    Version(VersionBytes),
}

impl Stored<'_> {
    fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(value) => ValueRef::Text(value),
            Self::Blob(value) => ValueRef::Blob(value),
            Self::KeyBytes(key) => ValueRef::Blob(&key.0),
            Self::KeyText(key) => ValueRef::Text(key.as_bytes()),
            Self::Version(version) => ValueRef::Blob(version),
        }
    }
}

impl StoredValue for Stored<'_> {
    fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    fn append_key(&self, bytes: &mut Vec<u8>) {
        match self.as_ref() {
            ValueRef::Null => bytes.push(0),
            ValueRef::Integer(value) => append_integer(bytes, value),
            ValueRef::Real(value) => match whole(value) {
                // An index holds 1 and 1.0 to be one key.
                Some(value) => append_integer(bytes, value),
                None => {
                    bytes.push(2);
                    bytes.extend(value.to_bits().to_be_bytes());
                }
            },
            ValueRef::Text(value) => append_counted(bytes, 3, value),
            ValueRef::Blob(value) => append_counted(bytes, 4, value),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        let class = |value: &ValueRef<'_>| match value {
            ValueRef::Null => 0,
            ValueRef::Integer(_) | ValueRef::Real(_) => 1,
            ValueRef::Text(_) => 2,
            ValueRef::Blob(_) => 3,
        };
        let (a, b) = (self.as_ref(), other.as_ref());
        match (a, b) {
            (ValueRef::Integer(a), ValueRef::Integer(b)) => a.cmp(&b),
            (ValueRef::Real(a), ValueRef::Real(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (ValueRef::Integer(a), ValueRef::Real(b)) => order_mixed(a, b),
            (ValueRef::Real(a), ValueRef::Integer(b)) => order_mixed(b, a).reverse(),
            (ValueRef::Text(a), ValueRef::Text(b)) | (ValueRef::Blob(a), ValueRef::Blob(b)) => a.cmp(b),
            (ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_), _) => {
                class(&a).cmp(&class(&b))
            }
        }
    }
}

impl ToSql for Stored<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.as_ref()))
    }
}

/// The whole number that a double is, if it is one that SQLite would take for equal.
fn whole(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let fits = value.fract() == 0.0 && (-LIMIT..LIMIT).contains(&value);
    // The cast is exact: the value is whole and within the range.
    fits.then_some(value as i64)
}

fn order_mixed(a: i64, b: f64) -> Ordering {
    match whole(b) {
        Some(b) => a.cmp(&b),
        // A double with a fraction, or beyond every integer: the rounded integer is on the right side of it.
        None => (a as f64).partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

/// A key as its column stores it.
#[must_use]
pub fn key(column: &SqliteColumn, key: KeyHash) -> Stored<'static> {
    match column.affinity {
        Affinity::Text => Stored::KeyText(key.text()),
        Affinity::Blob | Affinity::Any | Affinity::Integer | Affinity::Real | Affinity::Numeric => {
            Stored::KeyBytes(key)
        }
    }
}

/// A field as its column stores it.
///
/// # Errors
/// Why the event is rejected: the value cannot be kept exactly, or is missing where one must be.
pub fn field<'a>(column: &SqliteColumn, value: FieldBytes<'a>) -> Result<Stored<'a>, Cause> {
    let stored = match value {
        FieldBytes::Absent | FieldBytes::Null if column.required => return Err(missing(column, value)),
        FieldBytes::Absent | FieldBytes::Null => Some(Stored::Null),
        FieldBytes::Bool(value) => boolean(column.affinity, value),
        FieldBytes::Number(text) => number(column.affinity, text),
        FieldBytes::Text(text) => string(column, text),
        FieldBytes::Json(text) => json(column, text),
    };
    stored.ok_or_else(|| misfit(column, value))
}

fn boolean(affinity: Affinity, value: bool) -> Option<Stored<'static>> {
    match affinity {
        Affinity::Integer | Affinity::Numeric | Affinity::Any => Some(Stored::Integer(value.into())),
        Affinity::Text => Some(Stored::Text(if value { b"true" } else { b"false" })),
        Affinity::Real | Affinity::Blob => None,
    }
}

fn number(affinity: Affinity, bytes: &[u8]) -> Option<Stored<'_>> {
    // Most numbers are short and whole; those need no second look at their text.
    match (affinity, short_integer(bytes)) {
        (Affinity::Text, _) => return Some(Stored::Text(bytes)),
        (Affinity::Blob, _) => return None,
        (Affinity::Integer | Affinity::Numeric | Affinity::Any, Some(value)) => return Some(Stored::Integer(value)),
        (Affinity::Integer | Affinity::Numeric | Affinity::Any | Affinity::Real, _) => {}
    }
    let text = std::str::from_utf8(bytes).ok()?;
    match affinity {
        Affinity::Integer => integer(text).map(Stored::Integer),
        Affinity::Real => double(text).map(Stored::Real),
        Affinity::Numeric | Affinity::Any => match integer(text) {
            Some(value) => Some(Stored::Integer(value)),
            None => double(text).filter(|value| keeps_digits(text, *value)).map(Stored::Real),
        },
        Affinity::Text | Affinity::Blob => None,
    }
}

fn string<'a>(column: &SqliteColumn, bytes: &'a [u8]) -> Option<Stored<'a>> {
    match column.affinity {
        Affinity::Text | Affinity::Any => Some(Stored::Text(bytes)),
        Affinity::Blob => Some(Stored::Blob(bytes)),
        Affinity::Numeric if !is_number_type(&column.declared) => {
            let text = std::str::from_utf8(bytes).ok()?;
            // SQLite would turn text that looks like a number into one: only where that loses nothing.
            match looks_like_a_number(text) {
                false => Some(Stored::Text(bytes)),
                true => text.parse().ok().filter(|value: &i64| value.to_string() == text).map(Stored::Integer),
            }
        }
        Affinity::Numeric | Affinity::Integer | Affinity::Real => None,
    }
}

fn json<'a>(column: &SqliteColumn, bytes: &'a [u8]) -> Option<Stored<'a>> {
    match column.affinity {
        Affinity::Text | Affinity::Any => Some(Stored::Text(bytes)),
        Affinity::Blob => Some(Stored::Blob(bytes)),
        Affinity::Numeric => (!is_number_type(&column.declared)).then_some(Stored::Text(bytes)),
        Affinity::Integer | Affinity::Real => None,
    }
}

/// Whether a type that SQLite does not know names numbers (`DECIMAL(10,2)`, `BOOLEAN`) rather than dates and the like.
fn is_number_type(declared: &str) -> bool {
    let name = declared.to_ascii_uppercase();
    ["NUM", "DEC", "BOOL", "MONEY", "FIXED", "BIT"].iter().any(|part| name.contains(part))
}

fn looks_like_a_number(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let spelled = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    spelled && text.parse::<f64>().is_ok()
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
