//! `progress: state`, where rows and position are two commits: writes and saves that run out of time, and the rules for rejects.

use crate::world::{Worker, World, order, until};

/// The state store of every world here.
const STORE: &str = "hapax-data/state.db";
/// Retries that go on until the test gives a lock back.
const DELIVERY: &str = "epoch: { interval: 20ms, commitTimeout: 300ms }, retries: { backoffMs: [50] }";

/// Workflow `orders` with its progress in the state store.
fn configure(world: &World, sink: &str, delivery: &str) {
    world.write(
        "hapax.yaml",
        format!(
            "workflows:
  - id: orders
    source: {{ file: {{ path: orders.jsonl }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, progress: state, {sink} }} }}
    delivery: {{ {delivery} }}
"
        ),
    );
}

/// A world with table `orders` and that workflow.
fn shop(sink: &str, delivery: &str) -> World {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)");
    configure(&world, sink, delivery);
    world
}

/// Nobody else writes to this database until what is returned is dropped.
fn lock(world: &World, database: &str) -> rusqlite::Connection {
    let connection = world.database(database);
    connection.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    connection
}

/// How many inputs are in the ledger.
fn read(world: &World) -> u64 {
    world.status().iter().filter_map(|delivery| delivery["progress"]["read"].as_u64()).sum()
}

/// How many letters there are.
fn letters(world: &World) -> u64 {
    world.ask_of::<i64>(STORE, "SELECT count(*) FROM hapax_dead_letters").unsigned_abs()
}

/// How often the worker gave up on a commit ("no answer within") or on a position ("not saved within").
fn given_up(worker: &Worker) -> usize {
    worker.said().matches(" within ").count()
}

/// Goal: a write that ran out of time never lands after a newer one: the newest value stays. Method: the target is locked
/// until a write was given up, then newer values of the same key come; five times, and the table remembers every value it had.
#[test]
fn a_write_that_was_given_up_never_lands_after_newer_ones() {
    let delivery = format!("guarantee: at-least-once, deduplication: {{ keyFields: [id] }}, {DELIVERY}");
    let world = shop("onConflict: update, progressInterval: 20ms, busyTimeout: 1m", &delivery);
    world.write("orders.jsonl", order(1, 1));
    let worker = world.start("worker.log", &["run"]);
    until("the first value is there", || world.amounts() == "1:1");
    let mut value = 1;
    for _ in 0..5 {
        let locked = lock(&world, "shop.db");
        for _ in 0..3 {
            value += 1;
            let before = given_up(&worker);
            world.append("orders.jsonl", order(1, value));
            until("a write is given up", || given_up(&worker) > before);
        }
        drop(locked);
        until("the newest value is there", || world.amounts() == format!("1:{value}"));
        // Whoever still waits for the lock looks at least ten times a second whether it is free.
        for _ in 0..50 {
            assert_eq!(world.amounts(), format!("1:{value}"), "the newest stays: {}", worker.said());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    worker.terminate();
    worker.ends().exits(0);
    assert_eq!(world.amounts(), format!("1:{value}"));
    world.accounts_for(value.unsigned_abs(), 0);
    world.hapax(&["reconcile"]).exits(0).says(&["adds up"]);
}

/// Goal: at-most-once obeys the rules for rejects: an input that may not be left out stops the workflow and leaves nothing behind, and so
/// do too many; a restart judges them again, and takes none for doubtful. Method: 5,000 lines of which none can be delivered, refused by
/// the format and by the table, or one by the format among those the table would take.
#[test]
fn at_most_once_stops_where_every_input_dies() {
    let mixed = [order(1, 10), "no json\n".to_owned()].concat();
    for (bad, words) in
        [("no json\n", "not valid JSON"), ("{\"id\":0,\"amount\":-1}\n", "CHECK"), (&mixed, "not valid JSON")]
    {
        for (rule, letters_max) in [("onReject: stop", 0), ("maxRejects: 10%", 99)] {
            let delivery = format!("guarantee: at-most-once, {rule}, epoch: {{ interval: 20ms }}");
            let world = World::empty();
            world.sql("CREATE TABLE orders (id INTEGER, amount INTEGER CHECK (amount > 0))");
            configure(&world, "onConflict: append", &delivery);
            world.write("orders.jsonl", bad.repeat(5_000));
            for life in 1..=2 {
                world.hapax(&["run", "--once"]).exits(1).says(&["HX4010", "rejected", words]);
                let letters = letters(&world);
                assert!(letters <= letters_max * life, "{rule}: {letters} letters of 5,000");
                let rows = world.rows().unsigned_abs();
                assert_eq!(read(&world), letters + rows, "{rule}: what stopped it is not in the books");
                assert!(bad == mixed || rows == 0, "{rule}: {rows} rows");
            }
        }
    }
}

/// Goal: a save of the position that ran out of time is made once: its letters are there once, and a replay delivers each once. Method: the
/// target is locked until a write is about to happen, the state store from then on; once the rows are there the save waits.
#[test]
fn a_save_that_was_given_up_writes_its_letters_once() {
    let patient = DELIVERY.replace("300ms", "2s");
    let unique = "guarantee: idempotent-keys, deduplication: { keyFields: [id], unique: true }";
    for (key, mode, guarantee) in [
        ("INTEGER PRIMARY KEY", "ignore", unique),
        ("INTEGER", "append", "guarantee: at-least-once"),
        ("INTEGER", "append", "guarantee: at-most-once"),
    ] {
        let world = World::empty();
        world.sql(&format!("CREATE TABLE orders (id {key}, amount INTEGER)"));
        let mapped = |amount: &str| {
            let sink = format!("onConflict: {mode}, progressInterval: 1ms, columns: {{ id: .id, amount: {amount} }}");
            configure(&world, &sink, &format!("{guarantee}, maxRejects: 100%, {patient}"));
        };
        mapped(".note");
        let bad = |id: i64| format!("{{\"id\":{id},\"amount\":1,\"note\":\"no number\"}}\n");
        world.write("orders.jsonl", (1..=55).map(bad).collect::<String>());
        world.hapax(&["run", "--once"]).exits(0);
        let worker = world.start("worker.log", &["run"]);
        world.append("orders.jsonl", "{\"id\":58,\"note\":5}\n");
        until("it is at work", || world.rows() == 1);
        let (target, before) = (lock(&world, "shop.db"), intent(&world));
        world.append("orders.jsonl", ["{\"id\":57,\"note\":5}\n".to_owned(), bad(56)].concat());
        until("it is about to write", || intent(&world) != before);
        let store = lock(&world, STORE);
        drop(target);
        until("the position cannot be saved", || given_up(&worker) > 0);
        drop(store);
        until("all is saved", || read(&world) == 58);
        worker.terminate();
        worker.ends().exits(0);
        assert_eq!((letters(&world), world.rows()), (56, 2), "{guarantee}: a letter each");
        world.accounts_for(58, 56);
        world.hapax(&["reconcile"]).exits(0).says(&["adds up"]);
        mapped(".amount");
        world.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["56 replayed"]);
        assert_eq!(
            (world.rows(), world.ask::<i64>("SELECT count(DISTINCT id) FROM orders")),
            (58, 58),
            "{guarantee}: once each"
        );
    }
}

/// Up to where the worker was about to write, as the state store has it.
fn intent(world: &World) -> Option<String> {
    world.ask_of(STORE, "SELECT max(to_position) FROM hapax_intents")
}
