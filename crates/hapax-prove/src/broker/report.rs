//! What a run of the broker's cells says at the end: for people, and as JSON.

use std::time::Duration;

use serde_json::json;

use super::cell::BrokerCell;
use crate::plants::Planted;
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
    /// Cells that were run.
    pub cells: Vec<Done<BrokerCell>>,
    /// Cells that were chosen and not started because the time was up.
    pub not_started: usize,
    /// Planted bugs.
    pub plants: Vec<Planted<BrokerCell>>,
    /// The version of PostgreSQL, if a cell needed it.
    pub postgres: Option<String>,
}

/// One line about a cell.
#[must_use]
pub fn line(done: &Done<BrokerCell>) -> String {
    let (seconds, name, operations) = (done.took.as_secs_f64(), done.cell.name(), done.notes.operations);
    match &done.verdict {
        Verdict::Failed { why, .. } => {
            let mut text = format!("FAILED   {seconds:5.1} s  {name}  {operations} operations");
            why.iter().for_each(|why| text.push_str(&format!("\n           {why}")));
            text
        }
        Verdict::Passed | Verdict::Refused { .. } => {
            format!("ok       {seconds:5.1} s  {name}  {operations} operations")
        }
    }
}

impl Report {
    fn failed(&self) -> usize {
        self.cells.iter().filter(|done| done.verdict != Verdict::Passed).count()
    }

    /// Operations judged in all cells.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.cells.iter().map(|done| done.notes.operations).sum()
    }

    /// Whether everything held, and every planted bug was caught.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.failed() == 0 && self.plants.iter().all(|plant| plant.caught() && plant.clean())
    }

    fn repeat(&self, done: &Done<BrokerCell>) -> String {
        format!(
            "hapax-prove --broker --hapax {} --seed {} --only '={}' --keep",
            self.hapax,
            done.seed,
            done.cell.name()
        )
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for done in self.cells.iter().filter(|done| done.verdict != Verdict::Passed) {
            let kept = done.kept.as_deref().map_or_else(String::new, |dir| dir.display().to_string());
            out.push_str(&format!("\n{}\n  kept in  {kept}\n  again:   {}\n", line(done), self.repeat(done)));
        }
        let mut remarks: Vec<&String> = self.cells.iter().flat_map(|done| &done.notes.remarks).collect();
        remarks.sort_unstable();
        remarks.dedup();
        let (run, failed) = (self.cells.len(), self.failed());
        out.push_str(&format!(
            "\nseed {}\nbroker cells run         {run}\n  passed                 {}\n  failed                 {failed}\noperations judged        {}\ntook                     {:.0} s\n",
            self.seed, run - failed, self.operations(), self.took.as_secs_f64(),
        ));
        if self.not_started > 0 {
            out.push_str(&format!("left for another run     {} (the time was up)\n", self.not_started));
        }
        remarks.iter().for_each(|remark| out.push_str(&format!("note: {remark}\n")));
        for plant in &self.plants {
            out.push_str(&format!("{}\n", plant.line()));
        }
        out
    }

    /// For programs: the same names as in the report of the other cells.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let cell = |done: &Done<BrokerCell>| {
            let (verdict, detail) = match &done.verdict {
                Verdict::Failed { why, .. } => ("failed", why.join("; ")),
                Verdict::Passed | Verdict::Refused { .. } => ("passed", String::new()),
            };
            json!({
                "name": done.cell.name(), "seed": done.seed, "verdict": verdict, "detail": detail,
                "seconds": done.took.as_secs_f64(), "operations": done.notes.operations, "kept": done.kept,
                "again": self.repeat(done), "remarks": done.notes.remarks,
            })
        };
        let plant = |plant: &Planted<BrokerCell>| {
            json!({
                "name": plant.bug, "seed": plant.seed, "by": plant.caught_by(),
                "caught": plant.caught(), "clean": plant.clean(),
            })
        };
        json!({
            "seed": self.seed, "run": self.cells.len(), "failed": self.failed(), "notStarted": self.not_started,
            "operations": self.operations(), "postgres": self.postgres, "seconds": self.took.as_secs_f64(),
            "cells": self.cells.iter().map(cell).collect::<Vec<_>>(),
            "plants": self.plants.iter().map(plant).collect::<Vec<_>>(),
        })
    }
}
