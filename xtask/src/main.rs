//! Project chores. `cargo xtask` alone says which there are.
//!
//! Reads: the command line, the tree. Writes: `docs/PROOF.md`, the tidy lists, nothing else.
//! Not here: anything a user of Hapax needs; that is in the binary `hapax`.

mod bench;
mod check;
mod child;
mod coverage;
mod edition;
mod load;
mod peers;
mod phase;
mod proof;
mod proof_sources;
mod prove;
mod services;
mod suite;
mod tidy;
mod tree;
mod trouble;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
Project chores.

usage: cargo xtask COMMAND

  test [--quick] [--busy] [--seed N]
                              everything that must pass: tidy rules, all tests, a slice of the crash proof (about
                              8 minutes, chosen by the seed), that the embedded edition compiles and is small.
                              --quick leaves the slice out. --busy runs all of it beside four busy processes, as on a
                              machine that has other work. The seed comes from the commit unless you give one; it is
                              printed.
  check                       format, lints (also with fault points, and of the embedded edition), documentation links,
                              tidy rules; cargo-deny and typos where they are installed
  tidy [--write]              only the tidy rules (seconds). --write renews the index of error pages and lowers the
                              size lists to what the tree has now; it never raises them
  bench [NAME]                all benchmarks, or the one of that name; `bench --list` names them
  prove [ARGS]                the whole crash proof, with three seeds (--rounds N, from --seed N on); writes docs/PROOF.md if the
                              tree is committed, else target/prove/PROOF.md. ARGS go to hapax-prove
  prove broker [ARGS]         only the broker's part of it
  prove sources [ARGS]        only file sources: files rotated, rewritten, moved and removed while they are read. --seeds COUNT
                              cases from --seed N on
  prove power [ARGS]          the broker's store through cuts of the power: ext4 on a loop device, shut down without a
                              flush. Needs root and loop devices; part of nothing else
  peers [--rounds N] [PART…]  our broker, optimised, beside Apache Kafka, by librdkafka and Java's producer: start, rates,
                              latency, idempotence, retention, snapshot, long (10 GB). Needs Java, Maven and a C compiler
  trouble [--letters N]       trouble in mass, on an optimised build: a million dead letters written, listed, replayed at a
                              rate, killed in the middle, resumed and counted, on SQLite and PostgreSQL
  services -- COMMAND…        runs COMMAND with PostgreSQL and MariaDB at hand: HAPAX_TEST_POSTGRES and HAPAX_TEST_MYSQL
                              name them to tests
  coverage                    how much of the specification is shown, departed from, or still to come

Start with `cargo xtask test --quick`. Exit code: 0 all is well, 1 something failed, 2 wrong usage.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

fn dispatch(words: &[&str]) -> Result<ExitCode> {
    let (command, rest) = words.split_first().unwrap_or((&"help", &[]));
    if rest.iter().any(|word| matches!(*word, "--help" | "-h")) && !matches!(*command, "prove" | "services") {
        return dispatch(&[]);
    }
    match *command {
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        "test" => suite::run(&suite::Options::parse(rest)?),
        "check" => no_more(rest).and_then(|()| check::run()),
        "tidy" => tidy::command(rest),
        "bench" => bench::run(rest),
        "prove" => prove::run(rest),
        "peers" => peers::run(rest),
        "trouble" => trouble::run(rest),
        "services" => services::run(rest),
        "coverage" => no_more(rest).and_then(|()| coverage::run()),
        other => bail!(Usage(format!("there is no chore \"{other}\"; `cargo xtask` lists them"))),
    }
}

fn no_more(rest: &[&str]) -> Result<()> {
    match rest.first() {
        None => Ok(()),
        Some(word) => bail!(Usage(format!("this chore takes no \"{word}\"; `cargo xtask` shows what each takes"))),
    }
}

/// The command line was wrong, not the tree.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a wrong word teaches and is told from a failure. Method: unknown chores and words, and the help.
    #[test]
    fn wrong_usage_is_told_from_failure() {
        for words in [
            &["tests"][..],
            &["check", "now"],
            &["tidy", "--all"],
            &["test", "--seed", "x"],
            &["bench", "a", "b"],
            &["services", "--"],
            &["peers", "--rounds"],
            &["trouble", "--letters"],
            &["trouble", "now"],
        ] {
            assert!(dispatch(words).is_err_and(|error| error.is::<Usage>()), "{words:?}");
        }
        for words in [&[][..], &["--help"], &["test", "--help"]] {
            assert!(dispatch(words).is_ok(), "{words:?}");
        }
    }

    /// Goal: the help names every chore. Method: the words that `dispatch` knows.
    #[test]
    fn the_help_names_every_chore() {
        for chore in ["test", "check", "tidy", "bench", "prove", "peers", "trouble", "services", "coverage"] {
            assert!(HELP.contains(&format!("\n  {chore} ")), "{chore}");
        }
    }
}
