//! The configuration as the rest of the program uses it: typed, merged, with every default, paths resolved.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hapax_connect::file::{Crowd, FileFormat, FirstSeen, RotationRule};
use hapax_engine::source::StartAt;
use hapax_engine::transform::MakeTransform;
use hapax_model::condition::Condition;
use hapax_model::delivery::Delivery;
use hapax_model::field::FieldPath;
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::units::{ByteSize, Share};
#[cfg(feature = "mysql")]
use hapax_sql::mysql::{self, MysqlUrl};
#[cfg(feature = "postgres")]
use hapax_sql::postgres::{Limits, PostgresUrl};

use super::fixture::Fixture;
use super::problem::Place;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// `state`.
    pub(crate) state: StateUrl,
    /// `memory`: one budget for all buffers of the process.
    pub(crate) memory: ByteSize,
    /// `http`: metrics and health, if they are wanted.
    pub(crate) http: Option<Http>,
    /// `alerts.webhook`: whom to call, if anybody.
    pub(crate) webhook: Option<Secret>,
    /// `broker`, if there is one.
    #[cfg(feature = "broker")]
    pub(crate) broker: Option<super::Broker>,
    /// `workflows`, in the order of the files; ids are unique.
    pub(crate) workflows: Vec<Workflow>,
    /// `tests`, in the order of the files.
    pub(crate) tests: Vec<Fixture>,
}

/// `http`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Http {
    pub(crate) listen: std::net::SocketAddr,
    pub(crate) token: Option<Secret>,
}

/// A text that never prints.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Where the process keeps what belongs to no target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateUrl {
    /// A SQLite database at this path.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresUrl>),
    /// Nowhere.
    None,
}

/// One workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workflow {
    pub(crate) id: String,
    /// Where it stands, for messages that come later.
    pub(crate) place: Place,
    pub(crate) source: Option<Source>,
    /// The program between source and sinks, if there is one.
    pub(crate) transform: Option<Transform>,
    /// Names are unique; a single `sink:` is named after its kind.
    pub(crate) sinks: Vec<Sink>,
    pub(crate) delivery: Delivery,
}

/// A program that compiled.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "transform"), allow(dead_code, reason = "an edition without programs makes none"))]
pub(crate) struct Transform {
    pub(crate) text: String,
    /// How long it may take for one event.
    pub(crate) limit: Duration,
    pub(crate) make: Arc<dyn MakeTransform>,
}

impl PartialEq for Transform {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.limit == other.limit
    }
}

impl Eq for Transform {}

impl Workflow {
    /// What it lacks to run, in words, if something is lacking.
    pub(crate) fn incomplete(&self) -> Option<&'static str> {
        match (&self.source, self.sinks.is_empty()) {
            (None, true) => Some("a source and a sink"),
            (None, false) => Some("a source"),
            (Some(_), true) => Some("a sink"),
            (Some(_), false) => None,
        }
    }
}

/// Where events come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File(FileSource),
    Generate(GenerateSource),
}

/// `source.file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSource {
    pub(crate) path: PathBuf,
    /// The path as written: the same name for the lane wherever the configuration lies and hapax is started.
    pub(crate) written: String,
    pub(crate) start: StartAt,
    pub(crate) max_line: ByteSize,
    pub(crate) format: FileFormat,
    pub(crate) rotation: RotationRule,
    /// If the path is a pattern: where it begins, and the lanes that were found, by sink; filled in when a command asks.
    pub(crate) many: Option<ManyFiles>,
}

/// Files of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManyFiles {
    /// Where a relative pattern begins.
    pub(crate) folder: PathBuf,
    /// Sink and lane.
    pub(crate) lanes: Vec<(String, FileLane)>,
}

/// One stem of a pattern: a file, and what rotations make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileLane {
    pub(crate) name: String,
    /// Where the file is that is written to.
    pub(crate) path: PathBuf,
    /// The file that the lane begins with, if it has no progress yet.
    pub(crate) first_seen: Option<FirstSeen>,
    /// Who waits for it to end.
    pub(crate) crowd: Crowd,
}

/// `source.generate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GenerateSource {
    pub(crate) seed: u64,
    /// Without it, events never end.
    pub(crate) count: Option<u64>,
    /// Events per second; without it, as fast as they can.
    pub(crate) rate: Option<u32>,
    pub(crate) keys: u64,
    pub(crate) updates: Share,
    pub(crate) deletes: Share,
    pub(crate) poison: Share,
    pub(crate) lanes: u32,
}

/// Where events go, with the name that is part of the progress key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sink {
    pub(crate) name: String,
    pub(crate) target: Target,
}

/// The kinds of sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Sqlite(SqliteSink),
    #[cfg(feature = "postgres")]
    Postgres(PostgresSink),
    #[cfg(feature = "mysql")]
    Mysql(MysqlSink),
}

impl Target {
    /// What every kind of table has.
    pub(crate) const fn table(&self) -> &TableSink {
        match self {
            Self::Sqlite(sqlite) => &sqlite.table,
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => &postgres.table,
            #[cfg(feature = "mysql")]
            Self::Mysql(mysql) => &mysql.table,
        }
    }
}

/// `sink.sqlite`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqliteSink {
    pub(crate) path: PathBuf,
    pub(crate) table: TableSink,
    pub(crate) busy_timeout: Duration,
}

/// `sink.postgres`.
#[cfg(feature = "postgres")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PostgresSink {
    pub(crate) url: Box<PostgresUrl>,
    pub(crate) table: TableSink,
    pub(crate) connections: usize,
    pub(crate) statement_timeout: Duration,
    pub(crate) lock_timeout: Duration,
    pub(crate) idle_timeout: Duration,
}

#[cfg(feature = "postgres")]
impl PostgresSink {
    /// The limits that every session sets for itself.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            idle_in_transaction: self.idle_timeout,
            statement: self.statement_timeout,
            lock: self.lock_timeout,
            ..Limits::default()
        }
    }
}

/// `sink.mysql`.
#[cfg(feature = "mysql")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MysqlSink {
    pub(crate) url: Box<MysqlUrl>,
    pub(crate) table: TableSink,
    pub(crate) connections: usize,
    pub(crate) statement_timeout: Duration,
    pub(crate) lock_timeout: Duration,
    pub(crate) idle_timeout: Duration,
}

#[cfg(feature = "mysql")]
impl MysqlSink {
    /// The limits that every session sets for itself.
    pub(crate) fn limits(&self) -> mysql::Limits {
        mysql::Limits {
            idle_in_transaction: self.idle_timeout,
            statement: self.statement_timeout,
            lock: self.lock_timeout,
            ..mysql::Limits::default()
        }
    }
}

/// A table of any database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableSink {
    pub(crate) name: String,
    /// Without it: `update` where key fields or a primary key are known, else `append`.
    pub(crate) on_conflict: Option<ConflictMode>,
    pub(crate) key_column: Option<String>,
    pub(crate) version_column: Option<String>,
    pub(crate) columns: Columns,
    pub(crate) delete_when: Option<Condition>,
    pub(crate) progress: ProgressPlace,
    pub(crate) progress_interval: Duration,
}

/// How columns are filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Columns {
    /// By name; fields without a column are counted.
    ByName,
    /// By name; a field without a column rejects its event.
    Strict,
    /// These from these paths, the others by name.
    Mapped(Vec<(String, FieldPath)>),
}
