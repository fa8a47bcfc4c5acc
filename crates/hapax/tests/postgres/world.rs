//! A database of its own for each test on the test server, and a folder with a configuration that names it.

use std::sync::atomic::{AtomicU32, Ordering};

use hapax_sql::postgres::tokio_postgres::SimpleQueryMessage;
use hapax_sql::postgres::{Limits, PostgresUrl, Session};
use serde_json::Value;

use crate::world::{Answer, Worker, World, number};

static MADE: AtomicU32 = AtomicU32::new(0);

/// Quick epochs and retries, so that tests need not wait.
const QUICK: &str = "epoch: { interval: 20ms }, lease: 2s, claimTimeout: 2s, \
                     retries: { maxAttempts: 2, backoffMs: [50], giveUpAfter: 500ms }";

/// A folder and a database.
pub(crate) struct Shop {
    pub(crate) world: World,
    server: PostgresUrl,
    address: String,
    database: String,
}

/// The address of the test server.
fn server() -> String {
    std::env::var("HAPAX_TEST_POSTGRES").expect("run `cargo xtask test`, or `cargo xtask services -- cargo test …`")
}

impl Shop {
    /// A database with table `orders`, and workflow `orders` from `orders.jsonl` into it; `sink` and `delivery` add
    /// fields.
    pub(crate) fn new(sink: &str, delivery: &str) -> Self {
        let shop = Self::empty();
        shop.sql("CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount integer)");
        shop.configure(sink, delivery);
        shop
    }

    /// The same, with Hapax's own tables made.
    pub(crate) fn ready(sink: &str, delivery: &str) -> Self {
        let shop = Self::new(sink, delivery);
        shop.hapax(&["setup", "--yes"]).exits(0);
        shop
    }

    /// A database and a folder, both empty.
    pub(crate) fn empty() -> Self {
        let address = server();
        let server = PostgresUrl::parse(&address).expect("HAPAX_TEST_POSTGRES is an address");
        let database = format!("hapax_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let shop = Self { world: World::empty(), server, address, database };
        shop.on(&shop.server, &format!("CREATE DATABASE {}", shop.database));
        shop
    }

    /// Writes the configuration: a state store in the same database, unless `sink` or `delivery` need another.
    pub(crate) fn configure(&self, sink: &str, delivery: &str) {
        self.configure_as(&self.url(), sink, delivery);
    }

    /// The same with another address of the database.
    pub(crate) fn configure_as(&self, url: &str, sink: &str, delivery: &str) {
        let text = format!(
            "state: \"{url}\"
workflows:
  - id: orders
    source: {{ file: {{ path: orders.jsonl }} }}
    sink: {{ postgres: {{ url: \"{url}\", table: orders, {sink} }} }}
    delivery: {{ {QUICK}, {delivery} }}
"
        );
        self.world.write("hapax.yaml", text);
    }

    /// The database's address, as the server's superuser.
    pub(crate) fn url(&self) -> String {
        self.url_of(None)
    }

    /// The database's address, as `user`.
    pub(crate) fn url_of(&self, user: Option<&str>) -> String {
        format!("postgres://{}@{}/{}", user.unwrap_or(self.login()), self.server_address(), self.database)
    }

    /// The database's address behind another port of this machine.
    pub(crate) fn url_at(&self, port: u16) -> String {
        format!("postgres://{}@127.0.0.1:{port}/{}", self.login(), self.database)
    }

    fn login(&self) -> &str {
        self.address.split_once("://").and_then(|(_, rest)| rest.split_once('@')).expect("a user").0
    }

    /// Host and port of the server.
    pub(crate) fn server_address(&self) -> String {
        let (_, rest) = self.address.split_once('@').expect("a user");
        rest.split(['/', '?']).next().expect("a host").to_owned()
    }

    /// The database's name.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    pub(crate) fn hapax(&self, arguments: &[&str]) -> Answer {
        self.world.hapax(arguments)
    }

    pub(crate) fn start(&self, log: &str, arguments: &[&str]) -> Worker {
        self.world.start(log, arguments)
    }

    /// Runs statements in the database.
    pub(crate) fn sql(&self, statements: &str) {
        self.on(&self.server.with_database(&self.database), statements);
    }

    /// One value out of the database, as text; empty for NULL and for no row.
    pub(crate) fn ask(&self, query: &str) -> String {
        let url = self.server.with_database(&self.database);
        run(async move {
            let session = Session::connect(&url, &Limits::default()).await.expect("the test server answers");
            let rows = session.client().simple_query(query).await.expect("the query is right");
            rows.iter()
                .find_map(|message| if let SimpleQueryMessage::Row(row) = message { row.get(0) } else { None })
                .map(str::to_owned)
                .unwrap_or_default()
        })
    }

    fn on(&self, url: &PostgresUrl, statements: &str) {
        run(async {
            let session = Session::connect(url, &Limits::default()).await.expect("the test server answers");
            session.client().batch_execute(statements).await.expect("the statements are right");
        });
    }

    /// A transaction with a view of the database that stays open until it is dropped.
    pub(crate) fn open_transaction(&self) -> impl Sized + use<> {
        let url = self.server.with_database(&self.database);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let session = runtime.block_on(async move {
            let limits = Limits { idle_in_transaction: std::time::Duration::from_secs(120), ..Limits::default() };
            let session = Session::connect(&url, &limits).await.expect("the test server answers");
            let looks = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM orders";
            session.client().batch_execute(looks).await.expect("the statements are right");
            session
        });
        (session, runtime)
    }

    /// Rows of table `orders`.
    pub(crate) fn rows(&self) -> u64 {
        self.ask("SELECT count(*) FROM orders").parse().expect("a number")
    }

    /// `id:amount` of every row, in order.
    pub(crate) fn amounts(&self) -> String {
        self.ask("SELECT string_agg(id || ':' || coalesce(amount::text, '-'), ' ' ORDER BY id) FROM orders")
    }

    /// Nothing is lost: of `lines` read, each was delivered or is a dead letter.
    pub(crate) fn accounts_for(&self, lines: u64, dead: u64) {
        let deliveries = self.world.status();
        let sum = |name: &str| deliveries.iter().map(|delivery| number(&delivery["progress"][name])).sum::<u64>();
        let counted = (sum("read"), sum("delivered"), sum("dead"));
        assert_eq!(counted, (lines, lines - dead, dead), "{deliveries:#?}");
    }

    /// The causes of dead letters, by code.
    pub(crate) fn causes(&self) -> Vec<(String, u64, String)> {
        let answer = self.hapax(&["dlq", "list", "--json"]);
        let causes = answer.exits(0).json()["causes"].as_array().expect("a list").clone();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        causes.iter().map(|cause| (text(&cause["code"]), number(&cause["count"]), text(&cause["example"]))).collect()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.on(&self.server, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database));
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}
