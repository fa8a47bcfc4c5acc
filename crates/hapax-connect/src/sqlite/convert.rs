//! An event's field as a column stores it: exactly, or not at all.
//!
//! Reads: the field and the live column. Writes: nothing.
//! Invariant: what is stored reads back as the same value; SQLite's own affinity never changes it on the way in.

use std::cmp::Ordering;

use hapax_engine::batch::FieldBytes;
use hapax_model::key::{KeyHash, KeyText};
use hapax_model::letter::{Cause, Stage};
use hapax_model::position::Position;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::schema::{Affinity, LiveColumn};

/// A value does not fit its column.
pub const MISFIT: &str = "HX2020";
/// A column that must have a value gets none.
pub const NULL: &str = "HX2021";

/// How much of a value a message shows.
const SHOWN_CHARACTERS: usize = 60;

/// `hapax_version`: incarnation, offset, index and emit index, most significant first, so that bytes compare as they do.
pub type VersionBytes = [u8; 18];

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

    /// Appends bytes that are equal exactly for values that a unique index takes for equal.
    pub fn append_key(&self, bytes: &mut Vec<u8>) {
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

    /// The order in which SQLite compares two values of one column, text by its bytes.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
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

fn append_integer(bytes: &mut Vec<u8>, value: i64) {
    bytes.push(1);
    // The sign bit flipped: negative numbers sort before positive ones.
    bytes.extend((value.cast_unsigned() ^ (1 << 63)).to_be_bytes());
}

/// With its length behind it, so that ("a", "bc") and ("ab", "c") are two keys; 0 is escaped to keep the order.
fn append_counted(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    bytes.push(tag);
    if value.contains(&0) {
        for byte in value {
            bytes.push(*byte);
            if *byte == 0 {
                bytes.push(0xff);
            }
        }
    } else {
        bytes.extend_from_slice(value);
    }
    bytes.extend([0, 0]);
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

/// The version of an event from its place in its lane.
#[must_use]
pub fn version(incarnation: u32, position: Position, emit: u32) -> VersionBytes {
    let mut bytes = [0; 18];
    bytes[..4].copy_from_slice(&incarnation.to_be_bytes());
    bytes[4..12].copy_from_slice(&position.offset.to_be_bytes());
    bytes[12..16].copy_from_slice(&position.index.to_be_bytes());
    let emit = u16::try_from(emit).unwrap_or(u16::MAX);
    bytes[16..].copy_from_slice(&emit.to_be_bytes());
    bytes
}

/// A key as its column stores it.
#[must_use]
pub fn key(column: &LiveColumn, key: KeyHash) -> Stored<'static> {
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
pub fn field<'a>(column: &LiveColumn, value: FieldBytes<'a>) -> Result<Stored<'a>, Cause> {
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

/// A whole number of at most eighteen digits, which cannot overflow.
#[inline]
pub(super) fn short_integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = bytes.strip_prefix(b"-").map_or((false, bytes), |rest| (true, rest));
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

fn string<'a>(column: &LiveColumn, bytes: &'a [u8]) -> Option<Stored<'a>> {
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

fn json<'a>(column: &LiveColumn, bytes: &'a [u8]) -> Option<Stored<'a>> {
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

/// The whole number that a JSON number is: `1`, `1.0`, `1e3`.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| integral_decimal(text))
}

fn integral_decimal(text: &str) -> Option<i64> {
    let number = Decimal::parse(text)?;
    if number.digits.is_empty() {
        return Some(0);
    }
    let zeros = usize::try_from(number.exponent).ok().filter(|zeros| number.digits.len() + zeros <= 19)?;
    format!("{}{}{}", number.sign, number.digits, "0".repeat(zeros)).parse().ok()
}

/// The double that a JSON number is. A whole number must be that double exactly; a fraction becomes the nearest.
fn double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    let is_whole_as_written = !text.contains(['.', 'e', 'E']);
    match is_whole_as_written {
        true if Decimal::parse(text)?.digits.len() > 15 => keeps_digits(text, value).then_some(value),
        true | false => Some(value),
    }
}

/// Whether a double still has all digits of the number as it was written.
fn keeps_digits(text: &str, value: f64) -> bool {
    let written = Decimal::parse(text);
    // Fifteen digits always survive.
    written.as_ref().is_some_and(|written| written.digits.len() <= 15 && value.is_normal())
        || written == Decimal::parse(&format!("{value:e}"))
}

/// A decimal number as sign, digits without zeros at either end, and the power of ten of the last digit.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    sign: &'static str,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{before}{after}");
        let digits = all.trim_end_matches('0');
        let dropped = i64::try_from(all.len() - digits.len()).ok()?;
        let behind_point = i64::try_from(after.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_sub(behind_point)?.checked_add(dropped)?;
        let digits = digits.trim_start_matches('0').to_owned();
        match digits.is_empty() {
            true => Some(Self { sign: "", digits, exponent: 0 }),
            false => Some(Self { sign, digits, exponent }),
        }
    }
}

fn misfit(column: &LiveColumn, value: FieldBytes<'_>) -> Cause {
    let name = &column.name;
    let declared = if column.declared.is_empty() { "no type" } else { &column.declared };
    let (kind, text) = match value {
        FieldBytes::Absent => ("nothing", String::new()),
        FieldBytes::Null => ("null", String::new()),
        FieldBytes::Bool(value) => ("a boolean", value.to_string()),
        FieldBytes::Number(text) => ("a number", shown(text)),
        FieldBytes::Text(text) => ("a string", shown(text)),
        FieldBytes::Json(text) => ("an array or object", shown(text)),
    };
    Cause {
        stage: Stage::Map,
        code: MISFIT,
        message: format!("column \"{name}\" ({declared}) cannot hold {kind}: {text}"),
        fingerprint: format!("column \"{name}\" ({declared}) cannot hold {kind}"),
    }
}

fn missing(column: &LiveColumn, value: FieldBytes<'_>) -> Cause {
    let why = if value == FieldBytes::Absent { "has no such field" } else { "says null" };
    let message = format!("column \"{}\" must have a value, and the event {why}", column.name);
    Cause { stage: Stage::Map, code: NULL, fingerprint: message.clone(), message }
}

/// The beginning of a value, on one line.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out: String = text.chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
