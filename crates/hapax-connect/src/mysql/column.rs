//! A column of a MySQL or MariaDB table: what its type means to us, and what the shared layer asks about it.
//!
//! The one table of types is here: how a type is called ([`Kind::of`]), whether it can be a key or a version, how it is
//! compared. How a value of it is made is `convert`.

use hapax_engine::batch::{FieldBytes, Operation};
use hapax_model::key::KeyHash;
use hapax_model::letter::Cause;
use hapax_sql::mysql::{TableName, quote_identifier};

use super::convert::{self, Stored};
use crate::table::column::{LiveColumn, VersionBytes, uncomparable_key, unordered_version};
use crate::table::described::{InKey, Sort};
use crate::table::number::short_integer;

/// How long a key's hash is, as text and as bytes.
const HASH_CHARACTERS: u32 = 29;
const HASH_BYTES: u64 = 16;
/// How long a version made from a position is.
const VERSION_BYTES: u64 = 18;

/// Whether a number may be below 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It may.
    Signed,
    /// It may not.
    Unsigned,
}

/// How long a text may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Longest {
    /// So many characters.
    Characters(u32),
    /// So many bytes.
    Bytes(u64),
    /// As the server says: its character set has other bytes than ours.
    ServerJudges,
}

/// What a column's type means to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `tinyint` to `bigint`; `boolean` is `tinyint(1)`.
    Int {
        /// 8, 16, 24, 32 or 64.
        bits: u8,
        /// Whether it may be below 0.
        sign: Sign,
    },
    /// `decimal`, exact.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
        /// Whether it may be below 0.
        sign: Sign,
    },
    /// `float`.
    Float {
        /// Digits behind the point to which it is rounded, if declared.
        scale: Option<u8>,
        /// Whether it may be below 0.
        sign: Sign,
    },
    /// `double`.
    Double {
        /// Digits behind the point to which it is rounded, if declared.
        scale: Option<u8>,
        /// Whether it may be below 0.
        sign: Sign,
    },
    /// `bit(n)`.
    Bit {
        /// How many.
        bits: u8,
    },
    /// `year`.
    Year,
    /// `varchar(n)`, `tinytext` to `longtext`.
    Text {
        /// How long it may be.
        most: Longest,
    },
    /// `char(n)`: spaces at the end mean nothing.
    Char {
        /// Characters.
        most: u32,
    },
    /// `binary(n)`: shorter values would be filled up.
    Binary {
        /// Bytes, neither more nor fewer.
        length: u64,
    },
    /// `varbinary(n)`, `tinyblob` to `longblob`.
    Bytes {
        /// Bytes.
        most: u64,
    },
    /// `date`.
    Date,
    /// `time`: a time of day, or a span.
    Time {
        /// Digits of a second.
        digits: u8,
    },
    /// `datetime`: UTC.
    Datetime {
        /// Digits of a second.
        digits: u8,
    },
    /// `timestamp`: a moment.
    Timestamp {
        /// Digits of a second.
        digits: u8,
    },
    /// `enum(…)`: one of the column's members.
    Enum,
    /// `set(…)`: any of the column's members.
    Set,
    /// `json`; on MariaDB a `longtext` that must be valid JSON.
    Json,
    /// `uuid` (MariaDB).
    Uuid,
    /// Whatever else: travels as text, and the server reads it.
    Other,
}

/// A column as `information_schema.COLUMNS` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declared {
    /// `DATA_TYPE`: the type's name alone.
    pub data_type: String,
    /// `COLUMN_TYPE`: the type as declared.
    pub column_type: String,
    /// `CHARACTER_MAXIMUM_LENGTH`.
    pub characters: Option<u64>,
    /// `CHARACTER_OCTET_LENGTH`.
    pub octets: Option<u64>,
    /// `NUMERIC_PRECISION`.
    pub precision: Option<u64>,
    /// `NUMERIC_SCALE`.
    pub scale: Option<u64>,
    /// `DATETIME_PRECISION`.
    pub digits: Option<u64>,
    /// `CHARACTER_SET_NAME`.
    pub character_set: Option<String>,
}

