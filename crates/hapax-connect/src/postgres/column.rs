//! A column of a PostgreSQL table: what its type means to us, and what the shared layer asks about it.
//!
//! The one table of types is here: how a type is called ([`Kind::of`]), how it is sent ([`Kind::wire`]), whether it
//! can be a key or a version. How a value of it is made is `convert`, how it is spelled on the wire `encode`.

use hapax_engine::batch::{FieldBytes, Operation};
use hapax_model::key::KeyHash;
use hapax_model::letter::Cause;
use hapax_sql::postgres::{TableName, quote_identifier};
use tokio_postgres::types::Type;

use super::convert::{self, Stored};
use super::interval::Least;
use crate::table::column::{LiveColumn, VersionBytes, uncomparable_key, unordered_version};
use crate::table::described::{InKey, Sort};
use crate::table::number::short_integer;

/// How long a key's hash is as text.
const HASH_CHARACTERS: u32 = 29;

/// What a column's type means to us. A domain counts as the type that it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `boolean`.
    Bool,
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `real`.
    Float4,
    /// `double precision`.
    Float8,
    /// `numeric`, exact.
    Numeric {
        /// Digits in all and digits behind the point, if declared.
        limits: Option<(u16, i16)>,
    },
    /// `text` and `varchar(n)`.
    Text {
        /// Characters, if declared.
        most: Option<u32>,
    },
    /// `char(n)`: spaces at the end mean nothing.
    Char {
        /// Characters, if declared.
        most: Option<u32>,
    },
    /// `bytea`.
    Bytea,
    /// `date`.
    Date,
    /// `time` without a zone.
    Time {
        /// Digits of a second.
        digits: u8,
    },
    /// `time with time zone`.
    TimeTz {
        /// Digits of a second.
        digits: u8,
    },
    /// `interval`.
    Interval {
        /// Digits of a second.
        digits: u8,
        /// The smallest unit that it keeps.
        least: Least,
    },
    /// `timestamp` without a zone: UTC.
    Timestamp {
        /// Digits of a second.
        digits: u8,
    },
    /// `timestamp with time zone`.
    TimestampTz {
        /// Digits of a second.
        digits: u8,
    },
    /// `uuid`.
    Uuid,
    /// `json`.
    Json,
    /// `jsonb`.
    Jsonb,
    /// `bit(n)`: exactly so many; a cast would cut, or fill with zeros.
    Bits {
        /// Binary digits.
        count: u32,
    },
    /// `bit varying(n)`.
    VarBits {
        /// Binary digits, if declared.
        most: Option<u32>,
    },
    /// An array: travels as text, because UNNEST would flatten it. [`PostgresColumn::element`] says of what.
    Array,
    /// A range: travels as text. [`PostgresColumn::element`] says of what.
    Range,
    /// Whatever else: travels as text, and the server reads it. Enumerations are such.
    Other,
    /// A type of which the server makes something else than was written.
    Refused {
        /// Why, and what to declare instead.
        why: &'static str,
    },
}

/// Its meaning depends on the server's locale, and it rounds.
const MONEY: &str = "takes no events (money depends on the server's locale and rounds; declare it numeric)";
/// Kept for the server's own tables.
const INTERNAL: &str = "takes no events (the type is for the server's own tables; declare it text or bigint)";

