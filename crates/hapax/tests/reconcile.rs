//! `hapax reconcile`: it agrees with sound books, and names the first difference in damaged ones.

use serde_json::Value;

use crate::world::{KEYED, World, number, order, orders};

const UNIQUE: &str = "guarantee: exactly-once, deduplication: { keyFields: [id], unique: true }";

/// Three runs of ten orders each, so that the log has at least three epochs; order 7 is updated in the last.
fn delivered(sink: &str, delivery: &str) -> World {
    let world = World::shop(sink, delivery);
    for lines in [orders(1..=10), orders(11..=20), [orders(21..=29), order(7, 1)].concat()] {
        world.append("orders.jsonl", lines);
        world.hapax(&["run", "--once"]).exits(0);
    }
    world
}

fn reconciled(world: &World, code: i32) -> Value {
    world.hapax(&["reconcile", "--json"]).exits(code).json()["deliveries"][0].clone()
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no check {name}: {report:#}"))
}

/// Damages the books or the table, and returns what the named check says of it.
fn damaged(world: &World, sql: &str, name: &str) -> String {
    world.sql(sql);
    let report = reconciled(world, 1);
    assert_eq!(report["addsUp"], false);
    assert_eq!(check(&report, name)["outcome"], "differs", "{report:#}");
    check(&report, name)["text"].as_str().expect("a text").to_owned()
}

/// Goal: sound books and a sound table add up, in every mode. Method: each mode; a sample and everything.
#[test]
fn sound_deliveries_add_up() {
    for (sink, table) in [
        ("onConflict: update", crate::world::ORDERS),
        ("onConflict: ignore", crate::world::ORDERS),
        ("onConflict: newer", "CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER, hapax_version BLOB)"),
        ("onConflict: append", "CREATE TABLE orders (id INTEGER, amount INTEGER)"),
    ] {
        let world = World::shop(sink, UNIQUE);
        world.sql(&format!("DROP TABLE orders; {table}"));
        world.hapax(&["reconcile"]).exits(0).says(&["nothing was ever delivered"]);
        world.write("orders.jsonl", orders(1..=30));
        world.hapax(&["run", "--once"]).exits(0);
        let answer = world.hapax(&["reconcile", "--deep"]);
        answer.exits(0).says(&["ledger   agrees: 30 read", "chain    agrees", "log      agrees", "verdict  adds up"]);
        answer.keeps_silent_about(&["not compared"]);
        world.hapax(&["reconcile", "orders", "--sample", "1"]).exits(0).says(&["target   agrees"]);
    }
}

/// Goal: a row that vanished from the target is named: epoch, position, key. Method: delete one.
#[test]
fn a_row_that_vanished_is_named() {
    let world = delivered("onConflict: update", KEYED);
    let text = damaged(&world, "DELETE FROM orders WHERE id = 13", "target");
    assert!(text.contains("epoch 2") && text.contains("expected a row, found no row"), "{text}");
    let first = &reconciled(&world, 1)["firstDifference"];
    assert_eq!((number(&first["epoch"]), &first["expected"]), (2, &"a row".into()));
    assert_eq!(first["position"], [orders(1..=12)].concat().len().to_string());
    assert!(
        first["key"].as_str().is_some_and(|key| key.starts_with("h1_")) && first["input"].to_string().contains("13")
    );
    let answer = world.hapax(&["reconcile"]);
    answer.exits(1).says(&["target   DIFFERS", "does not add up; the first difference is in the target"]);
    world.hapax(&["reconcile", "--sample", "10"]).exits(0).says(&["10 keys of 10 inputs from epoch 3"]);
}

/// Goal: a row of an append table that is missing or doubled is counted. Method: delete one, then add two.
#[test]
fn rows_of_an_append_table_are_counted() {
    let world = World::shop("onConflict: append", "guarantee: exactly-once");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, amount INTEGER)");
    world.write("orders.jsonl", orders(1..=10));
    world.hapax(&["run", "--once"]).exits(0);
    assert!(damaged(&world, "DELETE FROM orders WHERE id = 3", "target").contains("1 are missing"));
    assert!(damaged(&world, "INSERT INTO orders VALUES (3, 30), (3, 30)", "target").contains("1 are too many"));
    let shared = world.hapax(&["reconcile", "--shared-table"]);
    shared.exits(0).says(&["holds all: 11 rows, 1 more than this delivery wrote: rows of others\n"]);
}

