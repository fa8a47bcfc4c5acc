//! VRL values into the slots of an event.
//!
//! Invariant: what is written is the value, or an error; nothing becomes `null` or another text in silence.

use std::fmt::Write as _;

use hapax_engine::batch::{EventFields, FieldSpan, Made, TakeFields as _};
use vrl::value::Value;

use crate::json::DEEPEST;

/// A value that no column can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unwritable {
    /// Bytes that are no text.
    #[error("bytes that are not UTF-8; encode_base64 or encode_base16 makes text of them")]
    NotUtf8,
    /// A regular expression.
    #[error("a regular expression, which is a tool and no value")]
    Regex,
    /// A number that overflowed.
    #[error("a number that is infinite: a calculation overflowed")]
    Infinite,
    /// Arrays in arrays.
    #[error("nested more than 128 times")]
    TooDeep,
}

/// Writes `value` into `slot`.
pub(crate) fn write_value(value: &Value, slot: usize, into: &mut EventFields<'_>) -> Result<(), Unwritable> {
    match value {
        Value::Null => into.take(slot, FieldSpan::Null),
        Value::Boolean(value) => into.take(slot, FieldSpan::Bool(*value)),
        Value::Integer(number) => into.make(slot, Made::Number, |made| write_integer(*number, made)),
        Value::Float(number) => {
            let number = finite(number.into_inner())?;
            into.make(slot, Made::Number, |made| write_float(number, made));
        }
        Value::String(text) => into.make(slot, Made::Text, |made| made.push_str(text)),
        Value::Bytes(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|_| Unwritable::NotUtf8)?;
            into.make(slot, Made::Text, |made| made.push_str(text));
        }
        Value::Timestamp(_) => into.make(slot, Made::Text, |made| made.push_str(&value.to_string_lossy())),
        Value::Object(_) | Value::Array(_) => {
            let mut written = Ok(());
            into.make(slot, Made::Json, |made| written = write_json(value, made, 0));
            written?;
        }
        Value::Regex(_) => return Err(Unwritable::Regex),
    }
    Ok(())
}

fn finite(number: f64) -> Result<f64, Unwritable> {
    if number.is_finite() { Ok(number) } else { Err(Unwritable::Infinite) }
}

fn write_integer(number: i64, out: &mut String) {
    write!(out, "{number}").expect("a string takes everything");
}

/// The shortest text that is this number again, with an exponent where that is shorter.
fn write_float(number: f64, out: &mut String) {
    write!(out, "{number:?}").expect("a string takes everything");
}

/// Writes `value` as JSON.
pub(crate) fn write_json(value: &Value, out: &mut String, depth: usize) -> Result<(), Unwritable> {
    if depth > DEEPEST {
        return Err(Unwritable::TooDeep);
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Integer(number) => write_integer(*number, out),
        Value::Float(number) => write_float(finite(number.into_inner())?, out),
        Value::String(text) => write_text(text, out),
        Value::Bytes(bytes) => write_text(std::str::from_utf8(bytes).map_err(|_| Unwritable::NotUtf8)?, out),
        Value::Timestamp(_) => write_text(&value.to_string_lossy(), out),
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                out.push(if n == 0 { '[' } else { ',' });
                write_json(item, out, depth + 1)?;
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Object(fields) => {
            for (n, (name, value)) in fields.iter().enumerate() {
                out.push(if n == 0 { '{' } else { ',' });
                write_text(name, out);
                out.push(':');
                write_json(value, out, depth + 1)?;
            }
            out.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
        Value::Regex(_) => return Err(Unwritable::Regex),
    }
    Ok(())
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') {
        out.push_str(&rest[..at]);
        let odd = rest[at..].chars().next().unwrap_or_default();
        match odd {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => write!(out, "\\u{:04x}", u32::from(other)).expect("a string takes everything"),
        }
        rest = &rest[at + odd.len_utf8()..];
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use vrl::value;

    fn float(value: f64) -> Value {
        Value::Float(vrl::prelude::NotNan::new(value).expect("a number"))
    }

    fn json(value: &Value) -> Result<String, Unwritable> {
        let mut out = String::new();
        write_json(value, &mut out, 0).map(|()| out)
    }

    /// Goal: what is written reads back as the same value. Method: every kind, odd characters, numbers at the ends.
    #[test]
    fn json_reads_back() {
        let value = value!({
            "a\"\\": ["\n\t\r\u{1}é", 1, (float(-0.5)), (float(1e300)), (float(1e-300)), (i64::MIN), true, null, [], {}],
        });
        let text = json(&value).expect("all of it can be written");
        let read = crate::json::read_field(text.as_bytes(), &FieldSpan::Json(0..text.len())).expect("not deep");
        assert_eq!((read.value, read.odd), (value, vec![]));
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
    }

    /// Goal: what is no JSON is an error, wherever it stands.
    #[test]
    fn what_cannot_be_written_is_told() {
        let bytes = Value::Bytes(vec![0xff, 0xfe].into());
        assert_eq!(json(&value!({ a: [bytes] })), Err(Unwritable::NotUtf8));
        assert_eq!(json(&value!([(float(f64::INFINITY))])), Err(Unwritable::Infinite));
        let deep = (0..200).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        assert_eq!(json(&deep), Err(Unwritable::TooDeep));
    }
}
