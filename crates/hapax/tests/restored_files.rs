//! Sources that were restored from a copy: the same bytes under other inodes. Who accepts them repeats nothing.

use std::fs;

use crate::world::{World, rename, until};

/// Workflow `orders` from the files that `source` says, appended: what is read twice is seen.
fn shop(source: &str) -> World {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER)");
    fs::create_dir(world.path("in")).expect("a folder");
    let text = format!(
        "workflows:
  - id: orders
    source: {{ file: {{ {source} }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, onConflict: append }} }}
    delivery: {{ guarantee: exactly-once, epoch: {{ interval: 20ms }}, lease: 2s, retries: {{ backoffMs: [50], giveUpAfter: 300ms }} }}
"
    );
    world.write("hapax.yaml", text);
    world
}

fn lines(ids: std::ops::RangeInclusive<i64>) -> String {
    ids.fold(String::new(), |text, id| text + &format!("{{\"id\":{id}}}\n"))
}

/// The ids in the order in which they came.
fn ids(world: &World) -> String {
    world.ask("SELECT coalesce(group_concat(id, ' '), '') FROM (SELECT id FROM orders ORDER BY rowid)")
}

/// Replaces a file by a copy of it.
fn restore(world: &World, name: &str) {
    fs::copy(world.path(name), world.path("copy")).expect("copied");
    fs::remove_file(world.path(name)).expect("removed");
    rename(&world.path("copy"), &world.path(name));
}

/// Replaces the folder by a copy of it, as `cp -r` makes it.
fn restore_folder(world: &World) {
    fs::create_dir(world.path("in2")).expect("a folder");
    let mut names: Vec<_> =
        fs::read_dir(world.path("in")).expect("a folder").map(|entry| entry.expect("read").file_name()).collect();
    names.sort();
    for name in names {
        fs::copy(world.path("in").join(&name), world.path("in2").join(&name)).expect("copied");
    }
    fs::remove_dir_all(world.path("in")).expect("removed");
    rename(&world.path("in2"), &world.path("in"));
}

/// What stops, what is accepted, and that it stays so: nothing is delivered again, and the next lines of `file` are.
fn accepted_at_the_same_byte(world: &World, file: &str, byte: usize, next: &str) {
    let (before, said) = (ids(world), format!("goes on at byte {byte}"));
    for command in [&["check", "--live"][..], &["run", "--once"]] {
        world.hapax(command).exits(5).says(&["HX3004", &file[3..], "a copy of what was read", &said]);
    }
    let answer = world.hapax(&["reset", "orders", "--accept", "--dry-run"]);
    answer.exits(0).says(&["nothing is delivered again", "a copy of what was read", &file[3..]]);
    answer.keeps_silent_about(&["given up"]);
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["check", "--live"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(world), format!("{before}{next}"), "{file}");
    world.append(file, lines(97..=98));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(world), format!("{before}{next} 97 98"), "{file}");
}

/// Goal: a file that was replaced by a copy of itself is gone on with at the same byte. Method: under each rule, with and without
/// lines that came since; and two times.
#[test]
fn a_restored_file_is_gone_on_with_at_the_same_byte() {
    let rules = [
        "path: 'in/a.jsonl'",
        "path: 'in/a.jsonl', rotation: none",
        "path: 'in/*.jsonl'",
        "path: 'in/*.jsonl', rotation: none",
    ];
    for source in rules {
        for (more, next) in [(String::new(), ""), (lines(6..=6), " 6")] {
            let world = shop(source);
            world.write("in/a.jsonl", lines(1..=5));
            world.hapax(&["run", "--once"]).exits(0);
            restore(&world, "in/a.jsonl");
            world.append("in/a.jsonl", more);
            accepted_at_the_same_byte(&world, "in/a.jsonl", lines(1..=5).len(), next);
            let read = fs::read(world.path("in/a.jsonl")).expect("read").len();
            restore(&world, "in/a.jsonl");
            accepted_at_the_same_byte(&world, "in/a.jsonl", read, "");
        }
    }
}

/// Goal: a folder that was restored keeps its read files read, each by its content. Method: chains of each kind that were read,
/// copied as a whole; one file compressed meanwhile.
#[test]
fn a_restored_folder_keeps_its_read_files_read() {
    let chains = [
        ("path: 'in/a.log', format: jsonl", ["in/a.log.2", "in/a.log.1", "in/a.log"]),
        ("path: 'in/*.log', format: jsonl", ["in/a.log-20261116", "in/a.log-20261117", "in/a.log"]),
        (
            "path: 'in/a-*.jsonl', rotation: beforeExtension",
            ["in/a-20261116.jsonl", "in/a-20261117.jsonl", "in/a-20261118.jsonl"],
        ),
        ("path: 'in/a-*.jsonl', order: name", ["in/a-b.jsonl", "in/a-c.jsonl", "in/a-d.jsonl"]),
    ];
    for (source, names) in chains {
        let world = shop(source);
        let live = names[2].ends_with(".log");
        for (at, name) in (1..).zip(names) {
            let first = if live { names[2] } else { name };
            world.write(first, lines(at * 10..=at * 10 + 2));
            world.hapax(&["run", "--once"]).exits(0);
            match (live, at) {
                (true, 1) => rename(
                    &world.path(names[2]),
                    &world.path(if names[0].ends_with(".2") { names[1] } else { names[0] }),
                ),
                (true, 2) => {
                    if names[0].ends_with(".2") {
                        rename(&world.path(names[1]), &world.path(names[0]));
                    }
                    rename(&world.path(names[2]), &world.path(names[1]));
                }
                _ => {}
            }
        }
        assert_eq!(ids(&world), "10 11 12 20 21 22 30 31 32", "{source}");
        restore_folder(&world);
        accepted_at_the_same_byte(&world, names[2], lines(10..=12).len(), "");
        restore_folder(&world);
        world.hapax(&["run", "--once"]).exits(5).says(&["HX3004", "a copy of what was read"]);
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0).keeps_silent_about(&["given up"]);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "10 11 12 20 21 22 30 31 32 97 98", "{source}");
    }
}

