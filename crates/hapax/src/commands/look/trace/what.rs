//! What `hapax trace` was asked about.

use std::collections::BTreeMap;

use hapax_model::field::FieldPath;
use hapax_model::key::KeyHash;
use hapax_model::position::Position;
use serde_json::value::RawValue;

use super::super::unclear;
use crate::exit::Failure;

/// A place, or a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Position(Position),
    Key(KeyHash),
    /// An event that has the key fields and nothing else, as JSON; numbers keep their digits.
    Fields(String),
}

impl What {
    /// Reads the arguments.
    pub(super) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        if arguments.iter().any(|argument| argument.contains('=')) {
            return fields(arguments).map(Self::Fields);
        }
        let [one] = arguments else {
            return Err(unclear("one position or key at a time, or key fields as name=value"));
        };
        if let Ok(position) = one.parse() {
            return Ok(Self::Position(position));
        }
        one.parse().map(Self::Key).map_err(|_| {
            unclear(format!(
                "\"{one}\" is neither a position as `hapax status` prints it, nor a key (h1_ and 26 letters), nor key fields \
                 as name=value"
            ))
        })
    }
}

/// Whether an event of key fields has this one.
pub(super) fn has(event: &str, field: &FieldPath) -> bool {
    let event: serde_json::Value = serde_json::from_str(event).unwrap_or_default();
    field.names().iter().try_fold(&event, |inside, name| inside.get(name)).is_some()
}

/// The event with texts in the place of numbers and truths.
pub(super) fn with_texts(event: &str) -> String {
    fn text_of(raw: &RawValue) -> String {
        match raw.get().as_bytes().first() {
            Some(b'{') => with_texts(raw.get()),
            Some(b'"') => raw.get().to_owned(),
            Some(_) | None => quoted(raw.get()),
        }
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(event).unwrap_or_default();
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}:{}", quoted(name), text_of(value))).collect();
    format!("{{{}}}", fields.join(","))
}

fn fields(arguments: &[String]) -> Result<String, Failure> {
    let mut event = BTreeMap::new();
    for pair in arguments.iter().flat_map(|argument| pairs(argument)) {
        let (name, value) =
            pair.split_once('=').ok_or_else(|| unclear(format!("\"{pair}\" is no key field: write name=value")))?;
        let path: FieldPath = name.trim().parse().map_err(|error| unclear(format!("\"{name}\": {error}")))?;
        insert(&mut event, path.names(), scalar(value))
            .ok_or_else(|| unclear(format!("{path} lies inside another field that has a value of its own")))?;
    }
    Ok(Node::Inner(event).json())
}

/// A field, or fields inside one.
enum Node {
    Leaf(String),
    Inner(BTreeMap<String, Node>),
}

impl Node {
    fn json(&self) -> String {
        match self {
            Self::Leaf(json) => json.clone(),
            Self::Inner(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, node)| format!("{}:{}", quoted(name), node.json())).collect();
                format!("{{{}}}", fields.join(","))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is always JSON")
}

/// `a=1,b=x` as its pairs; a comma that no `name=` follows belongs to the value before it.
fn pairs(argument: &str) -> Vec<String> {
    let mut pairs: Vec<String> = Vec::new();
    for piece in argument.split(',') {
        match pairs.last_mut() {
            Some(last) if !piece.contains('=') => {
                last.push(',');
                last.push_str(piece);
            }
            Some(_) | None => pairs.push(piece.to_owned()),
        }
    }
    pairs
}

/// A number, true, false or a quoted text as it stands; anything else is a text.
fn scalar(text: &str) -> Node {
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok() && !text.starts_with(['n', '[', '{', ' ']);
    Node::Leaf(if is_json { text.to_owned() } else { quoted(text) })
}

fn insert(event: &mut BTreeMap<String, Node>, names: &[String], value: Node) -> Option<()> {
    let (name, inner) = names.split_first()?;
    if inner.is_empty() {
        event.insert(name.clone(), value);
        return Some(());
    }
    match event.entry(name.clone()).or_insert_with(|| Node::Inner(BTreeMap::new())) {
        Node::Inner(fields) => insert(fields, inner, value),
        Node::Leaf(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Option<What> {
        What::parse(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>()).ok()
    }

    /// Goal: each form is told from the others. Method: one of each, and what is none.
    #[test]
    fn a_position_a_key_and_fields_are_told_apart() {
        assert_eq!(parsed(&["4096"]), Some(What::Position(Position::at(4096))));
        assert_eq!(parsed(&["7.3"]), Some(What::Position(Position { offset: 7, index: 3 })));
        let key = KeyHash([7; 16]);
        assert_eq!(parsed(&[&key.to_string()]), Some(What::Key(key)));
        assert_eq!(parsed(&["order 7"]), None);
        assert_eq!(parsed(&["1", "2"]), None);
    }

    /// Goal: fields become the event that has them. Method: kinds of values, nesting, commas, several arguments.
    #[test]
    fn fields_become_an_event() {
        let fields = |arguments: &[&str]| match parsed(arguments) {
            Some(What::Fields(event)) => Some(event),
            Some(What::Position(_) | What::Key(_)) | None => None,
        };
        assert_eq!(fields(&["id=7,name=ann"]), Some(r#"{"id":7,"name":"ann"}"#.to_owned()));
        assert_eq!(fields(&["id=\"7\"", "ok=true"]), Some(r#"{"id":"7","ok":true}"#.to_owned()));
        assert_eq!(fields(&[".order.id=7,order.line=a, b"]), Some(r#"{"order":{"id":7,"line":"a, b"}}"#.to_owned()));
        assert_eq!(fields(&["a=x=y"]), Some(r#"{"a":"x=y"}"#.to_owned()));
        assert_eq!(fields(&["a=12345678901234567890.10"]), Some(r#"{"a":12345678901234567890.10}"#.to_owned()));
        assert_eq!(fields(&["a=null,b="]), Some(r#"{"a":"null","b":""}"#.to_owned()));
        assert_eq!(with_texts(r#"{"a":{"b":1.0,"c":"x"},"d":true}"#), r#"{"a":{"b":"1.0","c":"x"},"d":"true"}"#);
        assert_eq!(fields(&["a=1,.a.b=2"]), None);
        assert_eq!(fields(&["x", "a=1"]), None);
    }
}
