//! What the first events of a source fill of a table's columns, and what of them no column takes.

use std::collections::BTreeSet;

use hapax_engine::batch::{Batch, FieldBytes, Inputs};
use hapax_engine::decode::path_inside;
use hapax_model::field::FieldPath;
use hapax_model::nearest::nearest;

use super::{events_of, shown};
use crate::assemble::{Live, Part};

/// What a look at the first events told of a table's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filled {
    /// How many events were looked at.
    pub(crate) events: usize,
    /// Columns whose field none of them has.
    pub(crate) unfilled: Vec<String>,
    /// Of these, those that nobody has to fill: the database does.
    pub(crate) left_to_database: Vec<String>,
    /// Columns whose field some have, and which was empty in all of them.
    pub(crate) empty: Vec<String>,
    /// Fields that are wanted and that none of them has, each with the field that was probably meant.
    pub(crate) meant: Vec<(FieldPath, FieldPath)>,
    /// Fields that no column takes, as people call them.
    pub(crate) left_out: Vec<String>,
}

/// What the events have for a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Has {
    Nothing,
    Null,
    Value,
}

/// Which columns no event fills, and which fields no column takes.
pub(crate) fn filled(part: &Part<'_>, live: &Live, inputs: &[Inputs]) -> Filled {
    let delivery = &part.workflow.delivery;
    let keys = &delivery.deduplication.key_fields;
    let condition = part.table().delete_when.as_ref().map(|condition| &condition.path);
    let wanted: BTreeSet<&FieldPath> = live.fed.iter().map(|(_, path)| path).chain(keys).chain(condition).collect();
    let fields: Vec<FieldPath> = wanted.into_iter().cloned().collect();
    let seen: Vec<(Batch, Vec<String>)> =
        inputs.iter().map(|of_one_file| events_of(part, &fields, of_one_file)).collect();
    let has = |path: &FieldPath| seen.iter().map(|(batch, _)| has(batch, path)).max().unwrap_or(Has::Nothing);
    let columns = |wanted: Has| {
        let found = live.fed.iter().filter(move |(_, path)| has(path) == wanted);
        found.map(|(column, _)| column.clone()).collect::<Vec<_>>()
    };
    let unfilled = columns(Has::Nothing);
    let others: BTreeSet<&str> = seen.iter().flat_map(|(_, others)| others.iter().map(String::as_str)).collect();
    let mut meant = Vec::new();
    for path in live.fed.iter().map(|(_, path)| path).chain(keys).filter(|path| has(path) != Has::Value) {
        let near = nearest(&path.names().join("."), others.iter().map(|name| name.trim_start_matches('.')));
        let near = near.and_then(|near| others.iter().find(|name| name.trim_start_matches('.') == near));
        let pair = near.map(|name| (path.clone(), path_of(name)));
        meant.extend(pair.filter(|pair| !meant.contains(pair)));
    }
    Filled {
        events: seen.iter().map(|(batch, _)| batch.len()).sum(),
        left_to_database: unfilled.iter().filter(|name| live.fills_itself.contains(name)).cloned().collect(),
        unfilled,
        empty: columns(Has::Null),
        meant,
        left_out: others.iter().map(|name| shown(&path_of(name))).collect(),
    }
}

fn has(batch: &Batch, path: &FieldPath) -> Has {
    let of_event = |field: FieldBytes<'_>| match field {
        FieldBytes::Absent => Has::Nothing,
        FieldBytes::Null => Has::Null,
        FieldBytes::Bool(_) | FieldBytes::Number(_) | FieldBytes::Text(_) | FieldBytes::Json(_) => Has::Value,
    };
    let slot = batch.layout().slot_of(path);
    let best = slot.and_then(|slot| batch.events().map(|event| of_event(event.field_bytes(slot))).max());
    best.unwrap_or(Has::Nothing)
}

/// A field that nothing took, as the decoder names it.
fn path_of(name: &str) -> FieldPath {
    path_inside(name).unwrap_or_else(|| FieldPath::of_name(name))
}
