//! What happens in a cell of the broker: its world, its story, its verdict.

use std::path::Path;

use super::cell::BrokerCell;
use super::check::{Anomaly, Finding, judge};
use super::story::tell;
use super::world::{Environment, World};
use crate::run::{NOT_RUN, Notes, Surroundings, Trial, Verdict, failed};

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

impl Trial for BrokerCell {
    type Environment = Environment;
    const NO_CATCH: &'static [&'static str] = &[NOT_RUN, Anomaly::Conduct.name()];
    const CHANCES: u64 = 3;

    fn name(&self) -> String {
        Self::name(self)
    }

    fn play(self, environment: &Environment, seed: u64, dir: &Path, notes: &mut Notes) -> anyhow::Result<Verdict> {
        let mut world = World::new(environment, self, dir, seed)?;
        let told = tell(&mut world, self);
        if told.is_err() {
            world.wake_all();
        }
        notes.remarks.append(&mut world.remarks);
        // What was found before the story broke off is worth more than where it broke off.
        let mut findings = Vec::new();
        let closed = if world.load.is_some() { world.close().map(Some) } else { Ok(None) };
        let read = match closed {
            Ok(Some(history)) => {
                notes.operations = history.operations.len();
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
        if findings.is_empty() {
            return Ok(Verdict::Passed);
        }
        let anomalies = findings.iter().map(|finding| finding.anomaly.name()).collect();
        Ok(failed(anomalies, findings.iter().map(ToString::to_string).collect()))
    }
}