/// Goal: behind a file that was read to its end the next one is begun, and files that begin alike are told apart. Method: names in
/// order that all begin with one record, restored with one that is new; and a lane that stands at the first record of the last.
#[test]
fn a_restored_chain_of_files_that_begin_alike_goes_on_with_the_right_one() {
    let world = shop("path: 'in/day-*.jsonl', order: name");
    for day in 1..=3 {
        world.write(&format!("in/day-{day}.jsonl"), lines(0..=0) + &lines(day * 10..=day * 10 + 1));
    }
    world.write("in/day-4.jsonl", lines(0..=0));
    world.hapax(&["run", "--once"]).exits(0);
    restore_folder(&world);
    world.append("in/day-4.jsonl", lines(40..=40));
    world.write("in/day-5.jsonl", lines(0..=0) + &lines(50..=50));
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3004", "day-4.jsonl"]);
    world
        .hapax(&["reset", "orders", "--accept", "--yes"])
        .exits(0)
        .says(&["day-4.jsonl"])
        .keeps_silent_about(&["given up"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "0 10 11 0 20 21 0 30 31 0 40 0 50");
    restore_folder(&world);
    world.write("in/day-6.jsonl", lines(0..=0));
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3004", "day-5.jsonl"]);
    let answer = world.hapax(&["reset", "orders", "--accept", "--yes"]);
    answer.exits(0).says(&["goes on with day-6.jsonl", "nothing is delivered again"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "0 10 11 0 20 21 0 30 31 0 40 0 50 0");
}

/// Goal: where the content does not agree nothing is taken for a copy, and files that were read stay read. Method: a restored copy
/// that is older than what was read, and one that has other bytes; alone, and behind two that are as they were.
#[test]
fn a_file_with_other_content_is_no_copy() {
    for other in [lines(30..=31), lines(30..=33).replace("32", "77")] {
        let world = shop("path: 'in/a.jsonl'");
        world.write("in/a.jsonl", lines(30..=32));
        world.hapax(&["run", "--once"]).exits(0);
        fs::remove_file(world.path("in/a.jsonl")).expect("removed");
        world.write("in/a.jsonl", &other);
        let answer = world.hapax(&["run", "--once"]);
        answer.exits(5).says(&["HX3004", "from its beginning"]).keeps_silent_about(&["a copy of"]);
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0).says(&["begins a.jsonl from its beginning"]);
        world.hapax(&["run", "--once"]).exits(0);
        assert!(ids(&world).starts_with("30 31 32 30 31"), "{}", ids(&world));

        let world = shop("path: 'in/a-*.jsonl', order: name");
        for at in 1..=3 {
            world.write(&format!("in/a-{at}.jsonl"), lines(at * 10..=at * 10 + 2));
        }
        world.hapax(&["run", "--once"]).exits(0);
        restore_folder(&world);
        fs::remove_file(world.path("in/a-3.jsonl")).expect("removed");
        world.write("in/a-3.jsonl", &other);
        world
            .hapax(&["run", "--once"])
            .exits(5)
            .says(&["HX3002", "the file is gone"])
            .keeps_silent_about(&["a copy of"]);
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0).says(&["begins a-3.jsonl from its beginning"]);
        world.hapax(&["run", "--once"]).exits(0);
        assert!(ids(&world).starts_with("10 11 12 20 21 22 30 31 32 30 31"), "{}", ids(&world));
    }
}

/// Goal: a worker that reads a file while it is restored says the same. Method: replace it under a worker, with each rule that has
/// an answer for it.
#[test]
fn a_file_that_is_restored_under_a_worker_is_named_as_a_copy() {
    for source in ["path: 'in/a.jsonl'", "path: 'in/a.jsonl', rotation: none"] {
        let world = shop(source);
        world.write("in/a.jsonl", lines(1..=5));
        let worker = world.start("worker.log", &["run"]);
        until("all is read", || world.rows() == 5);
        restore(&world, "in/a.jsonl");
        world.append("in/a.jsonl", lines(6..=6));
        let byte = format!("at byte {}", lines(1..=5).len());
        worker.ends().exits(5).says(&["a.jsonl holds what was read", &byte, "--accept"]);
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0).says(&["nothing is delivered again"]);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 3 4 5 6", "{source}");
    }
}
