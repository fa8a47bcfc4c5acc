//! `cargo xtask peers`: an optimised build of our broker beside Apache Kafka, measured by clients of other people.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::Usage;
use crate::child::{cargo, command, run as run_child, target_dir};
use crate::phase::Phases;

/// Of every measurement, unless somebody says otherwise.
const ROUNDS: u32 = 3;

/// Builds both programs, and runs the one on the other.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let (rounds, parts) = rounds(words)?;
    let mut phases = Phases::default();
    phases.run("the broker beside its peers", |_| {
        run_child(&mut cargo(["build", "--release", "--package", "hapax"]))?;
        measure(&target_dir().join("release/hapax"), rounds, parts)
    });
    Ok(phases.finish())
}

/// A moment of it, to see that it still works.
pub(crate) fn glance(hapax: &Path) -> Result<()> {
    measure(hapax, 1, &["glance"])
}

fn measure(hapax: &Path, rounds: u32, parts: &[&str]) -> Result<()> {
    run_child(&mut cargo(["build", "--package", "hapax-conform"]))?;
    let mut conform = command(&target_dir().join("debug/hapax-conform").to_string_lossy(), ["peers"]);
    run_child(conform.arg(hapax).arg(rounds.to_string()).args(parts))
}

/// The number of rounds, and the words that are left.
fn rounds<'a>(words: &'a [&'a str]) -> Result<(u32, &'a [&'a str])> {
    match words {
        ["--rounds", rest @ ..] => {
            let number =
                rest.first().and_then(|number| number.parse().ok()).filter(|rounds| (1..=100).contains(rounds));
            Ok((number.context(Usage("--rounds needs a number from 1 to 100".to_owned()))?, &rest[1..]))
        }
        parts => Ok((ROUNDS, parts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: rounds come first, parts after them. Method: with and without, and what is no number.
    #[test]
    fn rounds_and_parts_are_told_apart() {
        assert!(rounds(&["latency"]).is_ok_and(|found| found == (ROUNDS, &["latency"][..])));
        assert!(rounds(&["--rounds", "5", "rates"]).is_ok_and(|found| found == (5, &["rates"][..])));
        assert!(rounds(&["--rounds", "0"]).is_err_and(|error| error.is::<Usage>()));
    }
}
