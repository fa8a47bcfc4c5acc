//! Brokers to be tried: ours in this process, Apache Kafka as a process, or any that listens already.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hapax_broker::broker::Broker;
use hapax_broker::config::BrokerConfig;
use hapax_broker::model::BrokerId;
use hapax_broker::server::Listener;
use hapax_broker::store::embedded::{Embedded, EmbeddedOptions};
use hapax_broker::store::postgres::{PostgresOptions, PostgresStore};
use hapax_broker::store::{Address, Store};
use hapax_services::{Kafka, Postgres};
use tokio::runtime::Runtime;

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Starts a broker over a store; it serves as long as the runtime lives.
async fn serve<S: Store>(store: S) -> Result<SocketAddr> {
    let listener = Listener::bind("127.0.0.1:0").await?;
    let address = listener.address();
    let config = BrokerConfig { initial_rebalance_delay: Duration::ZERO, ..BrokerConfig::default() };
    let broker = Broker::new(Arc::new(store), config);
    broker.start(Address { host: address.ip().to_string(), port: address.port() }).await?;
    // Dropping it would stop it.
    std::mem::forget(listener.serve(broker));
    Ok(address)
}

/// A broker that runs until this is dropped.
#[derive(Debug)]
pub struct Target {
    /// Its name, for people.
    pub name: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
    _keeper: Keeper,
}

/// What ends a broker by being dropped.
#[derive(Debug)]
enum Keeper {
    // In this order: the broker ends before what it stands on.
    Embedded { _runtime: Runtime, _directory: tempfile::TempDir },
    Postgres { _runtime: Runtime, _database: Postgres },
    Kafka { _server: Kafka },
    Somebody,
}

impl Target {
    /// Ours, on the embedded store in a directory of its own.
    ///
    /// # Errors
    /// If it does not start.
    pub fn ours() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let runtime = runtime()?;
        let store = Embedded::open(directory.path(), EmbeddedOptions::default())?;
        let address = runtime.block_on(serve(store))?;
        let keeper = Keeper::Embedded { _runtime: runtime, _directory: directory };
        Ok(Self { name: "ours, embedded", address, _keeper: keeper })
    }

    /// Ours, on a PostgreSQL of its own.
    ///
    /// # Errors
    /// If either does not start.
    pub fn ours_on_postgres() -> Result<Self> {
        let database = Postgres::builder().start()?;
        let runtime = runtime()?;
        let options = PostgresOptions { url: database.url("postgres").parse()?, broker: BrokerId(1) };
        let address = runtime.block_on(async { serve(PostgresStore::open(options).await?).await })?;
        let keeper = Keeper::Postgres { _runtime: runtime, _database: database };
        Ok(Self { name: "ours, on PostgreSQL", address, _keeper: keeper })
    }

    /// Apache Kafka, of the version that is named in `hapax-services`.
    ///
    /// # Errors
    /// If it cannot be had or does not start.
    pub fn kafka() -> Result<Self> {
        let server = Kafka::builder().start()?;
        let address = server.bootstrap().parse().context("an address of loopback")?;
        Ok(Self { name: "Apache Kafka", address, _keeper: Keeper::Kafka { _server: server } })
    }

    /// A broker that somebody else holds.
    #[must_use]
    pub const fn running(address: SocketAddr) -> Self {
        Self { name: "a broker", address, _keeper: Keeper::Somebody }
    }
}
