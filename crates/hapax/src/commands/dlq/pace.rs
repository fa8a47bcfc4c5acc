//! How fast letters are replayed, and how far it is: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use hapax_model::units::{Rate, print_duration};
use indicatif::{ProgressBar, ProgressStyle};

/// How many letters one transaction replays at most.
pub(super) const PAGE: usize = 1000;
/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(2);
/// With a rate, so many transactions a second: a slow replay goes evenly instead of in bursts.
const STEPS_PER_SECOND: u64 = 4;

/// Whether somebody watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watched {
    /// By a person.
    Yes,
    /// A program reads the answer at the end.
    No,
}

/// The pace of one replay.
pub(super) struct Pace {
    rate: Option<Rate>,
    total: u64,
    done: u64,
    began: Instant,
    said: Instant,
    bar: Option<ProgressBar>,
    watched: Watched,
}

impl Pace {
    /// Begins to count `total` letters.
    pub(super) fn begin(total: u64, rate: Option<Rate>, watched: Watched) -> Self {
        let terminal = watched == Watched::Yes && std::io::stderr().is_terminal();
        let bar = terminal.then(|| {
            let style = ProgressStyle::with_template("{bar:40} {percent:>3}% {msg}").expect("the template is right");
            ProgressBar::new(total).with_style(style)
        });
        let now = Instant::now();
        Self { rate, total, done: 0, began: now, said: now, bar, watched }
    }

    /// How many letters the next transaction takes.
    pub(super) fn page(&self) -> usize {
        let per_second = |rate: Rate| rate.count / rate.seconds / STEPS_PER_SECOND;
        let page = self.rate.map_or(PAGE as u64, per_second).clamp(1, PAGE as u64);
        usize::try_from(page).unwrap_or(PAGE)
    }

    /// So many more letters are dealt with. Waits until the rate allows the next ones.
    pub(super) async fn passed(&mut self, letters: usize) {
        self.done += letters as u64;
        self.say();
        if let Some(rate) = self.rate {
            let due = Duration::from_nanos(
                u64::try_from(
                    u128::from(self.done) * u128::from(rate.seconds) * 1_000_000_000 / u128::from(rate.count),
                )
                .unwrap_or(u64::MAX),
            );
            tokio::time::sleep(due.saturating_sub(self.began.elapsed())).await;
        }
    }

    fn say(&mut self) {
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.done);
                bar.set_message(self.line());
            }
            None if self.watched == Watched::Yes && self.said.elapsed() >= LINE_INTERVAL => {
                self.said = Instant::now();
                eprintln!("{}", self.line());
            }
            None => {}
        }
    }

    fn line(&self) -> String {
        let seconds = self.began.elapsed().as_secs_f64().max(0.001);
        let rate = self.done as f64 / seconds;
        let left = self.total.saturating_sub(self.done) as f64 / rate.max(0.001);
        // Rounded up: while letters are left, time is.
        let left = print_duration(Duration::from_secs(left.ceil() as u64));
        format!("{} of {} letters, {rate:.0}/s, {left} left", self.done, self.total)
    }

    /// Takes the bar off the screen.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: &str) -> Pace {
        Pace::begin(100, Some(rate.parse().expect("a rate")), Watched::No)
    }

    /// Goal: a rate is kept evenly, in pages that fit it. Method: pages of several rates; time for fifty letters.
    #[tokio::test]
    async fn a_rate_is_kept() {
        assert_eq!((pace("1/s").page(), pace("400/s").page(), pace("1000000/s").page()), (1, 100, PAGE));
        assert_eq!(Pace::begin(1, None, Watched::No).page(), PAGE);
        let mut slow = pace("500/s");
        let before = Instant::now();
        slow.passed(50).await;
        assert!(before.elapsed() > Duration::from_millis(90), "{:?}", before.elapsed());
        assert!(slow.line().starts_with("50 of 100 letters, "), "{}", slow.line());
    }

    /// Goal: where there is no terminal, a line every two seconds says how far it is. Method: a step before and after they have
    /// passed, and one that nobody watches.
    #[test]
    fn a_line_comes_every_two_seconds() {
        for watched in [Watched::Yes, Watched::No] {
            let mut pace = Pace { bar: None, ..Pace::begin(100, None, watched) };
            let just_said = pace.said;
            pace.say();
            assert!(pace.said == just_said || just_said.elapsed() >= Duration::from_secs(2), "too soon");
            let long_ago = Instant::now().checked_sub(Duration::from_secs(2)).expect("the machine runs for longer");
            pace.said = long_ago;
            pace.say();
            assert_eq!(pace.said > long_ago, watched == Watched::Yes);
        }
    }

    /// Goal: while letters are left, time is left. Method: most of them within a moment, then all.
    #[tokio::test]
    async fn the_time_that_is_left_is_never_nothing_before_the_end() {
        let mut quick = Pace::begin(10_530, None, Watched::No);
        quick.passed(10_000).await;
        assert!(quick.line().ends_with(", 1s left"), "{}", quick.line());
        quick.passed(530).await;
        assert!(quick.line().ends_with(", 0ms left"), "{}", quick.line());
    }
}
