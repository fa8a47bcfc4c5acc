//! `docs/PROOF.md`: the record of the last full crash proof, written from the prover's own report.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::child::{self, command};
use crate::phase::Tally;
use crate::proof_sources;
use crate::prove::Subject;

/// Where the record is kept.
pub(crate) const PAGE: &str = "docs/PROOF.md";
/// Where one goes that nobody could repeat: the tree had changes that no commit has.
const DRAFT: &str = "prove/PROOF.md";

/// When a campaign began, and from which sources: looked up before it builds, for they may change while it runs, and the
/// page itself is one of them.
pub(crate) struct Origin {
    commit: String,
    started: String,
    sources: Sources,
}

/// Whether a commit names all that was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sources {
    Committed,
    Changed,
}

impl Origin {
    pub(crate) fn now() -> Result<Self> {
        let said = |program: &str, args: &[&str]| {
            Ok::<_, anyhow::Error>(child::read(&mut command(program, args.iter().copied()))?.trim().to_owned())
        };
        let mut commit = said("git", &["rev-parse", "HEAD"])?;
        let sources = Sources::of_status(&said("git", &["status", "--porcelain"])?);
        if sources == Sources::Changed {
            commit += ", with uncommitted changes";
        }
        Ok(Self { commit, started: said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])?, sources })
    }

    /// Where the record of this campaign goes: only sources that a commit names make a record that can be repeated.
    pub(crate) fn page(&self) -> PathBuf {
        self.sources.page(child::root(), &child::target_dir())
    }
}

impl Sources {
    /// By what `git status --porcelain` says; a file that git does not know yet is built, too.
    fn of_status(status: &str) -> Self {
        if status.trim().is_empty() { Self::Committed } else { Self::Changed }
    }

    fn page(self, root: &Path, target: &Path) -> PathBuf {
        match self {
            Self::Committed => root.join(PAGE),
            Self::Changed => target.join(DRAFT),
        }
    }
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

/// The parts of the page in their order, each with the line that it begins with.
const PARTS: [(Subject, &str); 4] = [
    (Subject::Workflows, "# The last full crash proof\n"),
    (Subject::Sources, proof_sources::TITLE),
    (Subject::Broker, BROKER),
    (Subject::Power, POWER),
];

const POWER: &str = "# The last proof through cuts of the power\n";
const BROKER: &str = "# The last full crash proof of the broker\n";

/// Writes the record of one campaign; the other parts of the page stay. Where it was written.
pub(crate) fn write(report: &Value, subject: Subject, origin: &Origin, words: &str) -> Result<PathBuf> {
    let page = origin.page();
    let old = std::fs::read_to_string(&page).unwrap_or_default();
    let text = renewed(&old, report, subject, (&origin.commit, &origin.started, words));
    std::fs::write(&page, text).with_context(|| format!("could not write {}", page.display()))?;
    Ok(page)
}

/// The reports of several seeds as one: cells and planted bugs one after the other, counts added, seeds listed.
pub(crate) fn joined(mut reports: Vec<Value>) -> Value {
    let seeds: Vec<String> =
        reports.iter().map(|report| report.get("seed").map_or_else(String::new, Value::to_string)).collect();
    let sum = |name: &str| reports.iter().filter_map(|report| report.get(name)?.as_u64()).sum::<u64>();
    let sums = ["operations", "notStarted"].map(|name| (name, sum(name)));
    let lists = ["cells", "plants"]
        .map(|name| (name, reports.iter().flat_map(|report| items(report, name)).cloned().collect::<Vec<Value>>()));
    let Some(mut first) = (!reports.is_empty()).then(|| reports.swap_remove(0)) else { return Value::Null };
    for (name, list) in lists {
        first[name] = Value::Array(list);
    }
    for (name, sum) in sums {
        first[name] = sum.into();
    }
    first["seed"] = Value::String(seeds.join(", "));
    first
}

/// The part of the page that begins with `title`, without the blank lines at its end.
fn part<'a>(page: &'a str, title: &str) -> Option<&'a str> {
    let at_line = |at: usize| at == 0 || page.as_bytes().get(at - 1) == Some(&b'\n');
    let start = page.match_indices(title).map(|(at, _)| at).find(|at| at_line(*at))?;
    let end = PARTS.iter().filter_map(|(_, other)| page[start + 1..].find(&format!("\n{other}"))).min();
    Some(page[start..].get(..end.map_or(usize::MAX, |end| end + 1)).unwrap_or(&page[start..]).trim_end())
}

