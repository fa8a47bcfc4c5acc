//! A case from its first record to its verdict.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::case::{FaultMoment, FileFault, SourceCase, SourceLayout, WorkerArrangement};
use super::expectation::{Expectation, expectation};
use super::file_faults::{DoneFault, FileAdversary};
use super::packed_faults::finish_archive;
use super::record_writer::Traffic;
use super::source_world::{SourceWorld, WORKFLOW};
use super::verdict::{self, Extent};
use super::workforce::{DELIVERS_WITHIN, Ending, STOPS_WITHIN, Waited, Workforce};
use crate::check::{Anomaly, Finding};
use crate::child::{Child, Exit};
use crate::run::{Notes, Trial, Verdict, failed};
use crate::world::{Environment, LEASE, SOON};

impl Trial for SourceCase {
    type Environment = Environment;
    const NO_CATCH: &'static [&'static str] = &[crate::run::NOT_RUN];
    const CHANCES: u64 = 4;

    fn name(&self) -> String {
        Self::name(self)
    }

    fn seed(&self, seed: u64) -> u64 {
        seed
    }

    fn play(self, environment: &Environment, seed: u64, dir: &Path, notes: &mut Notes) -> anyhow::Result<Verdict> {
        let mut world = SourceWorld::new(environment, dir, self, seed)?;
        let told = Story::new(seed).tell(&mut world);
        notes.operations = world.writer.written();
        if let Err(error) = &told {
            world.tell(format!("could not be told to its end: {error:#}"));
        }
        std::fs::write(dir.join("story.txt"), format!("{}\nseed {seed}\n{}", self.name(), world.story()))?;
        let findings = world.findings.clone();
        match (findings.is_empty(), told) {
            (true, Ok(())) => Ok(Verdict::Passed),
            (_, told) => Ok(verdict_of(&findings, told.err().map(|error| format!("{error:#}")))),
        }
    }
}

fn verdict_of(findings: &[Finding], error: Option<String>) -> Verdict {
    let anomalies = findings.iter().map(|finding| finding.anomaly.name()).collect();
    failed(anomalies, findings.iter().map(ToString::to_string).chain(error).collect())
}

/// The story of one case.
#[derive(Debug)]
struct Story {
    adversary: FileAdversary,
    workers: Workforce,
    traffic: Option<Traffic>,
}

/// What holds a moment: its end undoes it.
#[derive(Debug)]
struct HeldMoment {
    mark_before: u64,
    written_before: u64,
}

impl Story {
    fn new(seed: u64) -> Self {
        let adversary = FileAdversary::new(seed.rotate_left(17) ^ 0x5eed);
        Self { adversary, workers: Workforce::default(), traffic: None }
    }

    fn tell(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        let (expected, why) = expectation(&world.case);
        world.tell(format!("expected: {expected:?}, because {why}"));
        self.write_first(world)?;
        self.workers.start(world)?;
        if self.workers.wait_delivered(world)? != Waited::Delivered {
            return self.blame_early(world, "the first records");
        }
        if world.case.has_chains() {
            self.first_turn(world)?;
            if self.workers.wait_delivered(world)? != Waited::Delivered {
                return self.blame_early(world, "the records around an ordinary rotation");
            }
        }
        self.change_workers(world)?;
        if world.case.fault == FileFault::ReplaceDeclared {
            wait_until(|| world.ends_are_known(), "the end of the file that is replaced")?;
        }
        let stem = self.adversary.random.usize(..world.case.layout.files());
        let held = self.enter(world, stem)?;
        let done = self.adversary.strike(world, stem)?;
        self.leave(world, &held, &done)?;
        let ended = match expected {
            Expectation::Everything => self.expect_everything(world),
            Expectation::Stop => self.expect_stop(world, stem, &done),
            Expectation::StopUntilAccepted => {
                self.expect_stop(world, stem, &done)?;
                self.expect_acceptance(world)
            }
            Expectation::Either => self.expect_either(world, stem, &done),
        };
        // Whatever the verdict is, the logs of those that live on are complete.
        self.workers.living.clear();
        ended
    }

    /// The first records of every stem; of some patterns also a member that was rotated before anybody read.
    fn write_first(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        if world.case.layout.is_dropped() {
            return (0..world.case.layout.files()).try_for_each(|_| self.adversary.drop_file(world));
        }
        let count = self.adversary.random.usize(30..90);
        world.writer.append_all(count)?;
        let meets_rotated = matches!(
            world.case.layout,
            SourceLayout::PatternWithSuffixes | SourceLayout::PatternBeforeExtension | SourceLayout::OrderedByName
        );
        if meets_rotated && self.adversary.random.bool() {
            self.adversary.rotate(world, 0)?;
            world.writer.append_all(20)?;
        }
        world.tell(format!("wrote {} records in all", world.writer.written()));
        Ok(())
    }

