//! Raw frames: the same script to two brokers, the answers compared field by field.

mod agreed;
mod batch;
mod connection;
mod scenes;
mod script;
mod tree;

pub use agreed::{AGREED, Agreed, ON_POSTGRES};
pub use connection::{Connection, Ended};
pub use scenes::play;
pub use script::{Difference, Entry, Script, compare};
