//! How a store fails.

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else leads what was to be written; nothing was done.
    #[error("another broker leads here now")]
    Fenced,
    /// The row has changed since it was read, or is there already; nothing was done. Read again and decide again.
    #[error("changed by another")]
    Conflict,
    /// The answer is unknown: treat yourself as a stranger, lead again, load again.
    #[error("the outcome is unknown: {0}")]
    InDoubt(String),
    /// The store cannot be reached or is not ready; nothing was done. Worth a retry.
    #[error("the store cannot be reached: {0}")]
    Away(String),
    /// No room; nothing was done.
    #[error("the store is full: {0}")]
    Full(String),
    /// Nothing more may be written before the store was opened anew: stop the process.
    #[error("the store failed: {0}")]
    Broken(String),
    /// What was read cannot be what was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
}
