//! A cell: one fault or scenario in one setting, with a seed of its own.

use crate::database::Engine;
use crate::points::{Action, Point};
use crate::scenario::Scenario;
use crate::setting::Setting;

/// What is done in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A fault at a point.
    Point(&'static Point, Action),
    /// A story.
    Scenario(Scenario),
    /// A combination that the audit must refuse.
    Refused,
}

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// What is done.
    pub kind: Kind,
    /// In which setting.
    pub setting: Setting,
}

impl Cell {
    /// What is done, without the setting: cells of one kind differ in the setting only.
    #[must_use]
    pub fn kind_name(&self) -> String {
        match self.kind {
            Kind::Point(point, action) => format!("point/{}/{}", point.name, action.name()),
            Kind::Scenario(scenario) => format!("scenario/{}", scenario.name()),
            Kind::Refused => "refused".to_owned(),
        }
    }

    /// Cells that take turns with each other in a slice: what is done, and on which kind of database.
    #[must_use]
    pub fn turn(&self) -> (String, Engine) {
        (self.kind_name(), self.setting.stack.engine())
    }

    /// Whether it needs a replica of MariaDB's.
    #[must_use]
    pub fn needs_replica(&self) -> bool {
        matches!(self.kind, Kind::Scenario(scenario) if scenario.needs_replica())
            && self.setting.stack.engine() == Engine::Mysql
    }

    /// Its name, unique.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.kind_name(), self.setting)
    }

    /// About how many seconds it takes.
    #[must_use]
    pub const fn cost_seconds(&self) -> f64 {
        let files = match self.kind {
            Kind::Refused => 0.3,
            Kind::Point(_, Action::Kill | Action::Drop | Action::Lose) => 0.8,
            Kind::Point(_, Action::Stop) => 3.5,
            Kind::Scenario(Scenario::TwoWorkers) => 6.5,
            Kind::Scenario(Scenario::MemoryShort) => 6.0,
            Kind::Scenario(Scenario::BlockedNeighbours | Scenario::DescriptorsShort | Scenario::Cuts) => 4.0,
            Kind::Scenario(Scenario::ZombieEarly | Scenario::ZombieLate | Scenario::DoubtfulZombie) => 4.0,
            Kind::Scenario(scenario) if scenario.needs_replica() => 8.0,
            Kind::Scenario(_) => 1.8,
        };
        // Databases to make and to drop, a server's own starts.
        if self.setting.stack.has_server() { files + 1.2 } else { files }
    }
}
