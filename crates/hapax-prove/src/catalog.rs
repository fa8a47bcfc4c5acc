//! Every cell there is.

use crate::cell::{Cell, Kind};
use crate::points::{Action, POINTS, Reach, Way};
use crate::scenario::Scenario;
use crate::setting::{Guarantee, Place, Setting};
use crate::shape::Shape;

const fn at(guarantee: Guarantee, shape: Shape, place: Place) -> Setting {
    Setting::new(guarantee, shape, place)
}

/// The settings in which every fault point is tried.
pub static SETTINGS: [Setting; 14] = [
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::IgnoreFirst, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Update, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::Update, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::NewerDeclared, Place::Sink),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::Sink),
    at(Guarantee::AtMostOnce, Shape::Append, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::State),
    at(Guarantee::IdempotentKeys, Shape::Update, Place::State),
    at(Guarantee::IdempotentKeys, Shape::NewerDeclared, Place::State),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::State),
    at(Guarantee::AtMostOnce, Shape::Append, Place::State),
];

/// The settings that the audit must refuse.
pub static REFUSED: [Setting; 8] = [
    at(Guarantee::IdempotentKeys, Shape::Append, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::Append, Place::State),
    at(Guarantee::IdempotentKeys, Shape::Update, Place::State),
    at(Guarantee::ExactlyOnce, Shape::IgnoreDiffering, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Append, Place::State),
    at(Guarantee::ExactlyOnce, Shape::IgnoreEvent, Place::State),
    at(Guarantee::ExactlyOnce, Shape::Update, Place::State),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::State),
];

/// All cells, in a fixed order.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for point in &POINTS {
        for &action in point.actions {
            for setting in SETTINGS.into_iter().filter(|setting| fits(point.way, point.reach, action, *setting)) {
                cells.push(Cell { kind: Kind::Point(point, action), setting });
            }
        }
    }
    for scenario in Scenario::ALL {
        for setting in scenario.settings() {
            cells.push(Cell { kind: Kind::Scenario(scenario), setting });
        }
    }
    cells.extend(REFUSED.map(|setting| Cell { kind: Kind::Refused, setting }));
    cells
}

fn fits(way: Way, reach: Reach, action: Action, setting: Setting) -> bool {
    match (way, setting.place, reach) {
        // Letters live beside progress; a replay without a version would overwrite, and is refused in `update`.
        (Way::Replay, Place::Sink, _) => matches!(setting.shape, Shape::Append | Shape::Newer | Shape::IgnoreEvent),
        (_, Place::State, Reach::SinkOnly) | (Way::Replay, Place::State, _) => false,
        // Where nothing fences, a stopped worker that wakes up writes again: the audit says so, and there is
        // nothing to prove.
        (_, Place::State, Reach::Everywhere) => action == Action::Kill,
        (_, Place::Sink, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Goal: no cell is there twice and none of the lists is forgotten. Method: names, points and scenarios counted.
    #[test]
    fn every_point_and_scenario_has_cells_with_names_of_their_own() {
        let cells = cells();
        let names: BTreeSet<String> = cells.iter().map(Cell::name).collect();
        assert_eq!(names.len(), cells.len());
        for point in &POINTS {
            for &action in point.actions {
                let tried = cells.iter().filter(|cell| cell.kind == Kind::Point(point, action)).count();
                assert!(tried >= 4, "{} {} has only {tried} cells", point.name, action.name());
            }
        }
        for scenario in Scenario::ALL {
            assert!(cells.iter().any(|cell| cell.kind == Kind::Scenario(scenario)), "{}", scenario.name());
        }
        assert_eq!(cells.iter().filter(|cell| cell.kind == Kind::Refused).count(), REFUSED.len());
    }

    /// Goal: every guarantee meets every point that is on its path.
    #[test]
    fn every_guarantee_meets_every_engine_and_sql_point() {
        for point in POINTS.iter().filter(|point| point.way != Way::Replay) {
            for guarantee in Guarantee::ALL {
                let met = |cell: &Cell| {
                    matches!(cell.kind, Kind::Point(at, _) if at == point) && cell.setting.guarantee == guarantee
                };
                assert!(cells().iter().any(met), "{} {}", point.name, guarantee.name());
            }
        }
    }
}
