//! Texts that stand for values of any type, as CSV has them: each is read by the type of the column that it goes into.
//!
//! Pure. Invariant: a text that the column takes as it stands is taken so; only where it is refused is it read as the
//! number or the truth value that it spells. A column for JSON takes JSON text and nothing else: whether `12` is a number
//! or a string is never guessed. Not here: what a column takes (each dialect's `convert`).

use hapax_engine::batch::FieldBytes;
use hapax_model::letter::Cause;
use serde_json::value::RawValue;

use super::column::{LiveColumn, Why};

/// Only the text itself can say what it is: a string has its quotes.
const NO_JSON: Why = Why::Because("takes JSON text, a string with its quotes");

/// A field of an untyped event as `column` stores it.
///
/// # Errors
/// Why the event is rejected, in the words for text.
pub fn field<'a, C: LiveColumn>(column: &C, value: FieldBytes<'a>) -> Result<C::Value<'a>, Cause> {
    let FieldBytes::Text(text) = value else { return column.field(value) };
    if column.holds_json() {
        return column.field(json(text).ok_or_else(|| NO_JSON.cause(column, value))?);
    }
    if let Some(json) = structure(text)
        && let Ok(stored) = column.field(json)
    {
        return Ok(stored);
    }
    column.field(value).or_else(|refused| {
        let read = boolean(column, text).or_else(|| number(text));
        read.and_then(|read| column.field(read).ok()).ok_or(refused)
    })
}

/// The value that a text of JSON spells, as a line of JSON would have it.
fn json(text: &[u8]) -> Option<FieldBytes<'_>> {
    let json = serde_json::from_slice::<&RawValue>(text).ok()?.get().as_bytes();
    Some(match json.first()? {
        b'n' => FieldBytes::Null,
        b't' => FieldBytes::Bool(true),
        b'f' => FieldBytes::Bool(false),
        b'"' | b'[' | b'{' => FieldBytes::Json(json),
        _ => FieldBytes::Number(json),
    })
}

/// The array or object that a text spells.
fn structure(text: &[u8]) -> Option<FieldBytes<'_>> {
    matches!(text.first(), Some(b'{' | b'[')).then_some(())?;
    serde_json::from_slice::<&RawValue>(text).ok()?;
    Some(FieldBytes::Json(text))
}

/// The number that a text spells: as JSON does, or with spaces around it, a plus sign, zeros at its beginning.
fn number(text: &[u8]) -> Option<FieldBytes<'_>> {
    let text = text.trim_ascii();
    let bare = text.strip_prefix(b"+").unwrap_or(text);
    let zeros = bare.iter().take_while(|byte| **byte == b'0').count();
    let bare = match bare.get(zeros) {
        Some(b'0'..=b'9') => &bare[zeros..],
        Some(_) | None => &bare[zeros.saturating_sub(1)..],
    };
    let spelled = matches!(bare.first(), Some(b'-' | b'0'..=b'9'));
    let signed_twice = bare.len() < text.len() && bare.first() == Some(&b'-');
    if !spelled || signed_twice {
        return None;
    }
    serde_json::from_slice::<&RawValue>(bare).ok()?;
    Some(FieldBytes::Number(bare))
}

/// The truth value that a text spells, for a column of truth values alone: elsewhere `t` is no number.
fn boolean<C: LiveColumn>(column: &C, text: &[u8]) -> Option<FieldBytes<'static>> {
    let declared = column.declared().to_ascii_lowercase();
    if !declared.contains("bool") && declared != "tinyint(1)" && declared != "bit(1)" {
        return None;
    }
    let is = |words: [&str; 6]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    if is(["true", "t", "yes", "y", "on", "1"]) {
        return Some(FieldBytes::Bool(true));
    }
    is(["false", "f", "no", "n", "off", "0"]).then_some(FieldBytes::Bool(false))
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::sqlite::convert::Stored;
    use crate::sqlite::schema::{Affinity, SqliteColumn};

    fn stored<'a>(declared: &str, text: &'a str) -> Option<Stored<'a>> {
        let affinity = match declared {
            "INTEGER" => Affinity::Integer,
            "REAL" => Affinity::Real,
            "TEXT" => Affinity::Text,
            _ => Affinity::Numeric,
        };
        let name = "c".to_owned();
        let column = SqliteColumn { name, declared: declared.into(), affinity, required: false, fills_itself: false };
        field(&column, FieldBytes::Text(text.as_bytes())).ok()
    }

    /// Goal: a text becomes what its column holds, or is refused. Method: spellings beside declared types.
    #[test]
    fn texts_are_read_by_the_type_of_their_column() {
        for (text, expected) in
            [("12", Some(12)), ("-7", Some(-7)), ("+5", Some(5)), ("007", Some(7)), (" 3 ", Some(3)), ("0", Some(0))]
        {
            assert_eq!(stored("INTEGER", text), expected.map(Stored::Integer), "{text:?}");
        }
        for text in ["", "x", "1x", "t", "true", "1.5", "0x1f", "--1", "+-1", "1 2", "-007", "1,5", "NaN"] {
            assert_eq!(stored("INTEGER", text), None, "{text:?}");
        }
        assert_eq!(stored("REAL", "1.50"), Some(Stored::Real(1.5)));
        assert_eq!(stored("REAL", "0.5"), Some(Stored::Real(0.5)));
        assert_eq!(stored("TEXT", "007"), Some(Stored::Text(b"007")));
        assert_eq!(stored("TEXT", "[1, 2]"), Some(Stored::Text(b"[1, 2]")));
        for (text, expected) in
            [("t", Some(1)), ("No", Some(0)), ("TRUE", Some(1)), ("1", Some(1)), ("maybe", None), ("2", Some(2))]
        {
            assert_eq!(stored("BOOLEAN", text), expected.map(Stored::Integer), "{text:?}");
        }
    }

    /// Goal: a column for JSON takes JSON text as what it is, and refuses every other text instead of making a string of
    /// it. Method: values of every kind, beginnings of values, words, a number that SQLite would round.
    #[test]
    fn a_column_for_json_parses_and_never_guesses() {
        for (text, expected) in [
            ("12", Stored::Integer(12)),
            (" 1.5 ", Stored::Real(1.5)),
            ("true", Stored::Text(b"true")),
            ("null", Stored::Null),
            ("\"12\"", Stored::Text(b"\"12\"")),
            ("[1, 2]", Stored::Text(b"[1, 2]")),
            (" {\"a\": 1}\n", Stored::Text(b"{\"a\": 1}")),
        ] {
            assert_eq!(stored("JSON", text), Some(expected), "{text:?}");
        }
        for text in ["", " ", "{\"a\":", "[1,", "abc", "007", "+1", "t", "12 13", "\"a", "'a'", "2026-11-16", "1e400"] {
            assert_eq!(stored("JSON", text), None, "{text:?}");
        }
    }
}