    /// An ordinary rotation of every stem, idle or under traffic: from here on every lane is a chain of two.
    fn first_turn(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        let traffic = self.adversary.random.bool().then(|| world.writer.start_traffic());
        for stem in 0..world.case.layout.files() {
            self.adversary.rotate(world, stem)?;
        }
        world.writer.append_all(40)?;
        traffic.map_or(Ok(()), Traffic::finish)
    }

    fn change_workers(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        match world.case.workers {
            WorkerArrangement::One | WorkerArrangement::Standby | WorkerArrangement::Unleased => Ok(()),
            WorkerArrangement::TakenOver => {
                self.workers.take_over(world)?;
                // The one before is first in the list; what it must do, it must have done at the end.
                if let Some(taker) = self.workers.living.last_mut() {
                    taker.wait_said("claimed", SOON)?;
                }
                Ok(())
            }
            WorkerArrangement::Restarted => {
                let ending = self.ending();
                self.workers.end_all(world, ending)?;
                self.workers.start(world)?;
                if let Some(worker) = self.workers.living.last_mut() {
                    worker.wait_said_any(&["claimed", "looked for files"], SOON)?;
                }
                Ok(())
            }
        }
    }

    /// Whether files come whole, so that nothing is ever appended to one.
    fn writes_whole_files(&self, world: &SourceWorld) -> bool {
        !world.case.has_chains()
    }

    fn ending(&mut self) -> Ending {
        if self.adversary.random.bool() { Ending::Kill } else { Ending::Ask }
    }

    /// Makes the moment: afterwards nobody reads, or everybody is idle, or records flow.
    fn enter(&mut self, world: &mut SourceWorld, stem: usize) -> anyhow::Result<HeldMoment> {
        match world.case.moment {
            FaultMoment::Idle => std::thread::sleep(Duration::from_millis(self.adversary.random.u64(0..400))),
            FaultMoment::Traffic => {
                let traffic = world.writer.start_traffic();
                wait_until(|| Ok(traffic.written() > 60), "traffic")?;
                self.traffic = Some(traffic);
            }
            FaultMoment::Paused => {
                world.command("pause", &["pause", WORKFLOW])?;
                self.wait_until_paused(world)?;
            }
            FaultMoment::Down => {
                let ending = self.ending();
                self.workers.end_all(world, ending)?;
            }
            FaultMoment::TargetAway => {
                world.take_target_away()?;
                if world.case.workers == WorkerArrangement::Restarted && self.adversary.random.bool() {
                    self.workers.end_all(world, Ending::Kill)?;
                    self.workers.start(world)?;
                }
            }
            FaultMoment::TakeOver => self.workers.kill_active(world)?,
        }
        let held =
            HeldMoment { mark_before: self.mark_when_quiet(world)?, written_before: world.writer.written() as u64 };
        if !matches!(world.case.moment, FaultMoment::Idle | FaultMoment::Traffic) && !self.writes_whole_files(world) {
            let count = self.adversary.random.usize(10..50);
            world.writer.append_all(count)?;
            let name = world.writer.stems().stems[stem].name.clone();
            world.tell(format!("wrote {count} records to every stem, {name} among them"));
        }
        Ok(held)
    }

    /// A pause is heard with the next heartbeat, and a lane without work says nothing about it: it holds once records are
    /// written and none is delivered.
    fn wait_until_paused(&self, world: &SourceWorld) -> anyhow::Result<()> {
        if self.writes_whole_files(world) {
            std::thread::sleep(2 * LEASE);
            return Ok(());
        }
        let probe = || {
            world.writer.append_all(1)?;
            std::thread::sleep(LEASE / 3);
            let mark = world.delivery_mark()?;
            std::thread::sleep(LEASE / 3);
            Ok(world.delivery_mark()? == mark && world.counted_read()? < world.writer.written() as u64)
        };
        wait_until(probe, "a pause")
    }

    /// The mark once it does not change any more: what was about to be committed has been.
    fn mark_when_quiet(&self, world: &SourceWorld) -> anyhow::Result<u64> {
        if matches!(world.case.moment, FaultMoment::Idle | FaultMoment::Traffic | FaultMoment::TakeOver) {
            return world.delivery_mark();
        }
        let (mut mark, mut since) = (world.delivery_mark()?, Instant::now());
        while since.elapsed() < Duration::from_millis(250) {
            std::thread::sleep(Duration::from_millis(20));
            let now = world.delivery_mark()?;
            if now != mark {
                (mark, since) = (now, Instant::now());
            }
        }
        Ok(mark)
    }

