//! JSON values compared by what they say: numbers by value, fields in any order, absent is not null.
//!
//! Reads: JSON text, fields of events, events of a test. Writes: differences. Invariant: no digit is lost.

use std::collections::BTreeMap;
use std::fmt;

use hapax_model::field::FieldValue;
use serde_json::value::RawValue;

use crate::config::{Data, Node};

/// The fields of an event.
pub(super) type Fields = BTreeMap<String, Shape>;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Shape>),
    Fields(Fields),
}

/// A number as it was written; equal if its value is.
#[derive(Debug, Clone)]
pub(super) struct Number(String);

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.decimal() == other.decimal()
    }
}

impl Eq for Number {}

impl Number {
    /// Sign, digits without zeros at either end, and the power of ten of the last digit.
    fn decimal(&self) -> (bool, String, i64) {
        let (negative, unsigned) = match self.0.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, self.0.strip_prefix('+').unwrap_or(&self.0)),
        };
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        let kept = digits.trim_end_matches('0');
        let dropped = digits.len() - kept.len();
        let exponent: i64 = exponent.parse().unwrap_or(i64::MAX);
        let power = exponent.saturating_sub(signed(fraction.len())).saturating_add(signed(dropped));
        match kept.trim_start_matches('0') {
            "" => (false, String::new(), 0),
            significant => (negative, significant.to_owned(), power),
        }
    }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

impl Shape {
    /// The value of a field; none if it is absent.
    pub(super) fn of_field(value: FieldValue<'_>) -> Option<Self> {
        match value {
            FieldValue::Absent => None,
            FieldValue::Null => Some(Self::Null),
            FieldValue::Bool(value) => Some(Self::Bool(value)),
            FieldValue::Number(text) => Some(Self::Number(Number(text.to_owned()))),
            FieldValue::Text(text) => Some(Self::Text(text.to_owned())),
            FieldValue::Json(text) => Some(Self::of_json(text)),
        }
    }

    /// The value that `text` holds, which was found to be JSON before.
    fn of_json(text: &str) -> Self {
        let text = text.trim();
        match text.as_bytes().first() {
            Some(b'{') => {
                let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
                Self::Fields(fields.into_iter().map(|(name, raw)| (name, Self::of_json(raw.get()))).collect())
            }
            Some(b'[') => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
                Self::List(items.iter().map(|raw| Self::of_json(raw.get())).collect())
            }
            Some(b'"') => Self::Text(serde_json::from_str(text).unwrap_or_default()),
            Some(b't' | b'f') => Self::Bool(text == "true"),
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number(Number(text.to_owned())),
        }
    }

    /// The value that the configuration holds.
    pub(super) fn of_node(node: &Node) -> Self {
        match &node.data {
            Data::Null | Data::Lost => Self::Null,
            Data::Bool(value) => Self::Bool(*value),
            Data::Number(text) => Self::Number(Number(text.clone())),
            Data::Text(text) => Self::Text(text.clone()),
            Data::List(items) => Self::List(items.iter().map(Self::of_node).collect()),
            Data::Map(_) => Self::Fields(fields_of(node)),
        }
    }
}

/// The fields of an event of a test.
pub(super) fn fields_of(node: &Node) -> Fields {
    match &node.data {
        Data::Map(entries) => entries.iter().map(|entry| (entry.key.clone(), Shape::of_node(&entry.node))).collect(),
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) | Data::List(_) | Data::Lost => Fields::new(),
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(Number(text)) => f.write_str(text),
            Self::Text(text) => write!(f, "{}", serde_json::Value::from(text.as_str())),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Fields(fields) => f.write_str(&shown(fields)),
        }
    }
}

/// Fields on one line, as JSON, which is YAML too.
pub(super) fn shown(fields: &Fields) -> String {
    let one = |(name, value): (&String, &Shape)| format!("{}: {value}", serde_json::Value::from(name.as_str()));
    let fields: Vec<String> = fields.iter().map(one).collect();
    if fields.is_empty() { "{}".into() } else { format!("{{ {} }}", fields.join(", ")) }
}

/// One value that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// The path within the event, such as `.order.lines[2]`.
    pub(super) path: String,
    pub(super) expected: String,
    pub(super) got: String,
}

/// What an absent field is called.
const ABSENT: &str = "nothing: the field is absent";

/// Where `got` is not `expected`, field by field.
pub(super) fn differences(expected: &Fields, got: &Fields) -> Vec<Difference> {
    let mut found = Vec::new();
    compare_fields(expected, got, "", &mut found);
    found
}

fn compare_fields(expected: &Fields, got: &Fields, path: &str, found: &mut Vec<Difference>) {
    let more = got.keys().filter(|name| !expected.contains_key(*name));
    for name in expected.keys().chain(more) {
        compare(expected.get(name), got.get(name), &format!("{path}.{name}"), found);
    }
}

fn compare(expected: Option<&Shape>, got: Option<&Shape>, path: &str, found: &mut Vec<Difference>) {
    match (expected, got) {
        (Some(Shape::Fields(expected)), Some(Shape::Fields(got))) => compare_fields(expected, got, path, found),
        (Some(Shape::List(expected)), Some(Shape::List(got))) => {
            for at in 0..expected.len().max(got.len()) {
                compare(expected.get(at), got.get(at), &format!("{path}[{}]", at + 1), found);
            }
        }
        (expected, got) if expected == got => {}
        (expected, got) => {
            let said = |shape: Option<&Shape>| shape.map_or_else(|| ABSENT.to_owned(), ToString::to_string);
            found.push(Difference { path: path.to_owned(), expected: said(expected), got: said(got) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Shape {
        Shape::of_json(text)
    }

    /// Goal: numbers are equal by value, to the last digit. Method: spellings of one, and neighbours.
    #[test]
    fn numbers_are_compared_by_value_with_every_digit() {
        for (a, b) in [
            ("12.5", "12.50"),
            ("12.5", "1.25e1"),
            ("100", "1e2"),
            ("0", "-0.000"),
            ("0.001", "1E-3"),
            ("1e400", "10e399"),
        ] {
            assert_eq!(number(a), number(b));
        }
        for (a, b) in [
            ("12.5", "12.51"),
            ("1", "-1"),
            ("9007199254740993", "9007199254740992"),
            ("0.1", "0.1000000000000000055511151231257827"),
            ("1e400", "1e401"),
            ("10", "1"),
        ] {
            assert_ne!(number(a), number(b));
        }
        assert_ne!(number("1"), Shape::Text("1".into()));
    }

    /// Goal: a difference names its place. Method: nested, in a list, absent against null, one field too many.
    #[test]
    fn differences_are_told_field_by_field() {
        let fields = |text: &str| {
            let Shape::Fields(fields) = Shape::of_json(text) else { panic!("no fields: {text}") };
            fields
        };
        let expected = fields(r#"{"a":{"b":[1,2]},"c":null,"d":"x","same":[{"n":1.0}]}"#);
        let got = fields(r#"{"a":{"b":[1,3,4]},"d":"y","e":true,"same":[{"n":1}]}"#);
        let told: Vec<String> =
            differences(&expected, &got).iter().map(|it| format!("{} {} | {}", it.path, it.expected, it.got)).collect();
        assert_eq!(
            told,
            [
                ".a.b[2] 2 | 3",
                ".a.b[3] nothing: the field is absent | 4",
                ".c null | nothing: the field is absent",
                ".d \"x\" | \"y\"",
                ".e nothing: the field is absent | true",
            ]
        );
        assert!(differences(&expected, &expected).is_empty());
    }
}
