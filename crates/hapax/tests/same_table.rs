//! Two ways to one table: progress beside the rows in one transaction, and progress elsewhere with rows written by key.
//! From the same input both must leave the same rows and the same letters, whenever their workers are killed.

use std::fmt::Write as _;
use std::time::Duration;

use crate::world::World;

const EVENTS: u64 = 12_000;
const KILLS: u32 = 4;
/// Small epochs, so that a kill finds a worker in the middle of many.
const EPOCHS: &str = "epoch: { interval: 5ms, maxEvents: 80 }, lease: 1s, maxRejects: 100%";

/// One way to write the table.
struct Way {
    name: &'static str,
    sink: &'static str,
    delivery: &'static str,
}

/// `update`: the last event of a key counts. `newer`: the one with the highest version.
const WAYS: [[Way; 2]; 2] = [
    [
        Way {
            name: "update in one transaction",
            sink: "onConflict: update, deleteWhen: '.op == \"d\"'",
            delivery: "guarantee: exactly-once, deduplication: { keyFields: [id] }",
        },
        Way {
            name: "update by key",
            sink: "onConflict: update, deleteWhen: '.op == \"d\"', progress: state, progressInterval: 100ms",
            delivery: "guarantee: idempotent-keys, deduplication: { keyFields: [id] }, conditions: [one-worker]",
        },
    ],
    [
        Way {
            name: "newer in one transaction",
            sink: "onConflict: newer, versionColumn: version",
            delivery: "guarantee: exactly-once, deduplication: { keyFields: [id] }",
        },
        Way {
            name: "newer by key",
            sink: "onConflict: newer, versionColumn: version, progress: state, progressInterval: 100ms",
            delivery: "guarantee: idempotent-keys, deduplication: { keyFields: [id] }, conditions: [one-worker]",
        },
    ],
];

