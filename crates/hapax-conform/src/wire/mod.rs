//! Raw frames: a connection that sends what it is told, in the version it is told.

mod connection;

pub use connection::{Connection, Ended};
