//! Which brokers share the store, and who leads.

use std::future::Future;
use std::time::Duration;

use crate::model::{BrokerId, LiveBroker, PartitionId};
use crate::store::StoreError;

/// Where clients reach us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The host that clients connect to.
    pub host: String,
    /// The port that clients connect to.
    pub port: u16,
}

/// The brokers of one store. The embedded store has exactly one, which leads everything while it holds the directory.
pub trait Brokers {
    /// The id of the cluster: made with the store, the same for all its brokers.
    fn cluster_id(&self) -> &str;

    /// Our own number.
    fn me(&self) -> BrokerId;

    /// Makes us known, and begins the lease.
    fn join(&self, address: Address) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Renews the lease. [`StoreError::Fenced`]: another process has our number; stop. [`StoreError::InDoubt`]: we were
    /// gone for a moment, and the store may be another one now; lead everything again.
    fn renew(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// How long a renewal lasts; `None`: for ever, because nobody else can lead.
    fn lease(&self) -> Option<Duration>;

    /// Whether the session that shows others that we live is there. Without it another may lead before the lease is over.
    fn attached(&self) -> bool {
        true
    }

    /// Who lives now, we among them, by number.
    fn brokers(&self) -> impl Future<Output = Result<Vec<LiveBroker>, StoreError>> + Send;

    /// Who leads each partition, and under which epoch.
    fn leaders(&self) -> impl Future<Output = Result<Vec<(PartitionId, Option<BrokerId>, i32)>, StoreError>> + Send;

    /// Stops leading everything and stays: another may lead at once.
    fn give_back(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// The age of the oldest transaction that keeps the database from removing dead rows; `None`: there is none, or the
    /// store knows no such thing. An hour of it makes every update slower.
    fn oldest_transaction(&self) -> impl Future<Output = Result<Option<Duration>, StoreError>> + Send {
        async { Ok(None) }
    }

    /// Gives everything back, so that another need not wait for the lease to end.
    fn leave(&self) -> impl Future<Output = Result<(), StoreError>> + Send;
}
