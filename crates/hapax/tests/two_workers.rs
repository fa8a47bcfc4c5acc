//! Two workers on one delivery: the second stands by, takes over, or fences.

use crate::world::{KEYED, World, orders, until};

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

/// Goal: without a state store two workers take the delivery from each other, and lose and double nothing. Method: two
/// workers, no leases, a table without a key.
#[test]
fn two_workers_without_leases_lose_and_double_nothing() {
    let world = World::shop("onConflict: append", "guarantee: exactly-once");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER)");
    world.write("hapax.yaml", "state: none\n".to_owned() + &world.read("hapax.yaml"));
    world.write("orders.jsonl", orders(1..=3));
    let first = world.start("first.log", &["run"]);
    until("the first rows are there", || world.rows() == 3);
    let second = world.start("second.log", &["run"]);
    second.until_it_says("claimed");
    world.append("orders.jsonl", orders(4..=6));
    first.until_it_says("without a state store nobody can stand by");
    until("all rows are there", || world.rows() >= 6);
    for worker in [first, second] {
        worker.terminate();
        worker.ends().exits(0);
    }
    assert_eq!(world.ask::<i64>("SELECT count(DISTINCT id) FROM orders"), 6);
    world.accounts_for(6, 0);
    assert_eq!(world.rows(), 6);
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
