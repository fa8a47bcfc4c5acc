//! Opening: the directory is locked, the file checked or made, the pragmas set.
//!
//! Invariant: nothing is written into a file that is not ours, or that a newer program has written.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax_sql::sqlite::{make_folder, make_private};
use rusqlite::{Connection, ErrorCode, OpenFlags, params};
use uuid::Uuid;

use super::failure::{Undone, damaged};
use super::{FILE, schema, writer};
use crate::fault::{Bug, planted};

/// How long we wait for a person who writes with another program.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// Connections that read.
const READERS: usize = 2;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory, or something in it, cannot be used.
    #[error("{directory}: the broker's directory cannot be used: {source}", directory = directory.display())]
    Directory {
        /// Which.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has it.
    #[error("{directory}: another broker uses this directory; stop it, or name another directory",
        directory = directory.display())]
    InUse {
        /// Which.
        directory: PathBuf,
    },
    /// A newer program wrote it.
    #[error("{path}: written by a newer version of this program (tables {found}, known here: {known}); use that version",
        path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The file is not a broker's, or damaged.
    #[error("{path}: not a file of the broker, or damaged: {message}; restore it from a backup, or name another directory",
        path = path.display())]
    Unsound {
        /// The file.
        path: PathBuf,
        /// What was found.
        message: String,
    },
}

impl OpenError {
    /// The code under which `docs/errors` explains it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "HX4550",
            Self::InUse { .. } => "HX4551",
            Self::Newer { .. } => "HX4552",
            Self::Unsound { .. } => "HX4553",
        }
    }
}

/// What an open store is made of.
pub(super) struct Opened {
    pub(super) writer: Connection,
    pub(super) readers: Vec<Connection>,
    pub(super) cluster_id: String,
    pub(super) lock: File,
}

pub(super) fn open(directory: &Path) -> Result<Opened, OpenError> {
    let lock = lock(directory)?;
    let path = directory.join(FILE);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let unusable = |source| OpenError::Directory { directory: directory.to_owned(), source };
    make_private(&path).map_err(unusable)?;
    let mut writer = connect(&path, flags)
        .and_then(|connection| writing(&connection).map(|()| connection))
        .map_err(|error| refused(&path, &error))?;
    let found = version(&writer).map_err(|error| refused(&path, &error))?;
    if found > schema::VERSION {
        return Err(OpenError::Newer { path, found, known: schema::VERSION });
    }
    let prepared = writer::at_once(&mut writer, |connection| prepare(connection, found));
    let cluster_id = prepared.map_err(|undone| unsound(&path, undone))?;
    // The new file's name must survive power loss, too.
    lock.sync_all().map_err(unusable)?;
    let readers = (0..READERS).map(|_| connect(&path, flags)).collect::<Result<_, _>>();
    let readers = readers.map_err(|error| refused(&path, &error))?;
    Ok(Opened { writer, readers, cluster_id, lock })
}

/// Makes the directory and locks it for as long as the file handle lives.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let failed = |source| OpenError::Directory { directory: directory.to_owned(), source };
    // New directories must survive power loss as their files do.
    make_folder(directory).map_err(failed)?;
    let file = File::open(directory).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { directory: directory.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(128);
    connection.execute_batch("PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;")?;
    Ok(connection)
}

/// Pragmas of the writer. The write-ahead log is copied back by the writer itself, after it has answered.
///
/// Measured with rows of 1 MiB, eight a commit: pages of 16 KiB take 2.1 CPU-ms per MB, of 8 KiB 2.8, of 64 KiB 1.5, but
/// then a small commit writes 200 KiB. The cache holds a whole commit, so that none of it is written twice.
fn writing(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch(
        "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
         PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -24576;",
    )?;
    if planted(Bug::BrokerNoSync) { connection.execute_batch("PRAGMA synchronous = OFF") } else { Ok(()) }
}

/// The version of the tables; 0: the file is new.
fn version(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(0);
    }
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != schema::APPLICATION_ID {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB),
            Some("it has other tables".to_owned()),
        ));
    }
    connection.query_row("SELECT value FROM meta WHERE name = 'schema'", [], |row| row.get(0))
}

/// Makes the tables of a new file, and takes leadership from whoever had it: that process is dead. The cluster's id.
fn prepare(connection: &Connection, found: i64) -> Result<String, Undone> {
    if found == 0 {
        connection.execute_batch(schema::TABLES)?;
        connection.execute_batch(&format!("PRAGMA application_id = {}", schema::APPLICATION_ID))?;
        let sql = "INSERT INTO meta VALUES ('schema', ?1), ('cluster_id', ?2)";
        connection.execute(sql, params![schema::VERSION, Uuid::new_v4().simple().to_string()])?;
    }
    connection.execute("UPDATE partitions SET leader = NULL WHERE leader IS NOT NULL", [])?;
    let id: String = connection.query_row("SELECT value FROM meta WHERE name = 'cluster_id'", [], |row| row.get(0))?;
    if id.is_empty() { Err(damaged("the cluster has no id")) } else { Ok(id) }
}

fn refused(path: &Path, error: &rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked,
        ) => OpenError::Directory {
            directory: path.parent().unwrap_or(path).to_owned(),
            source: io::Error::other(error.to_string()),
        },
        Some(_) | None => OpenError::Unsound { path: path.to_owned(), message: error.to_string() },
    }
}

fn unsound(path: &Path, undone: Undone) -> OpenError {
    match undone {
        Undone::Sql(error) => refused(path, &error),
        Undone::Refused(error) => OpenError::Unsound { path: path.to_owned(), message: error.to_string() },
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
