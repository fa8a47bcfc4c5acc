//! How many events an epoch holds on a backlog: few at first, more while that pays, fewer where it does not.
//!
//! Reads: how long full epochs took to commit. Writes: nothing. Invariant: never fewer than [`FIRST`] and never more than
//! the configured bound; a smaller size is kept only if it costs no more time per event. It remembers no earlier life.

use std::time::Duration;

/// With so many events every life begins, and none goes below: a worker that is killed every second still gets on.
pub const FIRST: usize = 1_000;
/// A size is worse than another if an event takes so much longer in it, in percent.
const WORSE_PERCENT: u32 = 10;
/// After so many epochs what is known of the sizes is forgotten: targets change.
const REMEMBERED: u32 = 64;
/// Sizes from [`FIRST`] on, each twice the one before.
const SIZES: usize = 16;

/// The size of the epochs of one delivery.
#[derive(Debug, Clone)]
pub struct EpochSize {
    bound: usize,
    /// The committer should need no longer for an epoch, unless longer ones pay.
    interval: Duration,
    /// Which of the sizes epochs have now.
    step: usize,
    /// Nanoseconds per event, by size, as far as they were measured.
    per_event: [Option<u32>; SIZES],
    measured: u32,
}

impl EpochSize {
    /// Epochs of at most `bound` events, that should commit within about `interval`.
    #[must_use]
    pub const fn new(bound: usize, interval: Duration) -> Self {
        Self { bound, interval, step: 0, per_event: [None; SIZES], measured: 0 }
    }

    /// How many events the next epoch may hold.
    #[must_use]
    pub fn events(&self) -> usize {
        self.at(self.step)
    }

    fn at(&self, step: usize) -> usize {
        FIRST.saturating_mul(1 << step).min(self.bound)
    }

    fn can_grow(&self) -> bool {
        self.step + 1 < SIZES && self.at(self.step) < self.bound
    }

    /// An epoch of so many events was committed. One that was not full says nothing about its size.
    pub fn committed(&mut self, events: usize, took: Duration) {
        if events < self.events() {
            return;
        }
        self.measured += 1;
        if self.measured > REMEMBERED {
            (self.measured, self.per_event) = (1, [None; SIZES]);
        }
        let now = u32::try_from(took.as_nanos() / events.max(1) as u128).unwrap_or(u32::MAX);
        let before = self.per_event[self.step];
        let now = before.map_or(now, |before| before / 2 + now / 2);
        self.per_event[self.step] = Some(now);
        // A larger one pays, if an event takes less time in it, or if it commits within the interval, too. So, as long as
        // nobody has tried: the doubling of every life.
        let larger = self.per_event[(self.step + 1).min(SIZES - 1)];
        let grows = self.can_grow() && larger.is_none_or(|larger| is_worse(now, larger) || self.fits(larger));
        // A smaller one costs no more: rows are seen sooner. So where nobody has tried.
        let smaller = self.step.checked_sub(1).map(|step| self.per_event[step]);
        let shrinks = smaller.is_some_and(|smaller| smaller.is_none_or(|smaller| !is_worse(smaller, now)));
        self.step = match took <= self.interval {
            true if grows => self.step + 1,
            false if shrinks => self.step - 1,
            false if grows => self.step + 1,
            true | false => self.step,
        };
    }

    /// Whether an epoch of the next size commits within the interval, at so many nanoseconds per event.
    fn fits(&self, per_event: u32) -> bool {
        u128::from(per_event) * self.at(self.step + 1) as u128 <= self.interval.as_nanos()
    }
}

/// Whether an event takes longer, by more than chance.
fn is_worse(one: u32, than: u32) -> bool {
    u64::from(one) * 100 > u64::from(than) * u64::from(100 + WORSE_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(200);

    /// The sizes of the first epochs on a target whose commit takes so long.
    fn sizes(bound: usize, epochs: usize, commit: impl Fn(usize) -> Duration) -> Vec<usize> {
        let mut size = EpochSize::new(bound, INTERVAL);
        let mut sizes = Vec::new();
        for _ in 0..epochs {
            let events = size.events();
            sizes.push(events);
            size.committed(events, commit(events));
        }
        sizes
    }

    /// Goal: every life begins with 1,000 events and doubles them up to the bound, on a target that keeps up.
    #[test]
    fn a_fast_target_gets_epochs_that_double_up_to_the_bound() {
        let fast = |events: usize| Duration::from_micros(events as u64);
        assert_eq!(sizes(10_000, 6, fast), [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
        assert_eq!(sizes(100, 2, fast), [100, 100], "a bound below the first size is kept");
    }

    /// Goal: where an epoch's size does not change the time per event, epochs stay small, so that rows are seen soon.
    /// Method: 80 microseconds an event, as on the backlog that took 8 s an epoch.
    #[test]
    fn a_slow_target_gets_epochs_that_fit_the_interval() {
        let slow = |events: usize| Duration::from_micros(80 * events as u64);
        let sizes = sizes(100_000, 200, slow);
        let longest = sizes.iter().max().copied().unwrap_or(0);
        assert!(longest <= 4_000, "{longest} events take {:?}", slow(longest));
        let fits = sizes.iter().filter(|events| slow(**events) <= INTERVAL).count();
        assert!(fits > 150, "{sizes:?}");
    }

    /// Goal: a target that answers slowly, whatever it is given, gets large epochs. Method: half a second each.
    #[test]
    fn a_target_that_only_answers_late_gets_large_epochs() {
        let late = |events: usize| Duration::from_millis(500) + Duration::from_micros(events as u64);
        let sizes = sizes(100_000, 60, late);
        let large = sizes.iter().filter(|events| **events >= 64_000).count();
        assert!(large > 40, "{sizes:?}");
    }

    /// Goal: no epoch is smaller than the first ones, however slow the target is. Method: one second an event, for long.
    #[test]
    fn no_epoch_is_smaller_than_the_first() {
        let sizes = sizes(100_000, 300, |events| Duration::from_secs(events as u64));
        assert_eq!(sizes.iter().min(), Some(&FIRST));
        assert!(sizes.iter().filter(|events| **events == FIRST).count() > 200, "{sizes:?}");
    }

    /// Goal: an epoch that closed by time says nothing.
    #[test]
    fn an_epoch_that_was_not_full_changes_nothing() {
        let mut size = EpochSize::new(100_000, INTERVAL);
        size.committed(10, Duration::from_millis(1));
        assert_eq!(size.events(), FIRST);
    }
}
