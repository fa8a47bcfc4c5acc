//! Generated orders into PostgreSQL, against the fastest bare tokio-postgres loop we can write: same rows, same
//! statements' size, same commits, as many connections. `cargo bench -p hapax-connect --bench postgres`.
//!
//! Ratios count: every round runs all contestants once, in turn, each into a table of its own, and the answer is the
//! median of the rounds' ratios. `-- --events N --rounds N --only WORD --per-commit N` for less; `--steps`, `--keys`,
//! `--metrics`, `--statements`, `--profile NAME`.

#[path = "parts/bare_postgres.rs"]
mod bare;
#[path = "parts/by_hapax.rs"]
mod by_hapax;
#[path = "parts/cpu.rs"]
mod cpu;
#[path = "parts/far.rs"]
mod far;
#[path = "parts/keys.rs"]
mod keys;
#[path = "parts/orders.rs"]
mod orders;
#[path = "parts/rounds.rs"]
mod rounds;
#[path = "parts/server.rs"]
mod server;
#[path = "parts/settings.rs"]
mod settings;
#[path = "parts/steps.rs"]
mod steps;
#[path = "parts/tables.rs"]
mod tables;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hapax_connect::postgres::tables::{Role, ensure};
use hapax_sql::postgres::{Limits, PostgresUrl, Session};
use tokio_postgres::Client;

use bare::Columns;
use by_hapax::Deliveries;
use orders::Orders;
use rounds::{Ratio, Run, median, ratios};
use server::Server;
use tables::Table;

/// How many rows appends write; upserts, which take much longer for each, write a fifth of that.
const EVENTS: u64 = 1_000_000;
const UPSERT_SHARE: u64 = 5;
const ROUNDS: u64 = 7;
const PER_COMMIT: u64 = 20_000;
/// Rows per statement, of the bare loop as of Hapax.
const ROWS: usize = 1_000;

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Bare,
    /// Hapax, with progress beside the rows.
    ExactlyOnce,
    /// Hapax, with progress in a state store (SQLite, in a file of its own).
    AtLeastOnce,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Upsert,
    Append,
}

#[derive(Debug, Clone, Copy)]
struct Contestant {
    name: &'static str,
    by: By,
    table: Table,
    mode: Mode,
    connections: u64,
}

const fn contestant(name: &'static str, by: By, table: Table, mode: Mode, connections: u64) -> Contestant {
    Contestant { name, by, table, mode, connections }
}

const CONTESTANTS: [Contestant; 12] = [
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

/// Everything a run needs.
struct Bench<'a> {
    server: &'a Server,
    url: String,
    admin: Client,
    orders: Orders,
    rounds: u64,
}

/// A number given on the command line.
fn number(name: &str, or: u64) -> u64 {
    std::env::args().skip_while(|word| word != name).nth(1).map_or(or, |word| word.parse().expect("a number"))
}

/// How many rows everybody commits at once: `--per-commit`.
fn per_commit() -> usize {
    usize::try_from(number("--per-commit", PER_COMMIT)).expect("a number of rows")
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.iter().any(|word| word == "--test") {
        return; // `cargo test --benches` only wants to know that it builds
    }
    let said = |name: &str| words.iter().skip_while(|word| *word != name).nth(1);
    let orders = Orders::made(number("--events", EVENTS));
    let server = Server::start();
    cpu::runtime(2).block_on(async {
        let name = format!("hapax_bench_{}", std::process::id());
        let first = bare::connect(&server.url("postgres")).await;
        first.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
        let url = server.url(&name);
        let admin = bare::connect(&url).await;
        set_up(&url).await;
        let bench = Bench { server: &server, url, admin, orders, rounds: number("--rounds", ROUNDS) };
        if words.iter().any(|word| word == "--keys") {
            keys::contest(&bench).await;
        } else if words.iter().any(|word| word == "--steps") {
            steps::all(&bench).await;
        } else if words.iter().any(|word| word == "--metrics") {
            metrics(&bench).await;
        } else if words.iter().any(|word| word == "--statements") {
            statements(&bench).await;
        } else if let Some(only) = said("--profile") {
            profile(&bench, only).await;
        } else {
            contest(&bench, said("--only").map_or("", String::as_str)).await;
        }
        drop(bench);
        first.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.expect("no database");
    });
}

