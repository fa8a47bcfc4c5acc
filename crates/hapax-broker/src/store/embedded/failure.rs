//! What SQLite's errors mean to the broker: one function for statements, one for COMMIT.
//!
//! Invariant: once the end of a commit is unknown, [`Health`] stays broken until the process opens the file anew; an
//! fsync that failed is never tried again, because the kernel may have dropped what it could not write.

use std::sync::{Arc, OnceLock};

use rusqlite::{Connection, Error, ErrorCode};

use crate::store::StoreError;

/// The code of a store that failed while it was running.
pub const BROKEN: &str = "HX4554";
/// The code of a disk without room.
pub const FULL: &str = "HX4555";

/// Whether anything may still be asked of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Health(Arc<OnceLock<String>>);

impl Health {
    /// From now on every call is refused. The first reason stays.
    pub(super) fn broke(&self, reason: String) {
        if self.0.set(reason.clone()).is_ok() {
            tracing::error!(code = BROKEN, reason, "the store failed: stop this process and start it again");
        }
    }

    /// # Errors
    /// [`StoreError::Broken`] once the store broke.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match self.0.get() {
            Some(reason) => Err(StoreError::Broken(format!("{reason} ({BROKEN})"))),
            None => Ok(()),
        }
    }
}

/// Why an operation was not done.
#[derive(Debug)]
pub(super) enum Undone {
    /// The store's own answer.
    Refused(StoreError),
    /// SQLite's.
    Sql(Error),
}

impl From<StoreError> for Undone {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for Undone {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Undone> for StoreError {
    fn from(undone: Undone) -> Self {
        match undone {
            Undone::Refused(error) => error,
            Undone::Sql(error) => of_statement(&error),
        }
    }
}

/// What was read cannot have been written by us.
pub(super) fn damaged(what: impl std::fmt::Display) -> Undone {
    Undone::Refused(StoreError::Damaged(what.to_string()))
}

/// An error of any statement but COMMIT: it did nothing.
pub(super) fn of_statement(error: &Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => full(error),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OutOfMemory) => {
            StoreError::Away(error.to_string())
        }
        Some(ErrorCode::SystemIoFailure) => StoreError::Broken(error.to_string()),
        Some(_) | None => StoreError::Damaged(error.to_string()),
    }
}

/// Commits what is open.
///
/// # Errors
/// Rolled back cleanly where SQLite can say so; otherwise [`StoreError::InDoubt`], and the store is broken.
pub(super) fn commit(connection: &Connection, health: &Health) -> Result<(), StoreError> {
    let Err(error) = connection.execute_batch("COMMIT") else { return Ok(()) };
    let clean = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OutOfMemory)
    );
    if clean && roll_back(connection).is_ok() {
        return Err(of_statement(&error));
    }
    health.broke(format!("a commit failed: {error}"));
    Err(StoreError::InDoubt(format!("a commit failed: {error} ({BROKEN})")))
}

/// Rolls back what is still open; SQLite may have done it by itself.
pub(super) fn roll_back(connection: &Connection) -> Result<(), Error> {
    if connection.is_autocommit() { Ok(()) } else { connection.execute_batch("ROLLBACK") }
}

fn full(error: &Error) -> StoreError {
    StoreError::Full(format!("{error}; free space on that file system ({FULL})"))
}
