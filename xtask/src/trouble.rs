//! `cargo xtask trouble`: trouble in mass at its full size. The tests of `hapax` hold a slice of the same.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::Usage;
use crate::child::{cargo, run as run_child};
use crate::phase::Phases;
use crate::services::Services;

/// How many dead letters there are unless somebody says otherwise.
const LETTERS: u64 = 1_000_000;

/// Runs it; the tests print what it took.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let letters = letters(words)?;
    let services = Services::start()?;
    let mut phases = Phases::default();
    phases.run(&format!("{letters} dead letters"), |_| {
        let mut test = cargo([
            "test",
            "--release",
            "--package",
            "hapax",
            "--test",
            "main",
            "trouble::letters_in_mass_are_replayed",
        ]);
        test.args(["--", "--nocapture", "--test-threads", "1"]);
        test.envs(services.environment()).env("HAPAX_TROUBLE_LETTERS", letters.to_string());
        run_child(&mut test)
    });
    Ok(phases.finish())
}

fn letters(words: &[&str]) -> Result<u64> {
    let number = match words {
        [] => return Ok(LETTERS),
        ["--letters", number] => number.parse().ok().filter(|letters| *letters >= 1000),
        _ => None,
    };
    match number {
        Some(letters) => Ok(letters),
        None => bail!(Usage("trouble takes --letters and a number from 1000 on, or nothing".to_owned())),
    }
}
