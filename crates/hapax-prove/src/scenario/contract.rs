//! What must not change silently: the table, the key, the workflow's name.

use std::time::Duration;

use crate::check::rows;
use crate::child::{Child, Exit};
use crate::database::Engine;
use crate::ddl;
use crate::feed::{Feeder, Pace};
use crate::launch::last_words;
use crate::points::Point;
use crate::shape::Contents;
use crate::world::{SOON, World};

/// A start that must be refused with code 5, without fencing anyone and without writing anything.
pub(super) fn refused_start(world: &mut World, name: &str) -> anyhow::Result<String> {
    let before = world.found()?;
    let mut refused = world.launch(name, &["run", "--once"]).start()?;
    world.expect(&mut refused, Exit::Code(5))?;
    let after = world.found()?;
    let same = before.rows == after.rows && before.progress == after.progress && before.letters == after.letters;
    world.must(same.into(), format!("a refused start changed the target: {:?}, {:?}", before.progress, after.progress));
    Ok(refused.said())
}

/// A person looks at the new target and takes it for the workflow's own.
pub(super) fn accept(world: &mut World) -> anyhow::Result<()> {
    let id = world.config.id.clone();
    let (exit, said) = world.launch("accepts", &["reset", &id, "--accept", "--yes"]).run()?;
    world.must((exit == Exit::Code(0)).into(), format!("reset --accept ended with {exit}: {said}"));
    Ok(())
}

/// Rows that inputs after the first `from` make in a table that keeps every event.
pub(super) fn judge_rows_from(world: &mut World, from: usize) -> anyhow::Result<()> {
    let earlier = world.truth.contents_after(from);
    let all = world.truth.contents_after(world.fed);
    let expected: Contents = all.into_iter().filter(|(name, _)| !earlier.contains_key(name)).collect();
    let found = world.found()?;
    for finding in rows::judge(world.setting.shape, &expected, &found.rows, |n| world.truth.event(n)) {
        world.accuse(finding.anomaly, finding.detail);
    }
    Ok(())
}

/// Dropped and made again under the same name: another table. A person accepts it, and work goes on from there.
///
/// # Errors
/// If it could not be told to its end.
pub fn table_recreated(world: &mut World) -> anyhow::Result<()> {
    let half = world.count() / 2;
    world.feed(half)?;
    world.run_once("before")?;
    world.conclude()?;
    world.target().execute("DROP TABLE orders; DROP TABLE balance;")?;
    world.make_target()?;
    world.feed(world.count())?;
    refused_start(world, "refused")?;
    accept(world)?;
    world.run_once("after")?;
    judge_rows_from(world, half)
}

/// A column comes and goes under load: rows are written all the time, and none is lost or refused for it.
///
/// # Errors
/// If it could not be told to its end.
pub fn column_added(world: &mut World) -> anyhow::Result<()> {
    let mut reader = world.reader();
    let pace = Pace { lines: 20, pause: Duration::from_millis(10) };
    let feeder = world.feed_slowly(world.count(), pace);
    let mut worker = world.follow("follows")?;
    let widened = match world.target().engine() {
        Engine::Mysql => "ALTER TABLE orders MODIFY region varchar(400) NOT NULL",
        Engine::Postgres | Engine::Sqlite => "ALTER TABLE orders ALTER COLUMN region TYPE varchar(40)",
    };
    for (read, sql) in [
        (400, "ALTER TABLE orders ADD COLUMN remark varchar(20) DEFAULT 'none'"),
        (900, widened),
        (1400, "ALTER TABLE orders DROP COLUMN remark"),
    ] {
        let works = reader.wait_for(SOON, |sample| sample.progress.read >= read);
        world.must(works.into(), format!("{read} inputs were never read"));
        // To a transaction that began before it, a table that is written anew looks empty: nobody may be looking.
        reader.finish()?;
        world.target().execute(sql)?;
        reader = world.reader();
    }
    feeder.finish()?;
    let fed = world.fed as u64;
    let delivered = reader.wait_for(SOON, |sample| sample.progress.read >= fed);
    world.must(delivered.into(), format!("the worker did not go on: {}", last_words(&worker)));
    world.drain(&mut worker)?;
    reader.finish()?;
    world.conclude()
}

