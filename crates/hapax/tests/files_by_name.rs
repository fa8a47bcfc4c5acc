//! `order: name`: all files of a pattern as one lane, in the order of their names.

use std::fs;

use crate::world::{World, rename, until};

/// Workflow `orders` from the files of a pattern in the order of their names, appended: what is read twice is seen.
fn shop(pattern: &str) -> World {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER, amount INTEGER)");
    fs::create_dir(world.path("in")).expect("a folder");
    configure(&world, &format!("path: '{pattern}', order: name"));
    world
}

fn configure(world: &World, source: &str) {
    let text = format!(
        "workflows:
  - id: orders
    source: {{ file: {{ {source} }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, onConflict: append }} }}
    delivery: {{ guarantee: exactly-once, epoch: {{ interval: 20ms }}, lease: 2s, retries: {{ backoffMs: [50], giveUpAfter: 300ms }} }}
"
    );
    world.write("hapax.yaml", text);
}

fn csv(ids: std::ops::RangeInclusive<i64>) -> String {
    ids.fold("id,amount\n".to_owned(), |text, id| text + &format!("{id},{}\n", id * 10))
}

/// The ids in the order in which they came.
fn ids(world: &World) -> String {
    world.ask("SELECT coalesce(group_concat(id, ' '), '') FROM (SELECT id FROM orders ORDER BY rowid)")
}

fn compress(world: &World, name: &str) {
    let packed = std::process::Command::new("gzip").arg(world.path(name)).status();
    assert!(packed.is_ok_and(|status| status.success()), "{name}");
}

