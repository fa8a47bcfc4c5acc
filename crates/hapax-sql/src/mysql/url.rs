//! `mysql://user:password@host:port/database?ssl-mode=…`, also `mariadb://`.
//!
//! Not read: `MYSQL_…` variables, `.my.cnf`; what is not in the address does not count. Invariant: neither `Display`,
//! `Debug` nor an error shows the password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::tls::{FileNames, TlsMode, TlsRoots, TlsSettings};
use crate::url_parts::{self, Cut, host_and_port, nearest, user_and_password};

/// What an address calls the files of TLS.
pub(super) const FILE_NAMES: FileNames = FileNames { roots: "ssl-ca", certificate: "ssl-cert", key: "ssl-key" };
const PORT: u16 = 3306;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name or an IP address, and the port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Why an address is refused. Never contains a value of the address that could be a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("the address must begin with mysql:// or mariadb://")]
    Scheme,
    /// Broken percent-encoding.
    #[error("the {part} of the address is not percent-encoded UTF-8; write % as %25")]
    Encoding {
        /// Which part.
        part: &'static str,
    },
    /// A password that was not percent-encoded, most likely.
    #[error(
        "the address has an @ after its first / or ?; in user and password write / as %2F, ? as %3F, # as %23, @ as %40, \
         and everywhere else @ as %40 too"
    )]
    Unencoded,
    /// A port that is none.
    #[error("the port of the address is no number from 1 to 65535 (in user and password write : as %3A)")]
    Port,
    /// Nobody to log in as.
    #[error("the address names no user; write mysql://user:password@host/database")]
    NoUser,
    /// Several hosts.
    #[error("the address names several hosts; write the one that takes writes, or the address of your proxy")]
    Hosts,
    /// A parameter that is not known.
    #[error("the parameter {name:?} of the address is not known; did you mean {nearest}?")]
    Unknown {
        /// Its name.
        name: String,
        /// The most similar one that is known.
        nearest: &'static str,
    },
    /// A parameter's value that is not known.
    #[error("the parameter {name} of the address takes {takes}")]
    Value {
        /// Its name.
        name: &'static str,
        /// What it takes.
        takes: &'static str,
    },
    /// A certificate without a key, or a key without a certificate.
    #[error("ssl-cert and ssl-key belong together; the address has only {given}")]
    HalfCertificate {
        /// The one that is there.
        given: &'static str,
    },
    /// NUL cannot be sent to the server.
    #[error("the {part} of the address contains a NUL character, which MySQL cannot take")]
    Nul {
        /// Which part.
        part: &'static str,
    },
}

impl UrlError {
    /// The error's page: docs/errors/HX4350.md.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "HX4350"
    }

    /// The same without a name that may be a part of a password.
    fn shown(self, cut: &Cut<'_>) -> Self {
        if let Self::Unknown { name, nearest } = &self {
            return Self::Unknown { name: cut.shown_name(name), nearest };
        }
        self
    }
}

/// What the address knows. `sslmode`, `ssl_ca` and the like are read as `ssl-mode`, `ssl-ca`.
const PARAMETERS: [&str; 7] =
    ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket", "connect-timeout", "application-name"];

/// The address of a MySQL or MariaDB database. `Display` is [`target`](Self::target).
#[derive(Clone, PartialEq, Eq)]
pub struct MysqlUrl {
    user: String,
    password: Option<String>,
    host: Host,
    database: Option<String>,
    tls: TlsSettings,
    connect_timeout: Option<Duration>,
    application_name: Option<String>,
}

/// What stands behind the question mark.
#[derive(Default)]
struct Parameters {
    mode: Option<TlsMode>,
    roots: Option<TlsRoots>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    socket: Option<PathBuf>,
    connect_timeout: Option<Duration>,
    application_name: Option<String>,
}

impl MysqlUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// If it cannot be read; the message says what to write and never shows the password.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let rest = text.strip_prefix("mysql://").or_else(|| text.strip_prefix("mariadb://"));
        let rest = rest.ok_or(UrlError::Scheme)?;
        let cut = Cut::of(rest).ok_or(UrlError::Unencoded)?;
        let mut parameters = Parameters::default();
        for (name, value) in cut.parameters() {
            let read = parameters.set(&decode(name, "parameters")?, &decode(value, "parameters")?);
            read.map_err(|error| error.shown(&cut))?;
        }
        let (login, place) = cut.authority.rsplit_once('@').ok_or(UrlError::NoUser)?;
        let (user, password) = user_and_password(login);
        let user = decode(user, "user")?;
        if user.is_empty() {
            return Err(UrlError::NoUser);
        }
        let host = match parameters.socket.take() {
            Some(socket) => Host::Unix(socket),
            None => host(place)?,
        };
        let url = Self {
            user,
            password: password.map(|password| decode(password, "password")).transpose()?,
            tls: parameters.tls(&host)?,
            host,
            database: Some(decode(cut.path, "database")?).filter(|database| !database.is_empty()),
            connect_timeout: parameters.connect_timeout,
            application_name: parameters.application_name,
        };
        url.without_nul()
    }

    fn without_nul(self) -> Result<Self, UrlError> {
        for (part, text) in [
            ("user", Some(&self.user)),
            ("password", self.password.as_ref()),
            ("database", self.database.as_ref()),
            ("application-name", self.application_name.as_ref()),
        ] {
            if text.is_some_and(|text| text.contains('\0')) {
                return Err(UrlError::Nul { part });
            }
        }
        Ok(self)
    }

    /// The database without any secret: `mysql://user@host:port/database`.
    #[must_use]
    pub fn target(&self) -> String {
        let database = self.database.as_deref().unwrap_or_default();
        match &self.host {
            Host::Tcp(name, port) if name.contains(':') => {
                format!("mysql://{}@[{name}]:{port}/{database}", self.user)
            }
            Host::Tcp(name, port) => format!("mysql://{}@{name}:{port}/{database}", self.user),
            Host::Unix(socket) => format!("mysql://{}@/{database}?socket={}", self.user, socket.display()),
        }
    }

    /// The TLS part.
    #[must_use]
    pub fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    /// Where the server listens.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The user.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The database, if the address names one.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// How long the server may take to answer, if the address says it.
    #[must_use]
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }

    /// The name that the address gives the sessions, if any; ours stands before it.
    #[must_use]
    pub fn application_name(&self) -> Option<&str> {
        self.application_name.as_deref()
    }

    /// The same server and user with another database. For tests and for making databases.
    #[must_use]
    pub fn with_database(&self, database: &str) -> Self {
        Self { database: Some(database.to_owned()), ..self.clone() }
    }

    pub(super) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }
}

