//! A column of a SQLite table, as the shared layer asks about it.

use hapax_engine::batch::{FieldBytes, Operation};
use hapax_model::key::KeyHash;
use hapax_model::letter::Cause;
use hapax_sql::sqlite::quote_identifier;

use super::convert::{self, Stored};
use super::schema::{Affinity, SqliteColumn};
use crate::table::column::{LiveColumn, VersionBytes};
use crate::table::described::{InKey, Sort};
use crate::table::number::short_integer;

impl LiveColumn for SqliteColumn {
    type Value<'a> = Stored<'a>;

    const HASH_TYPE: &'static str = "BLOB";
    const HASH_TYPES: &'static str = "a BLOB (faster) or TEXT column";
    const DELETED_TYPE: &'static str = "INTEGER NOT NULL DEFAULT 0";
    const ANY_TYPE: &'static str = "";

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
        matches!(self.affinity, Affinity::Blob | Affinity::Text | Affinity::Any)
    }

    fn holds_version(&self) -> bool {
        matches!(self.affinity, Affinity::Blob | Affinity::Any)
    }

    fn holds_json(&self) -> bool {
        convert::is_json_type(self)
    }

    fn takes_numbers(&self) -> bool {
        match self.affinity {
            Affinity::Integer | Affinity::Real => true,
            Affinity::Numeric => convert::is_number_type(self),
            Affinity::Text | Affinity::Any | Affinity::Blob => false,
        }
    }

    fn is_named(&self, name: &str) -> bool {
        Self::same_name(&self.name, name)
    }

    /// As SQLite does: without regard to ASCII case.
    fn same_name(a: &str, b: &str) -> bool {
        a.eq_ignore_ascii_case(b)
    }

    /// A name that no table can have is shown as it is.
    fn quoted(name: &str) -> String {
        quote_identifier(name).unwrap_or_else(|_| format!("{name:?}"))
    }

    #[inline]
    fn field<'a>(&self, value: FieldBytes<'a>) -> Result<Stored<'a>, Cause> {
        convert::field(self, value)
    }

    #[inline]
    fn plain_integer(&self, value: FieldBytes<'_>) -> Option<i64> {
        if let FieldBytes::Number(text) = value
            && matches!(self.affinity, Affinity::Integer | Affinity::Numeric)
        {
            return short_integer(text);
        }
        None
    }

    #[inline]
    fn key<'a>(&self, key: KeyHash) -> Stored<'a> {
        convert::key(self, key)
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
#[path = "mapping_tests.rs"]
mod mapping_tests;
