//! An event's field as a PostgreSQL column stores it: exactly, or not at all.
//!
//! Reads: the field and the live column. Writes: nothing. Invariant: what is stored reads back as the same value; what
//! the server would round, cut or pad is refused here. Types that travel as text are the server's to judge.

use std::borrow::Cow;
use std::cmp::Ordering;

use data_encoding::HEXLOWER;
use hapax_engine::batch::FieldBytes;
use hapax_model::key::{KeyHash, KeyText};
use hapax_model::letter::Cause;

use super::array;
use super::column::{Kind, PostgresColumn};
use super::interval::{self, Interval};
use super::moment;
use super::range;
use crate::table::column::{StoredValue, VersionBytes, Why, append_counted, append_integer, missing};
use crate::table::number::{Decimal, double, integer, short_integer, single, spelled_boolean, spelled_number};
use crate::table::spelled::{has_at_most, uuid, without_end_spaces};

/// How many digits a numeric may have in front of the point.
const NUMERIC_DIGITS: i64 = 131_072;
/// How many it may have behind it.
const NUMERIC_FRACTION: i64 = 16_383;

/// A value on its way into a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored<'a> {
    /// NULL.
    Null,
    /// `boolean`.
    Bool(bool),
    /// A whole number, within the range of its column.
    Integer(i64),
    /// `real`.
    Single(f32),
    /// `double precision`.
    Double(f64),
    /// `numeric`: a JSON number, within the digits of its column.
    Numeric(&'a str),
    /// Text, or what travels as text.
    Text(Cow<'a, [u8]>),
    /// `bytea`.
    Bytes(&'a [u8]),
    /// Days since 2000-01-01.
    Days(i32),
    /// Microseconds, since midnight or since 2000-01-01.
    Micros(i64),
    /// Microseconds since midnight, and seconds west of UTC.
    ZonedTime(i64, i32),
    /// `interval`.
    Interval(Interval),
    /// `uuid`.
    Uuid([u8; 16]),
    /// A key in a bytea column.
    KeyBytes(KeyHash),
    /// A key in a text column.
    KeyText(KeyText),
    /// A row's version.
    Version(VersionBytes),
}

impl Stored<'_> {
    /// The bytes of those values that are bytes.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(bytes) => Some(bytes),
            Self::Uuid(bytes) => Some(bytes),
            Self::KeyBytes(key) => Some(&key.0),
            Self::KeyText(key) => Some(key.as_bytes()),
            Self::Version(version) => Some(version),
            Self::Null
            | Self::Bool(_)
            | Self::Integer(_)
            | Self::Single(_)
            | Self::Double(_)
            | Self::Numeric(_)
            | Self::Days(_)
            | Self::Micros(_)
            | Self::ZonedTime(..)
            | Self::Interval(_) => None,
        }
    }

    /// Those values that are whole numbers to the server.
    fn whole(&self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some((*value).into()),
            Self::Integer(value) | Self::Micros(value) => Some(*value),
            Self::Days(days) => Some((*days).into()),
            Self::Null
            | Self::Single(_)
            | Self::Double(_)
            | Self::Numeric(_)
            | Self::ZonedTime(..)
            | Self::Interval(_)
            | Self::Text(_)
            | Self::Bytes(_)
            | Self::Uuid(_)
            | Self::KeyBytes(_)
            | Self::KeyText(_)
            | Self::Version(_) => None,
        }
    }

    fn fraction(&self) -> Option<f64> {
        if let Self::Single(value) = self {
            return Some((*value).into());
        }
        if let Self::Double(value) = self { Some(*value) } else { None }
    }
}

