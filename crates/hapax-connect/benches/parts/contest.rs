//! The contest that every database's bench holds: who writes what, round by round, each into a table of its own, and how
//! much of the bare loop's speed is left. What a database does its own way is its `Arena`.

use std::time::{Duration, Instant};

use super::by_hapax::{Deliveries, Sinks};
use super::cpu;
use super::orders::Orders;
use super::rounds::{Ratio, Run, median, ratios};

/// How many rows appends write; upserts, which take much longer for each, write a fifth of that.
pub(crate) const EVENTS: u64 = 1_000_000;
pub(crate) const UPSERT_SHARE: u64 = 5;
pub(crate) const ROUNDS: u64 = 7;
pub(crate) const PER_COMMIT: u64 = 20_000;
/// Rows per statement, of the bare loop as of Hapax.
pub(crate) const ROWS: usize = 1_000;

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Bare,
    /// Hapax, with progress beside the rows.
    ExactlyOnce,
    /// Hapax, with progress in a state store (SQLite, in a file of its own).
    AtLeastOnce,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Upsert,
    Append,
}

/// One who writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) by: By,
    pub(crate) table: Table,
    pub(crate) mode: Mode,
    pub(crate) connections: u64,
}

pub(crate) const fn contestant(name: &'static str, by: By, table: Table, mode: Mode, connections: u64) -> Contestant {
    Contestant { name, by, table, mode, connections }
}

pub(crate) const CONTESTANTS: [Contestant; 12] = [
    contestant("bare, new keys", By::Bare, Table::Keyed, Mode::Upsert, 1),
    contestant("exactly-once, new keys", By::ExactlyOnce, Table::Keyed, Mode::Upsert, 1),
    contestant("at-least-once, new keys", By::AtLeastOnce, Table::Keyed, Mode::Upsert, 1),
    contestant("bare, existing keys", By::Bare, Table::Filled, Mode::Upsert, 1),
    contestant("exactly-once, existing keys", By::ExactlyOnce, Table::Filled, Mode::Upsert, 1),
    contestant("bare, append", By::Bare, Table::Plain, Mode::Append, 1),
    contestant("exactly-once, append", By::ExactlyOnce, Table::Plain, Mode::Append, 1),
    contestant("at-least-once, append", By::AtLeastOnce, Table::Plain, Mode::Append, 1),
    contestant("bare, append beside an index", By::Bare, Table::Keyed, Mode::Append, 1),
    contestant("exactly-once, append beside an index", By::ExactlyOnce, Table::Keyed, Mode::Append, 1),
    contestant("bare, new keys, 4 connections", By::Bare, Table::Keyed, Mode::Upsert, 4),
    contestant("exactly-once, new keys, 4 lanes", By::ExactlyOnce, Table::Keyed, Mode::Upsert, 4),
];

/// What a run finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// Empty, with a primary key.
    Keyed,
    /// With a primary key, and every key already there with other values.
    Filled,
    /// Empty, without any index.
    Plain,
}

/// A number given on the command line.
pub(crate) fn number(name: &str, or: u64) -> u64 {
    std::env::args().skip_while(|word| word != name).nth(1).map_or(or, |word| word.parse().expect("a number"))
}

/// How many rows everybody commits at once: `--per-commit`.
pub(crate) fn per_commit() -> usize {
    usize::try_from(number("--per-commit", PER_COMMIT)).expect("a number of rows")
}

/// A database that is measured.
pub(crate) trait Arena {
    /// Its sinks.
    type Sinks: Sinks;

    /// The address of the database that the tables are in.
    fn url(&self) -> &str;
    /// What is written.
    fn orders(&self) -> &Orders;
    /// How often everybody writes.
    fn rounds(&self) -> u64;
    /// Nanoseconds of processor that the server took so far.
    fn server_spent(&self) -> u64;
    /// Makes a table, of so many rows if it is to be filled.
    async fn make(&self, name: &str, table: Table, rows: u64);
    async fn remove(&self, name: &str);
    /// Both tables hold the same, and so many rows.
    async fn assert_same(&self, one: &str, other: &str, rows: u64);
    /// Lets the bare loop write.
    async fn bare(&self, one: &Contestant, table: &str) -> Run;
}

/// How many rows are written in this mode.
pub(crate) fn rows(arena: &impl Arena, mode: Mode) -> u64 {
    match mode {
        Mode::Upsert => arena.orders().len() / UPSERT_SHARE,
        Mode::Append => arena.orders().len(),
    }
}

pub(crate) async fn run<A: Arena>(arena: &A, one: &Contestant, table: &str) -> Run {
    arena.make(table, one.table, rows(arena, one.mode)).await;
    if one.by == By::Bare {
        return arena.bare(one, table).await;
    }
    let (events, lanes) = (rows(arena, one.mode), one.connections);
    let deliveries = Deliveries::<A::Sinks>::new(arena.url(), table, one.mode, one.by, events, lanes).await;
    measure(arena, events, deliveries.run()).await
}

/// What it costs to wait for `work`.
pub(crate) async fn measure<R>(arena: &impl Arena, rows: u64, work: impl Future<Output = R>) -> Run {
    let others = cpu::Others::watch();
    let (client, server, started) = (cpu::spent(' '), arena.server_spent(), Instant::now());
    work.await;
    let wall = started.elapsed();
    let (client, server) = (cpu::spent(' ') - client, arena.server_spent() - server);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
    let of_server = Duration::from_nanos(server).as_secs_f64() / (wall.as_secs_f64() * processors);
    let others = (others.share() - of_server).max(0.0);
    Run { rows, wall, client, server, others }
}

