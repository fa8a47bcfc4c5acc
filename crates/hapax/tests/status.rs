//! `hapax status`: how each delivery stands, with and without a worker.

use crate::world::{World, number, orders, until};

/// Goal: a delivery that never ran, one that runs, and one that ended are told apart.
#[test]
fn the_state_of_a_delivery_is_told_before_during_and_after_its_run() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["status"]).exits(0).says(&["orders/sqlite/", "never run"]);
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    until("it says that it runs", || world.status()[0]["state"] == "running");
    assert!(world.status()[0]["worker"].as_str().is_some_and(|worker| worker.contains("pid ")));
    worker.terminate();
    worker.ends().exits(0);
    let after = world.hapax(&["status"]);
    after.exits(0).says(&["orders/sqlite/", "drained", "delivered", "letters"]);
    world.accounts_for(3, 0);
}

/// Goal: a killed worker is not taken for a live one. Method: SIGKILL; the lease runs out, or its process is gone.
#[test]
fn a_killed_worker_is_not_running() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    drop(worker);
    until("its lease has run out", || world.status()[0]["state"] == "no worker");
    world.accounts_for(3, 0);
}

/// Goal: a stopped delivery says why, with code and cure. Method: a refused guarantee.
#[test]
fn a_stopped_delivery_says_why() {
    let world = World::shop("onConflict: append, progress: state", "guarantee: exactly-once");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(3);
    world.hapax(&["status"]).exits(0).says(&["stopped", "HX1121", "use progress: sink"]);
    assert_eq!(number(&world.status()[0]["exitCode"]), 3);
}

/// Goal: a delivery that waits for its target says so to whoever asks, for what and whose turn it is, and takes it back
/// when it goes on. Method: another program holds the file's lock for a while.
#[test]
fn a_delivery_that_waits_says_for_what() {
    let world = World::shop("busyTimeout: 50ms", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("hapax.yaml", world.read("hapax.yaml").replace("giveUpAfter: 300ms", "giveUpAfter: 1m"));
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    let holder = world.database("shop.db");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    world.append("orders.jsonl", orders(4..=5));
    until("it says that it waits", || world.status()[0]["state"] == "waiting");
    world.hapax(&["status"]).exits(0).says(&["waiting", "HX4003", "locked by"]);
    world.hapax(&["stuck"]).exits(1).says(&["HX4003", "locked by"]);
    holder.execute_batch("ROLLBACK").expect("the lock is free");
    until("it goes on", || world.rows() == 5);
    until("it says so", || world.status()[0]["state"] == "running");
    worker.terminate();
    worker.ends().exits(0);
    world.accounts_for(5, 0);
}

/// Goal: `status`, `top` and `stuck` agree about a worker that died while it waited. Method: another program holds the
/// file's lock; once the worker has noted that it waits it is killed; when its lease has run out, all three are asked.
#[test]
fn everybody_agrees_about_a_worker_that_died_while_it_waited() {
    let world = World::shop("busyTimeout: 50ms", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("hapax.yaml", world.read("hapax.yaml").replace("giveUpAfter: 300ms", "giveUpAfter: 1m"));
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    let holder = world.database("shop.db");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    world.append("orders.jsonl", orders(4..=5));
    until("it says that it waits", || world.status()[0]["state"] == "waiting");
    drop(worker);
    holder.execute_batch("ROLLBACK").expect("the lock is free");
    until("its lease has run out", || world.status()[0]["worker"].is_null());
    let status = world.status()[0]["state"].clone();
    let top = world.hapax(&["top", "--count", "1", "--json"]).exits(0).json()["state"].clone();
    assert_eq!((status.as_str(), top.as_str()), (Some("no worker"), Some("no worker")));
    world.hapax(&["stuck"]).exits(1).says(&["ended without a word"]);
}

/// Goal: only the chosen workflow is shown, and one that does not exist is an error.
#[test]
fn only_the_chosen_workflow_is_shown() {
    let world = World::shop("", "");
    world.hapax(&["status", "--only", "orders"]).exits(0).says(&["orders/sqlite/"]);
    world.hapax(&["status", "--only", "order"]).exits(2).says(&["HX5001", "\"order\"", "there are orders"]);
}
