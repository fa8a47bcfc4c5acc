//! The store on PostgreSQL: schema `kafka`, one statement per commit, leases and epochs for several brokers.
//!
//! Reads and writes: seven direct sessions, each for one kind of work, so that no commit waits behind a cold read.
//! Invariant: every write is one autocommit statement; a lost answer is `InDoubt`, never guessed.
//! Not here: rules of Kafka (`rules`), when to lead (`lead`).

mod brokers;
mod groups;
mod link;
mod log;
mod log_upkeep;
mod open_error;
mod producers;
mod schema;
mod text;
mod topics;

#[cfg(test)]
mod look_tests;
#[cfg(test)]
pub(crate) mod test_database;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hapax_sql::postgres::{Limits, PostgresUrl};
use uuid::Uuid;

use crate::model::{BrokerId, PartitionId};
use brokers::Keeper;
use link::Link;
pub use open_error::OpenError;

/// How long a renewal of the lease lasts.
const LEASE: Duration = Duration::from_secs(5);
/// A row that a user's open transaction holds must not keep all groups waiting.
const GROUP_LOCK: Duration = Duration::from_secs(1);

/// What a store on PostgreSQL is told.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The database.
    pub url: PostgresUrl,
    /// The number by which clients know this broker; each broker of a database has its own.
    pub broker: BrokerId,
}

/// The store on PostgreSQL.
#[derive(Debug)]
pub struct PostgresStore {
    me: BrokerId,
    incarnation: Uuid,
    cluster_id: String,
    /// Appends, and nothing that could make them wait.
    writer: Link,
    /// In which of the writer's sessions each partition was led. After a loss the server may be another one, with less:
    /// who appends on without leading again would leave a hole.
    led_in: Mutex<HashMap<PartitionId, i32>>,
    /// Cold reads, in turn.
    readers: [Link; 2],
    next_reader: AtomicUsize,
    /// Retention, compaction, snapshots, the remains of removed topics.
    side: Arc<Link>,
    /// Topics, producers, group offsets as they are read.
    desk: Link,
    /// Writes of groups.
    groups: Link,
    /// The session that is our life: its lock is our number, its renewals our lease.
    keeper: Keeper,
}

impl PostgresStore {
    /// Looks at the server, makes the schema if it is not there, and opens the store. Nothing is led yet.
    ///
    /// # Errors
    /// If the server cannot be reached, is too old, loses what it confirmed, or may not be written to.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let PostgresOptions { url, broker } = options;
        let limits = limits();
        let cluster_id = schema::prepare(&url, &limits).await?;
        let link = || Link::new(url.clone(), limits.clone());
        let store = Self {
            me: broker,
            incarnation: Uuid::new_v4(),
            cluster_id,
            writer: link(),
            led_in: Mutex::default(),
            readers: [link(), link()],
            next_reader: AtomicUsize::new(0),
            side: Arc::new(link()),
            desk: link(),
            groups: Link::new(url.clone(), Limits { lock: GROUP_LOCK, ..limits.clone() }),
            keeper: Keeper::new(link().lazy_commit(), broker),
        };
        // What a removed topic left behind when its broker was killed.
        drop(tokio::spawn(topics::sweep_all(Arc::clone(&store.side))));
        Ok(store)
    }

    /// The statements that make the schema, for those whose broker may not: to be run by a role that may, in one
    /// transaction.
    #[must_use]
    pub fn schema_sql() -> String {
        format!("BEGIN;\nCREATE SCHEMA kafka;\n{}COMMIT;\n", schema::SCHEMA)
    }

    /// The server's process that writes, for tests that end it.
    #[cfg(test)]
    async fn writer_pid(&self) -> i32 {
        self.writer.session().await.expect("a session").backend_pid()
    }
}

fn limits() -> Limits {
    Limits {
        idle_in_transaction: Duration::from_secs(5),
        statement: Duration::from_secs(60),
        lock: Duration::from_secs(5),
        connect: Duration::from_secs(5),
    }
}
