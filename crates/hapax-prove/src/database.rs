//! A database of a cell: a file, or one of a server's. What a user does to his own database is done here.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use hapax_services::{Answer, Client};

/// Whose words a database understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file.
    File(PathBuf),
    /// A database of a PostgreSQL server on loopback.
    Server {
        /// The server's port.
        port: u16,
        /// The database's name.
        name: String,
    },
}

impl Database {
    /// Whose words it understands.
    #[must_use]
    pub const fn engine(&self) -> Engine {
        match self {
            Self::File(_) => Engine::Sqlite,
            Self::Server { .. } => Engine::Postgres,
        }
    }

    /// Runs statements that answer nothing.
    ///
    /// # Errors
    /// What the database says.
    pub fn execute(&self, sql: &str) -> anyhow::Result<()> {
        match self {
            Self::File(path) => {
                let connection = rusqlite::Connection::open(path)?;
                connection.busy_timeout(Duration::from_secs(5))?;
                connection.execute_batch(sql).with_context(|| format!("in {}: {sql}", path.display()))
            }
            Self::Server { .. } => self.ask(sql).map(drop),
        }
    }

    /// Runs statements on a server.
    ///
    /// # Errors
    /// What the server says, or that there is none.
    pub fn ask(&self, sql: &str) -> anyhow::Result<Answer> {
        self.client()?.query(sql).with_context(|| format!("in {self}: {sql}"))
    }

    /// A connection to a server.
    ///
    /// # Errors
    /// What the server says, or that there is none.
    pub fn client(&self) -> anyhow::Result<Client> {
        match self {
            Self::File(path) => anyhow::bail!("{} is a file, and no server", path.display()),
            Self::Server { port, name } => {
                let client = Client::connect(*port, name).with_context(|| format!("cannot connect to {self}"))?;
                // Whatever a cell does, its judge must not wait for ever.
                client.limit(Duration::from_secs(30))?;
                Ok(client)
            }
        }
    }

    /// How many sessions of it wait for a lock; none in a file.
    ///
    /// # Errors
    /// What the server says.
    pub fn waiting(&self) -> anyhow::Result<u64> {
        match self {
            Self::File(_) => Ok(0),
            Self::Server { .. } => {
                let sql = "SELECT count(*) FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
                let answer = self.ask(sql)?;
                Ok(answer.value().and_then(|count| count.parse().ok()).unwrap_or_default())
            }
        }
    }
}

impl std::fmt::Display for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server { port, name } => write!(f, "database {name} on port {port}"),
        }
    }
}
