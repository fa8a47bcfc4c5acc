//! Trouble in mass: letters by the ten thousand, poison without end, a full disk, a hundred workflows in one process.
//!
//! `cargo xtask trouble` runs the first two with a million letters, on an optimised build; here it is a slice.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::world::{Worker, World, number, orders, until};

/// How many letters there are, unless `HAPAX_TROUBLE_LETTERS` says otherwise.
const LETTERS: u64 = 20_000;
/// Every so many inputs one is refused by the table itself; all others are refused before.
const REFUSED_BY_TABLE: u64 = 500;

fn letters_wanted() -> u64 {
    std::env::var("HAPAX_TROUBLE_LETTERS").ok().map_or(LETTERS, |text| text.parse().expect("a number of letters"))
}

/// A database with a table that refuses some rows, and a workflow that refuses all others.
enum Target {
    Sqlite(World),
    #[cfg(feature = "postgres")]
    Postgres(Box<crate::postgres::world::Shop>),
}

const STRICT: &str = "onConflict: append, columns: strict";
const DELIVERY: &str = "guarantee: exactly-once, maxRejects: 100%";

impl Target {
    fn sqlite() -> Self {
        let world = World::empty();
        world.sql("CREATE TABLE orders (id INTEGER, amount INTEGER CHECK (amount >= 0))");
        world.configure("orders", STRICT, DELIVERY);
        Self::Sqlite(world)
    }

    #[cfg(feature = "postgres")]
    fn postgres() -> Self {
        let shop = crate::postgres::world::Shop::empty();
        shop.sql("CREATE TABLE orders (id bigint, amount integer CONSTRAINT positive CHECK (amount >= 0))");
        shop.configure(STRICT, DELIVERY);
        shop.hapax(&["setup", "--yes"]).exits(0);
        Self::Postgres(Box::new(shop))
    }

    fn world(&self) -> &World {
        match self {
            Self::Sqlite(world) => world,
            #[cfg(feature = "postgres")]
            Self::Postgres(shop) => &shop.world,
        }
    }

    /// Both causes are gone: the table takes every amount, and a field without a column is left out.
    fn mend(&self) {
        let yaml = self.world().read("hapax.yaml").replace(", columns: strict", "");
        self.world().write("hapax.yaml", yaml);
        match self {
            Self::Sqlite(world) => world.sql(
                "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, ' CHECK (amount >= 0)', '') \
                 WHERE name = 'orders'; PRAGMA writable_schema = RESET",
            ),
            #[cfg(feature = "postgres")]
            Self::Postgres(shop) => shop.sql("ALTER TABLE orders DROP CONSTRAINT positive"),
        }
    }

    fn count(&self, what: &str) -> u64 {
        let query = format!("SELECT count({what}) FROM orders");
        match self {
            Self::Sqlite(world) => world.ask::<i64>(&query).try_into().expect("a count"),
            #[cfg(feature = "postgres")]
            Self::Postgres(shop) => shop.ask(&query).parse().expect("a count"),
        }
    }

    /// How many letters are dead, and how many replayed.
    fn letters(&self) -> (u64, u64) {
        let letters = self.world().status()[0]["letters"].clone();
        (number(&letters["dead"]), number(&letters["replayed"]))
    }
}

/// Runs the program to its end; how long it took, and the most memory that it had, in MiB.
fn measured(world: &World, what: &str, arguments: &[&str]) -> (String, u64) {
    let began = Instant::now();
    let mut worker = world.start("measured.log", arguments);
    let mut peak = 0;
    while worker.is_alive() {
        peak = peak.max(worker.peak_mib());
        std::thread::sleep(Duration::from_millis(5));
    }
    let answer = worker.ends();
    answer.exits(0);
    println!("{what}: {:.1} s, {peak} MiB", began.elapsed().as_secs_f64());
    (answer.err, peak)
}