impl FromStr for MysqlUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

impl fmt::Display for MysqlUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.target())
    }
}

impl fmt::Debug for MysqlUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        url_parts::debug(formatter, "MysqlUrl", &self.target(), self.password.as_ref(), &self.tls)
    }
}

impl Parameters {
    fn set(&mut self, name: &str, value: &str) -> Result<(), UrlError> {
        match name.replace('_', "-").as_str() {
            "ssl-mode" | "sslmode" => self.mode = Some(mode(value)?),
            "ssl-ca" if value == "system" => self.roots = Some(TlsRoots::System),
            "ssl-ca" => self.roots = Some(TlsRoots::File(PathBuf::from(value))),
            "ssl-cert" => self.certificate = Some(PathBuf::from(value)),
            "ssl-key" => self.key = Some(PathBuf::from(value)),
            "socket" if value.starts_with('/') => self.socket = Some(PathBuf::from(value)),
            "socket" => return Err(UrlError::Value { name: "socket", takes: "the absolute path of a Unix socket" }),
            "connect-timeout" => self.connect_timeout = seconds(value)?,
            "application-name" => self.application_name = Some(value.to_owned()),
            _ => return Err(UrlError::Unknown { name: name.to_owned(), nearest: nearest(name, &PARAMETERS) }),
        }
        Ok(())
    }

    fn tls(&mut self, host: &Host) -> Result<TlsSettings, UrlError> {
        let client = url_parts::client_files(self.certificate.take(), self.key.take(), &FILE_NAMES);
        let client = client.map_err(|given| UrlError::HalfCertificate { given })?;
        let roots = self.roots.take().unwrap_or(TlsRoots::Unsaid);
        // As MySQL's own client has it: who names an authority wants it checked. The system's authorities are many, so
        // with them only the full check means something.
        let unsaid = match roots {
            TlsRoots::Unsaid => TlsMode::Prefer,
            TlsRoots::File(_) => TlsMode::VerifyAuthority,
            TlsRoots::System => TlsMode::VerifyFull,
        };
        // No byte leaves this machine over a socket in the file system, and the driver speaks no TLS there.
        let mode = match host {
            Host::Unix(_) => TlsMode::Disable,
            Host::Tcp(..) => self.mode.unwrap_or(unsaid),
        };
        Ok(TlsSettings { mode, roots, client })
    }
}

fn decode(text: &str, part: &'static str) -> Result<String, UrlError> {
    url_parts::decode(text).ok_or(UrlError::Encoding { part })
}

fn host(place: &str) -> Result<Host, UrlError> {
    if place.contains(',') {
        return Err(UrlError::Hosts);
    }
    let (name, port) = host_and_port(place);
    let port = match port {
        "" => PORT,
        text => text.parse().ok().filter(|port| *port != 0).ok_or(UrlError::Port)?,
    };
    let name = decode(name, "host")?;
    Ok(match name.as_str() {
        "" => Host::Tcp("127.0.0.1".to_owned(), port),
        path if path.starts_with('/') => Host::Unix(PathBuf::from(path)),
        _ => Host::Tcp(name, port),
    })
}

fn mode(value: &str) -> Result<TlsMode, UrlError> {
    match value.to_ascii_lowercase().replace('_', "-").as_str() {
        "disabled" | "disable" => Ok(TlsMode::Disable),
        "preferred" | "prefer" => Ok(TlsMode::Prefer),
        "required" | "require" => Ok(TlsMode::Require),
        "verify-ca" => Ok(TlsMode::VerifyAuthority),
        "verify-identity" | "verify-full" => Ok(TlsMode::VerifyFull),
        _ => Err(UrlError::Value {
            name: "ssl-mode",
            takes: "disabled, preferred, required, verify-ca or verify-identity",
        }),
    }
}

fn seconds(value: &str) -> Result<Option<Duration>, UrlError> {
    url_parts::seconds(value).ok_or(UrlError::Value { name: "connect-timeout", takes: url_parts::TAKES_SECONDS })
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