impl StoredValue for Stored<'_> {
    fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    fn append_key(&self, bytes: &mut Vec<u8>) {
        if let Some(value) = self.bytes() {
            append_counted(bytes, 3, value);
        } else if let Some(value) = self.whole() {
            append_integer(bytes, value);
        } else if let Some(value) = self.fraction() {
            bytes.push(2);
            // 0 and -0 are one key, and so are all that are no number; no other two doubles are.
            let bits = match value {
                0.0 => 0,
                _ if value.is_nan() => f64::NAN.to_bits(),
                _ => value.to_bits(),
            };
            bytes.extend(bits.to_be_bytes());
        } else if let Self::Numeric(text) = self {
            append_numeric(bytes, text);
        } else {
            bytes.push(0);
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        if let (Some(a), Some(b)) = (self.bytes(), other.bytes()) {
            a.cmp(b)
        } else if let (Some(a), Some(b)) = (self.whole(), other.whole()) {
            a.cmp(&b)
        } else if let (Some(a), Some(b)) = (self.fraction(), other.fraction()) {
            // What is no number is above all others, and equal to itself.
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        } else if let (Self::Numeric(a), Self::Numeric(b)) = (self, other) {
            order_numeric(a, b)
        } else {
            // Only NULL is left: it is before everything.
            other.is_null().cmp(&self.is_null())
        }
    }
}

/// Whole numbers sort as such, so that rows lie in the index as they come; 1, 1.0 and 1e0 are one key.
fn append_numeric(bytes: &mut Vec<u8>, text: &str) {
    if let Some(value) = integer(text) {
        append_integer(bytes, value);
    } else if let Some(number) = Decimal::parse(text).filter(|_| special(text).is_none()) {
        bytes.push(4);
        bytes.extend(number.exponent.to_be_bytes());
        append_counted(bytes, if number.sign.is_empty() { b'+' } else { b'-' }, number.digits.as_bytes());
    } else {
        append_counted(bytes, 5, text.as_bytes());
    }
}

/// Values of a numeric that are no digits, and where they are among the others: below all, above all, above even those.
pub(super) fn special(text: &str) -> Option<i8> {
    match text {
        "-Infinity" => Some(-1),
        "Infinity" => Some(1),
        "NaN" => Some(2),
        _ => None,
    }
}

fn order_numeric(a: &str, b: &str) -> Ordering {
    let (above, below) = (special(a).unwrap_or(0), special(b).unwrap_or(0));
    if (above, below) != (0, 0) {
        return above.cmp(&below);
    }
    let (Some(a), Some(b)) = (Decimal::parse(a), Decimal::parse(b)) else { return Ordering::Equal };
    let sign = |number: &Decimal| match (number.digits.is_empty(), number.sign.is_empty()) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => -1,
    };
    let magnitude = |number: &Decimal| i64::try_from(number.digits.len()).unwrap_or(i64::MAX) + number.exponent;
    sign(&a).cmp(&sign(&b)).then_with(|| {
        let size = magnitude(&a).cmp(&magnitude(&b)).then_with(|| a.digits.cmp(&b.digits));
        if sign(&a) < 0 { size.reverse() } else { size }
    })
}

const NO_UUID: Why = Why::Because("takes 32 hexadecimal digits");
const NO_BITS: Why = Why::Because("takes text of the digits 0 and 1");
const OTHER_BITS: Why = Why::Because("takes another number of binary digits");

/// A field as its column stores it.
///
/// # Errors
/// Why the event is rejected: the value cannot be kept exactly, or is missing where one must be.
pub fn field<'a>(column: &PostgresColumn, value: FieldBytes<'a>) -> Result<Stored<'a>, Cause> {
    let stored = match value {
        FieldBytes::Absent | FieldBytes::Null if column.required => return Err(missing(column, value)),
        FieldBytes::Json(bytes) if column.kind == Kind::Array => {
            spelled(bytes).and_then(|text| array::of_json(text, column.element)).and_then(literal)
        }
        FieldBytes::Text(bytes) if column.kind == Kind::Array => {
            spelled(bytes).and_then(|text| array::of_text(text, column.element)).and_then(literal)
        }
        FieldBytes::Text(bytes) if column.kind == Kind::Range => {
            spelled(bytes).and_then(|text| range::of_text(text, column.element)).and_then(literal)
        }
        FieldBytes::Absent
        | FieldBytes::Null
        | FieldBytes::Bool(_)
        | FieldBytes::Number(_)
        | FieldBytes::Text(_)
        | FieldBytes::Json(_) => scalar(column.kind, value),
    };
    stored.map_err(|why| why.cause(column, value))
}

