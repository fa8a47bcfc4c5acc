//! `deleteWhen: .op == "d"`: a path and a literal, no program needed.

use std::fmt;
use std::str::FromStr;

use crate::field::{FieldPath, FieldValue};

/// A literal that a field is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// `null`; an absent field matches too.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, compared as written.
    Number(String),
    /// A string.
    Text(String),
}

/// A field that must equal a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Which field.
    pub path: FieldPath,
    /// What it must be.
    pub equals: Literal,
}

impl Condition {
    /// Whether `value`, found at the path, matches.
    #[must_use]
    pub fn matches(&self, value: FieldValue<'_>) -> bool {
        match (&self.equals, value) {
            (Literal::Null, FieldValue::Null | FieldValue::Absent) => true,
            (Literal::Bool(wanted), FieldValue::Bool(found)) => *wanted == found,
            (Literal::Number(wanted), FieldValue::Number(found)) => wanted == found,
            (Literal::Text(wanted), FieldValue::Text(found)) => wanted == found,
            (Literal::Null | Literal::Bool(_) | Literal::Number(_) | Literal::Text(_), _) => false,
        }
    }
}

/// A text that is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no condition: {why}; write a path, == and a literal, such as .op == \"d\"")]
pub struct NoCondition {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl FromStr for Condition {
    type Err = NoCondition;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let no_condition = |why: String| NoCondition { text: text.to_owned(), why };
        let (path, literal) = text.split_once("==").ok_or_else(|| no_condition("there is no ==".into()))?;
        let path = path.trim().parse::<FieldPath>().map_err(|e| no_condition(e.to_string()))?;
        let equals = match serde_json::from_str(literal.trim()) {
            Ok(serde_json::Value::Null) => Literal::Null,
            Ok(serde_json::Value::Bool(value)) => Literal::Bool(value),
            Ok(serde_json::Value::Number(_)) => Literal::Number(literal.trim().to_owned()),
            Ok(serde_json::Value::String(value)) => Literal::Text(value),
            Ok(serde_json::Value::Array(_) | serde_json::Value::Object(_)) | Err(_) => {
                return Err(no_condition("the right side is no string, number, true, false or null".into()));
            }
        };
        Ok(Self { path, equals })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.equals {
            Literal::Null => write!(f, "{} == null", self.path),
            Literal::Bool(value) => write!(f, "{} == {value}", self.path),
            Literal::Number(value) => write!(f, "{} == {value}", self.path),
            Literal::Text(value) => write!(f, "{} == {}", self.path, serde_json::Value::from(value.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a condition matches its literal and nothing else. Method: each kind of literal against each kind of value.
    #[test]
    fn a_condition_matches_only_its_literal() {
        let values = [
            FieldValue::Absent,
            FieldValue::Null,
            FieldValue::Bool(true),
            FieldValue::Number("1"),
            FieldValue::Text("d"),
            FieldValue::Json("[1]"),
        ];
        let cases = [(".op == null", 2), (".op == true", 1), ("op == 1", 1), (".op == \"d\"", 1), (".op == \"x\"", 0)];
        for (text, matching) in cases {
            let condition: Condition = text.parse().expect("a condition");
            assert_eq!(values.iter().filter(|v| condition.matches(**v)).count(), matching, "{text}");
            assert_eq!(condition.to_string().parse(), Ok(condition));
        }
        for text in ["", ".op", ".op = 1", ".op == [1]", " == 1", ".op == d"] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }
}
