//! How long to wait before trying again, and when to stop trying.

use std::time::{Duration, Instant};

use hapax_model::delivery::Retries;

/// The shortest wait: full jitter may draw zero, and nothing is gained by asking at once.
const SHORTEST: Duration = Duration::from_millis(5);

/// One run of failures of the same thing. Time and chance are passed in.
///
/// A source or target that is away blames no event, so `maxAttempts` does not count here; `giveUpAfter` bounds it.
#[derive(Debug)]
pub struct Backoff {
    steps: Vec<Duration>,
    give_up_after: Duration,
    first_failure: Option<Instant>,
    attempts: u32,
}

impl Backoff {
    /// No failure yet.
    #[must_use]
    pub fn new(retries: &Retries) -> Self {
        let give_up_after = if retries.enabled { retries.give_up_after } else { Duration::ZERO };
        Self { steps: retries.backoff.clone(), give_up_after, first_failure: None, attempts: 0 }
    }

    /// How often it has failed in a row.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// It failed at `now`: how long to wait, or `None` if it is time to give up. `chance` is between 0 and 1.
    pub fn failed(&mut self, now: Instant, chance: f64) -> Option<Duration> {
        let since = now.duration_since(*self.first_failure.get_or_insert(now));
        let left = self.give_up_after.checked_sub(since).filter(|left| !left.is_zero())?;
        let step = self.steps.get(self.attempts as usize).or(self.steps.last()).copied().unwrap_or(SHORTEST);
        self.attempts = self.attempts.saturating_add(1);
        Some(step.mul_f64(chance.clamp(0.0, 1.0)).max(SHORTEST).min(left))
    }

    /// It worked.
    pub const fn succeeded(&mut self) {
        self.first_failure = None;
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the schedule is followed, its last step repeats, and time ends it. Method: walk a clock by hand.
    #[test]
    fn an_outage_is_bounded_by_time_and_not_by_attempts() {
        let steps = vec![Duration::from_millis(100), Duration::from_millis(200)];
        let retries =
            Retries { backoff: steps, give_up_after: Duration::from_secs(10), max_attempts: 2, ..Retries::default() };
        let (mut backoff, start) = (Backoff::new(&retries), Instant::now());
        let waits: Vec<_> = [0, 1, 2, 3].map(|s| backoff.failed(start + Duration::from_secs(s), 1.0)).to_vec();
        assert_eq!(waits, [100, 200, 200, 200].map(|ms| Some(Duration::from_millis(ms))));
        assert_eq!(backoff.failed(start + Duration::from_millis(9_900), 1.0), Some(Duration::from_millis(100)));
        assert_eq!(backoff.failed(start + Duration::from_secs(10), 1.0), None);
        backoff.succeeded();
        assert_eq!(backoff.failed(start + Duration::from_secs(20), 0.5), Some(Duration::from_millis(50)));
    }

    /// Goal: `retries.enabled: false` means that the first failure stops.
    #[test]
    fn retries_can_be_switched_off() {
        let retries = Retries { enabled: false, ..Retries::default() };
        assert_eq!(Backoff::new(&retries).failed(Instant::now(), 1.0), None);
    }
}
