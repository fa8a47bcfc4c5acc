//! A folder of its own for each test: a configuration, an input file, a database, and the program to run there.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::FromSql;
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test gives up on it; far more than it needs on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Quick epochs and retries, so that tests need not wait.
const QUICK: &str = "epoch: { interval: 20ms }, lease: 2s, retries: { backoffMs: [50], giveUpAfter: 300ms }";
/// The strongest guarantee, for rows with a key.
pub(crate) const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }";
/// The same, with any number of dead letters.
#[cfg(any(feature = "http", feature = "mysql", feature = "postgres"))]
pub(crate) const FORGIVING: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }, maxRejects: 100%";
/// A table with a key.
pub(crate) const ORDERS: &str = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)";

/// A fresh folder.
pub(crate) struct World {
    folder: TempDir,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A program that still runs; it is killed when the test ends.
pub(crate) struct Worker {
    child: Child,
    log: PathBuf,
}

/// An input line.
pub(crate) fn order(id: i64, amount: i64) -> String {
    format!("{{\"id\":{id},\"customer\":\"ann\",\"amount\":{amount}}}\n")
}

/// Input lines with the ids of `range`.
pub(crate) fn orders(range: std::ops::RangeInclusive<i64>) -> String {
    range.fold(String::new(), |mut lines, id| {
        lines.push_str(&order(id, id * 10));
        lines
    })
}

/// Waits until `condition` holds.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl World {
    /// An empty folder.
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for the test") }
    }

    /// Workflow `orders` from `orders.jsonl` into table `orders` of `shop.db`; `sink` and `delivery` add fields.
    pub(crate) fn shop(sink: &str, delivery: &str) -> Self {
        let world = Self::empty();
        world.sql(ORDERS);
        world.configure("orders", sink, delivery);
        world
    }

    /// Writes the configuration of [`World::shop`] with another id.
    pub(crate) fn configure(&self, id: &str, sink: &str, delivery: &str) {
        self.write(
            "hapax.yaml",
            format!(
                "workflows:
  - id: {id}
    source: {{ file: {{ path: orders.jsonl }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, {sink} }} }}
    delivery: {{ {QUICK}, {delivery} }}
"
            ),
        );
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("the test can write");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("the test can read")
    }

    pub(crate) fn append(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let mut file = fs::File::options().append(true).create(true).open(self.path(name)).expect("the test can open");
        file.write_all(bytes.as_ref()).expect("the test can append");
    }

    /// A connection of the test's own.
    pub(crate) fn database(&self, name: &str) -> Connection {
        let connection = Connection::open(self.path(name)).expect("a database");
        connection.busy_timeout(PATIENCE).expect("a timeout");
        connection
    }

    /// Runs statements on `shop.db`.
    pub(crate) fn sql(&self, statements: &str) {
        self.database("shop.db").execute_batch(statements).expect("the statements are right");
    }

    /// One value out of `shop.db`.
    pub(crate) fn ask<T: FromSql>(&self, query: &str) -> T {
        self.ask_of("shop.db", query)
    }

    /// One value out of a database.
    pub(crate) fn ask_of<T: FromSql>(&self, database: &str, query: &str) -> T {
        self.database(database).query_row(query, [], |row| row.get(0)).expect("the query has an answer")
    }

    /// Rows of table `orders`.
    pub(crate) fn rows(&self) -> i64 {
        self.ask("SELECT count(*) FROM orders")
    }

    /// `id:amount` of every row, in order.
    pub(crate) fn amounts(&self) -> String {
        self.ask(
            "SELECT coalesce(group_concat(id || ':' || coalesce(amount, '-'), ' '), '') FROM (SELECT * FROM orders ORDER BY id, amount)",
        )
    }

    /// Runs the program to its end.
    pub(crate) fn hapax(&self, arguments: &[&str]) -> Answer {
        self.hapax_with(arguments, &[])
    }

    /// The same with environment variables.
    pub(crate) fn hapax_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Answer {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        let Output { status, stdout, stderr } = command.output().expect("the program starts");
        let answer = Answer {
            code: status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&stdout).into_owned(),
            err: String::from_utf8_lossy(&stderr).into_owned(),
        };
        assert!(!answer.err.contains("panicked"), "the program panicked: {answer}");
        answer
    }

    /// Runs the program to its end with `input` on its standard input.
    #[cfg(feature = "broker")]
    pub(crate) fn hapax_fed(&self, arguments: &[&str], input: &str) -> Answer {
        self.write("stdin", input);
        let file = fs::File::open(self.path("stdin")).expect("the test can open");
        let Output { status, stdout, stderr } =
            self.command(arguments).stdin(file).output().expect("the program starts");
        Answer {
            code: status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&stdout).into_owned(),
            err: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    /// Runs the program with a standard output that nobody reads; its exit code and what it said on standard error.
    pub(crate) fn hapax_unread(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.command(arguments);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let Output { status, stderr, .. } = command.stdout(writer).output().expect("the program starts");
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    }

    /// Starts the program and leaves it running; its log goes to the file `name`.
    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> Worker {
        let log = self.path(name);
        let file = fs::File::create(&log).expect("a log");
        let out = file.try_clone().expect("a log");
        let child = self.command(arguments).stdout(out).stderr(file).spawn().expect("the program starts");
        Worker { child, log }
    }

    /// Starts the program by a shell, which finds it as `$0`; its log goes to the file `name`.
    pub(crate) fn start_by_shell(&self, name: &str, script: &str) -> Worker {
        let log = self.path(name);
        let file = fs::File::create(&log).expect("a log");
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_hapax")]).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("a log")).stderr(file).env_remove("HAPAX_LOG");
        Worker { child: command.spawn().expect("the shell starts"), log }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null()).env_remove("HAPAX_LOG");
        command
    }

    /// `hapax status --json`, with every ledger checked: what was read is delivered, filtered or dead, and the letters
    /// are there.
    pub(crate) fn status(&self) -> Vec<Value> {
        let answer = self.hapax(&["status", "--json"]);
        answer.exits(0);
        let deliveries = answer.json()["deliveries"].as_array().expect("a list").clone();
        for delivery in &deliveries {
            let Some(progress) = delivery["progress"].as_object() else { continue };
            let sum = ["delivered", "filtered", "dead"].map(|name| number(&progress[name])).iter().sum::<u64>();
            assert_eq!(number(&progress["read"]), sum, "the ledger adds up: {delivery:#}");
            assert_eq!(progress["addsUp"], true, "{delivery:#}");
            let letters = ["dead", "replayed", "discarded"].map(|name| number(&delivery["letters"][name]));
            assert_eq!(number(&progress["dead"]), letters.iter().sum::<u64>(), "each has its letter: {delivery:#}");
        }
        deliveries
    }

    /// Nothing is lost: of `lines` read, each was delivered or is a dead letter.
    pub(crate) fn accounts_for(&self, lines: u64, dead: u64) {
        let deliveries = self.status();
        assert_eq!(deliveries.len(), 1, "one delivery: {deliveries:#?}");
        let progress = &deliveries[0]["progress"];
        assert_eq!(number(&progress["read"]), lines, "all lines were read: {progress:#}");
        assert_eq!(number(&progress["delivered"]), lines - dead, "{progress:#}");
        assert_eq!(number(&progress["dead"]), dead, "{progress:#}");
    }

    /// Code and message of every dead letter, a line each, oldest first.
    pub(crate) fn letters(&self) -> String {
        let connection = self.database("shop.db");
        let query = "SELECT code, message FROM hapax_dead_letters ORDER BY id";
        let mut statement = connection.prepare(query).expect("the table of letters");
        let mut letters = String::new();
        let mut rows = statement.query([]).expect("letters");
        while let Some(row) = rows.next().expect("a letter") {
            let (code, message): (String, String) = (row.get(0).expect("a code"), row.get(1).expect("a message"));
            writeln!(letters, "{code} {message}").expect("a line");
        }
        letters
    }
}

