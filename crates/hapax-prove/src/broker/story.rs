//! What happens to brokers while their clients work.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use hapax_services::Stop;
use rustix::process::Signal;

use super::cell::{BrokerCell, Store, Story};
use super::load::Pace;
use super::points::Point;
use super::process::SOON;
use super::world::World;
use super::{disk, hostile, power, removal};
use crate::child::Exit;

/// Batches between one fault and the next.
const SOME: usize = 40;

/// Tells the story of a cell: the clients are at work when it returns, and the brokers live.
///
/// # Errors
/// If the broker did not do what it must be able to do, or something of ours failed.
pub fn tell(world: &mut World, cell: BrokerCell) -> anyhow::Result<()> {
    match cell.story {
        Story::Plain => {
            world.open("")?;
            until_groups_work(world)?;
            some(world)
        }
        Story::RandomKills => random_kills(world),
        Story::Point(point) => at_point(world, point),
        Story::GracefulStops => graceful_stops(world),
        Story::DiskFull if cell.store == Store::Embedded => disk::full(world),
        Story::DiskFull => disk::full_server(world),
        Story::Retention => removal::retention(world),
        Story::Compaction => removal::compaction(world),
        Story::DeleteRecords => removal::delete_records(world),
        Story::MadeAgain => removal::made_again(world),
        Story::Hostile => hostile::clients(world),
        Story::PowerLoss => power::loss(world),
        Story::ServerStopped => server_stopped(world),
        Story::WriterEnded => writer_ended(world),
        Story::LeaderKilled => leader_killed(world),
        Story::LeaderStopped => leader_stopped(world),
        Story::StoppedBeforeAppend => stopped_before_append(world),
    }
}

/// Lets the clients work for a while: so long at least, and until so many batches are there.
pub(super) fn some(world: &mut World) -> anyhow::Result<()> {
    const AT_LEAST: Duration = Duration::from_millis(700);
    let started = Instant::now();
    world.load()?.wait_appended(SOME, SOON)?;
    std::thread::sleep(AT_LEAST.saturating_sub(started.elapsed()));
    Ok(())
}

