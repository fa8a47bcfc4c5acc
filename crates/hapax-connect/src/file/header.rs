//! The header of a CSV file: read from its beginning, compared with what is needed and with the header before.
//!
//! Reads: the first record of a file. Writes: nothing. Invariant: no record is handed out under a header that lacks a
//! field of the key, or under another one than its predecessor's.

use std::io;
use std::sync::Arc;

use hapax_engine::decode::csv::{CsvFormat, Format, Header};
use hapax_model::field::FieldPath;
use hapax_model::nearest::nearest;

use super::config::{CsvOptions, Expected, FileFormat, HeaderFrom, NeededBy, NeededField};
use super::feed::{Feed, Unreadable};
use super::incarnation::Opened;
use super::lines::{Cut, Found, Lines, Seam};

/// The code of a header that is another than before.
const CHANGED: &str = "HX3011";
/// The code of a header that cannot serve.
const UNFIT: &str = "HX3012";
/// What helps where the first record is none.
const NO_HEADER: &str =
    "If the file has no header, name its columns in the configuration (header: [id, …]); else mend the header";
/// A header lies within so many blocks.
const BLOCKS: usize = 8;

/// How the records of an open file are read.
#[derive(Debug, Clone)]
pub(super) enum Naming {
    /// Known: all that begins before `behind` is the header and no event.
    Known { format: Format, behind: u64 },
    /// The header is not complete yet.
    Awaited,
}

impl Naming {
    /// What `format` says of a file, with a look into it where its header is there.
    pub(super) fn of(opened: &Opened, format: &FileFormat, expected: &Expected, max_line: usize) -> io::Result<Self> {
        let FileFormat::Csv(csv) = format else { return Ok(Self::Known { format: Format::Json, behind: 0 }) };
        match &csv.header {
            HeaderFrom::Names(names) => Ok(Self::Known { format: csv_format(csv, names.clone()), behind: 0 }),
            HeaderFrom::File => match first_record(opened, csv, max_line)? {
                Some((record, behind)) => Self::learn(&record, behind, csv, expected),
                None => Ok(Self::Awaited),
            },
        }
    }

    /// Takes `record`, which ends before `behind`, for the header.
    pub(super) fn learn(record: &[u8], behind: u64, csv: &CsvOptions, expected: &Expected) -> io::Result<Self> {
        let shown = || String::from_utf8_lossy(&record[..record.len().min(200)]).into_owned();
        let unfit = |why: String, cure: &str| {
            Unreadable::error(UNFIT, format!("the header \"{}\" cannot serve: {why}. {cure}", shown()))
        };
        let names = csv.dialect.names(record).map_err(|why| unfit(why, NO_HEADER))?;
        let has = |path: &FieldPath| names.iter().any(|name| is_named(path, name));
        let lacking: Vec<&NeededField> = expected.needed.iter().filter(|field| !has(&field.path)).collect();
        let other_delimiter = other_delimiter(&names);
        if !lacking.is_empty() {
            let (why, cure) = what_lacks(&lacking, &names);
            return Err(unfit(why, &other_delimiter.unwrap_or(cure)));
        }
        let mut wanted = expected.taken.iter().chain(expected.needed.iter().map(|field| &field.path));
        if !expected.taken.is_empty() && !wanted.any(has) {
            let table: Vec<String> = expected.taken.iter().map(ToString::to_string).collect();
            let why = format!("none of its columns is one that the table takes ({})", table.join(", "));
            return Err(unfit(why, other_delimiter.as_deref().unwrap_or(NO_HEADER)));
        }
        Ok(Self::Known { format: csv_format(csv, names), behind })
    }

    /// Refuses the next file if its header is another than this one's.
    pub(super) fn refuse_change(&self, next: &Self) -> io::Result<()> {
        match (self.names(), next.names()) {
            (Some(before), Some(after)) if before != after => Err(Unreadable::error(
                CHANGED,
                format!(
                    "the next file has another header: it was \"{}\", it is \"{}\". What was read is delivered, nothing of \
                     the next file is. If that header is right, go on with it: `hapax reset WORKFLOW --to next`",
                    before.join(","),
                    after.join(",")
                ),
            )),
            _ => Ok(()),
        }
    }

    fn names(&self) -> Option<&[String]> {
        match self {
            Self::Known { format: Format::Csv(csv), .. } => match &csv.header {
                Header::Names(names) => Some(names),
                Header::InEachInput => None,
            },
            Self::Known { format: Format::Json, .. } | Self::Awaited => None,
        }
    }
}

/// Which fields no column feeds, what needs them, and the probable cure.
fn what_lacks(lacking: &[&NeededField], names: &[String]) -> (String, String) {
    let (mut fields, mut cures) = (Vec::new(), Vec::new());
    for (at, field) in lacking.iter().enumerate() {
        let path = &field.path;
        if lacking[..at].iter().any(|before| before.path == *path) {
            continue;
        }
        let by: Vec<String> = lacking.iter().filter(|other| other.path == *path).map(|f| f.by.to_string()).collect();
        let verb = if by.len() == 1 && field.by == NeededBy::DeleteWhen { "needs" } else { "need" };
        let by = by.join(" and ");
        let meant = nearest(&path.names().join("."), names.iter().map(String::as_str));
        let question = meant.map(|name| format!(" (did you mean .{name}?)")).unwrap_or_default();
        fields.push(format!("{path}{question}, which {by} {verb}"));
        cures.extend(meant.map(|name| format!("write .{name} for {path} in {by}")));
    }
    let why = format!("it has no column for {}", fields.join("; nor for "));
    let cure = match cures.is_empty() {
        false => format!("Probably the configuration misspells a name: {}", cures.join("; ")),
        true => {
            format!("Write the names that the header has in the configuration (columns: {{ id: .name }}). {NO_HEADER}")
        }
    };
    (why, cure)
}

/// A header of one name that holds what often stands between fields was probably never split.
fn other_delimiter(names: &[String]) -> Option<String> {
    let [only] = names else { return None };
    let delimiter = [';', '\t', '|', ','].into_iter().find(|delimiter| only.contains(*delimiter))?;
    let written = if delimiter == '\t' { "tab".to_owned() } else { format!("\"{delimiter}\"") };
    Some(format!("Probably other characters stand between its fields: csv: {{ delimiter: {written} }}"))
}

/// Whether a column of this name feeds the path: a name with points is a path too.
fn is_named(path: &FieldPath, name: &str) -> bool {
    path.names().join(".") == name
}

fn csv_format(csv: &CsvOptions, names: Vec<String>) -> Format {
    let header = Header::Names(names);
    Format::Csv(Arc::new(CsvFormat { dialect: csv.dialect, null: csv.null.clone(), header }))
}

/// The first record of a file and the offset behind it; none while it is not complete.
fn first_record(opened: &Opened, csv: &CsvOptions, max_line: usize) -> io::Result<Option<(Vec<u8>, u64)>> {
    let mut feed = Feed::new(opened.file.try_clone()?);
    let mut lines = Lines::new(0, Cut::Records(csv.dialect), max_line, Seam::LineStart);
    match lines.next(&mut feed, &mut { BLOCKS })? {
        Found::Line => {
            let record = lines.line().to_vec();
            lines.pass();
            Ok(Some((record, lines.offset())))
        }
        Found::Long(_) | Found::Pause => {
            Err(Unreadable::error(UNFIT, "the header is longer than maxLine, or than 2 MiB".to_owned()))
        }
        Found::Continued | Found::Later | Found::End => Ok(None),
    }
}
