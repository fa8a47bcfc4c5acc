//! Keys: which thing an event is about (entity key), and which event it is (event key).
//!
//! Reads: the values of an event's key fields and where the event came from. Writes: nothing.
//! Invariant: a key is a pure function of those; two different tuples never share canonical bytes. The encoding is
//! pinned by `docs/formats/key-encoding.md` and its vectors.
//! Not here: which key a sink uses (audit, sinks), reading fields out of events (engine).

mod custom;
mod encoding;
mod error;
mod explain;
mod hash;
mod keyer;
mod number;
mod strategy;

#[cfg(test)]
mod vectors_tests;

pub use custom::{CustomKey, CustomKeys};
pub use error::{KeyError, Missing};
pub use explain::{DedupKey, DedupKeyComponents, NamedValue};
pub use hash::{KEY_TEXT_LENGTH, KeyHash, KeyText, NoKey, PREFIXED_KEY_LENGTH_MAX};
pub use keyer::{KeyFacts, KeyNeed, Keyer, Keys, Uniqueness};
pub use number::NUMBER_DIGITS_MAX;
pub use strategy::{Contributors, DedupStrategy, ENCODING, IncludeEpoch};
