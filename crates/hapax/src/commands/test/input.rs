//! The inputs of a test as its source would hand them out: lines of JSON, or CSV records with their header.

use hapax_connect::file::{CsvOptions, FileFormat, HeaderFrom};
use hapax_engine::decode::csv::{CsvFormat, Format, Header};

use crate::assemble::Part;
use crate::config::{Data, Input, Node, Source, json_text};

/// Inputs, and how they are written.
pub(super) struct Inputs {
    pub(super) bytes: Vec<Vec<u8>>,
    pub(super) format: Format,
}

/// What the source of `part` would read.
pub(super) fn inputs(part: &Part<'_>, written: &[Input]) -> Inputs {
    let bytes = match csv_of(part.source) {
        Some(csv) => csv_records(csv, written),
        None => written.iter().map(json_line).collect(),
    };
    Inputs { bytes, format: part.kept_format() }
}

fn csv_of(source: &Source) -> Option<&CsvOptions> {
    match source {
        Source::File(file) => match &file.format {
            FileFormat::Csv(csv) => Some(csv),
            FileFormat::JsonLines => None,
        },
        Source::Generate(_) => None,
    }
}

fn json_line(input: &Input) -> Vec<u8> {
    match input {
        Input::Fields(node) => json_text(node).into_bytes(),
        Input::Line(line) => line.clone().into_bytes(),
    }
}

/// Each record stands alone, behind its header, as a letter does. Where files have a header, the first line is one.
fn csv_records(csv: &CsvOptions, written: &[Input]) -> Vec<Vec<u8>> {
    let mut header = match &csv.header {
        HeaderFrom::File => None,
        HeaderFrom::Names(names) => Some(line_of(csv, names.clone())),
    };
    let mut records = Vec::new();
    for input in written {
        match (input, &header) {
            (Input::Fields(node), _) => records.push(record_of(csv, node)),
            (Input::Line(line), Some(header)) => records.push([header, line.as_bytes()].concat()),
            (Input::Line(line), None) => header = Some(format!("{line}\n").into_bytes()),
        }
    }
    records
}

/// Texts as one line of CSV.
fn line_of(csv: &CsvOptions, texts: Vec<String>) -> Vec<u8> {
    CsvFormat { dialect: csv.dialect, null: csv.null.clone(), header: Header::Names(texts) }.header_record()
}

/// The fields of an event as CSV would write them, behind their names. Null is written as the source writes it, which no
/// text is: that would have quotes.
fn record_of(csv: &CsvOptions, node: &Node) -> Vec<u8> {
    let Data::Map(entries) = &node.data else { return Vec::new() };
    let mut record = line_of(csv, entries.iter().map(|entry| entry.key.clone()).collect());
    for (at, entry) in entries.iter().enumerate() {
        record.extend(std::iter::repeat_n(csv.dialect.delimiter, usize::from(at > 0)));
        let text = match &entry.node.data {
            Data::Null | Data::Lost => {
                record.extend(csv.null.as_bytes());
                continue;
            }
            Data::Text(text) | Data::Number(text) => text.clone(),
            Data::Bool(_) | Data::List(_) | Data::Map(_) => json_text(&entry.node),
        };
        let written = line_of(csv, vec![text]);
        record.extend(&written[..written.len() - 1]);
    }
    record
}