/// The page with one of its parts written anew.
fn renewed(old: &str, report: &Value, subject: Subject, (commit, started, words): (&str, &str, &str)) -> String {
    let new = match subject {
        Subject::Workflows => render(report, commit, started, words),
        Subject::Sources => proof_sources::render(report, commit, started, words),
        Subject::Broker => render_broker(report, (BROKER, BROKER_STORY, "broker"), commit, started, words),
        Subject::Power => render_broker(report, (POWER, POWER_STORY, "power"), commit, started, words),
    };
    let parts =
        PARTS.iter().filter_map(|(of, title)| if *of == subject { Some(new.trim_end()) } else { part(old, title) });
    parts.collect::<Vec<_>>().join("\n\n") + "\n"
}

const BROKER_STORY: &str = "A cell is one story on one store: clients write, read and commit\noffsets while a real `hapax broker` is \
     killed or stopped, or its server or disk fails; their histories are judged.";
const POWER_STORY: &str = "A cell is one seed: clients write while a real `hapax broker`\nhas its store on a file system that is shut \
     down without a flush, five times; their histories are judged.";

/// Title, what a cell is, and the word of the command.
type BrokerPart<'a> = (&'a str, &'a str, &'a str);

fn render_broker(
    report: &Value,
    (title, story, word): BrokerPart<'_>,
    commit: &str,
    started: &str,
    words: &str,
) -> String {
    let counts = verdicts(report);
    let count = |verdict: &str| counts.get(verdict).copied().unwrap_or(0);
    let number = |name: &str| report.get(name).map_or_else(|| "not told".to_owned(), Value::to_string);
    let postgres = report.get("postgres").and_then(Value::as_str).unwrap_or("not needed");
    let mut out = format!(
        "{title}\nWritten by `cargo xtask prove`; do not edit. {story}\n\n\
         | | |\n|---|---|\n| commit | {commit} |\n| started | {started} |\n| command | `cargo xtask prove {word} {words}` |\n\
         | seeds | {} |\n| PostgreSQL | {postgres} |\n| cells run | {} |\n| cells passed | {} |\n| cells failed | {} |\n\
         | operations judged | {} |\n\n| cell | operations | seconds | verdict |\n|---|---|---|---|\n",
        seeds(report),
        counts.values().sum::<u64>(),
        count("passed"),
        count("failed"),
        number("operations"),
    );
    let mut cells: Vec<&Value> = items(report, "cells").collect();
    cells.sort_by_key(|cell| text(cell, "name"));
    for cell in cells {
        let seconds = cell.get("seconds").and_then(Value::as_f64).unwrap_or(0.0);
        let operations = cell.get("operations").and_then(Value::as_u64).unwrap_or(0);
        let verdict = match text(cell, "detail") {
            "" => text(cell, "verdict").to_owned(),
            detail => format!("**{}**: {detail}", text(cell, "verdict")),
        };
        writeln!(out, "| {} | {operations} | {seconds:.0} | {verdict} |", text(cell, "name"))
            .expect("a string takes text");
    }
    remarks(report, &mut out);
    plants(report, &mut out);
    out
}

pub(crate) fn remarks(report: &Value, out: &mut String) {
    let mut remarks: Vec<&str> =
        items(report, "cells").flat_map(|cell| items(cell, "remarks")).filter_map(Value::as_str).collect();
    remarks.sort_unstable();
    remarks.dedup();
    if !remarks.is_empty() {
        write!(out, "\n## Notes\n\n- {}\n", remarks.join("\n- ")).expect("a string takes text");
    }
}

pub(crate) fn plants(report: &Value, out: &mut String) {
    out.push_str("\n## Planted bugs\n\nWith the bug the prover must fail; without it the same seed must pass.\n\n");
    out.push_str("| bug | seed | caught by | caught | without it |\n|---|---|---|---|---|\n");
    for plant in items(report, "plants") {
        let word = |name, yes, no| if plant.get(name).and_then(Value::as_bool) == Some(true) { yes } else { no };
        let (name, by) = (text(plant, "name"), text(plant, "by"));
        let seed = plant.get("seed").unwrap_or(&Value::Null);
        let (caught, clean) = (word("caught", "yes", "**no**"), word("clean", "passes", "**fails**"));
        writeln!(out, "| {name} | {seed} | {by} | {caught} | {clean} |").expect("a string takes text");
    }
}

pub(crate) fn items<'a>(report: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    report.get(name).and_then(Value::as_array).into_iter().flatten()
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

