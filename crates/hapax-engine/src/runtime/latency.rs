//! How long things took: buckets for whoever adds them up over time, and quantiles of what was last.
//!
//! Invariant: one addition per epoch, never one per event. The inputs of an epoch count as read evenly between its
//! first and its last one.

use std::collections::VecDeque;
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds; a last bucket takes what is longer.
pub const BOUNDS_US: [u64; 14] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000,
];
/// So many epochs are remembered for quantiles.
const RECENT: usize = 128;
/// Halvings of the range in which a quantile is looked for: finer than a microsecond in a day.
const HALVINGS: u32 = 40;

/// Durations by bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How many fell into each bucket of [`BOUNDS_US`], and beyond the last.
    pub buckets: [u64; BOUNDS_US.len() + 1],
    /// How many there were.
    pub count: u64,
    /// All of them together, in microseconds.
    pub sum_us: u64,
    /// The longest, in microseconds.
    pub max_us: u64,
}

impl Histogram {
    /// Adds one duration.
    pub fn add(&mut self, us: u64) {
        self.add_spread(Spread { shortest_us: us, longest_us: us, count: 1 });
    }

    /// Adds `spread.count` durations, spread evenly.
    pub fn add_spread(&mut self, spread: Spread) {
        let Spread { shortest_us, longest_us, count } = spread;
        let mut below = 0;
        for (bound, bucket) in BOUNDS_US.iter().zip(&mut self.buckets) {
            let upto = spread.upto(*bound);
            *bucket += upto - below;
            below = upto;
        }
        self.buckets[BOUNDS_US.len()] += count - below;
        self.count += count;
        let middle = shortest_us + longest_us.saturating_sub(shortest_us) / 2;
        self.sum_us = self.sum_us.saturating_add(middle.saturating_mul(count));
        self.max_us = if count == 0 { self.max_us } else { self.max_us.max(longest_us) };
    }
}

/// Some durations, spread evenly between the shortest and the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// In microseconds.
    pub shortest_us: u64,
    /// In microseconds; not below the shortest.
    pub longest_us: u64,
    /// How many.
    pub count: u64,
}

impl Spread {
    /// How many are at most `us` long.
    fn upto(&self, us: u64) -> u64 {
        if us >= self.longest_us {
            return self.count;
        }
        let Some(above) = us.checked_sub(self.shortest_us) else { return 0 };
        let share = u128::from(self.count) * u128::from(above) / u128::from(self.longest_us - self.shortest_us);
        u64::try_from(share).unwrap_or(self.count)
    }
}

/// The durations of the last epochs.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent(VecDeque<Spread>);

impl Recent {
    pub(super) fn add(&mut self, spread: Spread) {
        if self.0.len() == RECENT {
            self.0.pop_front();
        }
        self.0.push_back(spread);
    }

    /// The duration that `share` of them (0 to 1) do not exceed; `None` if there are none.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        let count: u64 = self.0.iter().map(|spread| spread.count).sum();
        let longest = self.0.iter().filter(|spread| spread.count > 0).map(|spread| spread.longest_us).max()?;
        // Counts of events of 128 epochs are far below 2^52.
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let wanted = (count as f64 * share.clamp(0.0, 1.0)).ceil() as u64;
        let (mut low, mut high) = (0, longest);
        for _ in 0..HALVINGS {
            let middle = low + (high - low) / 2;
            let upto: u64 = self.0.iter().map(|spread| spread.upto(middle)).sum();
            if upto >= wanted { high = middle } else { low = middle }
        }
        Some(Duration::from_micros(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each duration is in the right bucket, at the bounds too. Method: around a bound, and beyond the last.
    #[test]
    fn durations_fall_into_their_buckets() {
        let mut histogram = Histogram::default();
        for us in [1_000, 1_001, 40_000_000] {
            histogram.add(us);
        }
        assert_eq!((histogram.buckets[0], histogram.buckets[1], histogram.buckets[14]), (1, 1, 1));
        assert_eq!((histogram.count, histogram.sum_us, histogram.max_us), (3, 40_002_001, 40_000_000));
    }

    /// Goal: the inputs of an epoch are spread, and none is lost in rounding. Method: 0 to 10 ms, then awkward counts.
    #[test]
    fn a_spread_is_divided_among_buckets() {
        let mut histogram = Histogram::default();
        histogram.add_spread(Spread { shortest_us: 0, longest_us: 10_000, count: 1_000 });
        assert_eq!(histogram.buckets[..4], [100, 150, 250, 500]);
        for count in [0, 1, 3, 7] {
            histogram.add_spread(Spread { shortest_us: 999, longest_us: 50_000_000, count });
        }
        assert_eq!(histogram.buckets.iter().sum::<u64>(), histogram.count);
        assert_eq!((histogram.count, histogram.max_us), (1_011, 50_000_000));
    }

    /// Goal: quantiles are those of the last epochs. Method: an even spread; then enough newer ones to forget it.
    #[test]
    fn quantiles_are_of_what_was_last() {
        let mut recent = Recent::default();
        assert_eq!(recent.quantile(0.5), None);
        recent.add(Spread { shortest_us: 0, longest_us: 100_000, count: 1_000 });
        assert_eq!(recent.quantile(0.5).map(|d| d.as_millis()), Some(50));
        assert_eq!(recent.quantile(0.99).map(|d| d.as_millis()), Some(99));
        assert_eq!(recent.quantile(1.0).map(|d| d.as_millis()), Some(100));
        for _ in 0..RECENT {
            recent.add(Spread { shortest_us: 7, longest_us: 7, count: 5 });
        }
        assert_eq!(recent.quantile(0.5), Some(Duration::from_micros(7)));
    }
}
