//! `cargo xtask test`: everything that must pass before a change lands.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};

use crate::child::{self, cargo};
use crate::load::Load;
use crate::phase::{Phases, Tally};
use crate::prove::{self, Scope, Subject};
use crate::services::Services;
use crate::{Usage, edition, peers, tidy};

/// For all three databases together; MariaDB's part of it is about a minute and a half.
const SLICE_MINUTES: u32 = 7;

/// For both stores of the broker, its planted bugs among them.
const BROKER_MINUTES: u32 = 5;

/// For file sources, those cases included that wait for the comparison every 30 seconds.
const SOURCES_MINUTES: u32 = 1;

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    seed: Option<u64>,
    slice: Slice,
    machine: Machine,
}

/// What else the machine does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Machine {
    Quiet,
    /// Busy processes beside everything: tests must wait for what they need, however long it takes.
    Busy,
}

/// Whether the crash proof's slice runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slice {
    Run,
    LeaveOut,
}

impl Options {
    /// `[--quick] [--busy] [--seed N]`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self { seed: None, slice: Slice::Run, machine: Machine::Quiet };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--quick" => options.slice = Slice::LeaveOut,
                "--busy" => options.machine = Machine::Busy,
                "--seed" => {
                    let number = words.next().and_then(|number| number.parse().ok());
                    options.seed = Some(number.context(Usage("--seed needs a number".to_owned()))?);
                }
                other => bail!(Usage(format!("test takes --quick, --busy and --seed N, not \"{other}\""))),
            }
        }
        Ok(options)
    }
}

/// Runs all phases, each to its end.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let seed = options.seed.unwrap_or_else(seed_of_commit);
    println!("seed {seed} (repeat with `cargo xtask test --seed {seed}`)");
    let _load = match options.machine {
        Machine::Quiet => None,
        Machine::Busy => Some(Load::start()?),
    };
    let mut phases = Phases::default();
    phases.run("tidy", |tally| {
        tally.failed = tidy::inspect()? as u64;
        tally.passed = tidy::RULES.len() as u64 - tally.failed;
        Ok(())
    });
    phases.run("embedded edition", |_| edition::check());
    key_vectors(&mut phases);
    let mut services = None;
    phases.run("servers", |_| {
        services = Some(Services::start()?);
        Ok(())
    });
    phases.run("tests", |tally| {
        let mut tests = cargo(["test", "--workspace", "--no-fail-fast"]);
        tests.envs(services.iter().flat_map(Services::environment));
        child::watch(&mut tests, |line| add_result(tally, line))
    });
    if let Some(services) = &services {
        own_mysql(services, &mut phases);
    }
    match options.slice {
        Slice::Run => {
            phases.run("crash proof, a slice", |tally| {
                let scope = Scope::Slice { minutes: SLICE_MINUTES, seed };
                prove::build().and_then(|programs| prove::judge(&programs, Subject::Workflows, &scope, tally))
            });
            phases.run("proof over file sources, a slice", |tally| {
                let scope = Scope::Slice { minutes: SOURCES_MINUTES, seed };
                prove::build().and_then(|programs| prove::judge(&programs, Subject::Sources, &scope, tally))
            });
            phases.run("crash proof of the broker, a slice", |tally| {
                let scope = Scope::Slice { minutes: BROKER_MINUTES, seed };
                prove::build().and_then(|programs| prove::judge(&programs, Subject::Broker, &scope, tally))
            });
            phases.run("the broker beside its peers, a glance", |_| {
                prove::build().and_then(|programs| peers::glance(programs.hapax()))
            });
        }
        Slice::LeaveOut => phases.leave_out("the slices of the crash proof, and the glance at peers (--quick)"),
    }
    Ok(phases.finish())
}

/// The published keys once more, by other hands than those that made them: the tests only compare them with our own code.
fn key_vectors(phases: &mut Phases) {
    let python = |word: &str| child::command("python3", [word]);
    if python("--version").output().is_ok_and(|output| output.status.success()) {
        phases.run("key vectors in Python", |_| child::run(&mut python("docs/formats/check_vectors.py")));
    } else {
        phases.leave_out("the key vectors in Python (python3 is not installed)");
    }
}

/// The tests that need MySQL's own server. They are ignored elsewhere, so that none of them can pass without it; where
/// there is none, they are counted and named as left out.
const OWN_MYSQL: [&str; 7] = ["test", "-p", "hapax-connect", "--lib", "mysqls_own_server", "--", "--ignored"];

fn own_mysql(services: &Services, phases: &mut Phases) {
    let Some(why) = services.left_out() else {
        phases.run("tests over MySQL's own server", |tally| {
            child::watch(cargo(OWN_MYSQL).envs(services.environment()), |line| add_result(tally, line))?;
            ensure!(tally.passed > 0, "no test is called mysqls_own_server… any more");
            Ok(())
        });
        return;
    };
    match child::read(cargo(OWN_MYSQL).arg("--list")) {
        Ok(list) => phases.leave_out(&format!("{} {why}", listed(&list))),
        Err(error) => phases.leave_out(&format!("an unknown number of {why}; {error:#}")),
    }
}

/// How many tests a list of libtest's names.
fn listed(list: &str) -> usize {
    list.lines().filter(|line| line.ends_with(": test")).count()
}

/// Adds `test result: ok. 12 passed; 0 failed; …` to the tally.
fn add_result(tally: &mut Tally, line: &str) {
    let Some(result) = line.trim_start().strip_prefix("test result: ") else { return };
    let count = |word: &str| {
        let before = result.split(&format!(" {word}")).next()?;
        before.rsplit([' ', ';']).next()?.parse::<u64>().ok()
    };
    tally.passed += count("passed").unwrap_or(0);
    tally.failed += count("failed").unwrap_or(0);
}

/// The commit decides which slice runs: the same commit, the same slice, and another one with the next commit.
fn seed_of_commit() -> u64 {
    let commit = child::read(&mut child::command("git", ["rev-parse", "HEAD"])).unwrap_or_default();
    commit.get(..8).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the sum is that of the test programs. Method: lines as libtest prints them.
    #[test]
    fn results_of_test_programs_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            add_result(&mut tally, line);
        }
        assert_eq!(tally, Tally { passed: 15, failed: 2 });
    }

    /// Goal: tests that are left out are counted. Method: a list as libtest prints it.
    #[test]
    fn a_list_of_tests_is_counted() {
        assert_eq!(listed("a::mysqls_own_server_is: test\nb: test\n\n2 tests, 0 benchmarks\n"), 2);
    }

    /// Goal: wrong words are refused as usage. Method: all that is legal, and what is not.
    #[test]
    fn options_are_read_or_refused() {
        let read = |words: &[&str]| Options::parse(words).map_err(|error| error.to_string());
        let plain = Options { seed: None, slice: Slice::Run, machine: Machine::Quiet };
        assert_eq!(read(&[]), Ok(plain));
        let all = Options { seed: Some(7), slice: Slice::LeaveOut, machine: Machine::Busy };
        assert_eq!(read(&["--seed", "7", "--quick", "--busy"]), Ok(all));
        assert!(read(&["--seed"]).is_err());
        assert!(read(&["--fast"]).is_err());
    }
}