/// One seed, or several.
fn seeds(report: &Value) -> String {
    match report.get("seed") {
        Some(Value::String(several)) => several.clone(),
        Some(one) => one.to_string(),
        None => "not told".to_owned(),
    }
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
    let seed = seeds(report);
    let version = |server: &str| report.get(server).and_then(Value::as_str).unwrap_or("not needed").to_owned();
    let over = |server: &str| items(report, "cells").filter(|cell| text(cell, "name").contains(server)).count();
    let (postgres, mariadb) = (version("postgres"), version("mariadb"));
    let (over_postgres, over_mariadb) = (over("/postgres"), over("/mysql"));
    let mut out = format!(
        "# The last full crash proof\n\n\
         Written by `cargo xtask prove`; do not edit. A cell is one fault at one point under one guarantee and mode:\n\
         a real `hapax run` is killed or stopped there, or its wire or its server fails, and it is judged from outside.\n\n\
         | | |\n|---|---|\n| commit | {commit} |\n| started | {started} |\n| command | `cargo xtask prove {words}` |\n\
         | seeds | {seed} |\n| PostgreSQL | {postgres} |\n| MariaDB | {mariadb} |\n| of the cells, over PostgreSQL | {over_postgres} |\n\
         | of the cells, over MariaDB | {over_mariadb} |\n| cells run | {} |\n| cells passed | {} |\n| cells refused by the audit, as they must be | {} |\n\
         | cells failed | {} |\n| cells skipped | {} |\n",
        counts.values().sum::<u64>(),
        count("passed"),
        count("refused"),
        count("failed"),
        count("skipped") + report.get("notStarted").and_then(Value::as_u64).unwrap_or(0),
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
    remarks(report, &mut out);
    plants(report, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Value {
        serde_json::json!({
            "seed": 7, "notStarted": 0, "postgres": "15.1", "mariadb": "10.11.2-MariaDB",
            "cells": [
                { "name": "a", "seed": 1, "verdict": "passed", "detail": "", "remarks": ["by a file-size limit"] },
                { "name": "b/postgres", "seed": 2, "verdict": "passed", "detail": "", "remarks": ["by a file-size limit"] },
                { "name": "c/mysql", "seed": 3, "verdict": "refused", "detail": "HX1101", "remarks": [] },
                { "name": "d", "seed": 4, "verdict": "failed", "detail": "one row lost", "remarks": [] },
            ],
            "plants": [
                { "name": "no-fence", "seed": 7, "by": "e: zombie write", "caught": true, "clean": true },
                { "name": "sorted-bisect", "seed": 7, "by": "f: nothing", "caught": false, "clean": true },
            ],
        })
    }

    /// Goal: a failed cell and a bug that escaped both count as failures. Method: one of each among good ones.
    #[test]
    fn what_escaped_counts_as_failed() {
        assert_eq!(tally(&report()), Tally { passed: 4, failed: 2 });
        assert_eq!(tally(&Value::Null), Tally::default());
    }

    /// Goal: only sources that a commit names make the record. Method: a clean tree, a changed file, a file that git does not know.
    #[test]
    fn a_changed_tree_makes_no_record() {
        let page = |status: &str| Sources::of_status(status).page(Path::new("/r"), Path::new("/r/target"));
        assert_eq!(page("\n"), Path::new("/r/docs/PROOF.md"));
        for changed in [" M xtask/src/proof.rs\n", "?? crates/hapax/src/new.rs\n"] {
            assert_eq!(page(changed), Path::new("/r/target/prove/PROOF.md"), "{changed}");
        }
    }

    /// Goal: the record of several seeds holds all of them. Method: two reports, joined and written; none at all.
    #[test]
    fn several_seeds_are_one_record() {
        let mut other = report();
        other["seed"] = 8.into();
        let both = joined(vec![report(), other]);
        assert_eq!(tally(&both), Tally { passed: 8, failed: 4 });
        let page = render(&both, "abc", "2026-01-01 00:00 UTC", "");
        assert!(page.contains("| seeds | 7, 8 |") && page.contains("| cells run | 8 |"), "{page}");
        assert_eq!(joined(Vec::new()), Value::Null);
    }

    /// Goal: each campaign renews its own part of the page. Method: both, in both orders.
    #[test]
    fn each_campaign_renews_its_own_part_of_the_page() {
        let told = ("abc", "2026-01-01 00:00 UTC", "");
        let broker = serde_json::json!({
            "seed": 7, "postgres": "15.1", "operations": 12,
            "cells": [
                { "name": "broker/plain/embedded", "seed": 1, "verdict": "passed", "detail": "", "seconds": 2.4, "operations": 12, "remarks": [] },
                { "name": "broker/plain/postgres", "seed": 1, "verdict": "failed", "detail": "lost: 1:2", "seconds": 3.0, "operations": 0, "remarks": [] },
            ],
            "plants": [{ "name": "broker-no-fence", "seed": 7, "by": "x: stale read", "caught": true, "clean": true }],
        });
        let power = renewed("", &broker, Subject::Power, told);
        assert!(power.starts_with(POWER) && power.contains("`cargo xtask prove power "), "{power}");
        let first = renewed("", &report(), Subject::Workflows, told);
        let both = renewed(&first, &broker, Subject::Broker, told);
        assert!(both.starts_with(&first) && both.contains(BROKER), "{both}");
        for line in [
            "| operations judged | 12 |",
            "| broker/plain/embedded | 12 | 2 | passed |",
            "| broker/plain/postgres | 0 | 3 | **failed**: lost: 1:2 |",
            "| broker-no-fence | 7 | x: stale read | yes | passes |",
        ] {
            assert_eq!(both.lines().filter(|found| *found == line).count(), 1, "{line} in\n{both}");
        }
        assert_eq!(renewed(&both, &broker, Subject::Broker, told), both);
        assert_eq!(renewed(&both, &report(), Subject::Workflows, told), both);
        let other_order = renewed("", &broker, Subject::Broker, told);
        assert_eq!(renewed(&other_order, &report(), Subject::Workflows, told), both);
    }

    /// Goal: the part about file sources is written anew alone. Method: three parts in any order, each twice.
    #[test]
    fn the_part_about_sources_stands_between_the_others() {
        let told = ("abc", "2026-01-01 00:00 UTC", "");
        let sources = serde_json::json!({
            "seed": 1, "run": 2, "missing": 0, "operations": 500,
            "faults": [{ "name": "copytruncate", "follows": "stop", "passed": 1, "failed": 1 }],
            "cells": [
                { "name": "s/a", "seed": 1, "verdict": "passed", "detail": "" },
                { "name": "s/b", "seed": 2, "verdict": "failed", "detail": "lost: 1" },
            ],
            "plants": [{ "name": "incarnation-learned-anew", "seed": 1, "by": "x: lost", "caught": true, "clean": true }],
        });
        let broker = serde_json::json!({ "seed": 7, "cells": [], "plants": [] });
        let mut page = renewed("", &broker, Subject::Broker, told);
        page = renewed(&page, &sources, Subject::Sources, told);
        page = renewed(&page, &report(), Subject::Workflows, told);
        for line in [
            "| command | `cargo xtask prove sources` |",
            "| cases passed | 1 |",
            "| copytruncate | stop | 1 | 1 |",
            "| s/b | 2 | lost: 1 |",
            "| incarnation-learned-anew | 1 | x: lost | yes | passes |",
        ] {
            assert_eq!(page.lines().filter(|found| *found == line).count(), 1, "{line} in\n{page}");
        }
        let at = |title: &str| page.find(title).unwrap_or_else(|| panic!("no {title} in\n{page}"));
        assert!(
            at("# The last full crash proof\n") < at(proof_sources::TITLE) && at(proof_sources::TITLE) < at(BROKER)
        );
        assert_eq!(renewed(&page, &sources, Subject::Sources, told), page);
        assert_eq!(renewed(&page, &broker, Subject::Broker, told), page);
    }

    /// Goal: the record holds what the report says. Method: every kind of line.
    #[test]
    fn the_record_shows_cells_notes_and_bugs() {
        let page = render(&report(), "abc", "2026-01-01 00:00 UTC", "--seed 7");
        for line in [
            "| commit | abc |",
            "| command | `cargo xtask prove --seed 7` |",
            "| PostgreSQL | 15.1 |",
            "| MariaDB | 10.11.2-MariaDB |",
            "| of the cells, over PostgreSQL | 1 |",
            "| of the cells, over MariaDB | 1 |",
            "| cells run | 4 |",
            "| cells skipped | 0 |",
            "| c/mysql | 3 | HX1101 |",
            "| d | 4 | one row lost |",
            "- by a file-size limit",
            "| no-fence | 7 | e: zombie write | yes | passes |",
            "| sorted-bisect | 7 | f: nothing | **no** | passes |",
        ] {
            assert_eq!(page.lines().filter(|found| *found == line).count(), 1, "{line} in\n{page}");
        }
    }
}
