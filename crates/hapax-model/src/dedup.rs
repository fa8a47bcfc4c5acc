//! A set of ids seen lately, bounded by time and by count: a known id is dropped, a new one is processed.
//!
//! Reads: the time, passed in. Writes: nothing outside itself.
//! Invariant: an id that was recorded less than `window` ago and is among the newest `capacity` ids is known. What the
//! set does not know may still be a repeat: it saves work, it is no proof.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// The window unless another is chosen: five minutes.
///
/// The window must be longer than the longest gap between two deliveries of one event, plus a margin. After a crash a
/// source repeats what was not acknowledged: with positions saved every 30 s or sooner, and a restart or a take-over
/// within a minute or two, five minutes leave more than half to spare. A sender that retries for hours
/// (`giveUpAfter`) needs a set, or a table, that remembers for longer than that.
pub const DEFAULT_WINDOW: Duration = Duration::from_secs(300);

/// The capacity unless another is chosen: about 6 MiB of keys, and five minutes at 300 events a second.
pub const DEFAULT_CAPACITY: usize = 100_000;

/// A set with a missing bound: it would remember nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoBound {
    /// The capacity is 0.
    #[error("a dedup set of capacity 0 remembers nothing: give it room for the ids of its window")]
    Capacity,
    /// The window is 0.
    #[error("a dedup set with a window of 0 remembers nothing: make it longer than the longest redelivery gap")]
    Window,
}

/// Ids seen lately. Both bounds hold at once: time alone fails in a burst, count alone on a slow stream.
#[derive(Debug, Clone)]
pub struct DedupSet<Id> {
    seen: HashSet<Id>,
    /// First in, first out, with the time of each; as long as `seen`.
    order: VecDeque<(Id, Duration)>,
    window: Duration,
    capacity: usize,
    /// The latest time ever passed in.
    latest: Duration,
}

impl<Id: Copy + Eq + Hash> DedupSet<Id> {
    /// An empty set that remembers an id for `window`, and at most `capacity` of them.
    ///
    /// # Errors
    /// If either bound is 0.
    pub fn new(window: Duration, capacity: usize) -> Result<Self, NoBound> {
        if capacity == 0 {
            return Err(NoBound::Capacity);
        }
        if window.is_zero() {
            return Err(NoBound::Window);
        }
        Ok(Self { seen: HashSet::new(), order: VecDeque::new(), window, capacity, latest: Duration::ZERO })
    }

    /// Records an id at the time `now`, counted from any fixed start. True: it is new, process it. False: it is a
    /// repeat, drop it; the time of its first sight stays.
    ///
    /// Time never goes back: a `now` before the latest is taken as the latest.
    pub fn record(&mut self, id: Id, now: Duration) -> bool {
        self.latest = self.latest.max(now);
        self.evict_by_time();
        // Look before making room: at capacity the oldest id may be this very one.
        if self.seen.contains(&id) {
            return false;
        }
        self.evict_by_count();
        self.seen.insert(id);
        self.order.push_back((id, self.latest));
        true
    }

    /// How many ids are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    fn evict_by_time(&mut self) {
        while self.order.front().is_some_and(|(_, at)| self.latest - *at > self.window) {
            self.evict_oldest();
        }
    }

    /// Makes room for one more.
    fn evict_by_count(&mut self) {
        while self.order.len() >= self.capacity {
            self.evict_oldest();
        }
    }

    fn evict_oldest(&mut self) {
        if let Some((id, _)) = self.order.pop_front() {
            self.seen.remove(&id);
        }
    }
}

