//! What was being done when an error came: it decides what the error means to the protocol. The same in every database.

use hapax_engine::sink::SinkError;
use hapax_model::epoch::Epoch;

/// What was being done when an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum During {
    /// Something that only reads, or an administrator's own transaction.
    Look,
    /// A claim or a reclaim.
    Claim,
    /// The transaction of this epoch, or a save that belongs to it.
    Epoch(Epoch),
}

impl During {
    /// The target said that nothing of it was done.
    pub(crate) const fn rolled_back(self, target: String, message: String) -> SinkError {
        match self {
            Self::Look => SinkError::ConnectionLost { target, message },
            Self::Claim => SinkError::TransactionInitFailed { target, message },
            Self::Epoch(epoch) => SinkError::TransactionCommitFailed { target, epoch, message },
        }
    }

    /// Nobody said whether it was done.
    pub(crate) const fn in_doubt(self, target: String, message: String) -> SinkError {
        match self {
            Self::Look => SinkError::ConnectionLost { target, message },
            Self::Claim => SinkError::TransactionInitFailed { target, message },
            Self::Epoch(epoch) => SinkError::CommitInDoubt { target, epoch, message },
        }
    }
}
