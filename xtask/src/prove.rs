//! Builds the program under test with its fault points, and the prover; runs the one against the other.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::Usage;
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
    /// `hapax broker` through cuts of the power: apart from everything else, for it needs rights that few machines give.
    Power,
}

/// Seeds of a whole run, unless it says otherwise.
const ROUNDS: u64 = 3;

/// What a campaign was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// The first seed.
    seed: u64,
    /// How many seeds.
    rounds: u64,
    /// Words for the prover.
    words: Vec<String>,
}

impl Plan {
    /// Takes `--seed N` and `--rounds N` out of the words.
    fn parse(words: &[&str]) -> Result<Self> {
        let mut plan = Self { seed: 1, rounds: ROUNDS, words: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, glued) = word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
            let number = match name {
                "--seed" => &mut plan.seed,
                "--rounds" => &mut plan.rounds,
                _ => {
                    plan.words.push((*word).to_owned());
                    continue;
                }
            };
            let value = glued.or_else(|| words.next().copied()).and_then(|value| value.parse().ok());
            *number = value.context(Usage(format!("{name} needs a number")))?;
        }
        Ok(plan)
    }

    /// What the prover is told, seed by seed. File sources and power loss go through seeds by themselves.
    fn scopes(&self, subject: Subject) -> Vec<Scope> {
        let rounds = match subject {
            Subject::Workflows | Subject::Broker => self.rounds.max(1),
            Subject::Sources | Subject::Power => 1,
        };
        let seeds = self.seed..self.seed.saturating_add(rounds);
        let words = |seed: u64| self.words.iter().cloned().chain(["--seed".to_owned(), seed.to_string()]).collect();
        seeds.map(|seed| Scope::All(words(seed))).collect()
    }
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
            Self::Power => target_dir().join("prove/power.json"),
        }
    }

    const fn phase(self) -> &'static str {
        match self {
            Self::Workflows => "crash proof",
            Self::Sources => "proof over file sources",
            Self::Broker => "crash proof of the broker",
            Self::Power => "power loss",
        }
    }

    /// What the prover is asked for.
    const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Workflows => &[],
            Self::Sources => &["--sources"],
            Self::Broker => &["--broker"],
            Self::Power => &["--broker", "--power", "5"],
        }
    }
}

/// `cargo xtask prove [broker|sources|power] [ARGS]`: all of it, and the record in `docs/PROOF.md`.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    match words.split_first() {
        Some((&"power", rest)) => return campaigns(&[Subject::Power], rest),
        Some((&"broker", rest)) => return campaigns(&[Subject::Broker], rest),
        Some((&"sources", rest)) => return campaigns(&[Subject::Sources], rest),
        Some(_) | None => {}
    }
    campaigns(&[Subject::Workflows, Subject::Sources, Subject::Broker], words)
}

fn campaigns(subjects: &[Subject], words: &[&str]) -> Result<ExitCode> {
    if words.iter().any(|word| matches!(*word, "--help" | "-h")) {
        child::run(&mut cargo(["run", "--quiet", "--package", "hapax-prove", "--", "--help"]))?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = Plan::parse(words)?;
    let origin = Origin::now()?;
    let mut phases = Phases::default();
    for subject in subjects.iter().copied() {
        phases.run(subject.phase(), |tally| {
            let programs = build()?;
            let (mut outcome, mut reports) = (Ok(()), Vec::new());
            for scope in plan.scopes(subject) {
                outcome = outcome.and(judge(&programs, subject, &scope, &mut Tally::default()));
                reports.push(read_report(subject));
            }
            // The record of a whole run that failed is still a record; a part of a run is none.
            let reports = reports.into_iter().collect::<Result<Vec<Value>>>().map(proof::joined);
            if let Ok(report) = &reports {
                *tally = proof::tally(report);
            }
            match (narrowed(words), reports) {
                (None, Ok(report)) if report.get("whole") == Some(&Value::Bool(false)) => {
                    println!("{} stays as it is: so few seeds do not meet every fault", proof::PAGE);
                }
                (None, Ok(report)) => {
                    let page = proof::write(&report, subject, &origin, &words.join(" "))?;
                    println!("wrote {}", page.display());
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
            let all = matches!(subject, Subject::Workflows | Subject::Broker).then_some("--all");
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

    /// Goal: a whole run has several seeds. Method: the words of a command, and what the prover is told.
    #[test]
    fn a_whole_run_has_several_seeds() {
        let told = |words: &[&str], subject| {
            let scopes = Plan::parse(words).expect("right words").scopes(subject);
            let words = scopes.iter().map(|scope| match scope {
                Scope::All(words) => words.join(" "),
                Scope::Slice { .. } => String::new(),
            });
            words.collect::<Vec<_>>()
        };
        assert_eq!(told(&[], Subject::Workflows), ["--seed 1", "--seed 2", "--seed 3"]);
        assert_eq!(
            told(&["--jobs", "2", "--seed=7", "--rounds", "2"], Subject::Broker),
            ["--jobs 2 --seed 7", "--jobs 2 --seed 8"]
        );
        assert_eq!(told(&["--seed", "9"], Subject::Power), ["--seed 9"]);
        assert!(Plan::parse(&["--rounds"]).is_err() && Plan::parse(&["--seed", "x"]).is_err());
    }

    /// Goal: a part of the proof is never recorded as the whole. Method: words that narrow, and words that do not.
    #[test]
    fn only_a_whole_run_is_recorded() {
        assert_eq!(narrowed(&["--seed", "7", "--jobs", "2", "--keep"]), None);
        assert_eq!(narrowed(&["--seed", "7", "--only", "sql"]), Some("--only"));
        assert_eq!(narrowed(&["--plant=no-fence"]), Some("--plant=no-fence"));
    }
}
