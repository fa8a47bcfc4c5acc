//! Which cells a time-boxed run takes: every kind its turn, in an order that the seed gives.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cell::Cell;
use crate::database::Engine;

/// All `cells` in the order of a seed: one of each kind, then another of each kind, and so on, so that any prefix is
/// as even as it can be.
#[must_use]
pub fn order(cells: Vec<Cell>, seed: u64) -> Vec<Cell> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut kinds: BTreeMap<(String, Engine), Vec<Cell>> = BTreeMap::new();
    for cell in cells {
        kinds.entry(cell.turn()).or_default().push(cell);
    }
    let mut kinds: Vec<Vec<Cell>> = kinds.into_values().collect();
    kinds.iter_mut().for_each(|kind| random.shuffle(kind));
    random.shuffle(&mut kinds);
    let mut ordered = Vec::new();
    while !kinds.is_empty() {
        ordered.extend(kinds.iter_mut().filter_map(Vec::pop));
        kinds.retain(|kind| !kind.is_empty());
    }
    ordered
}

/// The beginning of `ordered` that should fit into `time` with `jobs` at a time.
#[must_use]
pub fn fitting(ordered: Vec<Cell>, time: Duration, jobs: usize) -> Vec<Cell> {
    let budget = time.as_secs_f64() * jobs.max(1) as f64;
    let mut spent = 0.0;
    ordered
        .into_iter()
        .take_while(|cell| {
            spent += cell.cost_seconds();
            spent <= budget
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::catalog::cells;

    /// Goal: a seed names one order, another seed another, and no cell is lost. Method: compare.
    #[test]
    fn a_seed_gives_one_order_of_all_cells() {
        let once = order(cells(), 7);
        assert_eq!(once, order(cells(), 7));
        assert_ne!(once, order(cells(), 8));
        assert_eq!(once.len(), cells().len());
    }

    /// Goal: every point and scenario gets its turn before any gets a second. Method: look at the first round.
    #[test]
    fn every_kind_gets_its_turn_first() {
        let kinds: BTreeSet<(String, Engine)> = cells().iter().map(Cell::turn).collect();
        let first: BTreeSet<(String, Engine)> = order(cells(), 3).iter().take(kinds.len()).map(Cell::turn).collect();
        assert_eq!(first, kinds);
    }

    /// Goal: a slice is a beginning of the order, longer with more time. Method: two lengths.
    #[test]
    fn a_longer_slice_begins_with_the_shorter() {
        let short = fitting(order(cells(), 3), Duration::from_secs(60), 2);
        let long = fitting(order(cells(), 3), Duration::from_secs(300), 2);
        assert!(short.len() < long.len() && long.starts_with(&short) && short.len() > 20);
    }
}
