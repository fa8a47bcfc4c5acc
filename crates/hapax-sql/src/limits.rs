//! The limits that a session sets for itself. The same for every server; how they are said is each driver's own affair.

use std::time::Duration;

/// How long a session that only looks may say nothing.
const LOOK_IDLE: Duration = Duration::from_secs(3600);

/// The limits that a session sets for itself. A server that knows whole seconds only takes the next one up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long an open transaction may wait for its client: what ends a stopped process's lock.
    pub idle_in_transaction: Duration,
    /// How long one statement may run; where the server cannot limit it, the session itself does.
    pub statement: Duration,
    /// How long one statement may wait for a lock.
    pub lock: Duration,
    /// How long one host may take to answer at connect, unless the address says it.
    pub connect: Duration,
}

impl Limits {
    /// What holds unless a workflow says otherwise; the configuration's defaults are these.
    pub const DEFAULT: Self = Self {
        idle_in_transaction: Duration::from_secs(10),
        statement: Duration::from_secs(60),
        lock: Duration::from_secs(5),
        connect: Duration::from_secs(10),
    };

    /// For a session that only looks: nobody waits for its locks, and between two questions it may work for long on something else.
    #[must_use]
    pub fn of_a_look(&self) -> Self {
        Self { idle_in_transaction: self.idle_in_transaction.max(LOOK_IDLE), ..self.clone() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
