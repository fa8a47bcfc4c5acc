//! Reads the fields that a delivery needs out of a JSON line, in one pass and without building a tree.
//!
//! Reads: the bytes of one input. Writes: spans of the wanted fields. Invariant: an input that decodes is UTF-8 and
//! one whole JSON object. Not here: what the fields mean (`pipeline`).

mod flat;

use std::borrow::Cow;
use std::fmt;

use hapax_model::field::FieldPath;
use hapax_model::letter::{Cause, Stage};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::batch::FieldSpan;

/// Whether an event may have fields that nothing takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownFields {
    /// They are counted and named once.
    #[default]
    Counted,
    /// They make the event a dead letter.
    Rejected,
}

/// How many different unknown names are remembered; beyond it they are only counted together.
const UNKNOWN_NAMES_MAX: usize = 100;

/// Wanted names at one level of the event.
#[derive(Debug, Default)]
struct Level {
    names: Vec<Wanted>,
}

#[derive(Debug)]
struct Wanted {
    name: String,
    slot: Option<usize>,
    inner: Option<Level>,
}

impl Level {
    fn insert(&mut self, names: &[String], slot: usize) {
        let Some((first, rest)) = names.split_first() else { return };
        let at = self.names.iter().position(|wanted| wanted.name == *first).unwrap_or_else(|| {
            self.names.push(Wanted { name: first.clone(), slot: None, inner: None });
            self.names.len() - 1
        });
        let wanted = &mut self.names[at];
        if rest.is_empty() {
            wanted.slot = Some(slot);
        } else {
            wanted.inner.get_or_insert_default().insert(rest, slot);
        }
    }

    /// Events of one source list their fields in one order: `hint` is where this name most likely is.
    fn find(&self, name: &str, hint: usize) -> Option<usize> {
        match self.names.get(hint) {
            Some(wanted) if wanted.name == name => Some(hint),
            Some(_) | None => self.names.iter().position(|wanted| wanted.name == name),
        }
    }
}

/// Reads wanted fields out of JSON objects.
#[derive(Debug)]
pub struct Decoder {
    root: Level,
    unknown_fields: UnknownFields,
    unknown: Unknown,
    found: Vec<(usize, FieldSpan)>,
}

/// Fields that nothing takes, with how often each was seen.
#[derive(Debug, Default)]
struct Unknown {
    names: Vec<(String, u64)>,
    hint: usize,
    /// Those of the event that is being decoded, as indexes of `names`.
    noted: Vec<usize>,
}

impl Unknown {
    /// Counts `name`; fields come in one order, so the next one is most likely where the last one ended.
    fn note(&mut self, name: &str) {
        let hinted = self.names.get(self.hint).is_some_and(|(known, _)| known == name).then_some(self.hint);
        let at = hinted.or_else(|| self.names.iter().position(|(known, _)| known == name)).or_else(|| {
            self.names.push((name.to_owned(), 0));
            Some(self.names.len() - 1).filter(|_| self.names.len() <= UNKNOWN_NAMES_MAX)
        });
        let Some(at) = at else {
            self.names.pop();
            return;
        };
        self.names[at].1 += 1;
        self.hint = at + 1;
        self.noted.push(at);
    }

    /// The next event begins.
    fn begin(&mut self) {
        self.hint = 0;
        self.noted.clear();
    }

    /// The event is read again from its beginning.
    fn take_back(&mut self) {
        for at in self.noted.drain(..) {
            self.names[at].1 -= 1;
        }
        self.hint = 0;
    }
}

impl Decoder {
    /// A decoder for `paths`; field `i` is the one at `paths[i]`. Paths are distinct.
    #[must_use]
    pub fn new(paths: &[FieldPath], unknown_fields: UnknownFields) -> Self {
        let mut root = Level::default();
        for (slot, path) in paths.iter().enumerate() {
            root.insert(path.names(), slot);
        }
        Self { root, unknown_fields, unknown: Unknown::default(), found: Vec::new() }
    }