/// Our own tables, as `hapax setup` makes them.
async fn set_up(url: &str) {
    let url = PostgresUrl::parse(url).expect("a URL");
    let session = Session::connect(&url, &Limits::default()).await.expect("a session");
    ensure(&session, Role::Target).await.expect("our tables");
}

/// All rounds of all contestants whose name has `only` in it.
async fn contest(bench: &Bench<'_>, only: &str) {
    let chosen: Vec<Contestant> = CONTESTANTS.into_iter().filter(|one| one.name.contains(only)).collect();
    let mut runs = vec![Vec::new(); chosen.len()];
    for round in 0..bench.rounds {
        for (at, one) in chosen.iter().enumerate() {
            let run = bench.run(one, &format!("orders_{at}")).await;
            println!("round {round}: {}", run.told(one.name));
            runs[at].push(run);
        }
        if round == 0 {
            same_rows(bench, &chosen).await;
        }
        for at in 0..chosen.len() {
            tables::remove(&bench.admin, &format!("orders_{at}")).await;
        }
    }
    println!();
    for (one, runs) in chosen.iter().zip(&runs) {
        println!("median: {}", median(runs).told(one.name));
    }
    compare(&chosen, &runs, bench.rows(Mode::Upsert));
}

/// Everybody of one mode has written the same rows.
async fn same_rows(bench: &Bench<'_>, chosen: &[Contestant]) {
    for (at, one) in chosen.iter().enumerate() {
        let first = chosen.iter().position(|first| first.mode == one.mode).unwrap_or(at);
        let (first, this) = (format!("orders_{first}"), format!("orders_{at}"));
        tables::assert_same(&bench.admin, &first, &this, bench.rows(one.mode)).await;
    }
}