fn literal<'a>(array: String) -> Result<Stored<'a>, Why> {
    text(Kind::Text { most: None }, Cow::Owned(array.into_bytes()))
}

/// A value as a column of this kind stores it; arrays are none.
#[inline]
pub(super) fn scalar(kind: Kind, value: FieldBytes<'_>) -> Result<Stored<'_>, Why> {
    if let Kind::Refused { why } = kind
        && !matches!(value, FieldBytes::Absent | FieldBytes::Null)
    {
        return Err(Why::Because(why));
    }
    match value {
        FieldBytes::Absent | FieldBytes::Null => Ok(Stored::Null),
        FieldBytes::Bool(value) => boolean(kind, value),
        FieldBytes::Number(text) => number(kind, text),
        FieldBytes::Text(text) => string(kind, text),
        FieldBytes::Json(text) => json(kind, text),
    }
}

fn boolean(kind: Kind, value: bool) -> Result<Stored<'static>, Why> {
    let spelled: &[u8] = if value { b"true" } else { b"false" };
    match kind {
        Kind::Bool => Ok(Stored::Bool(value)),
        Kind::Int2 | Kind::Int4 | Kind::Int8 => Ok(Stored::Integer(value.into())),
        Kind::Text { .. } | Kind::Char { .. } => text(kind, Cow::Borrowed(spelled)),
        Kind::Json | Kind::Jsonb | Kind::Other => Ok(Stored::Text(Cow::Borrowed(spelled))),
        Kind::Float4
        | Kind::Float8
        | Kind::Numeric { .. }
        | Kind::Bytea
        | Kind::Date
        | Kind::Time { .. }
        | Kind::TimeTz { .. }
        | Kind::Interval { .. }
        | Kind::Timestamp { .. }
        | Kind::TimestampTz { .. }
        | Kind::Uuid
        | Kind::Bits { .. }
        | Kind::VarBits { .. }
        | Kind::Array
        | Kind::Range
        | Kind::Refused { .. } => Err(Why::Kind),
    }
}

fn number(kind: Kind, bytes: &[u8]) -> Result<Stored<'_>, Why> {
    match kind {
        Kind::Int2 => whole(bytes, i16::MIN.into(), i16::MAX.into()),
        Kind::Int4 => whole(bytes, i32::MIN.into(), i32::MAX.into()),
        Kind::Int8 => whole(bytes, i64::MIN, i64::MAX),
        Kind::Float4 => single(spelled(bytes)?).map(Stored::Single).ok_or(Why::NOT_EXACT),
        Kind::Float8 => double(spelled(bytes)?).map(Stored::Double).ok_or(Why::NOT_EXACT),
        Kind::Numeric { limits } => numeric(spelled(bytes)?, limits),
        Kind::Bool => match bytes {
            b"0" => Ok(Stored::Bool(false)),
            b"1" => Ok(Stored::Bool(true)),
            _ => Err(Why::NO_BOOLEAN),
        },
        Kind::Text { .. } | Kind::Char { .. } => text(kind, Cow::Borrowed(bytes)),
        Kind::Json | Kind::Jsonb | Kind::Other => Ok(Stored::Text(Cow::Borrowed(bytes))),
        Kind::Bytea => Err(Why::NO_BYTES),
        Kind::Bits { .. } | Kind::VarBits { .. } => Err(NO_BITS),
        Kind::Date
        | Kind::Time { .. }
        | Kind::TimeTz { .. }
        | Kind::Interval { .. }
        | Kind::Timestamp { .. }
        | Kind::TimestampTz { .. }
        | Kind::Uuid
        | Kind::Array
        | Kind::Range
        | Kind::Refused { .. } => Err(Why::Kind),
    }
}

fn spelled(bytes: &[u8]) -> Result<&str, Why> {
    std::str::from_utf8(bytes).map_err(|_| Why::Kind)
}

