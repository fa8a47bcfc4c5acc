//! What happens to a server: stopped at once, read-only, full of others' connections.

use std::time::Duration;

use hapax_services::Stop;
use rustix::process::Signal;

use crate::check::history::IN_DOUBT;
use crate::child::Child;
use crate::database::{Database, Engine, Line};
use crate::reader::Reader;
use crate::servers::{NARROW, WORKER};
use crate::setting::Place;
use crate::world::{SOON, World};

/// A few attempts that fail.
const A_WHILE: Duration = Duration::from_millis(400);
/// Whoever is connected and is not the harness.
const WORKERS: &str = "datname = current_database() AND application_name <> 'hapax-services'";

/// Starts a worker and waits until it has delivered a first part.
pub(super) fn works(world: &mut World, reader: &Reader) -> anyhow::Result<Child> {
    world.feed(world.count() / 3)?;
    let worker = world.follow("lives-through-it")?;
    let fed = world.fed as u64;
    let works = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(works.into(), "the worker did not deliver the first third");
    Ok(worker)
}

/// The worker goes on by itself, everything is delivered, and another run finds nothing to do.
pub(super) fn goes_on(world: &mut World, mut worker: Child, reader: Reader) -> anyhow::Result<()> {
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the worker did not go on");
    world.drain(&mut worker)?;
    world.run_once("last")?;
    reader.finish()?;
    world.conclude()
}

pub(super) fn must_say(world: &mut World, worker: &mut Child, words: &[&str]) -> anyhow::Result<()> {
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
    world.lodging()?.server.stop(Stop::Immediate)?;
    world.signal(&mut worker, Signal::CONT)?;
    std::thread::sleep(A_WHILE);
    world.must(worker.poll()?.is_none().into(), "the worker ended when the server was away for a moment");
    world.lodging()?.server.start_again()?;
    match world.setting.place {
        Place::Sink => goes_on(world, worker, reader)?,
        // Nobody sees from the target how far progress is.
        Place::State => {
            world.drain(&mut worker)?;
            world.run_once("last")?;
            reader.finish()?;
            world.conclude()?;
        }
    }
    // Only what was being sent is in doubt: what comes after it waits for the server.
    let in_doubt = world.found()?.letters.iter().filter(|letter| letter.code == IN_DOUBT).count();
    let text = format!("{in_doubt} inputs are in doubt, more than an epoch has: the outage made letters of others");
    world.must((in_doubt <= world.config.epoch_events as usize).into(), text);
    Ok(())
}

/// No writes for a while, as on a node that is not the primary any more or not yet.
///
/// # Errors
/// If it could not be told to its end.
pub fn read_only(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    let mut worker = works(world, &reader)?;
    let target = world.target();
    let (forbid, allow) = read_only_words(&world.lodging()?.target, target.engine());
    target.execute(&forbid)?;
    world.feed(world.count())?;
    must_say(world, &mut worker, &["read-only", "25006", "1290"])?;
    std::thread::sleep(A_WHILE);
    let mut line = target.line()?;
    for statement in allow {
        line.query(&statement)?;
    }
    goes_on(world, worker, reader)
}

/// What makes a database read-only for workers, and what ends that.
fn read_only_words(database: &str, engine: Engine) -> (String, Vec<String>) {
    if engine == Engine::Mysql {
        // Who administers may still write: workers are nobody's administrators.
        return ("SET GLOBAL read_only = 1".to_owned(), vec!["SET GLOBAL read_only = 0".to_owned()]);
    }
    let forbid = format!(
        "ALTER DATABASE {database} SET default_transaction_read_only = on; \
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {WORKERS}"
    );
    let allow = format!("ALTER DATABASE {database} RESET default_transaction_read_only");
    (forbid, vec!["SET default_transaction_read_only = off".to_owned(), allow])
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
    must_say(world, &mut worker, &["53300", "too many clients", "remaining connection slots", "Too many connections"])?;
    std::thread::sleep(A_WHILE);
    drop(others);
    goes_on(world, worker, reader)
}

/// Ends the workers' sessions and takes their places until none of them has any.
fn take_all(world: &World) -> anyhow::Result<Vec<Line>> {
    let target = world.target();
    let mut admin = target.line()?;
    let mut others = Vec::new();
    for _ in 0..200 {
        end_workers(&mut admin, &target)?;
        while let Ok(other) = target.line() {
            others.push(other);
        }
        if workers(&mut admin, &target)?.is_empty() && others.len() > NARROW / 3 && target.line().is_err() {
            // Its place must not become free either.
            others.push(admin);
            return Ok(others);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    anyhow::bail!("the worker kept its connections");
}

/// The sessions of workers, by their numbers. In PostgreSQL of all databases: a place that the state's session leaves would do
/// for the target's.
fn workers(admin: &mut Line, target: &Database) -> anyhow::Result<Vec<String>> {
    let sql = match target.engine() {
        Engine::Mysql => format!("SELECT id FROM information_schema.processlist WHERE user = '{WORKER}'"),
        Engine::Postgres | Engine::Sqlite => "SELECT pid FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND application_name <> 'hapax-services'"
            .to_owned(),
    };
    Ok(admin.query(&sql)?.rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}

fn end_workers(admin: &mut Line, target: &Database) -> anyhow::Result<()> {
    for worker in workers(admin, target)? {
        let sql = match target.engine() {
            Engine::Mysql => format!("KILL {worker}"),
            Engine::Postgres | Engine::Sqlite => format!("SELECT pg_terminate_backend({worker})"),
        };
        // Fails if it has gone by itself.
        drop(admin.query(&sql));
    }
    Ok(())
}
