//! Brokers to be tried: Apache Kafka as a process, or any that listens already.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use hapax_services::Kafka;

/// A broker that runs until this is dropped.
#[derive(Debug)]
pub struct Target {
    /// Its name, for people and in topics.
    pub name: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
    _kafka: Option<Kafka>,
}

impl Target {
    /// Apache Kafka, of the version that is named in `hapax-services`.
    ///
    /// # Errors
    /// If it cannot be had or does not start.
    pub fn kafka() -> Result<Self> {
        let server = Kafka::builder().setting("auto.create.topics.enable", "true").start()?;
        let address = server.bootstrap().parse().context("an address of loopback")?;
        Ok(Self { name: "kafka", address, _kafka: Some(server) })
    }

    /// A broker that somebody else holds.
    #[must_use]
    pub const fn running(name: &'static str, address: SocketAddr) -> Self {
        Self { name, address, _kafka: None }
    }
}