impl<Id: Copy + Eq + Hash> Default for DedupSet<Id> {
    /// A set with [`DEFAULT_WINDOW`] and [`DEFAULT_CAPACITY`].
    fn default() -> Self {
        Self::new(DEFAULT_WINDOW, DEFAULT_CAPACITY).expect("the default bounds are not 0")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use proptest::prelude::*;

    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Goal: a new id is processed, a known one dropped. Method: two ids, each twice.
    #[test]
    fn a_known_id_is_dropped_and_a_new_one_processed() {
        let mut set = DedupSet::new(at(10), 10).unwrap();
        assert!(set.is_empty());
        assert_eq!([1, 2, 1, 2].map(|id| set.record(id, at(0))), [true, true, false, false]);
        assert_eq!(set.len(), 2);
        assert!(!set.is_empty());
    }

    /// Goal: an id is known up to the end of its window, counted from its first sight. Method: look at and after it.
    #[test]
    fn an_id_is_forgotten_after_its_window() {
        let mut set = DedupSet::new(at(10), 10).unwrap();
        assert!(set.record('a', at(5)));
        assert!(!set.record('a', at(15)));
        assert!(set.record('a', at(16)));
    }

    /// Goal: unless told otherwise an id is known for five minutes. Method: look at their end and after it.
    #[test]
    fn the_default_window_is_five_minutes() {
        let mut set = DedupSet::default();
        assert!(set.record('a', at(0)));
        assert!(!set.record('a', at(300)));
        assert!(set.record('a', at(301)));
    }

    /// Goal: at capacity a repeat of the oldest id is still a repeat. Method: fill up, repeat each.
    #[test]
    fn a_repeat_at_capacity_is_not_taken_for_new() {
        let mut set = DedupSet::new(at(10), 3).unwrap();
        assert!([1, 2, 3].iter().all(|id| set.record(*id, at(0))));
        assert!([1, 2, 3].iter().all(|id| !set.record(*id, at(0))));
        assert!(set.record(4, at(0)), "a new id");
        assert!(!set.record(2, at(0)), "the newest three are known");
        assert!(set.record(1, at(0)), "the oldest gave way");
    }

    /// Goal: a clock that jumps back neither panics nor forgets. Method: jump.
    #[test]
    fn time_never_goes_back() {
        let mut set = DedupSet::new(at(10), 3).unwrap();
        assert!(set.record(1, at(100)));
        assert!(set.record(2, at(0)));
        assert!(!set.record(2, at(105)), "2 was recorded at 100, not at 0");
        assert!(!set.record(1, at(50)));
    }

    /// Goal: a set that would remember nothing is refused. Method: both bounds.
    #[test]
    fn a_missing_bound_is_refused() {
        assert_eq!(DedupSet::<u8>::new(at(1), 0).err(), Some(NoBound::Capacity));
        assert_eq!(DedupSet::<u8>::new(at(0), 1).err(), Some(NoBound::Window));
    }

    thread_local! {
        static COMPARED: Cell<u64> = const { Cell::new(0) };
    }

    /// An id that counts how often it is compared.
    #[derive(Debug, Clone, Copy)]
    struct CountedId(u32);

    impl PartialEq for CountedId {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for CountedId {}

    impl Hash for CountedId {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    /// Goal: a look does not go through the whole set. Method: many ids, each looked at again; count the comparisons.
    #[test]
    fn a_look_compares_few_ids() {
        let ids = 10_000;
        let mut set = DedupSet::new(at(10), 10_000).unwrap();
        assert!((0..ids).all(|id| set.record(CountedId(id), at(0))));
        COMPARED.set(0);
        assert!((0..ids).all(|id| !set.record(CountedId(id), at(0))));
        let compared = COMPARED.get();
        assert!((10_000..100_000).contains(&compared), "{compared} comparisons for {ids} looks");
    }

    proptest! {
        /// Goal: bounds and answers hold for any history. Method: compare with a plain list that is searched in full.
        #[test]
        fn the_set_agrees_with_a_plain_list(
            history in prop::collection::vec((0..8_u8, 0..4_u64), 0..200), window in 1..12_u64, capacity in 1..6_usize,
        ) {
            let mut set = DedupSet::new(at(window), capacity).unwrap();
            let mut list: Vec<(u8, u64)> = Vec::new();
            let mut now = 0;
            for (id, step) in history {
                now += step;
                list.retain(|(_, seen)| now - seen <= window);
                let new = !list.iter().any(|(known, _)| *known == id);
                if new {
                    list.push((id, now));
                    list.drain(..list.len().saturating_sub(capacity));
                }
                prop_assert_eq!(set.record(id, at(now)), new);
                prop_assert_eq!(set.len(), list.len());
                prop_assert_eq!(set.order.len(), list.len());
                prop_assert!(set.len() <= capacity);
                prop_assert!(set.order.iter().is_sorted_by_key(|(_, seen)| *seen));
            }
        }
    }
}
