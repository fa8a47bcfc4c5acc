//! What the concurrent reader saw: torn epochs, progress going back, writes of the fenced.

use super::books::adds_up;
use super::history::{EpochRow, History, Sample};
use super::{Anomaly, Finding, some};
use crate::truth::Truth;

/// Judges every sample against the truth of its own prefix, and against the samples before it.
#[must_use]
pub fn judge(truth: &Truth, history: &History, epochs: &[EpochRow]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for run in history.runs() {
        findings.extend(torn(truth, &run));
        findings.extend(went_back(&run));
    }
    // Only the last run's samples say anything about the epoch log that is there now.
    let last: Vec<&Sample> = history.runs().last().unwrap_or_default();
    findings.extend(zombies(&last, epochs));
    findings
}

/// In one read transaction the table must be exactly what the inputs counted as read make of it, the letters those
/// that died among them, the balance that of the rows.
fn torn(truth: &Truth, run: &[&Sample]) -> Vec<Finding> {
    let mut wrong = Vec::new();
    for sample in run {
        let progress = &sample.progress;
        match truth.digest_after(progress.read) {
            Some(digest) if digest == sample.digest => {}
            Some(digest) => wrong.push(format!(
                "at epoch {} with {} inputs read, {} rows were visible where there must be {}{}",
                progress.epoch,
                progress.read,
                sample.digest.rows,
                digest.rows,
                if sample.digest.rows == digest.rows { ", and they are not the same" } else { "" }
            )),
            None => wrong.push(format!("{} inputs read, more than were ever written", progress.read)),
        }
        if sample.balance.is_some_and(|balance| balance.rows != balance.kept) {
            wrong.push(format!("at epoch {} the balance was not that of the rows", progress.epoch));
        }
        if sample.letters != progress.dead {
            wrong.push(format!("{} letters visible, {} inputs counted as dead", sample.letters, progress.dead));
        }
    }
    let books = run.iter().filter(|s| !adds_up(&s.progress)).map(|s| format!("{:?}", s.progress));
    let books: Vec<String> = books.collect();
    let mut findings = Vec::new();
    if !wrong.is_empty() {
        findings.push(Finding::new(Anomaly::Torn, format!("{} times: {}", wrong.len(), some(&wrong))));
    }
    if !books.is_empty() {
        findings.push(Finding::new(Anomaly::Ledger, format!("did not add up: {}", some(&books))));
    }
    findings
}

/// Generation, epoch and every total only grow.
fn went_back(run: &[&Sample]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pair in run.windows(2) {
        let (before, after) = (&pair[0].progress, &pair[1].progress);
        let grew = before.generation <= after.generation
            && before.epoch <= after.epoch
            && before.read <= after.read
            && before.delivered <= after.delivered
            && before.dead <= after.dead
            && before.rows <= after.rows;
        if !grew {
            findings.push(Finding::new(Anomaly::WentBack, format!("from {before:?} to {after:?}")));
        }
    }
    findings
}

/// Once generation G was seen to own the delivery at epoch E, every later epoch is of generation G or a newer one.
fn zombies(run: &[&Sample], epochs: &[EpochRow]) -> Vec<Finding> {
    let mut owner_at: Vec<(u64, u64)> = run.iter().map(|s| (s.progress.epoch, s.progress.generation)).collect();
    owner_at.dedup();
    let written_by_fenced = |e: &&EpochRow| owner_at.iter().any(|(at, owner)| e.epoch > *at && e.generation < *owner);
    let mut wrong: Vec<String> = epochs
        .iter()
        .filter(written_by_fenced)
        .map(|e| format!("epoch {} was written by generation {}, already fenced", e.epoch, e.generation))
        .collect();
    for pair in epochs.windows(2) {
        if pair[1].generation < pair[0].generation {
            wrong.push(format!("epoch {} is of an older generation than the one before", pair[1].epoch));
        }
    }
    if wrong.is_empty() { Vec::new() } else { vec![Finding::new(Anomaly::ZombieWrite, some(&wrong))] }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