/// Puts new tables in the place of the old ones, so that nobody ever sees none.
fn make_anew_at_once(world: &World) -> anyhow::Result<()> {
    let engine = world.target().engine();
    let again = ddl::tables(world.setting.shape, engine);
    if engine != Engine::Mysql {
        return world.target().execute(&format!("BEGIN; DROP TABLE orders; DROP TABLE balance; {again} COMMIT"));
    }
    // There every change of a table is a transaction of its own, but several may be renamed in one.
    let mut again = again.replace("orders", "new_orders").replace("CREATE TRIGGER ", "CREATE TRIGGER new_");
    for words in ["CREATE TABLE balance", "INSERT INTO balance"] {
        again = again.replace(words, &words.replace("balance", "new_balance"));
    }
    world.target().execute(&again)?;
    world.target().execute(
        "RENAME TABLE orders TO old_orders, new_orders TO orders, balance TO old_balance, new_balance TO balance; \
         DROP TABLE old_orders, old_balance",
    )
}

/// Dropped and made again while a worker writes to it: it stops, and nothing goes into the new table until a person
/// accepts that.
///
/// # Errors
/// If it could not be told to its end.
pub fn recreated_alive(world: &mut World) -> anyhow::Result<()> {
    if world.target().engine() == Engine::Mysql {
        // There a running worker knows a table by when it was made, which the server tells in whole seconds.
        std::thread::sleep(Duration::from_millis(1_100));
    }
    let (mut worker, feeder) = in_full_work(world)?;
    make_anew_at_once(world)?;
    let exit = world.wait(&mut worker)?;
    world.must((exit == Exit::Code(5)).into(), format!("the worker ended with {exit}: {}", last_words(&worker)));
    feeder.finish()?;
    goes_on_once_accepted(world)
}

/// Dropped while a worker writes to it, and gone for a while: it stops with the reason, no start goes on without the table,
/// and when there is one again, nothing goes into it until a person accepts that.
///
/// # Errors
/// If it could not be told to its end.
pub fn dropped_alive(world: &mut World) -> anyhow::Result<()> {
    let (mut worker, feeder) = in_full_work(world)?;
    world.target().execute("DROP TABLE orders, balance")?;
    world.expect(&mut worker, Exit::Code(1))?;
    let said = worker.said();
    world.must(said.contains("HX4011").into(), format!("the worker did not say that its table is gone: {said}"));
    feeder.finish()?;
    let mut without = world.launch("without-a-table", &["run", "--once"]).start()?;
    world.expect(&mut without, Exit::Code(1))?;
    world.make_target()?;
    goes_on_once_accepted(world)
}

/// A worker in the middle of its work, and who feeds it.
fn in_full_work(world: &mut World) -> anyhow::Result<(Child, Feeder)> {
    let reader = world.reader();
    let pace = Pace { lines: 20, pause: Duration::from_millis(10) };
    let feeder = world.feed_slowly(world.count(), pace);
    let worker = world.follow("follows")?;
    let works = reader.wait_for(SOON, |sample| sample.progress.read >= 400);
    world.must(works.into(), "400 inputs were never read");
    reader.finish()?;
    Ok((worker, feeder))
}

/// Nothing goes into the new table until a person accepts it; then everything that was not read before does.
fn goes_on_once_accepted(world: &mut World) -> anyhow::Result<()> {
    let read = world.found()?.progress.map_or(0, |progress| progress.read);
    refused_start(world, "refused")?;
    accept(world)?;
    world.run_once("after")?;
    judge_rows_from(world, usize::try_from(read)?)
}

/// Another key strategy: refused; with the old one back, work goes on.
///
/// # Errors
/// If it could not be told to its end.
pub fn key_changed(world: &mut World) -> anyhow::Result<()> {
    let reader = world.reader();
    world.feed(world.count() / 2)?;
    world.run_once("before")?;
    world.config.key_fields = "order_id, account".into();
    world.write_config()?;
    world.feed(world.count())?;
    refused_start(world, "refused")?;
    world.config.key_fields = world.setting.shape.key_fields().into();
    world.write_config()?;
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}

