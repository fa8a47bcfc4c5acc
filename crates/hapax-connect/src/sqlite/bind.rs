//! From an event's field to a statement's parameter, without a look at the column for every row.
//!
//! Reads: a column once, then fields. Writes: parameters. Invariant: what goes straight is what `convert` would have
//! made of it; whatever else there is goes through `convert`.

use hapax_engine::batch::{FieldBytes, OutputEvent};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Statement, ToSql};

use super::schema::{Affinity, SqliteColumn};
use crate::table::number::short_integer;

/// How most values of a column reach their parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Numbers of the field in this slot, if they are short and whole, as integers.
    Integer(usize),
    /// Strings of the field in this slot, as text.
    Text(usize),
    /// Through the conversion.
    Converted,
}

impl Way {
    /// The way into `column`, which the field in `slot` feeds, if one does.
    pub(super) const fn into(column: &SqliteColumn, slot: Option<usize>) -> Self {
        match (column.affinity, slot) {
            (Affinity::Integer | Affinity::Numeric, Some(slot)) => Self::Integer(slot),
            (Affinity::Text, Some(slot)) => Self::Text(slot),
            (Affinity::Any | Affinity::Blob | Affinity::Real, Some(_)) | (_, None) => Self::Converted,
        }
    }

    /// Binds the event's value, if it can go straight.
    #[inline]
    pub(super) fn bind(
        self,
        event: &OutputEvent<'_>,
        statement: &mut Statement<'_>,
        parameter: usize,
    ) -> rusqlite::Result<Bound> {
        match self {
            Self::Integer(slot) => {
                if let FieldBytes::Number(text) = event.field_bytes(slot)
                    && let Some(value) = short_integer(text)
                {
                    statement.raw_bind_parameter(parameter, value)?;
                    return Ok(Bound::Yes);
                }
            }
            Self::Text(slot) => {
                if let FieldBytes::Text(text) = event.field_bytes(slot) {
                    statement.raw_bind_parameter(parameter, Characters(text))?;
                    return Ok(Bound::Yes);
                }
            }
            Self::Converted => {}
        }
        Ok(Bound::NotYet)
    }
}

/// Whether a value went straight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Yes,
    NotYet,
}

/// Text that is known to be UTF-8.
struct Characters<'a>(&'a [u8]);

impl ToSql for Characters<'_> {
    #[inline]
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}
