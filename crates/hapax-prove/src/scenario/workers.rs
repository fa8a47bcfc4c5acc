//! Several workers on one delivery: standing by, taking over, waking up too late.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::point::{TAIL, fenced_or_begins_anew, names_holder, shut_out_of, woken_inside_its_transaction};
use crate::check::Anomaly;
use crate::check::history::Sample;
use crate::child::{Child, Exit};
use crate::feed::Pace;
use crate::observe::write_locked;
use crate::reader::Reader;
use crate::world::{SOON, World};

/// Long, because a first worker that could not renew it in time would lose it honestly.
const STANDBY_LEASE: Duration = Duration::from_secs(3);
const PACE: Pace = Pace { lines: 20, pause: Duration::from_millis(20) };

/// The second worker stands by while the first lives, and takes over when it dies.
///
/// # Errors
/// If it could not be told to its end.
pub fn standby(world: &mut World) -> anyhow::Result<()> {
    world.config.lease = STANDBY_LEASE;
    world.write_config()?;
    let reader = world.reader();
    let feeder = world.feed_slowly(world.count(), PACE);
    let mut first = world.follow("first")?;
    let works = reader.wait_for(SOON, |sample| sample.progress.epoch >= 2);
    world.must(works.into(), "the first worker committed nothing");
    let mut second = world.follow("second")?;
    // Longer than a lease that nobody renews would last.
    std::thread::sleep(STANDBY_LEASE * 3 / 2);
    reader.refresh();
    let generation = reader.latest().map(|sample| sample.progress.generation);
    world.must((generation == Some(1)).into(), format!("the second worker fenced the first: {generation:?}"));
    world.must(second.poll()?.is_none().into(), "the second worker does not stand by");
    world.must(first.poll()?.is_none().into(), "the first worker is gone");
    world.signal(&mut first, Signal::KILL)?;
    world.wait(&mut first)?;
    let taken = reader.wait_for(SOON, |sample| sample.progress.generation >= 2);
    world.must(taken.into(), "the second worker did not take over");
    feeder.finish()?;
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the second worker did not finish the work");
    world.drain(&mut second)?;
    reader.finish()?;
    world.conclude()
}

/// `--take-over` does not wait: the first worker is fenced and says so, and the new owner is never fenced itself.
///
/// # Errors
/// If it could not be told to its end.
pub fn take_over(world: &mut World) -> anyhow::Result<()> {
    if world.setting.stack.has_server() {
        // A server would end the session that is in the way; here it shall be waited for.
        world.config.claim_timeout = Duration::from_secs(20);
        world.write_config()?;
    }
    let reader = world.reader();
    let feeder = world.feed_slowly(world.count(), PACE);
    // The claim has to wait for a commit: what a claimer read before that is old.
    let mut first = stopped_at(world, "first", "sql.before_commit", 4)?;
    reader.refresh();
    let before = reader.latest().map(|sample| sample.progress).unwrap_or_default();
    let mut second = looks_before_the_commit(world, &first)?;
    world.signal(&mut first, Signal::CONT)?;
    let committed = reader.wait_for(SOON, |sample| sample.progress.epoch > before.epoch);
    world.must(committed.into(), "the first worker never ended its COMMIT");
    world.let_go(&second)?;
    world.expect(&mut first, Exit::Code(4))?;
    feeder.finish()?;
    let delivered = world.delivers_all(&reader, &mut second)?;
    world.must(delivered.into(), "the second worker did not finish the work");
    let generation = reader.latest().map_or(0, |sample| sample.progress.generation);
    let owner = before.generation;
    let text =
        format!("one claim came after generation {owner}, now it is {generation}: an owner lost its lane to nobody");
    world.must((generation == owner + 1).into(), text);
    world.drain(&mut second)?;
    reader.finish()?;
    world.conclude()
}

/// How often a worker is started until it stops where it holds nothing but what it was stopped with.
pub(super) const STARTS: u64 = 10;

/// A worker that is stopped at `point`, at this pass. Not one that was writing to a file that is the state store just then, by
/// chance: nobody could take the lease before that one is awake.
pub(super) fn stopped_at(world: &mut World, name: &str, point: &str, pass: u64) -> anyhow::Result<Child> {
    for start in 0..STARTS {
        let pass = if start == 0 { pass } else { 1 };
        let mut worker = world.launch(name, &["run"]).faults(format!("{point}:stop:{pass}")).start()?;
        let stopped = worker.wait_stopped(SOON)?;
        anyhow::ensure!(stopped, "{} never stopped at {point}", worker.name);
        if !write_locked(&world.state())? {
            return Ok(worker);
        }
        world.signal(&mut worker, Signal::KILL)?;
        world.wait(&mut worker)?;
    }
    anyhow::bail!("the worker writes to the state store all the time")
}

