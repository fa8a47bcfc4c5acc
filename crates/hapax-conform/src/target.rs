//! Brokers to be tried: ours in this process or as the shipped program, Apache Kafka, or any that listens already.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use hapax_broker::broker::Broker;
use hapax_broker::config::BrokerConfig;
use hapax_broker::model::BrokerId;
use hapax_broker::server::Listener;
use hapax_broker::store::embedded::{Embedded, EmbeddedOptions};
use hapax_broker::store::postgres::{PostgresOptions, PostgresStore};
use hapax_broker::store::{Address, Store};
use hapax_services::{Kafka, Postgres};
use tokio::runtime::Runtime;

use crate::program::Program;

/// Our broker in this process; without [`Serving::stop`] it ends as if it was killed.
struct Serving {
    address: SocketAddr,
    runtime: Runtime,
    stop: Box<dyn FnOnce(&Runtime) + Send + Sync>,
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Serving").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Serving {
    fn embedded(directory: &tempfile::TempDir) -> Result<Self> {
        let runtime = runtime()?;
        let store = Embedded::open(directory.path(), EmbeddedOptions::default())?;
        Self::start(runtime, store)
    }

    fn on_postgres(database: &Postgres) -> Result<Self> {
        let runtime = runtime()?;
        let options = PostgresOptions { url: database.url("postgres").parse()?, broker: BrokerId(1) };
        let store = runtime.block_on(PostgresStore::open(options))?;
        Self::start(runtime, store)
    }

    fn start<S: Store>(runtime: Runtime, store: S) -> Result<Self> {
        let (address, server, broker) = runtime.block_on(async {
            let listener = Listener::bind("127.0.0.1:0").await?;
            let address = listener.address();
            // The records of many tests are years old: nothing may look for such while a test runs, however long that takes.
            let retention_interval = Duration::from_secs(24 * 3600);
            let initial_rebalance_delay = Duration::ZERO;
            let config = BrokerConfig { initial_rebalance_delay, retention_interval, ..BrokerConfig::default() };
            let broker = Broker::new(Arc::new(store), config);
            broker.start(Address { host: address.ip().to_string(), port: address.port() }).await?;
            anyhow::Ok((address, listener.serve(Arc::clone(&broker)), broker))
        })?;
        let stop = Box::new(move |runtime: &Runtime| {
            runtime.block_on(async {
                server.stop(Duration::ZERO).await;
                broker.stop().await;
            });
        });
        Ok(Self { address, runtime, stop })
    }

    /// Ends it as an operator would.
    fn stop(self) {
        (self.stop)(&self.runtime);
    }
}

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// A broker that runs until this is dropped.
#[derive(Debug)]
pub struct Target {
    /// Its name, for people.
    pub name: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
    keeper: Keeper,
}

/// What ends a broker by being dropped.
#[derive(Debug)]
enum Keeper {
    // In this order: the broker ends before what it stands on. Without one it is between two lives.
    Embedded(Option<Serving>, tempfile::TempDir),
    Postgres(Option<Serving>, Postgres),
    Program { _program: Program },
    Kafka(Kafka),
    Somebody,
}

impl Target {
    /// Ours, on the embedded store in a directory of its own.
    ///
    /// # Errors
    /// If it does not start.
    pub fn ours() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let serving = Serving::embedded(&directory)?;
        let address = serving.address;
        Ok(Self { name: "ours, embedded", address, keeper: Keeper::Embedded(Some(serving), directory) })
    }

    /// Ours, on a PostgreSQL of its own.
    ///
    /// # Errors
    /// If either does not start.
    pub fn ours_on_postgres() -> Result<Self> {
        let database = Postgres::builder().start()?;
        let serving = Serving::on_postgres(&database)?;
        let address = serving.address;
        Ok(Self { name: "ours, on PostgreSQL", address, keeper: Keeper::Postgres(Some(serving), database) })
    }

    /// Ours as it is shipped: the program `hapax` that was built with this one, on the embedded store.
    ///
    /// # Errors
    /// If there is no such program, or it does not start.
    pub fn program() -> Result<Self> {
        let program = Program::start(&Program::beside_this_one()?, "embedded", "rebalanceDelay: 0ms")?;
        let address = program.address();
        Ok(Self { name: "hapax broker", address, keeper: Keeper::Program { _program: program } })
    }

    /// Apache Kafka, of the version that is named in `hapax-services`.
    ///
    /// # Errors
    /// If it cannot be had or does not start.
    pub fn kafka() -> Result<Self> {
        let day = "86400000";
        let builder = Kafka::builder().setting("log.retention.check.interval.ms", day);
        let server = builder.setting("log.initial.task.delay.ms", day).start()?;
        let address = server.bootstrap().parse().context("an address of loopback")?;
        Ok(Self { name: "Apache Kafka", address, keeper: Keeper::Kafka(server) })
    }

    /// A broker that somebody else holds.
    #[must_use]
    pub const fn running(address: SocketAddr) -> Self {
        Self { name: "a broker", address, keeper: Keeper::Somebody }
    }

    /// Ends it and starts it again on what it has kept, perhaps on another port. Its partitions are then led under a later
    /// epoch.
    ///
    /// # Errors
    /// If it does not start again, or is not ours to stop.
    pub fn start_again(&mut self) -> Result<()> {
        match &mut self.keeper {
            Keeper::Embedded(serving, directory) => {
                serving.take().into_iter().for_each(Serving::stop);
                self.address = serving.insert(Serving::embedded(directory)?).address;
            }
            Keeper::Postgres(serving, database) => {
                serving.take().into_iter().for_each(Serving::stop);
                self.address = serving.insert(Serving::on_postgres(database)?).address;
            }
            Keeper::Kafka(server) => server.start_again()?,
            Keeper::Program { .. } | Keeper::Somebody => {
                bail!("only a broker in this process, or Apache Kafka, is started again")
            }
        }
        Ok(())
    }
}
