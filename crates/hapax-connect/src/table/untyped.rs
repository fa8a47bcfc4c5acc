//! Texts that stand for values of any type, as CSV has them: each is read by the type of the column that it goes into.
//!
//! Pure. Invariant: a text that the column takes as it stands is taken so; only where it is refused is it read as the
//! number or the truth value that it spells. A column for JSON takes JSON text and nothing else: whether `12` is a number
//! or a string is never guessed. Not here: what a column takes (each dialect's `convert`).

use hapax_engine::batch::FieldBytes;
use hapax_model::letter::Cause;
use serde_json::value::RawValue;

use super::column::{LiveColumn, Why};
use super::number::{is_written_number, plain_number};

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
        let read = boolean(column, text).or_else(|| match column.takes_numbers() {
            true => number(text),
            // Elsewhere the text itself must not change, nor two texts become one value.
            false => plain_number(text).map(|text| FieldBytes::Number(text.as_bytes())),
        });
        read.and_then(|read| column.field(read).ok()).ok_or_else(|| with_cure(refused, text))
    })
}

/// Names the setting that makes NULL of a text which stands for no value in many files.
fn with_cure(mut refused: Cause, text: &[u8]) -> Cause {
    const WORDS: [&str; 9] = ["null", "\\N", "na", "n/a", "#n/a", "none", "nil", "-", "?"];
    let Ok(text) = std::str::from_utf8(text) else { return refused };
    if WORDS.iter().any(|word| word.eq_ignore_ascii_case(text)) {
        let cure = format!("; if {text} stands for no value, say so in the source: csv: {{ null: {text:?} }}");
        refused.message.push_str(&cure);
        // A cause of its own, so that its example has the cure.
        refused.fingerprint.push_str(&format!("; {text} may stand for no value"));
    }
    refused
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

/// The number that a text spells: as JSON does, or with spaces around it, a plus sign, zeros at its beginning, a point at its beginning
/// or end.
fn number(text: &[u8]) -> Option<FieldBytes<'_>> {
    let text = text.trim_ascii();
    let bare = match text.strip_prefix(b"+") {
        Some([b'-', ..]) => return None,
        Some(bare) => bare,
        None => text,
    };
    is_written_number(bare).then_some(FieldBytes::Number(bare))
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
        for (text, expected) in [
            ("12", Some(12)),
            ("-7", Some(-7)),
            ("+5", Some(5)),
            ("007", Some(7)),
            (" 3 ", Some(3)),
            ("0", Some(0)),
            ("-007", Some(-7)),
            ("5.", Some(5)),
            ("-5.", Some(-5)),
            ("+05.0", Some(5)),
            (".5e1", Some(5)),
        ] {
            assert_eq!(stored("INTEGER", text), expected.map(Stored::Integer), "{text:?}");
        }
        for text in [
            "", "x", "1x", "t", "true", "1.5", "0x1f", "--1", "+-1", "1 2", "1,5", "NaN", ".", "-.", ".e1", ".5", "1.e",
        ] {
            assert_eq!(stored("INTEGER", text), None, "{text:?}");
        }
        assert_eq!(stored("REAL", "1.50"), Some(Stored::Real(1.5)));
        assert_eq!(stored("REAL", "0.5"), Some(Stored::Real(0.5)));
        for (text, expected) in
            [(".5", 0.5), ("-.5", -0.5), ("+.25", 0.25), ("00.5", 0.5), ("5.", 5.0), (" -1.5e2 ", -150.0)]
        {
            assert_eq!(stored("REAL", text), Some(Stored::Real(expected)), "{text:?}");
        }
        assert_eq!(stored("NUMERIC", "-.516667"), Some(Stored::Real(-0.516_667)));
        for text in ["007", " 7", "+7", ".5", "1e3", "10e2", "1.50", "1.0", "-0"] {
            assert_eq!(stored("DATE", text), None, "{text:?}: SQLite would make a number of it, and so do we not");
        }
        assert_eq!(stored("DATE", "1000"), Some(Stored::Integer(1000)), "it reads back as it stood");
        assert_eq!(stored("TEXT", "007"), Some(Stored::Text(b"007")));
        assert_eq!(stored("TEXT", "[1, 2]"), Some(Stored::Text(b"[1, 2]")));
        for (text, expected) in
            [("t", Some(1)), ("No", Some(0)), ("TRUE", Some(1)), ("1", Some(1)), ("maybe", None), ("2", Some(2))]
        {
            assert_eq!(stored("BOOLEAN", text), expected.map(Stored::Integer), "{text:?}");
        }
    }

    /// Goal: a text that stands for no value in many files is refused with the word that makes it NULL, where it is refused at all.
    /// Method: such texts and another one, into columns of numbers and of text.
    #[test]
    fn a_text_for_no_value_names_its_cure() {
        let column = |declared: &str, affinity| {
            let (name, declared) = ("c".to_owned(), declared.to_owned());
            SqliteColumn { name, declared, affinity, required: false, fills_itself: false }
        };
        let refused = |text: &'static str| {
            field(&column("INTEGER", Affinity::Integer), FieldBytes::Text(text.as_bytes())).unwrap_err()
        };
        for text in ["NULL", "null", "\\N", "NA", "n/a", "N/A", "None", "nil", "-"] {
            let cause = refused(text);
            let cure = format!("if {text} stands for no value, say so in the source: csv: {{ null: ");
            assert!(cause.message.contains(&cure), "{}", cause.message);
            assert!(cause.message.contains(": ") && cause.fingerprint.contains("also as text like 12"), "{cause:?}");
            assert!(cause.fingerprint.ends_with(&format!("{text} may stand for no value")), "{cause:?}");
            assert_ne!(cause.fingerprint, refused("1,50").fingerprint, "a cause of its own");
            assert!(field(&column("TEXT", Affinity::Text), FieldBytes::Text(text.as_bytes())).is_ok());
        }
        assert!(!refused("12x").message.contains("null"));
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
