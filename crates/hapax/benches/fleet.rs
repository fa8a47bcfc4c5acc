//! A hundred workflows in one process: do they hold their rate, and what do they cost, busy and idle?
//!
//! `cargo xtask bench fleet`, or `cargo bench -p hapax --bench fleet -- --only sqlite --seconds 20`. Options: `--workflows`,
//! `--rate`, `--seconds`, `--only idle|sqlite|postgres`, `--folder` (a disk to write to), `--hapax` (another program).

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TABLE: &str = "CREATE TABLE orders (order_id BIGINT NOT NULL PRIMARY KEY, customer TEXT, amount_cents BIGINT, currency TEXT, \
                     status TEXT, version BIGINT, op TEXT, created_at TEXT)";
/// How long the first deliveries take to get under way is not measured as their rate.
const WARM_UP: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(120);

struct Options {
    workflows: usize,
    rate: u64,
    seconds: u64,
    only: Option<String>,
    folder: PathBuf,
    hapax: PathBuf,
}

impl Options {
    fn read() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let given = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)).cloned();
        let number = |name: &str, default: u64| given(name).map_or(default, |text| text.parse().expect("a number"));
        Self {
            workflows: usize::try_from(number("--workflows", 100)).expect("a small number"),
            rate: number("--rate", 1000),
            seconds: number("--seconds", 20),
            only: given("--only"),
            folder: given("--folder").map_or_else(std::env::temp_dir, PathBuf::from),
            hapax: given("--hapax").map_or_else(|| env!("CARGO_BIN_EXE_hapax").into(), PathBuf::from),
        }
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == part)
    }
}

/// A process that runs workflows, watched from outside.
struct Fleet {
    child: Child,
    address: String,
    folder: tempfile::TempDir,
    began: Instant,
}

/// What it costs at one moment.
struct Cost {
    memory_kib: u64,
    threads: u64,
    files: usize,
    /// Processor time so far.
    cpu: Duration,
}

impl Fleet {
    /// `part` writes source and sink of workflow `n` as YAML.
    fn start(options: &Options, folder: tempfile::TempDir, workflows: usize, part: impl Fn(usize) -> String) -> Self {
        let mut yaml = String::from("http: { listen: \"127.0.0.1:0\" }\nworkflows:\n");
        for n in 0..workflows {
            let delivery = "guarantee: exactly-once, deduplication: { keyFields: [order_id] }";
            writeln!(yaml, "  - {{ id: w{n}, {}, delivery: {{ {delivery} }} }}", part(n)).expect("text");
        }
        fs::write(folder.path().join("hapax.yaml"), yaml).expect("a configuration");
        run(options, folder.path(), &["setup", "--yes"]);
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        let began = Instant::now();
        let child = Command::new(&options.hapax)
            .arg("run")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the program starts");
        let mut fleet = Self { child, address: String::new(), folder, began };
        fleet.address = fleet.find_address();
        fleet
    }

