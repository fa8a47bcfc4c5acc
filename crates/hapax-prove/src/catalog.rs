//! Every cell there is.

use crate::cell::{Cell, Kind};
use crate::points::{Action, POINTS, Point, Reach, Way};
use crate::scenario::Scenario;
use crate::setting::{Guarantee, Place, Setting, Stack};
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

/// The settings in which every fault point is tried over PostgreSQL.
pub static SERVER_SETTINGS: [Setting; 13] = [
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink).on(Stack::Postgres),
    at(Guarantee::ExactlyOnce, Shape::Update, Place::Sink).on(Stack::Postgres),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink).on(Stack::Postgres),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::Sink).on(Stack::Postgres),
    at(Guarantee::IdempotentKeys, Shape::NewerDeclared, Place::State).on(Stack::Postgres),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::Sink).on(Stack::Postgres),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::State).on(Stack::Postgres),
    at(Guarantee::AtMostOnce, Shape::Append, Place::Sink).on(Stack::Postgres),
    at(Guarantee::AtMostOnce, Shape::Append, Place::State).on(Stack::Postgres),
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink).on(Stack::PostgresOnly),
    at(Guarantee::ExactlyOnce, Shape::IgnoreFirst, Place::Sink).on(Stack::PostgresOnly),
    at(Guarantee::IdempotentKeys, Shape::Update, Place::Sink).on(Stack::PostgresOnly),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::State).on(Stack::PostgresOnly),
];

/// The settings in which every fault point is tried over MariaDB.
pub static MYSQL_SETTINGS: [Setting; 12] = [
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink).on(Stack::Mysql),
    at(Guarantee::ExactlyOnce, Shape::Update, Place::Sink).on(Stack::Mysql),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink).on(Stack::Mysql),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::Sink).on(Stack::Mysql),
    at(Guarantee::IdempotentKeys, Shape::NewerDeclared, Place::State).on(Stack::Mysql),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::Sink).on(Stack::Mysql),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::State).on(Stack::Mysql),
    at(Guarantee::AtMostOnce, Shape::Append, Place::Sink).on(Stack::Mysql),
    at(Guarantee::AtMostOnce, Shape::Append, Place::State).on(Stack::Mysql),
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink).on(Stack::MysqlAndPostgres),
    at(Guarantee::ExactlyOnce, Shape::IgnoreFirst, Place::Sink).on(Stack::MysqlAndPostgres),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::State).on(Stack::MysqlAndPostgres),
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
            let settings = SETTINGS.into_iter().chain(SERVER_SETTINGS).chain(MYSQL_SETTINGS);
            for setting in settings.filter(|setting| fits(point, action, *setting)) {
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
    for stack in [Stack::Postgres, Stack::Mysql] {
        cells.extend(REFUSED.map(|setting| Cell { kind: Kind::Refused, setting: setting.on(stack) }));
    }
    cells
}

fn fits(point: &Point, action: Action, setting: Setting) -> bool {
    if action.needs_wire() && !setting.stack.has_server() {
        return false;
    }
    if point.way == Way::Pair && setting.shape == Shape::IgnoreFirst {
        // Its lines are repeated whole, which says nothing about pairs.
        return false;
    }
    if point.way == Way::Prefix && setting.guarantee == Guarantee::AtMostOnce {
        // An epoch that is never repeated has no parts: in doubt it is given up as a whole.
        return false;
    }
    match (point.way, setting.place, point.reach) {
        // The claim then goes to the state store, which is not behind the wire.
        (Way::Start, Place::State, _) if action.needs_wire() => false,
        // Letters live beside progress; a replay without a version would overwrite, and is refused in `update`.
        (Way::Replay, Place::Sink, _) => matches!(setting.shape, Shape::Append | Shape::Newer | Shape::IgnoreEvent),
        (_, Place::State, Reach::SinkOnly) | (Way::Replay, Place::State, _) | (_, Place::Sink, Reach::StateOnly) => {
            false
        }
        // Where nothing fences, a stopped worker that wakes up writes again: the audit says so, and there is
        // nothing to prove.
        (_, Place::State, Reach::Everywhere | Reach::StateOnly) => action != Action::Stop,
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
                assert!(tried >= 3, "{} {} has only {tried} cells", point.name, action.name());
            }
        }
        for scenario in Scenario::ALL {
            assert!(cells.iter().any(|cell| cell.kind == Kind::Scenario(scenario)), "{}", scenario.name());
        }
        assert_eq!(cells.iter().filter(|cell| cell.kind == Kind::Refused).count(), 3 * REFUSED.len());
    }

    /// Goal: every guarantee meets every point that is on its path.
    #[test]
    fn every_guarantee_meets_every_engine_and_sql_point() {
        for point in POINTS.iter().filter(|point| point.way != Way::Replay) {
            let has_parts = |guarantee: &Guarantee| point.way != Way::Prefix || *guarantee != Guarantee::AtMostOnce;
            // No exactly-once without progress beside the rows.
            let promised =
                |guarantee: &Guarantee| point.reach != Reach::StateOnly || *guarantee != Guarantee::ExactlyOnce;
            for guarantee in Guarantee::ALL.into_iter().filter(has_parts).filter(promised) {
                let met = |cell: &Cell| {
                    matches!(cell.kind, Kind::Point(at, _) if at == point) && cell.setting.guarantee == guarantee
                };
                assert!(cells().iter().any(met), "{} {}", point.name, guarantee.name());
            }
        }
    }
}
