//! A live table as a person would describe it, whatever its database: for whoever writes a configuration for it.
//!
//! Reads: a live table that a dialect has read. Writes: nothing. Also the types that a new table would have for a sample
//! of events. Not here: reading (each dialect's `describe`).

use hapax_model::field::FieldPath;

use super::column::LiveColumn;
use super::live::LiveTable;
use super::number::{Decimal, double};

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedTable {
    /// Its columns in their order; those that nobody can write are left out.
    pub columns: Vec<DescribedColumn>,
    /// The columns of its primary key.
    pub primary_key: Vec<String>,
    /// The columns of its other unique indexes that could be a key.
    pub unique: Vec<Vec<String>>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedColumn {
    /// Its name.
    pub name: String,
    /// Its type as declared.
    pub declared: String,
    /// Whether NULL is refused.
    pub required: bool,
    /// Whether the database fills it in by itself.
    pub fills_itself: bool,
}

/// What is under a table's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Described {
    /// A table.
    Table(DescribedTable),
    /// Nothing.
    Nothing,
    /// Something that rows cannot be delivered into: says what.
    Other(String),
}

impl<C: LiveColumn> From<&LiveTable<C>> for DescribedTable {
    fn from(live: &LiveTable<C>) -> Self {
        let columns = live.columns.iter().map(|column| DescribedColumn {
            name: column.name().to_owned(),
            declared: column.declared().to_owned(),
            required: column.required(),
            fills_itself: column.fills_itself(),
        });
        let others = live.unique.iter().filter(|index| index.flaw.is_none() && index.columns != live.primary_key);
        Self {
            columns: columns.collect(),
            primary_key: live.primary_key.clone(),
            unique: others.map(|index| index.columns.clone()).collect(),
        }
    }
}

/// Whether a column is part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InKey {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// A field of the first events, and what its values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledField {
    /// Where it is in an event.
    pub path: FieldPath,
    /// What its values are.
    pub sort: Sort,
}

/// What the values of a field are, as far as a sample tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Only NULL was seen.
    Unknown,
    /// `true`, `false`.
    Boolean,
    /// Numbers.
    Number(Numbers),
    /// `2026-11-16`.
    Date,
    /// `2026-11-16T03:25:42Z`.
    Timestamp,
    /// Thirty-two hexadecimal digits in groups.
    Uuid,
    /// Objects and arrays.
    Json,
    /// Any text.
    Text,
}

impl Sort {
    /// What values of both sorts are together.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (Self::Number(a), Self::Number(b)) => Self::Number(a.or(b)),
            (Self::Date, Self::Timestamp) | (Self::Timestamp, Self::Date) => Self::Timestamp,
            (_, _) => Self::Text,
        }
    }
}

/// What numbers need of a column that keeps all of them exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Whether all are whole and have eight bytes.
    pub whole: bool,
    /// Whether all are doubles.
    pub double: bool,
    /// How much room a decimal type needs.
    pub room: Room,
}

/// Digits of a decimal type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// At most 29 before the point and 9 behind it.
    Usual,
    /// At most 35 before the point and 30 behind it: what every server has.
    Wide,
    /// More.
    Beyond,
}

impl Numbers {
    /// What the number of this text needs; none if it is none, or beyond all reason.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let Decimal { digits, exponent, .. } = Decimal::parse(text)?;
        let before = exponent.saturating_add(i64::try_from(digits.len()).ok()?);
        let room = match (before, exponent.saturating_neg()) {
            (..=29, ..=9) => Room::Usual,
            (..=35, ..=30) => Room::Wide,
            (_, _) => Room::Beyond,
        };
        Some(Self { whole: text.parse::<i64>().is_ok(), double: double(text).is_some(), room })
    }

    /// What numbers of both need.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let (whole, double) = (self.whole && other.whole, self.double && other.double);
        Self { whole, double, room: self.room.max(other.room) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a column is proposed that keeps every number exactly. Method: numbers on both sides of each limit, alone and together.
    #[test]
    fn numbers_need_a_column_that_keeps_them() {
        let of = |text: &str| Numbers::of(text).map(|n| (n.whole, n.double, n.room));
        assert_eq!(of("12"), Some((true, true, Room::Usual)));
        assert_eq!(of("9007199254740993"), Some((true, false, Room::Usual)));
        assert_eq!(of("9223372036854775809"), Some((false, false, Room::Usual)));
        assert_eq!(of("0.5"), Some((false, true, Room::Usual)));
        assert_eq!(of("0.30000000000000004"), Some((false, true, Room::Wide)));
        assert_eq!(of("3.14159265358979323846"), Some((false, false, Room::Wide)));
        assert_eq!(of("1e-300"), Some((false, true, Room::Beyond)));
        assert_eq!(of("1e400"), Some((false, false, Room::Beyond)));
        let both = |a: &str, b: &str| Numbers::of(a).zip(Numbers::of(b)).map(|(a, b)| a.or(b));
        assert_eq!(
            both("9007199254740993", "0.5"),
            Numbers::of("9007199254740993.5").map(|n| Numbers { double: false, ..n })
        );
        assert_eq!(both("1e-300", "12"), Numbers::of("1e-300"));
    }
}
