//! PostgreSQL as a target, as the keeper of progress beside the data, and as a state store.

use std::time::{SystemTime, UNIX_EPOCH};

pub mod admin;
mod array;
mod ask;
mod blame;
pub mod books;
mod chunk;
pub mod column;
mod commit;
pub mod config;
pub mod convert;
pub mod ddl;
pub mod describe;
mod encode;
pub mod error;
mod flight;
pub mod idempotent;
pub mod inspect;
pub mod interval;
pub mod layout;
mod lease;
pub mod letters;
#[cfg(test)]
mod matrix_tests;
mod memory;
mod moment;
pub mod progress;
mod range;
pub mod read;
mod replay;
#[cfg(test)]
mod rig;
pub mod rights;
pub mod row_error;
#[cfg(test)]
mod sample;
pub mod schema;
pub mod sink;
mod slow;
pub mod snapshots;
pub mod state;
pub mod statement;
pub mod tables;
#[cfg(test)]
mod values_tests;
mod write;

pub use books::PostgresBooks;
pub use config::PostgresSinkConfig;
pub use idempotent::PostgresIdempotentSink;
pub use sink::PostgresSink;
pub use state::PostgresState;

/// The wall clock of this machine, in milliseconds since 1970: for people, never for safety.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A counter as PostgreSQL stores it. Counters grow by one per event or epoch and never come near the limit.
pub(crate) fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A text for people as PostgreSQL can store it: it holds every character but NUL, which is shown by its picture.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}
