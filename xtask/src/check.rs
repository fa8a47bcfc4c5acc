//! `cargo xtask check`: what a reviewer should not have to say.

use std::process::ExitCode;

use anyhow::Result;

use crate::child::{cargo, command, run as run_child};
use crate::edition;
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
    phases.run("lints", |_| clippy(&["--workspace"]));
    phases.run("lints with fault points", |_| clippy(&["--workspace", "--features", "hapax/fault"]));
    phases.run("lints of the embedded edition", |_| clippy(&edition::SELECTED));
    phases.run("documentation", |_| {
        let mut doc = cargo(["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
        run_child(doc.env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links"))
    });
    optional(&mut phases, "cargo-deny", &["cargo", "deny"], &["check"]);
    optional(&mut phases, "typos-cli", &["typos"], &[]);
    Ok(phases.finish())
}

/// Runs a tool that not everybody has, and says so where it is missing.
fn optional(phases: &mut Phases, package: &str, tool: &[&str], args: &[&str]) {
    let with = |more: &[&str]| {
        let words: Vec<&str> = tool.iter().chain(more).copied().collect();
        command(words[0], words[1..].iter().copied())
    };
    if with(&["--version"]).output().is_ok_and(|output| output.status.success()) {
        phases.run(package, |_| run_child(&mut with(args)));
    } else {
        phases.leave_out(&format!("{package} is not installed (`cargo install {package}`)"));
    }
}

fn clippy(selected: &[&str]) -> Result<()> {
    run_child(cargo(["clippy", "--all-targets"]).args(selected).args(["--", "-D", "warnings"]))
}
