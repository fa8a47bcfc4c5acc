//! PostgreSQL as a target, as the keeper of progress beside the data, and as a state store.

pub mod admin;
mod array;
mod ask;
mod blame;
pub mod books;
mod chunk;
pub mod column;
pub mod config;
pub mod convert;
#[cfg(test)]
mod counting_relay;
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
mod one_by_one;
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
#[cfg(all(test, feature = "sqlite"))]
pub(crate) mod state_database;
pub mod statement;
pub mod tables;
mod transaction;
#[cfg(test)]
mod values_tests;
mod write;

pub use books::PostgresBooks;
pub use config::PostgresSinkConfig;
pub use idempotent::PostgresIdempotentSink;
pub use sink::PostgresSink;
pub use state::PostgresState;

/// A text for people as PostgreSQL can store it: it holds every character but NUL, which is shown by its picture.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}
