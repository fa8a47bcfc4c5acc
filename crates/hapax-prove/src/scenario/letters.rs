//! Dead letters: only the guilty die, a replay delivers them once, whatever happens to the replay.

use rustix::process::Signal;

use super::point::{must_have_happened, names_holder};
use crate::check::{Anomaly, books, rows};
use crate::child::Exit;
use crate::ddl;
use crate::points::Point;
use crate::proxy::Fault;
use crate::shape::Shape;
use crate::world::{SOON, World};

const REPLAY: [&str; 4] = ["dlq", "replay", "--yes", "--json"];

/// Delivers everything; what had to die is dead, and what refused some of it is gone.
fn delivered_and_lifted(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count())?;
    world.run_once("delivers")?;
    reader.finish()?;
    world.conclude()?;
    world.target().execute(&ddl::lift_refusal(world.setting.shape, world.target().engine()))
}

/// Runs a replay. Letters that can never be delivered are refused again, which may or may not be called a failure.
fn replay(world: &mut World, name: &str) -> anyhow::Result<()> {
    let (exit, said) = world.launch(name, &REPLAY).run()?;
    let sound = matches!(exit, Exit::Code(0 | 1));
    world.must(sound.into(), format!("dlq replay ended with {exit}: {said}"));
    Ok(())
}

/// Every refused input is there once, every letter is still there once, and says what became of it.
fn judge_replayed(world: &mut World) -> anyhow::Result<()> {
    let found = world.found()?;
    let expected = world.truth.contents_replayed(world.fed);
    let findings = rows::judge(world.setting.shape, &expected, &found.rows, |n| world.truth.event(n));
    let dead: Vec<&str> = world.truth.dead_after(world.fed).collect();
    let letters = books::judge_letters(&dead, &found.letters);
    let replayed = found.letters.iter().filter(|letter| letter.state == "replayed").count();
    let refused = world.truth.refused_after(world.fed).count();
    for finding in findings.into_iter().chain(letters) {
        // A replayed row comes later than its key's other events, by a person's own decision.
        if finding.anomaly != Anomaly::Reordered {
            world.accuse(finding.anomaly, format!("after the replay: {}", finding.detail));
        }
    }
    world.must((replayed == refused).into(), format!("{replayed} letters are replayed, {refused} can be"));
    Ok(())
}

/// Only the guilty die; once the cause is gone a replay delivers them, and a second one delivers nothing.
///
/// # Errors
/// If it could not be told to its end.
pub fn poison(world: &mut World) -> anyhow::Result<()> {
    delivered_and_lifted(world)?;
    let (exit, said) = world.launch("lists", &["dlq", "list", "--json"]).run()?;
    world.must((exit == Exit::Code(0)).into(), format!("dlq list ended with {exit}: {said}"));
    replay(world, "replays")?;
    judge_replayed(world)?;
    replay(world, "replays-again")?;
    judge_replayed(world)
}

/// A replay beside a live worker; in `newer` an older event must not overwrite what came after it.
///
/// # Errors
/// If it could not be told to its end.
pub fn late_replay(world: &mut World) -> anyhow::Result<()> {
    delivered_and_lifted(world)?;
    let mut worker = world.follow("alive")?;
    replay(world, "replays")?;
    judge_replayed(world)?;
    world.must(worker.poll()?.is_none().into(), "the worker did not survive the replay");
    world.drain(&mut worker)
}

/// Two replays at once: each letter is delivered by one of them.
///
/// # Errors
/// If it could not be told to its end.
pub fn two_replays(world: &mut World) -> anyhow::Result<()> {
    delivered_and_lifted(world)?;
    let mut first = world.launch("first", &REPLAY).faults("dlq.locked:pause-300:1").start()?;
    let mut second = world.launch("second", &REPLAY).faults("dlq.locked:pause-300:1").start()?;
    world.wait(&mut first)?;
    world.wait(&mut second)?;
    // The one that lost may have given up; what it left is still there to be replayed.
    replay(world, "last")?;
    judge_replayed(world)
}

/// A replay killed at `point`: all of it happened or nothing, and the next one does the rest.
///
/// # Errors
/// If it could not be told to its end.
pub fn replay_killed(world: &mut World, point: &Point) -> anyhow::Result<()> {
    delivered_and_lifted(world)?;
    let mut killed = world.launch("killed", &REPLAY).faults(format!("{}:kill:1", point.name)).start()?;
    world.expect(&mut killed, Exit::KILLED)?;
    must_have_happened(world, &killed, point);
    all_or_nothing(world)?;
    replay(world, "after")?;
    judge_replayed(world)
}

fn all_or_nothing(world: &mut World) -> anyhow::Result<()> {
    let found = world.found()?;
    let marked = found.letters.iter().filter(|letter| letter.state == "replayed").count();
    let refused = world.truth.refused_after(world.fed).count();
    world.must((marked == 0 || marked == refused).into(), format!("{marked} of {refused} letters are marked"));
    // In the other shapes a newer event may cover a replayed one.
    if matches!(world.setting.shape, Shape::Append | Shape::IgnoreEvent) {
        let written = found.rows.iter().filter(|row| (-999..0).contains(&row.amount)).count();
        if written != marked {
            world.accuse(Anomaly::Torn, format!("{written} letters are delivered and {marked} are marked"));
        }
    }
    Ok(())
}

/// A replay whose COMMIT, or the answer to it, is lost: all of it happened or nothing, and the next one does the rest.
///
/// # Errors
/// If it could not be told to its end.
pub fn replay_cut(world: &mut World, fault: Fault) -> anyhow::Result<()> {
    delivered_and_lifted(world)?;
    world.wire()?.arm(fault);
    let (exit, said) = world.launch("cut", &REPLAY).run()?;
    world.must(matches!(exit, Exit::Code(0 | 1)).into(), format!("dlq replay ended with {exit}: {said}"));
    let happened = world.wire()?.happened(fault.deed, fault.watch) == 1;
    world.must(happened.into(), format!("the proxy never {} the replay", fault.deed.name()));
    all_or_nothing(world)?;
    replay(world, "after")?;
    judge_replayed(world)
}

/// A replay stopped while it holds the letters: another one must not deliver them too, and names the holder.
///
/// # Errors
/// If it could not be told to its end.
pub fn replay_stopped(world: &mut World, point: &Point) -> anyhow::Result<()> {
    delivered_and_lifted(world)?;
    let mut first = world.launch("stopped", &REPLAY).faults(format!("{}:stop:1", point.name)).start()?;
    let stopped = first.wait_stopped(SOON)?;
    world.must(stopped.into(), format!("the replay never stopped at {}", point.name));
    let (exit, said) = world.launch("second", &REPLAY).run()?;
    if world.setting.stack.has_server() {
        // It may have ended the first one's session and done the work, or left it to the first.
        world.must(matches!(exit, Exit::Code(0 | 1)).into(), format!("a second replay ended with {exit}: {said}"));
    } else {
        world.must((exit == Exit::Code(1)).into(), format!("a replay beside a stopped one ended with {exit}: {said}"));
        let named = said.contains(&names_holder(&first));
        world.must(named.into(), format!("the second replay did not name the holder, pid {}: {said}", first.pid()));
    }
    world.signal(&mut first, Signal::CONT)?;
    world.wait(&mut first)?;
    replay(world, "last")?;
    judge_replayed(world)
}