/// The whole story: everything dies, is grouped, replayed at a rate, killed in the middle, resumed, counted.
fn all_die_and_all_are_replayed(target: &Target, name: &str) {
    let (wanted, world) = (letters_wanted(), target.world());
    let refused_by_table = wanted / REFUSED_BY_TABLE;
    let mut lines = String::new();
    for id in 1..=wanted {
        if id % REFUSED_BY_TABLE == 0 {
            writeln!(lines, "{{\"id\":{id},\"amount\":-1}}").expect("text");
        } else {
            writeln!(lines, "{{\"id\":{id},\"amount\":{id},\"note\":\"no column takes this\"}}").expect("text");
        }
    }
    world.write("orders.jsonl", lines);
    measured(world, &format!("{name}: {wanted} letters written"), &["run", "--once"]);
    world.accounts_for(wanted, wanted);
    assert_eq!(target.count("*"), 0);

    let (listed, list_peak) = measured(world, &format!("{name}: grouped by cause"), &["dlq", "list"]);
    assert!(listed.contains(&(wanted - refused_by_table).to_string()), "{listed}");
    let refused = refused_by_table.to_string();
    let is_theirs = |line: &str| line.split_whitespace().next() == Some(&refused) && line.contains(" HX20");
    assert!(listed.lines().any(is_theirs), "{listed}");

    target.mend();
    let rate = format!("{}/s", (wanted / 8).clamp(1, 25_000));
    let replaying = world.start("replay.log", &["dlq", "replay", "--yes", "--rate", &rate]);
    replaying.until_it_says(&format!("of {wanted} letters, "));
    replaying.until_it_says(" left");
    assert!(replaying.said().contains(&format!("{wanted} letter(s): safe")), "{}", replaying.said());
    drop(replaying);
    let (dead, replayed) = target.letters();
    assert!(replayed > 0 && dead > 0, "killed in the middle: {replayed} replayed, {dead} dead");
    assert_eq!((dead + replayed, target.count("*")), (wanted, replayed), "a row and its mark are one");

    let (resumed, replay_peak) =
        measured(world, &format!("{name}: {dead} replayed after the kill"), &["dlq", "replay", "--yes"]);
    assert!(resumed.contains(&format!("{dead} replayed, 0 taken by another meanwhile, 0 refused again")), "{resumed}");
    assert_eq!(target.letters(), (0, wanted));
    assert_eq!((target.count("*"), target.count("DISTINCT id")), (wanted, wanted), "exactly once each");
    world.hapax(&["dlq", "list"]).exits(0).says(&["No dead letters"]);
    assert!(list_peak < 128 && replay_peak < 128, "memory is flat: {list_peak} and {replay_peak} MiB");
}

/// Goal: letters in mass are listed, replayed at a rate with progress shown, and resumed after a kill, each once. Method:
/// inputs that all die, of two causes; both mended; the replay killed in the middle and run again.
#[test]
fn letters_in_mass_are_replayed_once_each_into_sqlite() {
    all_die_and_all_are_replayed(&Target::sqlite(), "SQLite");
}

/// The same on PostgreSQL.
#[cfg(feature = "postgres")]
#[test]
fn letters_in_mass_are_replayed_once_each_into_postgresql() {
    all_die_and_all_are_replayed(&Target::postgres(), "PostgreSQL");
}

/// Goal: letters in mass are discarded, and stay. Method: all die, discard, count.
#[test]
fn letters_in_mass_are_discarded() {
    let target = Target::sqlite();
    let world = target.world();
    let lines: String = (1..=3500).map(|id| format!("{{\"id\":{id},\"note\":1}}\n")).collect();
    world.write("orders.jsonl", lines);
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["dlq", "discard", "--yes"]).exits(0).says(&["3500 letter(s) discarded"]);
    assert_eq!(number(&world.status()[0]["letters"]["discarded"]), 3500);
}

/// Goal: a wrong rate is told, and nothing is replayed. Method: words that are no rate.
#[test]
fn a_rate_that_is_none_is_told() {
    let world = World::shop("onConflict: append", "guarantee: exactly-once");
    for rate in ["fast", "0/s", "5/y", ""] {
        world.hapax(&["dlq", "replay", "--yes", "--rate", rate]).exits(2).says(&["HX5001", "500/s"]);
    }
}

/// Goal: poison without end stops the workflow at the exact input, and nothing of its epoch is written. Method: two good
/// epochs, then only poison; the share is passed at the 23rd of 223.
#[test]
fn mass_poison_stops_at_the_exact_input() {
    let delivery = "guarantee: exactly-once, deduplication: { keyFields: [id] }, maxRejects: 10%";
    let world = World::shop("", delivery);
    let yaml = world.read("hapax.yaml").replace("epoch: { interval: 20ms }", "epoch: { interval: 1h, maxEvents: 100 }");
    world.write("hapax.yaml", yaml);
    world.write("orders.jsonl", format!("{}{}", orders(1..=200), "poison\n".repeat(100_000)));
    let good = orders(1..=200).len();
    let position = good + 22 * "poison\n".len();
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(1).says(&["HX4010", "23 of the last 223 inputs were rejected", &format!("at position {position}")]);
    assert_eq!(world.rows(), 200);
    world.accounts_for(200, 0);
    assert_eq!(world.letters(), "", "nothing of the epoch was written");
    let yaml = world.read("hapax.yaml").replace("maxRejects: 10%", "maxRejects: 100%");
    world.write("hapax.yaml", yaml);
    world.hapax(&["run", "--once"]).exits(0);
    world.accounts_for(100_200, 100_000);
}

/// A place that is too small for what comes, and can be made larger.
enum SmallDisk {
    /// A file system of its own.
    Mounted(std::path::PathBuf),
    /// Where nobody may mount: no file of the worker may grow beyond a limit.
    Limited,
}

impl SmallDisk {
    fn make(folder: &std::path::Path) -> Self {
        std::fs::create_dir_all(folder).expect("a folder");
        let mounted =
            std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(folder).output();
        match mounted {
            Ok(output) if output.status.success() => Self::Mounted(folder.to_owned()),
            Ok(_) | Err(_) => Self::Limited,
        }
    }

