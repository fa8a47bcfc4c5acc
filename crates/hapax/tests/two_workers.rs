//! Two workers on one delivery: the second stands by, takes over, or fences.

use crate::world::{World, orders, until};

const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }";

/// Goal: a second worker stands by and takes over when the first ends. Method: two workers, SIGTERM for the first.
#[test]
fn a_second_worker_stands_by_and_takes_over_at_the_end_of_the_first() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let first = world.start("first.log", &["run"]);
    until("the first rows are there", || world.rows() == 3);
    let second = world.start("second.log", &["run"]);
    second.until_it_says("standing by");
    world.append("orders.jsonl", orders(4..=5));
    until("the first goes on", || world.rows() == 5);
    first.terminate();
    first.ends().exits(0);
    second.until_it_says("claimed");
    world.append("orders.jsonl", orders(6..=7));
    until("the second goes on", || world.rows() == 7);
    second.terminate();
    second.ends().exits(0);
    world.accounts_for(7, 0);
}

/// Goal: `--take-over` fences the first worker, which ends with code 4. Method: two workers, lines for the second.
#[test]
fn take_over_ends_the_first_worker_with_code_4() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let first = world.start("first.log", &["run"]);
    until("the first rows are there", || world.rows() == 3);
    let second = world.start("second.log", &["run", "--take-over"]);
    second.until_it_says("claimed");
    world.append("orders.jsonl", orders(4..=5));
    first.ends().exits(4).says(&["HX4009", "orders/sqlite/", "took this delivery over"]);
    until("the second goes on", || world.rows() == 5);
    let status = world.status();
    assert_eq!(status[0]["state"], "running", "the fenced worker does not speak for the live one: {status:#?}");
    assert!(status[0]["worker"].is_string(), "{status:#?}");
    second.terminate();
    second.ends().exits(0);
    world.accounts_for(5, 0);
}

/// Goal: a killed worker's successor waits for its lease and loses nothing. Method: SIGKILL, then `--once`.
#[test]
fn after_a_kill_the_next_worker_goes_on() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=300));
    let first = world.start("first.log", &["run"]);
    until("some rows are there", || world.rows() > 0);
    drop(first);
    world.append("orders.jsonl", orders(301..=310));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 310);
    world.accounts_for(310, 0);
}
