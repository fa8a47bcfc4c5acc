//! Runs cells of any campaign, some at a time, and keeps the directories of those that failed.
//!
//! Not here: what happens in a cell of the workflows (`tell`), and in one of the broker (`broker::run`).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

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

/// What all cells of a run share.
pub trait Surroundings: Clone + Sync {
    /// Where cells make their directories.
    fn base(&self) -> &Path;
    /// The bug that is planted.
    fn plant(&self) -> Option<&str>;
    /// The same with this bug, or with none.
    #[must_use]
    fn with_plant(&self, plant: Option<&str>) -> Self;
}

/// A cell of a campaign.
pub trait Trial: Copy + Send {
    /// What all its cells share.
    type Environment: Surroundings;
    /// Anomalies that are not the judge's: by these alone no planted bug is caught.
    const NO_CATCH: &'static [&'static str];
    /// With how many seeds a planted bug may be tried: whether it shows may be a race, which the bug wins now and then.
    const CHANCES: u64;

    /// Its name, unique.
    fn name(&self) -> String;

    /// What happens in it.
    ///
    /// # Errors
    /// If it could not be run.
    fn play(self, environment: &Self::Environment, seed: u64, dir: &Path, notes: &mut Notes)
    -> anyhow::Result<Verdict>;

    /// Its own seed in a run with `seed`: the same whichever other cells run.
    fn seed(&self, seed: u64) -> u64 {
        // FNV-1a over the name, mixed with the run's seed.
        let start = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.name().bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// What a cell says besides its verdict.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// Remarks, such as how the disk was filled.
    pub remarks: Vec<String>,
    /// How many operations were judged, where operations are.
    pub operations: usize,
}

/// A cell that has been run.
#[derive(Debug, Clone)]
pub struct Done<C> {
    /// Which.
    pub cell: C,
    /// The run's seed, from which the cell made its own.
    pub seed: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
    /// Where its directory is, if it was kept.
    pub kept: Option<PathBuf>,
    /// What else it said.
    pub notes: Notes,
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
pub fn run_cell<C: Trial>(environment: &C::Environment, cell: C, seed: u64, keep: Keep) -> Done<C> {
    let started = Instant::now();
    let plant = environment.plant().map(|plant| format!(".{plant}")).unwrap_or_default();
    let dir = environment.base().join(format!("{}.{seed}{plant}", cell.name().replace('/', ".")));
    // Left over from an earlier run with the same seed: what is judged must be of this run.
    if dir.exists() {
        drop(std::fs::remove_dir_all(&dir));
    }
    let mut notes = Notes::default();
    let verdict = cell
        .play(environment, cell.seed(seed), &dir, &mut notes)
        .unwrap_or_else(|error| Verdict::Failed { why: vec![format!("{error:#}")], anomalies: vec![NOT_RUN] });
    let keeps = keep == Keep::All || matches!(verdict, Verdict::Failed { .. });
    if !keeps {
        drop(std::fs::remove_dir_all(&dir));
    }
    Done { cell, seed, verdict, took: started.elapsed(), kept: keeps.then_some(dir), notes }
}

/// The anomaly of a cell that could not be run to its end.
pub const NOT_RUN: &str = "could not be run";

/// A failure of these anomalies, each named once.
#[must_use]
pub fn failed(mut anomalies: Vec<&'static str>, why: Vec<String>) -> Verdict {
    anomalies.sort_unstable();
    anomalies.dedup();
    if anomalies.is_empty() {
        anomalies.push(NOT_RUN);
    }
    Verdict::Failed { why, anomalies }
}

/// Runs `cells`, `jobs` at a time, until they are done or `until` has come; calls `show` after each. Returns those that
/// were run, and how many were left because the time was up.
pub fn run_all<C: Trial>(
    environment: &C::Environment,
    cells: Vec<C>,
    seed: u64,
    jobs: usize,
    until: Option<Instant>,
    keep: Keep,
    show: impl Fn(&Done<C>) + Sync,
) -> (Vec<Done<C>>, usize) {
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
