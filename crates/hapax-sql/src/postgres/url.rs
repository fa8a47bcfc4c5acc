//! `postgres://user:password@host:port/database?sslmode=…`, read as libpq reads it, as far as people use it.
//!
//! Not read: `PGPASSWORD` and the other `PG…` variables, `.pgpass`, service files, `~/.postgresql/*`; what is not in the
//! address does not count. Invariant: neither `Display`, `Debug` nor an error shows the password.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode as DriverMode, TargetSessionAttrs};

use crate::tls::{FileNames, TlsMode, TlsRoots, TlsSettings};
use crate::url_parts::{self, Cut, host_and_port, nearest, user_and_password};

/// What an address calls the files of TLS.
pub(super) const FILE_NAMES: FileNames = FileNames { roots: "sslrootcert", certificate: "sslcert", key: "sslkey" };

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name or an IP address.
    Tcp(String),
    /// The folder of a Unix socket.
    Unix(PathBuf),
}

/// Why an address is refused. Never contains a value of the address that could be a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("the address must begin with postgres:// or postgresql://")]
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
    #[error("a port of the address is no number from 1 to 65535 (in user and password write : as %3A)")]
    Port,
    /// More or fewer ports than hosts.
    #[error("the address names {hosts} hosts and {ports} ports; write one port, or one for each host")]
    Ports {
        /// How many hosts.
        hosts: usize,
        /// How many ports.
        ports: usize,
    },
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
    #[error("sslcert and sslkey belong together; the address has only {given}")]
    HalfCertificate {
        /// The one that is there.
        given: &'static str,
    },
    /// NUL cannot be sent to the server.
    #[error("the {part} of the address contains a NUL character, which PostgreSQL cannot take")]
    Nul {
        /// Which part.
        part: &'static str,
    },
}

impl UrlError {
    /// The error's page: docs/errors/HX4200.md.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "HX4200"
    }

    /// The same without a name that may be a part of a password.
    fn shown(self, cut: &Cut<'_>) -> Self {
        if let Self::Unknown { name, nearest } = &self {
            return Self::Unknown { name: cut.shown_name(name), nearest };
        }
        self
    }
}

/// What the address knows.
const PARAMETERS: [&str; 15] = [
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "connect_timeout",
    "application_name",
    "options",
    "target_session_attrs",
    "channel_binding",
    "ssl",
];

/// The address of a PostgreSQL database. `Display` is [`target`](Self::target).
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    user: Option<String>,
    password: Option<String>,
    hosts: Vec<(Host, u16)>,
    database: Option<String>,
    tls: TlsSettings,
    connect_timeout: Option<Duration>,
    application_name: Option<String>,
    options: Option<String>,
    session: Option<TargetSessionAttrs>,
    channel_binding: ChannelBinding,
}

/// As it is read, before hosts and ports are matched.
#[derive(Default)]
struct Raw {
    user: Option<String>,
    password: Option<String>,
    hosts: Vec<String>,
    ports: Vec<String>,
    database: Option<String>,
    mode: Option<TlsMode>,
    roots: Option<TlsRoots>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    connect_timeout: Option<Duration>,
    application_name: Option<String>,
    options: Option<String>,
    session: Option<TargetSessionAttrs>,
    channel_binding: Option<ChannelBinding>,
}

