//! The source that `init` was told of, and what its first events look like.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use hapax_connect::file::{CsvOptions, FileFormat, FileSource, FileSourceConfig, HeaderFrom, RotationRule, many};
use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_connect::table::described::Sort;
use hapax_engine::batch::Inputs;
use hapax_engine::decode::csv::{Dialect, Format, read_record};
use hapax_engine::source::{Follow, Polled, Room, Source, StartAt};
use hapax_model::field::FieldPath;
use serde_json::Value;

use super::UNCLEAR;
use crate::exit::{Failure, USAGE};

/// How many events are looked at.
const MOST: usize = 200;
/// How deep objects are looked into.
const DEPTH: usize = 3;

/// Where events come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum From {
    File(String),
    Generate,
}

impl From {
    pub(super) fn parse(text: &str) -> Self {
        match text.strip_prefix("file:").unwrap_or(text) {
            "generate" => Self::Generate,
            path => Self::File(path.to_owned()),
        }
    }

    /// A name for the workflow and the table.
    pub(super) fn name(&self) -> String {
        let Self::File(path) = self else { return "orders".to_owned() };
        let path = Path::new(path);
        let stem = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = stem.split('.').next().unwrap_or_default().to_owned();
        let folder = || path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let stem = if stem.contains(['*', '?', '[']) { folder().unwrap_or_default() } else { stem };
        let plain: String =
            stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
        let plain = plain.trim_matches('_').to_owned();
        if plain.is_empty() { "events".to_owned() } else { plain }
    }
}

/// What was seen of the source.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) fields: Vec<Field>,
    pub(super) count: usize,
    /// Inputs that are no events.
    bad: usize,
    /// How a file's records are written, if that is not what its name says.
    pub(super) delimiter: Option<u8>,
    pub(super) is_csv: bool,
}

/// One field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) path: FieldPath,
    pub(super) sort: Sort,
    /// Whether each event had its own value.
    pub(super) unique: bool,
    seen: HashSet<String>,
    present: usize,
}

/// Looks at the first events.
pub(super) async fn read(from: &From, folder: &Path) -> Result<Sample, Failure> {
    match from {
        From::Generate => {
            let config = GenerateConfig { count: Some(MOST as u64), ..GenerateConfig::default() };
            sample(GenerateSource::new(config), false, None).await
        }
        From::File(written) => {
            let path = first_file(written, folder)?;
            let is_csv = is_csv(written);
            let delimiter = is_csv.then(|| guess_delimiter(&path, written)).flatten();
            let usual = if written.to_ascii_lowercase().contains(".tsv") { b'\t' } else { b',' };
            let format = if is_csv {
                let dialect = Dialect { delimiter: delimiter.unwrap_or(usual), ..Dialect::default() };
                FileFormat::Csv(CsvOptions { dialect, null: String::new(), header: HeaderFrom::File })
            } else {
                FileFormat::JsonLines
            };
            let config = FileSourceConfig { format, ..FileSourceConfig::new(path) };
            sample(FileSource::new(config), is_csv, delimiter).await
        }
    }
}

