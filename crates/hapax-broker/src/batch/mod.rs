//! Record batches of format v2: header, checks, offsets written in, records walked, compression, building.
//!
//! Reads: wire bytes, never trusted. Writes: bytes that clients accept. Nothing here is allocated per record.
//! Invariant: what [`check()`] lets through can be walked by every client, and its counts are the truth.
//! Not here: sequences (`rules`), offsets to give out (`log`).

mod build;
mod check;
mod codec;
mod error;
mod header;
mod record;
mod rewrite;
mod row;
mod stamp;
mod stream;
mod varint;

#[cfg(test)]
#[path = "property_tests.rs"]
mod property_tests;

pub use build::BatchBuilder;
pub use check::{Checked, Keys, check, convert, walk};
pub use codec::{Compression, Limits, compress, compress_at, decompress, working_memory};
pub use error::BatchError;
pub use header::{HEADER, Header};
pub use record::{Headers, Record, Records};
pub use rewrite::{assemble, rewrite, uncompressed};
pub use row::{Batches, FirstBatch, Slice, slice};
pub use stamp::{crc_of, set_append_time, set_max_timestamp, stamp};
pub(crate) use stream::{Passed, pass};
