//! `cargo xtask check`: what a reviewer should not have to say.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::child::{cargo, command, installed, run as run_child};
use crate::phase::Phases;
use crate::tidy;

/// Runs all checks, each to its end.
pub(crate) fn run() -> Result<ExitCode> {
    let mut phases = Phases::default();
    phases.run("tidy", |tally| {
        tally.failed = tidy::inspect()? as u64;
        tally.passed = tidy::RULES.len() as u64 - tally.failed;
        Ok(())
    });
    phases.run("format", |_| run_child(&mut cargo(["fmt", "--all", "--check"])));
    phases.run("lints", |_| clippy(&[]));
    phases.run("lints with fault points", |_| clippy(&["--features", "hapax/fault"]));
    phases.run("documentation", |_| {
        let mut doc = cargo(["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
        run_child(doc.env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links"))
    });
    for (name, program, args) in
        [("cargo-deny", "cargo", vec!["deny", "check"]), ("typos", "typos", vec![])] as [(_, _, Vec<&str>); 2]
    {
        if installed(program, args.first().copied()) {
            phases.run(name, |_| run_child(&mut command(program, args)));
        } else {
            phases.leave_out(&format!(
                "{name} is not installed here (`cargo install {name}-cli` or your system's package)"
            ));
        }
    }
    Ok(phases.finish())
}

fn clippy(features: &[&str]) -> Result<()> {
    let mut lint = cargo(["clippy", "--workspace", "--all-targets"]);
    lint.args(features).args(["--", "-D", "warnings"]);
    if let Err(error) = run_child(&mut lint) {
        bail!("{error}; every warning above is an error here");
    }
    Ok(())
}
