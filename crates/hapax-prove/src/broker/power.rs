//! Power loss: the store is on a file system of its own, which is shut down without a flush, and mounted again.
//!
//! ext4 on a loop device; the shutdown drops everything that was not yet written through, as a cut of the power does. Needs
//! root and loop devices, and says so without them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::Signal;

use super::cell::{BrokerCell, Store, Story};
use super::story::some;
use super::world::{Disk, Place, World};

/// The cell of this story: never part of a slice or of a whole run.
pub const CELL: BrokerCell = BrokerCell { store: Store::Embedded, story: Story::PowerLoss };

/// How often the power is cut in a cell.
const CUTS: u32 = 5;
/// `EXT4_IOC_SHUTDOWN` with `EXT4_GOING_FLAGS_NOLOGFLUSH`; no safe Rust can say it.
const SHUT_DOWN: &str = "open(my $f, '<', $ARGV[0]) or die \"open: $!\"; my $how = pack('L', 2); \
     ioctl($f, 0x8004587D, $how) or die \"ioctl: $!\";";

/// A file system in a file, gone when this is dropped.
#[derive(Debug)]
pub struct LoopDisk {
    image: PathBuf,
    path: PathBuf,
}

impl LoopDisk {
    /// Makes it beside `path`, and mounts it there.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn mount(path: &Path) -> anyhow::Result<Self> {
        let image = path.with_extension("ext4");
        let file = std::fs::File::create(&image)?;
        file.set_len(512 << 20)?;
        drop(file);
        done(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image), "mkfs.ext4")?;
        let disk = Self { image, path: path.to_owned() };
        disk.attach().context("power loss needs root and loop devices (/dev/loop-control), which are not here")?;
        Ok(disk)
    }

    fn attach(&self) -> anyhow::Result<()> {
        done(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.path), "mount")
    }

    /// From now on nothing reaches the disk, and what is on its way is lost.
    fn cut(&self, file: &Path) -> anyhow::Result<()> {
        done(Command::new("perl").args(["-e", SHUT_DOWN]).arg(file), "the shutdown of the file system")
    }

    /// Mounts what is left: the journal is replayed as after a real cut.
    fn mount_again(&self) -> anyhow::Result<()> {
        done(Command::new("umount").arg(&self.path), "umount")?;
        self.attach()
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.path).stderr(Stdio::null()).status());
        drop(std::fs::remove_file(&self.image));
    }
}

fn done(command: &mut Command, what: &str) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{what} could not be started"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{what} failed: {}", said.trim());
    Ok(())
}

/// Any file of the store: the shutdown is of the file system that it is on.
fn any_file(path: &Path) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(path)?.filter_map(Result::ok);
    let file = entries.map(|entry| entry.path()).find(|path| path.is_file());
    file.context("the store has no file yet")
}

/// What was acknowledged before the power was cut is there afterwards, once.
///
/// # Errors
/// If the system does not allow it, or the broker does not come back.
pub(super) fn loss(world: &mut World) -> anyhow::Result<()> {
    let Place::Directory(path) = &world.place else { anyhow::bail!("this store is no directory") };
    let path = path.clone();
    let disk = LoopDisk::mount(&path)?;
    world.open("")?;
    for _ in 0..CUTS {
        some(world)?;
        std::thread::sleep(Duration::from_micros(world.random.u64(0..300_000)));
        // Nobody says anything after the cut, as on a machine without power. It matters: of 69 syncs of a growing file that were
        // under way at this ioctl and returned 0, 35 left nothing behind (Linux 6.18, 60 cuts). Those that had returned before
        // it all held, and none that began after it returned 0. So a broker that runs on acknowledges what ext4 has dropped.
        world.brokers[0].life()?.signal(Signal::STOP)?;
        disk.cut(&any_file(&path)?)?;
        world.brokers[0].kill();
        disk.mount_again()?;
        world.brokers[0].start_and_wait("")?;
    }
    some(world)?;
    world.keep(Disk::Loop(disk));
    Ok(())
}