/// Numbers that look random and are the same every time.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Keys that come again, updates, deletes, versions that go back, lines that are no JSON, values that no row may have.
fn input(seed: u64) -> String {
    let mut random = Seeded(seed);
    (0..EVENTS).fold(String::new(), |mut lines, n| {
        let (id, version) = (random.below(900), n.saturating_sub(random.below(50)) + 1);
        match random.below(100) {
            0 => lines.push_str("{\"id\":\n"),
            1 => writeln!(lines, r#"{{"id":{id},"customer":"bad","amount":-1,"version":{version},"op":"u"}}"#)
                .expect("text"),
            2..6 => writeln!(lines, r#"{{"id":{id},"customer":"gone","amount":0,"version":{version},"op":"d"}}"#)
                .expect("text"),
            _ => writeln!(lines, r#"{{"id":{id},"customer":"c{n}","amount":{n},"version":{version},"op":"u"}}"#)
                .expect("text"),
        }
        lines
    })
}

/// Delivers all of it, killing workers at moments that the seed chooses; how many were killed.
fn deliver_through_kills(world: &World, seed: u64) -> u32 {
    let mut random = Seeded(seed);
    let mut killed = 0;
    loop {
        let mut worker = world.start(&format!("worker-{killed}.log"), &["run", "--once"]);
        if killed == KILLS {
            worker.ends().exits(0);
            return killed;
        }
        while !worker.said().contains("claimed") && worker.is_alive() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_micros(random.below(150_000)));
        if !worker.is_alive() {
            worker.ends().exits(0);
            return killed;
        }
        drop(worker);
        killed += 1;
    }
}

/// The usual settings of tests make room for those of this one.
fn keep_own_epochs(world: &World) {
    let yaml = world.read("hapax.yaml").replace("epoch: { interval: 20ms }, lease: 2s, ", "");
    world.write("hapax.yaml", yaml);
}

/// Delivers the input of this seed, through kills.
fn deliver(world: &World, way: &Way, seed: u64) {
    world.write("orders.jsonl", input(seed));
    let killed = deliver_through_kills(world, seed * 7);
    assert!(killed >= 2, "{}: workers are killed in the middle ({killed})", way.name);
}

/// The letters by code and cause, without what depends on the place and the time.
fn letters(world: &World) -> Vec<(String, u64, String)> {
    let answer = world.hapax(&["dlq", "list", "--json"]).exits(0).json();
    let mut causes: Vec<(String, u64, String)> = answer["causes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|cause| {
            let text = |name: &str| cause[name].as_str().expect("a text").to_owned();
            (text("code"), cause["count"].as_u64().expect("a count"), text("cause"))
        })
        .collect();
    causes.sort();
    causes
}

/// The table as text, and the causes of its letters with how many there are of each.
type Left = (String, Vec<(String, u64, String)>);

/// What two ways left, compared.
fn compare(database: &str, pair: &[Way; 2], left: &[Left]) {
    let [(one, one_letters), (other, other_letters)] = left else { panic!("two ways") };
    assert!(one.lines().count() > 300, "{database}: {} left {} rows", pair[0].name, one.lines().count());
    let differs = one.lines().zip(other.lines()).find(|(a, b)| a != b);
    assert_eq!(one, other, "{database}: {} against {}: first {differs:?}", pair[0].name, pair[1].name);
    assert_eq!(one_letters, other_letters, "{database}: {} against {}", pair[0].name, pair[1].name);
    assert!(
        one_letters.iter().map(|(_, count, _)| count).sum::<u64>() > 50,
        "{database}: poison dies: {one_letters:?}"
    );
}

/// Goal: idempotent and transactional delivery leave the same table and the same letters. Method: the same file of
/// repeated keys, updates, deletes and poison, workers killed at seeded moments, both tables dumped; `update` and `newer`.
#[test]
fn both_ways_leave_the_same_table_in_sqlite() {
    for (seed, pair) in (1..).zip(&WAYS) {
        let mut left = Vec::new();
        for way in pair {
            let world = World::empty();
            world.sql(
                "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER CHECK (amount >= 0), \
                 version INTEGER NOT NULL, op TEXT)",
            );
            world.configure("orders", way.sink, &format!("{}, {EPOCHS}", way.delivery));
            keep_own_epochs(&world);
            deliver(&world, way, seed);
            let dump = "SELECT group_concat(id || ' ' || customer || ' ' || amount || ' ' || version || ' ' || op, char(10)) \
                        FROM (SELECT * FROM orders ORDER BY id)";
            left.push((world.ask::<String>(dump), letters(&world)));
        }
        compare("SQLite", pair, &left);
    }
}

/// The same on a server.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn both_ways_leave_the_same_table_on<S: crate::servers::Server>(first_seed: u64) {
    for (seed, pair) in (first_seed..).zip(&WAYS) {
        let mut left = Vec::new();
        for way in pair {
            let shop = crate::servers::Shop::<S>::empty();
            shop.sql(
                "CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(40), amount integer CHECK (amount >= 0), \
                 version bigint NOT NULL, op varchar(1))",
            );
            shop.configure(way.sink, &format!("{}, {EPOCHS}", way.delivery));
            keep_own_epochs(&shop.world);
            shop.hapax(&["setup", "--yes"]).exits(0);
            deliver(&shop.world, way, seed);
            let rows = S::in_one_line("concat_ws(',', id, customer, amount, version, op)", "id");
            let dump = shop.ask(&format!("SELECT {rows} FROM orders")).replace(' ', "\n");
            left.push((dump, letters(&shop.world)));
        }
        compare(S::KIND, pair, &left);
    }
}

/// The same on PostgreSQL.
#[cfg(feature = "postgres")]
#[test]
fn both_ways_leave_the_same_table_in_postgresql() {
    both_ways_leave_the_same_table_on::<crate::postgres::world::Postgres>(3);
}

/// The same on MariaDB.
#[cfg(feature = "mysql")]
#[test]
fn both_ways_leave_the_same_table_in_mariadb() {
    both_ways_leave_the_same_table_on::<crate::mysql::world::Mysql>(5);
}
