//! Objects that are used as maps: their keys are data, and no columns. Pure.
//!
//! Invariant: what is folded goes whole into one column of JSON, so nothing of it is lost.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use hapax_connect::table::described::Sort;
use hapax_model::field::FieldPath;

use super::Field;

/// An object with more fields than this is a map.
const FIELDS_MOST: usize = 30;
/// One whose fields are, on average, in fewer than one of so many events that have the object, is a map too.
const EVENTS_PER_FIELD: usize = 10;

/// The fields, with one for each object that is used as a map instead of all that are inside it; and those.
/// `objects`: in how many events each was.
pub(super) fn folded(fields: Vec<Field>, objects: &BTreeMap<Vec<String>, usize>) -> (Vec<Field>, Vec<FieldPath>) {
    let maps = maps(&fields, objects);
    let (mut folded, mut inside): (Vec<Field>, Vec<FieldPath>) = (Vec::with_capacity(fields.len()), Vec::new());
    for field in fields {
        let names = field.path.names();
        let Some(map) = (1..=names.len()).find_map(|depth| maps.get(&names[..depth])) else {
            folded.push(field);
            continue;
        };
        if names.len() > map.len() {
            inside.push(field.path.clone());
        }
        let whole = path(map);
        if folded.iter().all(|known| known.path != whole) {
            folded.push(Field { path: whole, sort: Sort::Json, seen: HashSet::new(), ..field });
        }
    }
    (folded, inside)
}

/// The names that lead to maps.
fn maps(fields: &[Field], objects: &BTreeMap<Vec<String>, usize>) -> BTreeSet<Vec<String>> {
    let mut inside: BTreeMap<&[String], BTreeSet<&str>> = BTreeMap::new();
    for names in fields.iter().map(|field| field.path.names()) {
        for depth in 1..names.len() {
            inside.entry(&names[..depth]).or_default().insert(&names[depth]);
        }
    }
    let events_with = |names: &[String]| objects.get(names).copied().unwrap_or_default();
    let is_map = |(object, keys): &(&[String], BTreeSet<&str>)| {
        let met: usize = keys.iter().map(|key| events_with(&[object, &[(*key).to_owned()][..]].concat())).sum();
        keys.len() > FIELDS_MOST || met * EVENTS_PER_FIELD < events_with(object) * keys.len()
    };
    inside.into_iter().filter(is_map).map(|(names, _)| names.to_vec()).collect()
}

fn path(names: &[String]) -> FieldPath {
    let text = names.iter().fold(String::new(), |path, name| format!("{path}{}", FieldPath::of_name(name)));
    text.parse().unwrap_or_else(|_| FieldPath::of_name(&names[0]))
}
