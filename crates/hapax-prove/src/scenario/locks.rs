//! Rows that others lock, too: a deadlock, and two workflows into one table.

use std::time::{Duration, Instant};

use crate::check::rows;
use crate::child::Exit;
use crate::database::Engine;
use crate::feed::append;
use crate::workload::Fate;
use crate::world::{SOON, World};

const ATTEMPTS: usize = 6;

/// A foreign transaction locks one row of an epoch, waits until the worker waits for it, and asks for another that the
/// worker has: the server ends the worker's transaction, and the same epoch is written again.
///
/// # Errors
/// If it could not be told to its end.
pub fn deadlock(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    let step = world.config.epoch_events as usize;
    world.feed(world.count() / 2)?;
    let mut worker = world.follow("victim")?;
    world.wait_all_read()?;
    for attempt in 0..ATTEMPTS {
        // In whichever order an epoch takes its rows, one of these two is the wrong one.
        let (low, high) = keys_of_next(world, step);
        let (hold, want) = if attempt % 2 == 0 { (high, low) } else { (low, high) };
        crosswise(world, step, hold, want)?;
        world.wait_all_read()?;
        if deadlocks(world)? > 0 {
            break;
        }
    }
    world.must((deadlocks(world)? > 0).into(), "the worker never met a deadlock");
    world.feed(world.count())?;
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), "the worker did not go on after a deadlock");
    world.drain(&mut worker)?;
    reader.finish()?;
    world.conclude()
}

/// How many transactions of the target the server has ended because they waited for each other. A session tells so when
/// it has been idle for a moment.
fn deadlocks(world: &World) -> anyhow::Result<u64> {
    std::thread::sleep(Duration::from_millis(100));
    world.target().number(match world.target().engine() {
        Engine::Mysql => "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'",
        Engine::Postgres | Engine::Sqlite => {
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        }
    })
}

/// The lowest and the highest key among the next `step` inputs that the table holds already.
fn keys_of_next(world: &World, step: usize) -> (i64, i64) {
    let there = world.truth.contents_after(world.fed);
    let next = world.truth.inputs.iter().skip(world.fed).take(step).filter_map(|input| match &input.fate {
        Fate::Row(row) if there.contains_key(&world.truth.shape.row_name(row)) => Some(row.order_id),
        Fate::Row(_) | Fate::Pair(_) | Fate::Dead | Fate::Refused(_) => None,
    });
    let keys: Vec<i64> = next.collect();
    (keys.iter().copied().min().unwrap_or_default(), keys.iter().copied().max().unwrap_or_default())
}

fn crosswise(world: &mut World, step: usize, hold: i64, want: i64) -> anyhow::Result<()> {
    let mut foreign = world.target().line()?;
    let lock = |order: i64| format!("SELECT 1 FROM orders WHERE order_id = {order} FOR UPDATE");
    if world.target().engine() == Engine::Mysql {
        world.target().execute("CREATE TABLE IF NOT EXISTS ballast (number bigint)")?;
    }
    foreign.query("BEGIN")?;
    foreign.query(match world.target().engine() {
        // Who has written least is the victim.
        Engine::Mysql => {
            "INSERT INTO ballast WITH RECURSIVE series (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < 900) \
             SELECT i FROM series"
        }
        // Whoever looks for the deadlock is its victim: this one would look last.
        Engine::Postgres | Engine::Sqlite => "SET LOCAL deadlock_timeout = '60s'",
    })?;
    foreign.query(&lock(hold))?;
    world.feed((world.fed + step).min(world.count()))?;
    let started = Instant::now();
    while world.target().waiting()? == 0 && started.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    foreign.query(&lock(want))?;
    foreign.query("ROLLBACK")?;
    Ok(())
}

/// Two workflows write the same keys from two inputs: every epoch takes its rows in the same order, so nobody dies, and the
/// last event of each key stays.
///
/// # Errors
/// If it could not be told to its end.
pub fn twins(world: &mut World) -> anyhow::Result<()> {
    world.config.twins = &["twin"];
    world.write_config()?;
    world.feed(world.count())?;
    append(&world.dir.join("twin.jsonl"), world.truth.inputs.iter().map(|input| input.line.as_str()))?;
    let mut both = world.launch("both", &["run", "--once"]).start()?;
    world.expect(&mut both, Exit::Code(0))?;
    let met = deadlocks(world)?;
    world.must((met == 0).into(), format!("two workflows met in {met} deadlocks"));
    let found = world.found()?;
    let expected = world.truth.contents_after(world.fed);
    for finding in rows::judge(world.setting.shape, &expected, &found.rows, |n| world.truth.event(n)) {
        world.accuse(finding.anomaly, finding.detail);
    }
    Ok(())
}
