//! Durations, byte sizes, shares and rates as people write them: `30d`, `64MiB`, `10%`, `500/s`.
//!
//! Reads and prints text; nothing else. Invariant: what is printed reads back as the same value.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A text that is no quantity of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no {kind}: {why}; write {form}")]
pub struct NoQuantity {
    /// What was written.
    pub text: String,
    /// What was expected: `duration`, `size`, `share` or `rate`.
    pub kind: &'static str,
    /// What is wrong with it.
    pub why: String,
    /// What would be right, with an example.
    pub form: &'static str,
}

/// One kind of quantity: its name, its form, its units from the smallest to the largest.
struct Kind {
    name: &'static str,
    form: &'static str,
    units: &'static [(&'static str, u64)],
}

const DURATION: Kind = Kind {
    name: "duration",
    form: "a whole number and ms, s, m, h or d, such as 200ms or 30d",
    units: &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)],
};

const SIZE: Kind = Kind {
    name: "size",
    form: "a whole number of bytes, or one with KiB, MiB, GiB, TiB (1024) or KB, MB, GB, TB (1000), such as 64MiB",
    units: &[
        ("B", 1),
        ("KB", 1000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ],
};

const SHARE: Kind = Kind {
    name: "share",
    form: "a percentage between 0% and 100% or parts per thousand, such as 10%, 0.5% or 5‰",
    units: &[("‰", 1), ("%", 10)],
};

const RATE: Kind = Kind {
    name: "rate",
    form: "a whole number above zero, a slash and s, m or h, such as 500/s",
    units: &[("/h", 3600), ("/m", 60), ("/s", 1)],
};

impl Kind {
    fn refuse(&self, text: &str, why: impl Into<String>) -> NoQuantity {
        NoQuantity { text: text.to_owned(), kind: self.name, why: why.into(), form: self.form }
    }

    /// The digits before the unit and the unit, which may be empty.
    fn split<'a>(&self, text: &'a str) -> Result<(&'a str, &'a str), NoQuantity> {
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        match number {
            "" if trimmed.is_empty() => Err(self.refuse(text, "it is empty")),
            "" => Err(self.refuse(text, "it does not begin with a digit")),
            _ => Ok((number, unit.trim_start())),
        }
    }

    fn whole(&self, text: &str, number: &str) -> Result<u64, NoQuantity> {
        if number.contains('.') {
            return Err(self.refuse(text, "the number is not whole"));
        }
        number.parse().map_err(|_| self.refuse(text, "the number is too large"))
    }

    fn factor(&self, text: &str, unit: &str) -> Result<u64, NoQuantity> {
        let known = self.units.iter().find(|(name, _)| *name == unit);
        match (known, unit) {
            (Some((_, factor)), _) => Ok(*factor),
            (None, "") => Err(self.refuse(text, "the unit is missing")),
            (None, _) => Err(self.refuse(text, format!("the unit \"{unit}\" is unknown"))),
        }
    }

    fn amount(&self, text: &str, number: &str, unit: &str) -> Result<u64, NoQuantity> {
        let factor = self.factor(text, unit)?;
        self.whole(text, number)?.checked_mul(factor).ok_or_else(|| self.refuse(text, "the number is too large"))
    }
}

/// Reads a duration such as `200ms`, `5s`, `10m`, `1h` or `30d`.
///
/// # Errors
/// [`NoQuantity`] if the unit is missing or unknown, or the number is not whole or too large.
pub fn parse_duration(text: &str) -> Result<Duration, NoQuantity> {
    let (number, unit) = DURATION.split(text)?;
    DURATION.amount(text, number, unit).map(Duration::from_millis)
}

/// Prints a duration in the largest unit that divides it, as [`parse_duration`] reads it.
///
/// A duration finer than a millisecond, which no text can state, is printed as Rust prints it.
#[must_use]
pub fn print_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    if !duration.subsec_nanos().is_multiple_of(1_000_000) {
        return format!("{duration:?}");
    }
    let (unit, factor) = DURATION
        .units
        .iter()
        .rev()
        .find(|(_, f)| millis != 0 && millis.is_multiple_of(u128::from(*f)))
        .unwrap_or(&("ms", 1));
    format!("{}{unit}", millis / u128::from(*factor))
}

/// A number of bytes, such as `64MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// That many times 1024 × 1024 bytes.
    #[must_use]
    pub const fn mebibytes(count: u64) -> Self {
        Self(count << 20)
    }

    /// The number of bytes, for sizes of memory.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = NoQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = SIZE.split(text)?;
        SIZE.amount(text, number, if unit.is_empty() { "B" } else { unit }).map(Self)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let divides = |factor: u64| self.0 != 0 && self.0.is_multiple_of(factor);
        match SIZE.units.iter().rev().find(|(_, factor)| *factor > 1 && divides(*factor)) {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A part of a whole, in parts per thousand: `10%` is 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// That many parts per thousand; more than the whole is the whole.
    #[must_use]
    pub const fn of_mille(parts: u32) -> Self {
        Self(if parts > 1000 { 1000 } else { parts })
    }

    /// Parts per thousand, 0 to 1000.
    #[must_use]
    pub const fn per_mille(self) -> u32 {
        self.0
    }
}

impl FromStr for Share {
    type Err = NoQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = SHARE.split(text)?;
        let factor = SHARE.factor(text, unit)?;
        let parts = match (number.split_once('.'), factor) {
            (None, _) => SHARE.amount(text, number, unit)?,
            (Some((whole, tenth)), 10) if tenth.len() == 1 => {
                let tenth = SHARE.whole(text, tenth)?;
                SHARE.amount(text, whole, unit)?.saturating_add(tenth)
            }
            (Some(_), _) => return Err(SHARE.refuse(text, "it is finer than one part per thousand")),
        };
        match u32::try_from(parts) {
            Ok(parts @ 0..=1000) => Ok(Self(parts)),
            Ok(_) | Err(_) => Err(SHARE.refuse(text, "it is more than the whole")),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{}%", self.0 / 10),
            tenth => write!(f, "{}.{tenth}%", self.0 / 10),
        }
    }
}

/// So many in so much time, such as `500/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// How many; never 0.
    pub count: u64,
    /// In how many seconds: 1, 60 or 3600.
    pub seconds: u64,
}

impl Rate {
    /// The time from one to the next, if they come evenly.
    #[must_use]
    pub fn gap(self) -> Duration {
        let nanos = u128::from(self.seconds) * 1_000_000_000 / u128::from(self.count);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many are due after `elapsed`, counted from none at the start.
    #[must_use]
    pub fn due(self, elapsed: Duration) -> u64 {
        let due =
            elapsed.as_nanos().saturating_mul(u128::from(self.count)) / (u128::from(self.seconds) * 1_000_000_000);
        u64::try_from(due).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = NoQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = RATE.split(text)?;
        let seconds = RATE.factor(text, unit)?;
        match RATE.whole(text, number)? {
            0 => Err(RATE.refuse(text, "zero would never come")),
            count => Ok(Self { count, seconds }),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = RATE.units.iter().find(|(_, seconds)| *seconds == self.seconds).map_or("/s", |(unit, _)| unit);
        write!(f, "{}{unit}", self.count)
    }
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
