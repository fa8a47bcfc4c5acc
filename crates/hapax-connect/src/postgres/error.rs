//! What PostgreSQL's errors mean to a delivery, as far as no single row is to blame.
//!
//! Reads: the error's class, and what was being done. Writes: nothing.
//! Not here: the reaction (`SinkError::reaction`), and which event a row's fault belongs to (the sink).

use hapax_engine::sink::SinkError;
use hapax_sql::postgres::{ConnectError, FaultClass, Session, SqlFault, quote_identifier};

pub use crate::table::during::During;
pub use crate::table::server::after_commit;
use crate::table::server::no_session;

/// The schema `hapax` holds tables that Hapax did not make.
pub const FOREIGN_TABLES: &str = "HX4301";

/// The database as messages name it: its address without the password.
#[must_use]
pub fn target_name(session: &Session) -> String {
    session.target().to_owned()
}

/// An error of any statement but COMMIT, outside a row.
#[must_use]
pub fn sink_error(target: &str, during: During, fault: &SqlFault) -> SinkError {
    let (target, message) = (target.to_owned(), fault.to_string());
    match fault.class {
        FaultClass::Again if fault.sqlstate.as_deref() == Some(LOCK_TIMEOUT) => {
            SinkError::Locked { target, holder: "another session (see pg_blocking_pids)".to_owned() }
        }
        FaultClass::Row | FaultClass::Again => during.rolled_back(target, message),
        FaultClass::Reconnect => SinkError::ConnectionLost { target, message: reconnect_text(fault, message) },
        FaultClass::ReadOnly => SinkError::ConnectionLost {
            target,
            message: format!(
                "{message}; the server is a standby or read-only: the delivery goes on when it takes writes"
            ),
        },
        FaultClass::Schema => SinkError::SchemaEvolution { target, message },
        FaultClass::Denied => SinkError::Denied { target, message },
    }
}

/// A statement waited for a lock for longer than `lock_timeout`.
pub(super) const LOCK_TIMEOUT: &str = "55P03";
const DISK_FULL: &str = "53100";
/// A table, a schema, a function or a column that our statements name is not there.
const GONE: [&str; 4] = ["42P01", "3F000", "42883", "42703"];
/// CREATE found one there already.
const THERE: [&str; 3] = ["42P07", "42P06", "42710"];

fn reconnect_text(fault: &SqlFault, message: String) -> String {
    match fault.sqlstate.as_deref() {
        Some(DISK_FULL) => {
            format!("{message}; free space on the server; nothing was lost, the delivery goes on by itself")
        }
        Some(_) | None => message,
    }
}

/// An error of a statement on our own tables: there, what is missing or not allowed has a known cure.
#[must_use]
pub fn own_error(session: &Session, during: During, fault: &SqlFault) -> SinkError {
    let target = target_name(session);
    let gone = fault.sqlstate.as_deref().is_some_and(|state| GONE.contains(&state));
    let there = fault.sqlstate.as_deref().is_some_and(|state| THERE.contains(&state));
    match fault.class {
        FaultClass::Schema if gone => SinkError::OwnTables {
            target,
            message: format!(
                "{fault}; a table of ours is gone or was changed: restore it from a backup, run `hapax setup` if it was \
                 never made, or start anew with `hapax setup --drop`"
            ),
        },
        FaultClass::Schema if there => SinkError::Unfit {
            code: FOREIGN_TABLES,
            target,
            message: format!(
                "{fault}; the schema hapax holds something of that name which Hapax did not make: rename or drop it, \
                 then run `hapax setup` again"
            ),
        },
        FaultClass::Schema => SinkError::OwnTables { target, message: fault.to_string() },
        FaultClass::Denied => SinkError::Denied { target, message: format!("{fault}; {}", denied_cure(session)) },
        FaultClass::Row | FaultClass::Again | FaultClass::Reconnect | FaultClass::ReadOnly => {
            sink_error(&target, during, fault)
        }
    }
}

/// The server names what it refuses in its own language, so the cure names all that may be missing; `hapax check
/// --live` names the one.
fn denied_cure(session: &Session) -> String {
    let user = session.user().and_then(|user| quote_identifier(user).ok()).unwrap_or_else(|| "this role".to_owned());
    format!(
        "let the owner of the schema run what `hapax setup --sql` prints, such as GRANT USAGE ON SCHEMA hapax TO {user}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hapax TO {user}; to make or drop the tables, be \
         their owner and have GRANT CREATE ON DATABASE … TO {user}"
    )
}

/// A session that could not be had.
#[must_use]
pub fn connect_error(target: &str, error: &ConnectError) -> SinkError {
    no_session(target, error.to_string(), error.class(), error.code())
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
