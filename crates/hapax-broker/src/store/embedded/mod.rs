//! The store in one file: SQLite, one writing thread, two reading ones.
//!
//! One process at a time: the directory is locked while the store is open. Whatever waits is written in one commit, and
//! an answer is given when that commit is on the disk. After an I/O error on a commit nothing more is written.

mod failure;
mod groups;
mod log;
mod open;
mod producers;
mod reader;
mod rows;
mod schema;
mod topics;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use failure::{BROKEN, FULL};
pub use open::OpenError;

use crate::model::{BrokerId, LiveBroker, PartitionId, Timestamp};
use crate::store::{Address, Brokers, StoreError};
use reader::Readers;
use writer::Writer;

/// The file inside the directory.
pub const FILE: &str = "broker.sqlite";

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The number by which clients know the broker.
    pub broker_id: BrokerId,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self { broker_id: BrokerId(1) }
    }
}

/// A store in one file. Dropping it ends its threads, after what was already asked.
#[derive(Debug)]
pub struct Embedded {
    // In this order: the threads end, and with them the connections, before the directory is given back.
    writer: Writer,
    readers: Readers,
    cluster_id: String,
    me: BrokerId,
    address: Mutex<Option<Address>>,
    directory: PathBuf,
    _lock: File,
}

impl Embedded {
    /// Opens the store in `directory`, making both where they are missing.
    ///
    /// Blocks for a moment: what an earlier process left in the write-ahead log is recovered here.
    ///
    /// # Errors
    /// [`OpenError`], with a code each.
    pub fn open(directory: &Path, options: EmbeddedOptions) -> Result<Self, OpenError> {
        let opened = open::open(directory)?;
        let health = failure::Health::default();
        let threads = |source| OpenError::Directory { directory: directory.to_owned(), source };
        let readers = Readers::start(opened.readers, health.clone()).map_err(threads)?;
        let writer = Writer::start(opened.writer, health).map_err(threads)?;
        Ok(Self {
            writer,
            readers,
            cluster_id: opened.cluster_id,
            me: options.broker_id,
            address: Mutex::new(None),
            directory: directory.to_owned(),
            _lock: opened.lock,
        })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn address(&self) -> std::sync::MutexGuard<'_, Option<Address>> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Brokers for Embedded {
    fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    fn me(&self) -> BrokerId {
        self.me
    }

    async fn join(&self, address: Address) -> Result<(), StoreError> {
        *self.address() = Some(address);
        Ok(())
    }

    async fn renew(&self) -> Result<(), StoreError> {
        // Whether the store still works is all there is to renew.
        self.readers.call(|_| Ok(())).await
    }

    fn lease(&self) -> Option<Duration> {
        None
    }

    async fn brokers(&self) -> Result<Vec<LiveBroker>, StoreError> {
        // Asked again and again by who leads: so a store that broke is noticed though nothing is written.
        self.readers.check()?;
        let address = self.address().clone();
        Ok(address.map(|Address { host, port }| LiveBroker { id: self.me, host, port }).into_iter().collect())
    }

    async fn leaders(&self) -> Result<Vec<(PartitionId, Option<BrokerId>, i32)>, StoreError> {
        self.readers
            .call(|connection| {
                let sql = "SELECT id, leader, leader_epoch FROM partitions ORDER BY id";
                let mut statement = connection.prepare_cached(sql)?;
                let found = statement.query_map([], |row| {
                    Ok((PartitionId(row.get(0)?), row.get::<_, Option<i32>>(1)?.map(BrokerId), row.get(2)?))
                })?;
                Ok(found.collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.writer
            .call(|connection| {
                connection.execute("UPDATE partitions SET leader = NULL WHERE leader IS NOT NULL", [])?;
                Ok(())
            })
            .await?;
        *self.address() = None;
        Ok(())
    }
}

/// Milliseconds since 1970.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::try_from(since.as_millis()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
#[path = "embedded_tests.rs"]
mod tests;
