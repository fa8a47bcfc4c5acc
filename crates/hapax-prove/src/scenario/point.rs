//! A fault at a named point: bring a worker there, let it happen, go on, judge.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::child::{Child, Exit};
use crate::feed::Pace;
use crate::observe::write_locked;
use crate::points::{Action, Point, Way};
use crate::world::{LEASE, SOON, World};

use super::{contract, doubt, letters, wire};

/// What a fenced worker says when it claims again.
pub(super) const BEGINS_ANEW: &str = "claiming again";

/// Lines that are kept back until the stopped worker has been woken up.
pub(super) const TAIL: usize = 200;

/// Runs the cell of `point` and `action`.
///
/// # Errors
/// If it could not be run to its end.
pub fn run(world: &mut World, random: &mut fastrand::Rng, point: &'static Point, action: Action) -> anyhow::Result<()> {
    if action == Action::Kill && point.way != Way::Doubt {
        world.nobody_doubts();
    }
    match (point.way, action) {
        (_, Action::Drop | Action::Lose) => wire::cut_at(world, random, point, action),
        (Way::Start | Way::Epoch | Way::Pair | Way::Prefix, Action::Kill) => kill_on_the_way(world, random, point),
        (Way::Start | Way::Epoch | Way::Pair | Way::Prefix, Action::Stop) => stop(world, random, point),
        (Way::Second, _) => kill_after_a_second(world, point),
        (Way::Drain, _) => kill_while_draining(world, point),
        (Way::Reset, _) => contract::reset_killed(world, point),
        (Way::Doubt, _) => doubt::kill_at(world, random, point),
        (Way::Replay, Action::Kill) => letters::replay_killed(world, point),
        (Way::Replay, Action::Stop) => letters::replay_stopped(world, point),
    }
}

/// Blames a fault that never came: a cell in which nothing happened proves nothing.
pub(super) fn must_have_happened(world: &mut World, child: &Child, point: &Point) {
    let happened = world.fault_happened(child, point.name);
    world.must(happened.into(), format!("{} never passed {}", child.name, point.name));
}

/// At a start there may be something to come back to, or nothing yet: the seed says which.
pub(super) fn something_before(world: &mut World, random: &mut fastrand::Rng, point: &Point) -> anyhow::Result<()> {
    if point.way == Way::Start && random.bool() {
        world.feed(world.count() / 3)?;
        let faults = format!("commit.answered:kill:{}", random.u64(1..=5));
        let mut before = world.launch("before", &["run", "--once"]).faults(faults).start()?;
        world.expect(&mut before, Exit::KILLED)?;
    }
    Ok(())
}

fn kill_on_the_way(world: &mut World, random: &mut fastrand::Rng, point: &Point) -> anyhow::Result<()> {
    world.epochs_close_when_full()?;
    let reader = world.reader();
    something_before(world, random, point)?;
    world.feed(world.count())?;
    let faults = format!("{}:kill:{}", point.name, random.u64(1..=point.latest_pass));
    let mut killed = world.launch("killed", &["run", "--once"]).faults(faults).hurry(point.way.hurry()).start()?;
    world.expect(&mut killed, Exit::KILLED)?;
    must_have_happened(world, &killed, point);
    world.check_witness()?;
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}

fn kill_after_a_second(world: &mut World, point: &Point) -> anyhow::Result<()> {
    let reader = world.reader();
    let pace = Pace { lines: 40, pause: Duration::from_millis(30) };
    let feeder = world.feed_slowly(world.count(), pace);
    let mut killed = world.launch("killed", &["run"]).faults(format!("{}:kill:1", point.name)).start()?;
    world.expect(&mut killed, Exit::KILLED)?;
    must_have_happened(world, &killed, point);
    feeder.finish()?;
    world.check_witness()?;
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}

fn kill_while_draining(world: &mut World, point: &Point) -> anyhow::Result<()> {
    let reader = world.reader();
    let pace = Pace { lines: 40, pause: Duration::from_millis(10) };
    let feeder = world.feed_slowly(world.count(), pace);
    let mut killed = world.launch("killed", &["run"]).faults(format!("{}:kill:1", point.name)).start()?;
    let works = world.wait_rows(100)?;
    world.must(works.into(), "no row arrived");
    world.signal(&mut killed, Signal::TERM)?;
    world.expect(&mut killed, Exit::KILLED)?;
    must_have_happened(world, &killed, point);
    feeder.finish()?;
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}

