//! The header of a CSV file: read from its beginning, compared with what is needed and with the header before.
//!
//! Reads: the first record of a file. Writes: nothing. Invariant: no record is handed out under a header that lacks a
//! field of the key, or under another one than its predecessor's.

use std::io;
use std::sync::Arc;

use hapax_engine::decode::csv::{CsvFormat, Format, Header};
use hapax_model::field::FieldPath;
use hapax_model::nearest::nearest;

use super::config::{CsvOptions, Expected, FileFormat, HeaderFrom};
use super::feed::{Feed, Unreadable};
use super::incarnation::Opened;
use super::lines::{Cut, Found, Lines, Seam};

/// The code of a header that is another than before.
const CHANGED: &str = "HX3011";
/// The code of a header that cannot serve.
const UNFIT: &str = "HX3012";
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
        let unfit = |why: String| {
            Unreadable::error(
                UNFIT,
                format!(
                    "the header \"{}\" cannot serve: {why}. Mend it, or name the columns in the configuration \
                     (header: [id, …]) if the file has none",
                    shown()
                ),
            )
        };
        let names = csv.dialect.names(record).map_err(unfit)?;
        let has = |path: &FieldPath| names.iter().any(|name| is_named(path, name));
        let mut lacking: Vec<String> = Vec::new();
        for path in expected.needed.iter().filter(|path| !has(path)) {
            let meant = nearest(&path.names().join("."), names.iter().map(String::as_str));
            let meant = meant.map(|name| format!(" (did you mean .{name}?)")).unwrap_or_default();
            let text = format!("{path}{meant}");
            if !lacking.contains(&text) {
                lacking.push(text);
            }
        }
        if !lacking.is_empty() {
            let why = format!("it has no column for {}, which the key, deleteWhen or columns need", lacking.join(", "));
            return Err(unfit(why));
        }
        if !expected.taken.is_empty() && !expected.taken.iter().chain(&expected.needed).any(has) {
            let table: Vec<String> = expected.taken.iter().map(ToString::to_string).collect();
            return Err(unfit(format!("none of its columns is one that the table takes ({})", table.join(", "))));
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
