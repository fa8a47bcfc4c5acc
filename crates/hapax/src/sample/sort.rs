//! What a value is, for the column that is proposed for it. Pure.
//!
//! Invariant: a value of a sort is taken by the columns that sinks propose for that sort, read by the same functions.

use hapax_connect::table::described::{Numbers, Sort};
use hapax_connect::table::moment;
use hapax_connect::table::number::spelled_number;
use serde_json::Value;

/// Digits of a second that every proposed column keeps.
const SECOND_DIGITS: u8 = 6;

/// What a value of JSON is; `written` is its text, which has digits of numbers that the value may have lost.
pub(super) fn sort_of(value: &Value, written: &str) -> Sort {
    match value {
        Value::Null => Sort::Unknown,
        Value::Bool(_) => Sort::Boolean,
        Value::Number(_) => sort_of_number(written),
        Value::String(text) => sort_of_text(text),
        Value::Array(_) | Value::Object(_) => Sort::Json,
    }
}

fn sort_of_number(text: &str) -> Sort {
    Numbers::of(text).map_or(Sort::Text, Sort::Number)
}

/// A text that has a form of its own, from its first character to its last.
pub(super) fn sort_of_text(text: &str) -> Sort {
    let bytes = text.as_bytes();
    // Every database knows the years from 1 to 9999; others have a sign.
    let plain_year = bytes.first().is_some_and(u8::is_ascii_digit);
    let is_known = |micros: i64| (1..=9999).contains(&moment::civil(micros.div_euclid(moment::DAY)).0);
    let is_uuid = text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        });
    match text {
        _ if plain_year && moment::date(bytes).is_ok() => Sort::Date,
        _ if plain_year && moment::timestamp(bytes, SECOND_DIGITS).is_ok_and(is_known) => Sort::Timestamp,
        _ if is_uuid => Sort::Uuid,
        _ => Sort::Text,
    }
}

/// A text of CSV, which may stand for anything. What is more likely to be something else (`007`, `+49`, `5.`) is no number.
pub(super) fn sort_of_untyped(text: &str) -> Sort {
    // `.5` and `-.5`: with a zero before the point, as JSON would have it.
    let bare_point = text.starts_with('.') || text.starts_with("-.");
    let plain = if bare_point { text.replacen('.', "0.", 1) } else { text.to_owned() };
    let is_number =
        spelled_number(plain.as_bytes()).is_some_and(|number| number.parse::<f64>().is_ok_and(f64::is_finite));
    match text {
        "true" | "false" | "t" | "f" | "TRUE" | "FALSE" => Sort::Boolean,
        _ if is_number => sort_of_number(&plain),
        _ if text.starts_with(['{', '[']) && serde_json::from_str::<Value>(text).is_ok() => Sort::Json,
        _ => sort_of_text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only a whole text is a date, a time or a uuid, and only one that sinks take. Method: texts that begin with
    /// one, texts that only look like one, and some of each.
    #[test]
    fn a_text_that_begins_with_a_date_is_text() {
        for text in ["2026-11-16T03:25:42Z", "2026-11-16 03:25", "2026-11-16T03:25:42.123456+0100", "2026-11-16t03:25z"]
        {
            assert_eq!(sort_of_text(text), Sort::Timestamp, "{text}");
        }
        for text in [
            "2025-05-20 16:27:01 startup archives unpack",
            "2026-11-16 03",
            "2026-11-16T25:00:00Z",
            "2026-11-16T03:25:42.1234567Z",
            "2026-11-16T24:00:00Z",
            "2026-11-16T03:25:60Z",
            "9999-12-31T23:00:00-02:00",
            "0000-00-00 00:00:00",
            "2026-02-30",
            "2026-13-01",
            "+12026-11-16",
            "2026-11-16x",
            "2026-11-16 foo",
            "",
        ] {
            assert_eq!(sort_of_text(text), Sort::Text, "{text}");
        }
        assert_eq!(sort_of_text("2026-11-16"), Sort::Date);
        assert_eq!(sort_of_text("0c9e7a52-0000-4000-8000-000000000001"), Sort::Uuid);
    }

    /// Goal: a number of CSV is one that stands for nothing else. Method: spellings.
    #[test]
    fn a_text_of_csv_is_a_number_if_it_is_spelled_as_one() {
        let number = |text: &str| Numbers::of(text).map_or(Sort::Unknown, Sort::Number);
        for (text, sort) in [
            ("12", number("12")),
            ("-12", number("12")),
            ("0", number("12")),
            ("0.5", number("0.5")),
            ("9223372036854775809", number("9223372036854775809")),
            ("+4912345", Sort::Text),
            ("01234", Sort::Text),
            ("-012", Sort::Text),
            (".5", number("0.5")),
            ("-.516667", number("0.5")),
            (".", Sort::Text),
            ("5.", Sort::Text),
            ("1e999", Sort::Text),
            ("inf", Sort::Text),
            (" 12", Sort::Text),
            ("[1]", Sort::Json),
        ] {
            assert_eq!(sort_of_untyped(text), sort, "{text}");
        }
        let long = "1234567890123456789012";
        assert_eq!(sort_of(&serde_json::from_str(long).expect("a number"), long), number(long));
    }
}
