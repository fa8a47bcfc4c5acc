//! Database sessions: opening, quoting, the checked COMMIT. One module and one feature per database.
//!
//! Knows nothing of deliveries, epochs or our tables: those are in `hapax-connect`.
#![deny(missing_docs)]

pub mod process;
#[cfg(feature = "sqlite")]
pub mod sqlite;
