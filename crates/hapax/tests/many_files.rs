//! Many files as one source: a lane each, found while running, read once whatever happens to their names.

use std::fs;
use std::time::{Duration, Instant};

use crate::world::{World, number, rename, until};

const QUICK: &str = "epoch: { interval: 20ms }, lease: 2s, retries: { backoffMs: [50], giveUpAfter: 300ms }";

/// Workflow `orders` from all files of a pattern, appended to table `orders`: a file that is read twice is seen.
fn shop(pattern: &str) -> World {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER, amount INTEGER)");
    fs::create_dir(world.path("in")).expect("a folder");
    world.write(
        "hapax.yaml",
        format!(
            "workflows:
  - id: orders
    source: {{ file: {{ path: '{pattern}' }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, onConflict: append }} }}
    delivery: {{ guarantee: exactly-once, {QUICK} }}
"
        ),
    );
    world
}

fn csv(ids: std::ops::RangeInclusive<i64>) -> String {
    ids.fold("id,amount\n".to_owned(), |text, id| text + &format!("{id},{}\n", id * 10))
}

fn lines(ids: std::ops::RangeInclusive<i64>) -> String {
    ids.fold(String::new(), |text, id| text + &format!("{{\"id\":{id},\"amount\":1}}\n"))
}

fn ids(world: &World) -> String {
    world.ask("SELECT coalesce(group_concat(id, ' '), '') FROM (SELECT id FROM orders ORDER BY id)")
}

