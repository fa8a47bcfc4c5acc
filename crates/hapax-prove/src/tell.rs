//! What happens in a cell of the workflows: its world, its fault or story, its verdict.

use std::path::Path;

use crate::cell::{Cell, Kind};
use crate::check::Finding;
use crate::points::Way;
use crate::run::{Notes, Surroundings, Trial, Verdict, failed};
use crate::scenario::{point, refused};
use crate::servers::Need;
use crate::workload::Mix;
use crate::world::{Environment, World};

impl Surroundings for Environment {
    fn base(&self) -> &Path {
        &self.base
    }

    fn plant(&self) -> Option<&str> {
        self.plant.as_deref()
    }

    fn with_plant(&self, plant: Option<&str>) -> Self {
        Self { plant: plant.map(str::to_owned), ..self.clone() }
    }
}

impl Trial for Cell {
    type Environment = Environment;
    const NO_CATCH: &'static [&'static str] = &[crate::run::NOT_RUN];
    const CHANCES: u64 = 1;

    fn name(&self) -> String {
        Self::name(self)
    }

    fn play(self, environment: &Environment, seed: u64, dir: &Path, notes: &mut Notes) -> anyhow::Result<Verdict> {
        tell(environment, self, seed, dir, notes)
    }
}

fn tell(environment: &Environment, cell: Cell, seed: u64, dir: &Path, notes: &mut Notes) -> anyhow::Result<Verdict> {
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
    notes.remarks.append(&mut world.remarks);
    let findings = world.verdict();
    let history: String = world.history().moments.iter().map(|moment| format!("{moment:?}\n")).collect();
    std::fs::write(dir.join("history.txt"), history)?;
    if told.is_err() || !findings.is_empty() {
        world.dump();
    }
    let code = match told {
        Ok(code) => code,
        // What was found before the story broke off is worth more than where it broke off.
        Err(error) => return Ok(verdict_of(&findings, Some(format!("{error:#}")))),
    };
    match (findings.is_empty(), code) {
        (false, _) => Ok(verdict_of(&findings, None)),
        (true, Some(code)) => Ok(Verdict::Refused { code }),
        (true, None) => Ok(Verdict::Passed),
    }
}

fn verdict_of(findings: &[Finding], error: Option<String>) -> Verdict {
    let anomalies = findings.iter().map(|finding| finding.anomaly.name()).collect();
    failed(anomalies, findings.iter().map(ToString::to_string).chain(error).collect())
}
