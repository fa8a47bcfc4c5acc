//! A disk that is full for a while: a small tmpfs where mounts are allowed, else a file-size limit.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::child::Child;
use crate::reader::Reader;
use crate::world::{SOON, World};

/// A small file system of our own, gone when this is dropped.
#[derive(Debug)]
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// None where mounts are not allowed.
    fn mount(path: &Path) -> anyhow::Result<Option<Self>> {
        std::fs::create_dir_all(path)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=3m,mode=700", "hapax-prove"]).arg(path);
        let done = mount.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        Ok(done.is_ok_and(|status| status.success()).then(|| Self { path: path.to_owned() }))
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }

    /// Writes until nothing more fits.
    fn fill(&self) -> anyhow::Result<()> {
        let mut file = std::fs::File::create(self.ballast())?;
        let block = [0_u8; 4096];
        while file.write_all(&block).is_ok() {}
        Ok(())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a connection that is still open must not keep the mount in the tree.
        drop(Command::new("umount").arg("-l").arg(&self.path).stderr(Stdio::null()).status());
    }
}

/// Full while the worker works, then not: nothing is lost, nothing is doubled, and the worker said why it waited.
///
/// # Errors
/// If it could not be told to its end.
pub fn full(world: &mut World) -> anyhow::Result<()> {
    let path = world.dir.join("disk");
    match SmallDisk::mount(&path)? {
        Some(disk) => on_small_disk(world, &disk),
        None => under_limit(world),
    }
}

fn on_small_disk(world: &mut World, disk: &SmallDisk) -> anyhow::Result<()> {
    world.remarks.push("disk full by a small tmpfs".into());
    world.config.target = "disk/target.db".into();
    world.write_config()?;
    world.make_target()?;
    let reader = world.reader();
    world.feed(world.count() / 3)?;
    let mut worker = world.follow("full")?;
    wait_first_third(world, &reader);
    disk.fill()?;
    world.feed(world.count())?;
    let said = says_full(&mut worker)?;
    std::fs::remove_file(disk.ballast())?;
    ends_well(world, worker, reader, said)?;
    // What the judge saw is kept beside the logs: the disk itself goes away.
    std::fs::copy(world.target(), world.dir.join("target-of-small-disk.db"))?;
    Ok(())
}

fn under_limit(world: &mut World) -> anyhow::Result<()> {
    world.remarks.push("disk full by a file-size limit: mounts are not allowed here".into());
    let reader = world.reader();
    world.feed(world.count() / 3)?;
    let mut worker = world.launch("full", &["run"]).can_run_out_of_space().start()?;
    wait_first_third(world, &reader);
    worker.limit_file_size(Some(4096))?;
    world.feed(world.count())?;
    let said = says_full(&mut worker)?;
    worker.limit_file_size(None)?;
    ends_well(world, worker, reader, said)
}

fn wait_first_third(world: &mut World, reader: &Reader) {
    let fed = world.fed as u64;
    let works = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(works.into(), "the worker did not deliver the first third");
}

/// Whether the worker says that there is no room, in SQLite's words or the system's.
fn says_full(worker: &mut Child) -> anyhow::Result<bool> {
    let said = worker.wait_said_any(&["full", "I/O error"], SOON)?;
    // A few more attempts that fail.
    std::thread::sleep(Duration::from_millis(300));
    Ok(said)
}

fn ends_well(world: &mut World, mut worker: Child, reader: Reader, said_full: bool) -> anyhow::Result<()> {
    world.must(said_full.into(), "the worker never said that the disk is full");
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the worker did not go on when there was room again");
    world.drain(&mut worker)?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}
