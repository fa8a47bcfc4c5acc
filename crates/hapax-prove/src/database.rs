//! A database of a cell: a file, or one of a server's. What a user does to his own database is done here.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use hapax_services::{Answer, Client, MysqlClient, ServiceError};

use crate::servers::WORKER;

/// Whatever a cell does, its judge must not wait for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whose words a database understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mysql,
}

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file.
    File(PathBuf),
    /// A database of a PostgreSQL server on loopback.
    Postgres {
        /// The server's port.
        port: u16,
        /// The database's name.
        name: String,
    },
    /// A database of a MariaDB server on loopback.
    Mysql {
        /// The server's port.
        port: u16,
        /// The database's name.
        name: String,
    },
}

/// A connection to a server, by a client that the program under test does not use.
#[derive(Debug)]
pub enum Line {
    /// To PostgreSQL.
    Postgres(Client),
    /// To MariaDB.
    Mysql(MysqlClient),
}

impl Line {
    /// Sends one or more statements, and reads what they answer.
    ///
    /// # Errors
    /// What the server says, or a connection that broke.
    pub fn query(&mut self, sql: &str) -> Result<Answer, ServiceError> {
        match self {
            Self::Postgres(client) => client.query(sql),
            Self::Mysql(client) => client.query(sql),
        }
    }
}

impl Database {
    /// Whose words it understands.
    #[must_use]
    pub const fn engine(&self) -> Engine {
        match self {
            Self::File(_) => Engine::Sqlite,
            Self::Postgres { .. } => Engine::Postgres,
            Self::Mysql { .. } => Engine::Mysql,
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
                connection.busy_timeout(PATIENCE)?;
                connection.execute_batch(sql).with_context(|| format!("in {}: {sql}", path.display()))
            }
            Self::Postgres { .. } | Self::Mysql { .. } => self.ask(sql).map(drop),
        }
    }

    /// Runs statements on a server.
    ///
    /// # Errors
    /// What the server says, or that there is none.
    pub fn ask(&self, sql: &str) -> anyhow::Result<Answer> {
        self.line()?.query(sql).with_context(|| format!("in {self}: {sql}"))
    }

    /// The first value that a server answers, as a number.
    ///
    /// # Errors
    /// What the server says, or that it is no number.
    pub fn number(&self, sql: &str) -> anyhow::Result<u64> {
        let answer = self.ask(sql)?;
        answer.value().and_then(|count| count.parse().ok()).with_context(|| format!("no number for {sql}"))
    }

    /// A connection to a server.
    ///
    /// # Errors
    /// What the server says, or that there is none.
    pub fn line(&self) -> anyhow::Result<Line> {
        let cannot = || format!("cannot connect to {self}");
        match self {
            Self::File(path) => anyhow::bail!("{} is a file, and no server", path.display()),
            Self::Postgres { port, name } => {
                let client = Client::connect(*port, name).with_context(cannot)?;
                client.limit(PATIENCE)?;
                Ok(Line::Postgres(client))
            }
            Self::Mysql { port, name } => {
                let client = MysqlClient::connect(*port, name).with_context(cannot)?;
                client.limit(PATIENCE)?;
                Ok(Line::Mysql(client))
            }
        }
    }

    /// How many sessions of it wait for a lock; none in a file.
    ///
    /// # Errors
    /// What the server says.
    pub fn waiting(&self) -> anyhow::Result<u64> {
        match self.engine() {
            Engine::Sqlite => Ok(0),
            Engine::Postgres => self.number(
                "SELECT count(*) FROM pg_stat_activity \
                 WHERE datname = current_database() AND wait_event_type = 'Lock'",
            ),
            // What InnoDB says of single transactions is old for whoever asks often.
            Engine::Mysql => {
                let mut line = self.line()?;
                let status = line.query("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")?;
                let somebody = status.rows.first().and_then(|row| row.get(1)?.as_deref()) != Some("0");
                let busy = line.query(&format!(
                    "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND user = '{WORKER}' \
                     AND command IN ('Query', 'Execute') AND time > 0"
                ))?;
                let busy = busy.value().and_then(|count| count.parse().ok()).unwrap_or(0);
                Ok(if somebody { busy } else { 0 })
            }
        }
    }
}

impl std::fmt::Display for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Postgres { port, name } | Self::Mysql { port, name } => write!(f, "database {name} on port {port}"),
        }
    }
}
