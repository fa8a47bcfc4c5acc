//! Source files that are missing, unreadable, cut or gone: a message with place, code and cure; other workflows go on.

use crate::world::{KEYED, World, orders, rename, until};

/// Goal: a missing file is named, with the cure, and read once it is there. Method: run without it, then with it.
#[test]
fn a_missing_file_is_named_and_read_once_it_is_there() {
    let world = World::shop("", KEYED);
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(1).says(&["HX3001", "orders.jsonl", "cannot be read", "create it or correct `path`"]);
    assert_eq!(world.status()[0]["state"], "stopped");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    world.accounts_for(3, 0);
}

/// Goal: `--once` does not wait an hour for a mistyped path. Method: three attempts, no other bound.
#[test]
fn once_gives_a_missing_file_up_after_its_attempts() {
    let world = World::shop("", KEYED);
    world.write("hapax.yaml", world.read("hapax.yaml").replace("giveUpAfter: 300ms", "maxAttempts: 3"));
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(1).says(&["HX3001", "orders.jsonl", "create it or correct `path`"]);
    assert_eq!(answer.err.matches("trying again").count(), 2, "{answer}");
}

/// Goal: a file that cannot be read is named, with the cure. Method: a folder in its place, which no right can open.
#[test]
fn an_unreadable_file_is_named() {
    let world = World::shop("", KEYED);
    std::fs::create_dir(world.path("orders.jsonl")).expect("a folder");
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(1).says(&["HX3001", "orders.jsonl", "cannot be read", "name a file in `path`"]);
}

/// Goal: a worker waits for a file that comes late. Method: start, then write the file.
#[test]
fn a_worker_waits_for_a_file_that_comes_late() {
    let world = World::shop("", KEYED);
    let patient = world.read("hapax.yaml").replace("giveUpAfter: 300ms", "giveUpAfter: 1h");
    world.write("hapax.yaml", patient);
    let worker = world.start("worker.log", &["run"]);
    worker.until_it_says("HX3001");
    world.write("orders.jsonl", orders(1..=3));
    until("the rows are there", || world.rows() == 3);
    worker.terminate();
    worker.ends().exits(0);
    world.accounts_for(3, 0);
}

/// Goal: a followed file that vanishes loses nothing that was written to it, and its successor is a person's decision.
/// Method: deliver, remove the file, put another in its place, run again; then accept it.
#[test]
fn a_file_that_vanishes_stops_with_code_5_until_a_person_accepts() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    rename(&world.path("orders.jsonl"), &world.path("elsewhere"));
    std::fs::create_dir(world.path("away")).expect("a folder");
    rename(&world.path("elsewhere"), &world.path("away/orders.jsonl"));
    world.append("away/orders.jsonl", orders(4..=5));
    until("what was written to the file that is still open is read", || world.rows() == 5);
    worker.terminate();
    worker.ends().exits(0);
    world.write("orders.jsonl", orders(6..=8));
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(5).says(&["HX3004", "orders.jsonl", "no longer what it was", "hapax reset orders --accept"]);
    assert_eq!(world.rows(), 5, "a refused start writes nothing");
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 8);
    world.accounts_for(8, 0);
}

/// Goal: a file cut in place is noticed, with the bytes that are gone. Method: truncate between two runs.
#[test]
fn a_file_cut_in_place_stops_with_code_5() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=5));
    world.hapax(&["run", "--once"]).exits(0);
    let file = std::fs::File::options().write(true).open(world.path("orders.jsonl")).expect("the file");
    file.set_len(orders(1..=2).len() as u64).expect("cut");
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(5).says(&["HX3002", "orders.jsonl", "truncated in place", &orders(1..=5).len().to_string()]);
    answer.says(&["`hapax reset orders --accept`"]);
    assert_eq!(world.status()[0]["state"], "stopped");
    assert_eq!(world.status()[0]["exitCode"], 5);
}

/// Goal: one workflow without its file leaves the others running. Method: two workflows, one file.
#[test]
fn a_missing_file_leaves_other_workflows_running() {
    let world = World::shop("", KEYED);
    world.sql("CREATE TABLE refunds (id INTEGER PRIMARY KEY, amount INTEGER)");
    let one = world.read("hapax.yaml");
    let other = one.replace("workflows:\n", "").replace("id: orders", "id: refunds");
    let other = other.replace("orders.jsonl", "refunds.jsonl").replace("table: orders", "table: refunds");
    world.write("hapax.yaml", one + &other);
    world.write("refunds.jsonl", orders(1..=4));
    world.hapax(&["run", "--once"]).exits(1).says(&["HX3001", "orders.jsonl"]);
    assert_eq!(world.ask::<i64>("SELECT count(*) FROM refunds"), 4);
    let states: Vec<_> = world.status().iter().map(|delivery| delivery["state"].clone()).collect();
    assert_eq!(states, ["stopped", "finished"]);
}
