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

#[cfg(test)]
mod tests {
    use hapax_engine::batch::{Batch, FieldSpan, Layout, Operation};
    use hapax_model::field::FieldPath;
    use hapax_model::position::Position;
    use rusqlite::Connection;
    use rusqlite::types::Value;

    use super::super::convert;
    use super::*;
    use crate::table::column::{LiveColumn as _, StoredValue as _, append_integer};

    const AFFINITIES: [Affinity; 6] =
        [Affinity::Integer, Affinity::Numeric, Affinity::Text, Affinity::Any, Affinity::Blob, Affinity::Real];

    fn column(affinity: Affinity) -> SqliteColumn {
        let (name, declared) = ("a".to_owned(), String::new());
        SqliteColumn { name, declared, affinity, required: false, fills_itself: false }
    }

    fn stored(value: impl ToSql) -> Value {
        Connection::open_in_memory().unwrap().query_row("SELECT ?1", [value], |row| row.get(0)).unwrap()
    }

    /// Goal: what goes straight is what the conversion makes, as a value and as a key. Method: numbers and strings of
    /// many forms into columns of every affinity.
    #[test]
    fn what_goes_straight_is_what_the_conversion_makes() {
        let connection = Connection::open_in_memory().unwrap();
        let mut straight = 0;
        for text in ["0", "-7", "12", "1.0", "1e2", "-0", "123456789012345678", "1234567890123456789", "0.5", "é", ""]
        {
            for field in [FieldSpan::Number(0..text.len()), FieldSpan::Text(0..text.len())] {
                let mut batch = Batch::new(Layout::new(&[FieldPath::of_name("a")]));
                batch.inputs.push(Position::at(0), text.as_bytes());
                batch.push_event(0, 0, Operation::Upsert).set(0, &field);
                let event = batch.event(0);
                for affinity in AFFINITIES {
                    let column = column(affinity);
                    let converted = convert::field(&column, event.field_bytes(0));
                    let mut statement = connection.prepare("SELECT ?1").unwrap();
                    if Way::into(&column, Some(0)).bind(&event, &mut statement, 1).unwrap() == Bound::Yes {
                        let bound: Value = statement.raw_query().next().unwrap().unwrap().get(0).unwrap();
                        assert_eq!(bound, stored(converted.clone().unwrap()), "{text} into {affinity:?}");
                        straight += 1;
                    }
                    if let Some(value) = column.plain_integer(event.field_bytes(0)) {
                        let (mut plain, mut key) = (Vec::new(), Vec::new());
                        append_integer(&mut plain, value);
                        converted.unwrap().append_key(&mut key);
                        assert_eq!(plain, key, "{text} as a key in {affinity:?}");
                    }
                }
            }
        }
        assert!(straight >= 20, "{straight} values went straight");
    }
}
