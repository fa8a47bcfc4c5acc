//! A run over seeds: which, how many at a time, for how long; and the planted bugs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::case::SourceCase;
use super::plants::PLANTS;
use super::report::{SourcesReport, line};
use crate::plants::{self, Planted};
use crate::run::{Done, Keep, run_cell};
use crate::world::Environment;

/// The part of a slice's time in which cases are begun: the last of them take the rest.
const BEGINS_PART: f64 = 0.6;

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SeedRange {
    /// So many seeds.
    Count(u64),
    /// As many as fit into so many minutes, those that are begun last included.
    Minutes(f64),
}

/// Whether bugs are planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedBugs {
    /// None.
    No,
    /// After the seeds.
    Too,
    /// And no other seeds.
    Only,
}

/// What is wanted.
#[derive(Debug)]
pub struct SourcesCampaign {
    /// What all cases share.
    pub environment: Environment,
    /// The program's name, for the command that repeats a case.
    pub hapax: PathBuf,
    /// The first seed.
    pub seed: u64,
    /// How many.
    pub range: SeedRange,
    /// Planted bugs.
    pub plants: PlantedBugs,
    /// How many cases at a time.
    pub jobs: usize,
    /// Which directories stay.
    pub keep: Keep,
}

impl SourcesCampaign {
    /// The seeds whose cases `wanted` names, in order; for a slice as many as there could ever be.
    fn seeds(&self, wanted: impl Fn(&str) -> bool) -> Vec<u64> {
        let count = match self.range {
            SeedRange::Count(count) => count,
            SeedRange::Minutes(_) => 10_000,
        };
        let seeds = self.seed..self.seed.saturating_add(count);
        seeds.filter(|seed| wanted(&SourceCase::deal(*seed).name())).collect()
    }

    /// The names of the cases that would be run.
    #[must_use]
    pub fn names(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        self.seeds(wanted).iter().map(|seed| format!("{seed} {}", SourceCase::deal(*seed).name())).collect()
    }

    /// Runs it.
    pub fn run(&self, wanted: impl Fn(&str) -> bool) -> SourcesReport {
        let started = Instant::now();
        let seeds = if self.plants == PlantedBugs::Only { Vec::new() } else { self.seeds(&wanted) };
        let until = match self.range {
            SeedRange::Count(_) => None,
            SeedRange::Minutes(minutes) => Some(started + Duration::from_secs_f64(minutes * 60.0 * BEGINS_PART)),
        };
        let what = if until.is_some() { "as many cases as fit".to_owned() } else { format!("{} cases", seeds.len()) };
        eprintln!("{what} of file sources, from seed {} on, {} at a time", self.seed, self.jobs);
        let cases = self.run_seeds(&seeds, until);
        let bugs = match self.plants {
            PlantedBugs::No => Vec::new(),
            PlantedBugs::Too | PlantedBugs::Only => self.plant_bugs(&wanted),
        };
        SourcesReport {
            seed: self.seed,
            hapax: self.hapax.display().to_string(),
            took: started.elapsed(),
            cases,
            plants: bugs,
            servers: self.environment.servers.versions(),
        }
    }

    fn run_seeds(&self, seeds: &[u64], until: Option<Instant>) -> Vec<Done<SourceCase>> {
        let (next, done) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while until.is_none_or(|until| Instant::now() < until) {
                        let at = usize::try_from(next.fetch_add(1, Ordering::SeqCst)).unwrap_or(usize::MAX);
                        let Some(seed) = seeds.get(at).copied() else { break };
                        let result = run_cell(&self.environment, SourceCase::deal(seed), seed, self.keep);
                        eprintln!("{}", line(&result));
                        done.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|done| done.seed);
        done
    }

    fn plant_bugs(&self, wanted: &impl Fn(&str) -> bool) -> Vec<Planted<SourceCase>> {
        let mut planted = Vec::new();
        for (bug, case) in PLANTS {
            if self.plants == PlantedBugs::Only && !wanted(&format!("{bug} {}", case.name())) {
                continue;
            }
            let result = plants::run(&self.environment, bug, case, self.seed);
            eprintln!("{}", result.line());
            planted.push(result);
        }
        planted
    }
}
