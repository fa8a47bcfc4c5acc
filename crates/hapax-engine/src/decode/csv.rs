//! CSV: cuts one record into its fields and hands the wanted ones out as text, without building a map.
//!
//! Reads: the bytes of one input, and how CSV is written here. Writes: spans of the wanted fields. Invariant: a record
//! that decodes is UTF-8 and has just the fields that its header names. Not here: where records end (the source).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use hapax_model::letter::{Cause, Stage};
use memchr::{memchr, memchr_iter, memchr2};

use crate::batch::{FieldSpan, TakeFields};

/// How the inputs of a batch are written.
#[derive(Debug, Clone, Default)]
pub enum Format {
    /// Each input is one JSON object.
    #[default]
    Json,
    /// Each input is one CSV record.
    Csv(Arc<CsvFormat>),
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Json, Self::Json) => true,
            (Self::Csv(a), Self::Csv(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Json, Self::Csv(_)) | (Self::Csv(_), Self::Json) => false,
        }
    }
}

impl Eq for Format {}

/// How CSV is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Stands between two fields.
    pub delimiter: u8,
    /// Opens and closes a field that holds delimiters, line ends or quotes; none if there is no such thing.
    pub quote: Option<u8>,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { delimiter: b',', quote: Some(b'"') }
    }
}

/// Where the names of the fields are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// Known: one name for each field, all different.
    Names(Vec<String>),
    /// Each input begins with a record of names: so letters are kept, which outlive their file.
    InEachInput,
}

/// CSV as one source writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvFormat {
    /// Delimiter and quote.
    pub dialect: Dialect,
    /// A field without quotes that has this text is NULL.
    pub null: String,
    /// The names of the fields.
    pub header: Header,
}

impl CsvFormat {
    /// The record of names, with its line end, that makes an input readable by itself; nothing if inputs have theirs.
    #[must_use]
    pub fn header_record(&self) -> Vec<u8> {
        let Header::Names(names) = &self.header else { return Vec::new() };
        let mut record = Vec::new();
        self.dialect.write_record(names.iter(), &mut record);
        record.push(b'\n');
        record
    }

    /// How long the header is, with its line end, that this input begins with; 0 if inputs have none.
    #[must_use]
    pub fn header_length(&self, input: &[u8]) -> usize {
        match self.header {
            Header::Names(_) => 0,
            Header::InEachInput => (self.dialect.record_end(input) + 1).min(input.len()),
        }
    }

    /// The same format for inputs that begin with their own header.
    #[must_use]
    pub fn standing_alone(&self) -> Self {
        Self { header: Header::InEachInput, ..self.clone() }
    }
}

/// A field that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    /// Its text, without quotes.
    range: Range<usize>,
    quoting: Quoting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Plain,
    /// Quotes inside are doubled.
    Doubled,
}

/// Quotes that do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BadQuote {
    Open { at: usize },
    TextBehind { at: usize },
}

impl Dialect {
    fn write_field(&self, text: &str, into: &mut Vec<u8>) {
        let special = |byte: u8| byte == self.delimiter || Some(byte) == self.quote || matches!(byte, b'\n' | b'\r');
        match self.quote {
            Some(quote) if text.is_empty() || text.bytes().any(special) => {
                into.push(quote);
                for byte in text.bytes() {
                    into.extend(std::iter::repeat_n(byte, if byte == quote { 2 } else { 1 }));
                }
                into.push(quote);
            }
            Some(_) | None => into.extend_from_slice(text.as_bytes()),
        }
    }

