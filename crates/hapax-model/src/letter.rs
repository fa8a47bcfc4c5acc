//! Dead letters: an input that cannot be delivered, kept with its bytes and the reason.

use crate::position::Position;

/// At which step an input died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The bytes were no event.
    Decode,
    /// The transform refused it.
    Transform,
    /// No key could be derived.
    Key,
    /// The event does not fit the target's columns.
    Map,
    /// The target refused the row.
    Write,
}

impl Stage {
    /// The name under which the stage is stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Transform => "transform",
            Self::Key => "key",
            Self::Map => "map",
            Self::Write => "write",
        }
    }
}

/// Why an input died: what the letter says, and what it is grouped by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The step.
    pub stage: Stage,
    /// The error's code, such as `HX2003`.
    pub code: &'static str,
    /// The whole message, with the row's own values.
    pub message: String,
    /// The message without the row's values: letters with one fingerprint have one cause.
    pub fingerprint: String,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// The source bytes as a letter keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterBytes {
    /// All of them.
    Whole(Vec<u8>),
    /// Too large: the beginning, the full length and the SHA-256 of all of it.
    Cut {
        /// The beginning.
        head: Vec<u8>,
        /// The full length in bytes.
        length: u64,
        /// SHA-256 of the whole input.
        sha256: [u8; 32],
    },
}

/// A dead letter on its way into the epoch's transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Where the input was.
    pub position: Position,
    /// Why it died.
    pub cause: Cause,
    /// The original bytes.
    pub bytes: LetterBytes,
    /// The event key's text form, if the input got as far as a key.
    pub event_key: Option<String>,
}
