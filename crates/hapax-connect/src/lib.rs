//! Sources, sinks and state stores, one folder per foreign system.
#![deny(missing_docs)]

#[cfg(feature = "sqlite")]
pub mod sqlite;