impl Kind {
    /// What a declared type means.
    #[must_use]
    pub fn of(declared: &Declared) -> Self {
        let spelled = declared.column_type.to_ascii_lowercase();
        let sign =
            if spelled.contains("unsigned") || spelled.contains("zerofill") { Sign::Unsigned } else { Sign::Signed };
        let int = |bits| Self::Int { bits, sign };
        let small = |number: Option<u64>| number.and_then(|number| u8::try_from(number).ok());
        let digits = small(declared.digits).unwrap_or(0);
        let scale = small(declared.scale);
        let octets = declared.octets.or(declared.characters).unwrap_or(u64::MAX);
        match declared.data_type.to_ascii_lowercase().as_str() {
            "tinyint" => int(8),
            "smallint" => int(16),
            "mediumint" => int(24),
            "int" | "integer" => int(32),
            "bigint" => int(64),
            "decimal" | "numeric" => {
                Self::Decimal { precision: small(declared.precision).unwrap_or(10), scale: scale.unwrap_or(0), sign }
            }
            "float" => Self::Float { scale, sign },
            "double" | "real" => Self::Double { scale, sign },
            "bit" => Self::Bit { bits: small(declared.precision).unwrap_or(1) },
            "year" => Self::Year,
            "char" | "nchar" => Self::Char { most: characters(declared) },
            "varchar" | "nvarchar" => Self::Text { most: Longest::Characters(characters(declared)) },
            "tinytext" | "text" | "mediumtext" | "longtext" => Self::Text { most: text_most(declared) },
            "binary" => Self::Binary { length: octets },
            "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Self::Bytes { most: octets },
            "date" => Self::Date,
            "time" => Self::Time { digits },
            "datetime" => Self::Datetime { digits },
            "timestamp" => Self::Timestamp { digits },
            "enum" => Self::Enum,
            "set" => Self::Set,
            "json" => Self::Json,
            "uuid" => Self::Uuid,
            _ => Self::Other,
        }
    }

    /// What a tombstone puts where a value must be and none is known; none if no value is neutral.
    #[must_use]
    pub const fn neutral(self) -> Option<&'static str> {
        match self {
            Self::Int { .. }
            | Self::Decimal { .. }
            | Self::Float { .. }
            | Self::Double { .. }
            | Self::Bit { .. }
            | Self::Year => Some("0"),
            Self::Text { .. } | Self::Char { .. } | Self::Binary { .. } | Self::Bytes { .. } | Self::Set => Some("''"),
            // The first member, by its number.
            Self::Enum => Some("1"),
            Self::Date => Some("'1970-01-01'"),
            Self::Time { .. } => Some("'00:00:00'"),
            Self::Datetime { .. } | Self::Timestamp { .. } => Some("'1970-01-01 00:00:01'"),
            Self::Json => Some("'null'"),
            Self::Uuid => Some("'00000000-0000-0000-0000-000000000000'"),
            Self::Other => None,
        }
    }

    /// Whether we know when two values of it are one.
    const fn is_compared(self) -> bool {
        !matches!(self, Self::Json | Self::Set | Self::Other)
    }

    /// Whether we know which of two values is greater. MariaDB orders a uuid by its parts, and enums by their place.
    const fn is_ordered(self) -> bool {
        self.is_compared() && !matches!(self, Self::Enum | Self::Uuid)
    }

    /// Whether it keeps so many bytes as they are, neither cut nor filled up.
    fn holds_bytes(self, bytes: u64) -> bool {
        if let Self::Binary { length } = self {
            return length == bytes;
        }
        if let Self::Bytes { most } = self { most >= bytes } else { false }
    }

    /// Whether it is text, which a collation compares.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Text { .. } | Self::Char { .. })
    }
}

fn characters(declared: &Declared) -> u32 {
    declared.characters.and_then(|most| u32::try_from(most).ok()).unwrap_or(u32::MAX)
}

/// Long texts are bounded in bytes of their own character set.
fn text_most(declared: &Declared) -> Longest {
    let ours = declared.character_set.as_deref().is_some_and(|set| set.starts_with("utf8"));
    match declared.octets.filter(|_| ours) {
        Some(octets) => Longest::Bytes(octets),
        None => Longest::ServerJudges,
    }
}

