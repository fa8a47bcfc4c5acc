//! What SQLite's errors mean to a delivery: one function for the target as a whole, one for a single row.
//!
//! Reads: the error, and what was being done. Writes: nothing.
//! Not here: the reaction (`SinkError::reaction`), and which event a row's fault belongs to (the sink).

use std::path::{Path, PathBuf};

use hapax_engine::sink::SinkError;
use hapax_sql::sqlite::{CommitEnd, OpenError, SessionLost, holder};
use rusqlite::ffi;
use rusqlite::{Connection, Error, ErrorCode};

pub use crate::table::during::During;
use crate::table::words::without_values;

/// The database as messages name it.
#[must_use]
pub fn target_name(path: &Path) -> String {
    format!("SQLite database {}", path.display())
}

/// The path of an open connection's database.
#[must_use]
pub fn path_of(connection: &Connection) -> PathBuf {
    connection.path().map(PathBuf::from).unwrap_or_default()
}

/// An error of any statement but COMMIT, on our own tables or outside a row.
#[must_use]
pub fn sink_error(path: &Path, during: During, error: &Error) -> SinkError {
    let (target, message) = (target_name(path), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => SinkError::Locked { target, holder: who(path) },
        Some(ErrorCode::DiskFull) => SinkError::ConnectionLost { target, message: disk_full(&message) },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            let message = format!("{message}; give this user the right to write the file and its folder");
            SinkError::Denied { target, message }
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => unsound(target, &message),
        Some(ErrorCode::SystemIoFailure) => SinkError::ConnectionLost { target, message },
        Some(ErrorCode::CannotOpen) => SinkError::ConnectionFailed { target, message },
        Some(ErrorCode::SchemaChanged) => SinkError::SchemaEvolution { target, message },
        Some(_) | None if names_own_table(&message) => SinkError::OwnTables { target, message: own_tables(&message) },
        Some(_) | None => during.rolled_back(target, message),
    }
}

/// A COMMIT that did not succeed; nothing for one that did.
///
/// # Errors
/// What the failed COMMIT means. After [`SinkError::CommitInDoubt`] the session must discard its connection.
pub fn after_commit(path: &Path, during: During, end: CommitEnd) -> Result<(), SinkError> {
    let target = target_name(path);
    match end {
        CommitEnd::Committed => Ok(()),
        CommitEnd::RolledBack { code: ErrorCode::DiskFull, message } => {
            Err(SinkError::ConnectionLost { target, message: disk_full(&message) })
        }
        CommitEnd::RolledBack { code: ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, .. } => {
            Err(SinkError::Locked { target, holder: who(path) })
        }
        CommitEnd::RolledBack { message, .. } => Err(during.rolled_back(target, message)),
        CommitEnd::InDoubt { message } => Err(during.in_doubt(target, message)),
    }
}

/// A session that could not do its work, or whose work has no known end.
#[must_use]
pub fn session_lost(path: &Path, during: During, lost: &SessionLost) -> SinkError {
    match lost {
        SessionLost::Reopen(error) => open_error(error),
        SessionLost::Panicked { .. } => during.in_doubt(target_name(path), lost.to_string()),
    }
}

/// A database that could not be opened.
#[must_use]
pub fn open_error(error: &OpenError) -> SinkError {
    let message = error.to_string();
    match error {
        OpenError::Denied { path, .. } => SinkError::Denied { target: target_name(path), message },
        OpenError::NotADatabase { path, .. } => SinkError::Unfit { code: UNSOUND, target: target_name(path), message },
        OpenError::NoWriteAheadLog { path, .. } => {
            SinkError::Unfit { code: NO_WRITE_AHEAD_LOG, target: target_name(path), message }
        }
        OpenError::Busy { path, .. } => SinkError::Locked { target: target_name(path), holder: who(path) },
        OpenError::MissingFolder { path, .. }
        | OpenError::Missing { path }
        | OpenError::Folder { path }
        | OpenError::Failed { path, .. } => SinkError::ConnectionFailed { target: target_name(path), message },
    }
}

/// The file is no sound SQLite database.
pub const UNSOUND: &str = "HX4101";
/// The file system cannot hold a write-ahead log.
pub const NO_WRITE_AHEAD_LOG: &str = "HX4102";

fn who(path: &Path) -> String {
    holder(path).unwrap_or_else(|| "another session, which has let go meanwhile".to_owned())
}

fn disk_full(message: &str) -> String {
    format!("disk full ({message}); free space on that file system; nothing was lost, the delivery goes on by itself")
}

fn unsound(target: String, message: &str) -> SinkError {
    let message = format!("{message}; the file is damaged or no SQLite database: restore it from a backup");
    SinkError::Unfit { code: UNSOUND, target, message }
}

fn names_own_table(message: &str) -> bool {
    message.contains("no such table: hapax_") || message.contains("no such table: main.hapax_")
}

fn own_tables(message: &str) -> String {
    format!("{message}; a table of ours is gone: restore the file from a backup, or start anew with hapax setup --drop")
}

/// Whose fault an error is that came while rows were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowFault {
    /// The row's: the target refuses it and would take others.
    Row {
        /// The code of the page that explains it.
        code: &'static str,
        /// The message without the row's own values.
        fingerprint: String,
    },
    /// The statement no longer fits the table: read the schema again.
    Schema,
    /// The target's, or the connection's: see [`sink_error`].
    Target,
}

/// Pure: tells a row's fault from the table's and from the target's.
#[must_use]
pub fn row_fault(error: &Error) -> RowFault {
    let message = error.to_string();
    let row = |code| RowFault::Row { code, fingerprint: fingerprint(&message) };
    let extended = error.sqlite_error().map(|failure| failure.extended_code);
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => row(constraint_code(extended)),
        Some(ErrorCode::TypeMismatch) => row("HX2034"),
        Some(ErrorCode::TooBig) => row("HX2035"),
        Some(ErrorCode::SchemaChanged) => RowFault::Schema,
        // A plain SQL error: while preparing, the statement does not fit; while running, an expression of the table
        // (a trigger, a generated column, an index) failed on this row's values.
        Some(ErrorCode::Unknown) if matches!(error, Error::SqlInputError { .. }) => RowFault::Schema,
        Some(ErrorCode::Unknown) if message.contains("no such ") || message.contains("has no column") => {
            RowFault::Schema
        }
        Some(ErrorCode::Unknown) if extended == Some(ffi::SQLITE_ERROR) => row("HX2037"),
        Some(_) | None => RowFault::Target,
    }
}

fn constraint_code(extended: Option<i32>) -> &'static str {
    match extended {
        Some(ffi::SQLITE_CONSTRAINT_NOTNULL) => "HX2030",
        Some(ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID) => {
            "HX2031"
        }
        Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => "HX2033",
        Some(ffi::SQLITE_CONSTRAINT_DATATYPE) => "HX2034",
        Some(ffi::SQLITE_CONSTRAINT_TRIGGER) => "HX2036",
        // CHECK, and whatever constraint a later SQLite may add: the row broke a rule of the table.
        Some(_) | None => "HX2032",
    }
}

/// The message with what may be a row's own value taken out: runs of digits, and text in single quotes.
///
/// SQLite itself names columns and rules, never values; but a trigger's RAISE may build its message from the row.
fn fingerprint(message: &str) -> String {
    without_values(message, &['\''])
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
