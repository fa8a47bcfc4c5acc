//! Dates and times as ISO 8601 and RFC 3339 spell them, as days and microseconds.
//!
//! Pure. Only these spellings, never `now`, `today` or a month's name: what is stored must not depend on when or where.
//! A time without an offset is UTC. What the column would round, or a database would turn into another day, is refused.
//! Not here: which years a database knows, and how it counts (each dialect's `moment`).

/// Days from 0000-03-01 to 2000-01-01, from where days are counted here.
const EPOCH_DAYS: i64 = 730_425;
/// The microseconds of a day.
pub const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;

/// Why a text is no moment for a column, as the end of a sentence that begins with the column.
pub type Flaw = &'static str;

/// No date at all.
pub const NO_DATE: Flaw = "takes dates like 2026-11-16";
/// No time of day at all.
pub const NO_TIME: Flaw = "takes times like 03:25:42 or 03:25:42.5";
/// No time of day with an offset.
pub const NO_ZONED_TIME: Flaw = "takes times like 03:25:42+01:00";
/// No moment at all.
pub const NO_MOMENT: Flaw = "takes times like 2026-11-16T03:25:42Z";
/// Not in the calendar.
pub const NO_SUCH_DAY: Flaw = "takes days of the calendar, and there is no such day";
/// Not on the clock.
pub const NO_SUCH_TIME: Flaw = "takes times of the day, and there is no such time";
/// A second that databases do not know.
pub const LEAP: Flaw = "cannot hold a leap second";
/// No offset from UTC.
pub const NO_SUCH_OFFSET: Flaw = "takes offsets from UTC like Z, +01:00 or -0330";
/// More digits of a second than the column keeps.
pub const TOO_FINE: Flaw = "keeps fewer digits of a second";
/// Before the first year that the column knows, or behind the last.
pub const OUT_OF_RANGE: Flaw = "cannot hold a year so far away";

/// What was read at the beginning of a text, and the rest.
pub type Read<'a, T> = Result<(T, &'a [u8]), Flaw>;

/// The days since 2000-01-01 of `2026-11-16`.
///
/// # Errors
/// What is wrong with it.
pub fn date(text: &[u8]) -> Result<i64, Flaw> {
    let (days, rest) = day(text, NO_DATE)?;
    if rest.is_empty() { Ok(days) } else { Err(NO_DATE) }
}

/// The microseconds since 2000-01-01 UTC of `2026-11-16T03:25:42.5+01:00`; an offset may be missing, and means UTC.
///
/// # Errors
/// What is wrong with it.
pub fn timestamp(text: &[u8], digits: u8) -> Result<i64, Flaw> {
    let (days, rest) = day(text, NO_MOMENT)?;
    let (micros, offset) = match rest.split_first() {
        None => (0, 0),
        Some((b'T' | b't' | b' ', rest)) => {
            let (micros, rest) = clock(rest, digits, NO_MOMENT)?;
            (micros, offset(rest)?)
        }
        Some(_) => return Err(NO_MOMENT),
    };
    // Some would take 24:00 for the next day, and others for this one.
    if micros == DAY {
        return Err(NO_SUCH_TIME);
    }
    days.checked_mul(DAY).and_then(|day| day.checked_add(micros - offset)).ok_or(OUT_OF_RANGE)
}

/// Year, month and day of so many days since 2000-01-01.
#[must_use]
pub fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Years that begin in March: the leap day is the last one.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + next, month, day)
}

