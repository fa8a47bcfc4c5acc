//! Lays what a workflow writes over what the file writes, and both over the defaults.
//!
//! Reads: checked values and the schema. Writes: the effective configuration, in the order of the schema.
//! Invariant: what is written nearer wins, field by field; lists are replaced, never joined.

use super::check::check;
use super::node::{Data, Node, resolve_plain};
use super::problem::{Place, Problems};
use super::schema::{Field, Kind, ROOT, Table};
use super::value::{Held, Value};

/// The whole configuration with everything filled in: each workflow has its delivery, each field its default.
pub(crate) fn effective(written: &Value) -> Value {
    let mut whole = written.clone();
    let shared = written.get("delivery");
    if let Held::Object(fields) = &mut whole.held {
        for (_, workflows) in fields.iter_mut().filter(|(name, _)| *name == "workflows") {
            if let Held::List(workflows) = &mut workflows.held {
                workflows.iter_mut().for_each(|workflow| inherit(workflow, shared));
            }
        }
    }
    fill(whole, &ROOT)
}

fn inherit(workflow: &mut Value, shared: Option<&Value>) {
    let own = workflow.get("delivery").cloned();
    let delivery = match (own, shared) {
        (Some(own), Some(shared)) => over(own, &applicable(shared, workflow.at("delivery.guarantee"))),
        (Some(own), None) => own,
        (None, Some(shared)) => shared.clone(),
        (None, None) => Value { held: Held::Object(Vec::new()), ..workflow.clone() },
    };
    if let Held::Object(fields) = &mut workflow.held {
        fields.retain(|(name, _)| *name != "delivery");
        fields.push(("delivery", delivery));
    }
}

/// What a workflow inherits. A mechanism was chosen for its guarantee: another guarantee does not inherit it.
fn applicable(shared: &Value, own_guarantee: Option<&Value>) -> Value {
    let mut shared = shared.clone();
    let another = own_guarantee.is_some_and(|own| shared.get("guarantee").and_then(Value::text) != own.text());
    if let (true, Held::Object(fields)) = (another, &mut shared.held) {
        fields.retain(|(name, _)| *name != "mechanism");
    }
    shared
}

/// `own` over `under`, block by block.
fn over(own: Value, under: &Value) -> Value {
    let Value { place, origin, held } = own;
    let held = match (held, &under.held) {
        (Held::Object(mut own), Held::Object(under)) => {
            for (name, value) in under {
                match own.iter_mut().find(|(known, _)| known == name) {
                    Some((_, mine)) => *mine = over(mine.clone(), value),
                    None => own.push((name, value.clone())),
                }
            }
            Held::Object(own)
        }
        (held, _) => held,
    };
    Value { place, origin, held }
}

/// `value` with the defaults of `table` and of the blocks in it, in the order of the table.
pub(crate) fn fill(value: Value, table: &'static Table) -> Value {
    let Value { place, origin, held } = value;
    let Held::Object(mut written) = held else { return Value { place, origin, held } };
    let mut fields = Vec::new();
    for field in table.fields {
        let at = written.iter().position(|(name, _)| *name == field.name);
        let value = at.map(|at| written.swap_remove(at).1).or_else(|| default_of(field, &place));
        fields.extend(value.map(|value| (field.name, fill_kind(value, &field.kind))));
    }
    Value { place, origin, held: Held::Object(fields) }
}

fn fill_kind(value: Value, kind: &Kind) -> Value {
    match (kind.table(), value) {
        (Some(_), Value { place, origin, held: Held::List(items) }) => {
            let of = if let Kind::List { of, .. } = kind { of } else { kind };
            let items = items.into_iter().map(|item| fill_kind(item, of)).collect();
            Value { place, origin, held: Held::List(items) }
        }
        (Some(table), value) => fill(value, table),
        (None, value) => value,
    }
}

/// The default of a field, read as if it stood in the file.
pub(crate) fn default_of(field: &Field, place: &Place) -> Option<Value> {
    let yaml = field.preset.yaml()?;
    let place = Place::whole(&place.file);
    let node = match yaml.chars().next() {
        // Lists and quoted texts need the parser; all other defaults are plain words.
        Some('[' | '{' | '"') => super::yaml::parse(&place.file, &yaml, &mut Problems::default())?,
        Some(_) | None => Node::new(place.clone(), resolve_plain(&yaml)),
    };
    debug_assert!(!matches!(node.data, Data::Null), "the default of {} is empty", field.name);
    let value = check(&node, &field.kind, field.name, &mut Problems::default())?;
    Some(Value { place, ..value })
}

/// A `delivery:` block in which nothing is written, with every default.
#[cfg(test)]
pub(crate) fn default_delivery() -> Value {
    let place = Place::whole("hapax.yaml");
    fill(Value { place, origin: super::node::Origin::File, held: Held::Object(Vec::new()) }, &super::schema::DELIVERY)
}
