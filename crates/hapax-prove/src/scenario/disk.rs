//! A disk that is full for a while: a small tmpfs where mounts are allowed, else a file-size limit.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::child::Child;
use crate::database::Engine;
use crate::ddl;
use crate::reader::Reader;
use crate::world::{SOON, World};

/// A small file system of our own, gone when this is dropped.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Small enough to be full soon; none where mounts are not allowed.
    fn mount(path: &Path) -> anyhow::Result<Option<Self>> {
        Self::mount_of(path, "3m")
    }

    /// The same of another size.
    pub(crate) fn mount_of(path: &Path, size: &str) -> anyhow::Result<Option<Self>> {
        std::fs::create_dir_all(path)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "hapax-prove"]).arg(path);
        let done = mount.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        Ok(done.is_ok_and(|status| status.success()).then(|| Self { path: path.to_owned() }))
    }

    pub(crate) fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }

    /// Writes until nothing more fits.
    pub(crate) fn fill(&self) -> anyhow::Result<()> {
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
    match world.setting.stack.engine() {
        Engine::Postgres => return full_server(world),
        Engine::Mysql => return full_mysql(world),
        Engine::Sqlite => {}
    }
    let path = world.dir.join("disk");
    match SmallDisk::mount(&path)? {
        Some(disk) => on_small_disk(world, &disk),
        None => under_limit(world),
    }
}

/// The table is full, and nothing else of the server's: it must be able to write its log.
fn full_server(world: &mut World) -> anyhow::Result<()> {
    let disk = small_disk(world)?;
    if disk.is_some() {
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

/// Moves the table to a small disk; none where mounts are not allowed.
fn small_disk(world: &mut World) -> anyhow::Result<Option<SmallDisk>> {
    let server = world.lodging()?.server.own_postgres()?;
    let path = server.socket_dir().join("small");
    let disk = SmallDisk::mount(&path)?;
    if disk.is_some() {
        server.give(&path)?;
        server.query(&format!("CREATE TABLESPACE small LOCATION '{}'", path.display()))?;
        world.target().execute("ALTER TABLE orders SET TABLESPACE small")?;
    }
    Ok(disk)
}

/// The table's file is on a small disk of its own; the rest of the server has room.
fn full_mysql(world: &mut World) -> anyhow::Result<()> {
    let version = world.target().ask("SELECT version()")?;
    if !version.value().is_some_and(|version| version.contains("MariaDB")) {
        world.remarks.push("MySQL's disk was never full: its tables cannot be put on a small one".into());
        return super::kills::plain(world);
    }
    let server = &world.lodging()?.server;
    let path = server.directory().join("small");
    let Some(disk) = SmallDisk::mount(&path)? else {
        world.remarks.push("MariaDB's disk was never full: mounts are not allowed here".into());
        return super::kills::plain(world);
    };
    server.give(&path)?;
    world.remarks.push("MariaDB's disk full by a small tmpfs".into());
    world.target().execute("DROP TABLE orders, balance")?;
    let place = format!(") DATA DIRECTORY = '{}';\nCREATE TRIGGER", path.display());
    let tables = ddl::tables(world.setting.shape, Engine::Mysql);
    world.target().execute(&tables.replacen(");\nCREATE TRIGGER", &place, 1))?;
    let reader = world.reader();
    world.feed(world.count() / 3)?;
    let mut worker = world.follow("full")?;
    wait_first_third(world, &reader);
    disk.fill()?;
    world.feed(world.count())?;
    let said = says_full(&mut worker)?;
    std::fs::remove_file(disk.ballast())?;
    ends_well(world, worker, reader, said)
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

/// Sets the limit in every process that serves a worker, and in the one that makes new ones. Under the server's account: root
/// itself may lack the right to limit others.
fn limit_table(world: &mut World, may: TableMay) -> anyhow::Result<()> {
    let limit = match may {
        TableMay::StayAsItIs => {
            let answer = world.target().ask("SELECT pg_relation_size('orders')")?;
            answer.value().unwrap_or_default().to_owned()
        }
        TableMay::Grow => "unlimited".to_owned(),
    };
    let sessions = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let answer = world.target().ask(sessions)?;
    let server = world.lodging()?.server.postgres()?;
    let first = server.pid().context("the server runs")?.to_string();
    let set = |pid: &str| {
        let mut command = server.command("prlimit");
        command.args(["--pid", pid]).arg(format!("--fsize={limit}:"));
        command.status().context("cannot start prlimit")
    };
    let done = set(&first)?;
    anyhow::ensure!(done.success(), "prlimit of the server failed: {done}");
    for pid in answer.rows.iter().filter_map(|row| row.first()?.as_deref()) {
        // A session that has ended meanwhile needs no limit.
        set(pid)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::{Need, Wish};
    use crate::setting::{Setting, Stack};
    use crate::workload::Mix;
    use crate::world::Environment;

    const ROW: &str = "INSERT INTO orders (n, order_id, region, reference, account, amount, op, version) \
                       SELECT i, i, 'eu', repeat('x', 500), 'a1', 1, 'c', i FROM generate_series(1, 8000) AS i";

    fn world(dir: &Path) -> World {
        let environment =
            Environment { hapax: "none".into(), plant: None, base: dir.to_owned(), servers: std::sync::Arc::default() };
        let setting = Setting::strictest().on(Stack::Postgres);
        let need = (Mix::Clean, Need::Own(Wish::Limited));
        World::new(&environment, &dir.join("cell"), setting, need, 1).expect("a world")
    }

    fn refusal(world: &World) -> String {
        world.target().execute(ROW).map_or_else(|error| format!("{error:#}"), |()| "none".to_owned())
    }

    /// Goal: a full table is refused with a word for it, the server lives, and there is room again. Method: the limit.
    #[test]
    fn a_limited_table_is_full_and_the_server_lives() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut world = world(dir.path());
        grow_table(&world).expect("it grows");
        limit_table(&mut world, TableMay::StayAsItIs).expect("a limit");
        let said = refusal(&world);
        assert!(said.contains("File too large"), "{said}");
        limit_table(&mut world, TableMay::Grow).expect("no limit");
        assert_eq!(refusal(&world), "none");
    }

    /// Goal: the same on a small disk, where mounts are allowed. Method: a table of its own place.
    #[test]
    fn a_table_on_a_small_disk_is_full_and_the_server_lives() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut world = world(dir.path());
        let Some(disk) = small_disk(&mut world).expect("a disk or none") else { return };
        disk.fill().expect("it is full");
        let said = refusal(&world);
        assert!(said.contains("No space left"), "{said}");
        std::fs::remove_file(disk.ballast()).expect("there was ballast");
        world.target().execute("INSERT INTO orders SELECT FROM orders LIMIT 0").expect("the server lives");
    }
}
