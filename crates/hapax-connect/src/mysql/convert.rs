//! An event's field as a MySQL column stores it: exactly, or not at all.
//!
//! Reads: the field and the live column. Writes: nothing. Invariant: what is stored reads back as the same value; what
//! the server would round, cut or pad is refused here. Not here: how a value is compared and bound (`value`).

use std::borrow::Cow;

use hapax_engine::batch::FieldBytes;
use hapax_model::letter::Cause;
use serde_json::value::RawValue;

use super::column::{Kind, Longest, MysqlColumn, Sign};
use super::moment;
pub use super::value::Stored;
use crate::table::column::{Why, missing};
use crate::table::number::{Decimal, double, integer, short_integer, single, spelled_boolean, spelled_number};
use crate::table::spelled::{has_at_most, uuid, without_end_spaces};

/// How many digits of a `float` the server shows.
const SHOWN_DIGITS: usize = 6;

/// A field as its column stores it.
///
/// # Errors
/// Why the event is rejected: the value cannot be kept exactly, or is missing where one must be.
pub fn field<'a>(column: &MysqlColumn, value: FieldBytes<'a>) -> Result<Stored<'a>, Cause> {
    let stored = match value {
        FieldBytes::Absent | FieldBytes::Null if column.required => return Err(missing(column, value)),
        FieldBytes::Absent | FieldBytes::Null => Ok(Stored::Null),
        FieldBytes::Bool(value) => boolean(column, value),
        FieldBytes::Number(text) => number(column, text),
        FieldBytes::Text(text) => string(column, text),
        FieldBytes::Json(text) => json(column, text),
    };
    stored.map_err(|why| why.cause(column, value))
}

fn boolean(column: &MysqlColumn, value: bool) -> Result<Stored<'static>, Why> {
    let spelled: &[u8] = if value { b"true" } else { b"false" };
    match column.kind {
        Kind::Int { .. } | Kind::Bit { .. } => Ok(Stored::Integer(value.into())),
        Kind::Text { .. } | Kind::Char { .. } => text(column.kind, Cow::Borrowed(spelled)),
        Kind::Enum => member(column, Cow::Borrowed(spelled)),
        Kind::Json | Kind::Other => Ok(Stored::Text(Cow::Borrowed(spelled))),
        Kind::Decimal { .. }
        | Kind::Float { .. }
        | Kind::Double { .. }
        | Kind::Year
        | Kind::Binary { .. }
        | Kind::Bytes { .. }
        | Kind::Date
        | Kind::Time { .. }
        | Kind::Datetime { .. }
        | Kind::Timestamp { .. }
        | Kind::Set
        | Kind::Uuid => Err(Why::Kind),
    }
}

fn number<'a>(column: &MysqlColumn, bytes: &'a [u8]) -> Result<Stored<'a>, Why> {
    match column.kind {
        Kind::Int { bits, sign } => whole(bytes, bits, sign),
        Kind::Bit { bits } => whole(bytes, bits, Sign::Unsigned),
        Kind::Float { scale, sign } => {
            let text = spelled(bytes)?;
            rounded(text, scale, sign)?;
            // The server shows a float in six digits, whatever it holds; very small ones in other digits than the fewest.
            let shown = Decimal::parse(text).is_some_and(|number| number.digits.len() <= SHOWN_DIGITS);
            let kept = |value: &f32| shown && (value.is_normal() || *value == 0.0);
            single(text).filter(kept).map(Stored::Single).ok_or(Why::NOT_EXACT)
        }
        Kind::Double { scale, sign } => {
            let text = spelled(bytes)?;
            rounded(text, scale, sign)?;
            double(text).map(Stored::Double).ok_or(Why::NOT_EXACT)
        }
        Kind::Decimal { precision, scale, sign } => decimal(spelled(bytes)?, precision, scale, sign),
        Kind::Year => year(bytes),
        Kind::Text { .. } | Kind::Char { .. } => text(column.kind, Cow::Borrowed(bytes)),
        Kind::Enum => member(column, Cow::Borrowed(bytes)),
        Kind::Json | Kind::Other => Ok(Stored::Text(Cow::Borrowed(bytes))),
        Kind::Binary { .. } | Kind::Bytes { .. } => Err(Why::NO_BYTES),
        Kind::Date | Kind::Time { .. } | Kind::Datetime { .. } | Kind::Timestamp { .. } | Kind::Set | Kind::Uuid => {
            Err(Why::Kind)
        }
    }
}

fn spelled(bytes: &[u8]) -> Result<&str, Why> {
    std::str::from_utf8(bytes).map_err(|_| Why::Kind)
}

