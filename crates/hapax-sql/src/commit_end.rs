//! How a COMMIT to a server ended: the three answers that a delivery can do something with.

/// How a COMMIT ended; `F` is the driver's error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum CommitEnd<F> {
    /// All of it is durable and visible.
    Committed,
    /// Nothing of it is visible, and nothing ever will be. The session may be used again, unless it is closed.
    RolledBack {
        /// Why; for a transaction that had failed before, what failed, as far as the server tells.
        fault: Box<F>,
    },
    /// It may or may not be there. The session is spoiled: the pool closes it.
    InDoubt {
        /// What is known.
        message: String,
    },
}
