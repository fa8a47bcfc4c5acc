//! The JSON Schema of the configuration, for editors. Says what the schema tables say, and nothing else.

use serde_json::{Map, Value, json};

use super::merge::default_of;
use super::problem::Place;
use super::schema::{Choice, EventForm, Field, Kind, Preset, ROOT, Table, tables};
use super::show;

/// The schema, draft 2020-12.
pub(crate) fn json_schema() -> Value {
    let mut definitions = Map::new();
    for table in tables(&ROOT) {
        definitions.insert(table.name.into(), object(table));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Hapax {} configuration", env!("CARGO_PKG_VERSION")),
        "$ref": reference(&ROOT),
        "$defs": definitions,
    })
}

fn reference(table: &Table) -> String {
    // In a JSON pointer inside a URI, brackets are escaped.
    format!("#/$defs/{}", table.name.replace('[', "%5B").replace(']', "%5D"))
}

fn object(table: &Table) -> Value {
    let properties: Map<String, Value> =
        table.fields.iter().map(|field| (field.name.to_owned(), property(field))).collect();
    let required: Vec<_> =
        table.fields.iter().filter(|field| field.preset == Preset::Required).map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": table.doc,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if !table.exactly_one_of.is_empty() {
        schema["oneOf"] = table.exactly_one_of.iter().map(|name| json!({ "required": [name] })).collect();
    }
    schema
}

fn property(field: &Field) -> Value {
    let mut schema = of_kind(&field.kind);
    if matches!(field.kind, Kind::Planned) {
        schema["description"] = json!(format!("{} Planned; not in this version.", field.doc));
    } else {
        schema["description"] = json!(field.doc);
        schema["$comment"] = json!(format!("Since {}", field.since));
    }
    if let Some(default) = default_of(field, &Place::whole("")) {
        schema["default"] = show::to_json(&default);
    }
    schema
}

fn of_kind(kind: &Kind) -> Value {
    match kind {
        Kind::Text(rule) if rule.pattern.is_empty() => json!({ "type": "string", "minLength": 1 }),
        Kind::Text(rule) => or_variable(json!({ "type": "string", "pattern": rule.pattern })),
        Kind::Integer { least, most } => or_variable(json!({ "type": "integer", "minimum": least, "maximum": most })),
        Kind::Duration { .. } => or_variable(json!({ "type": "string", "pattern": "^[0-9]+ *(ms|s|m|h|d)$" })),
        Kind::Size { .. } => {
            let text = json!({ "type": "string", "pattern": "^[0-9]+ *(B|[KMGT]i?B)?$" });
            or_variable(json!({ "anyOf": [text, { "type": "integer", "minimum": 0 }] }))
        }
        Kind::Share => or_variable(json!({ "type": "string", "pattern": "^[0-9]+(\\.[0-9])? *(%|‰)$" })),
        Kind::Rate => {
            let text = json!({ "type": "string", "pattern": "^[0-9]+ */[smh]$" });
            or_variable(json!({ "anyOf": [text, { "type": "integer", "minimum": 1 }] }))
        }
        Kind::Boolean => or_variable(json!({ "type": "boolean" })),
        Kind::Choice(choices) => or_variable(one_of(choices)),
        Kind::List { of, fewest, most } => {
            json!({ "type": "array", "items": of_kind(of), "minItems": fewest, "maxItems": most })
        }
        Kind::Map { of, or: [] } => json!({ "type": "object", "additionalProperties": of_kind(of) }),
        Kind::Map { of, or } => {
            json!({ "anyOf": [{ "type": "object", "additionalProperties": of_kind(of) }, one_of(or)] })
        }
        Kind::Object(table) => json!({ "$ref": reference(table) }),
        Kind::Event(EventForm::Fields) => json!({ "type": "object" }),
        Kind::Event(EventForm::FieldsOrText) => json!({ "type": ["object", "string"] }),
        Kind::Planned => json!({ "not": {} }),
    }
}

fn one_of(choices: &[Choice]) -> Value {
    let listed = choices.iter().map(|choice| json!({ "const": choice.name, "description": choice.doc }));
    json!({ "oneOf": listed.collect::<Vec<_>>() })
}

/// Any scalar may come from a variable.
fn or_variable(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "string", "pattern": "\\$\\{.+\\}" }] })
}

#[cfg(test)]
#[path = "json_schema_tests.rs"]
mod tests;