const OLD_ID: &str = "before-renaming";
const NEW_ID: &str = "after-renaming";
const ADOPT: [&str; 5] = ["reset", NEW_ID, "--adopt", OLD_ID, "--yes"];

fn rename(world: &mut World, id: &str) -> anyhow::Result<()> {
    world.config.id = id.into();
    world.write_config()
}

/// Renamed: refused, naming the old id; `reset --adopt` takes it over; the old id stays fenced.
///
/// # Errors
/// If it could not be told to its end.
pub fn renamed(world: &mut World) -> anyhow::Result<()> {
    rename(world, OLD_ID)?;
    world.feed(world.count() / 2)?;
    world.run_once("before")?;
    rename(world, NEW_ID)?;
    let said = refused_start(world, "refused")?;
    world.must(said.contains(OLD_ID).into(), format!("the old id is not named: {said}"));
    let (exit, said) = world.launch("adopts", &ADOPT).run()?;
    world.must((exit == Exit::Code(0)).into(), format!("reset --adopt ended with {exit}: {said}"));
    world.feed(world.count())?;
    let reader = world.reader();
    world.run_once("after")?;
    rename(world, OLD_ID)?;
    let (exit, said) = world.launch("old", &["run", "--once"]).run()?;
    let stays_out = matches!(exit, Exit::Code(4 | 5));
    world.must(stays_out.into(), format!("the old id started again and ended with {exit}: {said}"));
    rename(world, NEW_ID)?;
    reader.finish()?;
    world.conclude()
}

/// Adopted while the old one runs: that one is fenced.
///
/// # Errors
/// If it could not be told to its end.
pub fn renamed_alive(world: &mut World) -> anyhow::Result<()> {
    rename(world, OLD_ID)?;
    let reader = world.reader();
    let pace = Pace { lines: 20, pause: Duration::from_millis(15) };
    let feeder = world.feed_slowly(world.count(), pace);
    let mut old = world.follow("old")?;
    let works = reader.wait_for(SOON, |sample| sample.progress.epoch >= 2);
    world.must(works.into(), "the old worker committed nothing");
    rename(world, NEW_ID)?;
    let (exit, said) = world.launch("adopts", &ADOPT).run()?;
    world.must((exit == Exit::Code(0)).into(), format!("reset --adopt ended with {exit}: {said}"));
    reader.finish()?;
    // Fenced, or, if it claims again because the lease of the old id is still its own, refused.
    let exit = world.wait(&mut old)?;
    let stays_out = matches!(exit, Exit::Code(4 | 5));
    world.must(stays_out.into(), format!("the old worker ended with {exit}: {}", last_words(&old)));
    feeder.finish()?;
    let reader = world.reader();
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}

/// `reset --adopt` killed in the middle: progress is under one id or the other, whole.
///
/// # Errors
/// If it could not be told to its end.
pub fn reset_killed(world: &mut World, point: &Point) -> anyhow::Result<()> {
    rename(world, OLD_ID)?;
    world.feed(world.count() / 2)?;
    world.run_once("before")?;
    rename(world, NEW_ID)?;
    let mut killed = world.launch("killed", &ADOPT).faults(format!("{}:kill:1", point.name)).start()?;
    world.expect(&mut killed, Exit::KILLED)?;
    super::point::must_have_happened(world, &killed, point);
    // Needed if the first one took no effect; if it did, there is nothing left to adopt and this one says so.
    let adopted_already = world.found()?.progress.is_some();
    let (exit, said) = world.launch("adopts", &ADOPT).run()?;
    let sound = adopted_already || exit == Exit::Code(0);
    world.must(sound.into(), format!("reset --adopt ended with {exit}: {said}"));
    world.feed(world.count())?;
    let reader = world.reader();
    world.run_once("after")?;
    reader.finish()?;
    world.conclude()
}
