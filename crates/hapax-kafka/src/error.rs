//! How a request fails, and whether it may have been done all the same.

use std::io;

use kafka_protocol::error::ResponseError;

/// What may have happened to a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was not done.
    NotDone,
    /// It was sent and never answered: it may have been done, may still be done, or not.
    Unknown,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no connection; nothing was sent.
    #[error("{address} cannot be reached: {source}")]
    Unreachable {
        /// Where.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The connection ended before the answer came.
    #[error("{address} ended the connection before it answered: {source}")]
    Lost {
        /// Whose.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// No answer came in time. The connection is of no use any more: its next answer would be this one.
    #[error("{address} did not answer in time")]
    Late {
        /// Who.
        address: String,
    },
    /// The connection is of no use since an earlier request failed; nothing was sent.
    #[error("the connection to {address} failed earlier")]
    Spent {
        /// Whose.
        address: String,
    },
    /// The server does not serve this API in any version that we know; nothing was sent.
    #[error("{address} does not serve API {api} in version {version}")]
    Unsupported {
        /// Who.
        address: String,
        /// The API's key.
        api: i16,
        /// The version that was wanted; -1: any.
        version: i16,
    },
    /// The request cannot be written in this version; nothing was sent.
    #[error("API {api} version {version} cannot say this: {reason}")]
    Unspeakable {
        /// The API's key.
        api: i16,
        /// The version that was wanted.
        version: i16,
        /// What does not fit.
        reason: String,
    },
    /// The answer makes no sense.
    #[error("{address} answered what cannot be read: {reason}")]
    Malformed {
        /// Who.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server says no.
    #[error("{what}: {code}")]
    Refused {
        /// What was asked.
        what: String,
        /// Kafka's code.
        code: ResponseError,
    },
    /// Nobody leads this partition now, or there is no such partition.
    #[error("{topic}-{partition} has no leader")]
    NoLeader {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// An earlier batch of this producer is in doubt: decide on it first.
    #[error("the outcome of an earlier batch for {topic}-{partition} is unknown: send that again first")]
    InDoubt {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
    },
}

impl ClientError {
    /// Whether the request may have been done.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Unreachable { .. }
            | Self::Spent { .. }
            | Self::Unsupported { .. }
            | Self::Unspeakable { .. }
            | Self::NoLeader { .. }
            | Self::InDoubt { .. } => Outcome::NotDone,
            Self::Lost { .. } | Self::Late { .. } | Self::Malformed { .. } => Outcome::Unknown,
            // What these codes say is that the server itself does not know, or no longer knows.
            Self::Refused { code, .. } if may_be_done(*code) => Outcome::Unknown,
            Self::Refused { .. } => Outcome::NotDone,
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Lost { .. }
            | Self::Late { .. }
            | Self::Spent { .. }
            | Self::NoLeader { .. } => true,
            Self::Unsupported { .. } | Self::Unspeakable { .. } | Self::Malformed { .. } | Self::InDoubt { .. } => {
                false
            }
            Self::Refused { code, .. } => code.is_retriable(),
        }
    }

    /// Kafka's code, if it was the server who said no.
    #[must_use]
    pub fn code(&self) -> Option<ResponseError> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Unreachable { .. }
            | Self::Lost { .. }
            | Self::Late { .. }
            | Self::Spent { .. }
            | Self::Unsupported { .. }
            | Self::Unspeakable { .. }
            | Self::Malformed { .. }
            | Self::NoLeader { .. }
            | Self::InDoubt { .. } => None,
        }
    }
}

/// A leader that lost its place while it wrote says 6, and what it wrote may still be there.
fn may_be_done(code: ResponseError) -> bool {
    use ResponseError as E;
    [
        E::UnknownServerError,
        E::RequestTimedOut,
        E::NotLeaderOrFollower,
        E::NotEnoughReplicasAfterAppend,
        E::KafkaStorageError,
        E::NotCoordinator,
        E::CoordinatorLoadInProgress,
        E::CoordinatorNotAvailable,
    ]
    .contains(&code)
}

/// `Ok` for code 0, else what the server said.
pub(super) fn check(code: i16, what: impl FnOnce() -> String) -> Result<(), ClientError> {
    ResponseError::try_from_code(code).map_or(Ok(()), |code| Err(ClientError::Refused { what: what(), code }))
}
