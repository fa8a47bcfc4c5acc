//! What the errors of MySQL and MariaDB mean to a delivery, as far as no single row is to blame.
//!
//! Reads: the error's class, and what was being done. Writes: nothing.
//! Not here: the reaction (`SinkError::reaction`), and which event a row's fault belongs to (the sink).

use hapax_engine::sink::SinkError;
use hapax_sql::mysql::{ConnectError, FaultClass, Session, SqlFault};

pub use crate::table::during::During;
pub use crate::table::server::after_commit;
use crate::table::server::no_session;

/// The database holds tables of our names that Hapax did not make.
pub const FOREIGN_TABLES: &str = "HX4451";

/// The database as messages name it: its address without the password.
#[must_use]
pub fn target_name(session: &Session) -> String {
    session.target().to_owned()
}

/// A statement waited for a lock for longer than `innodb_lock_wait_timeout` or `lock_wait_timeout`.
pub(super) const LOCK_TIMEOUT: u16 = 1205;
/// The disk is full, a table is full, or a file cannot be written.
const DISK_FULL: [u16; 4] = [1021, 1114, 3, 20];
/// A table, a database or a column that our statements name is not there.
const GONE: [u16; 3] = [1146, 1049, 1054];

/// An error of any statement but COMMIT, outside a row.
#[must_use]
pub fn sink_error(target: &str, during: During, fault: &SqlFault) -> SinkError {
    let (target, message) = (target.to_owned(), fault.to_string());
    match fault.class {
        FaultClass::Again if fault.number == Some(LOCK_TIMEOUT) => SinkError::Locked {
            target,
            holder: "another session (see SHOW ENGINE INNODB STATUS, or information_schema.INNODB_TRX)".to_owned(),
        },
        FaultClass::Row | FaultClass::Again => during.rolled_back(target, message),
        FaultClass::Reconnect => SinkError::ConnectionLost { target, message: reconnect_text(fault, message) },
        FaultClass::ReadOnly => SinkError::ConnectionLost {
            target,
            message: format!(
                "{message}; the server is read-only or a replica: the delivery goes on when it takes writes"
            ),
        },
        FaultClass::Schema => SinkError::SchemaEvolution { target, message },
        FaultClass::Denied => SinkError::Denied { target, message },
    }
}

fn reconnect_text(fault: &SqlFault, message: String) -> String {
    match fault.number {
        Some(number) if DISK_FULL.contains(&number) => {
            format!("{message}; free space on the server; nothing was lost, the delivery goes on by itself")
        }
        Some(_) | None => message,
    }
}

/// An error of a statement on our own tables: there, what is missing or not allowed has a known cure.
#[must_use]
pub fn own_error(session: &Session, during: During, fault: &SqlFault) -> SinkError {
    let target = target_name(session);
    let gone = fault.number.is_some_and(|number| GONE.contains(&number));
    match fault.class {
        FaultClass::Schema if gone => SinkError::OwnTables {
            target,
            message: format!(
                "{fault}; a table of ours is gone or was changed: restore it from a backup, run `hapax setup` if it was \
                 never made, or start anew with `hapax setup --drop`"
            ),
        },
        FaultClass::Schema => SinkError::OwnTables { target, message: fault.to_string() },
        FaultClass::Denied => SinkError::Denied {
            target,
            message: format!(
                "{fault}; let somebody who may grant rights run what `hapax setup --sql` prints at its end; to make, \
                 change or drop our tables, GRANT CREATE, ALTER, DROP, INDEX, SELECT, INSERT, UPDATE on the database"
            ),
        },
        FaultClass::Row | FaultClass::Again | FaultClass::Reconnect | FaultClass::ReadOnly => {
            sink_error(&target, during, fault)
        }
    }
}

/// A session that could not be had.
#[must_use]
pub fn connect_error(target: &str, error: &ConnectError) -> SinkError {
    no_session(target, error.to_string(), error.class(), error.code())
}
