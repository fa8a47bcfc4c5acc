//! Reads the target and the state store as any user could: the only place that knows the names of Hapax's tables.
//!
//! Reads: progress, epoch log, dead letters, witness, the user's table; `files` in SQLite, `server` in
//! PostgreSQL and MariaDB.
//! Writes: nothing. Not here: what is wrong with it (`check`).

mod files;
mod mysql;
mod postgres;
mod server;
mod values;

use std::time::Duration;

use self::server::Watcher;
use crate::check::history::{EpochRow, Found, LetterRow, ProgressRow, Sample};
use crate::database::{Database, Line};
use crate::shape::Shape;

/// Which delivery is looked at, and in what kind of table it ends.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The workflow's id.
    pub workflow: String,
    /// The kind of table.
    pub shape: Shape,
}

/// Why a look saw nothing.
#[derive(Debug)]
pub enum Blind {
    /// For the moment: someone shuts everyone out, or the server is away. The next look may see again.
    Now(anyhow::Error),
    /// For good.
    Ever(anyhow::Error),
}

impl From<Blind> for anyhow::Error {
    fn from(blind: Blind) -> Self {
        match blind {
            Blind::Now(error) | Blind::Ever(error) => error,
        }
    }
}

/// A connection that only looks.
#[derive(Debug)]
pub enum Eyes {
    /// At a file.
    File(rusqlite::Connection),
    /// At a server.
    Server(Watcher),
}

impl Eyes {
    /// Opens `database` for looking, and for nothing else.
    ///
    /// # Errors
    /// If it is no database, or away.
    pub fn open(database: &Database, patience: Duration) -> Result<Self, Blind> {
        match database {
            Database::File(path) => files::open(path, patience).map(Self::File).map_err(Blind::Ever),
            Database::Postgres { .. } | Database::Mysql { .. } => {
                database.line().map(|line| Self::Server(Watcher::new(line))).map_err(Blind::Now)
            }
        }
    }

    /// One consistent look at a target that keeps its own progress; none before the first claim.
    ///
    /// # Errors
    /// What the database says.
    pub fn sample(&mut self, subject: &Subject) -> Result<Option<Sample>, Blind> {
        match self {
            Self::File(connection) => files::sample(connection, subject).map_err(files::blind),
            Self::Server(watcher) => watcher.sample(subject).map_err(|error| watcher.blind(error)),
        }
    }

    /// Everything that is there at the end.
    ///
    /// # Errors
    /// What the database says.
    pub fn found(&mut self, subject: &Subject) -> Result<Found, Blind> {
        match self {
            Self::File(connection) => files::found(connection, subject).map_err(files::blind),
            Self::Server(watcher) => watcher.found(subject).map_err(|error| watcher.blind(error)),
        }
    }

    /// How many rows the table has.
    ///
    /// # Errors
    /// What the database says.
    pub fn count(&mut self) -> Result<u64, Blind> {
        match self {
            Self::File(connection) => files::count_rows(connection).map_err(files::blind),
            Self::Server(watcher) => watcher.count_rows().map_err(|error| watcher.blind(error)),
        }
    }
}

/// Whether someone holds the write lock of `database`: of a file, which has only one. In a server nobody can shut others
/// out of everything.
///
/// # Errors
/// If it is no database.
pub fn write_locked(database: &Database) -> anyhow::Result<bool> {
    match database {
        Database::File(path) => Ok(path.exists() && files::write_locked(path)?),
        Database::Postgres { .. } | Database::Mysql { .. } => Ok(false),
    }
}

/// The highest epoch that a witness in the state store has seen for `workflow`; 0 if there is none.
///
/// # Errors
/// What the database says.
pub fn witness_epoch(state: &Database, workflow: &str) -> anyhow::Result<u64> {
    match state {
        Database::File(path) => files::witness_epoch(path, workflow),
        Database::Postgres { .. } | Database::Mysql { .. } => Ok(state_store(state)?.witness_epoch(workflow)?),
    }
}

/// What a state store holds of one delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Books {
    /// Its progress.
    pub progress: Option<ProgressRow>,
    /// Its epoch log, in which one entry may stand for several epochs.
    pub epochs: Vec<EpochRow>,
    /// Dead letters.
    pub letters: Vec<LetterRow>,
}

/// What the state store holds of `workflow`: progress, epoch log and letters live there together.
///
/// # Errors
/// What the database says.
pub fn books_in(state: &Database, workflow: &str) -> anyhow::Result<Books> {
    match state {
        Database::File(path) => files::books_in(path, workflow),
        Database::Postgres { .. } | Database::Mysql { .. } => Ok(state_store(state)?.books(workflow)?),
    }
}

fn state_store(state: &Database) -> anyhow::Result<Watcher> {
    match state.line()? {
        line @ Line::Postgres(_) => Ok(Watcher::new(line)),
        Line::Mysql(_) => anyhow::bail!("MariaDB holds no state"),
    }
}