/// The first join of a group waits for others: after this its members read and commit.
pub(super) fn until_groups_work(world: &World) -> anyhow::Result<()> {
    let started = Instant::now();
    while world.commits_of_members() == 0 {
        anyhow::ensure!(started.elapsed() < SOON, "no member of the group committed an offset within {SOON:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn random_kills(world: &mut World) -> anyhow::Result<()> {
    world.open("")?;
    until_groups_work(world)?;
    for _ in 0..4 {
        some(world)?;
        kill_somewhen(world)?;
    }
    some(world)
}

/// Killed at a point, twice, each at another pass.
fn at_point(world: &mut World, point: &Point) -> anyhow::Result<()> {
    // A start is passed before there is a topic, too: the clients come first.
    world.open("")?;
    for _ in 0..2 {
        some(world)?;
        die_at(world, point)?;
    }
    some(world)
}

/// The broker gets a life that ends at a point, and then another.
pub(super) fn die_at(world: &mut World, point: &Point) -> anyhow::Result<()> {
    let (name, pass) = (point.name, world.random.u64(1..=point.latest_pass));
    // Whoever answered too early has the time to be heard.
    let faults = format!("{name}:pause-60:{pass};{name}:kill:{pass}");
    let kills = |world: &World| world.brokers[0].faults().iter().filter(|fault| fault.contains("Kill")).count();
    let before = kills(world);
    world.brokers[0].kill();
    world.brokers[0].start(&faults)?;
    let exit = world.brokers[0].wait_end(SOON).with_context(|| format!("it never came to {faults}"))?;
    anyhow::ensure!(exit == Exit::KILLED, "a life ended by {exit} instead of {faults}");
    anyhow::ensure!(kills(world) == before + 1, "a life ended, and not by {faults}");
    world.brokers[0].start_and_wait("")
}

/// Kills the broker at a random moment, and starts it again.
pub(super) fn kill_somewhen(world: &mut World) -> anyhow::Result<()> {
    std::thread::sleep(Duration::from_micros(world.random.u64(0..400_000)));
    world.brokers[0].kill();
    world.brokers[0].start_and_wait("")
}

fn graceful_stops(world: &mut World) -> anyhow::Result<()> {
    world.open("")?;
    for _ in 0..2 {
        some(world)?;
        world.brokers[0].life()?.signal(Signal::TERM)?;
        let exit = world.brokers[0].wait_end(SOON)?;
        if exit != Exit::Code(0) {
            world.complaints.push(format!("SIGTERM gave {exit}"));
        }
        world.brokers[0].start_and_wait("")?;
    }
    some(world)
}

fn server_stopped(world: &mut World) -> anyhow::Result<()> {
    world.open("")?;
    for _ in 0..2 {
        some(world)?;
        world.place.own_server()?.stop(Stop::Immediate);
        std::thread::sleep(Duration::from_millis(world.random.u64(0..1500)));
        world.place.own_server()?.start_again()?;
        revive(world)?;
    }
    some(world)
}

/// A broker may end itself when its store is gone; whoever runs it starts it again.
pub(super) fn revive(world: &mut World) -> anyhow::Result<()> {
    let ended = world.brokers[0].life()?.poll()?;
    if let Some(exit) = ended {
        world.remarks.push(format!("a broker ended itself ({exit}) and was started again"));
        world.brokers[0].start_and_wait("")?;
    }
    Ok(())
}

/// A lock makes the append wait; its session is ended there.
fn writer_ended(world: &mut World) -> anyhow::Result<()> {
    const WAITING: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock' AND query ILIKE '%append%'";
    world.open("")?;
    for _ in 0..3 {
        some(world)?;
        let name = world.place.ask("SELECT current_database()")?;
        let mut holder = world.place.server()?.connect(name.value().context("a database has a name")?)?;
        holder.query("BEGIN")?;
        holder.query("LOCK TABLE kafka.batches IN ACCESS EXCLUSIVE MODE")?;
        let started = Instant::now();
        loop {
            let ended = world.place.ask(WAITING)?;
            if ended.value().is_some_and(|count| count != "0") {
                break;
            }
            anyhow::ensure!(started.elapsed() < SOON, "no append waited for the lock");
            std::thread::sleep(Duration::from_millis(10));
        }
        holder.query("ROLLBACK")?;
        revive(world)?;
    }
    some(world)
}

/// Waits until the second broker says that it leads.
fn wait_take_over(world: &World) -> anyhow::Result<()> {
    let (started, second) = (Instant::now(), &world.brokers[1].address);
    while world.load()?.leader_by(second).as_ref() != Some(second) {
        anyhow::ensure!(started.elapsed() < SOON, "the standby did not take over within {SOON:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn leader_killed(world: &mut World) -> anyhow::Result<()> {
    world.open("")?;
    some(world)?;
    world.brokers[0].kill();
    wait_take_over(world)?;
    some(world)?;
    // The first comes back and leads again, or not: either way nothing is lost.
    world.brokers[0].start_and_wait("")?;
    some(world)?;
    world.brokers[0].kill();
    some(world)?;
    world.brokers[0].start_and_wait("")?;
    some(world)
}

fn leader_stopped(world: &mut World) -> anyhow::Result<()> {
    world.open("")?;
    some(world)?;
    for _ in 0..2 {
        let leads = world.load()?.leader_by(&world.brokers[1].address);
        let leader = usize::from(leads.as_ref() == Some(&world.brokers[1].address));
        world.brokers[leader].life()?.signal(Signal::STOP)?;
        let other = world.brokers[1 - leader].address.clone();
        let started = Instant::now();
        while world.load()?.leader_by(&other).as_ref() != Some(&other) {
            anyhow::ensure!(started.elapsed() < SOON, "nobody took over from the stopped broker within {SOON:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
        some(world)?;
        world.brokers[leader].life()?.signal(Signal::CONT)?;
        some(world)?;
    }
    Ok(())
}

/// What the stopped broker was about to append must not be there, or be known to the one that took over.
fn stopped_before_append(world: &mut World) -> anyhow::Result<()> {
    world.open("append.before_commit:stop:200")?;
    // What is stopped then is of producers that still wait for its answer when it goes on.
    world.load()?.pace(Pace::Stubborn);
    anyhow::ensure!(world.brokers[0].life()?.wait_stopped(SOON)?, "it never came to append.before_commit");
    world.load()?.pace(Pace::Quiet);
    wait_take_over(world)?;
    // The new leader has written nothing: what the old one appends now would get in no other's way.
    world.brokers[0].life()?.signal(Signal::CONT)?;
    std::thread::sleep(Duration::from_secs(2));
    world.load()?.pace(Pace::Run);
    some(world)
}
