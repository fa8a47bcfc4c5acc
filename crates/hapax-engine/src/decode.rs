//! Reads the fields that a delivery needs out of a JSON line or a CSV record, in one pass and without building a tree.
//!
//! Reads: the bytes of one input. Writes: spans of the wanted fields. Invariant: an input that decodes is UTF-8 and
//! one whole JSON object, or one whole record. Not here: what the fields mean (`pipeline`).

pub mod csv;
mod flat;
mod inside;
mod rest;

use std::borrow::Cow;
use std::fmt;

use hapax_model::field::{FieldPath, element};
use hapax_model::letter::{Cause, Stage};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use self::csv::Format;
pub use self::inside::{Value, path_inside};
use crate::batch::{FieldSpan, TakeFields};

/// Whether an event may have fields that nothing takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownFields {
    /// They are counted and named once.
    #[default]
    Counted,
    /// They make the event a dead letter.
    Rejected,
}

/// How many different unknown names are remembered: events whose names never repeat must not fill the memory. All
/// further ones are counted together, and judged as the others are.
const UNKNOWN_NAMES_MAX: usize = 100;
/// What all further names are counted as.
const FURTHER_NAMES: &str = "(further names)";

/// Wanted names at one level of the event.
#[derive(Debug, Default)]
struct Level {
    names: Vec<Wanted>,
    /// What leads to it, as paths are written; nothing at the top.
    path: String,
    /// Whether something takes the whole of it, or of what it is in: then nothing of it is left out.
    whole: bool,
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

    /// The slot of a name that may itself be a path with points, as the names of CSV columns may be.
    fn slot_of(&self, name: &str) -> Option<usize> {
        let direct = self.names.iter().find(|wanted| wanted.name == name).and_then(|wanted| wanted.slot);
        direct.or_else(|| {
            let (first, rest) = name.split_once('.')?;
            self.names.iter().find(|wanted| wanted.name == first)?.inner.as_ref()?.slot_of(rest)
        })
    }

    /// Events of one source list their fields in one order: `hint` is where this name most likely is.
    fn find(&self, name: &str, hint: usize) -> Option<usize> {
        match self.names.get(hint) {
            Some(wanted) if wanted.name == name => Some(hint),
            Some(_) | None => self.names.iter().position(|wanted| wanted.name == name),
        }
    }
}

/// Reads wanted fields out of JSON objects, or CSV records.
#[derive(Debug)]
pub struct Decoder {
    root: Level,
    unknown_fields: UnknownFields,
    unknown: Unknown,
    gaps: flat::Gaps,
    /// How inputs are read that are no JSON.
    records: Option<csv::Records>,
}

/// Fields that nothing takes, with how often each was seen.
#[derive(Debug, Default)]
struct Unknown {
    names: Vec<(String, u64)>,
    hint: usize,
    /// The path that is being looked for; its memory is used again.
    path: String,
    /// Those of the event that is being decoded, as indexes of `names`.
    noted: Vec<usize>,
}

impl Unknown {
    /// Where `name` is counted; fields come in one order, so that is most likely behind the last one.
    fn place(&mut self, name: &str) -> usize {
        let hinted = self.names.get(self.hint).is_some_and(|(known, _)| known == name).then_some(self.hint);
        let known = hinted.or_else(|| self.names.iter().position(|(known, _)| known == name));
        let at = known.unwrap_or_else(|| self.names.len().min(UNKNOWN_NAMES_MAX));
        if at == self.names.len() {
            let counted_as = if at < UNKNOWN_NAMES_MAX { name } else { FURTHER_NAMES };
            self.names.push((counted_as.to_owned(), 0));
        }
        self.hint = at + 1;
        at
    }

    /// The event is read from its beginning.
    fn begin(&mut self) {
        self.hint = 0;
        self.noted.clear();
    }

    /// The event was read to its end.
    fn count(&mut self) {
        for at in &self.noted {
            self.names[*at].1 += 1;
        }
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
        root.find_what_is_whole();
        Self { root, unknown_fields, unknown: Unknown::default(), gaps: flat::Gaps::default(), records: None }
    }