impl Kind {
    /// What a base type means, by its number, its modifier, and what sort of type it is (`pg_type.typtype`).
    #[must_use]
    pub fn of(oid: u32, modifier: i32, is_array: bool) -> Self {
        // The modifier of texts and numerics counts the four bytes of a length that is no longer there.
        let length = u32::try_from(modifier - 4).ok().filter(|_| modifier >= 4);
        let digits = u8::try_from(modifier).ok().filter(|digits| *digits <= 6).unwrap_or(6);
        match Type::from_oid(oid) {
            _ if is_array => Self::Array,
            Some(Type::BOOL) => Self::Bool,
            Some(Type::INT2) => Self::Int2,
            Some(Type::INT4) => Self::Int4,
            Some(Type::INT8) => Self::Int8,
            Some(Type::FLOAT4) => Self::Float4,
            Some(Type::FLOAT8) => Self::Float8,
            Some(Type::NUMERIC) => Self::Numeric { limits: length.map(numeric_limits) },
            Some(Type::TEXT) => Self::Text { most: None },
            Some(Type::VARCHAR) => Self::Text { most: length },
            Some(Type::BPCHAR) => Self::Char { most: length },
            Some(Type::BYTEA) => Self::Bytea,
            Some(Type::DATE) => Self::Date,
            Some(Type::TIME) => Self::Time { digits },
            Some(Type::TIMETZ) => Self::TimeTz { digits },
            Some(Type::INTERVAL) => interval(modifier),
            Some(Type::TIMESTAMP) => Self::Timestamp { digits },
            Some(Type::TIMESTAMPTZ) => Self::TimestampTz { digits },
            Some(Type::UUID) => Self::Uuid,
            Some(Type::JSON) => Self::Json,
            Some(Type::JSONB) => Self::Jsonb,
            Some(Type::BIT) => Self::Bits { count: u32::try_from(modifier).unwrap_or(1) },
            Some(Type::VARBIT) => Self::VarBits { most: u32::try_from(modifier).ok() },
            Some(Type::MONEY) => Self::Refused { why: MONEY },
            Some(
                Type::CHAR
                | Type::NAME
                | Type::OID
                | Type::XID
                | Type::CID
                | Type::TID
                | Type::REGCLASS
                | Type::REGTYPE
                | Type::REGPROC
                | Type::REGPROCEDURE
                | Type::REGOPER
                | Type::REGOPERATOR
                | Type::REGROLE
                | Type::REGNAMESPACE
                | Type::REGCONFIG
                | Type::REGDICTIONARY
                | Type::REGCOLLATION
                | Type::ACLITEM
                | Type::REFCURSOR,
            ) => Self::Refused { why: INTERNAL },
            _ => Self::Other,
        }
    }

    /// The type of an array's elements on the wire.
    #[must_use]
    pub const fn wire(self) -> Type {
        match self {
            Self::Bool => Type::BOOL,
            Self::Int2 => Type::INT2,
            Self::Int4 => Type::INT4,
            Self::Int8 => Type::INT8,
            Self::Float4 => Type::FLOAT4,
            Self::Float8 => Type::FLOAT8,
            Self::Numeric { .. } => Type::NUMERIC,
            Self::Char { .. } => Type::BPCHAR,
            Self::Bytea => Type::BYTEA,
            Self::Date => Type::DATE,
            Self::Time { .. } => Type::TIME,
            Self::TimeTz { .. } => Type::TIMETZ,
            Self::Interval { .. } => Type::INTERVAL,
            Self::Timestamp { .. } => Type::TIMESTAMP,
            Self::TimestampTz { .. } => Type::TIMESTAMPTZ,
            Self::Uuid => Type::UUID,
            Self::Text { .. }
            | Self::Json
            | Self::Jsonb
            | Self::Bits { .. }
            | Self::VarBits { .. }
            | Self::Array
            | Self::Range
            | Self::Other
            | Self::Refused { .. } => Type::TEXT,
        }
    }

    /// Whether it travels as text and is cast by the server.
    #[must_use]
    pub const fn is_cast(self) -> bool {
        matches!(self, Self::Json | Self::Jsonb) || !self.is_copied()
    }

    /// Whether binary COPY can carry it.
    #[must_use]
    pub const fn is_copied(self) -> bool {
        !matches!(
            self,
            Self::Bits { .. } | Self::VarBits { .. } | Self::Array | Self::Range | Self::Other | Self::Refused { .. }
        )
    }

    /// What a tombstone puts where a value must be and none is known; none if no value is neutral.
    #[must_use]
    pub const fn neutral(self) -> Option<&'static str> {
        match self {
            Self::Bool => Some("false"),
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Float4 | Self::Float8 | Self::Numeric { .. } => Some("0"),
            Self::Text { .. } | Self::Char { .. } | Self::Bytea => Some("''"),
            Self::Date | Self::Timestamp { .. } | Self::TimestampTz { .. } => Some("'epoch'"),
            Self::Time { .. } | Self::TimeTz { .. } | Self::Interval { .. } => Some("'00:00'"),
            Self::Uuid => Some("'00000000-0000-0000-0000-000000000000'"),
            Self::Json | Self::Jsonb => Some("'null'"),
            Self::Array => Some("'{}'"),
            Self::Range => Some("'empty'"),
            Self::VarBits { .. } => Some("''"),
            Self::Bits { .. } | Self::Other | Self::Refused { .. } => None,
        }
    }

    /// Whether we know when two values of it are one, and which of two is greater.
    const fn is_ordered(self) -> bool {
        !matches!(self, Self::TimeTz { .. } | Self::Interval { .. }) && !self.is_cast()
    }
}