/// A whole number within the range of its column; below 0 or above, the range's ends are powers of two.
fn whole(bytes: &[u8], bits: u8, sign: Sign) -> Result<Stored<'static>, Why> {
    let value = match short_integer(bytes) {
        Some(value) => i128::from(value),
        None => {
            let text = spelled(bytes)?;
            let fraction = Decimal::parse(text).is_some_and(|number| number.exponent < 0);
            wide(text).ok_or(if fraction { Why::NOT_WHOLE } else { Why::TOO_LARGE })?
        }
    };
    let (least, most) = match sign {
        Sign::Signed => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        Sign::Unsigned => (0, (1_i128 << bits) - 1),
    };
    if !(least..=most).contains(&value) {
        return Err(Why::TOO_LARGE);
    }
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => Ok(Stored::Integer(value)),
        (_, Ok(value)) => Ok(Stored::Unsigned(value)),
        (Err(_), Err(_)) => Err(Why::TOO_LARGE),
    }
}

/// The whole number that a JSON number is, beyond what 64 bits with a sign hold.
fn wide(text: &str) -> Option<i128> {
    if let Some(value) = integer(text) {
        return Some(value.into());
    }
    let number = Decimal::parse(text)?;
    let zeros = usize::try_from(number.exponent).ok().filter(|zeros| number.digits.len() + zeros <= 20)?;
    format!("{}{}{}", number.sign, number.digits, "0".repeat(zeros)).parse().ok()
}

/// Refuses what a declared number of digits would round away, and what lies below 0 where nothing may.
fn rounded(text: &str, scale: Option<u8>, sign: Sign) -> Result<(), Why> {
    if scale.is_none() && sign == Sign::Signed {
        return Ok(());
    }
    let number = Decimal::parse(text).ok_or(Why::TOO_LARGE)?;
    if sign == Sign::Unsigned && !number.sign.is_empty() {
        return Err(Why::TOO_LARGE);
    }
    match scale {
        Some(scale) if number.exponent.saturating_neg() > scale.into() => Err(Why::TOO_FINE),
        Some(_) | None => Ok(()),
    }
}

fn decimal(text: &str, precision: u8, scale: u8, sign: Sign) -> Result<Stored<'_>, Why> {
    let number = Decimal::parse(text).ok_or(Why::TOO_LARGE)?;
    let digits = i64::try_from(number.digits.len()).unwrap_or(i64::MAX);
    let (before, behind) = (digits.saturating_add(number.exponent), number.exponent.saturating_neg());
    let below = sign == Sign::Unsigned && !number.sign.is_empty();
    match number.digits.is_empty() {
        true => Ok(Stored::Decimal(Cow::Borrowed("0"))),
        false if below || before > i64::from(precision) - i64::from(scale) => Err(Why::TOO_LARGE),
        false if behind > i64::from(scale) => Err(Why::TOO_FINE),
        false if text.contains(['e', 'E']) => Ok(Stored::Decimal(Cow::Owned(plain_digits(&number)))),
        false => Ok(Stored::Decimal(Cow::Borrowed(text))),
    }
}

/// A decimal without an exponent: `15e-1` is `1.5`.
fn plain_digits(number: &Decimal) -> String {
    let Decimal { sign, digits, exponent } = number;
    let Ok(behind) = usize::try_from(exponent.saturating_neg()) else {
        return format!("{sign}{digits}{}", "0".repeat(usize::try_from(*exponent).unwrap_or_default()));
    };
    let padded = format!("{digits:0>width$}", width = behind + 1);
    let (before, behind) = padded.split_at(padded.len() - behind);
    if behind.is_empty() { format!("{sign}{before}") } else { format!("{sign}{before}.{behind}") }
}

/// A year that MySQL keeps as it is: two digits would become four.
fn year(bytes: &[u8]) -> Result<Stored<'static>, Why> {
    match short_integer(bytes) {
        Some(value @ (0 | 1901..=2155)) => Ok(Stored::Integer(value)),
        Some(_) | None => Err(Why::Because("takes years from 1901 to 2155")),
    }
}

