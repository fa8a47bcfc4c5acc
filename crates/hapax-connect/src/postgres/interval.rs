//! Durations as ISO 8601 and PostgreSQL itself spell them, as the three numbers that PostgreSQL keeps, and back.
//!
//! Pure. `P1Y2M3DT4H5M6.7S`, `1 year 2 mons 3 days 04:05:06.7`, `04:05:06`. No word such as `ago`, and a fraction only
//! of seconds: half a month has no length. What the column would cut off is refused.

use crate::table::moment::{Flaw, fraction};

const NO_DURATION: Flaw = "takes durations like P1DT2H30M, 1 day 02:30:00 or 02:30:00";
const TOO_LONG: Flaw = "cannot hold a duration so long";
const CUT_OFF: Flaw = "keeps only the larger units of a duration";

/// A duration: its parts are not alike, for months and days have no fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// The smallest unit that a column keeps (`interval day to hour`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Least {
    /// `interval year`.
    Year,
    /// `interval month`.
    Month,
    /// `interval day`.
    Day,
    /// `interval hour`.
    Hour,
    /// `interval minute`.
    Minute,
    /// Seconds and their digits: what a plain `interval` keeps.
    Second,
}

impl Least {
    /// From the bits of a column's modifier that say which fields it keeps.
    pub(super) const fn of(fields: i32) -> Self {
        // The numbers of the fields in the server's own list: SECOND is 12, MINUTE 11, HOUR 10, DAY 3, MONTH 1, YEAR 2.
        match fields {
            _ if fields & (1 << 12) != 0 => Self::Second,
            _ if fields & (1 << 11) != 0 => Self::Minute,
            _ if fields & (1 << 10) != 0 => Self::Hour,
            _ if fields & (1 << 3) != 0 => Self::Day,
            _ if fields & (1 << 1) != 0 => Self::Month,
            _ if fields & (1 << 2) != 0 => Self::Year,
            _ => Self::Second,
        }
    }

    const fn keeps(self, value: Interval) -> bool {
        match self {
            Self::Year => value.months % 12 == 0 && value.days == 0 && value.micros == 0,
            Self::Month => value.days == 0 && value.micros == 0,
            Self::Day => value.micros == 0,
            Self::Hour => value.micros % 3_600_000_000 == 0,
            Self::Minute => value.micros % 60_000_000 == 0,
            Self::Second => true,
        }
    }
}

/// The duration that a text spells, if a column of these digits and this least unit keeps all of it.
pub(super) fn interval(text: &[u8], digits: u8, least: Least) -> Result<Interval, Flaw> {
    let text = std::str::from_utf8(text).map_err(|_| NO_DURATION)?;
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) if rest.starts_with('P') => (-1, rest),
        _ => (1, text),
    };
    let mut sum = Sum { digits, ..Sum::default() };
    match unsigned.strip_prefix('P') {
        Some(rest) => sum.designated(rest, sign)?,
        None => sum.worded(text)?,
    }
    let value = sum.value()?;
    if least.keeps(value) { Ok(value) } else { Err(CUT_OFF) }
}

/// A duration as the server reads it.
pub(super) fn show_interval(value: Interval) -> String {
    let sign = if value.micros < 0 { "-" } else { "" };
    let micros = value.micros.unsigned_abs();
    format!("P{}M{}DT{sign}{}.{:06}S", value.months, value.days, micros / 1_000_000, micros % 1_000_000)
}

#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i64,
    digits: u8,
    parts: u32,
}

impl Sum {
    fn value(&self) -> Result<Interval, Flaw> {
        if self.parts == 0 {
            return Err(NO_DURATION);
        }
        let whole = |part: i64| i32::try_from(part).map_err(|_| TOO_LONG);
        Ok(Interval { months: whole(self.months)?, days: whole(self.days)?, micros: self.micros })
    }

