//! COMMIT, with its outcome looked at.

use hapax_model::fault::{Bug, planted};
use rusqlite::{Connection, Error, ErrorCode};

/// How a COMMIT ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum CommitEnd {
    /// All of it is durable and visible.
    Committed,
    /// Nothing of it is visible, and nothing ever will be. The connection may be used again.
    RolledBack {
        /// What SQLite calls the reason.
        code: ErrorCode,
        /// What it said.
        message: String,
    },
    /// It may or may not be there. The connection must be thrown away ([`Session::discard`](super::Session::discard)).
    InDoubt {
        /// What is known.
        message: String,
    },
}

/// Commits the open transaction of `connection` and looks at what came of it.
///
/// SQLite keeps a transaction open after some errors of COMMIT (busy, full, a deferred constraint) and rolls it back
/// by itself after others; both are a clean roll back. An I/O error is neither: the commit record may already be in
/// the write-ahead log, where the next recovery would find it.
pub fn checked_commit(connection: &Connection) -> CommitEnd {
    if connection.is_autocommit() {
        // A trigger's RAISE(ROLLBACK) or an earlier error has ended the transaction: COMMIT would have nothing to do.
        let message = "the transaction had already been rolled back before COMMIT".to_owned();
        return CommitEnd::RolledBack { code: ErrorCode::OperationAborted, message };
    }
    match connection.execute_batch("COMMIT") {
        Ok(()) => CommitEnd::Committed,
        Err(_) if planted(Bug::CommitOutcomeIgnored) => CommitEnd::Committed,
        Err(error) => after_failed_commit(connection, &error),
    }
}

fn after_failed_commit(connection: &Connection, error: &Error) -> CommitEnd {
    let code = error.sqlite_error_code();
    match code {
        Some(
            code @ (ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::ConstraintViolation
            | ErrorCode::DiskFull
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted),
        ) => roll_back(connection, code, error),
        Some(_) | None => CommitEnd::InDoubt { message: error.to_string() },
    }
}

fn roll_back(connection: &Connection, code: ErrorCode, error: &Error) -> CommitEnd {
    if connection.is_autocommit() {
        return CommitEnd::RolledBack { code, message: error.to_string() };
    }
    match connection.execute_batch("ROLLBACK") {
        Ok(()) => CommitEnd::RolledBack { code, message: error.to_string() },
        Err(second) => CommitEnd::InDoubt { message: format!("{error}; and the roll back failed: {second}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_table() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "PRAGMA foreign_keys = ON;
                 CREATE TABLE parent (id INTEGER PRIMARY KEY);
                 CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);",
            )
            .unwrap();
        connection
    }

    fn children(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM child", [], |row| row.get(0)).unwrap()
    }

    /// Goal: success is success. Method: a plain transaction.
    #[test]
    fn a_good_commit_is_committed() {
        let connection = with_table();
        connection.execute_batch("BEGIN IMMEDIATE; INSERT INTO child VALUES (NULL)").unwrap();
        assert_eq!(checked_commit(&connection), CommitEnd::Committed);
        assert_eq!(children(&connection), 1);
    }

    /// Goal: a COMMIT that SQLite refuses leaves nothing behind, not even an open transaction.
    /// Method: a deferred foreign key, after whose failure SQLite keeps the transaction open.
    #[test]
    fn a_refused_commit_is_rolled_back() {
        let connection = with_table();
        connection.execute_batch("BEGIN IMMEDIATE; INSERT INTO child VALUES (7)").unwrap();
        let end = checked_commit(&connection);
        assert!(matches!(end, CommitEnd::RolledBack { code: ErrorCode::ConstraintViolation, .. }), "{end:?}");
        assert!(connection.is_autocommit());
        assert_eq!(children(&connection), 0);
    }

    /// Goal: a transaction that is already gone is not taken for a commit. Method: a trigger that rolls back.
    #[test]
    fn a_transaction_that_a_trigger_ended_is_not_committed() {
        let connection = with_table();
        let trigger = "CREATE TRIGGER t BEFORE INSERT ON parent BEGIN SELECT RAISE(ROLLBACK, 'no'); END";
        connection.execute_batch(trigger).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE; INSERT INTO child VALUES (NULL)").unwrap();
        connection.execute_batch("INSERT INTO parent VALUES (1)").unwrap_err();
        assert!(matches!(checked_commit(&connection), CommitEnd::RolledBack { .. }));
        assert_eq!(children(&connection), 0);
    }

    /// Goal: an I/O error at COMMIT is doubt, a full disk is not. Method: the pure reaction to each error.
    #[test]
    fn an_input_output_error_is_doubt() {
        let connection = with_table();
        let failure = |code| Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        for code in [rusqlite::ffi::SQLITE_IOERR_FSYNC, rusqlite::ffi::SQLITE_CORRUPT, rusqlite::ffi::SQLITE_ERROR] {
            assert!(matches!(after_failed_commit(&connection, &failure(code)), CommitEnd::InDoubt { .. }), "{code}");
        }
        for code in [rusqlite::ffi::SQLITE_FULL, rusqlite::ffi::SQLITE_BUSY, rusqlite::ffi::SQLITE_NOMEM] {
            let end = after_failed_commit(&connection, &failure(code));
            assert!(matches!(end, CommitEnd::RolledBack { .. }), "{code}");
        }
    }
}
