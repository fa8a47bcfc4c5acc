//! What can go wrong with a server of ours, as facts.

use std::path::{Path, PathBuf};

use crate::product::Product;

/// Why a server could not be had, or did not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No such server on this machine, and none could be installed.
    #[error(
        "no {} server was found. Looked for {} in:\n  {}\n{installing}\nInstall it and run this again: {}",
        product.name(), product.parts(), list(looked), product.advice()
    )]
    NotFound {
        /// Whose.
        product: Product,
        /// The directories that were looked at, in this order.
        looked: Vec<PathBuf>,
        /// What came of asking the package manager.
        installing: String,
    },
    /// A package that is neither in the cache nor to be fetched.
    #[error(
        "{what} could not be had: {why}\nIt is fetched once by `{by}` and kept. Install {needs}, give it its packages, and run this again."
    )]
    NotFetched {
        /// What is missing.
        what: &'static str,
        /// The program that fetches it.
        by: &'static str,
        /// What has to be installed for that.
        needs: &'static str,
        /// What it said.
        why: String,
    },
    /// A server refuses to run as root, and there is no other account.
    #[error("{} does not run as root, and there is no other account: tried {}", product.name(), product.accounts().join(", "))]
    NoAccount {
        /// Whose.
        product: Product,
    },
    /// The system refused something.
    #[error("could not {doing}")]
    System {
        /// What was tried.
        doing: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A program of a server's failed.
    #[error("{program} failed: {said}")]
    Program {
        /// Which.
        program: String,
        /// The end of what it said.
        said: String,
    },
    /// The server ended, or did not answer in time.
    #[error("{} on port {port} {what}; its log ends with:\n{log}", product.name())]
    NoAnswer {
        /// Whose.
        product: Product,
        /// The port that it was given.
        port: u16,
        /// What was seen.
        what: String,
        /// The end of the server's log.
        log: String,
    },
    /// The server answered with an error.
    #[error("{} says {code}: {message}", product.name())]
    Server {
        /// Whose.
        product: Product,
        /// PostgreSQL's SQLSTATE, or MariaDB's error number.
        code: String,
        /// The message.
        message: String,
    },
    /// The server said something that the small client here does not understand.
    #[error("the server sent {0}, which was not expected here")]
    Protocol(String),
}

impl ServiceError {
    /// The SQLSTATE or error number, if the server answered with one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Server { code, .. } => Some(code),
            Self::NotFound { .. }
            | Self::NotFetched { .. }
            | Self::NoAccount { .. }
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
