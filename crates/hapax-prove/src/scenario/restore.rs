//! The database restored to an older copy: rewind, or stop where the source has lost the range.

use std::path::{Path, PathBuf};

use anyhow::Context;
use hapax_services::Stop;

use super::contract::refused_start;
use crate::database::Database;
use crate::lodging::Server;
use crate::world::World;

const PARTS: [&str; 3] = ["", "-wal", "-shm"];

fn part(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Copies the target as it lies there, with no worker alive and no reader either: closing a file gives up all locks that
/// this process has on it, those of its readers too. A server is copied whole, as backups are that keep its identity.
fn back_up(world: &mut World) -> anyhow::Result<()> {
    match world.target() {
        Database::File(target) => {
            let copy = world.dir.join("copy.db");
            for suffix in PARTS.into_iter().filter(|suffix| part(&target, suffix).exists()) {
                std::fs::copy(part(&target, suffix), part(&copy, suffix))?;
            }
            Ok(())
        }
        Database::Postgres { .. } | Database::Mysql { .. } => {
            let server = &mut world.lodging()?.server;
            server.stop(Stop::Fast)?;
            copy_directory(server, &server.data_dir(), &copy_of(server))?;
            server.start_again()
        }
    }
}

fn copy_of(server: &Server) -> PathBuf {
    server.directory().join("copy")
}

/// With owners and rights, which a server is particular about.
fn copy_directory(server: &Server, from: &Path, to: &Path) -> anyhow::Result<()> {
    let done = server.command("cp").arg("-Rp").args([from, to]).status().context("cannot start cp")?;
    anyhow::ensure!(done.success(), "cp of the server's directory failed: {done}");
    Ok(())
}

fn restore(world: &mut World) -> anyhow::Result<()> {
    match world.target() {
        Database::File(target) => {
            let copy = world.dir.join("copy.db");
            for suffix in PARTS {
                let (from, to) = (part(&copy, suffix), part(&target, suffix));
                if to.exists() {
                    std::fs::remove_file(&to)?;
                }
                if from.exists() {
                    std::fs::copy(from, to)?;
                }
            }
        }
        Database::Postgres { .. } | Database::Mysql { .. } => {
            let server = &mut world.lodging()?.server;
            server.stop(Stop::Fast)?;
            std::fs::remove_dir_all(server.data_dir())?;
            copy_directory(server, &copy_of(server), &server.data_dir())?;
            server.start_again()?;
        }
    }
    world.note_restored();
    Ok(())
}

/// The source still holds the range: it is read again, and the end is right.
///
/// # Errors
/// If it could not be told to its end.
pub fn rewind(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count() / 3)?;
    world.run_once("before")?;
    reader.finish()?;
    back_up(world)?;
    let reader = world.reader();
    world.feed(2 * world.count() / 3)?;
    world.run_once("lost")?;
    reader.finish()?;
    restore(world)?;
    let reader = world.reader();
    world.feed(world.count())?;
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}

/// The range is gone with a file that was rotated away and deleted: stop, and name the positions.
///
/// # Errors
/// If it could not be told to its end.
pub fn gap(world: &mut World) -> anyhow::Result<()> {
    world.feed(world.count() / 3)?;
    world.run_once("before")?;
    back_up(world)?;
    world.feed(world.count() / 2)?;
    world.run_once("read-to-the-end")?;
    let rotated = world.dir.join("input.jsonl.1");
    std::fs::rename(world.input(), &rotated)?;
    world.feed(2 * world.count() / 3)?;
    world.run_once("rotated")?;
    world.conclude()?;
    std::fs::remove_file(rotated)?;
    restore(world)?;
    refused_start(world, "refused")?;
    world.conclude_timeline();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Engine;
    use crate::servers::{Need, Wish};
    use crate::setting::{Setting, Stack};
    use crate::workload::Mix;
    use crate::world::Environment;

    /// Goal: a restored target is what it was, and the same table. Method: every database, a row more, and back.
    #[test]
    fn a_restored_target_is_what_it_was() {
        let dir = tempfile::tempdir().expect("a directory");
        let environment = Environment {
            hapax: "none".into(),
            plant: None,
            base: dir.path().to_owned(),
            servers: std::sync::Arc::default(),
        };
        for stack in [Stack::Files, Stack::Postgres, Stack::Mysql] {
            let setting = Setting::strictest().on(stack);
            let place = dir.path().join(format!("{stack:?}"));
            let need = (Mix::Clean, Need::Own(Wish::Plain));
            let mut world = World::new(&environment, &place, setting, need, 1).expect("a world");
            let row = "INSERT INTO orders (n, order_id, region, reference, account, amount, op, version) \
                       VALUES (1, 1, 'eu', 'r', 'a1', 1, 'c', 1)";
            let identity = |world: &World| match stack.engine() {
                Engine::Sqlite => None,
                Engine::Postgres => world.target().ask("SELECT 'orders'::regclass::oid").ok(),
                // When it was created is not kept by a copy.
                Engine::Mysql => {
                    let table = "SELECT @@server_uid, table_id FROM information_schema.innodb_sys_tables \
                                 WHERE name = CONCAT(database(), '/orders')";
                    world.target().ask(table).ok()
                }
            };
            world.target().execute(row).expect("a row");
            let before = (world.found().expect("a look"), identity(&world));
            back_up(&mut world).expect("a copy");
            world.target().execute(row).expect("another row");
            assert_eq!(world.found().expect("a look").rows.len(), 2);
            restore(&mut world).expect("the copy is back");
            assert_eq!((world.found().expect("a look"), identity(&world)), before, "{stack:?}");
        }
    }
}
