//! What a broker counts while it works: one place, written by all parts, read by whoever shows it.
//!
//! Invariant: nothing waits for a reader; what happens per record is counted per batch. Not here: names and pages.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the buckets of a [`Latency`], in microseconds; a last bucket takes what is longer.
pub const BOUNDS_US: [u64; 14] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000,
];

/// A number that others add to.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds so many.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How many.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long something took, by bucket.
#[derive(Debug, Default)]
pub struct Latency {
    buckets: [Count; BOUNDS_US.len() + 1],
    sum_us: Count,
    max_us: AtomicU64,
}

/// A [`Latency`] as it was when somebody looked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    /// How many fell into each bucket of [`BOUNDS_US`], and beyond the last.
    pub buckets: [u64; BOUNDS_US.len() + 1],
    /// All of them together, in microseconds.
    pub sum_us: u64,
    /// The longest, in microseconds.
    pub max_us: u64,
}

impl Latency {
    /// Adds one.
    pub fn add(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.buckets[BOUNDS_US.partition_point(|bound| *bound < us)].add(1);
        self.sum_us.add(us);
        self.max_us.fetch_max(us, Ordering::Relaxed);
    }

    /// What there is now.
    #[must_use]
    pub fn read(&self) -> Latencies {
        Latencies {
            buckets: std::array::from_fn(|at| self.buckets[at].get()),
            sum_us: self.sum_us.get(),
            max_us: self.max_us.load(Ordering::Relaxed),
        }
    }
}

impl Latencies {
    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Everything that one broker counts, since it started.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Records appended; a repetition is none.
    pub produced_records: Count,
    /// Their bytes as they came, batch headers included.
    pub produced_bytes: Count,
    /// Bytes of records that answers to Fetch carried.
    pub fetched_bytes: Count,
    /// Records among them.
    pub fetched_records: Count,
    /// From taking a group of appends to its commit.
    pub commits: Latency,
    /// Groups that the store did not take, or of which nobody knows.
    pub commits_failed: Count,
    /// Batches recognised as repetitions, and answered with their first offset.
    pub duplicates: Count,
    /// Batches refused because one before them is missing (45).
    pub out_of_order: Count,
    /// Batches and calls refused because a newer producer has the id (47, 90).
    pub fenced: Count,
    /// Generations of groups that were begun.
    pub rebalances: Count,
    /// Bytes that retention and DeleteRecords removed.
    pub removed_bytes: Count,
    /// Bytes that compaction rewrote away.
    pub compacted_bytes: Count,
    /// How often this broker took the lead.
    pub takeovers: Count,
    requests: Mutex<BTreeMap<(i16, i16), u64>>,
    snapshot_age: Mutex<Option<Duration>>,
}

impl Metrics {
    /// Counts an answered request: the API's number, and the first error that its answer carries (0: none).
    pub fn request(&self, api: i16, error: i16) {
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry((api, error)).or_default() += 1;
    }

    /// Answered requests by the API's number and the error's.
    #[must_use]
    pub fn requests(&self) -> Vec<((i16, i16), u64)> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(key, count)| (*key, *count)).collect()
    }

    /// Notes how old the oldest view of the store's database is; none if that is not known, or no matter of this store.
    pub fn set_snapshot_age(&self, age: Option<Duration>) {
        *self.snapshot_age.lock().unwrap_or_else(PoisonError::into_inner) = age;
    }

    /// How old the oldest view of the store's database is: while it is open, dead rows stay.
    #[must_use]
    pub fn snapshot_age(&self) -> Option<Duration> {
        *self.snapshot_age.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each duration falls into the bucket that Prometheus means. Method: on a bound, just above it, beyond the last.
    #[test]
    fn durations_fall_into_their_buckets() {
        let latency = Latency::default();
        for us in [1_000, 1_001, 60_000_000] {
            latency.add(Duration::from_micros(us));
        }
        let read = latency.read();
        assert_eq!((read.buckets[0], read.buckets[1], read.buckets[14]), (1, 1, 1));
        assert_eq!((read.count(), read.sum_us, read.max_us), (3, 60_002_001, 60_000_000));
    }

    /// Goal: requests are counted by API and error. Method: some of each.
    #[test]
    fn requests_are_counted_by_api_and_error() {
        let metrics = Metrics::default();
        for (api, error) in [(0, 0), (0, 45), (0, 0), (1, 0)] {
            metrics.request(api, error);
        }
        assert_eq!(metrics.requests(), [((0, 0), 2), ((0, 45), 1), ((1, 0), 1)]);
    }
}
