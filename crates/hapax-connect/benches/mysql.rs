//! Generated orders into MariaDB (or MySQL), against the fastest bare mysql_async loop we can write: same rows, same
//! statements' size, same commits, as many connections. `cargo bench -p hapax-connect --bench mysql`.
//!
//! Ratios count, as in the bench of PostgreSQL. `-- --events N --rounds N --only WORD --per-commit N` for less;
//! `--steps`, `--metrics`, `--statements`, `--profile NAME`.

#[path = "parts/bare_mysql.rs"]
mod bare;
#[path = "parts/by_hapax.rs"]
mod by_hapax;
#[path = "parts/contest.rs"]
mod contest;
#[path = "parts/cpu.rs"]
mod cpu;
#[path = "parts/orders.rs"]
mod orders;
#[path = "parts/rounds.rs"]
mod rounds;
#[path = "parts/server_mysql.rs"]
mod server;
#[path = "parts/settings.rs"]
mod settings;
#[path = "parts/sinks_mysql.rs"]
mod sinks;
#[path = "parts/steps.rs"]
mod steps;

use std::cell::RefCell;

use futures_util::future::join_all;
use hapax_connect::mysql::tables::ensure;
use hapax_sql::mysql::{CommitEnd, Limits, MysqlUrl, Session, Value, checked_commit};
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use bare::Share;
use contest::{Arena, Contestant, EVENTS, Mode, ROUNDS, ROWS, Table, measure, number, per_commit, rows};
use orders::Orders;
use rounds::{Run, median};
use server::Server;
use sinks::Mysql;
use steps::{TIMES, timed, told};

/// Everything a run needs.
struct Bench<'a> {
    server: &'a Server,
    url: String,
    /// Used by one at a time, between the runs.
    admin: RefCell<Option<Conn>>,
    orders: Orders,
    rounds: u64,
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
        let mut first = bare::connect(&server.url("")).await;
        first.query_drop(format!("CREATE DATABASE {name}")).await.expect("a database");
        let url = server.url(&name);
        set_up(&url).await;
        let admin = RefCell::new(Some(bare::connect(&url).await));
        let bench = Bench { server: &server, url, admin, orders, rounds: number("--rounds", ROUNDS) };
        if words.iter().any(|word| word == "--steps") {
            all_steps(&bench).await;
        } else if words.iter().any(|word| word == "--metrics") {
            contest::metrics(&bench).await;
        } else if words.iter().any(|word| word == "--statements") {
            statements(&bench).await;
        } else if let Some(only) = said("--profile") {
            contest::profile(&bench, only).await;
        } else {
            let only = said("--only").map_or("", String::as_str);
            contest::contest(&bench, only, "bench_mysql_upsert_throughput").await;
        }
        drop(bench);
        first.query_drop(format!("DROP DATABASE {name}")).await.expect("no database");
        first.disconnect().await.expect("leaves");
    });
}

/// Our own tables, as `hapax setup` makes them.
async fn set_up(url: &str) {
    let mut session = session(url).await;
    ensure(&mut session).await.expect("our tables");
}

async fn session(url: &str) -> Session {
    let url = MysqlUrl::parse(url).expect("a URL");
    Session::connect(&url, &Limits::default()).await.expect("a session")
}

/// What rows per statement suit the bare upsert, and what MariaDB's bulk command would take.
async fn statements(bench: &Bench<'_>) {
    let sizes = [100, 250, 500, 1_000, 2_000, 5_000, 16_000];
    let ways: Vec<Option<usize>> = sizes.into_iter().map(Some).chain([None]).collect();
    let mut runs = vec![Vec::new(); 2 * ways.len()];
    for _ in 0..bench.rounds {
        for (at, way) in ways.iter().enumerate() {
            for (side, table) in [Table::Keyed, Table::Filled].into_iter().enumerate() {
                bench.make("orders_0", table, rows(bench, Mode::Upsert)).await;
                runs[2 * at + side].push(match way {
                    Some(size) => bench.bare_write("orders_0", Mode::Upsert, 1, *size).await,
                    None => bench.bare_bulk("orders_0").await,
                });
                bench.remove("orders_0").await;
            }
        }
    }
    for (at, way) in ways.iter().enumerate() {
        let name = way.map_or("the bulk command".to_owned(), |size| format!("{size} rows per statement"));
        for (side, keys) in ["new", "existing"].into_iter().enumerate() {
            println!("median, {keys} keys: {}", median(&runs[2 * at + side]).told(&name));
        }
    }
}

/// The steps of one transaction, each alone.
async fn all_steps(bench: &Bench<'_>) {
    bare_upserts(bench).await;
    steps::idempotent(bench, "mysql").await;
    steps::transactional(bench, "mysql").await;
    commit_alone(bench).await;
}