/// Goal: every file is a lane, read once. Method: run, run again, add a file, let one grow, remove one that was read.
#[test]
fn every_file_of_a_pattern_is_read_once() {
    let world = shop("in/*.csv");
    world.hapax(&["run", "--once"]).exits(0);
    world.write("in/a.csv", csv(1..=2));
    world.write("in/b.csv", csv(3..=4));
    world.hapax(&["check"]).exits(0).says(&["in/*.csv, 2 lane(s) now", "order holds within a lane, not between lanes"]);
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0).says(&["read_before=2"]);
    assert_eq!(ids(&world), "1 2 3 4");
    world.write("in/c.csv", csv(5..=5));
    world.append("in/a.csv", "6,60\n");
    fs::remove_file(world.path("in/b.csv")).expect("gone");
    let answer = world.hapax(&["run", "--once", "--json"]);
    assert_eq!(answer.exits(0).json()["deliveries"].as_array().map(Vec::len), Some(2), "{answer}");
    assert_eq!(ids(&world), "1 2 3 4 5 6");
    let lanes: Vec<String> = world.status().iter().map(|d| d["lane"].as_str().unwrap_or_default().into()).collect();
    assert_eq!(lanes, ["in/a.csv", "in/b.csv", "in/c.csv"]);
    world.hapax(&["status"]).exits(0).says(&["3 lane(s) read to their end: 6 read, 6 delivered"]);
    world.hapax(&["stuck"]).exits(0);
    world.hapax(&["tap", "orders", "--lane", "in/c.csv"]).exits(0).says(&["5,50"]);
    world.hapax(&["reset", "orders", "--lane", "in/c.csv", "--to", "earliest", "--yes"]).exits(0).says(&["in/c.csv"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4 5 5 6", "one lane alone was sent back");
}

/// Goal: a file whose progress was kept elsewhere is not read again because new ones beside it may be. Method: read one with
/// its progress in the state store, add some, keep progress in the target: whichever starts first looks for all.
#[test]
fn a_file_whose_progress_was_elsewhere_is_not_read_again() {
    let world = shop("in/*.csv");
    let configured = world.read("hapax.yaml");
    let in_state = configured.replace("onConflict: append", "onConflict: append, progress: state");
    world.write("hapax.yaml", in_state.replace("exactly-once", "at-least-once"));
    world.write("in/b.csv", csv(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    world.write("hapax.yaml", &configured);
    ["a", "c", "d", "e"]
        .into_iter()
        .zip(3..)
        .for_each(|(name, id)| world.write(&format!("in/{name}.csv"), csv(id..=id)));
    let refused = world.hapax(&["run", "--once"]);
    refused.exits(5).says(&["HX5021", "in/b.csv has no progress", "`hapax reset orders --lane \"in/b.csv\" --to 20`"]);
    assert_eq!(ids(&world), "1 2 3 4 5 6", "the new files are read, the old one is not");
}

/// Goal: files that appear while it runs become lanes, and files that were read may grow. Method: a live worker.
#[test]
fn files_that_appear_later_are_found() {
    let world = shop("in/**/*.csv");
    let worker = world.start("worker.log", &["run"]);
    world.write("in/a.csv", csv(1..=2));
    until("the first file is read", || world.rows() == 2);
    fs::create_dir(world.path("in/deep")).expect("a folder");
    world.write("in/deep/b.csv", csv(3..=3));
    until("the second file is read", || world.rows() == 3);
    world.append("in/a.csv", "4,40\n");
    until("the first file is read on", || world.rows() == 4);
    for n in 10..30 {
        world.write(&format!("in/{n}.csv"), csv(n..=n));
    }
    until("all are read", || world.rows() == 24);
    world.append("in/a.csv", "5,50\n");
    until("a file that made room is read on", || world.rows() == 25);
    worker.terminate();
    worker.ends().exits(0);
    assert_eq!(world.ask::<i64>("SELECT count(DISTINCT id) FROM orders"), 25);
}

/// Goal: a rotation inside the pattern delivers nothing twice and loses nothing. Method: rotate thrice under a worker and
/// once without one, with kills between.
#[test]
fn a_rotation_inside_a_pattern_is_read_once() {
    let world = shop("in/app.log*");
    let rotate = || {
        for n in (0..4).rev() {
            let from = if n == 0 { "in/app.log".to_owned() } else { format!("in/app.log.{n}") };
            if world.path(&from).exists() {
                rename(&world.path(&from), &world.path(&format!("in/app.log.{}", n + 1)));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    world.write("in/app.log", lines(1..=2));
    let worker = world.start("worker.log", &["run"]);
    until("the first is read", || world.rows() == 2);
    for n in [3, 5] {
        world.append("in/app.log", lines(n..=n));
        rotate();
        world.write("in/app.log", lines(n + 1..=n + 1));
        until("the next is read", || world.rows() == n + 1);
    }
    drop(worker);
    world.append("in/app.log", lines(7..=7));
    rotate();
    world.write("in/app.log", lines(8..=8));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4 5 6 7 8");
    let mut lanes: Vec<String> = world.status().iter().map(|d| d["lane"].as_str().unwrap_or_default().into()).collect();
    lanes.sort();
    assert_eq!(lanes, ["in/app.log"], "a rotation adds no lane");
    let said = "in/app.log is app.log.3 → app.log.2 → app.log.1 → app.log";
    world.hapax(&["check"]).exits(0).says(&["1 lane(s) now", said]);
    let progress: String = world.ask("SELECT incarnation FROM hapax_progress");
    assert!(progress.starts_with("4:"), "the files are numbered in one row: {progress}");
}

/// Goal: a file that vanished unread stops its own lane and no other. Method: cut one in the middle, take it away.
#[test]
fn a_file_that_vanished_unread_stops_its_lane_only() {
    let world = shop("in/*.csv");
    world.write("in/a.csv", csv(1..=2) + "3,\"half");
    world.hapax(&["run", "--once"]).exits(0).says(&["HX3003"]);
    fs::remove_file(world.path("in/a.csv")).expect("gone");
    world.write("in/b.csv", csv(4..=4));
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(5).says(&["HX3002", "in/a.csv", "the file is gone, and was read only up to byte"]);
    assert_eq!(ids(&world), "1 2 4");
    world.hapax(&["reset", "orders", "--lane", "in/a.csv", "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
}

/// Goal: hundreds of files are read, and a run that finds nothing new takes no longer than the first: what was read is passed over
/// without being opened for delivery. Method: 300 files, twice; the times beside each other, not against a clock.
#[test]
fn hundreds_of_files_are_read() {
    let world = shop("in/*.csv");
    for n in 1..=300 {
        world.write(&format!("in/{n:04}.csv"), csv(n..=n));
    }
    let started = Instant::now();
    let answer = world.hapax(&["run", "--once", "--json"]);
    let spent = started.elapsed();
    answer.exits(0);
    assert_eq!((world.rows(), world.ask::<i64>("SELECT count(DISTINCT id) FROM orders")), (300, 300));
    let again = Instant::now();
    world.hapax(&["run", "--once"]).exits(0).says(&["read_before=300"]);
    let again = again.elapsed();
    // Much shorter on a quiet machine; a busy one may give it less of itself.
    assert!(again < spent * 3, "300 files were read in {spent:?}, and passed over in {again:?}");
    let total: u64 = world.status().iter().map(|d| number(&d["progress"]["read"])).sum();
    assert_eq!(total, 300);
    println!("300 files in {spent:?}, nothing new in {again:?}");
}

/// Goal: files that are named by their day, with no live name, are one lane in the order of their days: of each key the last
/// day's value stays, also where a day is half read, is compressed, or a worker lives over the change of the day. Method: days
/// that write the same keys; a first run, a compressed day, a worker, and a change of the rule.
#[test]
fn files_named_by_their_day_are_one_lane_in_the_order_of_days() {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)");
    fs::create_dir(world.path("in")).expect("a folder");
    let configure = |rotation: &str| {
        let source = format!("{{ path: 'in/day-*.csv', rotation: {rotation} }}");
        let sink = "{ path: shop.db, table: orders, onConflict: update }";
        let delivery = format!("{{ guarantee: exactly-once, deduplication: {{ keyFields: [id] }}, {QUICK} }}");
        let text = format!(
            "workflows:\n  - id: orders\n    source: {{ file: {source} }}\n    sink: {{ sqlite: {sink} }}\n    delivery: {delivery}\n"
        );
        world.write("hapax.yaml", text);
    };
    configure("beforeExtension");
    let day = |amount: i64| (1..=200).fold("id,amount\n".to_owned(), |text, id| text + &format!("{id},{amount}\n"));
    let amounts = || -> String { world.ask("SELECT group_concat(DISTINCT amount) FROM orders") };
    for (name, amount) in [("in/day-2026-11-16.csv", 16), ("in/day-2026-11-17.csv", 17), ("in/day-2026-11-15.csv", 15)]
    {
        world.write(name, day(amount));
    }
    world.hapax(&["check"]).exits(0).says(&["day-2026-11-15.csv → day-2026-11-16.csv → day-2026-11-17.csv"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(amounts(), "17");
    world.append("in/day-2026-11-17.csv", "1,18\n");
    let packed = std::process::Command::new("gzip").arg(world.path("in/day-2026-11-16.csv")).status();
    assert!(packed.is_ok_and(|status| status.success()));
    let worker = world.start("worker.log", &["run"]);
    until("the line of the day is there", || amounts() == "18,17");
    world.write("in/day-2026-11-18.csv", day(19));
    until("the next day follows", || amounts() == "19");
    worker.terminate();
    worker.ends().exits(0);
    let lanes: Vec<String> = world.status().iter().map(|d| d["lane"].as_str().unwrap_or_default().into()).collect();
    assert_eq!(lanes, ["in/day.csv"]);
    world.hapax(&["reconcile"]).exits(0).says(&["adds up"]).keeps_silent_about(&["not compared"]);
    world.sql("DELETE FROM orders WHERE id = 7");
    world.hapax(&["reconcile"]).exits(1).says(&["7"]);
    world.sql("INSERT INTO orders VALUES (7, 19)");
    // Only the archive of the last day is left of what the pattern met.
    for name in ["in/day-2026-11-15.csv", "in/day-2026-11-17.csv"] {
        fs::remove_file(world.path(name)).expect("gone");
    }
    world.append("in/day-2026-11-18.csv", "1,20\n");
    let packed = std::process::Command::new("gzip").arg(world.path("in/day-2026-11-18.csv")).status();
    assert!(packed.is_ok_and(|status| status.success()));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(amounts(), "20,19");
    world.write("in/day-2026-11-19.csv", day(21));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(amounts(), "21");
    configure("suffixes");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3014", "in/day.csv", "in/day-2026-11-19.csv"]);
}

/// Goal: the name of a file begins no line of the log. Method: a name with a line break and a terminal's escape in it.
#[test]
fn a_name_with_a_line_break_forges_no_line_of_the_log() {
    let world = shop("in/*.jsonl");
    world.write("in/a\nFORGED\u{1b}[31m.jsonl", lines(1..=2));
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(0).says(&["a\\nFORGED\\u{1b}[31m.jsonl"]).keeps_silent_about(&["\nFORGED", "\u{1b}"]);
    assert_eq!(ids(&world), "1 2");
}

/// A workflow from a pattern of CSV with this rotation, appended to a table of texts, and a worker that runs.
fn half_lines(rotation: &str, pattern: &str) -> World {
    let world = World::empty();
    world.sql("CREATE TABLE names (id INTEGER, name TEXT)");
    fs::create_dir(world.path("in")).expect("a folder");
    let source = format!("{{ path: '{pattern}', format: csv, rotation: {rotation} }}");
    let sink = "{ path: shop.db, table: names, onConflict: append }";
    let text = format!(
        "workflows:\n  - id: names\n    source: {{ file: {source} }}\n    sink: {{ sqlite: {sink} }}\n    delivery: {{ guarantee: exactly-once, {QUICK} }}\n"
    );
    world.write("hapax.yaml", text);
    world
}

fn names(world: &World) -> String {
    world.ask("SELECT coalesce(group_concat(id || name, ' '), '') FROM (SELECT id, name FROM names ORDER BY rowid)")
}

/// Goal: a half line of a file that lost its name, or that never had the lane's own, is no record while its writer may complete
/// it, however long that takes. Method: a buffering writer that stops within a line: of the youngest day, and of a file that
/// was rotated while an empty new one is there; the line is completed after seconds.
#[test]
fn a_half_line_waits_for_its_writer() {
    let wait = || std::thread::sleep(Duration::from_millis(2500));
    let world = half_lines("beforeExtension", "in/day-*.csv");
    world.write("in/day-2026-11-16.csv", "id,name\n1,alpha\n2,be");
    let worker = world.start("worker.log", &["run"]);
    until("the whole line is there", || names(&world) == "1alpha");
    wait();
    assert_eq!(names(&world), "1alpha", "half a line is no record");
    world.append("in/day-2026-11-16.csv", "ta\n3,gam");
    until("the completed line is there", || names(&world) == "1alpha 2beta");
    // The next day: its writer has moved on, and what it left is a record.
    world.write("in/day-2026-11-17.csv", "id,name\n4,delta\n");
    until("the next day follows", || names(&world) == "1alpha 2beta 3gam 4delta");
    worker.terminate();
    worker.ends().exits(0);

    for pattern in ["in/*.csv*", "in/app.csv"] {
        let world = half_lines("suffixes", pattern);
        world.write("in/app.csv", "id,name\n1,alpha\n2,be");
        let worker = world.start("worker.log", &["run"]);
        until("the whole line is there", || names(&world) == "1alpha");
        rename(&world.path("in/app.csv"), &world.path("in/app.csv.1"));
        world.write("in/app.csv", "");
        wait();
        assert_eq!(names(&world), "1alpha", "{pattern}: half a line is no record");
        world.append("in/app.csv.1", "ta\n");
        until("the completed line is there", || names(&world) == "1alpha 2beta");
        world.append("in/app.csv", "id,name\n3,gamma\n");
        until("the next file follows", || names(&world) == "1alpha 2beta 3gamma");
        worker.terminate();
        worker.ends().exits(0);
    }
}

/// Goal: a line that was delivered before it was complete is still one after its file was compressed. Method: `run --once` takes
/// the half line, its writer completes it, the file is compressed, the next day begins.
#[test]
fn a_line_that_went_on_is_noticed_in_a_compressed_copy() {
    let world = half_lines("beforeExtension", "in/day-*.csv*");
    world.write("in/day-2026-11-16.csv", "id,name\n1,alpha\n2,be");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(names(&world), "1alpha 2be", "nobody waits for more");
    world.append("in/day-2026-11-16.csv", "ta\n3,gamma\n");
    world.write("in/day-2026-11-17.csv", "id,name\n4,delta\n");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3002"]);
    let packed = std::process::Command::new("gzip").arg(world.path("in/day-2026-11-16.csv")).status();
    assert!(packed.is_ok_and(|status| status.success()));
    world.hapax(&["check", "--live"]).exits(5);
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3002"]);
    assert_eq!(names(&world), "1alpha 2be");
}

/// Goal: a file that was looked at while it held its header only is the same file when its records come, in later runs and while
/// a worker lives, and `csv: { null: … }` is written as people write it. Method: a header, a run, a record, runs; each rule.
#[test]
fn a_file_that_began_with_its_header_stays_the_same() {
    for rotation in ["suffixes", "beforeExtension", "none", "replaced"] {
        for pattern in ["in/a.csv", "in/*.csv"] {
            let world = half_lines(rotation, pattern);
            let text = world.read("hapax.yaml").replace("format: csv", "csv: { null: NA }");
            world.write("hapax.yaml", text);
            world.write("in/a.csv", "id,name\n");
            world.hapax(&["run", "--once"]).exits(0);
            world.append("in/a.csv", "1,alpha\n");
            world.hapax(&["run", "--once"]).exits(0);
            world.append("in/a.csv", "2,beta\n");
            world.hapax(&["check", "--live"]).exits(0);
            world.hapax(&["run", "--once"]).exits(0);
            assert_eq!(names(&world), "1alpha 2beta", "{rotation} {pattern}");
        }
    }
    let world = half_lines("suffixes", "in/a.csv");
    world.write("in/a.csv", "id,name\n");
    let worker = world.start("worker.log", &["run"]);
    worker.until_it_says("claimed");
    std::thread::sleep(Duration::from_millis(500));
    world.append("in/a.csv", "1,alpha\n");
    until("the record is there", || names(&world) == "1alpha");
    worker.terminate();
    worker.ends().exits(0);
    world.append("in/a.csv", "2,beta\n");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(names(&world), "1alpha 2beta");
}

/// Goal: files that have the same header and no record yet are not taken for one that was moved. Method: they come one after the other
/// under a live worker, and between two runs; then their records come.
#[test]
fn files_with_a_header_alone_are_not_one_file() {
    for rotation in ["none", "suffixes", "beforeExtension"] {
        let world = World::empty();
        world.sql("CREATE TABLE orders (id INTEGER)");
        std::fs::create_dir(world.path("in")).expect("a folder");
        world.write(
            "hapax.yaml",
            format!(
                "workflows:
  - id: orders
    source: {{ file: {{ path: 'in/*.csv', rotation: {rotation} }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, onConflict: append }} }}
    delivery: {{ guarantee: exactly-once, epoch: {{ interval: 20ms }} }}
"
            ),
        );
        world.write("in/a.csv", "id\n");
        world.hapax(&["run", "--once"]).exits(0);
        world.write("in/b.csv", "id\n");
        world.hapax(&["check", "--live"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        let mut worker = world.start("worker.log", &["run"]);
        world.write("in/c.csv", "id\n3\n");
        until("the third file is read", || world.rows() == 1);
        world.append("in/a.csv", "1\n");
        world.append("in/b.csv", "2\n");
        until("the others are, too", || world.rows() == 3);
        assert!(worker.is_alive(), "{rotation}");
        drop(worker);
        world.hapax(&["reconcile"]).exits(0);
    }
}
