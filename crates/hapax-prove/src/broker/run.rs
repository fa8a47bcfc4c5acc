//! Runs the broker's cells and planted bugs, and keeps the directories of those that failed.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::cell::BrokerCell;
use super::check::{Anomaly, Finding, judge};
use super::story::tell;
use super::world::{Environment, World};
use crate::run::{Keep, Verdict};

/// A cell that has been run.
#[derive(Debug, Clone)]
pub struct Done {
    /// Which.
    pub cell: BrokerCell,
    /// The run's seed, from which the cell made its own.
    pub seed: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
    /// How many operations were judged.
    pub operations: usize,
    /// Where its directory is, if it was kept.
    pub kept: Option<PathBuf>,
    /// Remarks, such as how the disk was filled.
    pub remarks: Vec<String>,
}

/// Runs one cell in a directory of its own.
#[must_use]
pub fn run_cell(environment: &Environment, cell: BrokerCell, seed: u64, keep: Keep) -> Done {
    let started = Instant::now();
    let plant = environment.plant.as_deref().map(|plant| format!(".{plant}")).unwrap_or_default();
    let dir = environment.base.join(format!("{}.{seed}{plant}", cell.name().replace('/', ".")));
    // Left over from an earlier run with the same seed: what is judged must be of this run.
    if dir.exists() {
        drop(std::fs::remove_dir_all(&dir));
    }
    let mut done = Done {
        cell,
        seed,
        verdict: Verdict::Passed,
        took: Duration::ZERO,
        operations: 0,
        kept: None,
        remarks: Vec::new(),
    };
    if let Err(error) = play(environment, &mut done, &dir) {
        done.verdict = Verdict::Failed { why: vec![format!("{error:#}")], anomalies: vec!["could not be run"] };
    }
    if keep == Keep::All || done.verdict != Verdict::Passed {
        done.kept = Some(dir);
    } else {
        drop(std::fs::remove_dir_all(&dir));
    }
    done.took = started.elapsed();
    done
}

fn play(environment: &Environment, done: &mut Done, dir: &Path) -> anyhow::Result<()> {
    let mut world = World::new(environment, done.cell, dir, done.cell.seed(done.seed))?;
    let told = tell(&mut world, done.cell);
    if told.is_err() {
        world.wake_all();
    }
    done.remarks.append(&mut world.remarks);
    // What was found before the story broke off is worth more than where it broke off.
    let mut findings = Vec::new();
    let closed = if world.load.is_some() { world.close().map(Some) } else { Ok(None) };
    let read = match closed {
        Ok(Some(history)) => {
            done.operations = history.operations.len();
            findings = judge(&history);
            if !findings.is_empty() || told.is_err() {
                std::fs::write(dir.join("history.txt"), history.text())?;
            }
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    let conduct = |detail: String| Finding { anomaly: Anomaly::Conduct, detail };
    findings.extend(world.complaints.drain(..).map(conduct));
    findings.extend(told.err().map(|error| conduct(format!("{error:#}"))));
    findings.extend(read.err().map(|error| conduct(format!("{error:#}"))));
    if !findings.is_empty() {
        let mut anomalies: Vec<&'static str> = findings.iter().map(|finding| finding.anomaly.name()).collect();
        anomalies.sort_unstable();
        anomalies.dedup();
        done.verdict = Verdict::Failed { why: findings.iter().map(ToString::to_string).collect(), anomalies };
    }
    Ok(())
}

/// Runs `cells`, `jobs` at a time, until they are done or `until` has come; calls `show` after each. Returns those that
/// were run, and how many were left because the time was up.
pub fn run_all(
    environment: &Environment,
    cells: Vec<BrokerCell>,
    seed: u64,
    jobs: usize,
    until: Option<Instant>,
    keep: Keep,
    show: impl Fn(&Done) + Sync,
) -> (Vec<Done>, usize) {
    let queue = Mutex::new(VecDeque::from(cells));
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while until.is_none_or(|until| Instant::now() < until) {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(cell) = next else { break };
                    let result = run_cell(environment, cell, seed, keep);
                    show(&result);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                }
            });
        }
    });
    let left = queue.into_inner().unwrap_or_else(PoisonError::into_inner).len();
    (done.into_inner().unwrap_or_else(PoisonError::into_inner), left)
}
