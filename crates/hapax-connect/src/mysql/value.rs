//! A value on its way into a column: how it compares with another of its column, and what the driver sends for it.
//!
//! Pure. Invariant: `append_key` gives equal bytes exactly for values that a unique index takes for equal.

use std::borrow::Cow;
use std::cmp::Ordering;

use hapax_model::key::{KeyHash, KeyText};
use hapax_sql::mysql::Value;

use super::moment::{DAY, civil};
use crate::table::column::{StoredValue, VersionBytes, append_counted, append_integer};
use crate::table::number::{Decimal, integer};

/// A value on its way into a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored<'a> {
    /// NULL.
    Null,
    /// A whole number, within the range of its column.
    Integer(i64),
    /// A whole number that needs all 64 bits.
    Unsigned(u64),
    /// `float`.
    Single(f32),
    /// `double`.
    Double(f64),
    /// `decimal`: digits without an exponent, within those of its column.
    Decimal(Cow<'a, str>),
    /// Text, or what travels as text.
    Text(Cow<'a, [u8]>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Days since 1970-01-01.
    Days(i32),
    /// Microseconds of a `time`.
    Span(i64),
    /// Microseconds since 1970.
    Moment(i64),
    /// `uuid`.
    Uuid([u8; 16]),
    /// A key in a column of bytes.
    KeyBytes(KeyHash),
    /// A key in a column of text.
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
            | Self::Integer(_)
            | Self::Unsigned(_)
            | Self::Single(_)
            | Self::Double(_)
            | Self::Decimal(_)
            | Self::Days(_)
            | Self::Span(_)
            | Self::Moment(_) => None,
        }
    }

    /// Those values that are whole numbers to the server.
    fn whole(&self) -> Option<i128> {
        if let Self::Integer(value) | Self::Span(value) | Self::Moment(value) = self {
            return Some((*value).into());
        }
        if let Self::Days(days) = self {
            return Some((*days).into());
        }
        if let Self::Unsigned(value) = self { Some((*value).into()) } else { None }
    }

    fn fraction(&self) -> Option<f64> {
        if let Self::Single(value) = self {
            return Some((*value).into());
        }
        if let Self::Double(value) = self { Some(*value) } else { None }
    }

    /// What the driver sends.
    #[must_use]
    pub fn bound(&self) -> Value {
        match self {
            Self::Null => Value::NULL,
            Self::Integer(value) => Value::Int(*value),
            Self::Unsigned(value) => Value::UInt(*value),
            Self::Single(value) => Value::Float(*value),
            Self::Double(value) => Value::Double(*value),
            Self::Decimal(text) => Value::Bytes(text.as_bytes().to_vec()),
            Self::Days(days) => {
                let (year, month, day) = civil((*days).into());
                Value::Date(year, month, day, 0, 0, 0, 0)
            }
            Self::Span(micros) => span(*micros),
            Self::Moment(micros) => moment(*micros),
            Self::Uuid(bytes) => Value::Bytes(spelled_uuid(bytes)),
            Self::Text(_) | Self::Bytes(_) | Self::KeyBytes(_) | Self::KeyText(_) | Self::Version(_) => {
                Value::Bytes(self.bytes().unwrap_or_default().to_vec())
            }
        }
    }
}

/// Hours, minutes, seconds and microseconds of less than a day.
fn clock(micros: i64) -> (u8, u8, u8, u32) {
    let small = |number: i64| u8::try_from(number).unwrap_or_default();
    let seconds = micros / 1_000_000;
    let rest = u32::try_from(micros % 1_000_000).unwrap_or_default();
    (small(seconds / 3_600), small(seconds / 60 % 60), small(seconds % 60), rest)
}

fn moment(micros: i64) -> Value {
    let (year, month, day) = civil(micros.div_euclid(DAY));
    let (hour, minute, second, micros) = clock(micros.rem_euclid(DAY));
    Value::Date(year, month, day, hour, minute, second, micros)
}

fn span(micros: i64) -> Value {
    let (size, days) = (micros.abs() % DAY, micros.abs() / DAY);
    let (hours, minutes, seconds, rest) = clock(size);
    Value::Time(micros < 0, u32::try_from(days).unwrap_or_default(), hours, minutes, seconds, rest)
}

