//! Records that go while clients write: by retention, compaction, DeleteRecords, and with their whole topic.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::history::Cleanup;
use super::load::Mark;
use super::points::{COMPACTION, RETENTION};
use super::process::SOON;
use super::story::{die_at, kill_somewhen, some};
use super::world::World;

/// Bytes that retention leaves of a partition: the clients write more than that in a second.
const LIMIT: u64 = 48 << 10;

/// What was removed stays removed, what is left is left whole, and who wrote what is gone is still known.
///
/// # Errors
/// If the broker does not remove anything, or does not come back.
pub(super) fn retention(world: &mut World) -> anyhow::Result<()> {
    world.cleanup = Cleanup::Bytes(LIMIT);
    world.look_often()?;
    world.open("")?;
    let mark = world.load()?.mark()?;
    for point in &RETENTION {
        some(world)?;
        die_at(world, point)?;
    }
    world.load()?.wait_start_after(mark.base)?;
    // Nothing of it is in the log now, whatever is read at a start.
    kill_somewhen(world)?;
    repeat(world, &mark, mark.base)?;
    some(world)
}

/// The same batch again, which must be where it is said to be.
fn repeat(world: &World, mark: &Mark, expected: i64) -> anyhow::Result<()> {
    let base = world.load()?.send_again(mark)?;
    anyhow::ensure!(base == expected, "a batch that is at {expected} was acknowledged at {base} when it was repeated");
    Ok(())
}

/// Of each key the last record is there at its own offset, whenever the rewrite is broken off.
///
/// # Errors
/// If the broker does not compact, or does not come back.
pub(super) fn compaction(world: &mut World) -> anyhow::Result<()> {
    world.cleanup = Cleanup::Compact;
    world.look_often()?;
    world.open("")?;
    for point in &COMPACTION {
        some(world)?;
        die_at(world, point)?;
    }
    some(world)?;
    kill_somewhen(world)?;
    some(world)
}

/// A log that was told to begin later does, and nothing from there on is lost.
///
/// # Errors
/// If the broker does not remove anything, or does not come back.
pub(super) fn delete_records(world: &mut World) -> anyhow::Result<()> {
    world.look_often()?;
    world.open("")?;
    world.load.as_mut().context("the clients have been started")?.remove_records();
    for _ in 0..3 {
        some(world)?;
        until_removed(world)?;
        kill_somewhen(world)?;
    }
    some(world)
}

fn until_removed(world: &World) -> anyhow::Result<()> {
    let (started, before) = (Instant::now(), world.load()?.deletions());
    while world.load()?.deletions() < before + 3 {
        anyhow::ensure!(started.elapsed() < SOON, "no log was told to begin later within {SOON:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A topic that was deleted and made again has nothing of the old one: no records, no offsets, no producers.
///
/// # Errors
/// If the broker does not delete or make it, or does not come back.
pub(super) fn made_again(world: &mut World) -> anyhow::Result<()> {
    world.open("")?;
    some(world)?;
    let mark = world.load()?.mark()?;
    some(world)?;
    let deleted = world.load()?.delete_topic()?;
    // Half of the seeds: the new topic comes at once, while requests for the old one are still under way.
    if world.random.bool() {
        world.brokers[0].kill();
        world.brokers[0].start_and_wait("")?;
    }
    let made = world.load()?.make_topic_again()?;
    world.made_again = Some((deleted, made));
    kill_somewhen(world)?;
    // To the new topic the batch is new, though its producer wrote the very same to the old one.
    let base = world.load()?.send_again(&mark)?;
    kill_somewhen(world)?;
    repeat(world, &mark, base)?;
    some(world)
}
