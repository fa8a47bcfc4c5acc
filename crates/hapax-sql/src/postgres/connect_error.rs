//! Why a connection could not be had, with the cure. Each has a page in docs/errors.

use std::error::Error as _;
use std::time::Duration;

use tokio_postgres::Error;
use tokio_rustls::rustls;

use super::fault::{FaultClass, SqlFault};
use super::url::FILE_NAMES;
use crate::tls::{self, TlsError};

/// Why there is no session. `target` is the address without its password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Nobody answers there.
    #[error("{target} cannot be reached: {message}; start the server, or correct host and port")]
    Unreachable {
        /// The address without its password.
        target: String,
        /// What the system said.
        message: String,
    },
    /// Nobody answered in time.
    #[error("{target} did not answer within {} s; look at network and server, or raise connect_timeout", limit.as_secs())]
    Silent {
        /// The address without its password.
        target: String,
        /// How long we waited.
        limit: Duration,
    },
    /// 28P01, or no password where one is asked for.
    #[error("{target} refuses the login: {message}; correct user and password in the address")]
    Password {
        /// The address without its password.
        target: String,
        /// What the server or the driver said.
        message: String,
    },
    /// 28000: `pg_hba.conf`, an unknown role, a role without LOGIN, a missing client certificate.
    #[error(
        "{target} refuses the connection: {message}; let pg_hba.conf allow this user from this host, or correct the user"
    )]
    Refused {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// 3D000.
    #[error("{target}: {message}; create the database, or correct its name in the address")]
    NoDatabase {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// The server speaks no TLS.
    #[error("{target} offers no TLS, and sslmode asks for it; switch ssl on in the server, or write sslmode=prefer")]
    NoTls {
        /// The address without its password.
        target: String,
    },
    /// The handshake failed: whose certificate, and why.
    #[error("the TLS handshake with {target} failed: {message}; {cure}")]
    Certificate {
        /// The address without its password.
        target: String,
        /// What rustls said.
        message: String,
        /// What to do.
        cure: String,
    },
    /// A file of the TLS settings.
    #[error("{target}: {problem}")]
    TlsFiles {
        /// The address without its password.
        target: String,
        /// Which file, and what is wrong with it.
        problem: TlsError,
    },
    /// 53300.
    #[error("{target} has no connection left: {message}; lower `connections`, or raise max_connections in the server")]
    TooMany {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// 42501 at connect.
    #[error("{target} does not allow it: {message}; GRANT CONNECT ON DATABASE … TO this user")]
    Denied {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// 57P03: starting, stopping, recovering.
    #[error("{target} takes no connections yet: {message}")]
    NotReady {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// None of the hosts takes writes.
    #[error(
        "{target}: no server there takes writes: {message}; name the primary, or all hosts with target_session_attrs=read-write"
    )]
    ReadOnly {
        /// The address without its password.
        target: String,
        /// What the driver said.
        message: String,
    },
    /// All connections of the pool are taken.
    #[error("all {connections} connections to {target} were taken for {} s and {waiting} more wait; raise `connections`", waited.as_secs())]
    PoolEmpty {
        /// The address without its password.
        target: String,
        /// How many there are.
        connections: usize,
        /// How many wait, this one included.
        waiting: usize,
        /// How long this one waited.
        waited: Duration,
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

impl ConnectError {
    /// The error's page in docs/errors.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } | Self::Silent { .. } => "HX4201",
            Self::Password { .. } => "HX4202",
            Self::NoDatabase { .. } => "HX4203",
            Self::Refused { .. } => "HX4204",
            Self::NoTls { .. } => "HX4205",
            Self::Certificate { .. } => "HX4206",
            Self::TlsFiles { .. } => "HX4207",
            Self::TooMany { .. } => "HX4208",
            Self::Denied { .. } => "HX4209",
            Self::PoolEmpty { .. } => "HX4210",
            Self::ReadOnly { .. } => "HX4212",
            Self::NotReady { .. } => "HX4213",
            Self::Failed { .. } => "HX4001",
        }
    }

    /// What to do about it: `Reconnect` passes by itself, `Denied` does not, `ReadOnly` after the failover is over.
    #[must_use]
    pub fn class(&self) -> FaultClass {
        match self {
            Self::Unreachable { .. }
            | Self::Silent { .. }
            | Self::TooMany { .. }
            | Self::PoolEmpty { .. }
            | Self::NotReady { .. } => FaultClass::Reconnect,
            Self::Password { .. }
            | Self::NoDatabase { .. }
            | Self::Refused { .. }
            | Self::NoTls { .. }
            | Self::Certificate { .. }
            | Self::TlsFiles { .. }
            | Self::Denied { .. } => FaultClass::Denied,
            Self::ReadOnly { .. } => FaultClass::ReadOnly,
            Self::Failed { fault, .. } => fault.class,
        }
    }

    /// What an error of the driver at connect means.
    pub(super) fn of(target: String, error: &Error) -> Self {
        match error.as_db_error() {
            Some(answer) => {
                let fault = SqlFault::of_server(answer);
                Self::of_server(target, fault)
            }
            None => Self::of_driver(target, error),
        }
    }

    fn of_server(target: String, fault: SqlFault) -> Self {
        let message = fault.to_string();
        match fault.sqlstate.as_deref().unwrap_or_default() {
            "28P01" => Self::Password { target, message },
            "3D000" => Self::NoDatabase { target, message },
            "53300" => Self::TooMany { target, message },
            "42501" => Self::Denied { target, message },
            "57P03" => Self::NotReady { target, message },
            state if state.starts_with("28") => Self::Refused { target, message },
            _ => Self::Failed { target, fault: Box::new(fault) },
        }
    }

    fn of_driver(target: String, error: &Error) -> Self {
        let Some(cause) = error.source() else {
            return Self::Unreachable { target, message: "the server closed the connection".to_owned() };
        };
        let text = cause.to_string();
        if let Some(cause) = cause.downcast_ref::<std::io::Error>() {
            let inner = cause.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            return match inner {
                Some(inner) => {
                    Self::Certificate { target, message: inner.to_string(), cure: tls::cure(inner, &FILE_NAMES) }
                }
                // The driver's own words for target_session_attrs.
                None if cause.kind() == std::io::ErrorKind::PermissionDenied && text.contains("database") => {
                    Self::ReadOnly { target, message: text }
                }
                None => Self::Unreachable { target, message: text },
            };
        }
        // The driver does not show the kind of its errors, only their words.
        match error.to_string().as_str() {
            "error performing TLS handshake" if text.contains("does not support TLS") => Self::NoTls { target },
            "error performing TLS handshake" => {
                Self::Certificate { target, message: text, cure: "correct the host's name in the address".to_owned() }
            }
            "invalid configuration" if text.contains("password") => Self::Password { target, message: text },
            "authentication error" => Self::Refused { target, message: text },
            _ => Self::Failed { target, fault: Box::new(SqlFault::of(error)) },
        }
    }
}

#[cfg(test)]
#[path = "connect_error_tests.rs"]
mod tests;
