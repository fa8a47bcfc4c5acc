//! What the shared layer asks of a dialect: one trait for a live column, one for a value on its way into it.
//!
//! Both are used by type, never boxed: the row path is compiled once per dialect.

use std::cmp::Ordering;
use std::fmt::Debug;

use hapax_engine::batch::{FieldBytes, Operation};
use hapax_model::key::KeyHash;
use hapax_model::letter::{Cause, Stage};
use hapax_model::position::Position;

use super::described::{InKey, Sort};

/// A value does not fit its column.
pub const MISFIT: &str = "HX2020";
/// A column that must have a value gets none.
pub const NULL: &str = "HX2021";

/// How much of a value a message shows.
const SHOWN_CHARACTERS: usize = 60;

/// Why a column cannot be part of a key whose values only the server compares.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn uncomparable_key(name: &str, declared: &str) -> String {
    format!(
        "column \"{name}\" is part of the key and is declared {declared}, of which only the server knows when two values \
         are one; name a keyColumn for the key's hash instead"
    )
}

/// Why a column cannot say which of two rows is newer if only the server knows its order.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn unordered_version(name: &str, declared: &str) -> String {
    format!(
        "versionColumn \"{name}\" is declared {declared}, of which only the server knows which of two values is greater; \
         name a column of numbers, times, text or bytes"
    )
}

/// `hapax_version`: incarnation, offset, index and emit index, most significant first, so that bytes compare as they do.
pub type VersionBytes = [u8; 18];

/// A column of a live table, in one dialect.
pub trait LiveColumn: Debug + Clone + PartialEq + Send + Sync + 'static {
    /// A value on its way into such a column.
    type Value<'a>: StoredValue;

    /// The type that a suggested table gives a key's hash: bytes, the faster choice.
    const HASH_TYPE: &'static str;
    /// The types that can hold a key's hash, for messages.
    const HASH_TYPES: &'static str;
    /// The type of `hapax_deleted`, with its default.
    const DELETED_TYPE: &'static str;
    /// The type that a suggested table gives a column of which nothing is known; may be empty.
    const ANY_TYPE: &'static str;

    /// The type that a suggested table gives a key's column of which nothing is known; may be empty.
    const KEY_TYPE: &'static str = Self::ANY_TYPE;
    /// The type that a suggested table gives a version made from positions.
    const POSITION_TYPE: &'static str = Self::HASH_TYPE;
    /// The type that a suggested table gives a version that an event field feeds; may be empty.
    const VERSION_TYPE: &'static str = Self::ANY_TYPE;

    /// The type that a suggested table gives a column for values of this sort; of a key column, one that an index can hold
    /// and that compares exactly.
    fn type_for(sort: Sort, key: InKey) -> &'static str;

    /// Its name.
    fn name(&self) -> &str;
    /// Its type as declared; empty if none.
    fn declared(&self) -> &str;
    /// Whether NULL is refused, or never stored.
    fn required(&self) -> bool;
    /// Whether the database fills it in by itself when an INSERT leaves it out.
    fn fills_itself(&self) -> bool;
    /// Whether it can hold a key's hash.
    fn holds_hash(&self) -> bool;
    /// Whether it can hold `hapax_version`, compared by its bytes.
    fn holds_version(&self) -> bool;
    /// Whether it is a column for JSON, which tells `12` from `"12"`.
    fn holds_json(&self) -> bool;
    /// Whether it is a column of numbers: only there is a text that spells a number read as one.
    fn takes_numbers(&self) -> bool;
    /// Why it cannot be part of a key, if it cannot: two values that the database takes for one must be one to us.
    fn key_flaw(&self) -> Option<String> {
        None
    }

    /// Why it cannot say which of two rows is newer, if it cannot: we must know which of two values is greater.
    fn version_flaw(&self) -> Option<String> {
        None
    }

    /// Whether `name` names this column.
    fn is_named(&self, name: &str) -> bool;
    /// Whether two names name one column.
    fn same_name(a: &str, b: &str) -> bool;

    /// A name as a suggested statement spells it.
    fn quoted(name: &str) -> String;
    /// A table's name as a suggested statement spells it.
    fn quoted_table(name: &str) -> String {
        Self::quoted(name)
    }
    /// A table's name without its schema.
    fn bare_table(name: &str) -> String {
        name.to_owned()
    }

    /// A field as this column stores it.
    ///
    /// # Errors
    /// Why the event is rejected: the value cannot be kept exactly, or is missing where one must be.
    fn field<'a>(&self, value: FieldBytes<'a>) -> Result<Self::Value<'a>, Cause>;
    /// The whole number that this column stores for a field, where that is plain to see: the commonest key, without a
    /// detour. `field` says the same, and [`append_integer`] makes its key.
    fn plain_integer(&self, _value: FieldBytes<'_>) -> Option<i64> {
        None
    }
    /// A key as this column stores it.
    fn key<'a>(&self, key: KeyHash) -> Self::Value<'a>;
    /// A version made from a position.
    fn version<'a>(&self, version: VersionBytes) -> Self::Value<'a>;
    /// The mark of a removed row.
    fn deleted<'a>(&self, operation: Operation) -> Self::Value<'a>;
}

/// A value on its way into a column.
pub trait StoredValue {
    /// Whether it is NULL.
    fn is_null(&self) -> bool;
    /// Appends bytes that are equal exactly for values that a unique index takes for equal.
    fn append_key(&self, bytes: &mut Vec<u8>);
    /// The order in which the database compares two values of one column, text by its bytes.
    fn order(&self, other: &Self) -> Ordering;
}

