//! MySQL and MariaDB as a target, and as the keeper of progress beside the data.

use std::time::{SystemTime, UNIX_EPOCH};

pub mod admin;
mod ask;
pub mod books;
mod chunk;
pub mod column;
mod commit;
pub mod config;
pub mod convert;
pub mod ddl;
pub mod describe;
pub mod error;
mod holder;
pub mod idempotent;
pub mod inspect;
pub mod layout;
pub mod letters;
#[cfg(test)]
mod matrix_tests;
mod moment;
mod plan;
pub mod progress;
mod proof;
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
pub mod statement;
pub mod tables;
mod value;
#[cfg(test)]
mod values_tests;
mod write;

pub use books::MysqlBooks;
pub use config::MysqlSinkConfig;
pub use idempotent::MysqlIdempotentSink;
pub use sink::MysqlSink;

/// The wall clock of this machine, in milliseconds since 1970: for people, never for safety.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A counter as our tables store it. Counters grow by one per event or epoch and never come near the limit.
pub(crate) fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
