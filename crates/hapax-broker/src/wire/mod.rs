//! Bytes to requests and back: frames, the guard before decoding, headers.
//!
//! Reads: bytes of strangers. Writes: answers as frames. Invariant: nothing is allocated on the word of a count that the
//! bytes at hand cannot hold. Not here: sockets (`server`), what a request means (`api`).

mod answer;
#[cfg(test)]
pub(crate) mod author;
mod cursor;
mod error;
mod frame;
pub(crate) mod guard;
mod header;
pub(crate) mod shape;

pub(crate) use answer::{decode, encode};
pub use error::WireError;
pub(crate) use frame::{FrameError, FrameReader, Limits};
pub(crate) use header::Request;
