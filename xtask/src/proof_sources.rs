//! The part of `docs/PROOF.md` about file sources.

use std::fmt::Write as _;

use serde_json::Value;

use crate::proof::{items, plants, text};

/// The line that it begins with.
pub(crate) const TITLE: &str = "# The last full proof over file sources\n";

/// The part, from the prover's own report.
pub(crate) fn render(report: &Value, commit: &str, started: &str, words: &str) -> String {
    let number = |name: &str| report.get(name).map_or_else(|| "not told".to_owned(), Value::to_string);
    let count = |verdict: &str| items(report, "cells").filter(|case| text(case, "verdict") == verdict).count();
    let version = |server: &str| report.get(server).and_then(Value::as_str).unwrap_or("not needed");
    let (postgres, mariadb) = (version("postgres"), version("mariadb"));
    let mut out = format!(
        "{TITLE}\nWritten by `cargo xtask prove sources`; do not edit. A seed deals one case: a writer appends numbered records while its\n\
         files are rotated, rewritten, moved or removed, and real workers deliver them. Then everything is in the table once, or, where\n\
         the files leave a doubt, every worker has stopped with code 5 and named them.\n\n\
         | | |\n|---|---|\n| commit | {commit} |\n| started | {started} |\n| command | `{}` |\n\
         | first seed | {} |\n| PostgreSQL | {postgres} |\n| MariaDB | {mariadb} |\n| cases run | {} |\n| cases passed | {} |\n| cases failed | {} |\n\
         | faults and moments that no case had | {} |\n| records judged | {} |\n\n\
         | fault | must follow | passed | failed |\n|---|---|---|---|\n",
        format!("cargo xtask prove sources {words}").trim_end(),
        number("seed"),
        number("run"),
        count("passed"),
        count("failed"),
        number("missing"),
        number("operations"),
    );
    for fault in items(report, "faults") {
        let of = |name: &str| fault.get(name).and_then(Value::as_u64).unwrap_or(0);
        let (name, follows) = (text(fault, "name"), text(fault, "follows"));
        writeln!(out, "| {name} | {follows} | {} | {} |", of("passed"), of("failed")).expect("a string takes text");
    }
    let failed: Vec<&Value> = items(report, "cells").filter(|case| text(case, "verdict") == "failed").collect();
    if !failed.is_empty() {
        out.push_str("\n## Failed over file sources\n\n| case | seed | why |\n|---|---|---|\n");
    }
    for case in failed {
        let (name, seed, why) = (text(case, "name"), case.get("seed").unwrap_or(&Value::Null), text(case, "detail"));
        writeln!(out, "| {name} | {seed} | {why} |").expect("a string takes text");
    }
    plants(report, &mut out);
    out
}