    /// From here on, inputs are written so. Costs nothing where that is no news.
    pub fn use_format(&mut self, format: &Format) {
        match format {
            Format::Json => self.records = None,
            Format::Csv(csv) => {
                if self.records.as_ref().is_none_or(|known| known.format != *csv) {
                    let Self { root, unknown, .. } = self;
                    self.records = Some(csv::Records::new(csv, &mut |name| fate_of(root, unknown, name)));
                }
            }
        }
    }

    /// Names of fields that nothing takes, with how often each was seen; behind the first hundred all others together.
    #[must_use]
    pub fn unknown(&self) -> &[(String, u64)] {
        &self.unknown.names
    }

    /// Hands the wanted fields of one input out, in the order of the text. What was taken counts only if all is well.
    ///
    /// # Errors
    /// The cause for which the input becomes a dead letter.
    #[inline]
    pub fn decode(&mut self, bytes: &[u8], fields: &mut impl TakeFields) -> Result<(), Cause> {
        let sound = self.read(bytes, fields);
        self.unknown.count();
        sound?;
        self.judge_passed_over()
    }

    /// [`decode`](Self::decode) without a judgement of the fields that nothing takes: a transform comes in between.
    ///
    /// # Errors
    /// The cause for which the input becomes a dead letter.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8], fields: &mut impl TakeFields) -> Result<(), Cause> {
        self.unknown.begin();
        if self.records.is_some() {
            return self.read_record(bytes, fields);
        }
        let mut taker = Taker { root: &self.root, hint: 0, unknown: &mut self.unknown, fields };
        match flat::read(bytes, &mut self.gaps, &mut taker) {
            Ok(flat::Letters::Ascii) => Ok(()),
            Ok(flat::Letters::Others) => std::str::from_utf8(bytes).map(drop).map_err(|e| not_utf8(&e)),
            Err(flat::NotFlat) => {
                fields.start_again();
                self.read_carefully(bytes, fields)
            }
        }
    }

    fn read_record(&mut self, bytes: &[u8], fields: &mut impl TakeFields) -> Result<(), Cause> {
        let Self { root, unknown, records, .. } = self;
        let Some(records) = records else { return Ok(()) };
        let mut noted = std::mem::take(&mut unknown.noted);
        let sound = records.read(bytes, fields, &mut noted, &mut |name| fate_of(root, unknown, name));
        unknown.noted = noted;
        sound
    }

    #[inline]
    fn judge_passed_over(&self) -> Result<(), Cause> {
        match (self.unknown_fields, self.unknown.noted.first()) {
            (UnknownFields::Rejected, Some(&UNKNOWN_NAMES_MAX)) => Err(further_field()),
            (UnknownFields::Rejected, Some(at)) => Err(unknown_field(&self.unknown.names[*at].0)),
            (UnknownFields::Rejected | UnknownFields::Counted, _) => Ok(()),
        }
    }

    fn read_carefully(&mut self, bytes: &[u8], fields: &mut dyn TakeFields) -> Result<(), Cause> {
        self.unknown.begin();
        let text = std::str::from_utf8(bytes).map_err(|e| not_utf8(&e))?;
        let mut json = serde_json::Deserializer::from_str(text);
        let mut pass = Pass { text, fields, unknown: &mut self.unknown };
        ObjectSeed { level: &self.root, pass: &mut pass }
            .deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|e| not_json(&e, text))
    }
}

/// What becomes of a CSV column of this name.
fn fate_of(root: &Level, unknown: &mut Unknown, name: &str) -> csv::Fate {
    match root.slot_of(name) {
        Some(slot) => csv::Fate::Wanted(slot),
        None => csv::Fate::Unknown(unknown.place(name)),
    }
}

/// What the quick reader finds, on its way to whoever wants it.
struct Taker<'d, F> {
    root: &'d Level,
    hint: usize,
    unknown: &'d mut Unknown,
    fields: &'d mut F,
}

