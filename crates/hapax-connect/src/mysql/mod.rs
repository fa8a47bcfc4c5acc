//! MySQL and MariaDB as a target, and as the keeper of progress beside the data.

use std::time::{SystemTime, UNIX_EPOCH};

pub mod admin;
mod ask;
pub mod books;
pub mod error;
mod holder;
pub mod layout;
pub mod letters;
pub mod progress;
pub mod rights;
#[cfg(test)]
mod sample;
pub mod tables;

pub use books::MysqlBooks;

/// The wall clock of this machine, in milliseconds since 1970: for people, never for safety.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A counter as our tables store it. Counters grow by one per event or epoch and never come near the limit.
pub(crate) fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