/// All rounds of all contestants whose name has `only` in it.
pub(crate) async fn contest(arena: &impl Arena, only: &str, throughput: &str) {
    let chosen: Vec<Contestant> = CONTESTANTS.into_iter().filter(|one| one.name.contains(only)).collect();
    let mut runs = vec![Vec::new(); chosen.len()];
    for round in 0..arena.rounds() {
        for (at, one) in chosen.iter().enumerate() {
            let run = run(arena, one, &format!("orders_{at}")).await;
            println!("round {round}: {}", run.told(one.name));
            runs[at].push(run);
        }
        if round == 0 {
            same_rows(arena, &chosen).await;
        }
        for at in 0..chosen.len() {
            arena.remove(&format!("orders_{at}")).await;
        }
    }
    println!();
    for (one, runs) in chosen.iter().zip(&runs) {
        println!("median: {}", median(runs).told(one.name));
    }
    compare(&chosen, &runs, rows(arena, Mode::Upsert), throughput);
}

/// Everybody of one mode has written the same rows.
async fn same_rows(arena: &impl Arena, chosen: &[Contestant]) {
    for (at, one) in chosen.iter().enumerate() {
        let first = chosen.iter().position(|first| first.mode == one.mode).unwrap_or(at);
        let (first, this) = (format!("orders_{first}"), format!("orders_{at}"));
        arena.assert_same(&first, &this, rows(arena, one.mode)).await;
    }
}

/// What the issue is: how much of the bare loop's speed is left.
fn compare(chosen: &[Contestant], runs: &[Vec<Run>], rows: u64, throughput: &str) {
    let of = |name: &str| chosen.iter().position(|one| one.name == name).map(|at| runs[at].as_slice());
    for (first, second) in [
        ("bare, new keys", "exactly-once, new keys"),
        ("bare, existing keys", "exactly-once, existing keys"),
        ("bare, append", "exactly-once, append"),
        ("bare, append beside an index", "exactly-once, append beside an index"),
        ("at-least-once, new keys", "exactly-once, new keys"),
        ("at-least-once, append", "exactly-once, append"),
        ("bare, new keys", "bare, new keys, 4 connections"),
        ("exactly-once, new keys", "exactly-once, new keys, 4 lanes"),
    ] {
        if let (Some(slow), Some(fast)) = (of(first), of(second)) {
            println!("{:<76} {}", format!("speed of \"{second}\" against \"{first}\""), ratios(slow, fast));
        }
    }
    if let [Some(one), Some(four), Some(bare_one), Some(bare_four)] =
        ["exactly-once, new keys", "exactly-once, new keys, 4 lanes", "bare, new keys", "bare, new keys, 4 connections"]
            .map(of)
    {
        println!(
            "gain by four lanes against the gain by four bare connections {}",
            gain(one, four, bare_one, bare_four)
        );
    }
    if let Some(runs) = of("exactly-once, new keys") {
        println!("{}", median(runs).told(throughput));
    }
    if let (Some(without), Some(with)) = (of("at-least-once, new keys"), of("exactly-once, new keys")) {
        let epochs = rows.div_ceil(per_commit() as u64) as f64;
        let added = |(a, b): (&Run, &Run)| (b.wall.as_secs_f64() - a.wall.as_secs_f64()) * 1000.0 / epochs;
        println!(
            "bench_txn_vs_nontxn: ms added per epoch {}",
            Ratio::of(without.iter().zip(with).map(added).collect())
        );
    }
}

fn gain(one: &[Run], four: &[Run], bare_one: &[Run], bare_four: &[Run]) -> Ratio {
    let gained = |at: usize, one: &[Run], four: &[Run]| one[at].wall.as_secs_f64() / four[at].wall.as_secs_f64();
    Ratio::of((0..one.len()).map(|at| gained(at, one, four) / gained(at, bare_one, bare_four)).collect())
}

/// Runs one contestant again and again, for a profiler.
pub(crate) async fn profile(arena: &impl Arena, name: &str) {
    let one = CONTESTANTS.into_iter().find(|one| one.name == name).expect("the name of a contestant");
    for _ in 0..arena.rounds() {
        println!("{}", run(arena, &one, "orders_0").await.told(one.name));
        arena.remove("orders_0").await;
    }
}

/// What it costs that somebody reads the meters all the time: a hundred times a second, which is more than anybody asks.
pub(crate) async fn metrics<A: Arena>(arena: &A) {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..arena.rounds() {
        for (watched, runs) in runs.iter_mut().enumerate() {
            arena.make("orders_0", Table::Plain, 0).await;
            let (mode, by) = (Mode::Append, By::ExactlyOnce);
            let deliveries =
                Deliveries::<A::Sinks>::new(arena.url(), "orders_0", mode, by, arena.orders().len(), 1).await;
            let meters = deliveries.meters();
            let reader = (watched == 1).then(|| {
                tokio::spawn(async move {
                    loop {
                        meters.iter().for_each(|meter| drop(std::hint::black_box(meter.read())));
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                })
            });
            runs.push(measure(arena, arena.orders().len(), deliveries.run()).await);
            reader.inspect(tokio::task::JoinHandle::abort);
            arena.remove("orders_0").await;
        }
    }
    let [alone, watched] = runs;
    println!("median: {}", median(&alone).told("nobody reads the meters"));
    println!("median: {}", median(&watched).told("meters read 100 times a second"));
    println!("speed of the second against the first: {}", ratios(&alone, &watched));
    let cost = alone.iter().zip(&watched).map(|(a, b)| b.client as f64 / a.client as f64).collect();
    println!("processor time of this process, the second against the first: {}", Ratio::of(cost));
}
