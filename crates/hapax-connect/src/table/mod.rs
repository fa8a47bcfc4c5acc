//! What every SQL target has in common: the configuration of a table, which field feeds which column, a batch as rows,
//! and the parts of an epoch's commit that need no database.
//!
//! Generic over the dialect's live column ([`LiveColumn`]); no dialect is known here. Reads and writes no database.

pub mod alone;
#[cfg(test)]
pub(crate) mod cases;
pub mod column;
pub mod config;
pub mod ddl;
pub mod described;
pub mod during;
pub mod epoch;
pub mod life;
pub mod live;
pub mod mapping;
#[cfg(test)]
pub(crate) mod matrix;
pub mod moment;
pub mod number;
pub mod read;
pub mod replay;
pub mod rows;
#[cfg(test)]
pub(crate) mod sample;
pub mod shape;
pub(crate) mod stored;
pub mod tries;
pub mod untyped;

pub use column::{LiveColumn, StoredValue};
pub use config::TableConfig;
pub use mapping::Mapping;
pub use rows::Rows;
