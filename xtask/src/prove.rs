//! Builds the program under test with its fault points, and the prover; runs the one against the other.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::child::{self, cargo, target_dir};
use crate::phase::{Phases, Tally};
use crate::proof::{self, Origin};

/// What is run against what.
#[derive(Debug)]
pub(crate) struct Programs {
    hapax: PathBuf,
    prover: PathBuf,
}

/// How much is run.
#[derive(Debug)]
pub(crate) enum Scope {
    /// As much as fits, chosen by the seed.
    Slice { minutes: u32, seed: u64 },
    /// Every cell; further words for the prover.
    All(Vec<String>),
}

/// Which of the campaigns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// `hapax run`.
    Workflows,
    /// `hapax run` over files that are rotated, rewritten, moved and removed.
    Sources,
    /// `hapax broker`.
    Broker,
}

impl Programs {
    /// The program under test.
    pub(crate) fn hapax(&self) -> &Path {
        &self.hapax
    }
}

impl Subject {
    fn report_path(self) -> PathBuf {
        match self {
            Self::Workflows => target_dir().join("prove/report.json"),
            Self::Sources => target_dir().join("prove/sources.json"),
            Self::Broker => target_dir().join("prove/broker.json"),
        }
    }

    const fn phase(self) -> &'static str {
        match self {
            Self::Workflows => "crash proof",
            Self::Sources => "proof over file sources",
            Self::Broker => "crash proof of the broker",
        }
    }

    /// What the prover is asked for.
    const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Workflows => &[],
            Self::Sources => &["--sources"],
            Self::Broker => &["--broker"],
        }
    }
}

/// `cargo xtask prove [broker|sources|power] [ARGS]`: all of it, and the record in `docs/PROOF.md`.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    match words.split_first() {
        Some((&"power", rest)) => return power(rest),
        Some((&"broker", rest)) => return campaigns(&[Subject::Broker], rest),
        Some((&"sources", rest)) => return campaigns(&[Subject::Sources], rest),
        Some(_) | None => {}
    }
    campaigns(&[Subject::Workflows, Subject::Broker], words)
}

/// Power loss: apart from everything else, for it needs rights that few machines give.
fn power(words: &[&str]) -> Result<ExitCode> {
    let mut phases = Phases::default();
    phases.run("power loss", |_| {
        let programs = build()?;
        let mut prover = child::command(&programs.prover.to_string_lossy(), ["--broker", "--power", "5", "--hapax"]);
        child::run(prover.arg(&programs.hapax).args(words))
    });
    Ok(phases.finish())
}

fn campaigns(subjects: &[Subject], words: &[&str]) -> Result<ExitCode> {
    if words.iter().any(|word| matches!(*word, "--help" | "-h")) {
        child::run(&mut cargo(["run", "--quiet", "--package", "hapax-prove", "--", "--help"]))?;
        return Ok(ExitCode::SUCCESS);
    }
    let scope = Scope::All(words.iter().map(|word| (*word).to_owned()).collect());
    let origin = Origin::now()?;
    let mut phases = Phases::default();
    for subject in subjects.iter().copied() {
        phases.run(subject.phase(), |tally| {
            let programs = build()?;
            let outcome = judge(&programs, subject, &scope, tally);
            // The record of a whole run that failed is still a record; a part of a run is none.
            match (narrowed(words), read_report(subject)) {
                (None, Ok(report)) if report.get("whole") == Some(&Value::Bool(false)) => {
                    println!("{} stays as it is: so few seeds do not meet every fault", proof::PAGE);
                }
                (None, Ok(report)) => {
                    proof::write(&report, subject, &origin, &words.join(" "))?;
                    println!("wrote {}", proof::PAGE);
                }
                (Some(word), _) => println!("{} stays as it is: {word} makes this a part of the proof", proof::PAGE),
                (None, Err(error)) => println!("{} stays as it is: {error:#}", proof::PAGE),
            }
            outcome
        });
    }
    Ok(phases.finish())
}

/// The first word that makes a run less than everything.
fn narrowed<'a>(words: &[&'a str]) -> Option<&'a str> {
    let narrows =
        |word: &&&str| ["--only", "--plant", "--list", "--slice", "--power"].iter().any(|flag| word.starts_with(flag));
    words.iter().find(narrows).copied()
}

/// Builds both. The program under test is copied away, so that a build meanwhile does not swap it.
pub(crate) fn build() -> Result<Programs> {
    child::run(&mut cargo(["build", "--package", "hapax", "--features", "fault"]))?;
    let built = target_dir().join("debug/hapax");
    let hapax = target_dir().join("prove/hapax");
    std::fs::create_dir_all(target_dir().join("prove")).context("could not create the folder target/prove")?;
    std::fs::copy(&built, &hapax).with_context(|| format!("could not copy {}", built.display()))?;
    child::run(&mut cargo(["build", "--package", "hapax-prove"]))?;
    Ok(Programs { hapax, prover: target_dir().join("debug/hapax-prove") })
}

/// Runs the prover and adds its cells to the tally.
pub(crate) fn judge(programs: &Programs, subject: Subject, scope: &Scope, tally: &mut Tally) -> Result<()> {
    let path = subject.report_path();
    if path.exists() {
        std::fs::remove_file(&path).context("could not remove the report of an earlier run")?;
    }
    let mut prover = child::command(&programs.prover.to_string_lossy(), ["--hapax"]);
    prover.arg(&programs.hapax).arg("--json").arg(path);
    prover.args(subject.flags());
    match scope {
        Scope::Slice { minutes, seed } => {
            prover.args(["--slice", "--minutes", &minutes.to_string(), "--seed", &seed.to_string()]);
        }
        Scope::All(words) => {
            // Seeds have no end; how many there are is said by a word, or by the prover.
            let all = if subject == Subject::Sources { None } else { Some("--all") };
            prover.args(all).args(words);
        }
    }
    let outcome = child::run(&mut prover);
    if let Ok(report) = read_report(subject) {
        *tally = proof::tally(&report);
    }
    outcome
}

fn read_report(subject: Subject) -> Result<Value> {
    let path = subject.report_path();
    let text = std::fs::read_to_string(&path).with_context(|| format!("no report at {}", path.display()))?;
    let value = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a part of the proof is never recorded as the whole. Method: words that narrow, and words that do not.
    #[test]
    fn only_a_whole_run_is_recorded() {
        assert_eq!(narrowed(&["--seed", "7", "--jobs", "2", "--keep"]), None);
        assert_eq!(narrowed(&["--seed", "7", "--only", "sql"]), Some("--only"));
        assert_eq!(narrowed(&["--plant=no-fence"]), Some("--plant=no-fence"));
    }
}