fn string<'a>(column: &MysqlColumn, bytes: &'a [u8]) -> Result<Stored<'a>, Why> {
    match column.kind {
        Kind::Text { .. } | Kind::Char { .. } => text(column.kind, Cow::Borrowed(bytes)),
        Kind::Other => Ok(Stored::Text(Cow::Borrowed(bytes))),
        Kind::Binary { .. } | Kind::Bytes { .. } => binary(column.kind, bytes),
        Kind::Date => moment::date(bytes).map(Stored::Days).map_err(Why::Because),
        Kind::Time { digits } => moment::time(bytes, digits).map(Stored::Span).map_err(Why::Because),
        Kind::Datetime { digits } | Kind::Timestamp { digits } => {
            moment::timestamp(bytes, digits).map(Stored::Moment).map_err(Why::Because)
        }
        Kind::Uuid => uuid(bytes).map(Stored::Uuid).ok_or(Why::Because("takes 32 hexadecimal digits")),
        Kind::Enum => member(column, Cow::Borrowed(bytes)),
        Kind::Set => some_members(column, Cow::Borrowed(bytes)),
        Kind::Json => {
            let quoted = serde_json::to_vec(spelled(bytes)?).map_err(|_| Why::Kind)?;
            Ok(Stored::Text(Cow::Owned(quoted)))
        }
        Kind::Int { .. } if column.declared == "tinyint(1)" && spelled_number(bytes).is_none() => {
            // What MySQL calls a boolean.
            spelled_boolean(bytes).map(|value| Stored::Integer(value.into())).ok_or(Why::NO_BOOLEAN)
        }
        Kind::Int { .. }
        | Kind::Decimal { .. }
        | Kind::Float { .. }
        | Kind::Double { .. }
        | Kind::Bit { .. }
        | Kind::Year => {
            // Decimals often travel as text, because JSON's numbers are doubles to many; and all that CSV has is text.
            let text = spelled_number(bytes).ok_or(Why::NO_NUMBER)?;
            number(column, text.as_bytes())
        }
    }
}

fn json<'a>(column: &MysqlColumn, bytes: &'a [u8]) -> Result<Stored<'a>, Why> {
    match column.kind {
        Kind::Json | Kind::Other => Ok(Stored::Text(Cow::Borrowed(bytes))),
        Kind::Text { .. } | Kind::Char { .. } => text(column.kind, Cow::Borrowed(bytes)),
        Kind::Binary { .. } | Kind::Bytes { .. } => binary(column.kind, bytes),
        Kind::Set => some_members(column, Cow::Owned(joined(spelled(bytes)?)?)),
        Kind::Int { .. }
        | Kind::Decimal { .. }
        | Kind::Float { .. }
        | Kind::Double { .. }
        | Kind::Bit { .. }
        | Kind::Year
        | Kind::Date
        | Kind::Time { .. }
        | Kind::Datetime { .. }
        | Kind::Timestamp { .. }
        | Kind::Enum
        | Kind::Uuid => Err(Why::Kind),
    }
}

/// `["a", "b"]` as `a,b`.
fn joined(json: &str) -> Result<Vec<u8>, Why> {
    let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| Why::Kind)?;
    let texts: Result<Vec<String>, Why> =
        elements.iter().map(|element| serde_json::from_str(element.get()).map_err(|_| Why::Kind)).collect();
    Ok(texts?.join(",").into_bytes())
}

/// A member, exactly as it is declared: the server would also take one that is merely alike.
fn member<'a>(column: &MysqlColumn, value: Cow<'a, [u8]>) -> Result<Stored<'a>, Why> {
    match column.members.iter().any(|member| member.as_bytes() == value.as_ref()) {
        true => Ok(Stored::Text(value)),
        false => Err(Why::Because("has no such member")),
    }
}

fn some_members<'a>(column: &MysqlColumn, value: Cow<'a, [u8]>) -> Result<Stored<'a>, Why> {
    let known = |part: &[u8]| column.members.iter().any(|member| member.as_bytes() == part);
    match value.is_empty() || value.split(|byte| *byte == b',').all(known) {
        true => Ok(Stored::Text(value)),
        false => Err(Why::Because("has no such member")),
    }
}

fn binary(kind: Kind, bytes: &[u8]) -> Result<Stored<'_>, Why> {
    let length = bytes.len() as u64;
    if let Kind::Binary { length: exactly } = kind
        && length < exactly
    {
        return Err(Why::Because("would fill up a value of fewer bytes"));
    }
    if let Kind::Binary { length: most } | Kind::Bytes { most } = kind
        && length > most
    {
        return Err(Why::Because("cannot hold so many bytes"));
    }
    Ok(Stored::Bytes(bytes))
}

/// Text no longer than declared. Spaces at the end of a `char(n)` mean nothing, so they are left out.
fn text(kind: Kind, value: Cow<'_, [u8]>) -> Result<Stored<'_>, Why> {
    let (value, most) = match (kind, value) {
        (Kind::Char { most }, Cow::Borrowed(bytes)) => {
            (Cow::Borrowed(without_end_spaces(bytes)), Longest::Characters(most))
        }
        (Kind::Text { most }, value) => (value, most),
        (_, value) => (value, Longest::ServerJudges),
    };
    let fits = match most {
        Longest::Characters(most) => has_at_most(&value, most),
        Longest::Bytes(most) => value.len() as u64 <= most,
        Longest::ServerJudges => true,
    };
    if fits { Ok(Stored::Text(value)) } else { Err(Why::TOO_LONG) }
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
