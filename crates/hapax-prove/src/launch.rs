//! A process of the program under test, about to be started in a cell's world.

use std::process::Command;

use crate::check::history::Moment;
use crate::child::{Child, Exit};
use crate::world::World;

/// What a write beyond the file-size limit does to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailingWrites {
    /// The system kills it, as it does by default.
    Kill,
    /// The write fails with an error, as on a full disk.
    Fail,
}

/// A process about to be started.
#[derive(Debug)]
pub struct Launch<'a> {
    world: &'a mut World,
    name: String,
    arguments: Vec<String>,
    faults: String,
    hurry: Option<&'static str>,
    failing_writes: FailingWrites,
    descriptors: Option<u32>,
}

impl<'a> Launch<'a> {
    pub(crate) fn new(world: &'a mut World, name: String, arguments: Vec<String>) -> Self {
        let (faults, failing_writes) = (String::new(), FailingWrites::Kill);
        Self { world, name, arguments, faults, hurry: None, failing_writes, descriptors: None }
    }
}

impl Launch<'_> {
    /// With these faults: `point:action:pass`, joined by `;`.
    #[must_use]
    pub fn faults(mut self, faults: impl Into<String>) -> Self {
        self.faults = faults.into();
        self
    }

    /// With a time that is over at once.
    #[must_use]
    pub const fn hurry(mut self, time: Option<&'static str>) -> Self {
        self.hurry = time;
        self
    }

    /// So that a file-size limit makes its writes fail instead of killing it.
    #[must_use]
    pub fn can_run_out_of_space(mut self) -> Self {
        self.failing_writes = FailingWrites::Fail;
        self
    }

    /// With no more than so many files and connections open at once.
    #[must_use]
    pub const fn descriptors(mut self, most: u32) -> Self {
        self.descriptors = Some(most);
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(self) -> anyhow::Result<Child> {
        let environment = self.world.environment();
        // An ignored signal and a limit stay across exec, and so does the pid.
        let before = match (self.failing_writes, self.descriptors) {
            (FailingWrites::Kill, None) => None,
            (FailingWrites::Fail, None) => Some("trap '' XFSZ".to_owned()),
            (FailingWrites::Kill, Some(most)) => Some(format!("ulimit -n {most}")),
            (FailingWrites::Fail, Some(most)) => Some(format!("trap '' XFSZ; ulimit -n {most}")),
        };
        let mut command = match before {
            None => Command::new(&environment.hapax),
            Some(before) => {
                let mut shell = Command::new("/bin/sh");
                shell.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\"")).arg(&environment.hapax);
                shell
            }
        };
        command.args(&self.arguments).current_dir(&self.world.dir).env_clear().env("NO_COLOR", "1");
        command.env("HAPAX_FAULT_LOG", self.world.dir.join(fault_log(&self.name)));
        if !self.faults.is_empty() {
            command.env("HAPAX_FAULT", &self.faults);
        }
        if let Some(time) = self.hurry {
            command.env("HAPAX_HURRY", time);
        }
        if let Some(plant) = &environment.plant {
            command.env("HAPAX_PLANT", plant);
        }
        let what = format!("hapax {} {}", self.arguments.join(" "), self.faults);
        self.world.note(Moment::Invoked { worker: self.name.clone(), what });
        Child::start(&self.name, &mut command, &self.world.dir.join(format!("{}.log", self.name)))
    }

    /// Starts it and waits for its end.
    ///
    /// # Errors
    /// If it cannot be started or does not end.
    pub fn run(self) -> anyhow::Result<(Exit, String)> {
        let Launch { world, name, arguments, faults, hurry, failing_writes, descriptors } = self;
        let again = Launch { world: &mut *world, name, arguments, faults, hurry, failing_writes, descriptors };
        let mut child = again.start()?;
        let exit = world.wait(&mut child)?;
        Ok((exit, child.said()))
    }
}

pub(crate) fn fault_log(name: &str) -> String {
    format!("{name}.faults")
}

/// The end of what a process said, on one line.
#[must_use]
pub fn last_words(child: &Child) -> String {
    let said = child.said();
    let lines: Vec<&str> = said.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}
