//! A counter that survives redelivery: an increment made idempotent by a bounded set of ids.
//!
//! The smallest example of the rule that every increment-like effect goes through a [`DedupSet`].

use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::dedup::{DedupSet, NoBound};
use crate::key::KeyHash;

/// Counts ids once each, for as long as its bounded set remembers them. Shared between threads by reference.
#[derive(Debug)]
pub struct IdempotentCounter<Id = KeyHash> {
    /// Count and set change together, so they share the one lock.
    inner: Mutex<Counted<Id>>,
}

#[derive(Debug)]
struct Counted<Id> {
    count: u64,
    seen: DedupSet<Id>,
}

impl<Id: Copy + Eq + Hash> IdempotentCounter<Id> {
    /// A counter at 0, with the default window and capacity of [`DedupSet`].
    #[must_use]
    pub fn new() -> Self {
        Self::over(DedupSet::default())
    }

    /// A counter at 0 that remembers ids for `window`, and at most `capacity` of them.
    ///
    /// # Errors
    /// If either bound is 0.
    pub fn with_bounds(window: Duration, capacity: usize) -> Result<Self, NoBound> {
        DedupSet::new(window, capacity).map(Self::over)
    }

    const fn over(seen: DedupSet<Id>) -> Self {
        Self { inner: Mutex::new(Counted { count: 0, seen }) }
    }

    /// Counts `id` if it is new at the time `now` (see [`DedupSet::record`]); returns the count.
    pub fn record_unique(&self, id: Id, now: Duration) -> u64 {
        let mut inner = self.lock();
        if inner.seen.record(id, now) {
            inner.count += 1;
        }
        inner.count
    }

    /// The count.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    fn lock(&self) -> MutexGuard<'_, Counted<Id>> {
        // A thread that panicked while it held the lock changed count and set together, or neither.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Id: Copy + Eq + Hash> Default for IdempotentCounter<Id> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a repeat does not count. Method: new, repeat, new.
    #[test]
    fn a_repeat_leaves_the_count_as_it_is() {
        let counter = IdempotentCounter::new();
        let now = Duration::from_secs(1);
        assert_eq!([7, 7, 8].map(|id| counter.record_unique(id, now)), [1, 1, 2]);
        assert_eq!(counter.count(), 2);
    }

    /// Goal: the set inside is bounded by time and count. Method: go past each bound, count again.
    #[test]
    fn an_id_counts_again_once_it_is_forgotten() {
        let counter = IdempotentCounter::with_bounds(Duration::from_secs(5), 2).unwrap();
        assert_eq!([1, 2, 3, 1].map(|id| counter.record_unique(id, Duration::ZERO)), [1, 2, 3, 4]);
        assert_eq!(counter.record_unique(1, Duration::from_secs(6)), 5);
        assert!(IdempotentCounter::<u8>::with_bounds(Duration::ZERO, 2).is_err());
    }

    /// Goal: threads that deliver the same ids count each once. Method: four threads, the same thousand ids.
    #[test]
    fn threads_count_each_id_once() {
        let counter = IdempotentCounter::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for id in 0..1000_u32 {
                        counter.record_unique(id, Duration::ZERO);
                    }
                });
            }
        });
        assert_eq!(counter.count(), 1000);
    }
}
