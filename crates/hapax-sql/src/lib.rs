//! Database sessions: opening, quoting, the checked COMMIT. One module and one feature per database.
//!
//! Knows nothing of deliveries, epochs or our tables: those are in `hapax-connect`.
#![deny(missing_docs)]

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod commit_end;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod fault_class;
pub mod limits;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub mod pool;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod process;
mod quote_error;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod quoted_parts;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(test)]
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod test_certificates;
#[cfg(test)]
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod test_wire;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub mod tls;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod tls_verify;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod url_parts;

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use commit_end::CommitEnd;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use fault_class::FaultClass;
pub use quote_error::QuoteError;
