//! Why a store on PostgreSQL does not open, with the cure. Each has a page in docs/errors.

use hapax_sql::postgres::{ConnectError, SqlFault};

/// Why a store on PostgreSQL does not open. `target` is the address without its password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No session.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The role may not make the schema, or not use it.
    #[error("{target}: {message}; let an administrator run: {sql}")]
    Rights {
        /// The address without its password.
        target: String,
        /// What is missing.
        message: String,
        /// What gives it.
        sql: String,
    },
    /// A newer program has been here.
    #[error("{target}: the schema kafka has version {found}, and this program knows {known}; run the newer program")]
    Newer {
        /// The address without its password.
        target: String,
        /// Of the database.
        found: i32,
        /// Of this program.
        known: i32,
    },
    /// Somebody else's schema.
    #[error("{target} has a schema kafka that is not ours; rename it, or give the broker a database of its own")]
    NotOurs {
        /// The address without its password.
        target: String,
    },
    /// `fsync = off`.
    #[error("{target} runs with fsync = off: what it confirms is lost with the power; set fsync = on and reload it")]
    NotDurable {
        /// The address without its password.
        target: String,
    },
    /// Below PostgreSQL 14.
    #[error("{target} is PostgreSQL {}; the broker needs 14 or newer", version / 10_000)]
    TooOld {
        /// The address without its password.
        target: String,
        /// Such as 130012.
        version: u32,
    },
    /// A standby, or read-only by default.
    #[error("{target} takes no writes (a standby, or default_transaction_read_only); name the primary")]
    ReadOnly {
        /// The address without its password.
        target: String,
    },
    /// The server answered something else.
    #[error("{target}: {fault}")]
    Failed {
        /// The address without its password.
        target: String,
        /// What it said.
        fault: Box<SqlFault>,
    },
}

impl OpenError {
    /// The error's page in docs/errors.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Connect(error) => error.code(),
            Self::Rights { .. } => "HX4501",
            Self::Newer { .. } => "HX4502",
            Self::NotOurs { .. } => "HX4503",
            Self::NotDurable { .. } => "HX4504",
            Self::TooOld { .. } => "HX4505",
            Self::ReadOnly { .. } => "HX4506",
            Self::Failed { fault, .. } => fault.code.unwrap_or("HX4500"),
        }
    }
}