fn is_csv(written: &str) -> bool {
    let path = written.to_ascii_lowercase();
    let bare = [".gz", ".gzip", ".zst", ".zstd"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(&path);
    bare.ends_with(".csv") || bare.ends_with(".tsv")
}

fn first_file(written: &str, folder: &Path) -> Result<PathBuf, Failure> {
    let place = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let unclear = |message: String| Failure::new(UNCLEAR, message).with_exit(USAGE);
    if many::is_pattern(written) {
        many::check_pattern(written).map_err(|why| unclear(format!("\"{written}\" is no pattern: {why}")))?;
        let found = many::find_stems(written, &place, RotationRule::None).stems;
        let none =
            || unclear(format!("no file fits \"{written}\" yet: one is needed to see what its events look like"));
        return found.into_iter().next().map(|found| found.path).ok_or_else(none);
    }
    let path = place.join(written);
    if !path.is_file() {
        let message = format!("there is no file {written}: it is needed to see what its events look like");
        return Err(unclear(message));
    }
    Ok(path)
}

/// The delimiter that the first line has, if it is another than the name says.
fn guess_delimiter(path: &Path, written: &str) -> Option<u8> {
    let usual = if written.to_ascii_lowercase().contains(".tsv") { b'\t' } else { b',' };
    let head = std::fs::read(path).ok()?;
    let line = head.split(|byte| *byte == b'\n').next()?;
    let count = |wanted: u8| line.iter().filter(|byte| **byte == wanted).count();
    if count(usual) > 0 {
        return None;
    }
    [b';', b'\t', b'|', b','].into_iter().filter(|byte| count(*byte) > 0).max_by_key(|byte| count(*byte))
}

async fn sample(mut source: impl Source, is_csv: bool, delimiter: Option<u8>) -> Result<Sample, Failure> {
    let start = source.start(StartAt::Earliest).await?;
    source.assign(&start, Follow::No).await?;
    let mut sample = Sample { fields: Vec::new(), count: 0, bad: 0, delimiter, is_csv };
    let mut inputs = Inputs::default();
    while inputs.len() < MOST {
        let room = Room { events: MOST - inputs.len(), bytes: 4 * 1024 * 1024 };
        if source.poll(&mut inputs, room).await? == Polled::End {
            break;
        }
    }
    for index in 0..inputs.len() {
        sample.add(inputs.format(), inputs.bytes(index));
    }
    for field in &mut sample.fields {
        field.unique = field.seen.len() == sample.count && field.present == sample.count;
    }
    Ok(sample)
}

impl Sample {
    fn add(&mut self, format: &Format, bytes: &[u8]) {
        let mut found = Vec::new();
        let sound = match format {
            Format::Json => match serde_json::from_slice(bytes) {
                Ok(Value::Object(event)) => {
                    flatten(&mut Vec::new(), &event, &mut found);
                    true
                }
                Ok(_) | Err(_) => false,
            },
            Format::Csv(csv) => {
                let take = |name: &str, text: Option<std::borrow::Cow<'_, str>>| {
                    let sort = text.as_deref().map_or(Sort::Unknown, sort_of_untyped);
                    found.push((vec![name.to_owned()], sort, text.unwrap_or_default().into_owned()));
                };
                read_record(csv, bytes, take).is_ok()
            }
        };
        if !sound {
            self.bad += 1;
            return;
        }
        self.count += 1;
        for (names, sort, text) in found {
            let path = names.iter().fold(String::new(), |path, name| format!("{path}{}", FieldPath::of_name(name)));
            let Ok(path) = path.parse::<FieldPath>() else { continue };
            let at = self.fields.iter().position(|field| field.path == path).unwrap_or_else(|| {
                let seen = HashSet::new();
                self.fields.push(Field { path, sort: Sort::Unknown, unique: false, seen, present: 0 });
                self.fields.len() - 1
            });
            let field = &mut self.fields[at];
            field.sort = field.sort.or(sort);
            field.present += usize::from(sort != Sort::Unknown);
            field.seen.insert(text);
        }
    }

    /// What was seen, for people.
    pub(super) fn describe(&self) -> Vec<String> {
        let fields: Vec<String> =
            self.fields.iter().map(|field| format!("{} ({})", shown(&field.path), word(field.sort))).collect();
        let mut lines = vec![format!("Looked at {} event(s): {}", self.count, fields.join(", "))];
        if self.bad > 0 {
            lines.push(format!(
                "  {} input(s) are no events and would be dead letters; `hapax tap` shows them later",
                self.bad
            ));
        }
        lines
    }
}

/// A field's name, or its path where it lies inside another.
pub(super) fn shown(path: &FieldPath) -> String {
    match path.names() {
        [name] if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.is_empty() => name.clone(),
        _ => path.to_string(),
    }
}

pub(super) const fn word(sort: Sort) -> &'static str {
    match sort {
        Sort::Unknown => "empty",
        Sort::Boolean => "true or false",
        Sort::Integer => "whole numbers",
        Sort::Decimal => "numbers",
        Sort::Date => "dates",
        Sort::Timestamp => "times",
        Sort::Uuid => "uuids",
        Sort::Json => "JSON",
        Sort::Text => "text",
    }
}

fn flatten(
    before: &mut Vec<String>,
    event: &serde_json::Map<String, Value>,
    found: &mut Vec<(Vec<String>, Sort, String)>,
) {
    for (name, value) in event {
        before.push(name.clone());
        match value {
            Value::Object(inner) if !inner.is_empty() && before.len() < DEPTH => flatten(before, inner, found),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                found.push((before.clone(), sort_of(value), value.to_string()));
            }
        }
        before.pop();
    }
}

fn sort_of(value: &Value) -> Sort {
    match value {
        Value::Null => Sort::Unknown,
        Value::Bool(_) => Sort::Boolean,
        Value::Number(number) if number.is_i64() || number.is_u64() => Sort::Integer,
        Value::Number(_) => Sort::Decimal,
        Value::String(text) => sort_of_text(text),
        Value::Array(_) | Value::Object(_) => Sort::Json,
    }
}

/// A text that has a form of its own.
fn sort_of_text(text: &str) -> Sort {
    let digits =
        |range: std::ops::Range<usize>| text.get(range).is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()));
    let dashes = text.as_bytes().get(4) == Some(&b'-') && text.as_bytes().get(7) == Some(&b'-');
    let is_date = text.len() >= 10 && dashes && digits(0..4) && digits(5..7) && digits(8..10);
    let is_uuid = text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        });
    match text.as_bytes().get(10) {
        None if is_date => Sort::Date,
        Some(b'T' | b't' | b' ') if is_date && digits(11..13) => Sort::Timestamp,
        _ if is_uuid => Sort::Uuid,
        _ => Sort::Text,
    }
}

/// A text of CSV, which may stand for anything.
fn sort_of_untyped(text: &str) -> Sort {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite) && !text.contains(['i', 'n', 'I', 'N']);
    let padded = text.len() > 1 && text.starts_with('0') && !text.contains('.');
    match text {
        "true" | "false" | "t" | "f" | "TRUE" | "FALSE" => Sort::Boolean,
        _ if text.parse::<i64>().is_ok() && !padded => Sort::Integer,
        _ if is_number && !padded => Sort::Decimal,
        _ if text.starts_with(['{', '[']) && serde_json::from_str::<Value>(text).is_ok() => Sort::Json,
        _ => sort_of_text(text),
    }
}