    /// Where its pages are, as its log says.
    fn find_address(&mut self) -> String {
        loop {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            if let Some((_, rest)) = log.split_once("127.0.0.1:") {
                return format!("127.0.0.1:{}", rest.chars().take_while(char::is_ascii_digit).collect::<String>());
            }
            assert!(self.began.elapsed() < PATIENCE, "it never said where its pages are: {log}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The values of one metric, one for each workflow.
    fn metric(&self, name: &str) -> Vec<f64> {
        let mut stream = TcpStream::connect(&self.address).expect("its pages");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("a question");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("an answer");
        let is_meant = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{'));
        page.lines().filter(is_meant).filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect()
    }

    /// Waits until so many workflows have `name` above nothing; how long after the start.
    fn wait(&self, name: &str, workflows: usize) -> Duration {
        loop {
            if self.metric(name).iter().filter(|value| **value > 0.0).count() >= workflows {
                return self.began.elapsed();
            }
            assert!(self.began.elapsed() < PATIENCE, "not all workflows run");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn cost(&self) -> Cost {
        let place = |name: &str| format!("/proc/{}/{name}", self.child.id());
        let status = fs::read_to_string(place("status")).expect("it runs");
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
        };
        let stat = fs::read_to_string(place("stat")).expect("it runs");
        let fields: Vec<&str> = stat.rsplit_once(')').expect("its name").1.split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().expect("ticks")).sum();
        Cost {
            memory_kib: of("VmRSS:"),
            threads: of("Threads:"),
            files: fs::read_dir(place("fd")).map_or(0, Iterator::count),
            cpu: Duration::from_millis(ticks * 10),
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}

fn run(options: &Options, folder: &Path, arguments: &[&str]) {
    let done = Command::new(&options.hapax).args(arguments).current_dir(folder).output().expect("the program starts");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn folder(options: &Options) -> tempfile::TempDir {
    tempfile::tempdir_in(&options.folder).expect("a folder")
}

/// Workflows that follow empty files: what is paid for being there.
fn idle(options: &Options) {
    let of = |workflows: usize| {
        let folder = folder(options);
        for n in 0..workflows {
            fs::write(folder.path().join(format!("in{n}.jsonl")), "").expect("an input");
            sqlite_table(folder.path(), n);
        }
        let part = |n| {
            format!(
                "source: {{ file: {{ path: in{n}.jsonl }} }}, sink: {{ sqlite: {{ path: w{n}.db, table: orders }} }}"
            )
        };
        let fleet = Fleet::start(options, folder, workflows, part);
        let started = loop {
            let running = fleet.metric("hapax_delivery_state");
            if running.iter().sum::<f64>() as usize >= workflows && !running.is_empty() {
                break fleet.began.elapsed();
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        std::thread::sleep(WARM_UP);
        let before = fleet.cost();
        std::thread::sleep(Duration::from_secs(options.seconds.min(10)));
        (started, before, fleet.cost())
    };
    let (_, _, one) = of(1);
    let (started, before, many) = of(options.workflows + 1);
    let each = (many.memory_kib.saturating_sub(one.memory_kib)) as f64 / options.workflows as f64;
    let cpu = (many.cpu - before.cpu).as_secs_f64() / options.seconds.min(10) as f64;
    println!(
        "idle: {} MiB with 1 workflow, {} MiB with {}: {each:.0} KiB each; all there after {:.2} s; {:.1} % of a core; {} \
         threads, {} files",
        one.memory_kib / 1024,
        many.memory_kib / 1024,
        options.workflows + 1,
        started.as_secs_f64(),
        cpu * 100.0,
        many.threads,
        many.files
    );
}

fn sqlite_table(folder: &Path, n: usize) {
    let database = rusqlite::Connection::open(folder.join(format!("w{n}.db"))).expect("a database");
    database.execute_batch(TABLE).expect("a table");
}

/// Workflows that each generate so many events a second.
fn busy(options: &Options, name: &str, fleet: &Fleet) {
    let started = fleet.wait("hapax_inputs_delivered_total", options.workflows);
    std::thread::sleep(WARM_UP);
    let (before, cost_before, epochs_before) =
        (fleet.metric("hapax_inputs_delivered_total"), fleet.cost(), fleet.metric("hapax_epoch"));
    let began = Instant::now();
    std::thread::sleep(Duration::from_secs(options.seconds));
    let (after, cost, epochs) =
        (fleet.metric("hapax_inputs_delivered_total"), fleet.cost(), fleet.metric("hapax_epoch"));
    let seconds = began.elapsed().as_secs_f64();
    let mut rates: Vec<f64> = before.iter().zip(&after).map(|(before, after)| (after - before) / seconds).collect();
    rates.sort_by(f64::total_cmp);
    let total: f64 = rates.iter().sum();
    let commits = (epochs.iter().sum::<f64>() - epochs_before.iter().sum::<f64>()) / seconds;
    let worst = fleet.metric("hapax_delivery_latency_max_seconds").into_iter().fold(0.0, f64::max);
    println!(
        "{name}: {total:.0} events/s of {} wanted ({:.1} %); the slowest workflow {:.0}/s, the median {:.0}/s; {commits:.0} \
         commits/s; {:.0} % of a core, {:.1} µs per event; {} MiB, {} threads, {} files; first rows of all after {:.2} s; \
         longest from reading to commit {worst:.2} s",
        options.rate * options.workflows as u64,
        100.0 * total / (options.rate * options.workflows as u64) as f64,
        rates.first().copied().unwrap_or_default(),
        rates.get(rates.len() / 2).copied().unwrap_or_default(),
        (cost.cpu - cost_before.cpu).as_secs_f64() / seconds * 100.0,
        (cost.cpu - cost_before.cpu).as_secs_f64() * 1e6 / (total * seconds).max(1.0),
        cost.memory_kib / 1024,
        cost.threads,
        cost.files,
        started.as_secs_f64(),
    );
}

fn source(options: &Options, n: usize) -> String {
    format!("source: {{ generate: {{ seed: {n}, rate: {} }} }}", options.rate)
}

fn busy_sqlite(options: &Options) {
    let folder = folder(options);
    (0..options.workflows).for_each(|n| sqlite_table(folder.path(), n));
    let part = |n| format!("{}, sink: {{ sqlite: {{ path: w{n}.db, table: orders }} }}", source(options, n));
    busy(options, "SQLite, a file each", &Fleet::start(options, folder, options.workflows, part));
}

fn busy_postgres(options: &Options) {
    let server = hapax_services::Postgres::builder().start().expect("a PostgreSQL server");
    for n in 0..options.workflows {
        server.query(&TABLE.replace("orders", &format!("orders_{n}"))).expect("a table");
    }
    let url = server.url("postgres");
    let part = |n| format!("{}, sink: {{ postgres: {{ url: \"{url}\", table: orders_{n} }} }}", source(options, n));
    busy(options, "PostgreSQL, a table each", &Fleet::start(options, folder(options), options.workflows, part));
}

fn main() {
    let options = Options::read();
    println!("{} workflows, {} events/s each, {} s", options.workflows, options.rate, options.seconds);
    if options.wants("idle") {
        idle(&options);
    }
    if options.wants("sqlite") {
        busy_sqlite(&options);
    }
    if options.wants("postgres") {
        busy_postgres(&options);
    }
}
