//! A followed file: growth, half-written lines, rotation.

use crate::world::{KEYED, World, order, orders, rename, until};

/// Goal: what is appended is delivered; half a line waits for its other half. Method: a live worker, three appends.
#[test]
fn a_growing_file_is_followed_line_by_line() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the first rows are there", || world.rows() == 3);
    let line = order(4, 40);
    let (half, rest) = line.split_at(12);
    world.append("orders.jsonl", orders(5..=5) + half);
    until("the whole line is there", || world.rows() == 4);
    world.append("orders.jsonl", rest);
    until("the half line is there", || world.rows() == 5);
    worker.terminate();
    worker.ends().exits(0);
    world.accounts_for(5, 0);
}

/// Goal: a rotation loses and doubles nothing. Method: rename and make anew, with a late line into the old file, twice;
/// the table counts every line, without a key.
#[test]
fn a_rotated_file_is_read_to_its_end_and_its_successor_from_its_beginning() {
    let world = World::shop("onConflict: append", "guarantee: exactly-once");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER)");
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the first rows are there", || world.rows() == 3);
    rename(&world.path("orders.jsonl"), &world.path("orders.jsonl.1"));
    world.append("orders.jsonl.1", orders(4..=5));
    world.write("orders.jsonl", orders(6..=8));
    until("both files are read", || world.rows() == 8);
    rename(&world.path("orders.jsonl.1"), &world.path("orders.jsonl.2"));
    rename(&world.path("orders.jsonl"), &world.path("orders.jsonl.1"));
    world.write("orders.jsonl", orders(9..=10));
    until("the third file is read", || world.rows() == 10);
    worker.terminate();
    worker.ends().exits(0).says(&["the file was rotated"]);
    assert_eq!(world.ask::<i64>("SELECT count(DISTINCT id) FROM orders"), 10);
    world.accounts_for(10, 0);
}

/// Goal: a rotation while no worker is alive is found under the file's new name. Method: rotate between two runs.
#[test]
fn a_rotation_between_two_runs_loses_nothing() {
    let world = World::shop("onConflict: append", "guarantee: exactly-once");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER)");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("orders.jsonl", orders(4..=5));
    rename(&world.path("orders.jsonl"), &world.path("orders.jsonl.1"));
    world.write("orders.jsonl", orders(6..=8));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 8);
    assert_eq!(world.ask::<i64>("SELECT count(DISTINCT id) FROM orders"), 8);
    world.accounts_for(8, 0);
}

/// Goal: `start: latest` is resolved once, ever. Method: a first run on a full file, lines added while nobody runs.
#[test]
fn latest_is_resolved_at_the_first_start_only() {
    let world = World::shop("", KEYED);
    world.write("hapax.yaml", world.read("hapax.yaml").replace("orders.jsonl }", "orders.jsonl, start: latest }"));
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 0);
    world.append("orders.jsonl", orders(4..=5));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "4:40 5:50");
}
