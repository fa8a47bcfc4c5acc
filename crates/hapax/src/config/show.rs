//! The effective configuration as text: YAML that reads back as the same configuration, or JSON.
//!
//! Invariant: secrets print as `***`; the same configuration always prints the same text.

use hapax_model::units::print_duration;
use serde_json::json;

use super::fixture::json_text;
use super::node::{Data, Origin, resolve_plain, without_password};
use super::value::{Held, Value};

const MASK: &str = "***";
/// Under these names the whole value is a secret, wherever it came from.
const SECRET_NAMES: [&str; 4] = ["password", "secret", "token", "webhook"];

/// Under these names an address is written, which may hold a password.
const ADDRESS_NAMES: [&str; 4] = ["listen", "state", "store", "url"];

/// The configuration as YAML.
pub(crate) fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    if let Some(fields) = named(value) {
        fields.for_each(|(name, value)| write_field(name, value, 0, &mut out));
    }
    out
}

/// The configuration as JSON.
pub(crate) fn to_json(value: &Value) -> serde_json::Value {
    if value.origin == Origin::Variable {
        return json!(MASK);
    }
    match &value.held {
        Held::Text(text) => json!(without_password(text)),
        Held::Integer(number) => json!(number),
        Held::Boolean(value) => json!(value),
        Held::Duration(_) | Held::Size(_) | Held::Share(_) | Held::Rate(_) | Held::Choice(_) => json!(word(value)),
        Held::List(items) => items.iter().map(to_json).collect(),
        Held::Event(event) => serde_json::from_str(&json_text(event)).unwrap_or_default(),
        Held::Map(_) | Held::Object(_) => {
            let fields = named(value).into_iter().flatten();
            let shown = |(name, value): (&str, &Value)| {
                let shown = if is_secret_name(name) { json!(MASK) } else { to_json(value) };
                (name.to_owned(), shown)
            };
            serde_json::Value::Object(fields.map(shown).collect())
        }
    }
}

/// The names and values of a map or an object.
fn named(value: &Value) -> Option<Box<dyn Iterator<Item = (&str, &Value)> + '_>> {
    match &value.held {
        Held::Map(entries) => Some(Box::new(entries.iter().map(|(name, value)| (name.as_str(), value)))),
        Held::Object(fields) => Some(Box::new(fields.iter().map(|(name, value)| (*name, value)))),
        Held::Text(_)
        | Held::Integer(_)
        | Held::Duration(_)
        | Held::Size(_)
        | Held::Share(_)
        | Held::Rate(_)
        | Held::Boolean(_)
        | Held::Choice(_)
        | Held::Event(_)
        | Held::List(_) => None,
    }
}

/// Whether a field of this name holds a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    SECRET_NAMES.contains(&name)
}

/// Whether a field of this name holds an address.
pub(super) fn is_address_name(name: &str) -> bool {
    ADDRESS_NAMES.contains(&name)
}

fn write_field(name: &str, value: &Value, indent: usize, out: &mut String) {
    out.push_str(&" ".repeat(indent));
    out.push_str(&quoted_if_needed(name));
    out.push(':');
    if is_secret_name(name) {
        out.push_str(&format!(" \"{MASK}\"\n"));
        return;
    }
    if let Some(mut fields) = named(value).map(Iterator::peekable)
        && fields.peek().is_some()
    {
        out.push('\n');
        fields.for_each(|(name, value)| write_field(name, value, indent + 2, out));
        return;
    }
    let blocks = value.items().iter().filter_map(named).map(Iterator::peekable);
    let mut blocks = blocks.peekable();
    if blocks.peek().is_none() {
        out.push_str(&format!(" {}\n", inline(value)));
        return;
    }
    out.push('\n');
    for fields in blocks {
        let start = out.len();
        fields.for_each(|(name, value)| write_field(name, value, indent + 4, out));
        // The first field of an item stands behind its hyphen.
        let hyphen_at = start + indent + 2;
        if out.is_char_boundary(hyphen_at) && out.len() > hyphen_at {
            out.replace_range(hyphen_at..=hyphen_at, "-");
        }
    }
}

/// A value on one line.
fn inline(value: &Value) -> String {
    if value.origin == Origin::Variable {
        return format!("\"{MASK}\"");
    }
    match &value.held {
        Held::List(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Held::Map(_) | Held::Object(_) => "{}".into(),
        // JSON is YAML too, and keeps every digit.
        Held::Event(event) => json_text(event).replace("${", "$${"),
        Held::Text(text) => quoted_if_needed(&without_password(text)),
        Held::Integer(_)
        | Held::Duration(_)
        | Held::Size(_)
        | Held::Share(_)
        | Held::Rate(_)
        | Held::Boolean(_)
        | Held::Choice(_) => word(value),
    }
}

/// A scalar that needs no quotes.
fn word(value: &Value) -> String {
    match &value.held {
        Held::Integer(number) => number.to_string(),
        Held::Duration(duration) => print_duration(*duration),
        Held::Size(size) => size.to_string(),
        Held::Share(share) => share.to_string(),
        Held::Rate(rate) => rate.to_string(),
        Held::Boolean(value) => value.to_string(),
        Held::Choice(name) => (*name).to_owned(),
        Held::Text(_) | Held::List(_) | Held::Map(_) | Held::Event(_) | Held::Object(_) => String::new(),
    }
}

/// A text as YAML. A JSON string is one too, so that is what odd texts become.
fn quoted_if_needed(text: &str) -> String {
    let escaped = text.replace("${", "$${");
    let plain = escaped.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/' | '.'))
        && escaped.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-'))
        && resolve_plain(&escaped) == Data::Text(escaped.clone());
    if plain { escaped } else { json!(escaped).to_string() }
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
