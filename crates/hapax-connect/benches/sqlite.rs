//! Generated orders into SQLite, against the fastest bare rusqlite loop we can write: same rows, same commits.
//!
//! Not a criterion bench: what counts are ratios, so every round runs all contestants once, in turn, and the answer is
//! the median of the rounds' ratios. `cargo bench -p hapax-connect --bench sqlite`.

#[path = "parts/bare.rs"]
mod bare;
#[path = "parts/cpu.rs"]
mod cpu;
#[path = "parts/orders.rs"]
mod orders;
#[path = "parts/settings.rs"]
mod settings;

use std::path::Path;
use std::time::{Duration, Instant};

use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_connect::sqlite::config::SqliteSinkConfig;
use hapax_connect::sqlite::state::SqliteState;
use hapax_connect::sqlite::{SqliteIdempotentSink, SqliteSink};
use hapax_engine::runtime::{Delivery, DeliveryEnd, Settings, deliver};
use hapax_engine::sink::TransactionalSink;
use hapax_engine::state_progress::{AfterCrash, StateProgress, WatchKeys};
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::mode::ConflictMode;

use orders::Orders;

/// Many, so that what a run costs once (opening, claiming, the last fsync) does not count.
const EVENTS: u64 = 2_000_000;
const PER_COMMIT: usize = 20_000;
/// Or as many as `HAPAX_BENCH_ROUNDS` says.
const ROUNDS: usize = 5;
/// A round is quiet if other processes used less of the machine than this while it ran.
const QUIET: f64 = 0.10;
/// Rows per statement of the bare loop: of 1, 16, 32, 64, 128 and 256 the fastest (`-- --statements`).
const BARE_ROWS: usize = 64;

/// What one run cost.
#[derive(Clone, Copy)]
struct Run {
    wall: Duration,
    /// Nanoseconds of processor time of the threads that read, decode and key.
    fill_cpu: u64,
    /// Nanoseconds of processor time of the threads that write.
    write_cpu: u64,
    /// Which part of the machine other processes used meanwhile.
    others: f64,
}

/// Writes all rows into a new database in this folder, and says what that cost.
type Contestant = fn(&Path, &Orders) -> Run;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return; // `cargo test --benches` only wants to know that it builds
    }
    if let Some(only) = std::env::args().skip_while(|argument| argument != "--profile").nth(1) {
        return profile(&only);
    }
    let orders = Orders::made(EVENTS);
    if std::env::args().any(|argument| argument == "--statements") {
        return statements(&orders);
    }
    let contestants: [(&str, Contestant); 5] = [
        ("bare append", |folder, orders| bare(folder, ConflictMode::Append, orders)),
        ("hapax append, exactly-once", |folder, _| by_hapax(folder, ConflictMode::Append, Progress::InSink)),
        ("hapax append, at-least-once", |folder, _| by_hapax(folder, ConflictMode::Append, Progress::InState)),
        ("bare upsert of new keys", |folder, orders| bare(folder, ConflictMode::Update, orders)),
        ("hapax upsert of new keys", |folder, _| by_hapax(folder, ConflictMode::Update, Progress::InSink)),
    ];
    let mut runs = vec![Vec::new(); contestants.len()];
    for round in 0..rounds() {
        let folders: Vec<_> = contestants.iter().map(|_| tempfile::tempdir().expect("a folder")).collect();
        for (at, (name, contestant)) in contestants.iter().enumerate() {
            let run = contestant(folders[at].path(), &orders);
            println!("round {round}: {}", told(name, &run));
            runs[at].push(run);
        }
        if round == 0 {
            same_rows(folders[0].path(), folders[1].path());
            same_rows(folders[0].path(), folders[2].path());
            same_rows(folders[3].path(), folders[4].path());
        }
    }
    for (at, (name, _)) in contestants.iter().enumerate() {
        println!("median: {}", told(name, &median(&runs[at])));
    }
    println!("exactly-once append against the bare loop:  {}", median_ratios(&runs[0], &runs[1]));
    println!("exactly-once against at-least-once append:  {}", median_ratios(&runs[2], &runs[1]));
    println!("upsert of new keys against the bare loop:   {}", median_ratios(&runs[3], &runs[4]));
}

fn told(name: &str, run: &Run) -> String {
    let each = |nanos: u64| nanos / EVENTS;
    let (fill, write) = (each(run.fill_cpu), each(run.write_cpu));
    format!(
        "{name}: {:.0} rows/s; ns of processor per row: {fill} reading, {write} writing; others used {:.0} %",
        EVENTS as f64 / run.wall.as_secs_f64(),
        run.others * 100.0
    )
}

/// The fair contest: whatever a table holds after one contestant, it holds after the other.
fn same_rows(one: &Path, other: &Path) {
    let connection = rusqlite::Connection::open(one.join("target.db")).expect("opens");
    let other = other.join("target.db");
    connection.execute("ATTACH ?1 AS other", [other.to_str().expect("a path")]).expect("attaches");
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("counts");
    let differ = "SELECT count(*) FROM main.orders AS a JOIN other.orders AS b ON a.rowid = b.rowid WHERE a.order_id IS \
                  NOT b.order_id OR a.customer IS NOT b.customer OR a.amount_cents IS NOT b.amount_cents OR a.status IS \
                  NOT b.status";
    assert_eq!(count("SELECT count(*) FROM main.orders"), EVENTS.cast_signed());
    assert_eq!(count("SELECT count(*) FROM other.orders"), EVENTS.cast_signed());
    assert_eq!(count(differ), 0);
}

