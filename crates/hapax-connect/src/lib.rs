//! Sources, sinks and state stores: one folder per foreign system, the same file names in each.
//!
//! Knows the engine's traits and one system each; nothing here knows the configuration file or the command line.
#![deny(missing_docs)]

pub mod file;
pub mod generate;
pub mod metrics;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub mod table;
