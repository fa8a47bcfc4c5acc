//! What every SQL target has in common: the configuration of a table, which field feeds which column, a batch as rows,
//! and the parts of an epoch's commit that need no database.
//!
//! Generic over the dialect's live column ([`LiveColumn`]) and its database ([`sink::Home`], [`idempotent::Foreign`]); no
//! dialect is known here. Reads and writes no database by itself.

pub(crate) mod admin;
pub mod alone;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod booked;
#[cfg(test)]
pub(crate) mod cases;
pub mod column;
pub mod config;
#[cfg(test)]
pub(crate) mod contract;
pub mod ddl;
pub mod described;
pub mod during;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod halving;
pub mod idempotent;
pub(crate) mod kept;
pub mod live;
pub mod mapping;
#[cfg(test)]
pub(crate) mod matrix;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) mod middle;
pub mod moment;
pub mod number;
pub mod order;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod own_row;
pub mod read;
pub mod replay;
#[cfg(test)]
pub(crate) mod rig;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod rights;
pub mod rows;
#[cfg(test)]
pub(crate) mod sample;
pub mod seen;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub mod server;
pub mod shape;
pub mod sink;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod spelled;
pub(crate) mod stored;
pub mod transaction;
pub mod tries;
pub mod untyped;
pub(crate) mod words;

pub use column::{LiveColumn, StoredValue};
pub use config::TableConfig;
pub use mapping::Mapping;
pub use rows::Rows;
