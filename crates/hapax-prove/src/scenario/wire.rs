//! A wire that fails at COMMIT: the request is lost, or the answer is dropped, held, or says ROLLBACK.

use std::time::Duration;

use super::doubt::FAILED;
use super::letters;
use super::point::something_before;
use crate::child::Exit;
use crate::points::{Action, Point, Way};
use crate::proxy::{Deed, Fault, Watch};
use crate::setting::Place;
use crate::world::{SOON, World};

/// So few that they are one epoch.
const LAST: usize = 60;

/// The transaction whose COMMIT is meant by a point.
fn watch_at(point: &Point, place: Place) -> Watch {
    match (point.way, place) {
        (Way::Start, _) => Watch::Claim,
        (Way::Doubt, _) => Watch::Reclaim,
        (Way::Replay, _) => Watch::Replay,
        (Way::Prefix, _) => Watch::Prefix,
        (Way::Epoch | Way::Pair | Way::Second | Way::Drain | Way::Reset, Place::Sink) => Watch::Epoch,
        (Way::Epoch | Way::Pair | Way::Second | Way::Drain | Way::Reset, Place::State) => Watch::Rows,
    }
}

const fn deed_of(action: Action) -> Deed {
    match action {
        Action::Lose => Deed::LoseRequest,
        Action::Drop | Action::Kill | Action::Stop => Deed::DropAnswer,
    }
}

/// Blames a fault that never came: a cell in which nothing happened proves nothing.
fn must_have_happened(world: &mut World, deed: Deed, watch: Watch) -> anyhow::Result<()> {
    let happened = world.wire()?.happened(deed, watch) > 0;
    let text = format!("the proxy never {} {}", deed.name(), watch.name());
    world.must(happened.into(), text);
    Ok(())
}

/// Runs the cell of `point` and `action`: the worker lives, and finds out by itself what became of it.
///
/// # Errors
/// If it could not be run to its end.
pub fn cut_at(world: &mut World, random: &mut fastrand::Rng, point: &Point, action: Action) -> anyhow::Result<()> {
    let (watch, deed) = (watch_at(point, world.setting.place), deed_of(action));
    if point.way == Way::Replay {
        world.wire()?;
        return letters::replay_cut(world, Fault { watch, pass: 1, deed });
    }
    if point.way == Way::Start {
        world.nobody_doubts();
    }
    let reader = world.reader();
    something_before(world, random, point)?;
    world.feed(world.count())?;
    if point.way == Way::Doubt {
        let pass = random.u64(2..=5);
        let deed = if random.bool() { Deed::DropAnswer } else { Deed::LoseRequest };
        world.wire()?.arm(Fault { watch: Watch::Epoch, pass, deed });
    }
    let pass = if matches!(point.way, Way::Epoch | Way::Prefix) { random.u64(1..=point.latest_pass) } else { 1 };
    world.wire()?.arm(Fault { watch, pass, deed });
    let mut cut = world.launch("cut", &["run", "--once"]).hurry(point.way.hurry()).start()?;
    world.expect(&mut cut, Exit::Code(0))?;
    must_have_happened(world, deed, watch)?;
    world.check_witness()?;
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}

/// The transaction has failed and the server says so only in the tag of its answer: nothing may be taken for done.
///
/// # Errors
/// If it could not be told to its end.
pub fn spoiled(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    world.epochs_close_when_full()?;
    let reader = world.reader();
    world.feed(world.count() - LAST)?;
    let pass = random.u64(1..=5);
    for pass in [pass, pass + 2] {
        world.wire()?.arm(Fault { watch: Watch::Epoch, pass, deed: Deed::Spoil });
    }
    world.run_once("spoiled")?;
    must_have_happened(world, Deed::Spoil, Watch::Epoch)?;
    // Behind the last epoch comes no other that would find it missing.
    world.feed(world.count())?;
    world.wire()?.arm(Fault { watch: Watch::Epoch, pass: 1, deed: Deed::Spoil });
    world.run_once("spoiled-at-last")?;
    reader.finish()?;
    world.conclude()
}

/// The answer comes long after the worker has stopped waiting: it must not be taken for that of a later epoch.
///
/// # Errors
/// If it could not be told to its end.
pub fn held(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    // Longer than an epoch takes on a busy machine.
    world.config.commit_timeout = Duration::from_millis(1500);
    world.write_config()?;
    let reader = world.reader();
    world.feed(world.count())?;
    let fault = Fault { watch: Watch::Epoch, pass: random.u64(2..=5), deed: Deed::HoldAnswer };
    world.wire()?.arm(fault);
    let mut worker = world.follow("waits")?;
    let held = world.wire()?.wait_happened(fault.deed, fault.watch, 1, SOON);
    world.must(held.into(), "no answer was held");
    let failed = worker.wait_said(FAILED, SOON)?;
    world.must(failed.into(), "the worker waits for an answer beyond commitTimeout");
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the worker did not go on without the answer");
    world.wire()?.release();
    world.drain(&mut worker)?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}
