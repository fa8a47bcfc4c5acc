//! A database of its own for each test on the test server, and a folder with a configuration that names it.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::Server;
use crate::world::{Answer, Worker, World, number};

static MADE: AtomicU32 = AtomicU32::new(0);

/// Quick epochs and retries, so that tests need not wait.
const QUICK: &str = "epoch: { interval: 20ms }, lease: 2s, claimTimeout: 2s, \
                     retries: { maxAttempts: 2, backoffMs: [50], giveUpAfter: 500ms }";

/// A folder and a database.
pub(crate) struct Shop<S: Server> {
    pub(crate) world: World,
    address: String,
    database: String,
    server: PhantomData<S>,
}

impl<S: Server> Shop<S> {
    /// A database with table `orders`, and workflow `orders` from `orders.jsonl` into it; `sink` and `delivery` add
    /// fields.
    pub(crate) fn new(sink: &str, delivery: &str) -> Self {
        let shop = Self::empty();
        shop.sql(S::ORDERS);
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
        let server = std::env::var(S::VARIABLE);
        Self::on_server(&server.expect("run `cargo xtask test`, or `cargo xtask services -- cargo test …`"))
    }

    /// The same on another server.
    pub(crate) fn on_server(address: &str) -> Self {
        let database = format!("hapax_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let shop = Self {
            world: World::empty(),
            address: address.trim_end_matches('/').to_owned(),
            database,
            server: PhantomData,
        };
        let [made, _] = S::made_and_dropped(&shop.database);
        Client::<S>::connect(&shop.address).expect("the test server answers").run(&made).expect("a database");
        shop
    }

    /// Writes the configuration, with the state store that this server is used with.
    pub(crate) fn configure(&self, sink: &str, delivery: &str) {
        self.configure_as(&self.url(), sink, delivery);
    }

    /// The same with another address of the database.
    pub(crate) fn configure_as(&self, url: &str, sink: &str, delivery: &str) {
        let (state, kind) = (S::state_beside(url), S::KIND);
        let text = format!(
            "state: \"{state}\"
workflows:
  - id: orders
    source: {{ file: {{ path: orders.jsonl }} }}
    sink: {{ {kind}: {{ url: \"{url}\", table: orders, {sink} }} }}
    delivery: {{ {QUICK}, {delivery} }}
"
        );
        self.world.write("hapax.yaml", text);
    }

    /// Changes the configuration: `from` is in it.
    pub(crate) fn reconfigure(&self, from: &str, to: &str) {
        let text = self.world.read("hapax.yaml");
        assert!(text.contains(from), "{text}");
        self.world.write("hapax.yaml", text.replace(from, to));
    }

    /// Puts the state store elsewhere.
    pub(crate) fn keep_state_in(&self, place: &str) {
        let text = self.world.read("hapax.yaml");
        let (_, rest) = text.split_once('\n').expect("lines");
        self.world.write("hapax.yaml", format!("state: {place}\n{rest}"));
    }

    /// The database's address, as the server's superuser.
    pub(crate) fn url(&self) -> String {
        self.url_of(self.login())
    }

    /// The database's address, as `user`, perhaps with a password behind a colon.
    pub(crate) fn url_of(&self, user: &str) -> String {
        format!("{}://{user}@{}/{}", S::KIND, self.server_address(), self.database)
    }

    /// The database's address behind another port of this machine.
    pub(crate) fn url_at(&self, port: u16) -> String {
        format!("{}://{}@127.0.0.1:{port}/{}", S::KIND, self.login(), self.database)
    }

    fn login(&self) -> &str {
        self.address.split_once("://").and_then(|(_, rest)| rest.split_once('@')).expect("a user").0
    }

    /// Host and port of the server.
    pub(crate) fn server_address(&self) -> &str {
        let (_, rest) = self.address.split_once('@').expect("a user");
        rest.split(['/', '?']).next().expect("a host")
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

    fn client(&self) -> Client<S> {
        Client::connect(&self.url()).expect("the test server answers")
    }

    /// Runs statements in the database.
    pub(crate) fn sql(&self, statements: &str) {
        self.client().run(statements).expect("the statements are right");
    }

    /// One value out of the database, as text; empty for NULL and for no row.
    pub(crate) fn ask(&self, query: &str) -> String {
        self.client().ask(query).expect("the query is right").unwrap_or_default()
    }

    /// A session of the test's own that holds a transaction with these statements open.
    pub(crate) fn holding(&self, statements: &str) -> Client<S> {
        let mut client = self.client();
        client.run(&format!("BEGIN; {statements}")).expect("the statements are right");
        client
    }

    /// Rows of table `orders`.
    pub(crate) fn rows(&self) -> u64 {
        self.ask("SELECT count(*) FROM orders").parse().expect("a number")
    }

    /// `id:amount` of every row, in order.
    pub(crate) fn amounts(&self) -> String {
        let pairs = S::in_one_line("concat(id, ':', CASE WHEN amount IS NULL THEN '-' ELSE concat(amount) END)", "id");
        self.ask(&format!("SELECT {pairs} FROM orders"))
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

impl<S: Server> Drop for Shop<S> {
    fn drop(&mut self) {
        let [_, dropped] = S::made_and_dropped(&self.database);
        // A server of the test's own may be gone by now, and its databases with it.
        Client::<S>::connect(&self.address).and_then(|mut client| client.run(&dropped)).ok();
    }
}

/// A session of the test's own, and what drives it.
pub(crate) struct Client<S: Server> {
    session: S::Session,
    runtime: Runtime,
}

impl<S: Server> Client<S> {
    fn connect(url: &str) -> Result<Self, String> {
        // A thread of its own: a session that only holds a lock must answer the server too.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let session = runtime.block_on(S::connect(url))?;
        Ok(Self { session, runtime })
    }

    pub(crate) fn run(&mut self, statements: &str) -> Result<(), String> {
        self.runtime.block_on(S::execute(&mut self.session, statements))
    }

    fn ask(&mut self, query: &str) -> Result<Option<String>, String> {
        self.runtime.block_on(S::first(&mut self.session, query))
    }

    /// How `hapax stuck` names it.
    pub(crate) fn name(&self) -> String {
        S::name_of(&self.session)
    }
}
