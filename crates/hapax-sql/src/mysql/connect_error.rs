//! Why a connection could not be had, with the cure. Each has a page in docs/errors.

use std::time::Duration;

use mysql_async::{DriverError, Error, IoError};
use tokio_rustls::rustls;

use super::fault::{FaultClass, SqlFault};
use super::server::Server;
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
    #[error("{target} did not answer within {} s; look at network and server, or raise connect-timeout", limit.as_secs())]
    Silent {
        /// The address without its password.
        target: String,
        /// How long we waited.
        limit: Duration,
    },
    /// 1045, 1698.
    #[error("{target} refuses the login: {message}; correct user and password in the address")]
    Password {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// 1130, 1129, a locked account, a way to log in that we do not know, TLS that the server asks for.
    #[error("{target} refuses the connection: {message}; {cure}")]
    Refused {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
        /// What to do.
        cure: &'static str,
    },
    /// 1049.
    #[error("{target}: {message}; create the database, or correct its name in the address")]
    NoDatabase {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// The server speaks no TLS.
    #[error(
        "{target} offers no TLS, and ssl-mode asks for it; switch TLS on in the server, or write ssl-mode=preferred"
    )]
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
    /// 1040, 1203, 1226.
    #[error("{target} has no connection left: {message}; lower `connections`, or raise max_connections in the server")]
    TooMany {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// 1044: no right on this database, or no such database for this user.
    #[error("{target} does not allow it: {message}; GRANT this user rights on the database, or correct its name")]
    Denied {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// 1053 and the like: starting, stopping, a cluster's node that is not in sync.
    #[error("{target} takes no connections yet: {message}")]
    NotReady {
        /// The address without its password.
        target: String,
        /// What the server said.
        message: String,
    },
    /// Older than what our statements need.
    #[error("{target} is {server}; Hapax needs MySQL 5.7 or MariaDB 10.3 at least")]
    TooOld {
        /// The address without its password.
        target: String,
        /// What it is.
        server: Server,
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
            Self::Unreachable { .. } | Self::Silent { .. } => "HX4351",
            Self::Password { .. } => "HX4352",
            Self::NoDatabase { .. } => "HX4353",
            Self::Refused { .. } => "HX4354",
            Self::NoTls { .. } => "HX4355",
            Self::Certificate { .. } => "HX4356",
            Self::TlsFiles { .. } => "HX4357",
            Self::TooMany { .. } => "HX4358",
            Self::Denied { .. } => "HX4359",
            Self::PoolEmpty { .. } => "HX4360",
            Self::TooOld { .. } => "HX4361",
            Self::NotReady { .. } => "HX4362",
            Self::Failed { .. } => "HX4001",
        }
    }

    /// What to do about it: `Reconnect` passes by itself, `Denied` does not.
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
            | Self::TooOld { .. }
            | Self::Denied { .. } => FaultClass::Denied,
            Self::Failed { fault, .. } => fault.class,
        }
    }

    /// What an error of the driver at connect means.
    pub(super) fn of(target: String, error: &Error) -> Self {
        match error {
            Error::Server(answer) => Self::of_server(target, SqlFault::of_server(answer)),
            Error::Io(IoError::Io(cause)) => match handshake_failure(error) {
                Some(inner) => {
                    Self::Certificate { target, message: inner.to_string(), cure: tls::cure(inner, &FILE_NAMES) }
                }
                None => Self::Unreachable { target, message: cause.to_string() },
            },
            Error::Io(IoError::Tls(cause)) => Self::Certificate {
                target,
                message: cause.to_string(),
                cure: "correct the host's name in the address".to_owned(),
            },
            Error::Driver(DriverError::NoClientSslFlagFromServer) => Self::NoTls { target },
            Error::Driver(
                problem @ (DriverError::UnknownAuthPlugin { .. }
                | DriverError::MysqlOldPasswordDisabled
                | DriverError::CleartextPluginDisabled
                | DriverError::InvalidParsecSalt),
            ) => Self::Refused { target, message: problem.to_string(), cure: PLUGIN },
            Error::Driver(DriverError::ConnectionClosed) => {
                Self::Unreachable { target, message: "the server closed the connection".to_owned() }
            }
            Error::Driver(_) | Error::Other(_) | Error::Url(_) => {
                Self::Failed { target, fault: Box::new(SqlFault::of(error)) }
            }
        }
    }

    fn of_server(target: String, fault: SqlFault) -> Self {
        let message = fault.to_string();
        match fault.number.unwrap_or_default() {
            1045 | 1698 => Self::Password { target, message },
            1049 => Self::NoDatabase { target, message },
            1040 | 1203 | 1226 => Self::TooMany { target, message },
            1044 => Self::Denied { target, message },
            1047 | 1053 | 1077..=1080 => Self::NotReady { target, message },
            1130 => Self::Refused { target, message, cure: "create the user for this host, or correct the user" },
            1129 => Self::Refused { target, message, cure: "unblock this host: mysqladmin flush-hosts" },
            3159 => Self::Refused { target, message, cure: "write ssl-mode=required in the address" },
            1251 | 1524 => Self::Refused { target, message, cure: PLUGIN },
            1820 | 1862 | 3118 | 3955 | 4151 => {
                Self::Refused { target, message, cure: "unlock the account, or renew its password, with ALTER USER" }
            }
            _ => Self::Failed { target, fault: Box::new(fault) },
        }
    }
}

const PLUGIN: &str = "let the user log in with mysql_native_password or caching_sha2_password";

/// Why the handshake failed, if that is what failed.
pub(super) fn handshake_failure(error: &Error) -> Option<&rustls::Error> {
    match error {
        Error::Io(IoError::Io(cause)) => cause.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()),
        Error::Io(IoError::Tls(mysql_async::TlsError::Tls(cause))) => Some(cause),
        Error::Io(IoError::Tls(_)) | Error::Driver(_) | Error::Other(_) | Error::Server(_) | Error::Url(_) => None,
    }
}

#[cfg(test)]
#[path = "connect_error_tests.rs"]
mod tests;
