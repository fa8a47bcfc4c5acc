//! Database sessions: opening, quoting, the checked COMMIT. One module and one feature per database.
//!
//! Knows nothing of deliveries, epochs or our tables: those are in `hapax-connect`.
#![deny(missing_docs)]

#[cfg(feature = "postgres")]
pub mod postgres;
pub mod process;
mod quote_error;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use quote_error::QuoteError;