    fn add(&mut self, part: Part, amount: i64, unit: i64) -> Result<(), Flaw> {
        let place = match part {
            Part::Months => &mut self.months,
            Part::Days => &mut self.days,
            Part::Micros => &mut self.micros,
        };
        *place = amount.checked_mul(unit).and_then(|amount| place.checked_add(amount)).ok_or(TOO_LONG)?;
        self.parts += 1;
        Ok(())
    }

    /// `1Y2M3W4DT5H6M7.8S`, each once and in this order.
    fn designated(&mut self, text: &str, sign: i64) -> Result<(), Flaw> {
        const DATES: [(char, Part, i64); 4] =
            [('Y', Part::Months, 12), ('M', Part::Months, 1), ('W', Part::Days, 7), ('D', Part::Days, 1)];
        const TIMES: [(char, Part, i64); 3] =
            [('H', Part::Micros, 3_600_000_000), ('M', Part::Micros, 60_000_000), ('S', Part::Micros, 1_000_000)];
        let (dates, times) = text.split_once('T').map_or((text, None), |(dates, times)| (dates, Some(times)));
        if times == Some("") {
            return Err(NO_DURATION);
        }
        for (mut rest, mut units) in [(dates, &DATES[..]), (times.unwrap_or_default(), &TIMES[..])] {
            while !rest.is_empty() {
                let end = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or(NO_DURATION)?;
                let (amount, unit) = rest.split_at(end);
                let at = units.iter().position(|(name, ..)| unit.starts_with(*name)).ok_or(NO_DURATION)?;
                let (name, part, size) = units[at];
                if name == 'S' {
                    let micros = self.seconds(amount)?;
                    self.add(part, micros, sign)?;
                } else {
                    self.add(part, whole(amount)?, sign * size)?;
                }
                (rest, units) = (&unit[1..], &units[at + 1..]);
            }
        }
        Ok(())
    }

    /// `1 year 2 mons -3 days +04:05:06.7`, as the server prints it.
    fn worded(&mut self, text: &str) -> Result<(), Flaw> {
        let mut words = text.split(' ');
        while let Some(word) = words.next() {
            if word.contains(':') {
                self.clock(word)?;
                return if words.next().is_none() { Ok(()) } else { Err(NO_DURATION) };
            }
            let (part, unit) = match words.next().unwrap_or_default() {
                "year" | "years" => (Part::Months, 12),
                "mon" | "mons" | "month" | "months" => (Part::Months, 1),
                "week" | "weeks" => (Part::Days, 7),
                "day" | "days" => (Part::Days, 1),
                "hour" | "hours" => (Part::Micros, 3_600_000_000),
                "minute" | "minutes" | "min" | "mins" => (Part::Micros, 60_000_000),
                "second" | "seconds" | "sec" | "secs" => {
                    let micros = self.seconds(word)?;
                    self.add(Part::Micros, micros, 1)?;
                    continue;
                }
                _ => return Err(NO_DURATION),
            };
            self.add(part, whole(word)?, unit)?;
        }
        Ok(())
    }

    /// `04:05`, `04:05:06.7`, `-100:00:00`.
    fn clock(&mut self, text: &str) -> Result<(), Flaw> {
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().unwrap_or("0");
        let (hours, minutes, seconds) = (next(), next(), next());
        let two_digits = |text: &str| text.split('.').next().is_some_and(|whole| whole.len() == 2);
        if hours.starts_with(['-', '+']) || !two_digits(minutes) || !(seconds == "0" || two_digits(seconds)) {
            return Err(NO_DURATION);
        }
        let seconds = self.seconds(seconds)?;
        let minutes = whole(minutes)?;
        if !(0..60).contains(&minutes) || !(0..60_000_000).contains(&seconds) {
            return Err(NO_DURATION);
        }
        self.add(Part::Micros, whole(hours)?, sign * 3_600_000_000)?;
        self.add(Part::Micros, minutes, sign * 60_000_000)?;
        self.add(Part::Micros, seconds, sign)
    }

