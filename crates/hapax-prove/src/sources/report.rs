//! What a run over file sources says at the end: for people, and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::case::SourceCase;
use super::deal::pairs;
use super::expectation::expectation;
use crate::plants::Planted;
use crate::run::{Done, Verdict};

/// A whole run.
#[derive(Debug)]
pub struct SourcesReport {
    /// Its first seed.
    pub seed: u64,
    /// The program under test.
    pub hapax: String,
    /// How long it took.
    pub took: Duration,
    /// Cases that were run, in the order of their seeds.
    pub cases: Vec<Done<SourceCase>>,
    /// Planted bugs.
    pub plants: Vec<Planted<SourceCase>>,
    /// The versions of the PostgreSQL and the MariaDB server, if cases needed one.
    pub servers: [Option<String>; 2],
}

/// One line about a case.
#[must_use]
pub fn line(done: &Done<SourceCase>) -> String {
    let (seconds, name, seed, records) = (done.took.as_secs_f64(), done.cell.name(), done.seed, done.notes.operations);
    match &done.verdict {
        Verdict::Failed { why, .. } => {
            let mut text = format!("FAILED   {seconds:5.1} s  seed {seed}  {name}  {records} records");
            why.iter().for_each(|why| text.push_str(&format!("\n           {why}")));
            text
        }
        Verdict::Passed | Verdict::Refused { .. } => {
            format!("ok       {seconds:5.1} s  seed {seed}  {name}  {records} records")
        }
    }
}

impl SourcesReport {
    fn failed(&self) -> usize {
        self.cases.iter().filter(|done| done.verdict != Verdict::Passed).count()
    }

    fn records(&self) -> usize {
        self.cases.iter().map(|done| done.notes.operations).sum()
    }

    /// Faults with moments that no case had: none may be left out of a run that is long enough for all.
    fn missing(&self) -> usize {
        let met = |pair: &_| self.cases.iter().any(|done| (done.cell.fault, done.cell.moment) == *pair);
        if self.cases.len() < pairs().len() { 0 } else { pairs().iter().filter(|pair| !met(pair)).count() }
    }

    /// Whether everything held, and every planted bug was caught.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.failed() == 0 && self.missing() == 0 && self.plants.iter().all(|plant| plant.caught() && plant.clean())
    }

    fn repeat(done: &Done<SourceCase>) -> String {
        format!("cargo xtask prove sources --seed {} --seeds 1 --keep", done.seed)
    }

    /// Passed and failed cases of each fault, with what must follow from it.
    fn by_fault(&self) -> BTreeMap<&'static str, (String, usize, usize)> {
        let mut rows: BTreeMap<&'static str, (String, usize, usize)> = BTreeMap::new();
        for done in &self.cases {
            let row = rows.entry(done.cell.fault.name()).or_default();
            row.0 = format!("{:?}", expectation(&done.cell).0).to_lowercase();
            match done.verdict {
                Verdict::Passed | Verdict::Refused { .. } => row.1 += 1,
                Verdict::Failed { .. } => row.2 += 1,
            }
        }
        rows
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for done in self.cases.iter().filter(|done| done.verdict != Verdict::Passed) {
            let kept = done.kept.as_deref().map_or_else(String::new, |dir| dir.display().to_string());
            out.push_str(&format!("\n{}\n  kept in  {kept}\n  again:   {}\n", line(done), Self::repeat(done)));
        }
        out.push_str("\nfault                  must follow   passed  failed\n");
        for (fault, (follows, passed, failed)) in self.by_fault() {
            out.push_str(&format!("{fault:22} {follows:12} {passed:7} {failed:7}\n"));
        }
        let (run, failed) = (self.cases.len(), self.failed());
        out.push_str(&format!(
            "\nfirst seed {}\ncases of file sources    {run}\n  passed                 {}\n  failed                 {failed}\nfaults that no case had  {}\nrecords judged           {}\ntook                     {:.0} s\n",
            self.seed,
            run - failed,
            self.missing(),
            self.records(),
            self.took.as_secs_f64(),
        ));
        for plant in &self.plants {
            out.push_str(&format!("{}\n", plant.line()));
        }
        out
    }

    /// For programs: the same names as in the report of the other cells.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let case = |done: &Done<SourceCase>| {
            let (verdict, detail) = match &done.verdict {
                Verdict::Failed { why, .. } => ("failed", why.join("; ")),
                Verdict::Passed | Verdict::Refused { .. } => ("passed", String::new()),
            };
            json!({
                "name": done.cell.name(), "seed": done.seed, "verdict": verdict, "detail": detail,
                "seconds": done.took.as_secs_f64(), "operations": done.notes.operations, "kept": done.kept,
                "again": Self::repeat(done), "remarks": done.notes.remarks,
            })
        };
        let plant = |plant: &Planted<SourceCase>| {
            json!({
                "name": plant.bug, "seed": plant.seed, "by": plant.caught_by(),
                "caught": plant.caught(), "clean": plant.clean(),
            })
        };
        let faults = self.by_fault().into_iter().map(|(name, (follows, passed, failed))| {
            json!({ "name": name, "follows": follows, "passed": passed, "failed": failed })
        });
        json!({
            "seed": self.seed, "run": self.cases.len(), "failed": self.failed(), "missing": self.missing(),
            "whole": self.cases.len() >= pairs().len(), "operations": self.records(),
            "postgres": self.servers[0], "mariadb": self.servers[1], "seconds": self.took.as_secs_f64(),
            "faults": faults.collect::<Vec<_>>(),
            "cells": self.cases.iter().map(case).collect::<Vec<_>>(),
            "plants": self.plants.iter().map(plant).collect::<Vec<_>>(),
        })
    }
}
