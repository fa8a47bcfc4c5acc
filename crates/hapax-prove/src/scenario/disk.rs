//! A disk that is full for a while: a small tmpfs where mounts are allowed, else a file-size limit.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use hapax_services::Builder;

use crate::child::{Child, limit_file_size};
use crate::reader::Reader;
use crate::servers;
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
    if world.setting.stack.has_server() {
        return full_server(world);
    }
    let path = world.dir.join("disk");
    match SmallDisk::mount(&path)? {
        Some(disk) => on_small_disk(world, &disk),
        None => under_limit(world),
    }
}

/// A server whose files can be limited: a segment of its log is much smaller than the table will be.
#[must_use]
pub fn server() -> Builder {
    servers::builder().initdb("--wal-segsize=1").setting("autovacuum", "off").setting("max_wal_size", "64MB")
}

/// The table is full, and nothing else of the server's: it must be able to write its log.
fn full_server(world: &mut World) -> anyhow::Result<()> {
    let server = world.lodging()?.server.own()?;
    let path = server.socket_dir().join("small");
    let disk = SmallDisk::mount(&path)?;
    if disk.is_some() {
        server.give(&path)?;
        let place = path.display().to_string();
        server.query(&format!("CREATE TABLESPACE small LOCATION '{place}'"))?;
        world.target().execute("ALTER TABLE orders SET TABLESPACE small")?;
        world.remarks.push("PostgreSQL's disk full by a small tmpfs".into());
    } else {
        world.remarks.push("PostgreSQL's disk full by a file-size limit: mounts are not allowed here".into());
        grow_table(world)?;
    }
    let reader = world.reader();
    world.feed(world.count() / 3)?;
    let mut worker = world.follow("full")?;
    wait_first_third(world, &reader);
    match &disk {
        Some(disk) => disk.fill()?,
        None => limit_table(world, TableMay::StayAsItIs)?,
    }
    world.feed(world.count())?;
    let said = says_full(&mut worker)?;
    match &disk {
        Some(disk) => std::fs::remove_file(disk.ballast())?,
        None => limit_table(world, TableMay::Grow)?,
    }
    ends_well(world, worker, reader, said)?;
    if disk.is_some() {
        world.target().execute("ALTER TABLE orders SET TABLESPACE pg_default")?;
    }
    Ok(())
}

/// Makes the table's file larger than any other file that the server writes.
fn grow_table(world: &World) -> anyhow::Result<()> {
    let sql = "INSERT INTO orders (n, order_id, region, reference, account, amount, op, version) \
               SELECT -i, -i, 'nowhere', repeat('x', 200), 'nobody', 1, 'c', i FROM generate_series(1, 8000) AS i; \
               DELETE FROM orders";
    world.target().execute(sql)
}

/// What the server's processes may do with the table's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableMay {
    StayAsItIs,
    Grow,
}

/// Sets the limit in every process that serves a worker, and in the one that makes new ones.
fn limit_table(world: &mut World, may: TableMay) -> anyhow::Result<()> {
    let answer = world.target().ask("SELECT pg_relation_size('orders')")?;
    let size: u64 = answer.value().unwrap_or_default().parse()?;
    let sessions = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'";
    let answer = world.target().ask(sessions)?;
    let first = world.lodging()?.server.postgres().pid().context("the server runs")?;
    let pids = answer.rows.iter().filter_map(|row| row.first()?.as_deref()?.parse::<u32>().ok()).chain([first]);
    for pid in pids {
        // A session that has ended meanwhile needs no limit.
        drop(limit_file_size(pid, (may == TableMay::StayAsItIs).then_some(size)));
    }
    Ok(())
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
    std::fs::copy(world.dir.join(&world.config.target), world.dir.join("target-of-small-disk.db"))?;
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

/// Whether the worker says that there is no room, in the database's words or the system's.
fn says_full(worker: &mut Child) -> anyhow::Result<bool> {
    let said = worker.wait_said_any(&["full", "I/O error", "No space left", "File too large"], SOON)?;
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
