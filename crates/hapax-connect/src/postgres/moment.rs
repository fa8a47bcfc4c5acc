//! Dates and times as the numbers that PostgreSQL keeps, and back. How they are spelled is `table::moment`'s affair.
//!
//! Pure. PostgreSQL counts from 2000-01-01 and knows the years from 4714 BC on; `infinity` is later than all of them.

use crate::table::moment::{
    self, DAY, Flaw, NO_SUCH_OFFSET, NO_TIME, NO_ZONED_TIME, OUT_OF_RANGE, civil, clock, offset,
};

const SECOND: i64 = 1_000_000;

/// 4714-11-24 BC to 5874897-12-31, as days.
const DATES: std::ops::RangeInclusive<i64> = -2_451_545..=2_145_031_948;
/// 4714-11-24 BC to 294276-12-31, as microseconds.
const MOMENTS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// Later than every date; PostgreSQL's `infinity`.
const LAST_DAY: i32 = i32::MAX;
/// Later than every timestamp.
const LAST_MOMENT: i64 = i64::MAX;

/// The days since 2000-01-01 of `2026-11-16`, or of `infinity`.
pub(super) fn date(text: &[u8]) -> Result<i32, Flaw> {
    match text {
        b"infinity" => Ok(LAST_DAY),
        b"-infinity" => Ok(i32::MIN),
        _ => {
            let days = moment::date(text)?;
            i32::try_from(days).ok().filter(|_| DATES.contains(&days)).ok_or(OUT_OF_RANGE)
        }
    }
}

/// The microseconds since midnight of `03:25:42.5`, or of `24:00:00`.
pub(super) fn time(text: &[u8], digits: u8) -> Result<i64, Flaw> {
    let (micros, rest) = clock(text, digits, NO_TIME)?;
    if rest.is_empty() { Ok(micros) } else { Err(NO_TIME) }
}

/// The microseconds since midnight of `03:25:42.5+01:00`, and the seconds west of UTC; no offset is UTC.
pub(super) fn zoned_time(text: &[u8], digits: u8) -> Result<(i64, i32), Flaw> {
    let (micros, rest) = clock(text, digits, NO_ZONED_TIME)?;
    let west = -offset(rest)? / SECOND;
    Ok((micros, i32::try_from(west).map_err(|_| NO_SUCH_OFFSET)?))
}

/// The microseconds since 2000-01-01 UTC of `2026-11-16T03:25:42.5+01:00`, or of `infinity`.
pub(super) fn timestamp(text: &[u8], digits: u8) -> Result<i64, Flaw> {
    match text {
        b"infinity" => Ok(LAST_MOMENT),
        b"-infinity" => Ok(i64::MIN),
        _ => moment::timestamp(text, digits).and_then(|moment| {
            let known = MOMENTS.contains(&moment);
            if known { Ok(moment) } else { Err(OUT_OF_RANGE) }
        }),
    }
}

/// Days since 2000-01-01 as the server reads them.
pub(super) fn show_date(days: i64) -> String {
    if days == i64::from(LAST_DAY) || days == i64::from(i32::MIN) {
        return if days > 0 { "infinity" } else { "-infinity" }.to_owned();
    }
    let (year, month, day) = civil(days);
    let (year, before) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    format!("{year:04}-{month:02}-{day:02}{before}")
}

/// Microseconds since midnight as the server reads them.
pub(super) fn show_time(micros: i64) -> String {
    let (seconds, fraction) = (micros / SECOND, micros % SECOND);
    format!("{:02}:{:02}:{:02}.{fraction:06}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Microseconds since midnight and seconds west of UTC as the server reads them.
pub(super) fn show_zoned_time(micros: i64, west: i32) -> String {
    let (sign, offset) = (if west > 0 { '-' } else { '+' }, west.unsigned_abs());
    format!("{}{sign}{:02}:{:02}", show_time(micros), offset / 3600, offset / 60 % 60)
}

/// Microseconds since 2000-01-01 UTC as the server reads them, with or without a zone.
pub(super) fn show_timestamp(micros: i64) -> String {
    if micros == LAST_MOMENT || micros == i64::MIN {
        return if micros > 0 { "infinity" } else { "-infinity" }.to_owned();
    }
    let (date, time) = (show_date(micros.div_euclid(DAY)), show_time(micros.rem_euclid(DAY)));
    match date.strip_suffix(" BC") {
        Some(date) => format!("{date} {time}+00 BC"),
        None => format!("{date} {time}+00"),
    }
}

#[cfg(test)]
#[path = "moment_tests.rs"]
mod tests;