/// A second worker that takes over, and has looked at progress before the first one's COMMIT: it waits for the lock. Where that
/// is a file's it has also named the holder, and is held between another look and its claim.
fn looks_before_the_commit(world: &mut World, first: &Child) -> anyhow::Result<Child> {
    let in_file = !world.setting.stack.has_server();
    let faults = if in_file { "look.done:hold:2" } else { "" };
    let mut second = world.launch("second", &["run", "--take-over"]).faults(faults).start()?;
    must_wait(world, first, &mut second)?;
    if in_file {
        let held = world.wait_fault(&second, "look.done");
        world.must(held.into(), "the second worker did not look again");
    }
    Ok(second)
}

/// Waits until the second worker waits for what the first one has: a file's claimer names the holder of the lock, in a
/// server the lock can be seen.
fn must_wait(world: &mut World, first: &Child, second: &mut Child) -> anyhow::Result<()> {
    if !world.setting.stack.has_server() {
        let named = second.wait_said(&names_holder(first), SOON)?;
        world.must(named.into(), format!("the second worker never named the holder of the lock, pid {}", first.pid()));
        return Ok(());
    }
    let started = Instant::now();
    while world.target().waiting()? == 0 && started.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(10));
    }
    world.must((started.elapsed() < SOON).into(), "the second worker never waited for the first");
    Ok(())
}

/// Stopped with an epoch in its hands; the other delivers everything and ends; woken up, the first must not write that
/// epoch. Nobody has the lease any more, so it may claim and begin anew.
///
/// # Errors
/// If it could not be told to its end.
pub fn zombie_late(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count() - TAIL)?;
    let faults = format!("barrier:stop:{}", random.u64(1..=6));
    let mut first = world.launch("zombie", &["run"]).faults(faults).start()?;
    let stopped = first.wait_stopped(SOON)?;
    world.must(stopped.into(), "the first worker never stopped");
    if let Some(shut) = shut_out_of(world)? {
        // By chance it renews its lease just now.
        woken_inside_its_transaction(world, &mut first, shut)?;
    } else {
        let mut second = world.launch("second", &["run", "--once"]).start()?;
        world.expect(&mut second, Exit::Code(0))?;
        world.signal(&mut first, Signal::CONT)?;
        fenced_or_begins_anew(world, &mut first)?;
    }
    world.feed(world.count())?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

/// The zombie wakes up with an epoch in its hands just when another has claimed and not yet committed: only the
/// generation tells that it is too late.
///
/// # Errors
/// If it could not be told to its end.
pub fn zombie_early(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count() - TAIL)?;
    let mut first = stopped_at(world, "zombie", "barrier", random.u64(1..=6))?;
    if woken_before_the_first_commit(world, &reader, &mut first)? == Woken::Wrote {
        return Ok(());
    }
    world.feed(world.count())?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

/// What a worker did that woke up after another had claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// It ended.
    Ended,
    /// It moved progress. The story is over.
    Wrote,
}

/// Wakes `zombie` up while the new owner is held between its claim and its first commit: whatever moves progress or raises the
/// generation now is not the owner.
pub(super) fn woken_beside_held(world: &mut World, reader: &Reader, zombie: &mut Child) -> anyhow::Result<Woken> {
    let key = |sample: &Sample| (sample.progress.generation, sample.progress.epoch);
    reader.refresh();
    let claimed = reader.latest().as_ref().map(key);
    world.signal(zombie, Signal::CONT)?;
    let started = Instant::now();
    while zombie.poll()?.is_none() && started.elapsed() < SOON && reader.latest().as_ref().map(key) == claimed {
        std::thread::sleep(Duration::from_millis(5));
    }
    reader.refresh();
    let now = reader.latest().as_ref().map(key);
    if now != claimed {
        let text =
            format!("generation and epoch went from {claimed:?} to {now:?} by {}, which was fenced", zombie.name);
        world.accuse(Anomaly::ZombieWrite, text);
        return Ok(Woken::Wrote);
    }
    world.expect(zombie, Exit::Code(4))?;
    Ok(Woken::Ended)
}

fn woken_before_the_first_commit(world: &mut World, reader: &Reader, first: &mut Child) -> anyhow::Result<Woken> {
    reader.refresh();
    let owner = reader.latest().map_or(0, |sample| sample.progress.generation);
    let mut second = world.launch("second", &["run", "--once"]).faults("source.assigned:hold:1").start()?;
    let claimed = reader.wait_for(SOON, |sample| sample.progress.generation > owner);
    world.must(claimed.into(), "the second worker did not claim");
    let woken = woken_beside_held(world, reader, first)?;
    if woken == Woken::Wrote {
        return Ok(woken);
    }
    world.let_go(&second)?;
    world.expect(&mut second, Exit::Code(0))?;
    reader.refresh();
    let generation = reader.latest().map_or(0, |sample| sample.progress.generation);
    if generation != owner + 1 {
        let text = format!("generation is {generation}, one claim after {owner}: the owner lost its lane to a zombie");
        world.accuse(Anomaly::ZombieWrite, text);
    }
    Ok(woken)
}