/// What the issue is: how much of the bare loop's speed is left.
fn compare(chosen: &[Contestant], runs: &[Vec<Run>], rows: u64) {
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
        println!("{}", median(runs).told("bench_postgres_upsert_throughput"));
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
async fn profile(bench: &Bench<'_>, name: &str) {
    let one = CONTESTANTS.into_iter().find(|one| one.name == name).expect("the name of a contestant");
    for _ in 0..bench.rounds {
        println!("{}", bench.run(&one, "orders_0").await.told(one.name));
        tables::remove(&bench.admin, "orders_0").await;
    }
}

/// What it costs that somebody reads the meters all the time: a hundred times a second, which is more than anybody asks.
async fn metrics(bench: &Bench<'_>) {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..bench.rounds {
        for (watched, runs) in runs.iter_mut().enumerate() {
            tables::make(&bench.admin, "orders_0", Table::Plain, 0).await;
            let (mode, by) = (Mode::Append, By::ExactlyOnce);
            let deliveries = Deliveries::new(&bench.url, "orders_0", mode, by, bench.orders.len(), 1).await;
            let meters = deliveries.meters();
            let reader = (watched == 1).then(|| {
                tokio::spawn(async move {
                    loop {
                        meters.iter().for_each(|meter| drop(std::hint::black_box(meter.read())));
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                })
            });
            runs.push(bench.measure(bench.orders.len(), deliveries.run()).await);
            reader.inspect(tokio::task::JoinHandle::abort);
            tables::remove(&bench.admin, "orders_0").await;
        }
    }
    let [alone, watched] = runs;
    println!("median: {}", median(&alone).told("nobody reads the meters"));
    println!("median: {}", median(&watched).told("meters read 100 times a second"));
    println!("speed of the second against the first: {}", ratios(&alone, &watched));
    let cost = alone.iter().zip(&watched).map(|(a, b)| b.client as f64 / a.client as f64).collect();
    println!("processor time of this process, the second against the first: {}", Ratio::of(cost));
}

/// What rows per statement, and what answers, suit the bare upsert.
async fn statements(bench: &Bench<'_>) {
    let plain = bare::upsert_sql("orders_0");
    let counted = format!(
        "WITH written AS ({plain} RETURNING orders_0.xmax = 0 AS created) \
         SELECT count(*), count(*) FILTER (WHERE created) FROM written"
    );
    let returned = format!("{plain} RETURNING orders_0.xmax = 0");
    let mut ways: Vec<(String, &str, usize)> = Vec::new();
    for rows in [250, 500, 1_000, 2_000, 5_000, 20_000] {
        ways.push((format!("plain, {rows} rows per statement"), &plain, rows));
    }
    ways.push(("counted by the server, 1000 rows".into(), &counted, ROWS));
    ways.push(("a row returned for each, 1000 rows".into(), &returned, ROWS));
    let mut runs = vec![Vec::new(); 2 * ways.len()];
    for _ in 0..bench.rounds {
        for (at, (_, sql, rows)) in ways.iter().enumerate() {
            for (side, table) in [Table::Keyed, Table::Filled].into_iter().enumerate() {
                tables::make(&bench.admin, "orders_0", table, bench.rows(Mode::Upsert)).await;
                let run = bench.bare_upsert(sql, 1, *rows).await;
                runs[2 * at + side].push(run);
                tables::remove(&bench.admin, "orders_0").await;
            }
        }
    }
    for (at, (name, ..)) in ways.iter().enumerate() {
        for (side, keys) in ["new", "existing"].into_iter().enumerate() {
            println!("median, {keys} keys: {}", median(&runs[2 * at + side]).told(name));
        }
    }
}

impl Bench<'_> {
    /// How many rows are written in this mode.
    fn rows(&self, mode: Mode) -> u64 {
        match mode {
            Mode::Upsert => self.orders.len() / UPSERT_SHARE,
            Mode::Append => self.orders.len(),
        }
    }

    async fn run(&self, one: &Contestant, table: &str) -> Run {
        tables::make(&self.admin, table, one.table, self.rows(one.mode)).await;
        match (one.by, one.mode) {
            (By::Bare, Mode::Upsert) => self.bare_upsert(&bare::upsert_sql(table), one.connections, ROWS).await,
            (By::Bare, Mode::Append) => self.bare_append(table).await,
            (by, mode) => {
                let (events, lanes) = (self.rows(mode), one.connections);
                let deliveries = Deliveries::new(&self.url, table, mode, by, events, lanes).await;
                self.measure(events, deliveries.run()).await
            }
        }
    }

    async fn bare_upsert(&self, sql: &str, connections: u64, rows: usize) -> Run {
        let events = self.rows(Mode::Upsert);
        let shares: Vec<_> = (0..connections).map(|n| Columns::share(&self.orders, events, n, connections)).collect();
        let clients = join_all((0..connections).map(|_| bare::connect(&self.url))).await;
        let lanes =
            clients.iter().zip(&shares).map(|(client, share)| bare::write(client, sql, share, per_commit(), rows));
        self.measure(events, join_all(lanes)).await
    }

    async fn bare_append(&self, table: &str) -> Run {
        let events = self.rows(Mode::Append);
        let (share, client) = (Columns::share(&self.orders, events, 0, 1), bare::connect(&self.url).await);
        self.measure(events, bare::copy(&client, table, &share, per_commit())).await
    }

    /// What it costs to wait for `work`.
    async fn measure<R>(&self, rows: u64, work: impl Future<Output = R>) -> Run {
        let others = cpu::Others::watch();
        let (client, server, started) = (cpu::spent(' '), self.server.spent(), Instant::now());
        work.await;
        let wall = started.elapsed();
        let (client, server) = (cpu::spent(' ') - client, self.server.spent() - server);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
        let of_server = Duration::from_nanos(server).as_secs_f64() / (wall.as_secs_f64() * processors);
        let others = (others.share() - of_server).max(0.0);
        Run { rows, wall, client, server, others }
    }
}
