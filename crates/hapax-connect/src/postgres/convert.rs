//! An event's field as a PostgreSQL column stores it: exactly, or not at all.
//!
//! Reads: the field and the live column. Writes: nothing. Invariant: what is stored reads back as the same value; what
//! the server would round, cut or pad is refused here. Types that travel as text are the server's to judge.

use std::borrow::Cow;
use std::cmp::Ordering;

use hapax_engine::batch::FieldBytes;
use hapax_model::key::{KeyHash, KeyText};
use hapax_model::letter::Cause;

use super::array;
use super::column::{Kind, PostgresColumn};
use super::moment;
use crate::table::column::{
    StoredValue, VersionBytes, append_counted, append_integer, described, misfit, misfit_because, missing,
};
use crate::table::number::{Decimal, double, integer, keeps_digits, short_integer};

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
            | Self::Micros(_) => None,
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
            // 0 and -0 are one key; no other two doubles are.
            let bits = if value == 0.0 { 0 } else { value.to_bits() };
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
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
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
    } else if let Some(number) = Decimal::parse(text) {
        bytes.push(4);
        bytes.extend(number.exponent.to_be_bytes());
        append_counted(bytes, if number.sign.is_empty() { b'+' } else { b'-' }, number.digits.as_bytes());
    }
}

fn order_numeric(a: &str, b: &str) -> Ordering {
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

/// Why a value is refused.
enum Why {
    /// Its kind does not fit.
    Kind,
    /// Its kind fits, but this holds of it.
    Because(&'static str),
}

/// A field as its column stores it.
///
/// # Errors
/// Why the event is rejected: the value cannot be kept exactly, or is missing where one must be.
pub fn field<'a>(column: &PostgresColumn, value: FieldBytes<'a>) -> Result<Stored<'a>, Cause> {
    let stored = match value {
        FieldBytes::Absent | FieldBytes::Null if column.required => return Err(missing(column, value)),
        FieldBytes::Absent | FieldBytes::Null => Ok(Stored::Null),
        FieldBytes::Bool(value) => boolean(column.kind, value),
        FieldBytes::Number(text) => number(column.kind, text),
        FieldBytes::Text(text) => string(column.kind, text),
        FieldBytes::Json(text) => json(column.kind, text),
    };
    stored.map_err(|why| match why {
        Why::Kind => misfit(column, value),
        Why::Because(why) => misfit_because(column, why, &described(value).1),
    })
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
        | Kind::Timestamp { .. }
        | Kind::TimestampTz { .. }
        | Kind::Uuid
        | Kind::Array => Err(Why::Kind),
    }
}

fn number(kind: Kind, bytes: &[u8]) -> Result<Stored<'_>, Why> {
    match kind {
        Kind::Int2 => whole(bytes, i16::MIN.into(), i16::MAX.into()),
        Kind::Int4 => whole(bytes, i32::MIN.into(), i32::MAX.into()),
        Kind::Int8 => whole(bytes, i64::MIN, i64::MAX),
        Kind::Float4 => single(spelled(bytes)?),
        Kind::Float8 => {
            double(spelled(bytes)?).map(Stored::Double).ok_or(Why::Because("cannot hold this number exactly"))
        }
        Kind::Numeric { limits } => numeric(spelled(bytes)?, limits),
        Kind::Bool => match bytes {
            b"0" => Ok(Stored::Bool(false)),
            b"1" => Ok(Stored::Bool(true)),
            _ => Err(Why::Kind),
        },
        Kind::Text { .. } | Kind::Char { .. } => text(kind, Cow::Borrowed(bytes)),
        Kind::Json | Kind::Jsonb | Kind::Other => Ok(Stored::Text(Cow::Borrowed(bytes))),
        Kind::Bytea
        | Kind::Date
        | Kind::Time { .. }
        | Kind::Timestamp { .. }
        | Kind::TimestampTz { .. }
        | Kind::Uuid
        | Kind::Array => Err(Why::Kind),
    }
}

fn spelled(bytes: &[u8]) -> Result<&str, Why> {
    std::str::from_utf8(bytes).map_err(|_| Why::Kind)
}

fn whole(bytes: &[u8], least: i64, most: i64) -> Result<Stored<'_>, Why> {
    let value = match short_integer(bytes) {
        Some(value) => value,
        None => integer(spelled(bytes)?).ok_or(Why::Because("cannot hold this number"))?,
    };
    if (least..=most).contains(&value) {
        return Ok(Stored::Integer(value));
    }
    Err(Why::Because("cannot hold a number of this size"))
}

fn single(text: &str) -> Result<Stored<'_>, Why> {
    let value: f32 = text.parse().map_err(|_| Why::Kind)?;
    let whole_as_written = !text.contains(['.', 'e', 'E']);
    let exact = !whole_as_written || keeps_digits(text, value.into());
    if value.is_finite() && exact {
        return Ok(Stored::Single(value));
    }
    Err(Why::Because("cannot hold this number exactly"))
}

