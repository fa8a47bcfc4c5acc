//! JSON lines or CSV in a file that grows and is rotated, packed with gzip or zstd, or in many files.

mod archive;
mod called;
mod chain;
mod config;
mod copies;
pub mod earlier;
mod facts;
mod feed;
mod first_seen;
#[cfg(test)]
mod format_tests;
mod gone;
mod header;
mod incarnation;
mod lines;
pub mod many;
#[cfg(test)]
mod members_tests;
mod moved;
mod range;
mod reading;
mod recognise;
mod restored;
mod source;
mod start;
mod turn;
#[cfg(feature = "compression")]
mod unpack;

pub use called::CalledFile;
pub use chain::RotationRule;
pub use config::{
    Crowd, CsvOptions, Expected, FileFormat, FileSourceConfig, HeaderFrom, LaneName, NeededBy, NeededField, OwnArchives,
};
pub use first_seen::FirstSeen;
pub use incarnation::{is_compressed, was_read_to_its_end, with_end, without_end};
pub use moved::Accepted;
pub use recognise::STANDS_AT_MOST;
pub use source::FileSource;
