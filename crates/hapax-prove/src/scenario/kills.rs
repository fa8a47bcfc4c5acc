//! Kills at seeded moments, SIGTERM under load, and no fault at all.

use std::time::Duration;

use rustix::process::Signal;

use crate::child::Exit;
use crate::feed::Pace;
use crate::world::{SOON, Trouble, World};

/// No fault: what is judged here is the workload, the configuration and the judge.
///
/// # Errors
/// If it could not be told to its end.
pub fn plain(world: &mut World) -> anyhow::Result<()> {
    world.trouble = Trouble::None;
    world.epochs_close_when_full()?;
    let reader = world.reader();
    world.feed(world.count() / 2)?;
    world.run_once("first")?;
    world.feed(world.count())?;
    world.run_once("second")?;
    reader.finish()?;
    world.conclude()
}

/// Six kills at seeded moments while the input grows; some restarts wait for the lease, some do not.
///
/// # Errors
/// If it could not be told to its end.
pub fn random(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    world.nobody_doubts();
    let reader = world.reader();
    let pace = Pace { lines: 25, pause: Duration::from_millis(8) };
    let feeder = world.feed_slowly(world.count(), pace);
    for kill in 0..6 {
        let arguments: &[&str] = if random.bool() { &["run", "--take-over"] } else { &["run"] };
        let mut worker = world.launch(&format!("killed{kill}"), arguments).start()?;
        std::thread::sleep(Duration::from_millis(random.u64(20..400)));
        if let Some(exit) = worker.poll()? {
            world.blame(format!("{} ended by itself with {exit}", worker.name));
        }
        world.signal(&mut worker, Signal::KILL)?;
        world.wait(&mut worker)?;
    }
    feeder.finish()?;
    world.check_witness()?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

/// Killed just before the very first COMMIT, twice: the target knows nothing, so nobody else may know more.
///
/// # Errors
/// If it could not be told to its end.
pub fn first_epoch(world: &mut World) -> anyhow::Result<()> {
    world.epochs_close_when_full()?;
    let reader = world.reader();
    world.feed(world.count())?;
    for time in 1..=2 {
        let launch = world.launch(&format!("killed{time}"), &["run", "--once"]).faults("sql.before_commit:kill:1");
        let mut worker = launch.start()?;
        world.expect(&mut worker, Exit::KILLED)?;
        world.check_witness()?;
    }
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

/// SIGTERM at a seeded moment under load: code 0, and nothing that was in flight is lost.
///
/// # Errors
/// If it could not be told to its end.
pub fn drain(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let reader = world.reader();
    let pace = Pace { lines: 25, pause: Duration::from_millis(8) };
    let feeder = world.feed_slowly(world.count(), pace);
    for time in 0..2 {
        let mut worker = world.follow(&format!("drained{time}"))?;
        // Before that it may not listen for signals yet.
        let claimed = worker.wait_said("claimed", SOON)?;
        world.must(claimed.into(), "the worker did not claim");
        let works = world.wait_rows(50 * (time + 1))?;
        world.must(works.into(), "no row arrived");
        std::thread::sleep(Duration::from_millis(random.u64(0..120)));
        world.drain(&mut worker)?;
    }
    feeder.finish()?;
    // A worker that ended well gave its lease back: nobody has to wait for it.
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

/// Progress in the state store, killed again and again in the middle of the rows and just after them.
///
/// # Errors
/// If it could not be told to its end.
pub fn naive(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    world.epochs_close_when_full()?;
    world.feed(world.count())?;
    for point in [
        "sql.data_middle",
        "commit.answered",
        "state.intent_saved",
        "sql.before_commit",
        "barrier",
        "state.rows_written",
    ] {
        let faults = format!("{point}:kill:{}", random.u64(2..=4));
        let mut worker = world.launch(point, &["run", "--once"]).faults(faults).start()?;
        world.expect(&mut worker, Exit::KILLED)?;
        let happened = world.fault_happened(&worker, point);
        world.must(happened.into(), format!("{} never passed {point}", worker.name));
    }
    world.run_once("last")?;
    world.conclude()
}