    /// Names of fields that nothing takes, with how often each was seen.
    #[must_use]
    pub fn unknown(&self) -> &[(String, u64)] {
        &self.unknown.names
    }

    /// The wanted fields of one input: slot and span, in the order of the text.
    ///
    /// # Errors
    /// The cause for which the input becomes a dead letter.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<&[(usize, FieldSpan)], Cause> {
        self.found.clear();
        self.unknown.begin();
        let text = std::str::from_utf8(bytes).map_err(|e| not_utf8(&e))?;
        if self.read_flat(text).is_err() {
            self.found.clear();
            self.unknown.take_back();
            self.read_carefully(text)?;
        }
        match (self.unknown_fields, self.unknown.noted.first()) {
            (UnknownFields::Rejected, Some(at)) => Err(unknown_field(&self.unknown.names[*at].0)),
            (UnknownFields::Rejected | UnknownFields::Counted, _) => Ok(&self.found),
        }
    }

    fn read_flat(&mut self, text: &str) -> Result<(), flat::NotFlat> {
        let (root, found, unknown) = (&self.root, &mut self.found, &mut self.unknown);
        let mut hint = 0;
        flat::read(text, |name, value| match root.find(name, hint) {
            Some(at) => {
                hint = at + 1;
                found.extend(root.names[at].slot.map(|slot| (slot, value)));
            }
            None => unknown.note(name),
        })
    }

    fn read_carefully(&mut self, text: &str) -> Result<(), Cause> {
        let mut json = serde_json::Deserializer::from_str(text);
        let mut pass = Pass { text, found: &mut self.found, unknown: &mut self.unknown };
        ObjectSeed { level: &self.root, pass: &mut pass, depth: Depth::Top }
            .deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|e| not_json(&e, text))
    }
}

struct Pass<'t, 'd> {
    text: &'t str,
    found: &'d mut Vec<(usize, FieldSpan)>,
    unknown: &'d mut Unknown,
}

impl<'t> Pass<'t, '_> {
    fn take<E: serde::de::Error>(&mut self, wanted: &Wanted, raw: &'t str) -> Result<(), E> {
        if let Some(slot) = wanted.slot {
            let span = self.classify(raw).map_err(E::custom)?;
            self.found.push((slot, span));
        }
        match &wanted.inner {
            Some(level) if raw.starts_with('{') => {
                let mut json = serde_json::Deserializer::from_str(raw);
                ObjectSeed { level, pass: self, depth: Depth::Inner }.deserialize(&mut json).map_err(E::custom)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn classify(&self, raw: &'t str) -> Result<FieldSpan, serde_json::Error> {
        let start = raw.as_ptr() as usize - self.text.as_ptr() as usize;
        let range = start..start + raw.len();
        Ok(match raw.as_bytes().first() {
            // The string was found to be sound when it was skipped over; only escapes need another look.
            Some(b'"') if raw.as_bytes().contains(&b'\\') => FieldSpan::Unescaped(serde_json::from_str::<String>(raw)?),
            Some(b'"') => FieldSpan::Text(range.start + 1..range.end - 1),
            Some(b'n') => FieldSpan::Null,
            Some(b't') => FieldSpan::Bool(true),
            Some(b'f') => FieldSpan::Bool(false),
            Some(b'{' | b'[') => FieldSpan::Json(range),
            Some(_) | None => FieldSpan::Number(range),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Top,
    Inner,
}

struct ObjectSeed<'l, 'p, 't, 'd> {
    level: &'l Level,
    pass: &'p mut Pass<'t, 'd>,
    depth: Depth,
}

impl<'t> DeserializeSeed<'t> for ObjectSeed<'_, '_, 't, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'t>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'t> Visitor<'t> for ObjectSeed<'_, '_, 't, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        let mut hint = 0;
        while let Some(Text(name)) = map.next_key()? {
            if let Some(at) = self.level.find(&name, hint) {
                hint = at + 1;
                let raw: &'t RawValue = map.next_value()?;
                self.pass.take(&self.level.names[at], raw.get())?;
            } else {
                map.next_value::<IgnoredAny>()?;
                if self.depth == Depth::Top {
                    self.pass.unknown.note(&name);
                }
            }
        }
        Ok(())
    }
}

/// A string that is borrowed where it has no escapes (serde's own `Cow` always copies).
struct Text<'t>(Cow<'t, str>);

impl<'t> serde::Deserialize<'t> for Text<'t> {
    fn deserialize<D: serde::Deserializer<'t>>(json: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'t> Visitor<'t> for TextVisitor {
            type Value = Text<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'t str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        json.deserialize_str(TextVisitor)
    }
}

