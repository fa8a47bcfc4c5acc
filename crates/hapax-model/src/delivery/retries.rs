//! When a failed attempt is tried again, and when not any more, as the configuration says it.
//!
//! Not here: the waits themselves (`hapax_engine::backoff`).

use std::time::Duration;

/// `retries:` of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retries {
    /// Off means one attempt.
    pub enabled: bool,
    /// How many attempts `run --once` makes at its start, the first among them; nothing else counts attempts.
    pub max_attempts: u32,
    /// The longest wait after the first, second, … failed attempt; the last one repeats.
    pub backoff: Vec<Duration>,
    /// Counted from the first failed attempt.
    pub give_up_after: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            enabled: true,
            max_attempts: 5,
            backoff: [1000, 2000, 5000, 10_000, 30_000].map(Duration::from_millis).to_vec(),
            give_up_after: Duration::from_secs(3600),
        }
    }
}