    fn start(&self, world: &World) -> Worker {
        match self {
            Self::Mounted(_) => world.start("worker.log", &["run"]),
            // 8 MiB, for the soft limit alone; the signal that would end the process is ignored, as it is by a service.
            Self::Limited => world.start_by_shell("worker.log", "trap '' XFSZ; ulimit -S -f 16384; exec \"$0\" run"),
        }
    }

    fn make_room(&self, worker: &Worker) {
        match self {
            Self::Mounted(folder) => {
                let grown = std::process::Command::new("mount").args(["-o", "remount,size=256m"]).arg(folder).status();
                assert!(grown.is_ok_and(|status| status.success()), "the file system can be made larger");
            }
            Self::Limited => worker.lift_file_size_limit(),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Self::Mounted(folder) = self {
            std::process::Command::new("umount").arg("-l").arg(folder).status().ok();
        }
    }
}

/// Goal: a full disk under the state store stops nothing for good and loses nothing. Method: positions and letters in a
/// state store on a disk that is too small for them; then room.
#[test]
fn a_full_disk_under_the_state_store_is_waited_out() {
    let world = World::shop(
        "onConflict: update, progress: state, progressInterval: 100ms",
        "guarantee: idempotent-keys, deduplication: { keyFields: [id] }, conditions: [one-worker], maxRejects: 100%",
    );
    let disk = SmallDisk::make(&world.path("small"));
    let yaml = world.read("hapax.yaml").replace("giveUpAfter: 300ms", "giveUpAfter: 1h");
    world.write("hapax.yaml", format!("state: \"sqlite://small/state.db\"\n{yaml}"));
    let poison = format!("no JSON {}\n", "x".repeat(4000));
    let mut worker = disk.start(&world);
    world.write("orders.jsonl", orders(1..=10));
    until("the first rows are there", || world.rows() == 10);
    world.append("orders.jsonl", format!("{}{}", poison.repeat(4000), orders(11..=20)));
    worker.until_it_says("HX4002");
    assert!(worker.is_alive(), "it waits: {}", worker.said());
    if matches!(disk, SmallDisk::Mounted(_)) {
        assert!(worker.said().contains("disk is full"), "{}", worker.said());
    }
    disk.make_room(&worker);
    until("the rest is delivered", || world.rows() == 20);
    worker.terminate();
    worker.ends().exits(0);
    world.accounts_for(4020, 4000);
    let listed = world.hapax(&["dlq", "list", "--json"]).exits(0).json();
    assert_eq!(number(&listed["causes"][0]["count"]), 4000, "each letter once: {listed:#}");
}

const WORKFLOWS: usize = 100;

/// Goal: a hundred workflows live in one process; one that fails disturbs no other; everything stays readable and bounded.
/// Method: a file and a database each, one table missing, lines appended while all run.
#[test]
fn a_hundred_workflows_share_one_process() {
    let world = World::empty();
    let mut yaml = String::from("http: { listen: \"127.0.0.1:0\" }\nworkflows:\n");
    for n in 0..WORKFLOWS {
        write!(
            yaml,
            "  - id: w{n}\n    source: {{ file: {{ path: in{n}.jsonl }} }}\n    sink: {{ sqlite: {{ path: w{n}.db, table: orders }} }}\n    \
             delivery: {{ guarantee: exactly-once, deduplication: {{ keyFields: [id] }}, retries: {{ backoffMs: [50] }} }}\n"
        )
        .expect("text");
        world.write(&format!("in{n}.jsonl"), orders(1..=20));
        let table = if n == 37 { "CREATE TABLE other (id INTEGER)" } else { crate::world::ORDERS };
        world.database(&format!("w{n}.db")).execute_batch(table).expect("a table");
    }
    world.write("hapax.yaml", yaml);
    let worker = world.start("worker.log", &["run"]);
    let delivered = |rows: i64| {
        let full =
            |n: &usize| *n == 37 || world.ask_of::<i64>(&format!("w{n}.db"), "SELECT count(*) FROM orders") == rows;
        (0..WORKFLOWS).filter(full).count() == WORKFLOWS
    };
    until("all but one have delivered", || delivered(20));
    for n in 0..WORKFLOWS {
        world.append(&format!("in{n}.jsonl"), orders(21..=30));
    }
    until("all but one go on", || delivered(30));
    assert!(worker.said().contains("w37/sqlite"), "the one that fails is named: {}", worker.said());
    let (threads, files) = worker.threads_and_files();
    // Six files each: three of the database, two of the source, one of the state store; and some of the process.
    assert!(threads < 540 && files < 6 * WORKFLOWS + 50, "{threads} threads, {files} open files");
    let status = world.status();
    assert_eq!(status.len(), WORKFLOWS);
    let stopped: Vec<&str> =
        status.iter().filter(|it| it["state"] == "stopped").filter_map(|it| it["workflow"].as_str()).collect();
    assert_eq!(stopped, ["w37"]);
    world.hapax(&["stuck"]).exits(1).says(&["w37"]);
    worker.terminate();
    worker.ends().exits(1);
}
