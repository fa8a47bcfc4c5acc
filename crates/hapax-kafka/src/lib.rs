//! A small Kafka client: for `hapax topic`, for tests, and for the prover, who judges the broker with it.
//!
//! From the bottom: [`Connection`] sends any request in any version; [`Client`] finds leaders and coordinators and connects
//! anew; [`Producer`] and [`Reader`] are what most want. [`batch`] and [`records`] write and read batches byte by byte.
//! Invariant: shares no code with the broker, so that a mistake of the one is not also the other's.

#![deny(missing_docs)]

/// The codec of Kafka's messages, as [`Client::call`] takes them.
pub use kafka_protocol;

pub mod admin;
pub mod batch;
mod cluster;
mod compression;
mod connection;
mod error;
mod group;
mod layout;
mod producer;
mod reader;
pub mod records;

pub use cluster::Client;
pub use connection::{Connection, Options, Ticket};
pub use error::{ClientError, Outcome};
pub use group::{Joined, Membership};
pub use producer::{Acks, Delivery, Identity, Patience, Producer, delivery, produce_request};
pub use reader::{At, Fetched, Reader};

#[cfg(test)]
mod client_tests;
