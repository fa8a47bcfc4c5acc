//! What `docs/SPEC-COVERAGE.md` says, counted.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::child;

const PAGE: &str = "docs/SPEC-COVERAGE.md";

/// `cargo xtask coverage`.
pub(crate) fn run() -> Result<ExitCode> {
    let text = std::fs::read_to_string(child::root().join(PAGE)).with_context(|| format!("could not read {PAGE}"))?;
    print!("{}", report(&text));
    Ok(ExitCode::SUCCESS)
}

fn report(text: &str) -> String {
    let mut documents: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (id, shown) in rows(text) {
        let state = match shown.split_once(':') {
            Some((word @ ("later" | "departs" | "process"), why)) => {
                if word == "later" {
                    *reasons.entry(why.trim()).or_default() += 1;
                }
                word
            }
            Some(_) | None => "shown",
        };
        for document in [&id[..2], "all"] {
            *documents.entry(document).or_default().entry(state).or_default() += 1;
        }
    }
    let mut out = String::from("document   shown  departs  process  later\n");
    for (document, states) in &documents {
        let count = |state| states.get(state).copied().unwrap_or(0);
        let [shown, departs, process, later] = ["shown", "departs", "process", "later"].map(count);
        out.push_str(&format!("{document:<8}  {shown:>6}  {departs:>7}  {process:>7}  {later:>5}\n"));
    }
    let mut reasons: Vec<(&str, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (why, count) in reasons {
        out.push_str(&format!("later {count:>4}  {why}\n"));
    }
    out
}

/// Id and "shown by" of every row.
fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [id, _, shown] = cells[..] else { return None };
        let digits = id.get(3..).is_some_and(|rest| rest.len() == 3 && rest.bytes().all(|b| b.is_ascii_digit()));
        (id.starts_with('S') && digits).then_some((id, shown))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each state is counted once, per document and in all. Method: one row of each, and lines that are none.
    #[test]
    fn rows_are_counted_by_state() {
        let text = "| id | where | shown by |\n|---|---|---|\n| S1-001 | a.rs | `a::b` |\n| S1-002 | - | later: a broker |\n\
            | S2-001 | - | departs: why |\n| S2-002 | - | process: how |\n";
        let expected = "document   shown  departs  process  later\n\
            S1             1        0        0      1\n\
            S2             0        1        1      0\n\
            all            1        1        1      1\n\
            later    1  a broker\n";
        assert_eq!(report(text), expected);
    }
}
