//! Why a broker does not start, or cannot go on.

use crate::model::BrokerId;
use crate::store::StoreError;

/// Why a broker does not start, or cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeadError {
    /// Another process has our number.
    #[error("another broker runs under the number {0}; give each broker of one database a number of its own")]
    NumberTaken(BrokerId),
    /// The store does not work.
    #[error("{0}")]
    Store(StoreError),
}

impl LeadError {
    /// The error's page in docs/errors.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NumberTaken(_) => "HX4507",
            Self::Store(_) => "HX4508",
        }
    }
}