/// The version of an event from its place in its lane.
#[must_use]
pub fn version(incarnation: u32, position: Position, emit: u32) -> VersionBytes {
    let mut bytes = [0; 18];
    bytes[..4].copy_from_slice(&incarnation.to_be_bytes());
    bytes[4..12].copy_from_slice(&position.offset.to_be_bytes());
    bytes[12..16].copy_from_slice(&position.index.to_be_bytes());
    let emit = u16::try_from(emit).unwrap_or(u16::MAX);
    bytes[16..].copy_from_slice(&emit.to_be_bytes());
    bytes
}

/// A whole number as bytes that sort as it does: the sign bit flipped, so that negative numbers come first.
pub fn append_integer(bytes: &mut Vec<u8>, value: i64) {
    bytes.push(1);
    bytes.extend((value.cast_unsigned() ^ (1 << 63)).to_be_bytes());
}

/// Bytes with their end marked, so that ("a", "bc") and ("ab", "c") are two keys; 0 is escaped to keep the order.
pub fn append_counted(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    bytes.push(tag);
    if value.contains(&0) {
        for byte in value {
            bytes.push(*byte);
            if *byte == 0 {
                bytes.push(0xff);
            }
        }
    } else {
        bytes.extend_from_slice(value);
    }
    bytes.extend([0, 0]);
}

/// The column cannot hold this value.
pub fn misfit(column: &impl LiveColumn, value: FieldBytes<'_>) -> Cause {
    let (kind, text) = described(value);
    misfit_because(column, &format!("cannot hold {kind}"), &text)
}

/// The column cannot hold this value, for a reason that the value's kind does not tell.
pub fn misfit_because(column: &impl LiveColumn, why: &str, shown: &str) -> Cause {
    let name = column.name();
    let declared = if column.declared().is_empty() { "no type" } else { column.declared() };
    Cause {
        stage: Stage::Map,
        code: MISFIT,
        message: format!("column \"{name}\" ({declared}) {why}: {shown}"),
        fingerprint: format!("column \"{name}\" ({declared}) {why}"),
    }
}

/// Why a column refuses a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its kind does not fit.
    Kind,
    /// Its kind fits, but this holds of it: a sentence that begins with the column.
    Because(&'static str),
}

impl Why {
    /// The number is beyond the column's range.
    pub const TOO_LARGE: Self = Self::Because("cannot hold a number of this size");
    /// A number with a fraction, in a column of whole numbers.
    pub const NOT_WHOLE: Self = Self::Because("takes whole numbers");
    /// A float would not show the number's digits again.
    pub const NOT_EXACT: Self = Self::Because("would round this number (an exact type, or text, keeps it)");
    /// A decimal has fewer digits behind the point.
    pub const TOO_FINE: Self = Self::Because("cannot hold so many digits behind the point");
    /// Text that is no number.
    pub const NO_NUMBER: Self = Self::Because("takes numbers, also as text like 12");
    /// Neither of the two.
    pub const NO_BOOLEAN: Self = Self::Because("takes true and false, also as text, 1 and 0");
    /// A number or a boolean, in a column of bytes.
    pub const NO_BYTES: Self = Self::Because("takes text, lists and objects, as their bytes");
    /// More characters than were declared.
    pub const TOO_LONG: Self = Self::Because("cannot hold so many characters");

    /// As the cause of a dead letter.
    pub fn cause(self, column: &impl LiveColumn, value: FieldBytes<'_>) -> Cause {
        match self {
            Self::Kind => misfit(column, value),
            Self::Because(why) => misfit_because(column, why, &described(value).1),
        }
    }
}

/// The kind of a value, and its beginning.
#[must_use]
pub fn described(value: FieldBytes<'_>) -> (&'static str, String) {
    match value {
        FieldBytes::Absent => ("nothing", String::new()),
        FieldBytes::Null => ("null", String::new()),
        FieldBytes::Bool(value) => ("a boolean", value.to_string()),
        FieldBytes::Number(text) => ("a number", shown(text)),
        FieldBytes::Text(b"") => ("an empty string", "\"\"".to_owned()),
        FieldBytes::Text(text) => ("a string", shown(text)),
        FieldBytes::Json(text) => ("an array or object", shown(text)),
    }
}

/// The column must have a value and gets none.
pub fn missing(column: &impl LiveColumn, value: FieldBytes<'_>) -> Cause {
    let why = if value == FieldBytes::Absent { "has no such field" } else { "says null" };
    let message = format!("column \"{}\" must have a value, and the event {why}", column.name());
    Cause { stage: Stage::Map, code: NULL, fingerprint: message.clone(), message }
}

/// The beginning of a value, on one line.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out: String = text.chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: versions made from positions order as the lane does. Method: each part outweighs all behind it.
    #[test]
    fn versions_order_as_the_lane_does() {
        let at = |offset, index| Position { offset, index };
        let ascending = [
            version(1, at(0, 0), 0),
            version(1, at(0, 0), 1),
            version(1, at(0, 1), 0),
            version(1, at(255, 0), 0),
            version(1, at(256, 0), 0),
            version(1, at(u64::MAX, u32::MAX), 9),
            version(2, at(0, 0), 0),
        ];
        assert!(ascending.is_sorted());
    }
}