/// Goal: more rows than were written are explained by what the guarantee allows. Method: rows of others in a table whose progress is
/// kept elsewhere, under a guarantee that may repeat and one that never does.
#[test]
fn more_rows_are_explained_by_what_may_repeat() {
    for (guarantee, why) in [
        ("at-least-once", "3 more than this delivery wrote: repeats, which the guarantee allows, or rows of others"),
        ("at-most-once", "3 more than this delivery wrote: rows of inputs in doubt, or rows of others"),
    ] {
        let world = World::shop("onConflict: append, progress: state", &format!("guarantee: {guarantee}"));
        world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, amount INTEGER)");
        world.write("orders.jsonl", orders(1..=10));
        world.hapax(&["run", "--once"]).exits(0);
        world.sql("INSERT INTO orders VALUES (3, 30), (3, 30), (4, 1)");
        world.hapax(&["reconcile"]).exits(0).says(&["target   holds all: 13 rows", why, "verdict  adds up"]);
    }
}

/// Goal: many lanes into one table are each compared. Method: forty files into an append table; a row too many differs for all.
#[test]
fn many_lanes_into_one_table_add_up() {
    let world = World::shop("onConflict: append", "guarantee: exactly-once");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, amount INTEGER)");
    std::fs::create_dir(world.path("in")).expect("a folder");
    let yaml = world.read("hapax.yaml").replace("path: orders.jsonl", "path: 'in/*.jsonl'");
    world.write("hapax.yaml", yaml);
    (1..=40).for_each(|n| world.write(&format!("in/{n:02}.jsonl"), orders(n..=n)));
    world.hapax(&["run", "--once"]).exits(0);
    let sound = world.hapax(&["reconcile"]).exits(0).out.clone();
    assert_eq!(sound.matches("40 rows, as many as 40 deliveries wrote").count(), 40, "{sound}");
    world.sql("INSERT INTO orders VALUES (1, 1)");
    let damaged = world.hapax(&["reconcile"]).exits(1).out.clone();
    assert_eq!(damaged.matches("40 deliveries wrote 40: 1 are too many").count(), 40, "{damaged}");
}

/// Goal: damage to the books is named. Method: totals changed, a log row lost, moved, a letter lost.
#[test]
fn damaged_books_are_named() {
    let keyed = || delivered("onConflict: update", KEYED);
    let text = damaged(&keyed(), "UPDATE hapax_progress SET delivered = delivered + 1", "ledger");
    assert!(text.contains("30 read, 31 delivered"), "{text}");
    let text = damaged(&keyed(), "UPDATE hapax_progress SET read = read + 5, delivered = delivered + 5", "log");
    assert!(text.contains("read is 30 in their sum and 35 in the ledger"), "{text}");
    let text = damaged(&keyed(), "DELETE FROM hapax_epochs WHERE epoch = 2", "chain");
    assert!(text.contains("epoch 2 is missing"), "{text}");
    let text = damaged(&keyed(), "UPDATE hapax_epochs SET from_position = '3' WHERE epoch = 3", "chain");
    assert!(text.contains("epoch 3 begins at 3"), "{text}");

    let dead = World::shop("onConflict: update", KEYED);
    dead.write("orders.jsonl", format!("{}not an event\n{}", order(1, 10), order(3, 30)));
    dead.hapax(&["run", "--once"]).exits(0);
    let report = reconciled(&dead, 0);
    assert!(check(&report, "letters")["text"].as_str().is_some_and(|text| text.contains("1 dead")), "{report:#}");
    let text = damaged(&dead, "DELETE FROM hapax_dead_letters", "letters");
    assert!(text.contains("0 letters, but 1 dead inputs"), "{text}");
    let report = reconciled(&dead, 1);
    assert!(
        check(&report, "target")["text"].as_str().is_some_and(|text| text.contains("a dead letter (HX2001)")),
        "{report:#}"
    );
}

/// Goal: a removed row is expected where its last event removed it, and only there. Method: deletes and writes of one key
/// in several epochs; then the removed row comes back.
#[test]
fn deletes_are_expected_where_they_were_last() {
    let world = World::shop("onConflict: update, deleteWhen: .op == \"d\"", KEYED);
    let removed = |id: i64| format!("{{\"id\":{id},\"op\":\"d\"}}\n");
    for lines in [orders(1..=5), [removed(2), removed(3)].concat(), order(3, 33)] {
        world.append("orders.jsonl", lines);
        world.hapax(&["run", "--once"]).exits(0);
    }
    assert_eq!(world.amounts(), "1:10 3:33 4:40 5:50");
    world.hapax(&["reconcile"]).exits(0).says(&["verdict  adds up"]);
    let text = damaged(&world, "INSERT INTO orders (id) VALUES (2)", "target");
    assert!(text.contains("epoch 2") && text.contains("expected no row, found a row"), "{text}");
}

