//! A database of its own for each test on the test server, and a folder with a configuration that names it.

use std::sync::atomic::{AtomicU32, Ordering};

use hapax_sql::mysql::{Limits, MysqlUrl, Session};
use serde_json::Value;

use crate::world::{Answer, Worker, World, number};

static MADE: AtomicU32 = AtomicU32::new(0);

/// Quick epochs and retries, so that tests need not wait.
const QUICK: &str = "epoch: { interval: 20ms }, lease: 2s, claimTimeout: 2s, \
                     retries: { maxAttempts: 2, backoffMs: [50], giveUpAfter: 500ms }";

/// A folder and a database.
pub(crate) struct Shop {
    pub(crate) world: World,
    address: String,
    database: String,
}

/// The address of the test server.
fn server() -> String {
    std::env::var("HAPAX_TEST_MYSQL").expect("run `cargo xtask test`, or `cargo xtask services -- cargo test …`")
}

impl Shop {
    /// A database with table `orders`, and workflow `orders` from `orders.jsonl` into it; `sink` and `delivery` add
    /// fields.
    pub(crate) fn new(sink: &str, delivery: &str) -> Self {
        let shop = Self::empty();
        shop.sql("CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(200), amount integer)");
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
        Self::on_server(&server())
    }

    /// The same on another server: its address ends after the port.
    pub(crate) fn on_server(address: &str) -> Self {
        let database = format!("hapax_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let shop = Self { world: World::empty(), address: address.trim_end_matches('/').to_owned(), database };
        execute(&shop.address, &format!("CREATE DATABASE {} CHARACTER SET utf8mb4", shop.database));
        shop
    }

    /// Writes the configuration, with a state store in a file.
    pub(crate) fn configure(&self, sink: &str, delivery: &str) {
        self.configure_as(&self.url(), sink, delivery);
    }

    /// The same with another address of the database.
    pub(crate) fn configure_as(&self, url: &str, sink: &str, delivery: &str) {
        let text = format!(
            "state: \"sqlite://state.db\"
workflows:
  - id: orders
    source: {{ file: {{ path: orders.jsonl }} }}
    sink: {{ mysql: {{ url: \"{url}\", table: orders, {sink} }} }}
    delivery: {{ {QUICK}, {delivery} }}
"
        );
        self.world.write("hapax.yaml", text);
    }

    /// The database's address, as the server's superuser.
    pub(crate) fn url(&self) -> String {
        format!("{}/{}", self.address, self.database)
    }

    /// The database's address, as `user`, perhaps with a password behind a colon.
    pub(crate) fn url_of(&self, user: &str) -> String {
        format!("mysql://{user}@{}/{}", self.server_address(), self.database)
    }

    /// The database's address behind another port of this machine.
    pub(crate) fn url_at(&self, port: u16) -> String {
        format!("mysql://root@127.0.0.1:{port}/{}", self.database)
    }

    /// Host and port of the server.
    pub(crate) fn server_address(&self) -> String {
        self.address.split_once('@').expect("a user").1.to_owned()
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
        execute(&self.url(), statements);
    }

    /// One value out of the database, as text; empty for NULL and for no row.
    pub(crate) fn ask(&self, query: &str) -> String {
        let url = self.url();
        run(async move {
            let mut session = connect(&url).await;
            let rows = session.text_rows(query).await.expect("the query is right");
            let value: Option<Option<String>> = rows.first().and_then(|row| row.get(0));
            value.flatten().unwrap_or_default()
        })
    }

    /// Rows of table `orders`.
    pub(crate) fn rows(&self) -> u64 {
        self.ask("SELECT count(*) FROM orders").parse().expect("a number")
    }

    /// `id:amount` of every row, in order.
    pub(crate) fn amounts(&self) -> String {
        self.ask("SELECT group_concat(id, ':', coalesce(amount, '-') ORDER BY id SEPARATOR ' ') FROM orders")
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

    /// A session of the test's own that holds its transaction open until it is dropped.
    pub(crate) fn holding(&self, statements: &str) -> Held {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let (runtime, url) = (runtime.expect("a runtime"), self.url());
        let session = runtime.block_on(async move {
            let limits = Limits { idle_in_transaction: std::time::Duration::from_secs(120), ..Limits::default() };
            let url = MysqlUrl::parse(&url).expect("an address");
            let mut session = Session::connect(&url, &limits).await.expect("the test server answers");
            session.begin().await.expect("a transaction");
            session.text(statements).await.expect("the statements are right");
            session
        });
        Held { session, runtime }
    }
}

/// An open transaction.
pub(crate) struct Held {
    session: Session,
    runtime: tokio::runtime::Runtime,
}

impl Held {
    /// The server's number of its session.
    pub(crate) fn connection(&self) -> u64 {
        self.session.connection_id()
    }

    pub(crate) fn roll_back(mut self) {
        self.runtime.block_on(self.session.rollback()).expect("the end");
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let (address, statement) = (self.address.clone(), format!("DROP DATABASE IF EXISTS {}", self.database));
        // A server of the test's own may be gone by now, and its databases with it.
        run(async move {
            let url = MysqlUrl::parse(&address).expect("an address");
            if let Ok(mut session) = Session::connect(&url, &Limits::default()).await {
                session.text(&statement).await.ok();
            }
        });
    }
}

fn execute(url: &str, statements: &str) {
    run(async {
        connect(url).await.text(statements).await.expect("the statements are right");
    });
}

async fn connect(url: &str) -> Session {
    let url = MysqlUrl::parse(url).expect("an address");
    Session::connect(&url, &Limits::default()).await.expect("the test server answers")
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}
