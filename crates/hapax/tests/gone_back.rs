//! Targets that are no longer what they were: restored, emptied, dropped, gone.

use crate::world::{KEYED, ORDERS, World, orders, until};

/// Removes the database with its log.
fn remove(world: &World) {
    for name in ["shop.db", "shop.db-wal", "shop.db-shm"] {
        std::fs::remove_file(world.path(name)).ok();
    }
}

/// Six lines were delivered, and then the target was restored to a copy from when it had three.
fn restored() -> World {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    let copy = world.path("backup.db");
    world.sql(&format!("VACUUM INTO '{}'", copy.to_str().expect("a path")));
    world.append("orders.jsonl", orders(4..=6));
    world.hapax(&["run", "--once"]).exits(0);
    remove(&world);
    crate::world::rename(&copy, &world.path("shop.db"));
    assert_eq!(world.rows(), 3);
    world
}

/// Goal: a target restored to an older copy is rewound, as long as the source holds the range. Method: copy, deliver,
/// restore, deliver.
#[test]
fn a_restored_target_is_rewound() {
    let world = restored();
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(0).says(&["the target went back", "rewinding"]);
    assert_eq!(answer.err.matches("the target went back").count(), 1, "said once: {answer}");
    assert_eq!(world.rows(), 6);
    world.accounts_for(6, 0);
}

/// Goal: where the range is gone at the source too, a person decides: code 5 with the positions. Method: restore the
/// target after the input was rotated away.
#[test]
fn a_restored_target_whose_source_is_gone_stops_with_code_5() {
    let world = restored();
    std::fs::remove_file(world.path("orders.jsonl")).expect("the input is gone");
    world.write("orders.jsonl", orders(7..=8));
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(5).says(&["HX3004", "no longer what it was", &orders(1..=3).len().to_string(), "--accept"]);
    assert_eq!(world.rows(), 3);
}

/// Goal: a table dropped under a live worker stops it with code 5 and the reason, and nothing is lost. Method: drop, add
/// lines, make it anew, accept from the beginning.
#[test]
fn a_table_dropped_under_a_live_worker_stops_it_with_code_5() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    world.sql("DROP TABLE orders");
    world.append("orders.jsonl", orders(4..=5));
    worker.ends().exits(5).says(&["HX4012", "the table was dropped", "`hapax reset orders --accept`"]);
    world.sql(ORDERS);
    world.hapax(&["reset", "orders", "--accept", "--to", "earliest", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 5);
}

/// Goal: a database deleted under a live worker stops it in the end, with its name. Method: delete, add a line.
#[test]
fn a_database_deleted_under_a_live_worker_is_named() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    remove(&world);
    world.append("orders.jsonl", orders(4..=4));
    worker.ends().exits(1).says(&["HX4001", "shop.db", "does not exist", "create the database"]);
    assert!(!world.path("shop.db").exists(), "no empty database takes its place");
}