    fn write_record<'t>(&self, texts: impl Iterator<Item = &'t String>, into: &mut Vec<u8>) {
        for (at, text) in texts.enumerate() {
            if at > 0 {
                into.push(self.delimiter);
            }
            self.write_field(text, into);
        }
    }

    /// One record with its header: names and texts that somebody asks about.
    #[must_use]
    pub fn record_of(&self, fields: &[(String, String)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_record(fields.iter().map(|(name, _)| name), &mut bytes);
        bytes.push(b'\n');
        self.write_record(fields.iter().map(|(_, text)| text), &mut bytes);
        bytes
    }

    /// Hands each field of a record out, in order.
    fn fields(&self, record: &[u8], take: &mut impl FnMut(Field)) -> Result<(), BadQuote> {
        match self.quote.filter(|quote| memchr(*quote, record).is_some()) {
            Some(quote) => self.quoted_fields(record, quote, take),
            None => {
                let mut start = 0;
                for end in memchr_iter(self.delimiter, record) {
                    take(Field { range: start..end, quoting: Quoting::None });
                    start = end + 1;
                }
                take(Field { range: start..record.len(), quoting: Quoting::None });
                Ok(())
            }
        }
    }

    fn quoted_fields(&self, record: &[u8], quote: u8, take: &mut impl FnMut(Field)) -> Result<(), BadQuote> {
        let mut at = 0;
        loop {
            let end = if record.get(at) == Some(&quote) {
                let (end, quoting) = closing(record, at + 1, quote).ok_or(BadQuote::Open { at })?;
                take(Field { range: at + 1..end, quoting });
                end + 1
            } else {
                let end = memchr(self.delimiter, &record[at..]).map_or(record.len(), |found| at + found);
                take(Field { range: at..end, quoting: Quoting::None });
                end
            };
            match record.get(end) {
                None => return Ok(()),
                Some(byte) if *byte == self.delimiter => at = end + 1,
                Some(_) => return Err(BadQuote::TextBehind { at: end }),
            }
        }
    }

    /// Where the first record of `bytes` ends, its line end not counted: the first line end outside quotes.
    fn record_end(&self, bytes: &[u8]) -> usize {
        let Some(quote) = self.quote else { return memchr(b'\n', bytes).unwrap_or(bytes.len()) };
        let mut at = 0;
        while let Some(found) = memchr2(b'\n', quote, &bytes[at..]).map(|found| at + found) {
            if bytes[found] == b'\n' {
                return found;
            }
            let opens = found == 0 || bytes[found - 1] == self.delimiter;
            at = if opens {
                closing(bytes, found + 1, quote).map_or(bytes.len(), |(end, _)| end + 1)
            } else {
                found + 1
            };
        }
        bytes.len()
    }

    /// The names in a header record.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn names(&self, record: &[u8]) -> Result<Vec<String>, String> {
        let text = std::str::from_utf8(record).map_err(|_| "it is not UTF-8".to_owned())?;
        let mut names: Vec<String> = Vec::new();
        self.fields(record, &mut |field| {
            names.push(unquoted(&text[field.range], field.quoting, self.quote).into_owned())
        })
        .map_err(|_| "its quotes do not go together".to_owned())?;
        for (at, name) in names.iter_mut().enumerate() {
            *name = name.trim().to_owned();
            if name.is_empty() {
                return Err(format!("column {} has no name", at + 1));
            }
        }
        match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            Some((_, name)) => Err(format!("it names \"{name}\" twice")),
            None => Ok(names),
        }
    }
}

/// Where the quote is that closes what opened before `at`, and whether there are doubled ones before it.
fn closing(bytes: &[u8], mut at: usize, quote: u8) -> Option<(usize, Quoting)> {
    let mut quoting = Quoting::Plain;
    loop {
        let found = at + memchr(quote, bytes.get(at..)?)?;
        if bytes.get(found + 1) != Some(&quote) {
            return Some((found, quoting));
        }
        quoting = Quoting::Doubled;
        at = found + 2;
    }
}

fn unquoted(text: &str, quoting: Quoting, quote: Option<u8>) -> Cow<'_, str> {
    match (quoting, quote) {
        (Quoting::Doubled, Some(quote)) => {
            let one = char::from(quote).to_string();
            Cow::Owned(text.replace(&one.repeat(2), &one))
        }
        (Quoting::None | Quoting::Plain | Quoting::Doubled, _) => Cow::Borrowed(text),
    }
}

/// What becomes of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Wanted(usize),
    Unknown(usize),
}

/// CSV records on their way into slots.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) format: Arc<CsvFormat>,
    /// The header that `fates` are of, if inputs have their own.
    header: Vec<u8>,
    names: Vec<String>,
    fates: Vec<Fate>,
}

impl Records {
    pub(super) fn new(format: &Arc<CsvFormat>, fate: &mut impl FnMut(&str) -> Fate) -> Self {
        let names = match &format.header {
            Header::Names(names) => names.clone(),
            Header::InEachInput => Vec::new(),
        };
        let fates = names.iter().map(|name| fate(name)).collect();
        Self { format: Arc::clone(format), header: Vec::new(), names, fates }
    }