fn lanes(world: &World) -> Vec<String> {
    world.status().iter().map(|delivery| delivery["lane"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Goal: the files of a pattern are one lane, byte by byte in the order of their names, whatever their times say; the youngest is
/// followed until another comes after it, and read files may be compressed or removed. Method: names whose numbers would be in
/// another order, written in another; runs, a worker, archives.
#[test]
fn the_files_of_a_pattern_are_one_lane_in_the_order_of_their_names() {
    let world = shop("in/batch-*.csv");
    world.hapax(&["run", "--once"]).exits(0);
    world.write("in/batch-9.csv", csv(5..=6));
    world.write("in/batch-10.csv", csv(1..=2));
    world.write("in/batch-2.csv", csv(3..=4));
    world.write("in/other.csv", csv(99..=99));
    let answer = world.hapax(&["check"]);
    answer.exits(0).says(&["batch-10.csv → batch-2.csv → batch-9.csv", "in/batch-*.csv, 1 lane(s) now"]);
    world.hapax(&["check", "--live"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4 5 6");
    assert_eq!(lanes(&world), ["in/batch-*.csv"]);
    world.hapax(&["run", "--once"]).exits(0).says(&["read_before=1"]);
    compress(&world, "in/batch-2.csv");
    let worker = world.start("worker.log", &["run"]);
    world.append("in/batch-9.csv", "7,70\n8,8");
    until("the youngest file is followed", || ids(&world) == "1 2 3 4 5 6 7");
    world.append("in/batch-9.csv", "0\n");
    until("the line is complete", || ids(&world) == "1 2 3 4 5 6 7 8");
    world.write("in/batch-9a.csv", csv(9..=9));
    until("the next name follows", || ids(&world) == "1 2 3 4 5 6 7 8 9");
    worker.terminate();
    worker.ends().exits(0);
    fs::remove_file(world.path("in/batch-10.csv")).expect("it was read");
    compress(&world, "in/batch-9a.csv");
    world.write("in/batch-b.csv", csv(10..=11));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4 5 6 7 8 9 10 11");
    assert_eq!(lanes(&world), ["in/batch-*.csv"]);
    world.hapax(&["reconcile"]).exits(0).says(&["adds up"]);
    assert_eq!(world.ask::<i64>("SELECT epoch > 0 FROM hapax_progress"), 1);
}

/// Goal: a file that comes late is read under a later name; one that was given up is not, under whatever name, and the log says so.
/// Method: rename it before, and after it was given up, and after a second acceptance; then copy it.
#[test]
fn a_late_file_is_read_under_a_later_name_unless_it_was_given_up() {
    let late = || {
        let world = shop("in/batch-*.csv");
        world.write("in/batch-b.csv", csv(1..=2));
        world.write("in/batch-d.csv", csv(3..=4));
        world.hapax(&["run", "--once"]).exits(0);
        world.write("in/batch-c.csv", csv(9..=9));
        world.hapax(&["run", "--once"]).exits(5).says(&["batch-c.csv", "Rename it"]);
        world
    };
    let world = late();
    rename(&world.path("in/batch-c.csv"), &world.path("in/batch-e.csv"));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4 9");

    let world = late();
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0).keeps_silent_about(&["given up"]);
    rename(&world.path("in/batch-c.csv"), &world.path("in/batch-e.csv"));
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(0).says(&["WARN", "batch-e.csv", "it was given up"]);
    assert_eq!(answer.err.matches("it was given up").count(), 1, "said once: {answer}");
    let worker = world.start("worker.log", &["run"]);
    worker.until_it_says("it was given up");
    world.append("in/batch-d.csv", "5,50\n");
    until("the lane is read on", || ids(&world) == "1 2 3 4 5");
    worker.terminate();
    worker.ends().exits(0);
    world.hapax(&["run", "--once"]).exits(0).says(&["WARN", "batch-e.csv", "it was given up"]);
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.append("in/batch-d.csv", "6,60\n");
    world.hapax(&["run", "--once"]).exits(0).says(&["WARN", "batch-e.csv", "it was given up"]);
    assert_eq!(ids(&world), "1 2 3 4 5 6", "given up for good");
    fs::copy(world.path("in/batch-e.csv"), world.path("in/batch-f.csv")).expect("copied");
    fs::remove_file(world.path("in/batch-e.csv")).expect("removed");
    world.hapax(&["run", "--once"]).exits(0).keeps_silent_about(&["given up"]);
    assert_eq!(ids(&world), "1 2 3 4 5 6 9");
}

/// Goal: nothing that was not read is passed, and nothing that was read may change. Method: after two files were read, each of: a
/// name before the current one, the current one gone while others wait, growth and a rewrite of one that was left.
#[test]
fn what_cannot_be_placed_stops_the_chain_and_is_named() {
    let read = |more: &str| {
        let world = shop("in/batch-*.csv");
        world.write("in/batch-b.csv", csv(1..=2));
        world.write("in/batch-d.csv", csv(3..=4) + more);
        world.hapax(&["run", "--once"]).exits(0);
        world
    };
    for name in ["in/batch-a.csv", "in/batch-c.csv", "in/batch-c.csv.gz"] {
        let world = read("");
        world.write(name.trim_end_matches(".gz"), csv(9..=9));
        if name.ends_with(".gz") {
            compress(&world, name.trim_end_matches(".gz"));
        }
        world.hapax(&["check", "--live"]).exits(5).says(&[&name[3..], "batch-d.csv", "never read"]);
        world.hapax(&["run", "--once"]).exits(5).says(&[&name[3..], "its name comes after batch-d.csv", "for good"]);
        assert_eq!(ids(&world), "1 2 3 4", "{name}");
        let given_up = format!("given up unread: {} (for good", &name[3..]);
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0).says(&[&given_up]);
        world.append("in/batch-d.csv", "5,50\n");
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 3 4 5", "{name}");
    }
    let world = read("");
    let worker = world.start("worker.log", &["run"]);
    worker.until_it_says("looked for files");
    world.write("in/batch-a.csv", csv(9..=9));
    worker.ends().exits(5).says(&["batch-a.csv", "batch-d.csv", "never read"]);

    let world = read("");
    world.append("in/batch-d.csv", "5,50\n");
    world.write("in/batch-e.csv", csv(6..=6));
    fs::remove_file(world.path("in/batch-d.csv")).expect("gone unread");
    world.hapax(&["run", "--once"]).exits(5).says(&["the file is gone"]);
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4 6");

    let world = read("");
    world.append("in/batch-b.csv", "9,90\n");
    world.hapax(&["run", "--once"]).exits(5).says(&["batch-b.csv", "behind byte"]);
    let world = read("");
    world.write("in/batch-b.csv", csv(1..=2).replace("10", "11"));
    world.hapax(&["run", "--once"]).exits(5).says(&["batch-b.csv", "rewritten in place"]);
    let world = read("");
    rename(&world.path("in/batch-d.csv"), &world.path("in/batch-x.csv"));
    world.write("in/batch-y.csv", csv(5..=5));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4 5", "a new name in the same place of the order is the same file");
}

/// Goal: a file that gets a second name in the chain is not delivered again. Method: a hard link to the current file, and one to a
/// file that was left, under later names; while a worker runs, and after it.
#[test]
fn one_file_under_two_names_stops_the_chain() {
    for of in ["in/batch-b.csv", "in/batch-c.csv"] {
        let world = shop("in/batch-*.csv");
        world.write("in/batch-b.csv", csv(1..=2));
        world.write("in/batch-c.csv", csv(3..=4));
        let worker = world.start("worker.log", &["run"]);
        until("both were read", || ids(&world) == "1 2 3 4");
        fs::hard_link(world.path(of), world.path("in/batch-d.csv")).expect("a link");
        worker.ends().exits(5).says(&[&of[3..], "batch-d.csv"]);
        world.hapax(&["check", "--live"]).exits(5).says(&["HX3014", &of[3..], "batch-d.csv"]);
        world.hapax(&["run", "--once"]).exits(5).says(&["HX3014", &of[3..], "batch-d.csv"]);
        assert_eq!(ids(&world), "1 2 3 4", "{of}");
    }
}

/// Goal: a file with another header, and an empty one, in the middle of the chain. Method: one of each between others.
#[test]
fn headers_are_compared_from_file_to_file_and_empty_files_are_passed() {
    let world = shop("in/*");
    configure(&world, "path: 'in/*', format: csv, order: name");
    world.write("in/a", csv(1..=1));
    world.write("in/b", "");
    world.write("in/c", "id,amount\n");
    world.write("in/d", csv(2..=2));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2");
    world.write("in/e", "amount,id\n30,3\n");
    world.write("in/f", "amount,id\n40,4\n");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3011", "in/e", "id,amount", "amount,id"]);
    assert_eq!(ids(&world), "1 2");
    world.hapax(&["reset", "orders", "--to", "next", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4");
}

/// Goal: a second worker stands by for the whole lane and takes over where the first ended, also where the pattern is an absolute
/// path, so that lane and pattern have one name. Method: two workers, files for each.
#[test]
fn a_second_worker_stands_by_with_the_chain() {
    let world = shop("in/batch-*.csv");
    let pattern = world.path("in/batch-*.csv");
    fs::create_dir(world.path("etc")).expect("a folder");
    configure(&world, &format!("path: '{}', order: name", pattern.display()));
    let text = world.read("hapax.yaml").replace("shop.db", &world.path("shop.db").display().to_string());
    world.write("etc/hapax.yaml", format!("state: sqlite://{}\n{text}", world.path("state.db").display()));
    world.write("in/batch-1.csv", csv(1..=2));
    let first = world.start("first.log", &["run", "-c", "etc/hapax.yaml"]);
    until("the first file was read", || ids(&world) == "1 2");
    let second = world.start("second.log", &["run", "-c", "etc/hapax.yaml"]);
    second.until_it_says("standing by");
    world.write("in/batch-2.csv", csv(3..=4));
    until("the second file was read", || ids(&world) == "1 2 3 4");
    world.write("in/batch-3.csv", csv(5..=5));
    until("the third file was read", || ids(&world) == "1 2 3 4 5");
    first.terminate();
    first.ends().exits(0);
    world.write("in/batch-4.csv", csv(6..=6));
    until("the second worker goes on", || ids(&world) == "1 2 3 4 5 6");
    second.terminate();
    second.ends().exits(0);
}

/// Goal: files that were read and removed from the middle of a chain are no difference to `reconcile`. Method: three files, of
/// which the second goes; with names alone in order, and with dates.
#[test]
fn reconcile_passes_over_a_file_that_was_removed_from_the_middle() {
    for rule in ["order: name", "rotation: beforeExtension"] {
        let world = World::empty();
        world.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)");
        fs::create_dir(world.path("in")).expect("a folder");
        configure(&world, &format!("path: 'in/day-*.csv', {rule}"));
        let keyed = world.read("hapax.yaml").replace("onConflict: append", "onConflict: update");
        let keyed = keyed.replace("exactly-once,", "exactly-once, deduplication: { keyFields: [id] },");
        world.write("hapax.yaml", keyed);
        world.write("in/day-2026-11-16.csv", csv(1..=3));
        world.write("in/day-2026-11-17.csv", csv(4..=8));
        world.write("in/day-2026-11-18.csv", csv(9..=10));
        world.hapax(&["run", "--once"]).exits(0);
        world.hapax(&["reconcile"]).exits(0).says(&["10 keys of 10 inputs"]);
        fs::remove_file(world.path("in/day-2026-11-17.csv")).expect("it was read");
        world.hapax(&["reconcile"]).exits(0).says(&["2 keys of 2 inputs", "older epochs were passed over"]);
        world.sql("DELETE FROM orders WHERE id = 9");
        world.hapax(&["reconcile"]).exits(1).says(&["DIFFERS", "9"]);
    }
}

/// Goal: the order is part of the contract, and files that were read as lanes of their own are not read again. Method: the rule is
/// added to progress without it, and taken away from progress with it.
#[test]
fn the_order_by_name_is_part_of_the_contract() {
    let world = shop("in/batch-*.csv");
    world.write("in/batch-1.csv", csv(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    configure(&world, "path: 'in/batch-*.csv'");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3014", "in/batch-*.csv", "in/batch-1.csv"]);
    let world = shop("in/batch-*.csv");
    configure(&world, "path: 'in/batch-*.csv'");
    world.write("in/batch-1.csv", csv(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    configure(&world, "path: 'in/batch-*.csv', order: name");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3014", "in/batch-*.csv", "in/batch-1.csv"]);
    assert_eq!(ids(&world), "1 2");
}

/// Goal: the names alone decide, so whatever else would decide is refused with its place. Method: each such configuration.
#[test]
fn an_order_by_name_that_contradicts_is_refused() {
    let world = shop("in/*.csv");
    for (source, words) in [
        ("path: in/a.csv, order: name", "one file"),
        ("path: 'in/*/a.csv', order: name", "one folder"),
        ("path: 'in/**/*.csv', order: name", "one folder"),
        ("path: 'in/*.csv', order: name, rotation: none", "rotation: none"),
        ("path: 'in/*.csv', order: name, rotation: replaced", "rotation: replaced"),
        ("path: 'in/*.csv', order: name, rotation: suffixes", "rotation: suffixes"),
        ("path: 'in/*.csv', order: name, rotation: beforeExtension", "rotation: beforeExtension"),
    ] {
        configure(&world, source);
        world.hapax(&["check"]).exits(2).says(&["HX1033", words, "hapax.yaml:3"]);
    }
}