    /// `-6.75` as microseconds.
    fn seconds(&self, text: &str) -> Result<i64, Flaw> {
        let Some((before, behind)) = text.split_once('.') else {
            return whole(text)?.checked_mul(1_000_000).ok_or(TOO_LONG);
        };
        let (behind, rest) = fraction(behind.as_bytes(), self.digits, NO_DURATION)?;
        if !rest.is_empty() {
            return Err(NO_DURATION);
        }
        let micros = whole(before)?.checked_mul(1_000_000).ok_or(TOO_LONG)?;
        micros.checked_add(if before.starts_with('-') { -behind } else { behind }).ok_or(TOO_LONG)
    }
}

#[derive(Clone, Copy)]
enum Part {
    Months,
    Days,
    Micros,
}

fn whole(text: &str) -> Result<i64, Flaw> {
    if text.contains('.') {
        return Err(TOO_FINE_UNIT);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NO_DURATION);
    }
    text.parse().map_err(|_| TOO_LONG)
}

const TOO_FINE_UNIT: Flaw = "takes fractions of seconds only: half a month has no length";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::moment::TOO_FINE;

    fn read(text: &str) -> Result<Interval, Flaw> {
        interval(text.as_bytes(), 6, Least::Second)
    }

    /// Goal: a duration is what its text says, in both spellings. Method: each unit, signs, fractions.
    #[test]
    fn a_duration_is_read_in_both_spellings() {
        let is = |months, days, micros| Ok(Interval { months, days, micros });
        for (text, value) in [
            ("P1DT2H", is(0, 1, 7_200_000_000)),
            ("P1Y2M3W4DT5H6M7.5S", is(14, 25, 18_367_500_000)),
            ("-P1M", is(-1, 0, 0)),
            ("P-1MT-0.5S", is(-1, 0, -500_000)),
            ("PT0S", is(0, 0, 0)),
            ("1 year 2 mons 3 days 04:05:06.7", is(14, 3, 14_706_700_000)),
            ("-1 days +02:03:00", is(0, -1, 7_380_000_000)),
            ("100:00:00", is(0, 0, 360_000_000_000)),
            ("-00:00:01", is(0, 0, -1_000_000)),
            ("90 minutes", is(0, 0, 5_400_000_000)),
            ("2 weeks", is(0, 14, 0)),
        ] {
            assert_eq!(read(text), value, "{text}");
        }
        for text in [
            "",
            "P",
            "PT",
            "P1",
            "1",
            "1 fortnight",
            "tomorrow",
            "1 day ago",
            "P1DT",
            "1:2",
            "01:60",
            "P1D2Y",
            "01:00:00 1 day",
        ] {
            assert_eq!(read(text), Err(NO_DURATION), "{text}");
        }
        assert_eq!(read("P0.5M"), Err(TOO_FINE_UNIT));
        assert_eq!(read("PT0.0000001S"), Err(TOO_FINE));
        assert_eq!(read("P99999999999Y"), Err(TOO_LONG));
        assert_eq!(read("PT99999999999999H"), Err(TOO_LONG));
    }

    /// Goal: what a narrow column would cut off is refused. Method: each unit with a value above and below it.
    #[test]
    fn a_narrow_column_refuses_smaller_units() {
        for (least, good, bad) in [
            (Least::Year, "P2Y", "P2Y1M"),
            (Least::Month, "P2Y1M", "P1D"),
            (Least::Day, "P1D", "PT1H"),
            (Least::Hour, "P1DT1H", "PT1M"),
            (Least::Minute, "PT1H1M", "PT1S"),
        ] {
            assert!(interval(good.as_bytes(), 6, least).is_ok(), "{least:?}");
            assert_eq!(interval(bad.as_bytes(), 6, least), Err(CUT_OFF), "{least:?}");
        }
    }

    proptest! {
        /// Goal: what is shown is what was read. Method: any duration.
        #[test]
        fn a_duration_reads_back_as_it_is_shown(months in -9999_i32..9999, days in any::<i32>(), micros in -9_000_000_000_000_000_i64..9_000_000_000_000_000) {
            let value = Interval { months, days, micros };
            prop_assert_eq!(read(&show_interval(value)), Ok(value));
        }
    }
}
