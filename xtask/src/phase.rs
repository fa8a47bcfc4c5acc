//! Phases of a chore: each is timed and counted, none hides what a later one would find.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

/// What a phase counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

#[derive(Debug)]
struct Phase {
    name: String,
    tally: Tally,
    time: Duration,
}

/// The phases that have run, in order.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    done: Vec<Phase>,
    left_out: Vec<String>,
}

impl Phases {
    /// Runs one phase. Work that counts nothing counts as one; an error that nobody counted counts as one failure.
    pub(crate) fn run(&mut self, name: &str, work: impl FnOnce(&mut Tally) -> Result<()>) {
        println!("\n== {name}");
        let start = Instant::now();
        let mut tally = Tally::default();
        match work(&mut tally) {
            Ok(()) if tally == Tally::default() => tally.passed = 1,
            Ok(()) => {}
            Err(error) => {
                eprintln!("error: {error:#}");
                tally.failed = tally.failed.max(1);
            }
        }
        let phase = Phase { name: name.to_owned(), tally, time: start.elapsed() };
        println!("-- {name}: {}, {:.1} s", phase.tally, phase.time.as_secs_f64());
        self.done.push(phase);
    }

    /// Notes what did not run, and why: silence would look like success.
    pub(crate) fn leave_out(&mut self, what: &str) {
        self.left_out.push(what.to_owned());
    }

    /// Prints the summary; its last line is the sum.
    pub(crate) fn finish(self) -> ExitCode {
        println!("\n{}", self.summary());
        if self.total().failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn total(&self) -> Tally {
        let add = |sum: Tally, phase: &Phase| Tally {
            passed: sum.passed + phase.tally.passed,
            failed: sum.failed + phase.tally.failed,
        };
        self.done.iter().fold(Tally::default(), add)
    }

    fn summary(&self) -> String {
        let width = self.done.iter().map(|phase| phase.name.len()).max().unwrap_or(0);
        let mut lines: Vec<String> = self
            .done
            .iter()
            .map(|phase| format!("{:width$}  {:>7.1} s  {}", phase.name, phase.time.as_secs_f64(), phase.tally))
            .collect();
        lines.extend(self.left_out.iter().map(|what| format!("left out: {what}")));
        lines.push(self.total().to_string());
        lines.join("\n")
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a phase that breaks is counted and the next one still runs. Method: one of each kind.
    #[test]
    fn the_last_line_sums_up_all_phases() {
        let mut phases = Phases::default();
        phases.run("counts", |tally| {
            *tally = Tally { passed: 5, failed: 2 };
            Ok(())
        });
        phases.run("breaks", |tally| {
            tally.passed = 3;
            anyhow::bail!("no")
        });
        phases.run("plain", |_| Ok(()));
        phases.leave_out("the slice (--quick)");
        let summary = phases.summary();
        assert!(summary.ends_with("left out: the slice (--quick)\n9 passed, 3 failed"), "{summary}");
        assert_eq!(summary.lines().count(), 5);
    }
}