/// Stops a worker at the point, lets another take over, wakes the first up.
fn stop(world: &mut World, random: &mut fastrand::Rng, point: &Point) -> anyhow::Result<()> {
    let reader = world.reader();
    something_before(world, random, point)?;
    world.feed(world.count() - TAIL)?;
    let faults = format!("{}:stop:{}", point.name, random.u64(1..=point.latest_pass));
    let mut first = world.launch("stopped", &["run"]).faults(faults).start()?;
    if !first.wait_stopped(SOON)? {
        world.blame(format!("{} never stopped at {}", first.name, point.name));
        return Ok(());
    }
    must_have_happened(world, &first, point);
    match shut_out_of(world)? {
        Some(shut) => woken_inside_its_transaction(world, &mut first, shut)?,
        None => woken_after_take_over(world, &mut first)?,
    }
    world.feed(world.count())?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

/// Which database a stopped worker shuts others out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shut {
    /// The target: whoever claims must name the holder.
    Target,
    /// Only the state store, by chance: manners, nothing to say about it.
    State,
}

/// What the worker that is stopped now shuts others out of.
pub(super) fn shut_out_of(world: &World) -> anyhow::Result<Option<Shut>> {
    if write_locked(&world.target())? {
        return Ok(Some(Shut::Target));
    }
    Ok(write_locked(&world.state())?.then_some(Shut::State))
}

/// What a worker says that finds the database locked by `holder`. A standby names the holder of the lease, too: that is
/// another message, and comes before the lease has ended.
pub(super) fn names_holder(holder: &Child) -> String {
    format!("locked by pid {}", holder.pid())
}

/// A stopped worker that holds the write lock blocks the claim: the claimer names it, and goes on once it is awake.
pub(super) fn woken_inside_its_transaction(world: &mut World, first: &mut Child, shut: Shut) -> anyhow::Result<()> {
    let mut second = world.launch("second", &["run", "--once"]).start()?;
    match shut {
        Shut::Target => {
            let named = second.wait_said(&names_holder(first), SOON)?;
            let text = format!("the second worker never named the holder of the lock, pid {}", first.pid());
            world.must(named.into(), text);
        }
        Shut::State => std::thread::sleep(2 * LEASE),
    }
    world.signal(first, Signal::CONT)?;
    // Whichever of the two has the lane now, work goes on; the second ends at the end of the input once it has it.
    let taken_over = wait_either(world, first, &mut second)?;
    if !taken_over {
        // On a slow machine the second may take over just now: then the first is fenced instead of drained.
        world.signal(first, Signal::TERM)?;
        let ended = world.wait(first)?;
        let in_order = matches!(ended, Exit::Code(0 | 4));
        world.must(in_order.into(), format!("{} ended with {ended}, must be drained or fenced", first.name));
        world.expect(&mut second, Exit::Code(0))?;
    }
    Ok(())
}

/// True if the second worker took the lane over: it ends well, and the first is then fenced.
fn wait_either(world: &mut World, first: &mut Child, second: &mut Child) -> anyhow::Result<bool> {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(6) {
        if first.poll()?.is_some() || second.poll()?.is_some() {
            world.expect(second, Exit::Code(0))?;
            fenced_or_begins_anew(world, first)?;
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

/// A worker that was fenced ends with code 4; if nobody has the lease any more it may claim again instead, as any
/// worker that starts may. It then goes on as one, and ends well when it is asked to.
pub(super) fn fenced_or_begins_anew(world: &mut World, worker: &mut Child) -> anyhow::Result<()> {
    world.feed(world.fed + 20)?;
    let started = Instant::now();
    while worker.poll()?.is_none() && started.elapsed() < SOON {
        if worker.said().contains(BEGINS_ANEW) {
            world.wait_all_read()?;
            return world.drain(worker);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    world.expect(worker, Exit::Code(4))?;
    Ok(())
}

/// A stopped worker that holds nothing is taken over from; woken up, it must notice and write nothing.
fn woken_after_take_over(world: &mut World, first: &mut Child) -> anyhow::Result<()> {
    let mut second = world.follow("second")?;
    world.wait_all_read()?;
    let before = world.found()?;
    world.signal(first, Signal::CONT)?;
    let started = Instant::now();
    while first.poll()?.is_none() && second.poll()?.is_none() && started.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(10));
    }
    if second.poll()?.is_some() && first.said().contains(BEGINS_ANEW) {
        // On a machine that stands still for longer than a lease the second worker lost its own: it is the fenced one.
        world.expect(&mut second, Exit::Code(4))?;
        return world.drain(first);
    }
    world.expect(first, Exit::Code(4))?;
    let after = world.found()?;
    world.drain(&mut second)?;
    let same = before.rows == after.rows && before.progress == after.progress && before.epochs == after.epochs;
    if !same {
        let text =
            format!("{} wrote after the take-over: {:?} became {:?}", first.name, before.progress, after.progress);
        world.accuse(crate::check::Anomaly::ZombieWrite, text);
    }
    Ok(())
}