impl PostgresUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// If it cannot be read; the message says what to write and never shows the password.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        let rest = rest.ok_or(UrlError::Scheme)?;
        let cut = Cut::of(rest).ok_or(UrlError::Unencoded)?;
        let mut raw = Raw::default();
        raw.authority(cut.authority)?;
        if !cut.path.is_empty() {
            raw.database = Some(decode(cut.path, "database")?);
        }
        for (name, value) in cut.parameters() {
            let read = raw.parameter(&decode(name, "parameters")?, &decode(value, "parameters")?);
            read.map_err(|error| error.shown(&cut))?;
        }
        raw.finish()
    }

    /// The database without any secret: `postgres://user@host:port/database`.
    #[must_use]
    pub fn target(&self) -> String {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let hosts: Vec<String> = self.hosts.iter().map(|(host, port)| format!("{}:{port}", host.shown())).collect();
        let database = self.database.as_ref().or(self.user.as_ref()).map_or("", String::as_str);
        format!("postgres://{user}{}/{database}", hosts.join(","))
    }

    /// The TLS part.
    #[must_use]
    pub fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    /// The hosts with their ports, in the order in which they are tried.
    #[must_use]
    pub fn hosts(&self) -> &[(Host, u16)] {
        &self.hosts
    }

    /// The user; none means the user who runs the process.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The database; none means the one named like the user.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// How long one host may take to answer, if the address says it.
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

    /// What the driver needs. Limits, keepalives and names are the session's affair.
    pub(super) fn driver_config(&self) -> Config {
        let mut config = Config::new();
        for (host, port) in &self.hosts {
            match host {
                Host::Tcp(name) => config.host(name),
                Host::Unix(folder) => config.host_path(folder),
            };
            config.port(*port);
        }
        if let Some(user) = &self.user {
            config.user(user);
        }
        if let Some(password) = &self.password {
            config.password(password);
        }
        if let Some(database) = &self.database {
            config.dbname(database);
        }
        if let Some(options) = &self.options {
            config.options(options);
        }
        // Of several hosts only one takes writes: without this the first that answers would be taken.
        let several = self.hosts.len() > 1;
        let unsaid = if several { TargetSessionAttrs::ReadWrite } else { TargetSessionAttrs::Any };
        config.target_session_attrs(self.session.unwrap_or(unsaid));
        config.channel_binding(self.channel_binding);
        config.ssl_mode(match self.tls.mode {
            TlsMode::Disable => DriverMode::Disable,
            TlsMode::Prefer => DriverMode::Prefer,
            TlsMode::Require | TlsMode::VerifyAuthority | TlsMode::VerifyFull => DriverMode::Require,
        });
        config
    }
}

impl FromStr for PostgresUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.target())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        url_parts::debug(formatter, "PostgresUrl", &self.target(), self.password.as_ref(), &self.tls)
    }
}

impl Host {
    fn shown(&self) -> String {
        match self {
            Self::Tcp(name) if name.contains(':') => format!("[{name}]"),
            Self::Tcp(name) => name.clone(),
            Self::Unix(folder) => folder.display().to_string(),
        }
    }
}

impl Raw {
    fn authority(&mut self, authority: &str) -> Result<(), UrlError> {
        let (login, hosts) = authority.rsplit_once('@').map_or((None, authority), |(left, right)| (Some(left), right));
        if let Some(login) = login {
            let (user, password) = user_and_password(login);
            self.user = Some(decode(user, "user")?).filter(|user| !user.is_empty());
            self.password = password.map(|password| decode(password, "password")).transpose()?;
        }
        for entry in hosts.split(',').filter(|_| !hosts.is_empty()) {
            let (host, port) = host_and_port(entry);
            self.hosts.push(decode(host, "host")?);
            self.ports.push(port.to_owned());
        }
        Ok(())
    }

    fn parameter(&mut self, name: &str, value: &str) -> Result<(), UrlError> {
        let own = || Some(value.to_owned());
        match name {
            "host" => self.hosts = value.split(',').map(str::to_owned).collect(),
            "port" => self.ports = value.split(',').map(str::to_owned).collect(),
            "user" => self.user = own(),
            "password" => self.password = own(),
            "dbname" => self.database = own(),
            "sslmode" => self.mode = Some(mode(value)?),
            "ssl" if value == "true" => self.mode = Some(TlsMode::Require),
            "ssl" => return Err(UrlError::Value { name: "ssl", takes: "only true; write sslmode instead" }),
            "sslrootcert" if value == "system" => self.roots = Some(TlsRoots::System),
            "sslrootcert" => self.roots = Some(TlsRoots::File(Path::new(value).to_owned())),
            "sslcert" => self.certificate = Some(PathBuf::from(value)),
            "sslkey" => self.key = Some(PathBuf::from(value)),
            "connect_timeout" => self.connect_timeout = seconds(value)?,
            "application_name" => self.application_name = own(),
            "options" => self.options = own(),
            "target_session_attrs" => self.session = Some(session(value)?),
            "channel_binding" => self.channel_binding = Some(channel_binding(value)?),
            _ => return Err(UrlError::Unknown { name: name.to_owned(), nearest: nearest(name, &PARAMETERS) }),
        }
        Ok(())
    }

