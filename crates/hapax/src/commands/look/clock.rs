//! Times for people.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How long ago: `7s`, `3m`, `5h`, `2d`.
pub(super) fn age(at_ms: u64) -> String {
    span(now_ms().saturating_sub(at_ms))
}

/// A span of time in its largest fitting unit.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `2026-11-16 03:25:33 UTC`.
pub(crate) fn moment(at_ms: u64) -> String {
    let (days, seconds) = (at_ms / 86_400_000, at_ms / 1000 % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day of a day since 1970, by eras of 400 years that begin in March.
const fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a stored time reads as the clock showed it. Method: the first day, a leap day, ends of years.
    #[test]
    fn a_time_reads_as_the_clock_showed_it() {
        assert_eq!(moment(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(951_827_696_000), "2000-02-29 12:34:56 UTC");
        assert_eq!(moment(1_735_689_599_999), "2024-12-31 23:59:59 UTC");
        assert_eq!(moment(1_735_689_600_000), "2025-01-01 00:00:00 UTC");
    }

    /// Goal: a span shows in the unit that a person would say.
    #[test]
    fn a_span_has_a_fitting_unit() {
        assert_eq!([999, 119_000, 120_000, 7_200_000, 172_800_000].map(span), ["0s", "119s", "2m", "2h", "2d"]);
    }
}