fn whole(bytes: &[u8], least: i64, most: i64) -> Result<Stored<'_>, Why> {
    let value = match short_integer(bytes) {
        Some(value) => value,
        None => {
            let text = spelled(bytes)?;
            let fraction = Decimal::parse(text).is_some_and(|number| number.exponent < 0);
            integer(text).ok_or(if fraction { Why::NOT_WHOLE } else { Why::TOO_LARGE })?
        }
    };
    if (least..=most).contains(&value) { Ok(Stored::Integer(value)) } else { Err(Why::TOO_LARGE) }
}

fn numeric(text: &str, limits: Option<(u16, i16)>) -> Result<Stored<'_>, Why> {
    let number = Decimal::parse(text).ok_or(Why::TOO_LARGE)?;
    let digits = i64::try_from(number.digits.len()).unwrap_or(i64::MAX);
    let (before, behind) = (digits.saturating_add(number.exponent), number.exponent.saturating_neg());
    let (most_before, most_behind) = match limits {
        Some((precision, scale)) => (i64::from(precision) - i64::from(scale), i64::from(scale)),
        None => (NUMERIC_DIGITS, NUMERIC_FRACTION),
    };
    match number.digits.is_empty() {
        true => Ok(Stored::Numeric("0")),
        false if before > most_before => Err(Why::TOO_LARGE),
        false if behind > most_behind => Err(Why::TOO_FINE),
        false => Ok(Stored::Numeric(text)),
    }
}

fn string(kind: Kind, bytes: &[u8]) -> Result<Stored<'_>, Why> {
    match kind {
        Kind::Text { .. } | Kind::Char { .. } => text(kind, Cow::Borrowed(bytes)),
        Kind::Other => text(Kind::Text { most: None }, Cow::Borrowed(bytes)),
        Kind::Bytea => Ok(Stored::Bytes(bytes)),
        Kind::Date => moment::date(bytes).map(Stored::Days).map_err(Why::Because),
        Kind::Time { digits } => moment::time(bytes, digits).map(Stored::Micros).map_err(Why::Because),
        Kind::TimeTz { digits } => match moment::zoned_time(bytes, digits) {
            Ok((micros, west)) => Ok(Stored::ZonedTime(micros, west)),
            Err(flaw) => Err(Why::Because(flaw)),
        },
        Kind::Timestamp { digits } | Kind::TimestampTz { digits } => {
            moment::timestamp(bytes, digits).map(Stored::Micros).map_err(Why::Because)
        }
        Kind::Interval { digits, least } => {
            interval::interval(bytes, digits, least).map(Stored::Interval).map_err(Why::Because)
        }
        Kind::Uuid => uuid(bytes).map(Stored::Uuid).ok_or(NO_UUID),
        Kind::Bits { count } => bits(bytes, |length| length == count as usize),
        Kind::VarBits { most } => bits(bytes, |length| most.is_none_or(|most| length <= most as usize)),
        Kind::Json | Kind::Jsonb => {
            let quoted = serde_json::to_vec(spelled(bytes)?).map_err(|_| Why::Kind)?;
            Ok(Stored::Text(Cow::Owned(quoted)))
        }
        Kind::Bool => spelled_boolean(bytes).map(Stored::Bool).ok_or(Why::NO_BOOLEAN),
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Float4 | Kind::Float8 | Kind::Numeric { .. } => {
            // Decimals often travel as text, because JSON's numbers are doubles to many; and all that CSV has is text.
            match spelled_number(bytes) {
                Some(text) => number(kind, text.as_bytes()),
                None => not_finite(kind, bytes).ok_or(Why::NO_NUMBER),
            }
        }
        Kind::Array | Kind::Range | Kind::Refused { .. } => Err(Why::Kind),
    }
}

/// `NaN`, `Infinity` and `-Infinity`, which JSON can only spell as text, where the column has them.
fn not_finite(kind: Kind, bytes: &[u8]) -> Option<Stored<'_>> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| special(text).is_some())?;
    if let Kind::Numeric { limits } = kind {
        // A limit on the digits leaves no room for infinity.
        return (limits.is_none() || text == "NaN").then_some(Stored::Numeric(text));
    }
    if kind == Kind::Float4 {
        return text.parse().ok().map(Stored::Single);
    }
    (kind == Kind::Float8).then(|| text.parse().ok()).flatten().map(Stored::Double)
}

