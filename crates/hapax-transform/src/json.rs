//! JSON text into VRL values, straight from the bytes of an input.
//!
//! Reads: text that the decoder found to be JSON. Invariant: a number becomes a VRL number only if that is the same
//! number; the place of any other is told, so that nobody takes a rounded one for it. Nothing here panics.

use std::borrow::Cow;

use hapax_engine::batch::FieldSpan;
use vrl::path::{OwnedSegment, OwnedValuePath};
use vrl::prelude::NotNan;
use vrl::value::{ObjectMap, Value};

/// How deeply an input may be nested where a program looks at it.
pub(crate) const DEEPEST: usize = 128;

/// A value, and where in it stood numbers that VRL cannot hold exactly; `null` stands in their place.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) value: Value,
    pub(crate) odd: Vec<OwnedValuePath>,
}

/// The input is nested more deeply than [`DEEPEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooDeep;

/// The value of a field.
pub(crate) fn read_field(bytes: &[u8], field: &FieldSpan) -> Result<Read, TooDeep> {
    let text = |range: &std::ops::Range<usize>| {
        std::str::from_utf8(&bytes[range.clone()]).expect("the decoder found this input to be UTF-8")
    };
    let plain = |value: Value| Ok(Read { value, odd: Vec::new() });
    match field {
        FieldSpan::Null => plain(Value::Null),
        FieldSpan::Bool(value) => plain(Value::Boolean(*value)),
        FieldSpan::Text(range) => plain(Value::from(text(range))),
        FieldSpan::Unescaped(text) => plain(Value::from(text.as_str())),
        FieldSpan::Number(range) => match exact(text(range)) {
            Some(value) => plain(value),
            None => Ok(Read { value: Value::Null, odd: vec![OwnedValuePath::root()] }),
        },
        FieldSpan::Json(range) => {
            let mut reader = Reader { text: text(range), at: 0, path: Vec::new(), odd: Vec::new() };
            let value = reader.value()?;
            Ok(Read { value, odd: reader.odd })
        }
    }
}

/// The VRL number that is the JSON number `text`, if there is one.
pub(crate) fn exact(text: &str) -> Option<Value> {
    if !text.as_bytes().iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return text.parse().ok().map(Value::Integer);
    }
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    let digits = text.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).filter(u8::is_ascii_digit).count();
    // Fifteen digits always survive.
    let survives = (digits <= 15 && value.is_normal()) || decimal(text) == decimal(&format!("{value:e}"));
    survives.then(|| NotNan::new(value).ok().map(Value::Float)).flatten()
}

/// Sign, digits without zeros at either end, and the power of ten of the last digit.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_end_matches('0');
    let exponent = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let last = exponent.checked_add(i64::try_from(all.len() - digits.len()).ok()?)?;
    match digits.trim_start_matches('0') {
        "" => Some((false, String::new(), 0)),
        digits => Some((negative, digits.to_owned(), last)),
    }
}

enum Step<'t> {
    Name(Cow<'t, str>),
    Index(usize),
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    path: Vec<Step<'t>>,
    odd: Vec<OwnedValuePath>,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn skip_blank(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// The next character that is no blank, taken if it is `wanted`.
    fn takes(&mut self, wanted: u8) -> bool {
        self.skip_blank();
        let found = self.peek() == wanted;
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Result<Value, TooDeep> {
        self.skip_blank();
        match self.peek() {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => Ok(Value::from(&*self.string())),
            b't' => Ok(self.literal("true", Value::Boolean(true))),
            b'f' => Ok(self.literal("false", Value::Boolean(false))),
            b'n' => Ok(self.literal("null", Value::Null)),
            _ => Ok(self.number()),
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Value {
        self.at += word.len();
        value
    }

    fn number(&mut self) -> Value {
        let start = self.at;
        while matches!(self.peek(), b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') {
            self.at += 1;
        }
        exact(&self.text[start..self.at]).unwrap_or_else(|| {
            let segment = |step: &Step<'_>| match step {
                Step::Name(name) => OwnedSegment::field(name),
                Step::Index(index) => OwnedSegment::index(isize::try_from(*index).unwrap_or(isize::MAX)),
            };
            self.odd.push(self.path.iter().map(segment).collect::<Vec<_>>().into());
            Value::Null
        })
    }

    fn string(&mut self) -> Cow<'t, str> {
        let start = self.at;
        self.at += 1;
        let mut escaped = false;
        loop {
            match self.peek() {
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                b'"' | 0 => break,
                _ => self.at += 1,
            }
        }
        self.at = (self.at + 1).min(self.text.len());
        let quoted = &self.text[start..self.at];
        if escaped {
            Cow::Owned(serde_json::from_str(quoted).unwrap_or_default())
        } else {
            Cow::Borrowed(quoted.get(1..quoted.len() - 1).unwrap_or_default())
        }
    }

    fn enter(&mut self, step: Step<'t>) -> Result<(), TooDeep> {
        if self.path.len() >= DEEPEST {
            return Err(TooDeep);
        }
        self.path.push(step);
        Ok(())
    }

    fn object(&mut self) -> Result<Value, TooDeep> {
        self.at += 1;
        let mut fields = ObjectMap::new();
        while !self.takes(b'}') && self.at < self.text.len() {
            self.takes(b',');
            self.skip_blank();
            let name = self.string();
            self.takes(b':');
            self.enter(Step::Name(name.clone()))?;
            let value = self.value()?;
            self.path.pop();
            fields.insert(name.as_ref().into(), value);
        }
        Ok(Value::Object(fields))
    }

    fn array(&mut self) -> Result<Value, TooDeep> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.takes(b']') && self.at < self.text.len() {
            self.takes(b',');
            self.enter(Step::Index(items.len()))?;
            items.push(self.value()?);
            self.path.pop();
        }
        Ok(Value::Array(items))
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
