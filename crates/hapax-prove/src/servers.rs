//! Servers for cells: one of each kind for all, or one of its own for a cell that stops, fills or exhausts it.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use hapax_services::{Answer, Builder, Mariadb, MariadbBuilder, Postgres, Replication};

/// So few connections that a cell can take them all.
pub const NARROW: usize = 14;
/// Whom workers are in MariaDB: `root` could write to a server that is read-only.
pub const WORKER: &str = "worker";

/// Which server of its family a run's MySQL cells are told on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// MariaDB.
    #[default]
    Mariadb,
    /// MySQL's own server, which not every machine can have.
    Mysql,
}

/// The servers of a run. Those that cells have together are started when the first asks for one.
#[derive(Debug, Default)]
pub struct Servers {
    family: Family,
    postgres: Mutex<Option<Arc<Postgres>>>,
    mariadb: Mutex<Option<Arc<Mariadb>>>,
}

/// What is there already, or is started now.
fn shared<S>(place: &Mutex<Option<Arc<S>>>, start: impl FnOnce() -> anyhow::Result<S>) -> anyhow::Result<Arc<S>> {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = place.as_ref() {
        return Ok(Arc::clone(server));
    }
    let server = Arc::new(start()?);
    *place = Some(Arc::clone(&server));
    Ok(server)
}

impl Servers {
    /// Servers whose MySQL cells are told on `family`.
    #[must_use]
    pub fn with(family: Family) -> Self {
        Self { family, ..Self::default() }
    }

    /// MariaDB, or what stands in for it, as wished; started now.
    ///
    /// # Errors
    /// If there is none here.
    pub fn own_mariadb(&self, wish: Wish) -> anyhow::Result<Mariadb> {
        start_mariadb(&wish.mariadb(self.family))
    }

    /// A MariaDB server that follows `primary`, and has its accounts from it.
    ///
    /// # Errors
    /// If it cannot follow, or the run is on MySQL's own server, which has other words for that.
    pub fn replica_of(&self, primary: &Mariadb, replication: Replication) -> anyhow::Result<Mariadb> {
        anyhow::ensure!(self.family == Family::Mariadb, "a replica is only made of MariaDB");
        Ok(Wish::Plain.mariadb(self.family).start_replica(primary, replication)?)
    }

    /// The PostgreSQL server that cells have together.
    ///
    /// # Errors
    /// If there is no PostgreSQL here.
    pub fn postgres(&self) -> anyhow::Result<Arc<Postgres>> {
        shared(&self.postgres, || postgres().setting("max_connections", "200").start().context("no PostgreSQL"))
    }

    /// The MariaDB server that cells have together.
    ///
    /// # Errors
    /// If there is no MariaDB here.
    pub fn mariadb(&self) -> anyhow::Result<Arc<Mariadb>> {
        shared(&self.mariadb, || start_mariadb(&mariadb(self.family).setting("max_connections", "300")))
    }

    /// The versions of the servers that cells have together, where one was started.
    #[must_use]
    pub fn versions(&self) -> [Option<String>; 2] {
        let postgres = self.postgres.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mariadb = self.mariadb.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let told = |answer: Answer| answer.value().map(str::to_owned);
        [
            postgres.and_then(|server| server.query("SHOW server_version").ok().and_then(told)),
            mariadb.and_then(|server| server.query("SELECT version()").ok().and_then(told)),
        ]
    }
}

/// A PostgreSQL server as cells want it. Without fsync: a server that is killed leaves what it wrote to the system, and no
/// cell cuts the machine's power.
fn postgres() -> Builder {
    Postgres::builder()
        .setting("fsync", "off")
        .setting("deadlock_timeout", "500ms")
        .setting("log_lock_waits", "on")
        .setting("shared_buffers", "32MB")
}

/// The same of MariaDB.
fn mariadb(family: Family) -> MariadbBuilder {
    let builder = match family {
        Family::Mariadb => Mariadb::builder().setting("innodb_log_file_size", "24M"),
        Family::Mysql => Mariadb::mysql().setting("innodb_redo_log_capacity", "24M"),
    };
    builder.without_sync().setting("innodb_buffer_pool_size", "48M").setting("innodb_print_all_deadlocks", "1")
}

fn start_mariadb(builder: &MariadbBuilder) -> anyhow::Result<Mariadb> {
    let server = builder.start().context("no MariaDB")?;
    server.query(&format!("CREATE USER {WORKER}@'127.0.0.1'; GRANT PROCESS ON *.* TO {WORKER}@'127.0.0.1'"))?;
    Ok(server)
}

/// What a server of a cell's own is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Like the others.
    Plain,
    /// It can have a standby, or a replica.
    Primary,
    /// It has [`NARROW`] connections, all of which anybody may take.
    Narrow,
    /// Its files can be limited: a segment of its log is much smaller than the table will be.
    Limited,
}

impl Wish {
    /// PostgreSQL as wished.
    #[must_use]
    pub fn postgres(self) -> Builder {
        match self {
            Self::Plain => postgres(),
            Self::Primary => postgres().setting("wal_level", "replica").setting("max_connections", "50"),
            Self::Narrow => postgres()
                .setting("max_connections", &NARROW.to_string())
                .setting("superuser_reserved_connections", "0")
                .setting("max_wal_senders", "0")
                .setting("autovacuum", "off"),
            Self::Limited => {
                postgres().initdb("--wal-segsize=1").setting("autovacuum", "off").setting("max_wal_size", "64MB")
            }
        }
    }

    /// MariaDB as wished.
    fn mariadb(self, family: Family) -> MariadbBuilder {
        match self {
            Self::Plain | Self::Limited => mariadb(family),
            Self::Primary => mariadb(family).primary(),
            Self::Narrow => mariadb(family).setting("max_connections", &NARROW.to_string()),
        }
    }
}

/// What a cell needs of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// One or two databases.
    Databases,
    /// A server of its own for its target.
    Own(Wish),
}
