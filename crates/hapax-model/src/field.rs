//! A field's value as the event's JSON spells it, and the path that leads to it.

use std::fmt;
use std::str::FromStr;

/// A field's value, borrowed from the batch that holds the event.
///
/// Numbers stay text, so that no digit is lost between the source and a column that could hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// The event has no such field.
    Absent,
    /// The field is there and says `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A JSON number, as written.
    Number(&'a str),
    /// A JSON string, unescaped.
    Text(&'a str),
    /// A JSON array or object, as written.
    Json(&'a str),
}

impl FieldValue<'_> {
    /// What an error message calls this kind of value.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Absent => "nothing",
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Json(_) => "an array or object",
        }
    }
}

/// A path into an event, such as `.order.id` or `.items[0].sku`: one or more names.
///
/// An element of a list is named by its place: the name `[0]`. An object's field of that very name is meant too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// The path of one name, taken as it is: a point in it is part of the name.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// The names from the outside in; never empty. A list's element has the name `[0]`.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
            if plain {
                write!(f, ".{name}")?
            } else if at > 0 && element(name).is_some() {
                write!(f, "{name}")?
            } else {
                write!(f, ".\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))?
            }
        }
        Ok(())
    }
}

/// The place in a list that a name such as `[0]` means.
#[must_use]
pub fn element(name: &str) -> Option<usize> {
    let digits = name.strip_prefix('[')?.strip_suffix(']')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    plain.then(|| digits.parse().ok()).flatten()
}

/// A text that is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no field path: {why}; write `name`, `.outer.inner`, `.list[0]` or `.\"odd name\"`")]
pub struct NoPath {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl FromStr for FieldPath {
    type Err = NoPath;

    /// Reads `name`, `.name`, `outer.inner`, `.outer."odd name"`, `.list[0].inner`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let no_path = |why| NoPath { text: text.to_owned(), why };
        let mut rest = text.strip_prefix('.').unwrap_or(text);
        let mut names = Vec::new();
        loop {
            let (name, mut after) = if let Some(quoted) = rest.strip_prefix('"') {
                unquote(quoted).ok_or_else(|| no_path("a quote is not closed"))?
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            };
            if name.is_empty() {
                return Err(no_path("a name is empty"));
            }
            if name.contains(']') && !rest.starts_with('"') {
                return Err(no_path("a bracket is closed and was not opened"));
            }
            names.push(name);
            while after.starts_with('[') {
                let end = after.find(']').ok_or_else(|| no_path("a bracket is not closed"))?;
                let place = &after[..=end];
                element(place).ok_or_else(|| no_path("a list's element is named by its place, from 0 on"))?;
                names.push(place.to_owned());
                after = &after[end + 1..];
            }
            if after.is_empty() {
                return Ok(Self(names));
            }
            rest = after.strip_prefix('.').ok_or_else(|| no_path("a point is missing between two names"))?;
        }
    }
}

/// The name before the closing quote, and what follows it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((name, &text[at + 1..])),
            '\\' => name.push(chars.next()?.1),
            plain => name.push(plain),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a path reads back as printed. Method: plain, nested and odd names.
    #[test]
    fn a_path_survives_its_text() {
        for text in [".id", ".order.id", ".\"odd name\"", ".\"a.b\".c", ".\"say \\\"x\\\"\"", ".a[0]", ".a[0][12].b"] {
            assert_eq!(text.parse::<FieldPath>().map(|p| p.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("id".parse::<FieldPath>(), Ok(FieldPath::of_name("id")));
        assert_eq!("a.\"[0]\"".parse::<FieldPath>(), "a[0]".parse());
        for text in ["", ".", "a..b", ".\"open", ".\"a\"b", "[0]", "a[", "a[x]", "a[-1]", "a[01]", "a[0]b", "a]", "a[]"]
        {
            assert!(text.parse::<FieldPath>().is_err(), "{text}");
        }
    }
}