/// `YYYY-MM-DD` at the beginning, as days since 2000-01-01. A year of more digits, or before the year 0, has a sign.
///
/// # Errors
/// What is wrong with it.
pub fn day(text: &[u8], flaw: Flaw) -> Read<'_, i64> {
    let (sign, rest) = match text.split_first() {
        Some((b'+', rest)) => (Some(1), rest),
        Some((b'-', rest)) => (Some(-1), rest),
        Some(_) | None => (None, text),
    };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(length == 4 || sign.is_some() && (5..=7).contains(&length)) {
        return Err(flaw);
    }
    let (year, rest) = number(rest, length).ok_or(flaw)?;
    let year = year * sign.unwrap_or(1);
    let (month, rest) = rest.strip_prefix(b"-").and_then(|rest| number(rest, 2)).ok_or(flaw)?;
    let (day, rest) = rest.strip_prefix(b"-").and_then(|rest| number(rest, 2)).ok_or(flaw)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    // The year 0 is mostly a zero date of another database, not the year before the year 1; that one is -0000 or +0000.
    if !(1..=last).contains(&day) || (year == 0 && sign.is_none()) {
        return Err(NO_SUCH_DAY);
    }
    // Years that begin in March: the leap day is the last one.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let centuries = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Ok((365 * year + centuries + (153 * month + 2) / 5 + day - 1 - EPOCH_DAYS, rest))
}

/// `HH:MM`, `HH:MM:SS` or `HH:MM:SS.ffffff` at the beginning, as microseconds.
///
/// # Errors
/// What is wrong with it.
pub fn clock(text: &[u8], digits: u8, flaw: Flaw) -> Read<'_, i64> {
    let (hours, rest) = number(text, 2).ok_or(flaw)?;
    let (minutes, rest) = rest.strip_prefix(b":").and_then(|rest| number(rest, 2)).ok_or(flaw)?;
    let (seconds, rest) = match rest.strip_prefix(b":") {
        Some(rest) => number(rest, 2).ok_or(flaw)?,
        None => (0, rest),
    };
    let (fraction, rest) = match rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) {
        Some(rest) => fraction(rest, digits, flaw)?,
        None => (0, rest),
    };
    let micros = ((hours * 60 + minutes) * 60 + seconds) * SECOND + fraction;
    match (minutes, seconds) {
        (0..=59, 0..=59) if micros <= DAY => Ok((micros, rest)),
        (0..=59, 60) if hours < 24 => Err(LEAP),
        _ => Err(NO_SUCH_TIME),
    }
}

/// Digits of a second as microseconds; those beyond `digits` must be zeros.
///
/// # Errors
/// What is wrong with it.
pub fn fraction(text: &[u8], digits: u8, flaw: Flaw) -> Read<'_, i64> {
    let end = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (read, rest) = text.split_at(end);
    let (kept, lost) = read.split_at(read.len().min(usize::from(digits)));
    if read.is_empty() {
        return Err(flaw);
    }
    if lost.iter().any(|digit| *digit != b'0') {
        return Err(TOO_FINE);
    }
    let value = (0..6).fold(0, |sum, at| sum * 10 + kept.get(at).map_or(0, |digit| i64::from(digit - b'0')));
    Ok((value, rest))
}

/// `Z`, `+01`, `+0100`, `+01:00` or nothing, as microseconds east of UTC.
///
/// # Errors
/// What is wrong with it.
pub fn offset(text: &[u8]) -> Result<i64, Flaw> {
    let (sign, rest) = match text.split_first() {
        None | Some((b'Z' | b'z', [])) => return Ok(0),
        Some((b'+', rest)) => (1, rest),
        Some((b'-', rest)) => (-1, rest),
        Some(_) => return Err(NO_SUCH_OFFSET),
    };
    let (hours, rest) = number(rest, 2).ok_or(NO_SUCH_OFFSET)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { number(rest, 2).ok_or(NO_SUCH_OFFSET)? };
    let fits = hours <= 15 && minutes <= 59 && rest.is_empty();
    if fits { Ok(sign * (hours * 60 + minutes) * 60 * SECOND) } else { Err(NO_SUCH_OFFSET) }
}

/// A number of exactly so many digits at the beginning.
#[must_use]
pub fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (read, rest) = text.split_at_checked(digits)?;
    let value =
        read.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))?;
    Some((value, rest))
}
