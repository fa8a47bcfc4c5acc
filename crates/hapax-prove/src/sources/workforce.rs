//! The workers of a case: started, killed, taken over, and watched for how they end.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::case::WorkerArrangement;
use super::source_world::SourceWorld;
use super::verdict;
use crate::check::Anomaly;
use crate::child::{Child, Exit};
use crate::setting::Place;
use crate::world::SOON;

/// How long a worker may take to find out that it must stop: twice the 30 seconds between two comparisons, and more.
pub const STOPS_WITHIN: Duration = Duration::from_secs(100);
/// How long everything may take to be delivered once nothing hinders it.
pub const DELIVERS_WITHIN: Duration = Duration::from_secs(100);

/// A worker that has ended.
#[derive(Debug, Clone)]
pub struct EndedWorker {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub exit: Exit,
    /// Everything it said.
    pub said: String,
}

/// What came of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Everything written was read.
    Delivered,
    /// A worker ended with code 5.
    Stopped,
    /// Neither.
    Stalled,
}

/// The workers, living and dead.
#[derive(Debug, Default)]
pub struct Workforce {
    /// Those that run, the active one first.
    pub living: Vec<Child>,
    /// Those that ended by themselves, in the order in which that was seen.
    pub ended: Vec<EndedWorker>,
    started: u32,
}

impl Workforce {
    fn start_one(&mut self, world: &mut SourceWorld, arguments: &[&str]) -> anyhow::Result<()> {
        self.started += 1;
        let child = world.start(&format!("worker{}", self.started), arguments)?;
        self.living.push(child);
        Ok(())
    }

    /// Starts those that the arrangement has.
    ///
    /// # Errors
    /// If one cannot be started.
    pub fn start(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        self.start_one(world, &["run"])?;
        if world.case.workers == WorkerArrangement::Standby {
            if let Some(first) = self.living.last_mut() {
                // Whoever comes second stands by.
                first.wait_said("claimed", Duration::from_secs(10))?;
            }
            self.start_one(world, &["run"])?;
            if let Some(second) = self.living.last_mut() {
                second.wait_said("standing by", Duration::from_secs(5))?;
            }
        }
        if world.case.workers == WorkerArrangement::Unleased {
            // Whoever comes second fences the first, which claims again as soon as it notices.
            for _ in 0..2 {
                if let Some(last) = self.living.last_mut() {
                    last.wait_said("claimed", SOON)?;
                }
                if self.living.len() < 2 {
                    self.start_one(world, &["run"])?;
                }
            }
        }
        Ok(())
    }

    /// Looks who has ended by himself.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn look(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        let mut at = 0;
        while at < self.living.len() {
            match self.living[at].poll()? {
                Some(exit) => {
                    let child = self.living.remove(at);
                    world.tell(format!("{} ended by itself with {exit}", child.name));
                    self.ended.push(EndedWorker { name: child.name.clone(), exit, said: child.said() });
                }
                None => at += 1,
            }
        }
        Ok(())
    }

    /// Whether one has stopped because of its source, or a lane of a living one has.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.ended.iter().any(|worker| worker.exit == Exit::Code(5))
            || self.living.iter().any(|child| child.said().contains("exit_code=5"))
    }

    /// Ends all: killed, or asked to end, as the dice say. Those that were asked must end well.
    ///
    /// # Errors
    /// If one does not end.
    pub fn end_all(&mut self, world: &mut SourceWorld, ending: Ending) -> anyhow::Result<()> {
        self.look(world)?;
        let fenced = world.case.workers == WorkerArrangement::TakenOver;
        for mut child in std::mem::take(&mut self.living) {
            match ending {
                Ending::Kill => {
                    kill(world, &mut child)?;
                }
                Ending::Ask => {
                    child.wait_said_any(&["claimed", "standing by", "looked for files"], SOON)?;
                    world.tell(format!("SIGTERM to {}", child.name));
                    child.signal(Signal::TERM)?;
                    let exit = child.wait(2 * SOON)?;
                    // A worker that finds out just now that it must stop says so.
                    if exit == Exit::Code(5) {
                        self.ended.push(EndedWorker { name: child.name.clone(), exit, said: child.said() });
                    } else if exit != Exit::Code(0) && !(exit == Exit::Code(4) && fenced) {
                        let words = crate::launch::last_words(&child);
                        let text = format!("{} was asked to end, and ended with {exit}: {words}", child.name);
                        world.accuse(Anomaly::Conduct, text);
                    }
                }
            }
        }
        Ok(())
    }

    /// Kills the active worker; the standby lives.
    ///
    /// # Errors
    /// If it does not end.
    pub fn kill_active(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        if !self.living.is_empty() {
            let mut child = self.living.remove(0);
            kill(world, &mut child)?;
        }
        Ok(())
    }

    /// Starts a worker that takes over. The one before is fenced: it ends with code 4, or stands by.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn take_over(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        self.start_one(world, &["run", "--take-over"])
    }

    /// Waits until everything that was written is read, or a worker has stopped.
    ///
    /// # Errors
    /// What the database says.
    pub fn wait_delivered(&mut self, world: &mut SourceWorld) -> anyhow::Result<Waited> {
        let started = Instant::now();
        let mut last = (0, Instant::now());
        loop {
            self.look(world)?;
            let (read, written) = (world.counted_read().unwrap_or(last.0), world.writer.written() as u64);
            if read >= written {
                world.tell(format!("all {written} records were read"));
                return Ok(Waited::Delivered);
            }
            if self.has_stopped() {
                return Ok(Waited::Stopped);
            }
            let quiet = last.1.elapsed() > Duration::from_secs(2);
            if quiet && world.case.setting.place == Place::State && verdict::all_rows_are_there(world)? {
                world.tell(format!("all {written} records are rows, {read} are counted as read"));
                return Ok(Waited::Delivered);
            }
            if read > last.0 {
                last = (read, Instant::now());
            }
            // A slow machine that gets on is none that stands still.
            if last.1.elapsed() > DELIVERS_WITHIN || started.elapsed() > 6 * DELIVERS_WITHIN || self.living.is_empty() {
                world.tell(format!("{read} of {written} records were read, and no more came"));
                return Ok(Waited::Stalled);
            }
            std::thread::sleep(Duration::from_millis(15));
        }
    }

    /// Waits until all workers have ended; `false` if one lives on.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait_ended(&mut self, world: &mut SourceWorld, limit: Duration) -> anyhow::Result<bool> {
        let started = Instant::now();
        while !self.living.is_empty() {
            if started.elapsed() > limit {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(15));
            self.look(world)?;
        }
        Ok(true)
    }
}

fn kill(world: &mut SourceWorld, child: &mut Child) -> anyhow::Result<()> {
    world.tell(format!("kill -9 {}", child.name));
    world.calm = false;
    child.signal(Signal::KILL)?;
    child.wait(SOON).map(drop)
}

/// How a worker is made to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// SIGKILL.
    Kill,
    /// SIGTERM.
    Ask,
}