fn spelled_uuid(bytes: &[u8; 16]) -> Vec<u8> {
    let digits = data_encoding::HEXLOWER.encode(bytes);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-").into_bytes()
}

impl StoredValue for Stored<'_> {
    fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    fn append_key(&self, bytes: &mut Vec<u8>) {
        if let Some(value) = self.bytes() {
            append_counted(bytes, 3, value);
        } else if let Self::Unsigned(value) = self {
            append_unsigned(bytes, *value);
        } else if let Some(value) = self.whole().and_then(|value| i64::try_from(value).ok()) {
            append_integer(bytes, value);
        } else if let Some(value) = self.fraction() {
            bytes.push(2);
            // 0 and -0 are one key; no other two doubles are.
            let bits = if value == 0.0 { 0 } else { value.to_bits() };
            bytes.extend(bits.to_be_bytes());
        } else if let Self::Decimal(text) = self {
            append_decimal(bytes, text);
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
        } else if let (Self::Decimal(a), Self::Decimal(b)) = (self, other) {
            order_decimal(a, b)
        } else {
            // Only NULL is left: it is before everything.
            other.is_null().cmp(&self.is_null())
        }
    }
}

/// Behind all numbers that need no more than 63 bits, and in their own order.
fn append_unsigned(bytes: &mut Vec<u8>, value: u64) {
    match i64::try_from(value) {
        Ok(value) => append_integer(bytes, value),
        Err(_) => {
            bytes.push(2);
            bytes.extend(value.to_be_bytes());
        }
    }
}

/// Whole numbers sort as such, so that rows lie in the index as they come; 1 and 1.0 are one key.
fn append_decimal(bytes: &mut Vec<u8>, text: &str) {
    if let Some(value) = integer(text) {
        append_integer(bytes, value);
    } else if let Some(number) = Decimal::parse(text) {
        bytes.push(4);
        bytes.extend(number.exponent.to_be_bytes());
        append_counted(bytes, if number.sign.is_empty() { b'+' } else { b'-' }, number.digits.as_bytes());
    }
}

fn order_decimal(a: &str, b: &str) -> Ordering {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: times are bound as the parts that MySQL takes. Method: before 1970, negative spans, microseconds.
    #[test]
    fn times_are_bound_by_their_parts() {
        assert_eq!(Stored::Moment(-1).bound(), Value::Date(1969, 12, 31, 23, 59, 59, 999_999));
        assert_eq!(Stored::Days(20_773).bound(), Value::Date(2026, 11, 16, 0, 0, 0, 0));
        assert_eq!(Stored::Span(-(DAY + 3_661_000_001)).bound(), Value::Time(true, 1, 1, 1, 1, 1));
        let uuid = Stored::Uuid([0xab; 16]).bound();
        assert_eq!(uuid, Value::Bytes(b"abababab-abab-abab-abab-abababababab".to_vec()));
    }

    /// Goal: numbers are one key however they are spelled, and lie in order. Method: all widths, both signs.
    #[test]
    fn numbers_are_keys_in_their_order() {
        let key = |value: Stored<'_>| {
            let mut bytes = Vec::new();
            value.append_key(&mut bytes);
            bytes
        };
        let ascending = [
            Stored::Integer(i64::MIN),
            Stored::Integer(-1),
            Stored::Integer(0),
            Stored::Integer(i64::MAX),
            Stored::Unsigned(1 << 63),
            Stored::Unsigned(u64::MAX),
        ];
        assert!(ascending.iter().map(|value| key(value.clone())).collect::<Vec<_>>().is_sorted());
        assert!(ascending.windows(2).all(|pair| pair[0].order(&pair[1]) == Ordering::Less));
        assert_eq!(key(Stored::Decimal("1.50".into())), key(Stored::Decimal("1.5".into())));
        assert_eq!(key(Stored::Double(0.0)), key(Stored::Double(-0.0)));
        assert_eq!(Stored::Decimal("-2".into()).order(&Stored::Decimal("1.9".into())), Ordering::Less);
    }
}
