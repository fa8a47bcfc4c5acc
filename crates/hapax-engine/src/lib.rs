//! The delivery protocol: traits for source, sink and state store, and the runtime that drives them.
//!
//! A record's way is the reading order of this crate: [`source`] → [`decode`] → [`batch`] → [`sink`] → ack.
//! Knows no database, no file, no flag: those are in `hapax-connect` and in the binary.
#![deny(missing_docs)]

pub mod batch;
pub mod letters;
pub mod reduce;
pub mod sink;
pub mod source;
pub mod state;
