//! Honest clients beside others: garbage, bombs, readers that do not read.
//!
//! Invariant: the broker's memory is what the system says of its process.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::history::Cleanup;
use super::process::SOON;
use super::story::{kill_somewhen, some, until_groups_work};
use super::world::World;

const MIB: usize = 1 << 20;
/// What a broker may hold for clients, as its documentation says: batches that wait, what is looked into, and answers. Who asks
/// for more gets it later, or less. (The newest records are there before any harm is done.)
const PROMISED: usize = (64 + 96 + 128) * MIB;
/// How often each of the harmful things happens before and after the kill.
const OFTEN: u32 = 4;

/// Nothing acknowledged is lost, groups go on, the log is compacted, memory stays within what is promised.
///
/// # Errors
/// If the broker does not do what it must be able to do.
pub(super) fn clients(world: &mut World) -> anyhow::Result<()> {
    world.cleanup = Cleanup::Compact;
    world.look_often()?;
    world.open("")?;
    until_groups_work(world)?;
    world.load()?.fill_large()?;
    some(world)?;
    let before = world.brokers[0].forget_peak()?;
    let (from, commits) = (world.load()?.end()?, world.commits_of_members());
    world.load.as_mut().context("the clients have been started")?.beset()?;
    world.load()?.wait_harm(OFTEN)?;
    some(world)?;
    let upto = world.load()?.end()?;
    world.load()?.wait_compacted(from, upto)?;
    until_commits(world, commits)?;
    let peak = world.brokers[0].peak()?;
    let grown = peak.saturating_sub(before) / MIB;
    if grown > PROMISED / MIB {
        let text = format!("the broker grew by {grown} MiB, from {} to {}", before / MIB, peak / MIB);
        world.complaints.push(text);
    }
    kill_somewhen(world)?;
    world.load()?.wait_harm(1)?;
    some(world)
}

/// Members of the group have read and committed more.
fn until_commits(world: &World, before: usize) -> anyhow::Result<()> {
    let started = Instant::now();
    while world.commits_of_members() == before {
        anyhow::ensure!(started.elapsed() < SOON, "no member of the group committed an offset within {SOON:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
