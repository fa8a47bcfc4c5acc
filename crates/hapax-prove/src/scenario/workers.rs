//! Several workers on one delivery: standing by, taking over, waking up too late.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::point::{Shut, TAIL, fenced_or_begins_anew, names_holder, shut_out_of, woken_inside_its_transaction};
use crate::check::Anomaly;
use crate::child::{Child, Exit};
use crate::feed::Pace;
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
    let mut first = world.launch("first", &["run"]).faults("sql.before_commit:stop:4").start()?;
    let stopped = first.wait_stopped(SOON)?;
    world.must(stopped.into(), "the first worker never came to its fourth COMMIT");
    // If it was stopped while it wrote to a file that is the state store, nobody could take the lease before it is awake.
    let shut_by_chance = world.setting.stack.has_server() && shut_out_of(world)? == Some(Shut::State);
    if shut_by_chance {
        world.signal(&mut first, Signal::CONT)?;
    }
    let mut second = world.launch("second", &["run", "--take-over"]).start()?;
    if !shut_by_chance {
        must_wait(world, &first, &mut second)?;
        // Longer than the pause before the next claim, shorter than that one's patience.
        std::thread::sleep(Duration::from_millis(400));
        world.signal(&mut first, Signal::CONT)?;
    }
    world.expect(&mut first, Exit::Code(4))?;
    feeder.finish()?;
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the second worker did not finish the work");
    let generation = reader.latest().map(|sample| sample.progress.generation);
    let text = format!("two claims were asked for, generation is {generation:?}: an owner lost its lane to nobody");
    world.must((generation == Some(2)).into(), text);
    world.drain(&mut second)?;
    reader.finish()?;
    world.conclude()
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
    let faults = format!("barrier:stop:{}", random.u64(1..=6));
    let mut first = world.launch("zombie", &["run"]).faults(faults).start()?;
    let stopped = first.wait_stopped(SOON)?;
    world.must(stopped.into(), "the first worker never stopped");
    if let Some(shut) = shut_out_of(world)? {
        // By chance it renews its lease just now.
        woken_inside_its_transaction(world, &mut first, shut)?;
    } else {
        woken_before_the_first_commit(world, &reader, &mut first)?;
    }
    world.feed(world.count())?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

fn woken_before_the_first_commit(world: &mut World, reader: &Reader, first: &mut Child) -> anyhow::Result<()> {
    reader.refresh();
    let owner = reader.latest().map_or(0, |sample| sample.progress.generation);
    let claim = world.launch("second", &["run", "--once"]).faults("source.assigned:pause-1500:1");
    let mut second = claim.start()?;
    let claimed = reader.wait_for(SOON, |sample| sample.progress.generation > owner);
    world.must(claimed.into(), "the second worker did not claim");
    world.signal(first, Signal::CONT)?;
    world.expect(first, Exit::Code(4))?;
    world.expect(&mut second, Exit::Code(0))?;
    reader.refresh();
    let generation = reader.latest().map_or(0, |sample| sample.progress.generation);
    if generation != owner + 1 {
        let text = format!("generation is {generation}, one claim after {owner}: the owner lost its lane to a zombie");
        world.accuse(Anomaly::ZombieWrite, text);
    }
    Ok(())
}
