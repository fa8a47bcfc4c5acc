//! What happens to input files: rotated, truncated, replaced, started at their end.

use rustix::process::Signal;

use super::contract::{judge_rows_from, refused_start};
use crate::check::Anomaly;
use crate::child::Exit;
use crate::feed::append;
use crate::world::{SOON, World};

/// Rotated three times while a worker follows; once the worker is killed just after the rotation.
///
/// # Errors
/// If it could not be told to its end.
pub fn rotation(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    let quarter = world.count() / 4;
    let mut worker = world.follow("follows")?;
    for turn in 1..4 {
        let before = world.fed as u64;
        world.feed(turn * quarter)?;
        // The worker has the file open, and need not have read it to its end.
        let begun = reader.wait_for(SOON, |sample| sample.progress.read > before);
        world.must(begun.into(), format!("file {turn} was not read"));
        std::fs::rename(world.input(), world.dir.join(format!("input.jsonl-2026110{turn}")))?;
        if turn == 2 {
            world.signal(&mut worker, Signal::KILL)?;
            world.wait(&mut worker)?;
            worker = world.follow("follows-again")?;
        }
    }
    world.feed(world.count())?;
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the rotated files were not read to the end");
    world.drain(&mut worker)?;
    reader.finish()?;
    world.conclude()
}

/// Truncates the input in place and writes a few other lines.
fn truncate(world: &World) -> anyhow::Result<()> {
    std::fs::File::options().write(true).truncate(true).open(world.input())?;
    let lines = world.truth.inputs.iter().rev().take(20).map(|input| input.line.as_str());
    append(&world.input(), lines)
}

/// Truncated while no worker runs: stop with code 5.
///
/// # Errors
/// If it could not be told to its end.
pub fn truncated(world: &mut World) -> anyhow::Result<()> {
    world.feed(world.count() / 2)?;
    world.run_once("before")?;
    truncate(world)?;
    refused_start(world, "refused")?;
    world.conclude()
}

/// Truncated under a running worker: it stops with code 5 and delivers nothing of what came after.
///
/// # Errors
/// If it could not be told to its end.
pub fn truncated_alive(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count() / 2)?;
    let mut worker = world.follow("follows")?;
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the input was not read");
    truncate(world)?;
    world.expect(&mut worker, Exit::Code(5))?;
    reader.finish()?;
    world.conclude()
}

/// Another file under the same name, longer than what was read, and the first one is gone, half unread.
///
/// # Errors
/// If it could not be told to its end.
pub fn replaced(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count() / 2)?;
    let mut killed = world.launch("killed", &["run", "--once"]).faults("commit.answered:kill:4").start()?;
    world.expect(&mut killed, Exit::KILLED)?;
    let before = world.found()?;
    // Removed only once the new file exists, so that the system cannot give it the same inode.
    let other = world.dir.join("other.jsonl");
    append(&other, world.truth.inputs.iter().rev().map(|input| input.line.as_str()))?;
    std::fs::rename(&other, world.input())?;
    refused_start(world, "refused")?;
    let after = world.found()?;
    if before.rows != after.rows {
        world.accuse(Anomaly::Phantom, "rows of another file were delivered");
    }
    reader.finish()?;
    world.conclude_timeline();
    Ok(())
}

/// `start: latest` is resolved once, ever: what is written while no worker runs is delivered by the next.
///
/// # Errors
/// If it could not be told to its end.
pub fn latest_start(world: &mut World) -> anyhow::Result<()> {
    world.config.start = "latest";
    world.write_config()?;
    let old = world.count() / 3;
    world.feed(old)?;
    let reader = world.reader();
    let mut worker = world.follow("first")?;
    let claimed = reader.wait_for(SOON, |sample| sample.progress.generation >= 1);
    world.must(claimed.into(), "the worker did not claim");
    world.feed(2 * old)?;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= old as u64);
    world.must(delivered.into(), "what came after the start was not delivered");
    world.signal(&mut worker, Signal::KILL)?;
    world.wait(&mut worker)?;
    world.feed(world.count())?;
    world.run_once("after")?;
    reader.finish()?;
    judge_rows_from(world, old)
}
