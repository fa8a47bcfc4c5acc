//! SQLite as a target, as the keeper of progress beside the data, and as a state store.

use std::time::{SystemTime, UNIX_EPOCH};

pub mod admin;
mod bind;
pub mod books;
pub mod column;
mod commit;
pub mod config;
pub mod convert;
pub mod ddl;
pub mod describe;
pub mod error;
pub mod idempotent;
pub mod inspect;
pub mod letters;
#[cfg(test)]
mod matrix_tests;
pub mod progress;
pub mod read;
mod replay;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod sample;
pub mod schema;
pub mod sink;
pub mod state;
pub mod statement;
pub mod tables;
mod together;
#[cfg(test)]
mod values_tests;
mod write;

pub use books::SqliteBooks;
pub use config::SqliteSinkConfig;
pub use idempotent::SqliteIdempotentSink;
pub use sink::SqliteSink;

/// The wall clock, in milliseconds since 1970: for people, for leases, never for safety.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A counter as SQLite stores it. Counters grow by one per event or epoch and never come near the limit.
pub(crate) fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
