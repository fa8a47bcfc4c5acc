//! `docs/PROOF.md`: the record of the last full crash proof, written from the prover's own report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::child::{self, command};
use crate::phase::Tally;

/// Where the record is kept.
pub(crate) const PAGE: &str = "docs/PROOF.md";

/// The moment, as the record shows it.
pub(crate) fn now() -> Result<String> {
    Ok(child::read(&mut command("date", ["-u", "+%Y-%m-%d %H:%M UTC"]))?.trim().to_owned())
}

/// Cells that passed or were refused as they must be, against cells that failed or were skipped.
pub(crate) fn tally(report: &Value) -> Tally {
    let counts = verdicts(report);
    let count = |verdict: &str| counts.get(verdict).copied().unwrap_or(0);
    let escaped = items(report, "plants").filter(|plant| !plant_holds(plant)).count() as u64;
    let plants = items(report, "plants").count() as u64;
    Tally {
        passed: count("passed") + count("refused") + plants - escaped,
        failed: count("failed") + count("skipped") + escaped,
    }
}

/// Writes the record.
pub(crate) fn write(report: &Value, started: &str, words: &str) -> Result<()> {
    let commit = child::read(&mut command("git", ["rev-parse", "HEAD"]))?.trim().to_owned();
    let dirty = !child::read(&mut command("git", ["status", "--porcelain", "--untracked-files=no"]))?.trim().is_empty();
    let commit = if dirty { format!("{commit}, with uncommitted changes") } else { commit };
    let text = render(report, &commit, started, words);
    std::fs::write(child::root().join(PAGE), text).with_context(|| format!("could not write {PAGE}"))
}

fn items<'a>(report: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    report.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

fn verdicts(report: &Value) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for cell in items(report, "cells") {
        *counts.entry(text(cell, "verdict")).or_default() += 1;
    }
    counts
}

fn plant_holds(plant: &Value) -> bool {
    let yes = |name| plant.get(name).and_then(Value::as_bool).unwrap_or(false);
    yes("caught") && yes("clean")
}

fn render(report: &Value, commit: &str, started: &str, words: &str) -> String {
    let counts = verdicts(report);
    let count = |verdict: &str| counts.get(verdict).copied().unwrap_or(0);
    let seed = report.get("seed").map_or_else(|| "not told".to_owned(), Value::to_string);
    let mut out = format!(
        "# The last full crash proof\n\n\
         Written by `cargo xtask prove`; do not edit. A cell is one fault at one point under one guarantee and mode:\n\
         a real `hapax run` is killed or stopped there, started again, and judged from outside.\n\n\
         | | |\n|---|---|\n| commit | {commit} |\n| started | {started} |\n| command | `cargo xtask prove {words}` |\n\
         | seed | {seed} |\n| cells passed | {} |\n| cells refused by the audit, as they must be | {} |\n\
         | cells failed | {} |\n| cells skipped | {} |\n",
        count("passed"),
        count("refused"),
        count("failed"),
        count("skipped"),
    );
    for (title, verdict) in [("Failed", "failed"), ("Skipped", "skipped"), ("Refused", "refused")] {
        let cells: Vec<&Value> = items(report, "cells").filter(|cell| text(cell, "verdict") == verdict).collect();
        if !cells.is_empty() {
            write!(out, "\n## {title}\n\n| cell | seed | why |\n|---|---|---|\n").expect("a string takes text");
        }
        for cell in cells {
            let seed = cell.get("seed").unwrap_or(&Value::Null);
            writeln!(out, "| {} | {seed} | {} |", text(cell, "name"), text(cell, "detail"))
                .expect("a string takes text");
        }
    }
    out.push_str("\n## Planted bugs\n\nWith the bug the prover must fail; without it the same seed must pass.\n\n");
    out.push_str("| bug | seed | caught by | caught | without it |\n|---|---|---|---|---|\n");
    for plant in items(report, "plants") {
        let word = |name, yes, no| if plant.get(name).and_then(Value::as_bool) == Some(true) { yes } else { no };
        let (name, by) = (text(plant, "name"), text(plant, "by"));
        let seed = plant.get("seed").unwrap_or(&Value::Null);
        let (caught, clean) = (word("caught", "yes", "**no**"), word("clean", "passes", "**fails**"));
        writeln!(out, "| {name} | {seed} | {by} | {caught} | {clean} |").expect("a string takes text");
    }
    out
}
