//! What is durable. Five small traits, two stores (`embedded`, `postgres`), one set of contract tests.
//!
//! Rules of Kafka are not here: a store compares, swaps, fences and keeps. What a call has answered with `Ok` survives a
//! crash and power loss; what it has answered with an error was not done, unless the error says [`StoreError::InDoubt`].

mod brokers;
#[cfg(test)]
pub(crate) mod contract;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
mod groups;
mod log;
#[cfg(feature = "postgres")]
pub mod postgres;
mod producers;
#[cfg(any(feature = "embedded", feature = "postgres"))]
pub(crate) mod ring;
mod topics;

pub use brokers::{Address, Brokers};
pub use error::StoreError;
pub use groups::{CommittedOffset, GroupFence, GroupRow, Groups, GroupsLed};
pub use log::{Append, Appended, LedPartition, Log, Replacement, Row, RowInfo, StoredRow};
pub use producers::{ProducerRow, ProducerSnapshot, ProducerState, Producers, RingEntry, TransactionalRow};
pub use topics::{NewTopic, Topics};

/// All that a broker needs of a store.
pub trait Store: Topics + Log + Producers + Groups + Brokers + Send + Sync + 'static {}

impl<S: Topics + Log + Producers + Groups + Brokers + Send + Sync + 'static> Store for S {}
