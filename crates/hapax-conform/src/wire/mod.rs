//! Raw frames: the same script to two brokers, the answers compared field by field.

mod agreed;
mod batch;
mod connection;
mod played;
mod scenes;
mod script;
mod tree;

pub use agreed::{AGREED, Agreed, Asked, ON_POSTGRES, Value};
pub use connection::{Connection, Ended};
pub use played::{Played, play};
pub use script::{Difference, Entry, Script, compare};