fn numeric(text: &str, limits: Option<(u16, i16)>) -> Result<Stored<'_>, Why> {
    const TOO_LARGE: Why = Why::Because("cannot hold a number of this size");
    const TOO_FINE: Why = Why::Because("cannot hold so many digits behind the point");
    let number = Decimal::parse(text).ok_or(TOO_LARGE)?;
    let digits = i64::try_from(number.digits.len()).unwrap_or(i64::MAX);
    let (before, behind) = (digits.saturating_add(number.exponent), number.exponent.saturating_neg());
    let (most_before, most_behind) = match limits {
        Some((precision, scale)) => (i64::from(precision) - i64::from(scale), i64::from(scale)),
        None => (NUMERIC_DIGITS, NUMERIC_FRACTION),
    };
    match number.digits.is_empty() {
        true => Ok(Stored::Numeric("0")),
        false if before > most_before => Err(TOO_LARGE),
        false if behind > most_behind => Err(TOO_FINE),
        false => Ok(Stored::Numeric(text)),
    }
}

fn string(kind: Kind, bytes: &[u8]) -> Result<Stored<'_>, Why> {
    const NO_DATE: Why = Why::Because("takes dates like 2026-11-16");
    const NO_TIME: Why = Why::Because("takes times like 03:25:42, with no more digits of a second than it keeps");
    const NO_MOMENT: Why =
        Why::Because("takes times like 2026-11-16T03:25:42Z, with no more digits of a second than it keeps");
    match kind {
        Kind::Text { .. } | Kind::Char { .. } => text(kind, Cow::Borrowed(bytes)),
        Kind::Other | Kind::Array => text(Kind::Text { most: None }, Cow::Borrowed(bytes)),
        Kind::Bytea => Ok(Stored::Bytes(bytes)),
        Kind::Date => moment::date(bytes).map(Stored::Days).ok_or(NO_DATE),
        Kind::Time { digits } => moment::time(bytes, digits).map(Stored::Micros).ok_or(NO_TIME),
        Kind::Timestamp { digits } | Kind::TimestampTz { digits } => {
            moment::timestamp(bytes, digits).map(Stored::Micros).ok_or(NO_MOMENT)
        }
        Kind::Uuid => uuid(bytes).map(Stored::Uuid).ok_or(Why::Because("takes 32 hexadecimal digits")),
        Kind::Numeric { limits } => {
            // Decimals often travel as strings, because JSON's numbers are doubles to many.
            let text = spelled(bytes)?;
            if is_number(text) { numeric(text, limits) } else { Err(Why::Kind) }
        }
        Kind::Json | Kind::Jsonb => {
            let quoted = serde_json::to_vec(spelled(bytes)?).map_err(|_| Why::Kind)?;
            Ok(Stored::Text(Cow::Owned(quoted)))
        }
        Kind::Bool | Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Float4 | Kind::Float8 => Err(Why::Kind),
    }
}

fn json(kind: Kind, bytes: &[u8]) -> Result<Stored<'_>, Why> {
    match kind {
        Kind::Json | Kind::Jsonb | Kind::Other => Ok(Stored::Text(Cow::Borrowed(bytes))),
        Kind::Text { .. } | Kind::Char { .. } => text(kind, Cow::Borrowed(bytes)),
        Kind::Bytea => Ok(Stored::Bytes(bytes)),
        Kind::Array => match array::literal(spelled(bytes)?) {
            Ok(literal) => text(Kind::Text { most: None }, Cow::Owned(literal.into_bytes())),
            Err(why) => Err(Why::Because(why)),
        },
        Kind::Bool
        | Kind::Int2
        | Kind::Int4
        | Kind::Int8
        | Kind::Float4
        | Kind::Float8
        | Kind::Numeric { .. }
        | Kind::Date
        | Kind::Time { .. }
        | Kind::Timestamp { .. }
        | Kind::TimestampTz { .. }
        | Kind::Uuid => Err(Why::Kind),
    }
}

/// Text without NUL, and no longer than declared. Spaces at the end of a `char(n)` mean nothing, so they are left out.
fn text(kind: Kind, value: Cow<'_, [u8]>) -> Result<Stored<'_>, Why> {
    if memchr::memchr(0, &value).is_some() {
        return Err(Why::Because("cannot hold a NUL character"));
    }
    let (value, most) = match (kind, value) {
        (Kind::Char { most }, Cow::Borrowed(bytes)) => (Cow::Borrowed(bytes.trim_ascii_end_spaces()), most),
        (Kind::Text { most }, value) => (value, most),
        (_, value) => (value, None),
    };
    let fits = |most: u32| {
        let most = most as usize;
        // A character has at least one byte: most values need no counting. Bytes that begin a character are counted.
        value.len() <= most || value.iter().filter(|byte| (**byte & 0xc0) != 0x80).count() <= most
    };
    if most.is_none_or(fits) {
        return Ok(Stored::Text(value));
    }
    Err(Why::Because("cannot hold so many characters"))
}

trait TrimSpaces {
    fn trim_ascii_end_spaces(&self) -> &[u8];
}

impl TrimSpaces for [u8] {
    fn trim_ascii_end_spaces(&self) -> &[u8] {
        let end = self.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
        &self[..end]
    }
}

/// Whether a text is spelled as a JSON number.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|first: char| first.is_ascii_digit())
        && text.ends_with(|last: char| last.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut digits = 0;
    for (at, byte) in text.iter().enumerate() {
        if *byte == b'-' && text.len() == 36 && matches!(at, 8 | 13 | 18 | 23) {
            continue;
        }
        let digit = u8::try_from(char::from(*byte).to_digit(16)?).ok()?;
        *bytes.get_mut(digits / 2)? |= if digits % 2 == 0 { digit << 4 } else { digit };
        digits += 1;
    }
    (digits == 32).then_some(bytes)
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
