//! What deliveries of one process share runs short: memory, descriptors. A blocked neighbour stops nobody.
//!
//! Invariant: every shortage is seen from outside before it is judged; one that never came fails the cell. A full disk has a
//! file of its own (`disk`).

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::company::{Company, Crew, Targets};
use crate::child::Exit;
use crate::feed::append;
use crate::servers::Need;
use crate::setting::Setting;
use crate::workload::Mix;
use crate::world::{SOON, World};

/// How many workflows there are beside the one that is judged by its table.
const NEIGHBOURS: usize = 5;
/// The least that the configuration allows.
const MEMORY_BYTES: f64 = 16.0 * MIB;
const MIB: f64 = 1024.0 * 1024.0;
/// Half requests to the pages of a worker.
const HALF_REQUESTS: usize = 300;
/// So few descriptors are not enough to begin with, or only just.
const FEW_DESCRIPTORS: std::ops::Range<u32> = 10..40;
/// How long an epoch of a neighbour stays open where that does not matter.
const AT_ONCE: Duration = Duration::from_millis(10);
/// Long enough that only memory closes an epoch of more than the budget, however slowly it is read.
const UNTIL_FULL: Duration = Duration::from_secs(5);
/// So long that one line in each of the neighbours' buffers is more than the budget.
const LONG_LINE_BYTES: usize = 4 * 1024 * 1024;
/// How many short lines come after it, and it.
const SHORT_LINES: usize = 8 * 1024;
/// So many lines of a megabyte and more, for each of the neighbours: together several times the budget.
const LONG_LINES: usize = 8;
const CONNECTIONS_CLOSED: &str = "hapax_http_connections_closed_total";
const MEMORY_USED: &str = "hapax_memory_used_bytes";
/// So many other workers deliver everything while one that is blocked does not move.
const OVERTAKEN: usize = 3;
/// And it does not move for at least so long.
const PATIENCE: Duration = Duration::from_secs(8);
/// How often a worker is started with few descriptors.
const SHORT_LIVES: usize = 6;

/// Five targets are locked, and their deliveries hold more than the whole budget: the sixth goes on, and the five when they are
/// let.
///
/// # Errors
/// If it could not be told to its end.
pub fn blocked_neighbours(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    // Each of them takes the first line as a whole, whatever is left: together more than there is. Then none takes more.
    let first = line(0, LONG_LINE_BYTES);
    let lines: Vec<String> = std::iter::once(first).chain((1..SHORT_LINES).map(|n| line(n, 2 * 1024))).collect();
    let mut crew = start_with_neighbours(world, AT_ONCE, 0)?;
    world.trouble = crew.company.trouble(world.setting.place);
    world.feed(world.count() / 3)?;
    world.wait_all_read()?;
    let mut locks = Vec::new();
    for target in neighbour_targets(world) {
        let lock = rusqlite::Connection::open(target)?;
        lock.busy_timeout(SOON)?;
        lock.execute_batch("BEGIN IMMEDIATE")?;
        locks.push(lock);
    }
    append(&world.dir.join("backlog.jsonl"), lines.iter().map(String::as_str))?;
    let lent = wait_metric(&crew.pages, MEMORY_USED, "", MEMORY_BYTES)?;
    world.must(lent.into(), "the blocked deliveries never took all of the memory");
    world.feed(world.count() / 3 + random.usize(1..world.count() / 3))?;
    if !goes_on_beside_others(world)? {
        // What a blocked delivery does later says nothing more.
        return Ok(());
    }
    let held = metric(&crew.pages, MEMORY_USED, "")?;
    world
        .must((held >= MEMORY_BYTES).into(), format!("the blocked deliveries gave memory back: {held} bytes are lent"));
    // Something is on its way then, and who comes after it finds the targets of the others locked.
    world.feed(world.count() * 5 / 6)?;
    crew.middle(world, Targets::Locked)?;
    world.feed(world.count())?;
    if !goes_on_beside_others(world)? {
        return Ok(());
    }
    for (number, lock) in locks.into_iter().enumerate() {
        let behind = rows(world, number)?;
        world.must(
            (behind < i64::try_from(lines.len())?).into(),
            format!("neighbour {number} was not blocked: it has {behind} rows"),
        );
        lock.execute_batch("ROLLBACK")?;
    }
    neighbours_deliver(world, lines.len())?;
    crew.drain(world)?;
    world.conclude()
}

