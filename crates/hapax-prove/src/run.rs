//! Runs cells, some at a time, and keeps the directories of those that failed.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cell::{Cell, Kind};
use crate::check::Finding;
use crate::points::Way;
use crate::scenario::{point, refused};
use crate::servers::Need;
use crate::workload::Mix;
use crate::world::{Environment, World};

/// How a cell ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing that is forbidden happened.
    Passed,
    /// The audit refused the setting, as it must, with this code.
    Refused {
        /// Such as `HX1301`.
        code: String,
    },
    /// Something that is forbidden happened, or the cell could not be run to its end.
    Failed {
        /// What is wrong.
        why: Vec<String>,
        /// The kinds of anomaly found.
        anomalies: Vec<&'static str>,
    },
}

/// A cell that has been run.
#[derive(Debug, Clone)]
pub struct Done {
    /// Which.
    pub cell: Cell,
    /// The run's seed, from which the cell made its own.
    pub seed: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
    /// Where its directory is, if it was kept.
    pub kept: Option<PathBuf>,
    /// Remarks, such as how the disk was filled.
    pub remarks: Vec<String>,
}

/// Whether directories of cells that passed are kept too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Only those of failed cells.
    Failed,
    /// All.
    All,
}

/// Runs one cell in a directory of its own.
#[must_use]
pub fn run_cell(environment: &Environment, cell: Cell, seed: u64, keep: Keep) -> Done {
    let started = Instant::now();
    let plant = environment.plant.as_deref().map(|plant| format!(".{plant}")).unwrap_or_default();
    let dir = environment.base.join(format!("{}.{seed}{plant}", cell.name().replace('/', ".")));
    // Left over from an earlier run with the same seed: what is judged must be of this run.
    if dir.exists() {
        drop(std::fs::remove_dir_all(&dir));
    }
    let own_seed = cell.seed(seed);
    let mut remarks = Vec::new();
    let verdict = match tell(environment, cell, own_seed, &dir, &mut remarks) {
        Ok(verdict) => verdict,
        Err(error) => Verdict::Failed { why: vec![format!("{error:#}")], anomalies: vec!["could not be run"] },
    };
    let keeps = keep == Keep::All || matches!(verdict, Verdict::Failed { .. });
    if !keeps {
        drop(std::fs::remove_dir_all(&dir));
    }
    Done { cell, seed, verdict, took: started.elapsed(), kept: keeps.then_some(dir), remarks }
}

fn tell(
    environment: &Environment,
    cell: Cell,
    seed: u64,
    dir: &std::path::Path,
    remarks: &mut Vec<String>,
) -> anyhow::Result<Verdict> {
    let (mix, need) = match cell.kind {
        Kind::Scenario(scenario) => (scenario.mix(), scenario.need(cell.setting.stack.engine())),
        Kind::Point(point, _) if point.way == Way::Pair => (Mix::Paired, Need::Databases),
        Kind::Point(..) | Kind::Refused => (Mix::Poisoned, Need::Databases),
    };
    let mut world = World::new(environment, dir, cell.setting, (mix, need), seed)?;
    let mut random = fastrand::Rng::with_seed(seed);
    if cell.kind != Kind::Refused {
        world.set_up()?;
    }
    let told = match cell.kind {
        Kind::Point(point, action) => point::run(&mut world, &mut random, point, action).map(|()| None),
        Kind::Scenario(scenario) => scenario.run(&mut world, &mut random).map(|()| None),
        Kind::Refused => refused::run(&mut world).map(Some),
    };
    remarks.append(&mut world.remarks);
    let findings = world.verdict();
    let history: String = world.history().moments.iter().map(|moment| format!("{moment:?}\n")).collect();
    std::fs::write(dir.join("history.txt"), history)?;
    if told.is_err() || !findings.is_empty() {
        world.dump();
    }
    let code = match told {
        Ok(code) => code,
        // What was found before the story broke off is worth more than where it broke off.
        Err(error) => return Ok(failed(&findings, Some(format!("{error:#}")))),
    };
    match (findings.is_empty(), code) {
        (false, _) => Ok(failed(&findings, None)),
        (true, Some(code)) => Ok(Verdict::Refused { code }),
        (true, None) => Ok(Verdict::Passed),
    }
}

fn failed(findings: &[Finding], error: Option<String>) -> Verdict {
    let mut anomalies: Vec<&'static str> = findings.iter().map(|finding| finding.anomaly.name()).collect();
    anomalies.sort_unstable();
    anomalies.dedup();
    if anomalies.is_empty() {
        anomalies.push("could not be run");
    }
    Verdict::Failed { why: findings.iter().map(ToString::to_string).chain(error).collect(), anomalies }
}

/// Runs `cells`, `jobs` at a time, until they are done or `until` has come; calls `show` after each. Returns those that
/// were run, and how many were left because the time was up.
pub fn run_all(
    environment: &Environment,
    cells: Vec<Cell>,
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