/// How many rows per statement suit the bare loop: `-- --statements`.
fn statements(orders: &Orders) {
    for mode in [ConflictMode::Append, ConflictMode::Update] {
        for rows in [1, 16, 32, 64, 128, 256] {
            let run = |_| {
                let folder = tempfile::tempdir().expect("a folder");
                bare::write(&folder.path().join("target.db"), mode, orders, PER_COMMIT, rows)
            };
            let runs: Vec<Run> = (0..5).map(run).collect();
            println!("{}", told(&format!("bare {}, {rows} rows per statement", mode.name()), &median(&runs)));
        }
    }
}

/// Runs one contestant again and again, for a profiler: `-- --profile append`, `update`, `bare-append`, `bare-update`.
fn profile(what: &str) {
    let mode = if what.ends_with("update") { ConflictMode::Update } else { ConflictMode::Append };
    let orders = what.starts_with("bare").then(|| Orders::made(EVENTS));
    let run = |_| {
        let folder = tempfile::tempdir().expect("a folder");
        let run = match &orders {
            Some(orders) => bare(folder.path(), mode, orders),
            None => by_hapax(folder.path(), mode, Progress::InSink),
        };
        println!("{}", told(what, &run));
        run
    };
    let runs: Vec<Run> = (0..rounds()).map(run).collect();
    println!("median: {}", told(what, &median(&runs)));
}

/// The median of each cost for itself.
fn median(runs: &[Run]) -> Run {
    let middle = |mut all: Vec<u64>| {
        all.sort_unstable();
        all[all.len() / 2]
    };
    let walls = runs.iter().map(|run| u64::try_from(run.wall.as_nanos()).expect("a short run")).collect();
    Run {
        wall: Duration::from_nanos(middle(walls)),
        fill_cpu: middle(runs.iter().map(|run| run.fill_cpu).collect()),
        write_cpu: middle(runs.iter().map(|run| run.write_cpu).collect()),
        others: runs.iter().map(|run| run.others).sum::<f64>() / runs.len() as f64,
    }
}

fn rounds() -> usize {
    std::env::var("HAPAX_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

/// The medians over rounds of how fast the second was, compared with the first: by the clock, by the clock in quiet
/// rounds, and by the processor time of the busier side, which is what the clock would say if nobody ever waited.
fn median_ratios(first: &[Run], second: &[Run]) -> String {
    let clock = |a: &Run, b: &Run| a.wall.as_secs_f64() / b.wall.as_secs_f64();
    let busier = |run: &Run| run.fill_cpu.max(run.write_cpu) as f64;
    let rounds: Vec<(&Run, &Run)> = first.iter().zip(second).collect();
    let quiet: Vec<_> = rounds.iter().copied().filter(|(a, b)| a.others.max(b.others) < QUIET).collect();
    let quiet_ratio = if quiet.is_empty() { String::new() } else { format!(" ({:.2})", middle(&quiet, clock)) };
    format!(
        "{:.2} by the clock, {}{quiet_ratio} of {} rounds quiet, {:.2} by processor time",
        middle(&rounds, clock),
        quiet.len(),
        rounds.len(),
        middle(&rounds, |a, b| busier(a) / busier(b))
    )
}

fn middle(rounds: &[(&Run, &Run)], ratio: impl Fn(&Run, &Run) -> f64) -> f64 {
    let mut ratios: Vec<f64> = rounds.iter().map(|(a, b)| ratio(a, b)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

fn bare(folder: &Path, mode: ConflictMode, orders: &Orders) -> Run {
    bare::write(&folder.join("target.db"), mode, orders, PER_COMMIT, BARE_ROWS)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    InSink,
    InState,
}

fn by_hapax(folder: &Path, mode: ConflictMode, progress: Progress) -> Run {
    let path = folder.join("target.db");
    bare::make_table(&path, mode);
    let key = vec![FieldPath::of_name("order_id")];
    let key_fields = if mode == ConflictMode::Append { Vec::new() } else { key.clone() };
    let mut config = SqliteSinkConfig::new(&path, "orders");
    (config.table.mode, config.table.key_fields) = (Some(mode), key_fields);
    let need = if mode == ConflictMode::Append { KeyNeed::Nothing } else { KeyNeed::Fields };
    let keyer = Keyer::new(DedupStrategy::content_fields(key), Uniqueness::WithVersion, need);
    let mut settings = Settings { keyer, ..settings::keyed_by("order_id") };
    settings.epoch.max_events = PER_COMMIT as u64;
    let runtime = cpu::runtime(2);
    runtime.block_on(async {
        let state = SqliteState::open(&folder.join("state.db"), Duration::from_secs(5)).await.expect("a state store");
        let others = cpu::Others::watch();
        let (started, fill_before, write_before) = (Instant::now(), cpu::spent('f'), cpu::spent('b'));
        match progress {
            Progress::InSink => run(settings.clone(), SqliteSink::new(config, settings.id.clone()), state).await,
            Progress::InState => {
                let sink = SqliteIdempotentSink::new(config, settings.keyer.strategy().clone());
                let (after_crash, interval) = (AfterCrash::WriteAgain, Duration::from_secs(1));
                let sink =
                    StateProgress::new(settings.id.clone(), sink, state.clone(), after_crash, WatchKeys::No, interval);
                run(settings, sink, state).await;
            }
        }
        let wall = started.elapsed();
        let (fill_cpu, write_cpu) = (cpu::spent('f') - fill_before, cpu::spent('b') - write_before);
        Run { wall, fill_cpu, write_cpu, others: others.share() }
    })
}

async fn run<K: TransactionalSink>(settings: Settings, sink: K, state: SqliteState) {
    let source = GenerateSource::new(GenerateConfig { count: Some(EVENTS), ..GenerateConfig::default() });
    let delivery = Delivery { settings, source, sink, state: Some(state) };
    let end = tokio::spawn(deliver(delivery, settings::control())).await.expect("no panic");
    assert_eq!(end, DeliveryEnd::Finished);
}