/// Goal: inputs that are dead, discarded or replayed letters are no differences. Method: a refused row, each way.
#[test]
fn letters_are_no_differences() {
    let world = World::shop("onConflict: ignore", UNIQUE);
    world.sql(
        "DROP TABLE orders; CREATE TABLE orders (id INTEGER NOT NULL UNIQUE, amount INTEGER CHECK (amount < 100))",
    );
    world.write("orders.jsonl", [order(1, 10), order(2, 200), order(3, 30)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["reconcile"]).exits(0).says(&["1 dead, 0 replayed, 0 discarded"]);
    world.hapax(&["dlq", "discard", "--yes"]).exits(0);
    world.hapax(&["reconcile"]).exits(0).says(&["0 dead, 0 replayed, 1 discarded", "verdict  adds up"]);
}

/// Goal: inputs of which a later transform makes dead letters were delivered all the same: said, and no difference. Method: a
/// number beyond 64 bits that a transform begins to read; once delivered, once replayed.
#[test]
fn a_transform_that_came_later_is_no_difference() {
    let huge = |id: i64| format!("{{\"id\":{id},\"customer\":\"ann\",\"amount\":123456789012345678901}}\n");
    let table =
        |amount: &str| format!("DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, amount {amount})");
    let later = |world: &World| {
        let text = world.read("hapax.yaml");
        world.write(
            "hapax.yaml",
            text.replace("    sink:", "    transform: \"if .amount == 7 { .amount = null }\"\n    sink:"),
        );
        assert_ne!(text, world.read("hapax.yaml"));
    };
    let delivered = World::shop("onConflict: update", KEYED);
    delivered.sql(&table("TEXT"));
    delivered.write("orders.jsonl", order(1, 10) + &huge(2));
    delivered.hapax(&["run", "--once"]).exits(0);
    assert_eq!(delivered.rows(), 2);
    later(&delivered);
    let said = ["1 inputs were not compared", "makes dead letters of them", "verdict  adds up"];
    delivered.hapax(&["reconcile"]).exits(0).says(&said);
    damaged(&delivered, "DELETE FROM orders WHERE id = 1", "target");

    let replayed = World::shop("onConflict: update", KEYED);
    replayed.sql(&table("INTEGER"));
    replayed.write("orders.jsonl", order(1, 10) + &huge(2));
    replayed.hapax(&["run", "--once"]).exits(0);
    replayed.sql("ALTER TABLE orders RENAME COLUMN amount TO amount_old; ALTER TABLE orders ADD COLUMN amount TEXT");
    replayed.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["1 replayed"]);
    replayed.hapax(&["reconcile"]).exits(0).says(&["0 dead, 1 replayed"]).keeps_silent_about(&["not compared"]);
    later(&replayed);
    replayed.hapax(&["reconcile"]).exits(0).says(&said);
}

/// Goal: a key counts once, however many epochs have it. Method: three runs, of which the last has a key of the first; then
/// everything once more.
#[test]
fn a_key_counts_once() {
    let world = delivered("onConflict: update", KEYED);
    world.hapax(&["reconcile"]).exits(0).says(&["29 keys of 30 inputs"]);
    world.hapax(&["reset", "orders", "--to", "earliest", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["reconcile"]).exits(0).says(&["29 keys of 60 inputs"]);
}

/// Goal: what cannot be compared is said, and is no difference. Method: the source is gone; the configuration changed; the
/// table is gone.
#[test]
fn what_cannot_be_compared_is_said() {
    let world = delivered("onConflict: update", KEYED);
    let lines = world.read("orders.jsonl");
    std::fs::remove_file(world.path("orders.jsonl")).expect("the file is there");
    world.hapax(&["reconcile"]).exits(0).says(&["target   not compared: the source no longer holds its inputs"]);
    world.write("orders.jsonl", lines);
    world.configure(
        "orders",
        "onConflict: update",
        "guarantee: exactly-once, deduplication: { keyFields: [id], unique: true }",
    );
    world.sql("ALTER TABLE orders RENAME TO elsewhere");
    world.hapax(&["reconcile"]).exits(0).says(&["target   not compared: the table is not there", "HX4110"]);
}

/// Goal: the books add up where progress is kept apart, where one row stands for several epochs.
#[test]
fn books_in_the_state_store_add_up() {
    let world = World::shop(
        "onConflict: update, progress: state",
        "guarantee: idempotent-keys, deduplication: { keyFields: [id] }, conditions: [one-worker]",
    );
    for lines in [orders(1..=10), orders(11..=20)] {
        world.append("orders.jsonl", lines);
        world.hapax(&["run", "--once"]).exits(0);
    }
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["20 keys of 20 inputs", "verdict  adds up"]);
    world.sql("DELETE FROM orders WHERE id = 20");
    world.hapax(&["reconcile", "--deep"]).exits(1).says(&["expected a row, found no row"]);
}

