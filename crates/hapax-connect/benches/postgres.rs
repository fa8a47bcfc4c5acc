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
#[path = "parts/contest.rs"]
mod contest;
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
#[path = "parts/sinks_postgres.rs"]
mod sinks;
#[path = "parts/steps.rs"]
mod steps;
#[path = "parts/steps_postgres.rs"]
mod steps_postgres;
#[path = "parts/tables.rs"]
mod tables;

use futures_util::future::join_all;
use hapax_connect::postgres::tables::{Role, ensure};
use hapax_sql::postgres::{Limits, PostgresUrl, Session};
use tokio_postgres::Client;

use bare::Columns;
use contest::{Arena, Contestant, EVENTS, Mode, ROUNDS, ROWS, Table, measure, number, per_commit, rows};
use orders::Orders;
use rounds::{Run, median};
use server::Server;
use sinks::Postgres;

/// Everything a run needs.
struct Bench<'a> {
    server: &'a Server,
    url: String,
    admin: Client,
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
        let first = bare::connect(&server.url("postgres")).await;
        first.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
        let url = server.url(&name);
        let admin = bare::connect(&url).await;
        set_up(&url).await;
        let bench = Bench { server: &server, url, admin, orders, rounds: number("--rounds", ROUNDS) };
        if words.iter().any(|word| word == "--keys") {
            keys::contest(&bench).await;
        } else if words.iter().any(|word| word == "--steps") {
            steps_postgres::all(&bench).await;
        } else if words.iter().any(|word| word == "--metrics") {
            contest::metrics(&bench).await;
        } else if words.iter().any(|word| word == "--statements") {
            statements(&bench).await;
        } else if let Some(only) = said("--profile") {
            contest::profile(&bench, only).await;
        } else {
            let only = said("--only").map_or("", String::as_str);
            contest::contest(&bench, only, "bench_postgres_upsert_throughput").await;
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
        for (at, (_, sql, each)) in ways.iter().enumerate() {
            for (side, table) in [Table::Keyed, Table::Filled].into_iter().enumerate() {
                tables::make(&bench.admin, "orders_0", table, rows(bench, Mode::Upsert)).await;
                let run = bench.bare_upsert(sql, 1, *each).await;
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

impl Arena for Bench<'_> {
    type Sinks = Postgres;

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
        tables::make(&self.admin, name, table, rows).await;
    }

    async fn remove(&self, name: &str) {
        tables::remove(&self.admin, name).await;
    }

    async fn assert_same(&self, one: &str, other: &str, rows: u64) {
        tables::assert_same(&self.admin, one, other, rows).await;
    }

    async fn bare(&self, one: &Contestant, table: &str) -> Run {
        match one.mode {
            Mode::Upsert => self.bare_upsert(&bare::upsert_sql(table), one.connections, ROWS).await,
            Mode::Append => self.bare_append(table).await,
        }
    }
}

impl Bench<'_> {
    async fn bare_upsert(&self, sql: &str, connections: u64, rows_each: usize) -> Run {
        let events = rows(self, Mode::Upsert);
        let shares: Vec<_> = (0..connections).map(|n| Columns::share(&self.orders, events, n, connections)).collect();
        let clients = join_all((0..connections).map(|_| bare::connect(&self.url))).await;
        let lanes =
            clients.iter().zip(&shares).map(|(client, share)| bare::write(client, sql, share, per_commit(), rows_each));
        measure(self, events, join_all(lanes)).await
    }

    async fn bare_append(&self, table: &str) -> Run {
        let events = rows(self, Mode::Append);
        let (share, client) = (Columns::share(&self.orders, events, 0, 1), bare::connect(&self.url).await);
        measure(self, events, bare::copy(&client, table, &share, per_commit())).await
    }
}
