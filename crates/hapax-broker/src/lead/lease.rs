//! How long an answer from memory can be trusted: until the lease ends, counted from when its renewal was sent.
//!
//! Invariant: never longer than the store's own count, because that begins later. A stopped process finds it over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Our lease, by the monotonic clock.
#[derive(Debug)]
pub(crate) struct Lease {
    begun: Instant,
    /// `None`: for ever, once it was given.
    lasts: Option<Duration>,
    /// Microseconds from `begun` to the newest renewal that succeeded, plus one; 0: none.
    renewed: AtomicU64,
}

impl Lease {
    pub(crate) fn new(lasts: Option<Duration>) -> Self {
        Self { begun: Instant::now(), lasts, renewed: AtomicU64::new(0) }
    }

    /// A renewal that was sent at `sent` has succeeded.
    pub(crate) fn renewed(&self, sent: Instant) {
        let micros = sent.saturating_duration_since(self.begun).as_micros();
        self.renewed.fetch_max(u64::try_from(micros).unwrap_or(u64::MAX - 1) + 1, Ordering::AcqRel);
    }

    /// Given back.
    pub(crate) fn end(&self) {
        self.renewed.store(0, Ordering::Release);
    }

    /// Whether it was given once and is over now: another may have led meanwhile.
    pub(crate) fn is_over_at(&self, now: Instant) -> bool {
        self.renewed.load(Ordering::Acquire) != 0 && !self.holds_at(now)
    }

    pub(crate) fn holds_at(&self, now: Instant) -> bool {
        match (self.renewed.load(Ordering::Acquire), self.lasts) {
            (0, _) => false,
            (_, None) => true,
            (renewed, Some(lasts)) => {
                let sent = self.begun + Duration::from_micros(renewed - 1);
                now.saturating_duration_since(sent) < lasts
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: it holds from the sending of a renewal, not from its answer, and never before. Method: made-up instants.
    #[test]
    fn a_lease_is_counted_from_the_sending() {
        let lease = Lease::new(Some(Duration::from_secs(5)));
        let sent = lease.begun + Duration::from_secs(1);
        assert!(!lease.holds_at(sent) && !lease.is_over_at(sent), "not given yet");
        lease.renewed(sent);
        assert!(lease.holds_at(sent + Duration::from_millis(4_999)));
        assert!(!lease.holds_at(sent + Duration::from_secs(5)) && lease.is_over_at(sent + Duration::from_secs(5)));
        // An answer that comes late does not take back a newer one.
        lease.renewed(sent + Duration::from_secs(4));
        lease.renewed(sent + Duration::from_secs(3));
        assert!(lease.holds_at(sent + Duration::from_secs(8)));
        lease.end();
        assert!(!lease.holds_at(sent + Duration::from_secs(8)));
        let endless = Lease::new(None);
        assert!(!endless.holds_at(sent));
        endless.renewed(sent);
        assert!(endless.holds_at(sent + Duration::from_secs(1_000_000)));
    }
}
