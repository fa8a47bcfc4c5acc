//! What a transform needs beyond the wanted fields: all others by name, and a say in which of them count as left out.

use std::fmt;

use hapax_model::letter::Cause;
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Decoder, Text, classify, csv, not_json, not_utf8};
use crate::batch::FieldSpan;

impl Decoder {
    /// Hands every field at the top of one input out that has no place of its own, by name, in the order of the text.
    ///
    /// # Errors
    /// The cause for which the input becomes a dead letter.
    pub(crate) fn read_rest(&self, bytes: &[u8], rest: &mut Vec<(String, FieldSpan)>) -> Result<(), Cause> {
        if let Some(records) = &self.records {
            return csv::read_record(&records.format, bytes, |name, value| {
                if !self.has_place(name) {
                    let span = value.map_or(FieldSpan::Null, |text| FieldSpan::Unescaped(text.into_owned()));
                    rest.push((name.to_owned(), span));
                }
            });
        }
        let text = std::str::from_utf8(bytes).map_err(|e| not_utf8(&e))?;
        let mut json = serde_json::Deserializer::from_str(text);
        let every = Every { decoder: self, text, rest };
        json.deserialize_map(every).and_then(|()| json.end()).map_err(|e| not_json(&e, text))
    }

    fn has_place(&self, name: &str) -> bool {
        self.root.find(name, 0).is_some_and(|at| self.root.names[at].slot.is_some())
    }

    /// Fields that nothing took are not in the event after all.
    pub(crate) fn forget_passed_over(&mut self) {
        self.unknown.begin();
    }

    /// The event has a field of this name that nothing takes.
    pub(crate) fn pass_over(&mut self, name: &str) {
        // The name of a CSV column may be a path with points.
        if self.records.is_some() && name.contains('.') && self.root.slot_of(name).is_some() {
            return;
        }
        let at = self.unknown.place(name);
        self.unknown.noted.push(at);
    }

    /// The event stays: what nothing takes of it is counted, and judged.
    ///
    /// # Errors
    /// The cause for which the input becomes a dead letter.
    pub(crate) fn settle_passed_over(&mut self) -> Result<(), Cause> {
        self.unknown.count();
        self.judge_passed_over()
    }
}

struct Every<'a> {
    decoder: &'a Decoder,
    text: &'a str,
    rest: &'a mut Vec<(String, FieldSpan)>,
}

impl<'t> Visitor<'t> for Every<'t> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(name)) = map.next_key()? {
            let raw: &'t RawValue = map.next_value()?;
            if !self.decoder.has_place(&name) {
                let span = classify(self.text, raw.get()).map_err(serde::de::Error::custom)?;
                self.rest.push((name.into_owned(), span));
            }
        }
        Ok(())
    }
}