/// What the server itself takes, without anything of ours.
async fn bare_upserts(bench: &Bench<'_>) {
    for (name, each) in [("bench_mysql_upsert_single, bare", 1), ("bench_mysql_upsert_batch of 1,000, bare", 1000)] {
        bench.make("steps", Table::Keyed, 0).await;
        let mut connection = bare::connect(&bench.url).await;
        let mut times = Vec::new();
        for n in 0..TIMES as u64 {
            let first = n * each as u64;
            let share = Share::of(&bench.orders, first..first + each as u64);
            // Prepared by the first, kept by the driver.
            let writing = bare::write_alone(&mut connection, "steps", Mode::Upsert, &share, each);
            times.push(timed(writing).await);
        }
        told(name, if each == 1 { "< 2 ms" } else { "< 20 ms" }, times);
        bench.remove("steps").await;
    }
}

/// The COMMIT itself, checked as every one of ours, after as many rows as an epoch has.
async fn commit_alone(bench: &Bench<'_>) {
    bench.make("steps", Table::Keyed, 0).await;
    let mut session = session(&bench.url).await;
    let (mut times, mut rollbacks) = (Vec::new(), Vec::new());
    let sql = "INSERT INTO steps SELECT seq + ?, 'customer', seq, 'paid' FROM seq_1_to_20000";
    for n in 0..20_i64 {
        session.begin().await.expect("begins");
        session.execute(sql, vec![Value::Int(n * 20_000)]).await.expect("writes");
        times.push(timed(async { assert_eq!(checked_commit(&mut session).await, CommitEnd::Committed) }).await);
        session.begin().await.expect("begins");
        session.execute(sql, vec![Value::Int((n + 100) * 20_000)]).await.expect("writes");
        rollbacks.push(timed(async { session.rollback().await.expect("rolls back") }).await);
    }
    told("bench_jdbc_txn_commit: the checked COMMIT after 20,000 rows", "<= 50 ms", times);
    told("bench_txn_abort: ROLLBACK after 20,000 rows", "< 50 ms", rollbacks);
    bench.remove("steps").await;
}

impl Bench<'_> {
    async fn admin(&self, sql: String) {
        self.ask(sql).await;
    }

    async fn ask(&self, sql: String) -> Vec<i64> {
        let mut admin = self.admin.borrow_mut().take().expect("one at a time");
        let rows = admin.query(sql).await.expect("an answer");
        *self.admin.borrow_mut() = Some(admin);
        rows
    }

    async fn bare_write(&self, table: &str, mode: Mode, connections: u64, each: usize) -> Run {
        let events = rows(self, mode);
        let shares: Vec<_> = (0..connections).map(|n| Share::new(&self.orders, events, n, connections)).collect();
        let mut clients = join_all((0..connections).map(|_| bare::connect(&self.url))).await;
        let lanes = clients
            .iter_mut()
            .zip(&shares)
            .map(|(client, share)| bare::write(client, table, mode, share, per_commit(), each));
        measure(self, events, join_all(lanes)).await
    }
}

impl Bench<'_> {
    async fn bare_bulk(&self, table: &str) -> Run {
        let events = rows(self, Mode::Upsert);
        let (share, mut client) = (Share::new(&self.orders, events, 0, 1), bare::connect(&self.url).await);
        measure(self, events, bare::write_bulk(&mut client, table, Mode::Upsert, &share, per_commit())).await
    }
}

const REST: &str = "customer varchar(64) NOT NULL, amount_cents bigint NOT NULL, status varchar(32) NOT NULL";

impl Arena for Bench<'_> {
    type Sinks = Mysql;

    fn url(&self) -> &str {
        &self.url
    }

    fn orders(&self) -> &Orders {
        &self.orders
    }

    fn rounds(&self) -> u64 {
        self.rounds
    }

    fn server_spent(&self) -> u64 {
        self.server.spent()
    }

    async fn make(&self, name: &str, table: Table, rows: u64) {
        let key = if table == Table::Plain { "bigint NOT NULL" } else { "bigint PRIMARY KEY" };
        self.admin(format!("CREATE TABLE {name} (order_id {key}, {REST}) ENGINE=InnoDB")).await;
        if table == Table::Filled {
            let last = rows.saturating_sub(1);
            self.admin(format!(
                "INSERT INTO {name} SELECT seq, CONCAT('customer-', seq % 1000), 0, 'old' FROM seq_0_to_{last}"
            ))
            .await;
        }
    }

    async fn remove(&self, name: &str) {
        self.admin(format!("DROP TABLE {name}")).await;
    }

    async fn assert_same(&self, one: &str, other: &str, rows: u64) {
        for table in [one, other] {
            assert_eq!(self.ask(format!("SELECT count(*) FROM {table}")).await, [rows.cast_signed()], "{table}");
        }
        let more = format!("SELECT count(*) FROM (SELECT * FROM {one} EXCEPT SELECT * FROM {other}) AS more");
        assert_eq!(self.ask(more).await, [0], "{one} and {other}");
    }

    async fn bare(&self, one: &Contestant, table: &str) -> Run {
        self.bare_write(table, one.mode, one.connections, ROWS).await
    }
}