/// Which digits and fields an interval keeps, from its modifier.
fn interval(modifier: i32) -> Kind {
    let digits = u8::try_from(modifier & 0xffff).ok().filter(|digits| *digits <= 6).unwrap_or(6);
    let least = if modifier < 0 { Least::Second } else { Least::of(modifier >> 16) };
    Kind::Interval { digits, least }
}

/// Digits in all and behind the point, from a numeric's modifier less four.
fn numeric_limits(packed: u32) -> (u16, i16) {
    let scale = i16::try_from(packed & 0x7ff).unwrap_or_default();
    // Eleven bits with a sign: a scale may be negative since PostgreSQL 15.
    let scale = (scale ^ 0x400) - 0x400;
    (u16::try_from(packed >> 16).unwrap_or(u16::MAX), scale)
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresColumn {
    /// Its name.
    pub name: String,
    /// Its type as declared, as a cast spells it.
    pub declared: String,
    /// What that means.
    pub kind: Kind,
    /// What an array's elements or a range's bounds are; of anything else, what it is itself.
    pub element: Kind,
    /// Whether NULL is refused.
    pub required: bool,
    /// Whether the server fills it in by itself when an INSERT leaves it out.
    pub fills_itself: bool,
}

impl LiveColumn for PostgresColumn {
    type Value<'a> = Stored<'a>;

    const HASH_TYPE: &'static str = "bytea";
    const HASH_TYPES: &'static str = "a bytea (faster) or text column, or a varchar of 29 or more";
    const DELETED_TYPE: &'static str = "boolean NOT NULL DEFAULT false";
    const ANY_TYPE: &'static str = "text";
    const VERSION_TYPE: &'static str = "bigint";

    fn type_for(sort: Sort, _key: InKey) -> &'static str {
        super::describe::column_type(sort)
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
        if let Kind::Text { most } | Kind::Char { most } = self.kind {
            return most.is_none_or(|most| most >= HASH_CHARACTERS);
        }
        self.kind == Kind::Bytea
    }

    fn holds_version(&self) -> bool {
        self.kind == Kind::Bytea
    }

    fn holds_json(&self) -> bool {
        matches!(self.kind, Kind::Json | Kind::Jsonb)
    }

    fn takes_numbers(&self) -> bool {
        matches!(
            self.kind,
            Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Float4 | Kind::Float8 | Kind::Numeric { .. } | Kind::Bool
        )
    }

    fn key_flaw(&self) -> Option<String> {
        (!self.kind.is_ordered()).then(|| uncomparable_key(&self.name, &self.declared))
    }

    fn version_flaw(&self) -> Option<String> {
        (!self.kind.is_ordered()).then(|| unordered_version(&self.name, &self.declared))
    }

    #[inline]
    fn plain_integer(&self, value: FieldBytes<'_>) -> Option<i64> {
        match (self.kind, value) {
            (Kind::Int8, FieldBytes::Number(text)) => short_integer(text),
            (Kind::Int4, FieldBytes::Number(text)) => short_integer(text).filter(|value| i32::try_from(*value).is_ok()),
            _ => None,
        }
    }

    fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    fn same_name(a: &str, b: &str) -> bool {
        a == b
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
        if self.kind == Kind::Bytea { Stored::KeyBytes(key) } else { Stored::KeyText(key.text()) }
    }

    #[inline]
    fn version<'a>(&self, version: VersionBytes) -> Stored<'a> {
        Stored::Version(version)
    }

    fn deleted<'a>(&self, operation: Operation) -> Stored<'a> {
        Stored::Bool(operation == Operation::Delete)
    }
}