impl<F: TakeFields> flat::Reader for Taker<'_, F> {
    fn fate(&mut self, name: &str) -> flat::Fate {
        match self.root.find(name, self.hint) {
            Some(at) => {
                self.hint = at + 1;
                self.root.names[at].slot.map_or(flat::Fate::Inside(at), flat::Fate::Wanted)
            }
            None => flat::Fate::Unknown(self.unknown.place(name)),
        }
    }

    #[inline]
    fn take(&mut self, fate: flat::Fate, value: FieldSpan) {
        match fate {
            flat::Fate::Wanted(slot) => self.fields.take(slot, value),
            flat::Fate::Unknown(at) => self.unknown.noted.push(at),
            flat::Fate::Inside(_) if value == FieldSpan::Null => {}
            // Fields inside of it are wanted, and it is no object.
            flat::Fate::Inside(at) => self.unknown.note(self.root, &self.root.names[at].name),
        }
    }
}

struct Pass<'t, 'd> {
    text: &'t str,
    fields: &'d mut dyn TakeFields,
    unknown: &'d mut Unknown,
}

impl<'t> Pass<'t, '_> {
    /// `wanted` is one of the names of `level`.
    fn take<E: serde::de::Error>(&mut self, level: &Level, wanted: &Wanted, raw: &'t str) -> Result<(), E> {
        if let Some(slot) = wanted.slot {
            let span = classify(self.text, raw).map_err(E::custom)?;
            self.fields.take(slot, span);
        }
        let Some(inner) = &wanted.inner else { return Ok(()) };
        match raw.as_bytes().first() {
            Some(b'{') => {
                let mut json = serde_json::Deserializer::from_str(raw);
                ObjectSeed { level: inner, pass: self }.deserialize(&mut json).map_err(E::custom)
            }
            Some(b'[') => {
                let elements: Vec<&'t RawValue> = serde_json::from_str(raw).map_err(E::custom)?;
                for name in &inner.names {
                    if let Some(found) = element(&name.name).and_then(|place| elements.get(place)) {
                        self.take(inner, name, found.get())?;
                    }
                }
                self.unknown.note_elements(level, wanted, inner, elements.len());
                Ok(())
            }
            Some(b'n') => Ok(()),
            // Fields inside of it are wanted, and it is no object.
            Some(_) | None => {
                if !inner.whole {
                    self.unknown.note(level, &wanted.name);
                }
                Ok(())
            }
        }
    }
}

/// What a value is, by its first character; `raw` is a part of `text`.
fn classify(text: &str, raw: &str) -> Result<FieldSpan, serde_json::Error> {
    let start = raw.as_ptr() as usize - text.as_ptr() as usize;
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

struct ObjectSeed<'l, 'p, 't, 'd> {
    level: &'l Level,
    pass: &'p mut Pass<'t, 'd>,
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
        let (mut hint, mut entered) = (0, Vec::new());
        while let Some(Text(name)) = map.next_key()? {
            if let Some(at) = self.level.find(&name, hint) {
                hint = at + 1;
                if let Some(inner) = &self.level.names[at].inner {
                    if entered.contains(&at) {
                        inner.each_slot(&mut |slot| self.pass.fields.forget(slot));
                    }
                    entered.push(at);
                }
                let raw: &'t RawValue = map.next_value()?;
                self.pass.take(self.level, &self.level.names[at], raw.get())?;
            } else {
                map.next_value::<IgnoredAny>()?;
                if !self.level.whole {
                    self.pass.unknown.note(self.level, &name);
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

/// A field whose name is not remembered; the letter keeps the event, which shows it.
fn further_field() -> Cause {
    let message = format!(
        "the event has a field that no column takes, and columns is strict; more than {UNKNOWN_NAMES_MAX} such names have \
         been seen, so this one is not told apart from others"
    );
    Cause { stage: Stage::Map, code: "HX2004", message, fingerprint: "no column for further fields".into() }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
