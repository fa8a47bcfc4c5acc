//! A disk that is full for a while: a small tmpfs where mounts are allowed, else a file-size limit.

use std::time::Duration;

use super::process::SOON;
use super::story::{revive, some};
use super::world::{Disk, Place, World};
use crate::scenario::disk::SmallDisk;

/// How long nothing can be written.
const FULL: Duration = Duration::from_secs(2);
const WORDS: [&str; 5] = ["full", "I/O error", "No space left", "File too large", "disk"];

/// The directory of the embedded store is full; then there is room again.
///
/// # Errors
/// If the broker does not say so, or does not go on.
pub(super) fn full(world: &mut World) -> anyhow::Result<()> {
    let Place::Directory(path) = &world.place else { anyhow::bail!("this store is no directory") };
    let disk = SmallDisk::mount_of(path, "64m")?;
    if disk.is_none() {
        world.brokers[0].can_run_out_of_space();
    }
    world.open("")?;
    some(world)?;
    match &disk {
        Some(disk) => {
            world.remarks.push("the broker's disk full by a small tmpfs".into());
            disk.fill()?;
        }
        None => {
            world.remarks.push("the broker's disk full by a file-size limit: mounts are not allowed here".into());
            world.brokers[0].life()?.limit_file_size(Some(4096))?;
        }
    }
    let said = world.brokers[0].life()?.wait_said_any(&WORDS, SOON)?;
    if !said {
        world.complaints.push("the broker never said that the disk is full".into());
    }
    std::thread::sleep(FULL);
    match &disk {
        Some(disk) => std::fs::remove_file(disk.ballast())?,
        None => world.brokers[0].life()?.limit_file_size(None)?,
    }
    revive(world)?;
    some(world)?;
    // The log is read later, and the disk must be there then.
    disk.into_iter().for_each(|disk| world.keep(Disk::Small(disk)));
    Ok(())
}

/// The table of batches is on a small disk, which is full; the rest of the server has room.
///
/// # Errors
/// If the broker does not go on.
pub(super) fn full_server(world: &mut World) -> anyhow::Result<()> {
    let path = world.place.server()?.socket_dir().join("small");
    let Some(disk) = SmallDisk::mount_of(&path, "48m")? else {
        world.remarks.push("the disk of the broker's PostgreSQL was never full: mounts are not allowed here".into());
        world.open("")?;
        return some(world);
    };
    world.remarks.push("the disk of the broker's PostgreSQL full by a small tmpfs".into());
    world.open("")?;
    some(world)?;
    let server = world.place.server()?;
    server.give(&path)?;
    server.query(&format!("CREATE TABLESPACE small LOCATION '{}'", path.display()))?;
    world.place.ask("ALTER TABLE kafka.batches SET TABLESPACE small")?;
    some(world)?;
    disk.fill()?;
    let said = world.brokers[0].life()?.wait_said_any(&WORDS, SOON)?;
    if !said {
        world.complaints.push("the broker never said that the disk is full".into());
    }
    std::thread::sleep(FULL);
    std::fs::remove_file(disk.ballast())?;
    revive(world)?;
    some(world)?;
    world.keep(Disk::Small(disk));
    Ok(())
}