    /// Hands the wanted fields of one record to `fields`, and the numbers of unknown ones to `unknown`.
    pub(super) fn read(
        &mut self,
        input: &[u8],
        fields: &mut impl TakeFields,
        unknown: &mut Vec<usize>,
        fate: &mut impl FnMut(&str) -> Fate,
    ) -> Result<(), Cause> {
        let base = self.learn_header(input, fate)?;
        let record = &input[base..];
        let text = std::str::from_utf8(record).map_err(|error| super::not_utf8(&error))?;
        let Self { format, fates, .. } = &*self;
        let (mut count, quote) = (0, format.dialect.quote);
        let sound = format.dialect.fields(record, &mut |Field { range, quoting }| {
            match fates.get(count) {
                Some(Fate::Wanted(slot)) => fields.take(
                    *slot,
                    match quoting {
                        Quoting::None if text[range.clone()] == *format.null => FieldSpan::Null,
                        Quoting::None | Quoting::Plain => FieldSpan::Text(base + range.start..base + range.end),
                        Quoting::Doubled => FieldSpan::Unescaped(unquoted(&text[range], quoting, quote).into_owned()),
                    },
                ),
                Some(Fate::Unknown(at)) => unknown.push(*at),
                None => {}
            }
            count += 1;
        });
        sound.map_err(bad_quote)?;
        if count == self.fates.len() { Ok(()) } else { Err(other_count(count, &self.names)) }
    }

    /// Where the record begins, behind the input's own header if it has one.
    fn learn_header(&mut self, input: &[u8], fate: &mut impl FnMut(&str) -> Fate) -> Result<usize, Cause> {
        if let Header::Names(_) = self.format.header {
            return Ok(0);
        }
        let end = self.format.dialect.record_end(input);
        if self.header != input[..end] || self.fates.is_empty() {
            self.names = self.format.dialect.names(&input[..end]).map_err(|why| bad_header(&why))?;
            self.fates = self.names.iter().map(|name| fate(name)).collect();
            self.header = input[..end].to_vec();
        }
        Ok((end + 1).min(input.len()))
    }
}

/// Hands each field of one input out with its name, none for NULL: for whoever wants the whole record.
///
/// # Errors
/// The cause for which the input becomes a dead letter.
pub fn read_record<'t>(
    format: &CsvFormat,
    input: &'t [u8],
    mut take: impl FnMut(&str, Option<Cow<'t, str>>),
) -> Result<(), Cause> {
    let own: Vec<String>;
    let (names, record) = match &format.header {
        Header::Names(names) => (names, input),
        Header::InEachInput => {
            let end = format.dialect.record_end(input);
            own = format.dialect.names(&input[..end]).map_err(|why| bad_header(&why))?;
            (&own, &input[(end + 1).min(input.len())..])
        }
    };
    let text = std::str::from_utf8(record).map_err(|error| super::not_utf8(&error))?;
    let mut found: Vec<Field> = Vec::with_capacity(names.len());
    format.dialect.fields(record, &mut |field| found.push(field)).map_err(bad_quote)?;
    if found.len() != names.len() {
        return Err(other_count(found.len(), names));
    }
    for (name, Field { range, quoting }) in names.iter().zip(found) {
        let field = &text[range];
        let null = quoting == Quoting::None && *field == *format.null;
        take(name, (!null).then(|| unquoted(field, quoting, format.dialect.quote)));
    }
    Ok(())
}

fn cause(code: &'static str, message: String, fingerprint: String) -> Cause {
    Cause { stage: Stage::Decode, code, message, fingerprint }
}

fn other_count(count: usize, names: &[String]) -> Cause {
    let say = |n: usize| if n == 1 { "1 field".to_owned() } else { format!("{n} fields") };
    let message = format!("the record has {}, and the header names {}: {}", say(count), names.len(), names.join(", "));
    cause("HX2080", message, format!("{} instead of {}", say(count), names.len()))
}

fn bad_quote(bad: BadQuote) -> Cause {
    let message = match bad {
        BadQuote::Open { at } => format!(
            "the quote that opens at byte {at} of the line does not close within maxLine, or closes where no field ends; \
             the line was taken alone, and reading went on with the next one"
        ),
        BadQuote::TextBehind { at } => format!("text follows a closing quote, at byte {at}; quotes inside are doubled"),
    };
    let fingerprint = match bad {
        BadQuote::Open { .. } => "a quote that does not close",
        BadQuote::TextBehind { .. } => "text behind a closing quote",
    };
    cause("HX2081", message, fingerprint.into())
}

fn bad_header(why: &str) -> Cause {
    cause("HX2082", format!("the header that was kept with the record is not right: {why}"), "no right header".into())
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
