//! JSON lines in a file that grows and is rotated.

mod config;
mod incarnation;
mod lines;
mod reading;
mod rotation;
mod source;

pub use config::FileSourceConfig;
pub use source::FileSource;
