//! What happens to a server: stopped at once, read-only, replaced by its standby, full of others' connections.

use std::time::Duration;

use hapax_services::{Builder, Client, Stop};
use rustix::process::Signal;

use crate::child::Child;
use crate::reader::Reader;
use crate::servers::{self, Server};
use crate::world::{SOON, World};

/// So few that a cell can take them all.
const CONNECTIONS: usize = 14;
/// A few attempts that fail.
const A_WHILE: Duration = Duration::from_millis(400);
/// Whoever is connected and is not the harness.
const WORKERS: &str = "datname = current_database() AND application_name <> 'hapax-services'";

/// A server that can have a standby.
#[must_use]
pub fn primary() -> Builder {
    servers::builder().setting("wal_level", "replica").setting("max_connections", "50")
}

/// A server with few connections, all of which anybody may take.
#[must_use]
pub fn narrow() -> Builder {
    servers::builder()
        .setting("max_connections", &CONNECTIONS.to_string())
        .setting("superuser_reserved_connections", "0")
        .setting("max_wal_senders", "0")
        .setting("autovacuum", "off")
}

/// Starts a worker and waits until it has delivered a first part.
fn works(world: &mut World, reader: &Reader) -> anyhow::Result<Child> {
    world.feed(world.count() / 3)?;
    let worker = world.follow("lives-through-it")?;
    let fed = world.fed as u64;
    let works = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(works.into(), "the worker did not deliver the first third");
    Ok(worker)
}

/// The worker goes on by itself, everything is delivered, and another run finds nothing to do.
fn goes_on(world: &mut World, mut worker: Child, reader: Reader) -> anyhow::Result<()> {
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the worker did not go on");
    world.drain(&mut worker)?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

fn must_say(world: &mut World, worker: &mut Child, words: &[&str]) -> anyhow::Result<()> {
    let said = worker.wait_said_any(words, SOON)?;
    world.must(said.into(), format!("the worker said none of {words:?}"));
    Ok(())
}

/// Stopped like by a power cut while a worker is at `point`, and started again.
///
/// # Errors
/// If it could not be told to its end.
pub fn stopped_at(world: &mut World, random: &mut fastrand::Rng, point: &str) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count())?;
    let faults = format!("{point}:stop:{}", random.u64(2..=6));
    let mut worker = world.launch("lives-through-it", &["run"]).faults(faults).start()?;
    let stopped = worker.wait_stopped(SOON)?;
    world.must(stopped.into(), format!("the worker never came to {point}"));
    world.lodging()?.server.own()?.stop(Stop::Immediate);
    world.signal(&mut worker, Signal::CONT)?;
    std::thread::sleep(A_WHILE);
    world.must(worker.poll()?.is_none().into(), "the worker ended when the server was away for a moment");
    world.lodging()?.server.own()?.start_again()?;
    goes_on(world, worker, reader)
}

/// No writes for a while, as on a node that is not the primary any more or not yet.
///
/// # Errors
/// If it could not be told to its end.
pub fn read_only(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    let mut worker = works(world, &reader)?;
    let database = world.lodging()?.target.clone();
    let target = world.target();
    target.execute(&format!("ALTER DATABASE {database} SET default_transaction_read_only = on"))?;
    target.execute(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {WORKERS}"))?;
    world.feed(world.count())?;
    must_say(world, &mut worker, &["read-only", "25006"])?;
    std::thread::sleep(A_WHILE);
    let writable = "SET default_transaction_read_only = off";
    let mut client = target.client()?;
    client.query(writable)?;
    client.query(&format!("ALTER DATABASE {database} RESET default_transaction_read_only"))?;
    goes_on(world, worker, reader)
}

/// The server dies; what answers in its place is its standby, read-only until it is promoted.
///
/// # Errors
/// If it could not be told to its end.
pub fn failover(world: &mut World) -> anyhow::Result<()> {
    let lodging = world.lodging()?;
    let primary = lodging.server.own()?;
    let standby = servers::builder().start_standby(primary)?;
    // Only now: until somebody follows, a COMMIT would wait for ever.
    primary.add_line("synchronous_standby_names = '*'")?;
    primary.query("SELECT pg_reload_conf()")?;
    world.wire()?;
    let reader = world.reader();
    let mut worker = works(world, &reader)?;
    world.lodging()?.server.own()?.stop(Stop::Immediate);
    world.wire()?.redirect(standby.port());
    world.feed(world.count())?;
    must_say(world, &mut worker, &["read-only", "25006"])?;
    reader.finish()?;
    standby.promote()?;
    world.lodging()?.server = Server::Own(Box::new(standby));
    let reader = world.reader();
    goes_on(world, worker, reader)
}

/// Every connection is taken by others when the worker needs a new one.
///
/// # Errors
/// If it could not be told to its end.
pub fn exhausted(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    let mut worker = works(world, &reader)?;
    let others = take_all(world)?;
    world.feed(world.count())?;
    must_say(world, &mut worker, &["53300", "too many clients", "remaining connection slots"])?;
    std::thread::sleep(A_WHILE);
    drop(others);
    goes_on(world, worker, reader)
}

/// Ends the workers' sessions and takes their places until none of them has any.
fn take_all(world: &mut World) -> anyhow::Result<Vec<Client>> {
    // Of all databases: a place that the state's session leaves would do for the target's.
    let theirs = "backend_type = 'client backend' AND application_name <> 'hapax-services'";
    let mut admin = world.target().client()?;
    let mut others = Vec::new();
    for _ in 0..200 {
        admin.query(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {theirs}"))?;
        while let Ok(other) = world.target().client() {
            others.push(other);
        }
        let left = admin.query(&format!("SELECT count(*) FROM pg_stat_activity WHERE {theirs}"))?;
        if left.value() == Some("0") && others.len() > CONNECTIONS / 3 && world.target().client().is_err() {
            // Its place must not become free either.
            others.push(admin);
            return Ok(others);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    anyhow::bail!("the worker kept its connections");
}
