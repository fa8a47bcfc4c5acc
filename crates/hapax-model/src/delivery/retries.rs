//! When a failed attempt is tried again, and when not any more.
//!
//! Reads: how many attempts were made, how long ago the first was, and a random number that the caller draws.
//! Invariant: never more than `max_attempts` attempts, and none after `give_up_after`.

use std::time::Duration;

/// `retries:` of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retries {
    /// Off means one attempt.
    pub enabled: bool,
    /// How many attempts in all; the first is one of them.
    pub max_attempts: u32,
    /// The longest wait after the first, second, … failed attempt; the last one repeats.
    pub backoff: Vec<Duration>,
    /// Counted from the first attempt.
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

impl Retries {
    /// How long to wait after attempt number `attempt` (the first is 1) failed, or `None` if it was the last.
    ///
    /// Full jitter: `jitter`, drawn from 0 to 1, is the part of the backoff that is waited, so that many workers that
    /// failed together do not come back together.
    #[must_use]
    pub fn delay(&self, attempt: u32, jitter: f64) -> Option<Duration> {
        if !self.enabled || attempt >= self.max_attempts {
            return None;
        }
        let at = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        let longest = self.backoff.get(at).or(self.backoff.last()).copied().unwrap_or(Duration::ZERO);
        let part = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 1.0 };
        Some(Duration::try_from_secs_f64(longest.as_secs_f64() * part).unwrap_or(longest))
    }

    /// The same, when the first attempt was `since_first` ago: `None` once `give_up_after` has passed, and no wait
    /// beyond it, so that the last attempt comes at that moment at the latest.
    #[must_use]
    pub fn delay_within(&self, attempt: u32, jitter: f64, since_first: Duration) -> Option<Duration> {
        let left = self.give_up_after.checked_sub(since_first).filter(|left| !left.is_zero())?;
        self.delay(attempt, jitter).map(|delay| delay.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(delay: Option<Duration>) -> Option<u128> {
        delay.map(|d| d.as_millis())
    }

    /// Goal: attempts include the first, and the schedule is the configured one. Method: all attempts of the default.
    #[test]
    fn five_attempts_wait_four_times() {
        let retries = Retries::default();
        let waits: Vec<_> = (1..=6).map(|attempt| millis(retries.delay(attempt, 1.0))).collect();
        assert_eq!(waits, [Some(1000), Some(2000), Some(5000), Some(10_000), None, None]);
    }

    /// Goal: the last entry repeats, an empty list does not wait, and switched off means one attempt.
    #[test]
    fn the_last_backoff_repeats() {
        let short = Retries { max_attempts: 4, backoff: vec![Duration::from_millis(7)], ..Retries::default() };
        assert_eq!((1..=4).map(|a| millis(short.delay(a, 1.0))).collect::<Vec<_>>(), [Some(7), Some(7), Some(7), None]);
        assert_eq!(Retries { backoff: vec![], ..short.clone() }.delay(1, 1.0), Some(Duration::ZERO));
        assert_eq!(Retries { enabled: false, ..short }.delay(1, 1.0), None);
    }

    /// Goal: jitter takes a part of the wait, and a wrong number cannot break it. Method: inside, outside, not a number.
    #[test]
    fn jitter_is_a_part_of_the_whole() {
        let retries = Retries::default();
        for (jitter, expected) in [(0.0, 0), (0.25, 500), (1.0, 2000), (7.0, 2000), (-1.0, 0), (f64::NAN, 2000)] {
            assert_eq!(millis(retries.delay(2, jitter)), Some(expected), "{jitter}");
        }
    }

    /// Goal: nothing is tried after `giveUpAfter`. Method: before, just before, at, after.
    #[test]
    fn the_last_attempt_comes_when_time_is_up() {
        let retries = Retries { give_up_after: Duration::from_secs(10), ..Retries::default() };
        let after =
            |seconds_tenths: u64| millis(retries.delay_within(4, 1.0, Duration::from_millis(seconds_tenths * 100)));
        assert_eq!([after(0), after(95), after(100), after(999)], [Some(10_000), Some(500), None, None]);
        assert_eq!(retries.delay_within(5, 1.0, Duration::ZERO), None);
    }
}
