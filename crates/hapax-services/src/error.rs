//! What can go wrong with a server of ours, as facts.

use std::path::{Path, PathBuf};

/// Why a server could not be had, or did not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No PostgreSQL on this machine, and none could be installed.
    #[error(
        "no PostgreSQL server was found. Looked for the programs postgres and initdb in:\n  {}\n{installing}\n\
         Install it and run this again: `apt-get install postgresql` (Debian, Ubuntu), `dnf install postgresql-server` \
         (Fedora), `apk add postgresql` (Alpine), `brew install postgresql` (macOS); or put the directory that holds \
         both programs in the PATH",
        list(looked)
    )]
    NotFound {
        /// The directories that were looked at, in this order.
        looked: Vec<PathBuf>,
        /// What came of asking the package manager.
        installing: String,
    },
    /// PostgreSQL refuses to run as root, and there is no other account.
    #[error("PostgreSQL does not run as root, and there is neither an account \"postgres\" nor \"nobody\"")]
    NoAccount,
    /// The system refused something.
    #[error("could not {doing}")]
    System {
        /// What was tried.
        doing: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A program of PostgreSQL's failed.
    #[error("{program} failed: {said}")]
    Program {
        /// Which.
        program: String,
        /// The end of what it said.
        said: String,
    },
    /// The server ended, or did not answer in time.
    #[error("PostgreSQL on port {port} {what}; its log ends with:\n{log}")]
    NoAnswer {
        /// The port that it was given.
        port: u16,
        /// What was seen.
        what: String,
        /// The end of the server's log.
        log: String,
    },
    /// The server answered with an error.
    #[error("PostgreSQL says {code}: {message}")]
    Server {
        /// The SQLSTATE.
        code: String,
        /// The message.
        message: String,
    },
    /// The server said something that the small client here does not understand.
    #[error("PostgreSQL sent {0}, which was not expected here")]
    Protocol(String),
}

impl ServiceError {
    /// The SQLSTATE, if the server answered with one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Server { code, .. } => Some(code),
            Self::NotFound { .. }
            | Self::NoAccount
            | Self::System { .. }
            | Self::Program { .. }
            | Self::NoAnswer { .. }
            | Self::Protocol(_) => None,
        }
    }
}

/// Names what was tried when the system refuses it.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, ServiceError>;
}

impl<T> Doing<T> for Result<T, std::io::Error> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, ServiceError> {
        self.map_err(|source| ServiceError::System { doing: what(), source })
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join("\n  ")
}

/// The last lines of a file, for an error message.
pub(crate) fn tail(path: &Path) -> String {
    let text = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
