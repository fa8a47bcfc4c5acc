//! Keys: which thing an event is about, and which event it is.

use std::fmt;

/// The first 16 bytes of the SHA-256 of a key's canonical encoding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 16]);

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHash({:02x?})", self.0)
    }
}

/// How keys are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DedupStrategy {
    /// The source's position and the index of the event among its input's.
    SourceOffset,
}
