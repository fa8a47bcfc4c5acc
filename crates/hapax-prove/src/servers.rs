//! PostgreSQL for cells: one server for all, or one of its own for a cell that stops, fills or exhausts it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use hapax_services::{Builder, Postgres};

use crate::setting::Stack;

/// The servers of a run. The one that cells have together is started when the first asks for it.
#[derive(Debug, Default)]
pub struct Servers {
    shared: Mutex<Option<Arc<Postgres>>>,
}

impl Servers {
    /// The server that cells have together.
    ///
    /// # Errors
    /// If there is no PostgreSQL here.
    pub fn shared(&self) -> anyhow::Result<Arc<Postgres>> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.as_ref() {
            return Ok(Arc::clone(server));
        }
        let server = Arc::new(builder().setting("max_connections", "200").start().context("no PostgreSQL")?);
        *shared = Some(Arc::clone(&server));
        Ok(server)
    }
}

impl Servers {
    /// The version of the server that cells have together, if one was started.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        let server = self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let answer = server.query("SHOW server_version").ok()?;
        answer.value().map(str::to_owned)
    }
}

/// A server as cells want it. Without fsync: a server that is killed leaves what it wrote to the system, and no cell cuts
/// the machine's power.
#[must_use]
pub fn builder() -> Builder {
    Postgres::builder()
        .setting("fsync", "off")
        .setting("deadlock_timeout", "500ms")
        .setting("log_lock_waits", "on")
        .setting("shared_buffers", "32MB")
}

/// What a cell needs of a server.
#[derive(Debug, Clone)]
pub enum Need {
    /// One or two databases.
    Databases,
    /// A server of its own.
    Own(Box<Builder>),
}

/// The server of a cell.
#[derive(Debug)]
pub enum Server {
    /// It has databases on a server that others use, too.
    Shared(Arc<Postgres>),
    /// It has one of its own.
    Own(Box<Postgres>),
}

impl Server {
    /// The server.
    #[must_use]
    pub fn postgres(&self) -> &Postgres {
        match self {
            Self::Shared(server) => server,
            Self::Own(server) => server,
        }
    }

    /// The server, to stop and start it.
    ///
    /// # Errors
    /// If others use it, too.
    pub fn own(&mut self) -> anyhow::Result<&mut Postgres> {
        match self {
            Self::Shared(_) => anyhow::bail!("this cell has no server of its own"),
            Self::Own(server) => Ok(server),
        }
    }
}

/// A cell's server and the names of its databases, which go with it.
#[derive(Debug)]
pub struct Lodging {
    /// The server.
    pub server: Server,
    /// The target's database.
    pub target: String,
    /// The state's database, for whom the state is not in a file.
    pub state: Option<String>,
}

impl Lodging {
    /// Makes the databases of `stack`.
    ///
    /// # Errors
    /// If there is no server, or it says no.
    pub fn take(servers: &Servers, need: &Need, stack: Stack) -> anyhow::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let server = match need {
            Need::Databases => Server::Shared(servers.shared()?),
            Need::Own(builder) => Server::Own(Box::new(builder.start().context("no PostgreSQL")?)),
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let state = (stack == Stack::PostgresOnly).then(|| format!("state_{number}"));
        let lodging = Self { server, target: format!("target_{number}"), state };
        for name in lodging.databases() {
            lodging.server.postgres().query(&format!("CREATE DATABASE {name}"))?;
        }
        Ok(lodging)
    }
}

impl Lodging {
    fn databases(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.target).chain(&self.state)
    }
}

impl Drop for Lodging {
    fn drop(&mut self) {
        if let Server::Shared(server) = &self.server {
            for name in self.databases() {
                // What cannot be dropped goes with the server.
                drop(server.query(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")));
            }
        }
    }
}
