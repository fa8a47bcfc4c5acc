//! The delivery protocol: traits for source, sink and state store, and the runtime that drives them.
//!
//! A record's way is the reading order of this crate: [`source`] → [`decode`] → [`transform`] → [`batch`] → [`sink`] → ack.
//! Knows no database, no file, no flag: those are in `hapax-connect` and in the binary.
#![deny(missing_docs)]

pub mod backoff;
pub mod batch;
pub mod bookkeeping;
pub mod books;
#[cfg(feature = "contract")]
pub mod contract;
pub mod decode;
pub mod epoch_size;
pub mod in_doubt;
pub mod letters;
pub mod lifecycle;
pub mod memory;
pub mod pipeline;
pub mod pulse;
pub mod reduce;
pub mod rows;
pub mod runtime;
pub mod second_pass;
pub mod sink;
pub mod source;
pub mod state;
pub mod state_progress;
pub mod transform;