    fn finish(self) -> Result<PostgresUrl, UrlError> {
        let nul = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains('\0'));
        for (part, text) in [
            ("user", &self.user),
            ("password", &self.password),
            ("database", &self.database),
            ("application_name", &self.application_name),
            ("options", &self.options),
        ] {
            if nul(text) {
                return Err(UrlError::Nul { part });
            }
        }
        let client = url_parts::client_files(self.certificate, self.key, &FILE_NAMES);
        let client = client.map_err(|given| UrlError::HalfCertificate { given })?;
        let hosts = hosts(self.hosts, &self.ports)?;
        let roots = self.roots.unwrap_or(TlsRoots::Unsaid);
        // As libpq has it: the system's authorities are many, so with them only the full check means something.
        let unsaid = if roots == TlsRoots::System { TlsMode::VerifyFull } else { TlsMode::Prefer };
        let wanted = self.mode.unwrap_or(unsaid);
        let only_sockets = hosts.iter().all(|(host, _)| matches!(host, Host::Unix(_)));
        // No server offers TLS over a socket in the file system.
        let mode = if only_sockets { TlsMode::Disable } else { wanted };
        Ok(PostgresUrl {
            user: self.user,
            password: self.password,
            hosts,
            database: self.database.filter(|database| !database.is_empty()),
            tls: TlsSettings { mode, roots, client },
            connect_timeout: self.connect_timeout,
            application_name: self.application_name,
            options: self.options,
            session: self.session,
            channel_binding: self.channel_binding.unwrap_or(ChannelBinding::Prefer),
        })
    }
}

fn decode(text: &str, part: &'static str) -> Result<String, UrlError> {
    url_parts::decode(text).ok_or(UrlError::Encoding { part })
}

fn hosts(names: Vec<String>, ports: &[String]) -> Result<Vec<(Host, u16)>, UrlError> {
    let names = if names.is_empty() { vec![String::new()] } else { names };
    if ports.len() > 1 && ports.len() != names.len() {
        return Err(UrlError::Ports { hosts: names.len(), ports: ports.len() });
    }
    let port_of = |index: usize| match ports.get(index).or_else(|| ports.first()).map(String::as_str) {
        None | Some("") => Ok(5432),
        Some(text) => text.parse().ok().filter(|port| *port != 0).ok_or(UrlError::Port),
    };
    let host_of = |name: String| match name.as_str() {
        "" => Host::Unix(default_socket()),
        path if path.starts_with('/') => Host::Unix(PathBuf::from(path)),
        _ => Host::Tcp(name),
    };
    names.into_iter().enumerate().map(|(index, name)| Ok((host_of(name), port_of(index)?))).collect()
}

/// Where distributions put the socket, else where PostgreSQL itself does.
fn default_socket() -> PathBuf {
    let usual = Path::new("/var/run/postgresql");
    if usual.is_dir() { usual.to_owned() } else { PathBuf::from("/tmp") }
}

fn mode(value: &str) -> Result<TlsMode, UrlError> {
    match value {
        "disable" => Ok(TlsMode::Disable),
        "allow" | "prefer" => Ok(TlsMode::Prefer),
        "require" => Ok(TlsMode::Require),
        "verify-ca" => Ok(TlsMode::VerifyAuthority),
        "verify-full" => Ok(TlsMode::VerifyFull),
        _ => Err(UrlError::Value {
            name: "sslmode",
            takes: "disable, prefer, require, verify-ca or verify-full (allow is read as prefer)",
        }),
    }
}

fn seconds(value: &str) -> Result<Option<Duration>, UrlError> {
    url_parts::seconds(value).ok_or(UrlError::Value { name: "connect_timeout", takes: url_parts::TAKES_SECONDS })
}

fn session(value: &str) -> Result<TargetSessionAttrs, UrlError> {
    match value {
        "any" => Ok(TargetSessionAttrs::Any),
        "read-write" | "primary" => Ok(TargetSessionAttrs::ReadWrite),
        "read-only" | "standby" => Ok(TargetSessionAttrs::ReadOnly),
        _ => Err(UrlError::Value {
            name: "target_session_attrs",
            takes: "any, read-write (or primary) or read-only (or standby)",
        }),
    }
}

fn channel_binding(value: &str) -> Result<ChannelBinding, UrlError> {
    match value {
        "disable" => Ok(ChannelBinding::Disable),
        "prefer" => Ok(ChannelBinding::Prefer),
        "require" => Ok(ChannelBinding::Require),
        _ => Err(UrlError::Value { name: "channel_binding", takes: "disable, prefer or require" }),
    }
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
