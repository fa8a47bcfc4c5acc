//! Brokers to be tried: ours in this process, Apache Kafka as a process, or any that listens already.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hapax_broker::broker::Broker;
use hapax_broker::config::BrokerConfig;
use hapax_broker::server::{Listener, Server};
use hapax_broker::store::Address;
use hapax_broker::store::embedded::{Embedded, EmbeddedOptions};
use hapax_services::Kafka;

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
    Ours { _runtime: tokio::runtime::Runtime, _directory: tempfile::TempDir },
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
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let store = Embedded::open(directory.path(), EmbeddedOptions::default())?;
        let config = BrokerConfig { initial_rebalance_delay: Duration::ZERO, ..BrokerConfig::default() };
        let address = runtime.block_on(async {
            let listener = Listener::bind("127.0.0.1:0").await?;
            let address = listener.address();
            let broker = Broker::new(Arc::new(store), config);
            let known = Address { host: address.ip().to_string(), port: address.port() };
            broker.start(known).await?;
            let server: Server = listener.serve(broker);
            // It serves as long as the runtime lives.
            std::mem::forget(server);
            anyhow::Ok(address)
        })?;
        Ok(Self { name: "ours", address, _keeper: Keeper::Ours { _runtime: runtime, _directory: directory } })
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