/// Whether everything that was fed is read. If not, it is blocked and not only slow: it has not moved while so many others,
/// each started after the one before had ended, delivered as much, each alone on this machine with the same load.
fn goes_on_beside_others(world: &mut World) -> anyhow::Result<bool> {
    let (fed, mut read, mut overtaken, mut moved) = (world.fed as u64, 0, 0, Instant::now());
    loop {
        let now = world.found()?.progress.map_or(0, |progress| progress.read);
        if now >= fed {
            return Ok(true);
        }
        if now > read {
            (read, overtaken, moved) = (now, 0, Instant::now());
        }
        if overtaken >= OVERTAKEN && moved.elapsed() > PATIENCE {
            let text = format!(
                "of {fed} inputs {read} are read, and none more while {overtaken} other workers read all of theirs"
            );
            world.blame(text);
            return Ok(false);
        }
        if moved.elapsed() > PATIENCE / 4 {
            another_reads_all(world, overtaken)?;
            overtaken += 1;
        } else {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A worker with an input and a target of its own, from its start to the end of its input.
fn another_reads_all(world: &World, number: usize) -> anyhow::Result<()> {
    let dir = world.dir.join("others").join(number.to_string());
    if dir.exists() {
        std::fs::remove_dir_all(&dir)?;
    }
    let mut other = World::new(world.environment(), &dir, Setting::strictest(), (Mix::Clean, Need::Databases), 1)?;
    other.feed(other.count())?;
    let mut worker = other.launch("other", &["run", "--once"]).start()?;
    anyhow::ensure!(other.wait(&mut worker)? == Exit::Code(0), "another worker failed: {}", worker.said());
    Ok(())
}

/// Inputs that are longer than a reserve, of five deliveries at once, and the smallest budget: epochs close early, and
/// everything arrives once.
///
/// # Errors
/// If it could not be told to its end.
pub fn memory_short(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let lines: Vec<String> = (0..LONG_LINES).map(|n| line(n, random.usize(1..4) * 1024 * 1024)).collect();
    let mut crew = start_with_neighbours(world, UNTIL_FULL, 1)?;
    world.trouble = crew.company.trouble(world.setting.place);
    world.feed(world.count() / 2)?;
    append(&world.dir.join("backlog.jsonl"), lines.iter().map(String::as_str))?;
    let short = wait_metric(&crew.pages, "hapax_epochs_closed_early_total", "bound=\"memory\"", 1.0)?;
    world.must(short.into(), "no epoch closed early for want of memory");
    world.feed(world.count() * 3 / 4)?;
    crew.middle(world, Targets::Open)?;
    world.feed(world.count())?;
    world.wait_all_read()?;
    neighbours_deliver(world, lines.len())?;
    crew.drain(world)?;
    world.conclude()
}

/// Workers that get fewer descriptors than they need, killed and started again; then one with enough, whose pages are flooded
/// with half requests.
///
/// # Errors
/// If it could not be told to its end.
pub fn descriptors_short(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    world.nobody_doubts();
    let reader = world.reader();
    world.set_up()?;
    let mut met = 0;
    for life in 0..SHORT_LIVES {
        world.feed(world.count() * (life + 1) / (2 * SHORT_LIVES))?;
        // The first one has too few in any case.
        let few = if life == 0 { FEW_DESCRIPTORS.start } else { random.u32(FEW_DESCRIPTORS) };
        let mut worker = world.launch("few-descriptors", &["run"]).descriptors(few).start()?;
        worker.wait_said_any(&["HX5064", "os error 24", "unable to open", "claimed"], SOON)?;
        std::thread::sleep(Duration::from_millis(random.u64(0..300)));
        let said = worker.said();
        met += usize::from(["HX5064", "os error 24", "unable to open"].iter().any(|word| said.contains(word)));
        world.signal(&mut worker, Signal::KILL)?;
        world.wait(&mut worker)?;
    }
    world.must((met > 0).into(), "no worker ever lacked a descriptor");
    let mut crew = start_with_neighbours(world, AT_ONCE, 2)?;
    flooded(world, &crew, world.count() * 3 / 4)?;
    world.feed(world.count() * 5 / 6)?;
    if crew.middle(world, Targets::Open)? {
        crew.wait_claimed()?;
    }
    flooded(world, &crew, world.count())?;
    crew.drain(world)?;
    reader.finish()?;
    world.conclude()
}

/// Half requests to the pages of the worker while it delivers up to this line.
fn flooded(world: &mut World, crew: &Crew, upto: usize) -> anyhow::Result<()> {
    let before = metric(&crew.pages, CONNECTIONS_CLOSED, "")?;
    let halves = (0..HALF_REQUESTS).map(|_| half_request(&crew.pages)).collect::<Result<Vec<_>, _>>()?;
    world.feed(upto)?;
    world.wait_all_read()?;
    world.must(ask(&crew.pages, "/healthz").is_ok().into(), "a probe was not answered beside half requests");
    let closed = wait_metric(&crew.pages, CONNECTIONS_CLOSED, "", before + 1.0)?;
    world.must(closed.into(), "no half request was ever closed");
    drop(halves);
    Ok(())
}

/// Starts a worker with five more workflows, all from `backlog.jsonl`, each into a database of its own, with epochs of this
/// interval, in the company that this story has in this setting.
fn start_with_neighbours(world: &mut World, interval: Duration, turn: usize) -> anyhow::Result<Crew> {
    let company = Company::dealt(world.setting, turn);
    let lease = company.lease();
    world.config.lease = lease;
    std::fs::write(world.dir.join("backlog.jsonl"), "")?;
    let mut further = String::new();
    let (interval, lease) = (interval.as_millis(), lease.as_millis());
    for (number, target) in neighbour_targets(world).into_iter().enumerate() {
        let connection = rusqlite::Connection::open(target)?;
        connection.execute_batch("CREATE TABLE IF NOT EXISTS backlog (n INTEGER, text TEXT)")?;
        writeln!(
            further,
            "\x20 - {{ id: neighbour{number}, source: {{ file: {{ path: backlog.jsonl }} }}, \
             sink: {{ sqlite: {{ path: neighbour{number}.db, table: backlog, onConflict: append, busyTimeout: 1s }} }}, \
             delivery: {{ guarantee: exactly-once, lease: {lease}ms, epoch: {{ interval: {interval}ms }}, retries: {{ backoffMs: [20, 50, 100] }} }} }}"
        )?;
    }
    world.config.head = "memory: 16MiB\nhttp: { listen: \"127.0.0.1:0\" }\n".into();
    world.config.further = further;
    world.write_config()?;
    Crew::start(world, company, NEIGHBOURS + 1)
}

fn neighbour_targets(world: &World) -> Vec<PathBuf> {
    (0..NEIGHBOURS).map(|number| world.dir.join(format!("neighbour{number}.db"))).collect()
}

fn line(n: usize, bytes: usize) -> String {
    format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(bytes))
}

/// How many lines a neighbour has delivered; one that came twice counts twice.
fn rows(world: &World, number: usize) -> anyhow::Result<i64> {
    let connection = rusqlite::Connection::open(world.dir.join(format!("neighbour{number}.db")))?;
    connection.busy_timeout(SOON)?;
    Ok(connection.query_row("SELECT count(*) FROM backlog", [], |row| row.get(0))?)
}

/// Waits until every neighbour has every line, and none twice.
fn neighbours_deliver(world: &mut World, lines: usize) -> anyhow::Result<()> {
    let lines = i64::try_from(lines)?;
    for number in 0..NEIGHBOURS {
        let started = Instant::now();
        while rows(world, number)? < lines && started.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(20));
        }
        let connection = rusqlite::Connection::open(world.dir.join(format!("neighbour{number}.db")))?;
        let sql = "SELECT count(*), count(DISTINCT n) FROM backlog";
        let (all, distinct): (i64, i64) = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let whole = all == lines && distinct == lines;
        world.must(whole.into(), format!("neighbour {number} has {all} rows of {distinct} lines, must have {lines}"));
    }
    Ok(())
}

fn half_request(address: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: loc")?;
    Ok(stream)
}

/// What a page says.
fn ask(address: &str, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SOON))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    anyhow::ensure!(answer.starts_with("HTTP/1.1 200"), "no answer to {path}: {answer}");
    Ok(answer)
}

/// The values of a metric, of lines with this label, together.
fn metric(address: &str, name: &str, label: &str) -> anyhow::Result<f64> {
    let page = ask(address, "/metrics")?;
    let lines = page.lines().filter(|line| line.starts_with(name) && line.contains(label));
    Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}

/// Waits until a metric is at least `least`; whether it is.
fn wait_metric(address: &str, name: &str, label: &str, least: f64) -> anyhow::Result<bool> {
    let started = Instant::now();
    while started.elapsed() < SOON {
        if metric(address, name, label)? >= least {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(false)
}
