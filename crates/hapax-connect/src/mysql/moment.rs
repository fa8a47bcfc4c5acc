//! Dates and times as ISO 8601 and RFC 3339 spell them, as the numbers that we compare and the parts that MySQL takes.
//!
//! Pure. Only these spellings, never `20261116` or `now`: what is stored must not depend on when or where. A time
//! without an offset is UTC. Digits that the column would round away are refused, and so are MySQL's zero dates.

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
/// The microseconds of a day.
pub(super) const DAY: i64 = 86_400_000_000;
/// The last hour that a `time` can hold.
const LAST_HOUR: i64 = 838;
/// Before the year 10000 there are so many days since 1970.
const DAYS_END: i64 = 2_932_897;
/// The first day of the year 1.
const DAYS_START: i64 = -719_162;

/// The days since 1970-01-01 of `2026-11-16`.
pub(super) fn date(text: &[u8]) -> Option<i32> {
    let (days, rest) = day(text)?;
    rest.is_empty().then(|| i32::try_from(days).ok()).flatten()
}

/// The microseconds of `03:25:42.5`, or of a span such as `-120:00:00`.
pub(super) fn time(text: &[u8], digits: u8) -> Option<i64> {
    let (sign, rest) = text.strip_prefix(b"-").map_or((1, text), |rest| (-1, rest));
    let hour_digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (hours, rest) = number(rest, hour_digits).filter(|_| (2..=3).contains(&hour_digits))?;
    let (micros, rest) = within_hour(rest, digits)?;
    let fits = hours <= LAST_HOUR && rest.is_empty();
    fits.then_some(sign * (hours * 3_600_000_000 + micros))
}

/// The microseconds since 1970 UTC of `2026-11-16T03:25:42.5+01:00`; an offset may be missing, and means UTC.
pub(super) fn timestamp(text: &[u8], digits: u8) -> Option<i64> {
    let (days, rest) = day(text)?;
    let Some((separator, rest)) = rest.split_first() else { return Some(days * DAY) };
    if !matches!(separator, b'T' | b't' | b' ') {
        return None;
    }
    let (hours, rest) = number(rest, 2).filter(|(hours, _)| *hours < 24)?;
    let (micros, rest) = within_hour(rest, digits)?;
    let moment = days * DAY + hours * 3_600_000_000 + micros - offset(rest)?;
    // An offset may lead out of the years that MySQL knows.
    (DAYS_START * DAY..DAYS_END * DAY).contains(&moment).then_some(moment)
}

/// Year, month and day of so many days since 1970.
pub(super) fn civil(days: i64) -> (u16, u8, u8) {
    let days = days + EPOCH_DAYS;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Years that begin in March: the leap day is the last one.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let small = |number: i64| u8::try_from(number).unwrap_or_default();
    (u16::try_from(era * 400 + year + next).unwrap_or_default(), small(month), small(day))
}

/// `YYYY-MM-DD` at the beginning, as days since 1970-01-01.
fn day(text: &[u8]) -> Option<(i64, &[u8])> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(rest.strip_prefix(b"-")?, 2)?;
    let (day, rest) = number(rest.strip_prefix(b"-")?, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    // The year 0 is part of MySQL's zero dates.
    if year == 0 || !(1..=last).contains(&day) {
        return None;
    }
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - EPOCH_DAYS, rest))
}

/// `:MM`, `:MM:SS` or `:MM:SS.ffffff` at the beginning, as microseconds.
fn within_hour(text: &[u8], digits: u8) -> Option<(i64, &[u8])> {
    let (minutes, rest) = number(text.strip_prefix(b":")?, 2)?;
    let (seconds, rest) = match rest.strip_prefix(b":") {
        Some(rest) => number(rest, 2)?,
        None => (0, rest),
    };
    let (fraction, rest) = match rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) {
        Some(rest) => fraction(rest, digits)?,
        None => (0, rest),
    };
    (minutes <= 59 && seconds <= 59).then_some(((minutes * 60 + seconds) * 1_000_000 + fraction, rest))
}

/// Digits of a second as microseconds; those beyond `digits` must be zeros.
fn fraction(text: &[u8], digits: u8) -> Option<(i64, &[u8])> {
    let end = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (read, rest) = text.split_at(end);
    let (kept, lost) = read.split_at(read.len().min(usize::from(digits)));
    if read.is_empty() || lost.iter().any(|digit| *digit != b'0') {
        return None;
    }
    let value = (0..6).fold(0, |sum, at| sum * 10 + kept.get(at).map_or(0, |digit| i64::from(digit - b'0')));
    Some((value, rest))
}

/// `Z`, `+01`, `+0100`, `+01:00` or nothing, as microseconds east of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, rest) = match text.split_first() {
        None | Some((b'Z' | b'z', [])) => return Some(0),
        Some((b'+', rest)) => (1, rest),
        Some((b'-', rest)) => (-1, rest),
        Some(_) => return None,
    };
    let (hours, rest) = number(rest, 2)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { number(rest, 2)? };
    let fits = hours <= 15 && minutes <= 59 && rest.is_empty();
    fits.then_some(sign * (hours * 60 + minutes) * 60_000_000)
}

/// A number of exactly so many digits at the beginning.
fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (read, rest) = text.split_at_checked(digits)?;
    let value =
        read.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))?;
    Some((value, rest))
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
            assert_eq!(date(text.as_bytes()), Some(days), "{text}");
            assert_eq!(civil(days.into()), parts, "{text}");
        }
        for text in ["1900-02-29", "2026-13-01", "2026-04-31", "0000-01-01", "0000-00-00", "2026-00-00", "20261116", ""]
        {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }

    /// Goal: one moment is one number however it is spelled. Method: offsets, separators, fractions, the ends.
    #[test]
    fn a_moment_is_one_number_however_it_is_spelled() {
        let one = timestamp(b"2026-11-16T03:25:42.5Z", 6);
        assert_eq!(one, Some(20_773 * DAY + 12_342_500_000));
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
            assert_eq!(timestamp(text.as_bytes(), 6), None, "{text}");
        }
    }

    /// Goal: a `time` is a time of day or a span, and nothing is rounded away. Method: both signs, the ends, digits.
    #[test]
    fn times_are_spans_without_rounding() {
        assert_eq!(time(b"00:00", 0), Some(0));
        assert_eq!(time(b"-01:00:00.5", 1), Some(-3_600_500_000));
        assert_eq!(time(b"838:59:59", 0), Some(3_020_399_000_000));
        assert_eq!(time(b"00:00:00.123000", 3), Some(123_000));
        for text in ["839:00:00", "1:00", "24", "00:00:00.123456", "00:60", "--1:00", ""] {
            assert_eq!(time(text.as_bytes(), 3), None, "{text}");
        }
    }
}