/// Goal: an input of several events of which one is refused dies whole, and ledger, rows and table agree about it, where progress
/// is kept apart. Method: two events per input and one row that the table refuses; then a row vanishes.
#[cfg(feature = "transform")]
#[test]
fn several_events_of_an_input_add_up_in_the_state_store() {
    let columns = "id INTEGER, amount INTEGER CHECK (amount <> 13)";
    for (table, sink, delivery) in [
        (columns.to_owned(), "onConflict: append", "guarantee: at-least-once"),
        (
            format!("{columns}, k BLOB NOT NULL UNIQUE"),
            "onConflict: ignore, keyColumn: k",
            "guarantee: idempotent-keys, deduplication: { keyFields: [id] }",
        ),
    ] {
        let world = World::shop(&format!("{sink}, progress: state"), &format!("{delivery}, maxRejects: 100%"));
        world.sql(&format!("DROP TABLE orders; CREATE TABLE orders ({table})"));
        let program =
            "    transform: '. = [{ \"id\": .id, \"amount\": 1 }, { \"id\": .id, \"amount\": .amount }]'\n    sink:";
        world.write("hapax.yaml", world.read("hapax.yaml").replace("    sink:", program));
        world.write("orders.jsonl", [orders(1..=9), order(10, 13), orders(11..=12)].concat());
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!((world.rows(), world.ask::<i64>("SELECT count(*) FROM orders WHERE id = 10")), (22, 0));
        world.accounts_for(12, 1);
        assert_eq!(number(&world.status()[0]["progress"]["rows"]), 22);
        world.hapax(&["reconcile", "--deep"]).exits(0).says(&["target   ", "1 dead", "verdict  adds up"]);
        let text = damaged(&world, "DELETE FROM orders WHERE id = 3 AND amount = 1", "target");
        assert!(text.contains("1 are missing") || text.contains("expected a row, found no row"), "{text}");
    }
}

/// Goal: a rotated file is read again where it lies now, and positions of both files are told apart. Method: rotate between
/// two runs; then lose a row of each file.
#[test]
fn a_rotated_file_is_read_again() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=5));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("orders.jsonl", orders(6..=8));
    crate::world::rename(&world.path("orders.jsonl"), &world.path("orders.jsonl.1"));
    world.write("orders.jsonl", orders(11..=15));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 13);
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["13 keys of 13 inputs from epoch 1", "verdict  adds up"]);
    for id in [7, 12] {
        world.sql(&format!("DELETE FROM orders WHERE id = {id}"));
        let input = reconciled(&world, 1)["firstDifference"]["input"].to_string();
        assert!(input.contains(&format!("\\\"id\\\":{id},")), "{input}");
        world.sql(&format!("INSERT INTO orders (id) VALUES ({id})"));
    }
    world.hapax(&["trace", "id=7", "--search"]).exits(0).says(&["verdict      delivered", "1 in the source"]);
}

/// Goal: a worker that deletes and writes meanwhile is no difference. Method: a generator at full speed, looked at again and
/// again while it runs.
#[test]
fn a_worker_at_work_is_no_difference() {
    let world = World::empty();
    world.sql("CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER)");
    world.write(
        "hapax.yaml",
        "workflows:
  - id: made
    source: { generate: { seed: 3, rate: 3000/s, keys: 50, updates: 30%, deletes: 30% } }
    sink: { sqlite: { path: shop.db, table: orders, onConflict: update, deleteWhen: .op == \"d\" } }
    delivery: { guarantee: exactly-once, epoch: { interval: 20ms }, deduplication: { keyFields: [order_id] } }
",
    );
    let worker = world.start("worker.log", &["run"]);
    crate::world::until("rows are there", || world.rows() > 100);
    for _ in 0..5 {
        world.hapax(&["reconcile", "--deep"]).exits(0).says(&["verdict  adds up"]);
    }
    worker.terminate();
    worker.ends().exits(0);
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["verdict  adds up"]).keeps_silent_about(&["not compared"]);
}

/// Goal: a discarded letter was not delivered: it counts for no key, and hides no difference of its key. Method: a key that was delivered
/// before its letter died, and one that has only its letter; then the row goes.
#[test]
fn a_discarded_letter_is_no_row() {
    let world = World::shop(
        "onConflict: update",
        "guarantee: exactly-once, deduplication: { keyFields: [id] }, maxRejects: 100%",
    );
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER CHECK (amount < 100))");
    for line in [order(9, 1), order(9, 200), order(8, 200)] {
        world.append("orders.jsonl", line);
        world.hapax(&["run", "--once"]).exits(0);
    }
    world.hapax(&["reconcile"]).exits(0).says(&["1 keys of 3 inputs"]);
    world.hapax(&["dlq", "discard", "--yes"]).exits(0).says(&["2 letter(s) discarded"]);
    world.hapax(&["reconcile"]).exits(0).says(&["1 keys of 3 inputs", "adds up"]);
    let text = damaged(&world, "DELETE FROM orders WHERE id = 9", "target");
    assert!(text.contains("expected a row, found no row"), "{text}");
}
