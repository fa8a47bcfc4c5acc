//! A run of the broker's cells: which, in which order, how many at a time, for how long.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cell::{BrokerCell, cell, cells};
use super::plants::{PLANTS, POWER_PLANT};
use super::power;
use super::report::{Report, line};
use super::world::Environment;
use crate::plants::{self, Planted};
use crate::run::{Done, Keep, run_all, run_cell};

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extent {
    /// Every cell.
    All,
    /// As many as fit into so many minutes, in an order that the seed gives.
    Slice(f64),
    /// Only power loss, with so many seeds.
    Power(u64),
}

/// Whether bugs are planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plants {
    /// None.
    No,
    /// After the cells.
    Too,
    /// And no other cells.
    Only,
}

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// The program under test.
    pub hapax: PathBuf,
    /// Plant this bug in every broker.
    pub plant: Option<String>,
    /// Where cells make their directories.
    pub base: PathBuf,
    /// The seed.
    pub seed: u64,
    /// How much.
    pub extent: Extent,
    /// Planted bugs.
    pub plants: Plants,
    /// How many cells at a time.
    pub jobs: usize,
    /// Which directories stay.
    pub keep: Keep,
}

/// The part of a slice's time that the cells may take; the rest is for planted bugs.
const CELLS_PART: f64 = 0.7;

/// The cells that `wanted` names, in the order of a seed.
#[must_use]
pub fn chosen(seed: u64, wanted: impl Fn(&str) -> bool) -> Vec<BrokerCell> {
    let mut chosen: Vec<BrokerCell> = cells().into_iter().filter(|cell| wanted(&cell.name())).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut chosen);
    chosen
}

impl Campaign {
    /// Runs it.
    pub fn run(&self, wanted: impl Fn(&str) -> bool) -> Report {
        let started = Instant::now();
        let (hapax, plant, base) = (self.hapax.clone(), self.plant.clone(), self.base.clone());
        let environment = Environment { hapax, plant, base, postgres: Arc::default() };
        let part = |part: f64| match self.extent {
            Extent::All | Extent::Power(_) => None,
            Extent::Slice(minutes) => Some(started + Duration::from_secs_f64(minutes * 60.0 * part)),
        };
        let cells = if self.plants == Plants::Only { Vec::new() } else { chosen(self.seed, &wanted) };
        let show = |done: &_| eprintln!("{}", line(done));
        let (done, not_started) = match self.extent {
            Extent::Power(seeds) => (self.cut_power(&environment, seeds), 0),
            Extent::All | Extent::Slice(_) => {
                eprintln!("up to {} broker cells, seed {}, {} at a time", cells.len(), self.seed, self.jobs);
                run_all(&environment, cells, self.seed, self.jobs, part(CELLS_PART), self.keep, show)
            }
        };
        let planted = match (self.extent, self.plants) {
            // The judge must see a store that does not wait for the disk.
            (Extent::Power(_), _) if done.iter().all(|done| done.notes.operations > 0) => {
                vec![plants::run(&environment, POWER_PLANT, power::CELL, self.seed)]
            }
            (Extent::Power(_), _) | (_, Plants::No) => Vec::new(),
            (_, Plants::Too | Plants::Only) => self.plant_bugs(&environment, part(1.0), &wanted),
        };
        Report {
            seed: self.seed,
            hapax: self.hapax.display().to_string(),
            took: started.elapsed(),
            cells: done,
            not_started,
            plants: planted,
            postgres: environment.version(),
        }
    }

    /// One at a time: the first that cannot have a disk of its own says why, and the others would say the same.
    fn cut_power(&self, environment: &Environment, seeds: u64) -> Vec<Done<BrokerCell>> {
        let mut done = Vec::new();
        for seed in self.seed..self.seed.saturating_add(seeds) {
            let result = run_cell(environment, power::CELL, seed, self.keep);
            eprintln!("{}", line(&result));
            let impossible = result.notes.operations == 0;
            done.push(result);
            if impossible {
                break;
            }
        }
        done
    }

    fn plant_bugs(
        &self,
        environment: &Environment,
        until: Option<Instant>,
        wanted: &impl Fn(&str) -> bool,
    ) -> Vec<Planted<BrokerCell>> {
        let mut chosen = PLANTS.to_vec();
        if self.plants == Plants::Only {
            chosen.retain(|(bug, name)| wanted(&format!("{bug} {name}")));
        }
        fastrand::Rng::with_seed(self.seed).shuffle(&mut chosen);
        let mut planted = Vec::new();
        for (bug, name) in chosen {
            let Some(cell) = cell(name) else { continue };
            // Both runs of a bug must fit.
            let end = Instant::now() + Duration::from_secs_f64(cell.cost_seconds() * 2.0);
            if until.is_some_and(|until| end >= until) {
                continue;
            }
            let result = plants::run(environment, bug, cell, self.seed);
            eprintln!("{}", result.line());
            planted.push(result);
        }
        planted
    }
}