/// The members of `enum('a','b')` and `set('a','b')`; a quote in one is doubled.
#[must_use]
pub fn members(column_type: &str) -> Vec<String> {
    let mut members = Vec::new();
    let Some((_, list)) = column_type.split_once('(') else { return members };
    let mut rest = list.chars().peekable();
    while let Some(next) = rest.next() {
        if next != '\'' {
            continue;
        }
        let mut member = String::new();
        while let Some(next) = rest.next() {
            if next != '\'' {
                member.push(next);
            } else if rest.next_if_eq(&'\'').is_some() {
                member.push('\'');
            } else {
                break;
            }
        }
        members.push(member);
    }
    members
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MysqlColumn {
    /// Its name.
    pub name: String,
    /// Its type as declared.
    pub declared: String,
    /// What that means.
    pub kind: Kind,
    /// The members of an enumeration or a set.
    pub members: Vec<String>,
    /// How its text is compared; none if it is no text.
    pub collation: Option<String>,
    /// Whether NULL is refused.
    pub required: bool,
    /// Whether the server fills it in by itself when an INSERT leaves it out.
    pub fills_itself: bool,
}

impl MysqlColumn {
    /// What stands for a value in a comparison with this column. A decimal would be compared with text as a double,
    /// to which different decimals are equal.
    #[must_use]
    pub fn compared_to(&self) -> String {
        if let Kind::Decimal { precision, scale, .. } = self.kind {
            return format!("CAST(? AS DECIMAL({precision},{scale}))");
        }
        "?".to_owned()
    }

    /// The character set of its text, if that lacks some characters; none if it has all, or the column is no text.
    #[must_use]
    pub fn narrow_character_set(&self) -> Option<&str> {
        let collation = self.collation.as_deref().filter(|_| self.kind.is_text())?;
        let set = collation.split('_').next().unwrap_or(collation);
        (!["utf8mb4", "uca1400", "utf16", "utf16le", "utf32", "gb18030", "binary"].contains(&set)).then_some(set)
    }

    /// Whether its collation takes different texts for one, or ignores spaces at the end; none if it is no text.
    #[must_use]
    pub fn weak_collation(&self) -> Option<&str> {
        let collation = self.collation.as_deref().filter(|_| self.kind.is_text())?;
        let exact = collation.ends_with("_nopad_bin") || collation.ends_with("_0900_bin") || collation == "binary";
        // The spaces at the end of a char(n) are nobody's: we leave them out too.
        let of_char = matches!(self.kind, Kind::Char { .. }) && collation.ends_with("_bin");
        (!exact && !of_char).then_some(collation)
    }
}

impl LiveColumn for MysqlColumn {
    type Value<'a> = Stored<'a>;

    const HASH_TYPE: &'static str = "binary(16)";
    const HASH_TYPES: &'static str =
        "a binary(16) (faster), a varbinary of 16 or more, or a char or varchar of 29 or more";
    const DELETED_TYPE: &'static str = "boolean NOT NULL DEFAULT false";
    const ANY_TYPE: &'static str = "text";
    const KEY_TYPE: &'static str = "varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin";
    const POSITION_TYPE: &'static str = "binary(18)";
    const VERSION_TYPE: &'static str = "bigint";

    fn type_for(sort: Sort, key: InKey) -> &'static str {
        super::describe::column_type(sort, key)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn declared(&self) -> &str {
        &self.declared
    }

    fn required(&self) -> bool {
        self.required
    }

    fn fills_itself(&self) -> bool {
        self.fills_itself
    }

    fn holds_hash(&self) -> bool {
        if let Kind::Text { most: Longest::Characters(most) } | Kind::Char { most } = self.kind {
            return most >= HASH_CHARACTERS;
        }
        self.kind.holds_bytes(HASH_BYTES)
    }

    fn holds_version(&self) -> bool {
        self.kind.holds_bytes(VERSION_BYTES)
    }

    fn holds_json(&self) -> bool {
        self.kind == Kind::Json
    }

    fn takes_numbers(&self) -> bool {
        matches!(
            self.kind,
            Kind::Int { .. }
                | Kind::Decimal { .. }
                | Kind::Float { .. }
                | Kind::Double { .. }
                | Kind::Bit { .. }
                | Kind::Year
        )
    }

    fn key_flaw(&self) -> Option<String> {
        (!self.kind.is_compared()).then(|| uncomparable_key(&self.name, &self.declared))
    }

    fn version_flaw(&self) -> Option<String> {
        (!self.kind.is_ordered()).then(|| unordered_version(&self.name, &self.declared))
    }

    #[inline]
    fn plain_integer(&self, value: FieldBytes<'_>) -> Option<i64> {
        match (self.kind, value) {
            (Kind::Int { bits: 64, sign: Sign::Signed }, FieldBytes::Number(text)) => short_integer(text),
            (Kind::Int { bits: 64, sign: Sign::Unsigned }, FieldBytes::Number(text)) => {
                short_integer(text).filter(|value| *value >= 0)
            }
            (Kind::Int { bits: 32, sign: Sign::Signed }, FieldBytes::Number(text)) => {
                short_integer(text).filter(|value| i32::try_from(*value).is_ok())
            }
            _ => None,
        }
    }

    fn is_named(&self, name: &str) -> bool {
        Self::same_name(&self.name, name)
    }

    fn same_name(a: &str, b: &str) -> bool {
        a.eq_ignore_ascii_case(b) || a.to_lowercase() == b.to_lowercase()
    }

    fn quoted(name: &str) -> String {
        quote_identifier(name).unwrap_or_else(|_| format!("{name:?}"))
    }

    fn quoted_table(name: &str) -> String {
        name.parse::<TableName>().map_or_else(|_| format!("{name:?}"), |name| name.quoted())
    }

    fn bare_table(name: &str) -> String {
        name.parse::<TableName>().map_or_else(|_| name.to_owned(), |name| name.table().to_owned())
    }

    #[inline]
    fn field<'a>(&self, value: FieldBytes<'a>) -> Result<Stored<'a>, Cause> {
        convert::field(self, value)
    }

    #[inline]
    fn key<'a>(&self, key: KeyHash) -> Stored<'a> {
        let bytes = matches!(self.kind, Kind::Binary { .. } | Kind::Bytes { .. });
        if bytes { Stored::KeyBytes(key) } else { Stored::KeyText(key.text()) }
    }

    #[inline]
    fn version<'a>(&self, version: VersionBytes) -> Stored<'a> {
        Stored::Version(version)
    }

    fn deleted<'a>(&self, operation: Operation) -> Stored<'a> {
        Stored::Integer((operation == Operation::Delete).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: members are read whatever they are called. Method: quotes, commas, brackets, nothing.
    #[test]
    fn members_are_read_from_the_declared_type() {
        assert_eq!(members("enum('a','it''s','x,y',')','')"), ["a", "it's", "x,y", ")", ""]);
        assert_eq!(members("int(11)"), [""; 0]);
        assert_eq!(members("set('ä')"), ["ä"]);
    }

    /// Goal: only collations for which different texts differ may compare a key. Method: each family.
    #[test]
    fn a_weak_collation_is_named() {
        let weak = |kind, collation: &str| {
            let column = MysqlColumn {
                name: "k".into(),
                declared: "varchar(9)".into(),
                kind,
                members: Vec::new(),
                collation: Some(collation.into()),
                required: true,
                fills_itself: false,
            };
            column.weak_collation().is_some()
        };
        let text = Kind::Text { most: Longest::Characters(9) };
        for (collation, expected) in [
            ("utf8mb4_bin", true),
            ("utf8mb4_general_ci", true),
            ("utf8mb4_0900_as_cs", true),
            ("utf8mb4_0900_bin", false),
            ("utf8mb4_nopad_bin", false),
            ("latin1_nopad_bin", false),
        ] {
            assert_eq!(weak(text, collation), expected, "{collation}");
        }
        assert!(!weak(Kind::Char { most: 9 }, "utf8mb4_bin"), "a char has no spaces at its end anyway");
        assert!(weak(Kind::Char { most: 9 }, "utf8mb4_general_ci"));
    }
}
