//! What a sink counts: plain numbers, read by whoever exports them.

use std::time::Duration;

use hapax_engine::sink::Written;

/// Upper bounds of the latency buckets, in microseconds; a last bucket takes what is longer.
pub const LATENCY_BOUNDS_US: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 1_000_000, 10_000_000];

/// How long commits or upserts took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// All of them together, in microseconds.
    pub sum_us: u64,
    /// The longest, in microseconds.
    pub max_us: u64,
    /// How many fell into each bucket of [`LATENCY_BOUNDS_US`], and beyond the last.
    pub buckets: [u64; LATENCY_BOUNDS_US.len() + 1],
}

impl Latency {
    /// Adds one measurement.
    pub fn add(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(us);
        self.max_us = self.max_us.max(us);
        self.buckets[LATENCY_BOUNDS_US.partition_point(|bound| *bound < us)] += 1;
    }

    /// The mean, in microseconds; 0 if nothing was measured.
    #[must_use]
    pub const fn mean_us(&self) -> u64 {
        match self.sum_us.checked_div(self.count) {
            Some(mean) => mean,
            None => 0,
        }
    }
}

/// What a sink counts since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SinkMetrics {
    /// Rows sent to the target after reduction.
    pub upserts: u64,
    /// Of these: created.
    pub inserts: u64,
    /// Of these: met an existing key.
    pub updates: u64,
    /// Of these: removed, or turned into a tombstone.
    pub deletes: u64,
    /// Of these: left as it was.
    pub unchanged: u64,
    /// Rows that the target refused.
    pub failures: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Epochs aborted.
    pub aborts: u64,
    /// Commits that failed, or whose outcome is unknown.
    pub commit_failures: u64,
    /// Events of all committed transactions, before reduction.
    pub events_written: u64,
    /// How long the commits took: the whole transaction, from BEGIN to the answer of COMMIT.
    pub latency: Latency,
}

impl SinkMetrics {
    /// Books a committed transaction.
    pub fn committed(&mut self, events: u64, written: &Written, took: Duration) {
        self.commits += 1;
        self.events_written += events;
        self.upserts += written.upserts;
        self.inserts += written.inserts;
        self.updates += written.updates;
        self.deletes += written.deletes;
        self.unchanged += written.unchanged;
        self.failures += written.failures;
        self.latency.add(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: mean, maximum and buckets follow what was measured. Method: three times around a bucket's bound.
    #[test]
    fn latency_is_tracked() {
        let mut latency = Latency::default();
        assert_eq!(latency.mean_us(), 0);
        for us in [100, 101, 20_000_000] {
            latency.add(Duration::from_micros(us));
        }
        assert_eq!((latency.count, latency.max_us, latency.mean_us()), (3, 20_000_000, 6_666_733));
        assert_eq!((latency.buckets[0], latency.buckets[1], latency.buckets[12]), (1, 1, 1));
    }

    /// Goal: a commit moves its counters and nothing else.
    #[test]
    fn a_commit_is_booked() {
        let mut metrics = SinkMetrics::default();
        let written = Written { upserts: 6, inserts: 1, updates: 2, deletes: 1, unchanged: 2, failures: 3 };
        metrics.committed(9, &written, Duration::from_micros(7));
        assert_eq!((metrics.commits, metrics.events_written, metrics.upserts, metrics.failures), (1, 9, 6, 3));
        assert_eq!((metrics.inserts, metrics.updates, metrics.deletes, metrics.unchanged), (1, 2, 1, 2));
        assert_eq!((metrics.aborts, metrics.commit_failures, metrics.latency.count), (0, 0, 1));
    }
}
