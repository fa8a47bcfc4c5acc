//! What a file source is told.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hapax_engine::decode::csv::Dialect;
use hapax_engine::source::StartAt;
use hapax_model::field::FieldPath;

use super::chain::RotationRule;
use super::first_seen::FirstSeen;
use super::lines::Cut;

/// The longest line that is an event, unless the configuration says otherwise.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// Which file is read, and how.
#[derive(Debug, Clone)]
pub struct FileSourceConfig {
    /// The file's absolute path, where its successor appears after a rotation.
    pub path: PathBuf,
    /// The lane's name, and what identifies the source in the contract.
    pub name: LaneName,
    /// Where a delivery without progress begins.
    pub start: StartAt,
    /// The longest line or record that is an event, in bytes without its line end; a longer one becomes a dead letter.
    pub max_line: usize,
    /// What the file holds.
    pub format: FileFormat,
    /// What must be found in a CSV header.
    pub expected: Expected,
    /// What files with rotated names mean.
    pub rotation: RotationRule,
    /// The file that the lane begins with, if it was seen before the lane could start; else the one at the path.
    pub first_seen: Option<FirstSeen>,
    /// Who waits for this lane to make room, if it is one of many.
    pub crowd: Option<Crowd>,
    /// What archives of the lane's own name are.
    pub own_archives: OwnArchives,
}

/// What a file lane is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneName {
    /// The lane.
    pub lane: String,
    /// The source's identity.
    pub identity: String,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileFormat {
    /// One JSON object per line.
    JsonLines,
    /// CSV records.
    Csv(CsvOptions),
}

impl FileFormat {
    pub(super) const fn cut(&self) -> Cut {
        match self {
            Self::JsonLines => Cut::Lines,
            Self::Csv(csv) => Cut::Records(csv.dialect),
        }
    }

    /// Whether its records have the number of their line.
    pub(super) const fn counts_lines(&self) -> bool {
        matches!(self, Self::Csv(_))
    }

    /// How CSV is written whose header is in the file itself, if that is so.
    pub(super) const fn header_in_file(&self) -> Option<&CsvOptions> {
        match self {
            Self::Csv(csv) if matches!(csv.header, HeaderFrom::File) => Some(csv),
            Self::JsonLines | Self::Csv(_) => None,
        }
    }
}

/// How CSV is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// Delimiter and quote.
    pub dialect: Dialect,
    /// A field without quotes that has this text is NULL.
    pub null: String,
    /// Where the names are.
    pub header: HeaderFrom,
}

/// Where the names of CSV columns come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderFrom {
    /// The first record of each file.
    File,
    /// Here; the first record of a file is an event.
    Names(Vec<String>),
}

/// What a CSV header must have for a delivery to make sense.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// Without one of these nothing can be delivered: key fields, and what a person has mapped.
    pub needed: Vec<NeededField>,
    /// What the table's columns take by name; of these at least one is there.
    pub taken: Vec<FieldPath>,
}

/// A field that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededField {
    /// Its path.
    pub path: FieldPath,
    /// What needs it.
    pub by: NeededBy,
}

/// What needs a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NeededBy {
    /// It is one of `keyFields`.
    Key,
    /// It tells deletes.
    DeleteWhen,
    /// It is mapped to this column.
    Column(String),
}

impl fmt::Display for NeededBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("keyFields"),
            Self::DeleteWhen => f.write_str("deleteWhen"),
            Self::Column(column) => write!(f, "columns ({column})"),
        }
    }
}

/// How many lanes wait for one that ends.
#[derive(Debug, Clone, Default)]
pub struct Crowd(Arc<AtomicUsize>);

/// Who waits says nothing about which file is read.
impl PartialEq for Crowd {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Crowd {}

impl Crowd {
    /// Says how many wait.
    pub fn set(&self, waiting: usize) {
        self.0.store(waiting, Ordering::Relaxed);
    }

    /// Whether somebody waits.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// What an archive of a lane's own name is, `app.log.gz` of `app.log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnArchives {
    /// The lane's file may have become it.
    #[default]
    OfTheLane,
    /// A lane of its own: the pattern finds it.
    LanesThemselves,
}

impl FileSourceConfig {
    /// Where the file is that has the lane's own name; none where no file has it.
    pub(super) fn live_path(&self) -> Option<&Path> {
        Some(&*self.path).filter(|_| self.rotation != RotationRule::ByName)
    }

    /// Reads the JSON lines of the file at `path` from its beginning, with lines up to 16 MiB.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let lane = path.to_string_lossy().into_owned();
        let name = LaneName { identity: format!("file:{lane}"), lane };
        Self {
            path,
            name,
            start: StartAt::Earliest,
            max_line: MAX_LINE,
            format: FileFormat::JsonLines,
            expected: Expected::default(),
            rotation: RotationRule::default(),
            first_seen: None,
            crowd: None,
            own_archives: OwnArchives::default(),
        }
    }
}
