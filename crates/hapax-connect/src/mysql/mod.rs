//! MySQL and MariaDB as a target, and as the keeper of progress beside the data.

pub mod admin;
mod ask;
pub mod books;
mod chunk;
pub mod column;
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
mod transaction;
mod value;
#[cfg(test)]
mod values_tests;
mod write;

pub use books::MysqlBooks;
pub use config::MysqlSinkConfig;
pub use idempotent::MysqlIdempotentSink;
pub use sink::MysqlSink;
