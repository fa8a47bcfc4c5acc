//! Where a cell lives: its server and its databases, which go with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use hapax_services::{Answer, Mariadb, Postgres, ServiceError, Stop};

use crate::database::{Database, Engine};
use crate::servers::{Need, Servers, WORKER};
use crate::setting::Stack;

/// A server that a cell has alone or with others.
#[derive(Debug)]
pub enum Held<S> {
    /// It has databases on a server that others use, too.
    Shared(Arc<S>),
    /// It has one of its own.
    Own(Box<S>),
}

impl<S> Held<S> {
    fn get(&self) -> &S {
        match self {
            Self::Shared(server) => server,
            Self::Own(server) => server,
        }
    }

    /// The server, to stop and start it.
    ///
    /// # Errors
    /// If others use it, too.
    pub fn own(&mut self) -> anyhow::Result<&mut S> {
        match self {
            Self::Shared(_) => anyhow::bail!("this cell has no server of its own"),
            Self::Own(server) => Ok(server),
        }
    }
}

/// The server of a cell.
#[derive(Debug)]
pub enum Server {
    /// PostgreSQL.
    Postgres(Held<Postgres>),
    /// MariaDB.
    Mariadb(Held<Mariadb>),
}

impl Server {
    fn take(servers: &Servers, need: Need, engine: Engine) -> anyhow::Result<Self> {
        Ok(match (engine, need) {
            (Engine::Sqlite, _) => anyhow::bail!("a file has no server"),
            (Engine::Postgres, Need::Databases) => Self::Postgres(Held::Shared(servers.postgres()?)),
            (Engine::Postgres, Need::Own(wish)) => {
                Self::Postgres(Held::Own(Box::new(wish.postgres().start().context("no PostgreSQL")?)))
            }
            (Engine::Mysql, Need::Databases) => Self::Mariadb(Held::Shared(servers.mariadb()?)),
            (Engine::Mysql, Need::Own(wish)) => Self::Mariadb(Held::Own(Box::new(servers.own_mariadb(wish)?))),
        })
    }

    /// Makes a database and whatever workers need to use it.
    fn make(&self, name: &str) -> Result<Answer, ServiceError> {
        match self {
            Self::Postgres(server) => server.get().query(&format!("CREATE DATABASE {name}")),
            Self::Mariadb(server) => {
                server.get().query(&format!("CREATE DATABASE {name}; GRANT ALL ON {name}.* TO {WORKER}@'127.0.0.1'"))
            }
        }
    }

    fn drop_database(&self, name: &str) {
        // What cannot be dropped goes with the server.
        match self {
            Self::Postgres(Held::Shared(server)) => {
                drop(server.query(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")));
            }
            Self::Mariadb(Held::Shared(server)) => {
                let waits = "SET lock_wait_timeout = 5";
                drop(server.query(&format!("{waits}; DROP DATABASE IF EXISTS {name}")));
            }
            Self::Postgres(Held::Own(_)) | Self::Mariadb(Held::Own(_)) => {}
        }
    }

    /// One of its databases.
    #[must_use]
    pub fn database(&self, name: &str) -> Database {
        let name = name.to_owned();
        match self {
            Self::Postgres(server) => Database::Postgres { port: server.get().port(), name },
            Self::Mariadb(server) => Database::Mysql { port: server.get().port(), name },
        }
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Self::Postgres(server) => server.get().port(),
            Self::Mariadb(server) => server.get().port(),
        }
    }

    /// Stops it.
    ///
    /// # Errors
    /// If others use it, too.
    pub fn stop(&mut self, stop: Stop) -> anyhow::Result<()> {
        match self {
            Self::Postgres(server) => server.own()?.stop(stop),
            Self::Mariadb(server) => server.own()?.stop(stop),
        }
        Ok(())
    }

    /// Starts it again on the same port.
    ///
    /// # Errors
    /// If others use it, too, or it does not start.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Postgres(server) => server.own()?.start_again()?,
            Self::Mariadb(server) => server.own()?.start_again()?,
        }
        Ok(())
    }

    /// Its data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        match self {
            Self::Postgres(server) => server.get().data_dir(),
            Self::Mariadb(server) => server.get().data_dir().to_owned(),
        }
    }

    /// The directory that holds its socket and its log.
    #[must_use]
    pub fn directory(&self) -> &Path {
        match self {
            Self::Postgres(server) => server.get().socket_dir(),
            Self::Mariadb(server) => server.get().directory(),
        }
    }

    /// Gives a file or folder to the account that it runs under.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn give(&self, path: &Path) -> Result<(), ServiceError> {
        match self {
            Self::Postgres(server) => server.get().give(path),
            Self::Mariadb(server) => server.get().give(path),
        }
    }

    /// A command that runs under its account.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        match self {
            Self::Postgres(server) => server.get().command(program),
            Self::Mariadb(server) => server.get().command(program),
        }
    }

    /// The server, if it is PostgreSQL.
    ///
    /// # Errors
    /// If it is not.
    pub fn postgres(&self) -> anyhow::Result<&Postgres> {
        match self {
            Self::Postgres(server) => Ok(server.get()),
            Self::Mariadb(_) => anyhow::bail!("this cell's server is MariaDB"),
        }
    }

    /// The server, if it is PostgreSQL and nobody else's.
    ///
    /// # Errors
    /// If it is not.
    pub fn own_postgres(&mut self) -> anyhow::Result<&mut Postgres> {
        match self {
            Self::Postgres(server) => server.own(),
            Self::Mariadb(_) => anyhow::bail!("this cell's server is MariaDB"),
        }
    }

    /// The server, if it is MariaDB and nobody else's.
    ///
    /// # Errors
    /// If it is not.
    pub fn own_mariadb(&mut self) -> anyhow::Result<&mut Mariadb> {
        match self {
            Self::Mariadb(server) => server.own(),
            Self::Postgres(_) => anyhow::bail!("this cell's server is PostgreSQL"),
        }
    }
}

/// A cell's servers and the names of its databases, which go with it.
#[derive(Debug)]
pub struct Lodging {
    /// The target's server.
    pub server: Server,
    /// The target's database.
    pub target: String,
    /// The state's server, if it is another one.
    state_server: Option<Server>,
    /// The state's database, for whom the state is not in a file.
    state: Option<String>,
}

impl Lodging {
    /// Makes the databases of `stack`.
    ///
    /// # Errors
    /// If there is no server, or it says no.
    pub fn take(servers: &Servers, need: Need, stack: Stack) -> anyhow::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let server = Server::take(servers, need, stack.engine())?;
        let apart = stack.has_state_server() && stack.engine() != Engine::Postgres;
        let state_server = apart.then(|| Server::take(servers, Need::Databases, Engine::Postgres)).transpose()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let state = stack.has_state_server().then(|| format!("state_{number}"));
        let lodging = Self { server, target: format!("target_{number}"), state_server, state };
        for (server, name) in lodging.databases() {
            server.make(name)?;
        }
        Ok(lodging)
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> Database {
        self.server.database(&self.target)
    }

    /// The state store, if it is no file.
    #[must_use]
    pub fn state(&self) -> Option<Database> {
        self.databases().nth(1).map(|(server, name)| server.database(name))
    }

    fn databases(&self) -> impl Iterator<Item = (&Server, &String)> {
        let state_server = self.state_server.as_ref().unwrap_or(&self.server);
        std::iter::once((&self.server, &self.target)).chain(self.state.iter().map(move |name| (state_server, name)))
    }
}

impl Drop for Lodging {
    fn drop(&mut self) {
        for (server, name) in self.databases() {
            server.drop_database(name);
        }
    }
}
