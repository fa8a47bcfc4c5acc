//! What looking at a table's rows needs that no database answers: how it is written, what fits, which row an event has.
//!
//! Pure. The questions themselves are each dialect's own (`read.rs` there).

use hapax_engine::batch::{Batch, OutputEvent};
use hapax_engine::rows::{ByHash, RowOrder, TableShape};
use hapax_model::key::KeyHash;
use hapax_model::letter::Cause;

use super::column::{LiveColumn, StoredValue as _};
use super::mapping::{Feed, Mapping};
use super::rows::{Incarnations, Rows};
use super::shape::AbsentSet;

/// How the table is written; `name` is what messages call it.
#[must_use]
pub fn shape<C: LiveColumn>(name: String, mapping: &Mapping<C>) -> TableShape {
    let by_hash = mapping.key.iter().any(|at| mapping.columns[*at].feed == Feed::Key);
    let declared = mapping.version.is_some_and(|at| mapping.columns[at].feed != Feed::Version);
    TableShape {
        name,
        mode: mapping.mode,
        fields: mapping.fields.clone(),
        key: mapping.key.iter().map(|at| mapping.columns[*at].live.name().to_owned()).collect(),
        by_hash: if by_hash { ByHash::Yes } else { ByHash::No },
        order: if declared { RowOrder::Declared } else { RowOrder::Lane },
    }
}

/// A batch as rows, for questions that no version answers.
#[must_use]
pub fn rows<'a, C: LiveColumn>(mapping: &'a Mapping<C>, batch: &'a Batch) -> Rows<'a, C> {
    Rows::new(mapping, batch, Incarnations::One(1))
}

/// Events that would die on their way into the table, with the cause.
#[must_use]
pub fn misfits<C: LiveColumn>(mapping: &Mapping<C>, batch: &Batch) -> Vec<(usize, Cause)> {
    let rows = rows(mapping, batch);
    let mut absent = AbsentSet::default();
    batch.events().filter_map(|event| Some((event.index(), rows.misfit(&event, &mut absent)?))).collect()
}

/// What a write would put into the key's columns; none if it would be refused, or there is no key.
#[must_use]
pub fn key_values<'b, C: LiveColumn>(rows: &Rows<'_, C>, event: &OutputEvent<'b>) -> Option<Vec<C::Value<'b>>> {
    let values: Option<Vec<C::Value<'b>>> = rows.mapping.key.iter().map(|at| rows.value(event, *at).ok()).collect();
    values.filter(|values| !values.is_empty())
}

/// What a write would put into the key's column for this key; none if the key's columns hold fields.
#[must_use]
pub fn hash_value<C: LiveColumn>(mapping: &Mapping<C>, key: KeyHash) -> Option<C::Value<'static>> {
    let column = mapping.key.first().map(|at| &mapping.columns[*at]).filter(|column| column.feed == Feed::Key)?;
    Some(column.live.key(key))
}

/// For each event, bytes that are equal exactly for events which the table takes for one row.
#[must_use]
pub fn row_keys<C: LiveColumn>(mapping: &Mapping<C>, batch: &Batch) -> Vec<Option<Vec<u8>>> {
    let rows = rows(mapping, batch);
    let key = |event: OutputEvent<'_>| {
        let mut bytes = Vec::with_capacity(24);
        key_values(&rows, &event)?.iter().for_each(|value| value.append_key(&mut bytes));
        Some(bytes)
    };
    batch.events().map(key).collect()
}

/// The column that marks a removed row.
#[must_use]
pub fn deleted_column<C: LiveColumn>(mapping: &Mapping<C>) -> Option<&str> {
    mapping.columns.iter().find(|column| column.feed == Feed::Deleted).map(|column| column.live.name())
}
