//! A log that Kafka clients take for Kafka, kept in one file or in PostgreSQL.
//!
//! The way of a request: `server` (sockets, limits) → `wire` (frames, guard, codec) → `api` (one file per API) → `log` or
//! `group` (what the leader keeps in memory) → `store` (what is durable). The rules of Kafka are in `rules`: pure, once,
//! for both stores. `upkeep` is what happens without a request: retention, compaction, expiry, snapshots, leases.
//! Invariant: memory is only ever durable state plus the group that is being written.

#![deny(missing_docs)]

mod answers;
pub mod api;
pub mod batch;
pub mod broker;
pub mod catalog;
pub mod config;
pub mod fault;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod group;
pub mod lead;
pub mod log;
pub mod metrics;
pub mod model;
#[cfg(test)]
mod patience;
pub mod rules;
pub mod server;
pub mod store;
pub mod upkeep;
pub mod wire;
