//! Tests of workflows as the configuration holds them, and events of a test as JSON.
//!
//! Reads: checked values. Writes: [`Fixture`]. Invariant: a number keeps its digits. Not here: running them
//! (`commands::test`).

use super::node::{Data, Node};
use super::problem::Place;
use super::value::{Held, Value};

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fixture {
    /// Where it stands, for those who look for it.
    pub(crate) place: Place,
    pub(crate) name: Option<String>,
    pub(crate) workflow: String,
    /// Only this sink; else all.
    pub(crate) sink: Option<String>,
    /// What the source reads, an input each.
    pub(crate) input: Vec<Input>,
    pub(crate) expect: Vec<Node>,
    pub(crate) deletes: Vec<Node>,
    pub(crate) rejects: Vec<Reject>,
    /// None: they are not compared.
    pub(crate) keys: Option<Vec<String>>,
}

/// One input of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Fields, which become what the source's format makes of them.
    Fields(Node),
    /// A line as it stands.
    Line(String),
}

/// A dead letter, by as much of it as is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reject {
    pub(crate) code: Option<String>,
    pub(crate) says: Option<String>,
    /// Counted from 1.
    pub(crate) input: Option<u64>,
}

/// The typed form of a checked test.
pub(super) fn build(test: &Value) -> Option<Fixture> {
    let text = |name: &str| test.get(name).and_then(Value::text).map(str::to_owned);
    let events = |name: &str| -> Vec<Node> {
        test.get(name).map_or(&[][..], Value::items).iter().filter_map(event).cloned().collect()
    };
    let keys = test.get("keys").map(|keys| keys.items().iter().filter_map(Value::text).map(str::to_owned).collect());
    Some(Fixture {
        place: test.place.clone(),
        name: text("name"),
        workflow: text("workflow")?,
        sink: text("sink"),
        input: events("input").into_iter().flat_map(inputs).collect(),
        expect: events("expect"),
        deletes: events("deletes"),
        rejects: test.get("rejects").map_or(&[][..], Value::items).iter().map(reject).collect(),
        keys,
    })
}

fn event(value: &Value) -> Option<&Node> {
    if let Held::Event(node) = &value.held { Some(node) } else { None }
}

fn reject(value: &Value) -> Reject {
    let text = |name: &str| value.get(name).and_then(Value::text).map(str::to_owned);
    Reject { code: text("code"), says: text("says"), input: value.get("input").and_then(Value::integer) }
}

/// The inputs that one entry of `input` stands for.
fn inputs(node: Node) -> Vec<Input> {
    match &node.data {
        // An empty text is one empty line.
        Data::Text(text) if text.is_empty() => vec![Input::Line(String::new())],
        Data::Text(text) => text.lines().map(|line| Input::Line(line.to_owned())).collect(),
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::List(_) | Data::Map(_) | Data::Lost => {
            vec![Input::Fields(node)]
        }
    }
}

/// A value as JSON on one line.
pub(crate) fn json_text(node: &Node) -> String {
    match &node.data {
        Data::Null | Data::Lost => "null".into(),
        Data::Bool(value) => value.to_string(),
        Data::Number(number) => json_number(number),
        Data::Text(text) => json_string(text),
        Data::List(items) => format!("[{}]", items.iter().map(json_text).collect::<Vec<_>>().join(",")),
        Data::Map(entries) => {
            let field = |key: &str, node: &Node| format!("{}:{}", json_string(key), json_text(node));
            let fields: Vec<String> = entries.iter().map(|entry| field(&entry.key, &entry.node)).collect();
            format!("{{{}}}", fields.join(","))
        }
    }
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The same number as JSON spells it: YAML also allows `+3`, `.5`, `5.` and `007`.
fn json_number(written: &str) -> String {
    let (sign, unsigned) = match written.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", written.strip_prefix('+').unwrap_or(written)),
    };
    let end = unsigned.find(['e', 'E']).unwrap_or(unsigned.len());
    let (mantissa, exponent) = unsigned.split_at(end);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::problem::Problems;
    use crate::config::yaml;

    fn json_of(text: &str) -> String {
        json_text(&yaml::parse(&"hapax.yaml".into(), text, &mut Problems::default()).expect("this is YAML"))
    }

    /// Goal: an event of a test is the JSON that a source would read, digit for digit. Method: odd spellings, nested.
    #[test]
    fn an_event_becomes_the_json_that_was_meant() {
        for (yaml, json) in [
            ("{ id: 7, amount: 12.50 }", r#"{"id":7,"amount":12.50}"#),
            ("[+3, .5, 5., 007, -0.0, 1e9, -.5E-3]", "[3,0.5,5,7,-0.0,1e9,-0.5E-3]"),
            ("{ a: { b: [~, true, \"null\"] } }", r#"{"a":{"b":[null,true,"null"]}}"#),
            ("{ a: 123456789012345678901234567890.123456789 }", r#"{"a":123456789012345678901234567890.123456789}"#),
            ("{ \"say \\\"hi\\\"\": \"${HOME}\\n\" }", r#"{"say \"hi\"":"${HOME}\n"}"#),
        ] {
            assert_eq!(json_of(yaml), json);
            assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{json}");
        }
    }

    /// Goal: a text stands for its lines. Method: one line, several, none.
    #[test]
    fn a_text_is_its_lines() {
        let lines_of = |text: &str| inputs(Node::new(Place::whole("hapax.yaml"), Data::Text(text.into())));
        let line = |text: &str| Input::Line(text.to_owned());
        assert_eq!(lines_of("{\"id\":"), [line("{\"id\":")]);
        assert_eq!(lines_of("id,name\n1,ann\n"), [line("id,name"), line("1,ann")]);
        assert_eq!(lines_of(""), [line("")]);
    }
}