    /// Ends the moment. A moment that was none fails the case: then the fault never fired.
    fn leave(&mut self, world: &mut SourceWorld, held: &HeldMoment, done: &DoneFault) -> anyhow::Result<()> {
        let moment = world.case.moment;
        if matches!(moment, FaultMoment::Paused | FaultMoment::Down | FaultMoment::TargetAway) {
            let (mark, written) = (world.delivery_mark()?, world.writer.written() as u64);
            ensure!(mark == held.mark_before, "{} never fired: records were delivered meanwhile", moment.name());
            let whole = self.writes_whole_files(world);
            ensure!(whole || written > held.written_before, "nothing was written meanwhile");
        }
        match moment {
            FaultMoment::Idle | FaultMoment::TakeOver => {}
            FaultMoment::Traffic => {
                let traffic = self.traffic.take().context("traffic was started")?;
                let before = traffic.written();
                let mut stalled = Instant::now();
                // Records flow on after the fault: a source that is compared only when idle has no chance to be.
                while traffic.written() < before + 150 && stalled.elapsed() < SOON {
                    self.workers.look(world)?;
                    if self.workers.has_stopped() {
                        stalled = Instant::now() - SOON;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                ensure!(traffic.written() > before || self.workers.has_stopped(), "traffic ended before the fault");
                self.flow_until_noticed(world)?;
                traffic.finish()?;
            }
            FaultMoment::Paused => {
                world.command("resume", &["resume", WORKFLOW])?;
            }
            FaultMoment::Down => self.workers.start(world)?,
            FaultMoment::TargetAway => world.bring_target_back()?,
        }
        if let Some((from, to)) = &done.undo {
            std::thread::sleep(Duration::from_millis(self.adversary.random.u64(200..2500)));
            std::fs::rename(from, to)?;
            world.tell(format!("moved {} back", to.display()));
        }
        if let Some((path, rest)) = &done.rest {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            finish_archive(path, rest, || Ok(self.workers.living.iter().any(|child| child.said().contains(&name))))?;
            world.tell(format!("wrote the rest of {}", path.display()));
        }
        Ok(())
    }

    /// Lets records flow for up to 45 seconds if a stop must follow: an idle moment must not be what finds it.
    fn flow_until_noticed(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        let started = Instant::now();
        let must_stop = matches!(expectation(&world.case).0, Expectation::Stop | Expectation::StopUntilAccepted);
        while must_stop && !self.workers.has_stopped() && started.elapsed() < Duration::from_secs(45) {
            self.workers.look(world)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        if must_stop && !self.workers.has_stopped() {
            world.accuse(Anomaly::Conduct, "records flowed for 45 s after the fault, and no worker noticed it");
        }
        Ok(())
    }

    fn expect_everything(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        if !self.writes_whole_files(world) {
            world.writer.append_all(15)?;
            world.tell("wrote 15 last records to every stem");
        }
        if self.workers.wait_delivered(world)? != Waited::Delivered {
            return self.blame_early(world, "the records after the fault");
        }
        self.judge_end(world)
    }

    /// Everything was read: it must be there once, now and after one more life, and `reconcile` must say so.
    fn judge_end(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        self.fenced_have_ended(world)?;
        self.workers.end_all(world, Ending::Ask)?;
        verdict::judge(world, Extent::Everything)?;
        let (exit, said) = world.run("once", &["run", "--once"])?;
        if exit != Exit::Code(0) {
            let words: Vec<&str> = said.lines().rev().take(2).collect();
            world.accuse(Anomaly::Conduct, format!("a new life ended with {exit}: {}", words.join(" | ")));
        }
        verdict::judge(world, Extent::Everything)?;
        verdict::compare_with_reconcile(world)
    }

    /// The worker that was taken over from must not live on doing nothing.
    fn fenced_have_ended(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        self.workers.look(world)?;
        if world.case.workers == WorkerArrangement::Unleased {
            let met = |child: &Child| child.said().contains("without a state store nobody can stand by");
            ensure!(self.workers.living.iter().any(met), "two workers without leases never met");
        }
        if world.case.workers != WorkerArrangement::TakenOver || self.workers.living.len() < 2 {
            return Ok(());
        }
        let started = Instant::now();
        while self.workers.living.len() > 1 && !self.workers.living[0].said().contains("standing by") {
            if started.elapsed() > STOPS_WITHIN {
                let name = self.workers.living[0].name.clone();
                world.accuse(Anomaly::Conduct, format!("{name} was fenced, and neither ends nor stands by"));
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            self.workers.look(world)?;
        }
        Ok(())
    }

    fn expect_stop(&mut self, world: &mut SourceWorld, stem: usize, done: &DoneFault) -> anyhow::Result<()> {
        // Half of the cases stay silent after the fault: then the regular comparison alone must find it.
        if self.adversary.random.bool() && !self.writes_whole_files(world) {
            world.writer.append_all(10)?;
            world.tell("wrote 10 more records to every stem");
        }
        self.must_stop(world)?;
        self.judge_stop(world, stem, done)
    }

    /// Waits until every worker has ended. What stops one lane stops its workflow, and the process where no other runs: a
    /// worker that serves other lanes on is one that does not stop.
    fn must_stop(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        if self.workers.wait_ended(world, STOPS_WITHIN)? {
            return Ok(());
        }
        let names: Vec<String> = self.workers.living.iter().map(|child| child.name.clone()).collect();
        let (read, written) = (world.counted_read()?, world.writer.written());
        let said = if self.workers.has_stopped() { ", though a lane said that it stopped" } else { "" };
        let text = format!("{} must stop and live on{said}; {read} of {written} records were read", names.join(", "));
        world.accuse(Anomaly::Conduct, text);
        self.workers.end_all(world, Ending::Kill)
    }

    /// A person accepts what is there: it goes on at the same byte, so that nothing is lost or delivered twice.
    fn expect_acceptance(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        if !world.findings.is_empty() {
            return Ok(());
        }
        world.command("reset", &["reset", WORKFLOW, "--accept", "--yes"])?;
        self.workers.ended.clear();
        self.workers.start(world)?;
        self.expect_everything(world)
    }

    fn expect_either(&mut self, world: &mut SourceWorld, stem: usize, done: &DoneFault) -> anyhow::Result<()> {
        world.writer.append_all(10)?;
        match self.workers.wait_delivered(world)? {
            Waited::Delivered => self.judge_end(world),
            Waited::Stopped => {
                self.must_stop(world)?;
                self.judge_stop(world, stem, done)
            }
            Waited::Stalled => self.blame_early(world, "the records after the fault"),
        }
    }

    /// A worker stopped, or should have: what it said, what is in the table, and that a new life stops, too.
    fn judge_stop(&mut self, world: &mut SourceWorld, stem: usize, done: &DoneFault) -> anyhow::Result<()> {
        for ended in self.workers.ended.clone() {
            match ended.exit {
                Exit::Code(5) => {
                    let missing: Vec<&String> = done.names.iter().filter(|name| !ended.said.contains(*name)).collect();
                    if !missing.is_empty() {
                        world.accuse(Anomaly::Conduct, format!("{} stopped without naming {missing:?}", ended.name));
                    }
                }
                Exit::Code(4) if world.case.workers == WorkerArrangement::TakenOver => {}
                exit @ (Exit::Code(_) | Exit::Signal(_)) => {
                    let words: Vec<&str> = ended.said.lines().rev().take(2).collect();
                    let text = format!("{} ended with {exit}, must end with 5: {}", ended.name, words.join(" | "));
                    world.accuse(Anomaly::Conduct, text);
                }
            }
        }
        let deliverable = done.deliverable.map(|records| (stem, records));
        verdict::judge(world, Extent::Beginning { deliverable })?;
        if world.findings.is_empty() {
            let mut again = world.start("again", &["run"])?;
            let exit = again.wait(STOPS_WITHIN);
            if !matches!(exit, Ok(Exit::Code(5))) {
                let text = format!("a worker stopped, but a new life does not: {exit:?}");
                world.accuse(Anomaly::Conduct, text);
            }
            verdict::judge(world, Extent::Beginning { deliverable })?;
        }
        Ok(())
    }

    /// What had to be delivered was not.
    fn blame_early(&mut self, world: &mut SourceWorld, what: &str) -> anyhow::Result<()> {
        if self.workers.has_stopped() {
            // One that has said so is about to end.
            self.workers.wait_ended(world, SOON)?;
        }
        self.workers.look(world)?;
        let stops: Vec<String> = self
            .workers
            .ended
            .iter()
            .map(|ended| {
                let last: Vec<&str> = ended.said.lines().rev().take(2).collect();
                format!("{} ended with {}: {}", ended.name, ended.exit, last.join(" | "))
            })
            .collect();
        let (read, written) = (world.counted_read()?, world.writer.written());
        let living = self.workers.living.len();
        let limit = DELIVERS_WITHIN.as_secs();
        let text = match stops.is_empty() {
            true => format!("{what}: {read} of {written} read, nothing more for {limit} s, {living} workers live on"),
            false => format!("{what}: {read} of {written} read; nothing ambiguous happened, but {}", stops.join("; ")),
        };
        world.accuse(Anomaly::Conduct, text);
        self.workers.end_all(world, Ending::Kill)?;
        verdict::judge(world, Extent::Beginning { deliverable: None })
    }
}

fn wait_until(mut fact: impl FnMut() -> anyhow::Result<bool>, what: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    while !fact()? {
        ensure!(started.elapsed() < SOON, "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