fn bits(bytes: &[u8], fits: impl Fn(usize) -> bool) -> Result<Stored<'_>, Why> {
    match bytes.iter().all(|byte| matches!(byte, b'0' | b'1')) {
        false => Err(NO_BITS),
        true if !fits(bytes.len()) => Err(OTHER_BITS),
        true => Ok(Stored::Text(Cow::Borrowed(bytes))),
    }
}

fn json(kind: Kind, bytes: &[u8]) -> Result<Stored<'_>, Why> {
    match kind {
        Kind::Json | Kind::Jsonb | Kind::Other => Ok(Stored::Text(Cow::Borrowed(bytes))),
        Kind::Text { .. } | Kind::Char { .. } => text(kind, Cow::Borrowed(bytes)),
        Kind::Bytea => Ok(Stored::Bytes(bytes)),
        Kind::Bool
        | Kind::Int2
        | Kind::Int4
        | Kind::Int8
        | Kind::Float4
        | Kind::Float8
        | Kind::Numeric { .. }
        | Kind::Date
        | Kind::Time { .. }
        | Kind::TimeTz { .. }
        | Kind::Interval { .. }
        | Kind::Timestamp { .. }
        | Kind::TimestampTz { .. }
        | Kind::Uuid
        | Kind::Bits { .. }
        | Kind::VarBits { .. }
        | Kind::Array
        | Kind::Range
        | Kind::Refused { .. } => Err(Why::Kind),
    }
}

/// Text without NUL, and no longer than declared. Spaces at the end of a `char(n)` mean nothing, so they are left out.
fn text(kind: Kind, value: Cow<'_, [u8]>) -> Result<Stored<'_>, Why> {
    if memchr::memchr(0, &value).is_some() {
        return Err(Why::Because("cannot hold a NUL character"));
    }
    let (value, most) = match (kind, value) {
        (Kind::Char { most }, Cow::Borrowed(bytes)) => (Cow::Borrowed(without_end_spaces(bytes)), most),
        (Kind::Text { most }, value) => (value, most),
        (_, value) => (value, None),
    };
    if most.is_none_or(|most| has_at_most(&value, most)) {
        return Ok(Stored::Text(value));
    }
    Err(Why::TOO_LONG)
}

/// A value as the server reads it in a text, for the elements of arrays.
pub(super) fn show<'a>(value: &'a Stored<'_>, kind: Kind) -> Cow<'a, str> {
    let is_time = matches!(kind, Kind::Time { .. });
    match value {
        Stored::Null => Cow::Borrowed("NULL"),
        Stored::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
        Stored::Integer(value) => Cow::Owned(value.to_string()),
        Stored::Single(value) if value.is_finite() => Cow::Owned(format!("{value:e}")),
        Stored::Double(value) if value.is_finite() => Cow::Owned(format!("{value:e}")),
        Stored::Single(value) => Cow::Owned(value.to_string()),
        Stored::Double(value) => Cow::Owned(value.to_string()),
        Stored::Numeric(text) => Cow::Borrowed(text),
        Stored::Bytes(bytes) => Cow::Owned(format!("\\x{}", HEXLOWER.encode(bytes))),
        Stored::Days(days) => Cow::Owned(moment::show_date((*days).into())),
        Stored::Micros(micros) if is_time => Cow::Owned(moment::show_time(*micros)),
        Stored::Micros(micros) => Cow::Owned(moment::show_timestamp(*micros)),
        Stored::ZonedTime(micros, west) => Cow::Owned(moment::show_zoned_time(*micros, *west)),
        Stored::Interval(value) => Cow::Owned(interval::show_interval(*value)),
        Stored::Uuid(bytes) => Cow::Owned(HEXLOWER.encode(bytes)),
        Stored::Text(_) | Stored::KeyBytes(_) | Stored::KeyText(_) | Stored::Version(_) => {
            String::from_utf8_lossy(value.bytes().unwrap_or_default())
        }
    }
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
