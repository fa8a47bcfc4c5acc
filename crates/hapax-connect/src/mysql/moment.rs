//! Dates and times as the numbers that we compare and the parts that MySQL takes. How they are spelled is
//! `table::moment`'s affair.
//!
//! Pure. Counted from 1970-01-01. MySQL knows the years from 1 to 9999; its zero dates are refused.

use crate::table::moment::{self, Flaw, NO_SUCH_TIME, OUT_OF_RANGE, fraction, number};

/// The microseconds of a day.
pub(super) const DAY: i64 = moment::DAY;
/// Days from 1970-01-01 to 2000-01-01.
const DAYS_BEFORE_2000: i64 = 10_957;
/// The last hour that a `time` can hold.
const LAST_HOUR: i64 = 838;
/// The days of the years from 1 to 9999.
const DAYS: std::ops::Range<i64> = -719_162..2_932_897;

const NO_SPAN: Flaw = "takes times like 03:25:42, or spans like -120:00:00";
const TOO_LONG: Flaw = "takes spans of less than 839 hours";

/// The days since 1970-01-01 of `2026-11-16`.
pub(super) fn date(text: &[u8]) -> Result<i32, Flaw> {
    let days = moment::date(text)? + DAYS_BEFORE_2000;
    i32::try_from(days).ok().filter(|_| DAYS.contains(&days)).ok_or(OUT_OF_RANGE)
}

/// The microseconds of `03:25:42.5`, or of a span such as `-120:00:00`.
pub(super) fn time(text: &[u8], digits: u8) -> Result<i64, Flaw> {
    let (sign, rest) = text.strip_prefix(b"-").map_or((1, text), |rest| (-1, rest));
    let hour_digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (hours, rest) = number(rest, hour_digits).filter(|_| (2..=3).contains(&hour_digits)).ok_or(NO_SPAN)?;
    let (micros, rest) = within_hour(rest, digits)?;
    if !rest.is_empty() {
        return Err(NO_SPAN);
    }
    if hours <= LAST_HOUR { Ok(sign * (hours * 3_600_000_000 + micros)) } else { Err(TOO_LONG) }
}

/// The microseconds since 1970 UTC of `2026-11-16T03:25:42.5+01:00`; an offset may be missing, and means UTC.
pub(super) fn timestamp(text: &[u8], digits: u8) -> Result<i64, Flaw> {
    let moment = moment::timestamp(text, digits)?.checked_add(DAYS_BEFORE_2000 * DAY).ok_or(OUT_OF_RANGE)?;
    // An offset may lead out of the years that MySQL knows.
    if (DAYS.start * DAY..DAYS.end * DAY).contains(&moment) { Ok(moment) } else { Err(OUT_OF_RANGE) }
}

/// Year, month and day of so many days since 1970.
pub(super) fn civil(days: i64) -> (u16, u8, u8) {
    let (year, month, day) = moment::civil(days - DAYS_BEFORE_2000);
    let small = |number: i64| u8::try_from(number).unwrap_or_default();
    (u16::try_from(year).unwrap_or_default(), small(month), small(day))
}

/// `:MM`, `:MM:SS` or `:MM:SS.ffffff` at the beginning, as microseconds.
fn within_hour(text: &[u8], digits: u8) -> moment::Read<'_, i64> {
    let (minutes, rest) = text.strip_prefix(b":").and_then(|rest| number(rest, 2)).ok_or(NO_SPAN)?;
    let (seconds, rest) = match rest.strip_prefix(b":") {
        Some(rest) => number(rest, 2).ok_or(NO_SPAN)?,
        None => (0, rest),
    };
    let (fraction, rest) = match rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) {
        Some(rest) => fraction(rest, digits, NO_SPAN)?,
        None => (0, rest),
    };
    if minutes > 59 || seconds > 59 {
        return Err(NO_SUCH_TIME);
    }
    Ok(((minutes * 60 + seconds) * 1_000_000 + fraction, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a date is counted and taken apart again. Method: around 1970, leap years and the ends.
    #[test]
    fn days_are_counted_from_1970_and_back() {
        for (text, days, parts) in [
            ("1970-01-01", 0, (1970, 1, 1)),
            ("1969-12-31", -1, (1969, 12, 31)),
            ("2000-02-29", 11_016, (2000, 2, 29)),
            ("2000-03-01", 11_017, (2000, 3, 1)),
            ("2026-11-16", 20_773, (2026, 11, 16)),
            ("9999-12-31", 2_932_896, (9999, 12, 31)),
            ("0001-01-01", -719_162, (1, 1, 1)),
        ] {
            assert_eq!(date(text.as_bytes()), Ok(days), "{text}");
            assert_eq!(civil(days.into()), parts, "{text}");
        }
        for text in ["1900-02-29", "2026-13-01", "2026-04-31", "0000-01-01", "0000-00-00", "2026-00-00", "20261116", ""]
        {
            assert!(date(text.as_bytes()).is_err(), "{text}");
        }
    }

    /// Goal: one moment is one number however it is spelled. Method: offsets, separators, fractions, the ends.
    #[test]
    fn a_moment_is_one_number_however_it_is_spelled() {
        let one = timestamp(b"2026-11-16T03:25:42.5Z", 6);
        assert_eq!(one, Ok(20_773 * DAY + 12_342_500_000));
        for text in [
            "2026-11-16 03:25:42.500000",
            "2026-11-16t04:25:42.5+01",
            "2026-11-16T04:55:42.5+01:30",
            "2026-11-16T02:25:42.500000000-0100",
            "2026-11-16T03:25:42,5z",
        ] {
            assert_eq!(timestamp(text.as_bytes(), 6), one, "{text}");
        }
        for text in [
            "2026-11-16T24:00:00",
            "2026-11-16T03:25:60",
            "2026-11-16T3:25",
            "0000-00-00 00:00:00",
            "9999-12-31T23:59:59-01:00",
            "0001-01-01T00:00:00+01:00",
            "now",
        ] {
            assert!(timestamp(text.as_bytes(), 6).is_err(), "{text}");
        }
    }

    /// Goal: a `time` is a time of day or a span, and nothing is rounded away. Method: both signs, the ends, digits.
    #[test]
    fn times_are_spans_without_rounding() {
        assert_eq!(time(b"00:00", 0), Ok(0));
        assert_eq!(time(b"-01:00:00.5", 1), Ok(-3_600_500_000));
        assert_eq!(time(b"838:59:59", 0), Ok(3_020_399_000_000));
        assert_eq!(time(b"00:00:00.123000", 3), Ok(123_000));
        for text in ["839:00:00", "1:00", "24", "00:00:00.123456", "00:60", "--1:00", ""] {
            assert!(time(text.as_bytes(), 3).is_err(), "{text}");
        }
    }
}
