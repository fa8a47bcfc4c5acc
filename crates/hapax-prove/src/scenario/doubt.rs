//! COMMIT that fails: every write of the process beyond a few bytes is refused for a while, as on a full disk; over a wire
//! requests and answers are lost.

use std::time::Duration;

use rustix::process::Signal;

use super::point::{must_have_happened, shut_out_of};
use super::workers::{STARTS, Woken, woken_beside_held};
use crate::check::Anomaly;
use crate::child::{Child, Exit};
use crate::observe::write_locked;
use crate::points::Point;
use crate::proxy::{Deed, Fault, Watch};
use crate::reader::Reader;
use crate::world::{SOON, World};

/// No file may reach beyond one page: small logs can be written, databases cannot.
const ONE_PAGE: u64 = 4096;
/// What a worker says when a COMMIT fails.
pub(super) const FAILED: &str = "the commit did not go through";

/// Starts a worker whose COMMIT of some epoch is about to fail, and over a wire two more after it. Other faults may follow.
fn worker_in_doubt(world: &mut World, epoch: u64, arguments: &[&str], faults: &str) -> anyhow::Result<Child> {
    if world.setting.stack.has_server() {
        let deeds = [Deed::LoseRequest, Deed::DropAnswer, Deed::LoseRequest];
        for (pass, deed) in (epoch..).zip(deeds) {
            world.wire()?.arm(Fault { watch: Watch::Epoch, pass, deed });
        }
        return world.launch("doubtful", arguments).faults(faults).start();
    }
    let stop = format!("sql.before_commit:stop:{epoch}");
    let launch = world.launch("doubtful", arguments).faults(format!("{stop};{faults}")).can_run_out_of_space();
    let mut worker = launch.start()?;
    let stopped = worker.wait_stopped(SOON)?;
    world.must(stopped.into(), "the worker never came to a COMMIT");
    worker.limit_file_size(Some(ONE_PAGE))?;
    world.signal(&mut worker, Signal::CONT)?;
    Ok(worker)
}

/// The worker must live through it, or say that it failed; then everything is delivered once.
///
/// # Errors
/// If it could not be told to its end.
pub fn failing_commit(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count())?;
    let mut worker = worker_in_doubt(world, random.u64(2..=5), &["run"], "")?;
    let failed = worker.wait_said(FAILED, SOON)?;
    world.must(failed.into(), "the worker did not say that its COMMIT failed");
    // A few more attempts that fail.
    std::thread::sleep(Duration::from_millis(300));
    worker.limit_file_size(None)?;
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the worker did not go on when its writes succeeded again");
    world.drain(&mut worker)?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

/// Only one epoch, and its COMMIT fails: a worker that says it has done everything must have done it.
///
/// # Errors
/// If it could not be told to its end.
pub fn failing_last_commit(world: &mut World) -> anyhow::Result<()> {
    world.epochs_close_when_full()?;
    let reader = world.reader();
    world.feed(60)?;
    let mut worker = worker_in_doubt(world, 1, &["run", "--once"], "")?;
    let failed = worker.wait_said(FAILED, SOON)?;
    world.must(failed.into(), "the worker did not say that its COMMIT failed");
    worker.limit_file_size(None)?;
    world.expect(&mut worker, Exit::Code(0))?;
    reader.finish()?;
    world.conclude()
}

/// Killed at a point that is only passed after a failed COMMIT.
///
/// # Errors
/// If it could not be told to its end.
pub fn kill_at(world: &mut World, random: &mut fastrand::Rng, point: &Point) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count())?;
    let pass = random.u64(1..=point.latest_pass);
    let mut worker = worker_in_doubt(world, random.u64(2..=5), &["run"], &format!("{}:kill:{}", point.name, pass))?;
    world.expect(&mut worker, Exit::KILLED)?;
    must_have_happened(world, &worker, point);
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}

/// In doubt, stopped, taken over from, woken up: the reclaim must not steal the lane back.
///
/// # Errors
/// If it could not be told to its end.
pub fn zombie(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count() / 2)?;
    let mut first = stopped_in_doubt(world, random.u64(2..=5))?;
    for _ in 1..STARTS {
        if shut_out_of(world)?.is_none() {
            break;
        }
        // By chance its heartbeat was just writing: nobody could take over before it is awake, and then it need not be fenced.
        world.signal(&mut first, Signal::KILL)?;
        world.wait(&mut first)?;
        first = stopped_in_doubt(world, 1)?;
    }
    let owner = generation(&reader);
    let mut second = world.launch("second", &["run"]).faults("source.assigned:hold:1").start()?;
    let claimed = reader.wait_for(SOON, |sample| sample.progress.generation > owner);
    world.must(claimed.into(), "the second worker did not take over");
    let taken = generation(&reader);
    if woken_beside_held(world, &reader, &mut first)? == Woken::Wrote {
        return Ok(());
    }
    world.let_go(&second)?;
    world.feed(world.count())?;
    let delivered = world.delivers_all(&reader, &mut second)?;
    world.must(delivered.into(), "the second worker did not finish the work");
    let now = generation(&reader);
    // An owner that is itself in doubt claims its own lane again.
    if now != taken && !second.said().contains(FAILED) {
        let text = format!("generation went from {taken} to {now}: the lane was stolen back");
        world.accuse(Anomaly::ZombieWrite, text);
    }
    world.drain(&mut second)?;
    reader.finish()?;
    world.conclude()
}

/// A worker that is stopped between a COMMIT that failed and finding out what became of it.
fn stopped_in_doubt(world: &mut World, epoch: u64) -> anyhow::Result<Child> {
    if world.setting.stack.has_server() {
        world.wire()?.arm(Fault { watch: Watch::Epoch, pass: epoch, deed: Deed::LoseRequest });
        let mut worker = world.launch("doubtful", &["run"]).faults("reclaim.sent:stop:1").start()?;
        let stopped = worker.wait_stopped(SOON)?;
        world.must(stopped.into(), "the first worker never came to doubt");
        return Ok(worker);
    }
    let mut worker = worker_in_doubt(world, epoch, &["run"], "")?;
    let failed = worker.wait_said(FAILED, SOON)?;
    world.must(failed.into(), "the worker did not say that its COMMIT failed");
    stop_outside_its_transaction(world, &mut worker)?;
    worker.limit_file_size(None)?;
    Ok(worker)
}

/// Stops the worker where it holds no lock, so that another can claim.
fn stop_outside_its_transaction(world: &mut World, worker: &mut Child) -> anyhow::Result<()> {
    for _ in 0..50 {
        world.signal(worker, Signal::STOP)?;
        let stopped = worker.wait_stopped(SOON)?;
        world.must(stopped.into(), "the first worker does not stop");
        if !write_locked(&world.target())? && !write_locked(&world.state())? {
            return Ok(());
        }
        world.signal(worker, Signal::CONT)?;
        std::thread::sleep(Duration::from_millis(7));
    }
    world.blame("the first worker holds its locks all the time");
    Ok(())
}

fn generation(reader: &Reader) -> u64 {
    reader.refresh();
    reader.latest().map_or(0, |sample| sample.progress.generation)
}
