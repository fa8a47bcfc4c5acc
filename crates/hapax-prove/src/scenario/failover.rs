//! The server dies and another one answers in its place: with all that was confirmed, or without the last of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use hapax_services::{Mariadb, Postgres, Replication, Stop};

use super::contract::{accept, refused_start};
use super::server::{goes_on, must_say, works};
use crate::child::{Child, Exit};
use crate::database::Engine;
use crate::feed::Pace;
use crate::launch::last_words;
use crate::lodging::{Held, Server};
use crate::reader::Reader;
use crate::servers::Wish;
use crate::shape::Shape;
use crate::world::{SOON, World};

/// Who follows the cell's server.
enum Follower {
    Postgres(Postgres),
    Mariadb(Mariadb),
}

impl Follower {
    /// A follower of the cell's server, and the wire on which it will take that server's place.
    fn start(world: &mut World, replication: Replication) -> anyhow::Result<Self> {
        let servers = Arc::clone(&world.environment().servers);
        let follower = match world.target().engine() {
            Engine::Sqlite => anyhow::bail!("a file has no server"),
            Engine::Postgres => {
                let primary = world.lodging()?.server.own_postgres()?;
                let standby = Wish::Plain.postgres().start_standby(primary)?;
                if replication == Replication::SemiSynchronous {
                    // Only now: until somebody follows, a COMMIT would wait for ever.
                    primary.add_line("synchronous_standby_names = '*'")?;
                    primary.query("SELECT pg_reload_conf()")?;
                }
                Self::Postgres(standby)
            }
            Engine::Mysql => {
                let replica = servers.replica_of(world.lodging()?.server.own_mariadb()?, replication)?;
                // While it follows, so that both make them in the same second: only the servers' numbers tell them apart.
                world.target().execute("DROP TABLE IF EXISTS orders, balance")?;
                world.make_target()?;
                Self::Mariadb(replica)
            }
        };
        world.wire()?;
        Ok(follower)
    }

    const fn port(&self) -> u16 {
        match self {
            Self::Postgres(server) => server.port(),
            Self::Mariadb(server) => server.port(),
        }
    }

    /// From here on it misses what its primary commits.
    fn fall_behind(&self, world: &mut World) -> anyhow::Result<()> {
        let server = &mut world.lodging()?.server;
        match self {
            Self::Postgres(standby) => {
                standby.catch_up(server.own_postgres()?)?;
                standby.stop_following()?;
            }
            Self::Mariadb(replica) => {
                replica.catch_up(server.own_mariadb()?)?;
                replica.stop_following()?;
            }
        }
        Ok(())
    }

    /// It is the cell's server now, and takes writes.
    fn take_over(self, world: &mut World) -> anyhow::Result<()> {
        let server = match self {
            Self::Postgres(standby) => {
                standby.promote()?;
                Server::Postgres(Held::Own(Box::new(standby)))
            }
            Self::Mariadb(replica) => {
                replica.promote()?;
                Server::Mariadb(Held::Own(Box::new(replica)))
            }
        };
        world.lodging()?.server = server;
        Ok(())
    }
}

/// The server dies under load; what answers in its place is its standby, read-only until it is promoted. The primary
/// confirmed nothing, and showed nobody anything, that the standby had not received: so no committed epoch is lost, and
/// one that was being committed is there or not, which the worker has to find out.
///
/// # Errors
/// If it could not be told to its end.
pub fn failover(world: &mut World) -> anyhow::Result<()> {
    let follower = Follower::start(world, Replication::SemiSynchronous)?;
    let reader = world.reader();
    let mut worker = works(world, &reader)?;
    let third = world.fed as u64;
    let feeder = world.feed_slowly(world.count(), Pace { lines: 20, pause: Duration::from_millis(10) });
    let works_on = reader.wait_for(SOON, |sample| sample.progress.read >= third + 200);
    world.must(works_on.into(), "the worker did not deliver into a server that is followed");
    world.lodging()?.server.stop(Stop::Immediate)?;
    world.wire()?.redirect(follower.port());
    feeder.finish()?;
    must_say(world, &mut worker, &["25006", "1290", "read-only"])?;
    reader.finish()?;
    follower.take_over(world)?;
    let reader = world.reader();
    if world.target().engine() == Engine::Mysql && world.setting.shape == Shape::Append {
        return is_another_table(world, worker, reader);
    }
    goes_on(world, worker, reader)
}

/// A replica of MariaDB's has numbers of its own. Where rows have no key, nothing tells its table from one that was made
/// anew: the worker stops, a person accepts it, and everything is delivered once.
fn is_another_table(world: &mut World, mut worker: Child, reader: Reader) -> anyhow::Result<()> {
    world.expect(&mut worker, Exit::Code(5))?;
    refused_start(world, "refused")?;
    accept(world)?;
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}

/// The server dies, and its standby lacks what was committed last, as after asynchronous replication. Rows and progress
/// are of one moment there, an older one: nothing may be delivered on top of it that does not follow. The worker has a
/// newer epoch in its hands, so it goes back by a claim, or stops for a person; then all is delivered once.
///
/// # Errors
/// If it could not be told to its end.
pub fn behind(world: &mut World) -> anyhow::Result<()> {
    let follower = Follower::start(world, Replication::Asynchronous)?;
    let reader = world.reader();
    let worker = works(world, &reader)?;
    follower.fall_behind(world)?;
    world.feed(2 * world.count() / 3)?;
    let fed = world.fed as u64;
    let lost = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(lost.into(), "the worker did not deliver what is to be lost");
    reader.finish()?;
    world.lodging()?.server.stop(Stop::Immediate)?;
    let port = follower.port();
    follower.take_over(world)?;
    world.note_restored();
    let reader = world.reader();
    world.wire()?.redirect(port);
    world.feed(world.count())?;
    match world.target().engine() {
        Engine::Mysql => is_another_table(world, worker, reader),
        Engine::Postgres | Engine::Sqlite => goes_back(world, worker, reader),
    }
}

/// The same table, at an older moment: whoever claims goes on from there.
fn goes_back(world: &mut World, mut worker: Child, reader: Reader) -> anyhow::Result<()> {
    let (started, fed) = (Instant::now(), world.fed as u64);
    let delivered = |reader: &Reader| reader.latest().is_some_and(|sample| sample.progress.read >= fed);
    while worker.poll()?.is_none() && !delivered(&reader) {
        anyhow::ensure!(started.elapsed() < SOON, "the worker neither went on nor stopped: {}", last_words(&worker));
        std::thread::sleep(Duration::from_millis(20));
    }
    if worker.poll()?.is_none() {
        return goes_on(world, worker, reader);
    }
    world.expect(&mut worker, Exit::Code(5)).context("the worker stopped")?;
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}
