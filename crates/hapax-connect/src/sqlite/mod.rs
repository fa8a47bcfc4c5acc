//! SQLite as a target, as the keeper of progress beside the data, and as a state store.

pub mod admin;
mod bind;
pub mod books;
pub mod column;
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
mod transaction;
#[cfg(test)]
mod values_tests;
mod write;

pub use books::SqliteBooks;
pub use config::SqliteSinkConfig;
pub use idempotent::SqliteIdempotentSink;
pub use sink::SqliteSink;