fn not_utf8(error: &std::str::Utf8Error) -> Cause {
    Cause {
        stage: Stage::Decode,
        code: "HX2002",
        message: format!("the input is not UTF-8: byte {} of it fits no character", error.valid_up_to()),
        fingerprint: "not UTF-8".into(),
    }
}

fn not_json(error: &serde_json::Error, text: &str) -> Cause {
    if !text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Cause {
            stage: Stage::Decode,
            code: "HX2005",
            message: "the input is valid JSON but no object: an event is an object with named fields".into(),
            fingerprint: "JSON that is no object".into(),
        };
    }
    let whole = error.to_string();
    let kind = match text.strip_prefix('\u{feff}') {
        Some(_) => "it begins with a byte order mark; save the file as UTF-8 without one",
        None => whole.split(" at line ").next().unwrap_or_default(),
    };
    Cause {
        stage: Stage::Decode,
        code: "HX2001",
        message: format!("the input is not valid JSON: {kind}, at character {}", error.column()),
        fingerprint: format!("invalid JSON: {kind}"),
    }
}

fn unknown_field(name: &str) -> Cause {
    Cause {
        stage: Stage::Map,
        code: "HX2004",
        message: format!("the event has a field \"{name}\" that no column takes, and columns is strict"),
        fingerprint: format!("no column for field \"{name}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder(paths: &[&str]) -> Decoder {
        let paths: Vec<FieldPath> = paths.iter().map(|p| p.parse().expect("a path")).collect();
        Decoder::new(&paths, UnknownFields::Counted)
    }

    /// Goal: each kind of value is found with its exact text. Method: one object with all of them, out of order.
    #[test]
    fn wanted_fields_are_found_whatever_their_order() {
        let mut decoder = decoder(&["a", ".b.c", "d", "e", "f", "g", "b"]);
        let text = r#"{"x":[1,{"a":2}], "g":null,"f":true,"e":"q\"\u00e9","d":"plain","b":{"z":1,"c":-1.50e3},"a":12345678901234567890}"#;
        let found: std::collections::BTreeMap<usize, FieldSpan> =
            decoder.decode(text.as_bytes()).expect("decodes").iter().cloned().collect();
        let spelled = |slot: usize| match &found[&slot] {
            FieldSpan::Number(r) | FieldSpan::Text(r) | FieldSpan::Json(r) => text[r.clone()].to_owned(),
            other @ (FieldSpan::Null | FieldSpan::Bool(_) | FieldSpan::Unescaped(_)) => format!("{other:?}"),
        };
        assert_eq!(spelled(0), "12345678901234567890");
        assert_eq!(spelled(1), "-1.50e3");
        assert_eq!(spelled(2), "plain");
        assert_eq!(spelled(3), "Unescaped(\"q\\\"é\")");
        assert_eq!(spelled(4), "Bool(true)");
        assert_eq!(spelled(5), "Null");
        assert_eq!(spelled(6), r#"{"z":1,"c":-1.50e3}"#);
        assert_eq!(decoder.unknown(), [("x".to_owned(), 1)]);
    }

    /// Goal: bytes that are no event are told apart, and none panics. Method: each kind of damage.
    #[test]
    fn what_is_no_event_says_why() {
        let mut decoder = decoder(&["a"]);
        let cases: [(&[u8], &str); 9] = [
            (b"", "HX2001"),
            (b"{\"a\":1", "HX2001"),
            (b"{\"a\":1} x", "HX2001"),
            (b"{\"a\":01}", "HX2001"),
            (b"{\"a\":\"\\ud800\"}", "HX2001"),
            (b"[1]", "HX2005"),
            (b"7", "HX2005"),
            (b"{\"a\":\"\xff\"}", "HX2002"),
            (b"nul", "HX2001"),
        ];
        for (bytes, code) in cases {
            let cause = decoder.decode(bytes).map(<[_]>::to_vec).expect_err("no event");
            assert_eq!(cause.code, code, "{}: {}", String::from_utf8_lossy(bytes), cause.message);
        }
    }

    /// Goal: the quick reader and the careful one agree, on soundness, fields and counts. Method: objects of all kinds of
    /// values, spaced and damaged in all kinds of ways, read by both.
    #[test]
    fn the_quick_reader_reads_what_the_careful_one_does() {
        let values = [
            "1",
            "-0",
            "0",
            "01",
            "-",
            "1.",
            "1.50",
            "1e5",
            "1E-7",
            "1e",
            ".5",
            "true",
            "tru",
            "null",
            "nullx",
            "\"\"",
            "\"x\"",
            "\"é\"",
            "\"a\\n\"",
            "\"\u{1}\"",
            "\"open",
            "[1]",
            "{\"c\":2}",
            "{",
            "",
            "NaN",
            "+1",
            "1 2",
        ];
        let frames = [
            "{\"a\":V,\"z\":V}",
            " { \"a\" : V , \"b\" : V } ",
            "{\"a\":V,}",
            "{\"a\" V}",
            "{\"a\":V",
            "{\"a\":V} x",
            "{}",
            "{\"\\u0061\":V}",
            "{V}",
            "[V]",
            "{\"z\":V,\"z\":V,\"a\":V,\"a\":1}",
            "\u{feff}{\"a\":V}",
            "{\"b\":{\"c\":V},\"y\":V}",
        ];
        for text in frames.iter().flat_map(|frame| values.map(|value| frame.replace('V', value))) {
            let (mut both, mut careful) = (decoder(&["a", ".b.c", "b"]), decoder(&["a", ".b.c", "b"]));
            let quick = both.decode(text.as_bytes()).map(<[_]>::to_vec);
            careful.unknown.begin();
            let slow = careful.read_carefully(&text).map(|()| careful.found.clone());
            assert_eq!(quick, slow, "{text}");
            if slow.is_ok() {
                assert_eq!(both.unknown(), careful.unknown(), "{text}");
            }
        }
    }

    /// Goal: the last of two fields with one name counts, as every JSON reader has it.
    #[test]
    fn a_repeated_field_takes_its_last_value() {
        let mut decoder = decoder(&["a"]);
        let found = decoder.decode(br#"{"a":1,"a":22}"#).expect("decodes");
        assert_eq!(found.last(), Some(&(0, FieldSpan::Number(11..13))));
    }

    /// Goal: `columns: strict` rejects what has no column.
    #[test]
    fn strict_rejects_an_unknown_field() {
        let mut strict = Decoder::new(&[FieldPath::of_name("a")], UnknownFields::Rejected);
        assert!(strict.decode(br#"{"a":1}"#).is_ok());
        let cause = strict.decode(br#"{"a":1,"b":2}"#).map(<[_]>::to_vec).expect_err("strict");
        assert_eq!(cause.code, "HX2004");
        assert!(cause.message.contains("\"b\""));
    }
}
