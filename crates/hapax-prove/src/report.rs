//! What a run says at the end: for people, and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::cell::{Cell, Kind};
use crate::plants::Planted;
use crate::points::POINTS;
use crate::run::{Done, Verdict};

/// A whole run.
#[derive(Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// The program under test.
    pub hapax: String,
    /// How long it took.
    pub took: Duration,
    /// How many cells were to be run.
    pub chosen: usize,
    /// Cells that were run.
    pub cells: Vec<Done<Cell>>,
    /// Cells that were chosen and not started because the time was up: left for another run, and said so.
    pub not_started: usize,
    /// Planted bugs.
    pub plants: Vec<Planted<Cell>>,
    /// The versions of the PostgreSQL and the MariaDB server, if cells needed one.
    pub servers: [Option<String>; 2],
}

/// One line about a cell.
#[must_use]
pub fn line(done: &Done<Cell>) -> String {
    let seconds = done.took.as_secs_f64();
    match &done.verdict {
        Verdict::Passed => format!("ok       {seconds:5.1} s  {}", done.cell.name()),
        Verdict::Refused { code } => format!("refused  {seconds:5.1} s  {}  {code}", done.cell.name()),
        Verdict::Failed { why, .. } => {
            let mut text = format!("FAILED   {seconds:5.1} s  {}", done.cell.name());
            why.iter().for_each(|why| text.push_str(&format!("\n           {why}")));
            text
        }
    }
}

impl Report {
    fn count(&self, wanted: impl Fn(&Verdict) -> bool) -> usize {
        self.cells.iter().filter(|done| wanted(&done.verdict)).count()
    }

    /// Cells that passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.count(|verdict| *verdict == Verdict::Passed)
    }

    /// Cells that the audit refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Refused { .. }))
    }

    /// Cells that failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Failed { .. }))
    }

    /// Cells that were chosen and neither run nor left for want of time.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.chosen.saturating_sub(self.cells.len() + self.not_started)
    }

    /// The fault points at which a fault happened in a cell that passed.
    #[must_use]
    pub fn points_hit(&self) -> usize {
        let passed = self.cells.iter().filter(|done| done.verdict == Verdict::Passed);
        let points: BTreeSet<&str> = passed
            .filter_map(|done| match done.cell.kind {
                Kind::Point(point, _) => Some(point.name),
                Kind::Scenario(_) | Kind::Refused => None,
            })
            .collect();
        points.len()
    }

    /// Whether everything held, and every planted bug was caught.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.failed() == 0 && self.skipped() == 0 && self.plants.iter().all(|plant| plant.caught() && plant.clean())
    }

    /// The command line that runs a cell again.
    #[must_use]
    pub fn repeat(&self, done: &Done<Cell>) -> String {
        format!("hapax-prove --hapax {} --seed {} --only '={}' --keep", self.hapax, done.seed, done.cell.name())
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for done in self.cells.iter().filter(|done| matches!(done.verdict, Verdict::Failed { .. })) {
            let kept = done.kept.as_deref().map_or_else(String::new, |dir: &Path| dir.display().to_string());
            out.push_str(&format!("\n{}\n  kept in  {kept}\n  again:   {}\n", line(done), self.repeat(done)));
        }
        let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
        for done in &self.cells {
            if let Verdict::Refused { code } = &done.verdict {
                *codes.entry(code).or_default() += 1;
            }
        }
        let codes: Vec<String> = codes.iter().map(|(code, count)| format!("{code} × {count}")).collect();
        let mut remarks: Vec<&String> = self.cells.iter().flat_map(|done| &done.notes.remarks).collect();
        remarks.sort_unstable();
        remarks.dedup();
        write!(
            out,
            "\nseed {}\ncells run                {}\n  passed                 {}\n  failed                 {}\n  refused by the audit   {}{}\n  skipped                {}\nfault points hit         {} of {}\ntook                     {:.0} s\n",
            self.seed,
            self.cells.len(),
            self.passed(),
            self.failed(),
            self.refused(),
            if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) },
            self.skipped(),
            self.points_hit(),
            POINTS.len(),
            self.took.as_secs_f64(),
        )
        .expect("a string takes text");
        if self.not_started > 0 {
            out.push_str(&format!("left for another run     {} (the time was up)\n", self.not_started));
        }
        remarks.iter().for_each(|remark| out.push_str(&format!("note: {remark}\n")));
        out.push_str(&self.plants_text());
        out
    }

    fn plants_text(&self) -> String {
        if self.plants.is_empty() {
            return String::new();
        }
        let mut out = format!("\n{:32} {:8} {:8} caught by\n", "planted bug", "caught", "without");
        for plant in &self.plants {
            let (caught, clean) = (word(plant.caught(), "yes", "NO"), word(plant.clean(), "passes", "FAILS"));
            out.push_str(&format!("{:32} {caught:8} {clean:8} {}\n", plant.bug, plant.caught_by()));
            if let (Verdict::Failed { why, .. }, false) = (&plant.without.verdict, plant.clean()) {
                why.iter().for_each(|why| out.push_str(&format!("    without it: {why}\n")));
            }
        }
        out
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let cells: Vec<serde_json::Value> = self
            .cells
            .iter()
            .map(|done| {
                let (verdict, detail) = match &done.verdict {
                    Verdict::Passed => ("passed", String::new()),
                    Verdict::Refused { code } => ("refused", code.clone()),
                    Verdict::Failed { why, .. } => ("failed", why.join("; ")),
                };
                json!({
                    "name": done.cell.name(), "seed": done.seed, "verdict": verdict, "detail": detail,
                    "seconds": done.took.as_secs_f64(), "kept": done.kept, "again": self.repeat(done),
                    "remarks": done.notes.remarks,
                })
            })
            .collect();
        let plants: Vec<serde_json::Value> = self
            .plants
            .iter()
            .map(|plant| {
                json!({
                    "name": plant.bug, "seed": plant.seed, "by": plant.caught_by(),
                    "caught": plant.caught(), "clean": plant.clean(),
                })
            })
            .collect();
        json!({
            "seed": self.seed, "run": self.cells.len(), "passed": self.passed(), "failed": self.failed(),
            "refused": self.refused(), "skipped": self.skipped(), "notStarted": self.not_started,
            "pointsHit": self.points_hit(), "points": POINTS.len(), "postgres": self.servers[0], "mariadb": self.servers[1], "seconds": self.took.as_secs_f64(), "cells": cells, "plants": plants,
        })
    }
}

fn word(yes: bool, if_so: &'static str, if_not: &'static str) -> &'static str {
    if yes { if_so } else { if_not }
}
