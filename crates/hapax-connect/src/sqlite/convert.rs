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
use crate::table::column::{StoredValue, VersionBytes, Why, append_counted, append_integer, missing};
use crate::table::number::{Decimal, double, integer, keeps_digits, short_integer, spelled_boolean, spelled_number};

/// A value on its way into a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored<'a> {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// A double.
    Real(f64),
    /// Text, in UTF-8.
    Text(&'a [u8]),
    /// Text that is not in the event as it is stored: a string as JSON.
    Quoted(String),
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
            Self::Quoted(value) => ValueRef::Text(value.as_bytes()),
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

/// What SQLite makes of text that looks like a number is not the text any more.
const LOOKS_LIKE_A_NUMBER: Why = Why::Because("would turn this text into a number (declared TEXT it keeps it)");

/// A field as its column stores it.
///
/// # Errors
/// Why the event is rejected: the value cannot be kept exactly, or is missing where one must be.
pub fn field<'a>(column: &SqliteColumn, value: FieldBytes<'a>) -> Result<Stored<'a>, Cause> {
    let stored = match value {
        FieldBytes::Absent | FieldBytes::Null if column.required => return Err(missing(column, value)),
        FieldBytes::Absent | FieldBytes::Null => Ok(Stored::Null),
        FieldBytes::Bool(value) => boolean(column, value),
        FieldBytes::Number(text) => number(column.affinity, text),
        FieldBytes::Text(text) => string(column, text),
        FieldBytes::Json(text) => json(column, text),
    };
    stored.map_err(|why| why.cause(column, value))
}

fn boolean(column: &SqliteColumn, value: bool) -> Result<Stored<'static>, Why> {
    let spelled: &[u8] = if value { b"true" } else { b"false" };
    match column.affinity {
        Affinity::Numeric if is_json_type(column) => Ok(Stored::Text(spelled)),
        Affinity::Integer | Affinity::Numeric | Affinity::Any => Ok(Stored::Integer(value.into())),
        Affinity::Text => Ok(Stored::Text(spelled)),
        Affinity::Real => Err(Why::Kind),
        Affinity::Blob => Err(Why::NO_BYTES),
    }
}

fn number(affinity: Affinity, bytes: &[u8]) -> Result<Stored<'_>, Why> {
    // Most numbers are short and whole; those need no second look at their text.
    match (affinity, short_integer(bytes)) {
        (Affinity::Text, _) => return Ok(Stored::Text(bytes)),
        (Affinity::Blob, _) => return Err(Why::NO_BYTES),
        (Affinity::Integer | Affinity::Numeric | Affinity::Any, Some(value)) => return Ok(Stored::Integer(value)),
        (Affinity::Integer | Affinity::Numeric | Affinity::Any | Affinity::Real, _) => {}
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Why::Kind)?;
    match affinity {
        Affinity::Integer => {
            let fraction = Decimal::parse(text).is_some_and(|number| number.exponent < 0);
            integer(text).map(Stored::Integer).ok_or(if fraction { Why::NOT_WHOLE } else { Why::TOO_LARGE })
        }
        Affinity::Real => double(text).map(Stored::Real).ok_or(Why::NOT_EXACT),
        Affinity::Numeric | Affinity::Any => match integer(text) {
            Some(value) => Ok(Stored::Integer(value)),
            None => double(text).filter(|value| keeps_digits(text, *value)).map(Stored::Real).ok_or(Why::NOT_EXACT),
        },
        Affinity::Text | Affinity::Blob => Err(Why::Kind),
    }
}

fn string<'a>(column: &SqliteColumn, bytes: &'a [u8]) -> Result<Stored<'a>, Why> {
    match column.affinity {
        Affinity::Text | Affinity::Any => Ok(Stored::Text(bytes)),
        Affinity::Blob => Ok(Stored::Blob(bytes)),
        Affinity::Numeric if names(column, &["BOOL"]) && spelled_number(bytes).is_none() => {
            spelled_boolean(bytes).map(|value| Stored::Integer(value.into())).ok_or(Why::NO_BOOLEAN)
        }
        Affinity::Numeric if is_json_type(column) => {
            let text = std::str::from_utf8(bytes).map_err(|_| Why::Kind)?;
            serde_json::to_string(text).map(Stored::Quoted).map_err(|_| Why::Kind)
        }
        Affinity::Numeric if !is_number_type(column) => {
            let text = std::str::from_utf8(bytes).map_err(|_| Why::Kind)?;
            // SQLite would turn text that looks like a number into one: only where that loses nothing.
            match looks_like_a_number(text) {
                false => Ok(Stored::Text(bytes)),
                true => {
                    let same = text.parse().ok().filter(|value: &i64| value.to_string() == text);
                    same.map(Stored::Integer).ok_or(LOOKS_LIKE_A_NUMBER)
                }
            }
        }
        // All that CSV has is text.
        Affinity::Numeric | Affinity::Integer | Affinity::Real => {
            let text = spelled_number(bytes).ok_or(Why::NO_NUMBER)?;
            number(column.affinity, text.as_bytes())
        }
    }
}

fn json<'a>(column: &SqliteColumn, bytes: &'a [u8]) -> Result<Stored<'a>, Why> {
    match column.affinity {
        Affinity::Text | Affinity::Any => Ok(Stored::Text(bytes)),
        Affinity::Blob => Ok(Stored::Blob(bytes)),
        Affinity::Numeric if !is_number_type(column) => Ok(Stored::Text(bytes)),
        Affinity::Numeric | Affinity::Integer | Affinity::Real => Err(Why::Kind),
    }
}

/// Whether a type that SQLite does not know names numbers (`DECIMAL(10,2)`, `BOOLEAN`) rather than dates and the like.
pub(super) fn is_number_type(column: &SqliteColumn) -> bool {
    names(column, &["NUM", "DEC", "BOOL", "MONEY", "FIXED", "BIT"])
}

/// Whether a column is declared for JSON. One that is declared `TEXT` too is a column of text.
pub(super) fn is_json_type(column: &SqliteColumn) -> bool {
    column.affinity == Affinity::Numeric && names(column, &["JSON"])
}

/// Whether a column's declared type has one of these words in it, as SQLite looks for them.
fn names(column: &SqliteColumn, words: &[&str]) -> bool {
    let name = column.declared.to_ascii_uppercase();
    words.iter().any(|word| name.contains(word))
}

fn looks_like_a_number(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let spelled = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    spelled && text.parse::<f64>().is_ok()
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