/// A whole number out of an answer.
pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number, not {value}"))
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n-- standard output\n{}\n-- standard error\n{}", self.code, self.out, self.err)
    }
}

impl Answer {
    /// It ended with this code.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{self}");
        self
    }

    /// It said all of this, wherever.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.out.contains(word) || self.err.contains(word), "it does not say {word:?}: {self}");
        }
        self
    }

    /// It said none of this.
    #[track_caller]
    pub(crate) fn keeps_silent_about(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(!self.out.contains(word) && !self.err.contains(word), "it says {word:?}: {self}");
        }
        self
    }

    /// Its standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("no JSON ({error}): {self}"))
    }
}

impl Worker {
    /// Everything it has said so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it has said `words`.
    pub(crate) fn until_it_says(&self, words: &str) {
        self.until_it_says_one_of(&[words]);
    }

    /// Waits until it has said some of these.
    pub(crate) fn until_it_says_one_of(&self, choices: &[&str]) {
        let deadline = Instant::now() + PATIENCE;
        while !choices.iter().any(|words| self.said().contains(words)) {
            assert!(Instant::now() < deadline, "it never said {choices:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("it can be waited for").is_none()
    }

    /// The most memory that it had so far, in MiB; 0 once it has ended.
    pub(crate) fn peak_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
    }

    /// How many threads and open files it has.
    pub(crate) fn threads_and_files(&self) -> (usize, usize) {
        let count = |what: &str| fs::read_dir(format!("/proc/{}/{what}", self.child.id())).map_or(0, Iterator::count);
        (count("task"), count("fd"))
    }

    /// Its files may grow as far as the disk lets them.
    pub(crate) fn lift_file_size_limit(&self) {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let none = Rlimit { current: None, maximum: None };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Fsize, none).expect("the limit can be lifted");
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Asks it to read its configuration again.
    pub(crate) fn hang_up(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).expect("the signal is sent");
    }

    /// Waits for its end; its exit code and everything it said.
    pub(crate) fn ends(mut self) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return Answer { code: status.code().unwrap_or(-1), out: String::new(), err: self.said() };
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Renames a file, as a rotation does.
pub(crate) fn rename(from: &Path, to: &Path) {
    fs::rename(from, to).expect("the test can rename");
}
