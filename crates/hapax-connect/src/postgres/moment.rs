//! Dates and times as ISO 8601 and RFC 3339 spell them, as the numbers that PostgreSQL keeps.
//!
//! Pure. Only these spellings, never `now`, `today` or a month's name: what is stored must not depend on when or where.
//! A time without an offset is UTC. Digits that the column would round away are refused.

/// Days from 0000-03-01 to 2000-01-01, where PostgreSQL's calendar begins.
const EPOCH_DAYS: i64 = 730_425;
const DAY: i64 = 86_400_000_000;

/// Later than every date; PostgreSQL's `infinity`.
pub(super) const LAST_DAY: i32 = i32::MAX;
/// Later than every timestamp.
pub(super) const LAST_MOMENT: i64 = i64::MAX;

/// The days since 2000-01-01 of `2026-11-16`, or of `infinity`.
pub(super) fn date(text: &[u8]) -> Option<i32> {
    match text {
        b"infinity" => Some(LAST_DAY),
        b"-infinity" => Some(i32::MIN),
        _ => {
            let (days, rest) = day(text)?;
            rest.is_empty().then(|| i32::try_from(days).ok()).flatten()
        }
    }
}

/// The microseconds since midnight of `03:25:42.5`.
pub(super) fn time(text: &[u8], digits: u8) -> Option<i64> {
    let (micros, rest) = clock(text, digits)?;
    rest.is_empty().then_some(micros)
}

/// The microseconds since 2000-01-01 UTC of `2026-11-16T03:25:42.5+01:00`; an offset may be missing, and means UTC.
pub(super) fn timestamp(text: &[u8], digits: u8) -> Option<i64> {
    match text {
        b"infinity" => return Some(LAST_MOMENT),
        b"-infinity" => return Some(i64::MIN),
        _ => {}
    }
    let (days, rest) = day(text)?;
    let Some((separator, rest)) = rest.split_first() else { return Some(days * DAY) };
    if !matches!(separator, b'T' | b't' | b' ') {
        return None;
    }
    let (micros, rest) = clock(rest, digits)?;
    Some(days * DAY + micros - offset(rest)?)
}

/// `YYYY-MM-DD` at the beginning, as days since 2000-01-01.
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
    // There is no year 0 in PostgreSQL's calendar.
    if year == 0 || !(1..=last).contains(&day) {
        return None;
    }
    // Years that begin in March: the leap day is the last one.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - EPOCH_DAYS, rest))
}

/// `HH:MM`, `HH:MM:SS` or `HH:MM:SS.ffffff` at the beginning, as microseconds.
fn clock(text: &[u8], digits: u8) -> Option<(i64, &[u8])> {
    let (hours, rest) = number(text, 2)?;
    let (minutes, rest) = number(rest.strip_prefix(b":")?, 2)?;
    let (seconds, rest) = match rest.strip_prefix(b":") {
        Some(rest) => number(rest, 2)?,
        None => (0, rest),
    };
    let (fraction, rest) = match rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) {
        Some(rest) => fraction(rest, digits)?,
        None => (0, rest),
    };
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    Some((((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction, rest))
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

    /// Goal: dates are counted as PostgreSQL counts them. Method: around its epoch, leap years and the ends.
    #[test]
    fn days_are_counted_from_the_year_2000() {
        for (text, days) in [
            ("2000-01-01", 0),
            ("1999-12-31", -1),
            ("2000-02-29", 59),
            ("2000-03-01", 60),
            ("1970-01-01", -10_957),
            ("2026-11-16", 9_816),
            ("9999-12-31", 2_921_939),
            ("0001-01-01", -730_119),
            ("infinity", i32::MAX),
        ] {
            assert_eq!(date(text.as_bytes()), Some(days), "{text}");
        }
        for text in ["1900-02-29", "2026-13-01", "2026-00-01", "2026-04-31", "0000-01-01", "2026-1-1", "today", ""] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }

    /// Goal: one moment is one number however it is spelled. Method: offsets, separators, fractions.
    #[test]
    fn a_moment_is_one_number_however_it_is_spelled() {
        let one = timestamp(b"2026-11-16T03:25:42.5Z", 6);
        assert_eq!(one, Some(9_816 * DAY + 12_342_500_000));
        for text in [
            "2026-11-16 03:25:42.500000",
            "2026-11-16t04:25:42.5+01",
            "2026-11-16T04:55:42.5+01:30",
            "2026-11-16T02:25:42.500000000-0100",
            "2026-11-16T03:25:42,5z",
        ] {
            assert_eq!(timestamp(text.as_bytes(), 6), one, "{text}");
        }
        assert_eq!(timestamp(b"2000-01-01", 6), Some(0));
        assert_eq!(time(b"00:00", 6), Some(0));
        for text in ["2026-11-16T24:00:00", "2026-11-16T03:25:60", "2026-11-16T3:25", "2026-11-16X03:25", "now", "5"] {
            assert_eq!(timestamp(text.as_bytes(), 6), None, "{text}");
        }
    }

    /// Goal: nothing is rounded away. Method: more digits than the column keeps.
    #[test]
    fn digits_that_would_be_lost_are_refused() {
        assert_eq!(time(b"00:00:00.1234567", 6), None);
        assert_eq!(time(b"00:00:00.123456", 3), None);
        assert_eq!(time(b"00:00:00.123000", 3), Some(123_000));
        assert_eq!(time(b"00:00:00.", 3), None);
    }
}
