//! All four guarantees from a file into SQLite, and the four modes.

use crate::world::{KEYED, World, number, order, orders};

/// Goal: each guarantee delivers everything, and a second run delivers nothing new. Method: one folder per guarantee and
/// mode that the audit lets start.
#[test]
fn each_guarantee_delivers_everything_and_a_second_run_adds_nothing() {
    let keyed = "deduplication: { keyFields: [id] }";
    let unique = "deduplication: { keyFields: [id], unique: true }";
    let cases = [
        ("at-most-once", "onConflict: append", ""),
        ("at-most-once", "onConflict: append, progress: state", ""),
        ("at-least-once", "onConflict: append", ""),
        ("at-least-once", "onConflict: append, progress: state", ""),
        ("idempotent-keys", "onConflict: update", keyed),
        ("idempotent-keys", "onConflict: newer, versionColumn: amount, progress: state", keyed),
        ("idempotent-keys", "onConflict: ignore, progress: state", unique),
        ("exactly-once", "onConflict: append", ""),
        ("exactly-once", "onConflict: update", keyed),
        ("exactly-once", "onConflict: newer", keyed),
    ];
    for (guarantee, sink, delivery) in cases {
        let world = World::shop(sink, &format!("guarantee: {guarantee}, {delivery}"));
        let table = if sink.contains("append") {
            "DROP TABLE orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER)"
        } else if sink.contains("newer") {
            "ALTER TABLE orders ADD hapax_version BLOB; ALTER TABLE orders ADD hapax_deleted INTEGER"
        } else {
            ""
        };
        world.sql(table);
        world.write("orders.jsonl", orders(1..=50));
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.rows(), 50, "{guarantee} with {sink}");
        let again = world.hapax(&["run", "--once", "--json"]);
        assert_eq!(again.exits(0).json()["deliveries"][0]["inserts"], 0, "{guarantee} with {sink}: {again}");
        assert_eq!(world.rows(), 50, "{guarantee} with {sink}: a second run adds nothing");
        world.append("orders.jsonl", orders(51..=60));
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.rows(), 60, "{guarantee} with {sink}: what was added is delivered");
        assert_eq!(world.ask::<i64>("SELECT count(DISTINCT id) FROM orders"), 60, "{guarantee} with {sink}");
        world.accounts_for(60, 0);
    }
}

/// Goal: `update` keeps the last event of a key, `ignore` the first, in lane order. Method: one key three times.
#[test]
fn update_keeps_the_last_and_ignore_the_first() {
    let lines = [order(1, 10), order(2, 20), order(1, 11), order(1, 12)].concat();
    let update = World::shop("onConflict: update", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    update.write("orders.jsonl", &lines);
    update.hapax(&["run", "--once"]).exits(0);
    assert_eq!(update.amounts(), "1:12 2:20");
    let unique = "guarantee: exactly-once, deduplication: { keyFields: [id], unique: true }";
    let ignore = World::shop("onConflict: ignore", unique);
    for lines in [orders(1..=2), order(1, 11), order(1, 12)] {
        ignore.append("orders.jsonl", lines);
        ignore.hapax(&["run", "--once"]).exits(0);
    }
    assert_eq!(ignore.amounts(), "1:10 2:20");
    update.accounts_for(4, 0);
    ignore.accounts_for(4, 0);
}

/// Goal: the strategy that is written makes the keys: which events are one row, within an epoch and across two. Method: a line
/// twice and another one in a first run, the same line again in a second; rows after each, and what progress says of the key.
#[test]
fn each_key_strategy_keeps_what_it_says() {
    let cases = [
        ("keyFields: [id], unique: true, strategy: content", "content-fields", 2, 2),
        ("keyFields: [id], strategy: content", "content-fields", 3, 4),
        ("keyFields: [id], strategy: content-with-epoch", "content-fields-epoch", 2, 3),
        ("keyFields: [id], strategy: composite", "composite", 2, 3),
        ("strategy: epoch-sequence", "epoch-sequence", 3, 4),
        ("strategy: source-offset", "source-offset", 3, 4),
    ];
    for (deduplication, name, first, second) in cases {
        let delivery = format!("guarantee: exactly-once, deduplication: {{ {deduplication} }}");
        let world = World::shop("onConflict: ignore, keyColumn: hapax_key", &delivery);
        world.sql("DROP TABLE orders");
        world.sql("CREATE TABLE orders (hapax_key TEXT NOT NULL UNIQUE, id INTEGER, customer TEXT, amount INTEGER)");
        world.write("orders.jsonl", [order(1, 10), order(1, 10), order(2, 20)].concat());
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.rows(), first, "{deduplication}: one epoch");
        world.append("orders.jsonl", order(1, 10));
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.rows(), second, "{deduplication}: two epochs");
        let contract = world.ask::<String>("SELECT contract FROM hapax_progress");
        assert!(contract.contains(name), "{deduplication}: {contract}");
        world.accounts_for(4, 0);
    }
}

/// Goal: two different events of one epoch under a key that was promised to be unique are told, not dropped, and foretold by a
/// check; every cure works. Method: `unique: true` with a key that is not; then each cure of the message and of its page.
#[test]
fn a_key_that_is_not_as_unique_as_promised_stops_with_the_cure() {
    let unique =
        |fields: &str| format!("guarantee: exactly-once, deduplication: {{ keyFields: [{fields}], unique: true }}");
    let told = ["HX4013", "positions 0 and 38", "h1_", "name more keyFields", "onConflict: update or newer"];
    let over_both =
        "DROP TABLE orders; CREATE TABLE orders (id INTEGER NOT NULL, amount INTEGER NOT NULL, UNIQUE (id, amount))";
    let own_key = "DROP TABLE orders; CREATE TABLE orders (id INTEGER, amount INTEGER, hapax_key TEXT NOT NULL UNIQUE)";
    let cures = [
        (over_both, "onConflict: ignore", unique("id, amount"), "1:10 1:11 2:20"),
        ("", "onConflict: update", KEYED.to_owned(), "1:11 2:20"),
        ("ALTER TABLE orders ADD hapax_version BLOB", "onConflict: newer", KEYED.to_owned(), "1:11 2:20"),
        (own_key, "onConflict: ignore, keyColumn: hapax_key", KEYED.to_owned(), "1:10 1:11 2:20"),
    ];
    for (table, sink, delivery, rows) in cures {
        let world = World::shop("onConflict: ignore", &unique("id"));
        world.write("orders.jsonl", [order(1, 10), order(1, 11), order(2, 20)].concat());
        world.hapax(&["check", "--live"]).exits(1).says(&["a run would stop"]).says(&told);
        world.hapax(&["run", "--once"]).exits(1).says(&told);
        assert_eq!(world.rows(), 0, "nothing of the epoch is visible");
        world.sql(table);
        world.configure("orders", sink, &delivery);
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
        world.hapax(&["check", "--live"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.amounts(), rows, "{sink}");
    }
}

/// Goal: a check foretells a collision only where a run has both events in one epoch; in two the first stays. Method: epochs of one
/// event each.
#[test]
fn events_of_two_epochs_do_not_collide() {
    let delivery = "guarantee: exactly-once, deduplication: { keyFields: [id], unique: true }";
    let world = World::shop("onConflict: ignore", delivery);
    let configuration = world.read("hapax.yaml").replace("interval: 20ms", "interval: 20ms, maxEvents: 1");
    world.write("hapax.yaml", configuration);
    world.write("orders.jsonl", [order(1, 10), order(1, 11), order(2, 20)].concat());
    world.hapax(&["check", "--live"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:10 2:20");
}

/// Goal: deletes delete in `update`. Method: insert two, delete one, and delete one that never was.
#[test]
fn a_delete_removes_its_row_in_update() {
    let sink = "deleteWhen: '.op == \"d\"'";
    let world = World::shop(sink, "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("orders.jsonl", orders(1..=2) + "{\"id\":1,\"op\":\"d\"}\n{\"id\":9,\"op\":\"d\"}\n");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "2:20");
    world.accounts_for(4, 0);
}

/// Goal: in `newer` a delete leaves a tombstone that an older event cannot undo. Method: a declared version; the older
/// event comes after the delete.
#[test]
fn a_tombstone_in_newer_cannot_be_undone_by_an_older_event() {
    let sink = "onConflict: newer, versionColumn: version, deleteWhen: '.op == \"d\"'";
    let world = World::shop(sink, "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.sql("ALTER TABLE orders ADD version INTEGER; ALTER TABLE orders ADD hapax_deleted INTEGER");
    let event = |id: i64, version: i64, rest: &str| format!("{{\"id\":{id},\"version\":{version}{rest}}}\n");
    let lines = [
        event(1, 1, ",\"amount\":10"),
        event(1, 5, ",\"op\":\"d\""),
        event(1, 3, ",\"amount\":13"),
        event(2, 7, ",\"amount\":27"),
        event(2, 6, ",\"amount\":26"),
    ];
    world.write("orders.jsonl", lines.concat());
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.ask::<i64>("SELECT amount FROM orders WHERE id = 2"), 27, "the older event lost");
    assert_eq!(world.ask::<i64>("SELECT hapax_deleted FROM orders WHERE id = 1"), 1, "still a tombstone");
    assert_eq!(world.ask::<i64>("SELECT version FROM orders WHERE id = 1"), 5);
    world.append("orders.jsonl", event(1, 6, ",\"amount\":16"));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.ask::<i64>("SELECT coalesce(hapax_deleted, 0) FROM orders WHERE id = 1"), 0, "it lives again");
    assert_eq!(world.ask::<i64>("SELECT amount FROM orders WHERE id = 1"), 16);
    world.accounts_for(6, 0);
}

/// Goal: columns are taken from where the mapping says, and by name elsewhere. Method: nested paths and a key inside.
#[test]
fn columns_are_mapped_from_nested_fields() {
    let sink = "columns: { id: .order.id, amount: .order.total.cents }";
    let world = World::shop(sink, "guarantee: exactly-once, deduplication: { keyFields: [.order.id] }");
    let line = r#"{"order":{"id":7,"total":{"cents":1250,"currency":"EUR"}},"customer":"ann"}"#;
    world.write("orders.jsonl", format!("{line}\n"));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.ask::<String>("SELECT id || ' ' || customer || ' ' || amount FROM orders"), "7 ann 1250");
    world.accounts_for(1, 0);
}

/// Goal: a key column of our own holds the key's text form. Method: a table keyed by nothing else.
#[test]
fn a_key_column_holds_the_key() {
    let world = World::shop("keyColumn: hapax_key", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.sql("DROP TABLE orders; CREATE TABLE orders (hapax_key TEXT NOT NULL UNIQUE, id INTEGER, amount INTEGER)");
    world.write("orders.jsonl", [order(1, 1), order(1, 2), order(2, 3)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:2 2:3");
    assert_eq!(
        world.ask::<i64>("SELECT count(*) FROM orders WHERE hapax_key GLOB 'h1_*' AND length(hapax_key) = 29"),
        2
    );
}

/// What two runs leave in a table that knows its rows by their keys alone, the second run after `then` was added.
fn keyed_runs(mode: &str, keys: &str, first: &str, then: &str) -> String {
    let delivery = format!("guarantee: exactly-once, deduplication: {{ {keys} }}");
    let world = World::shop(&format!("onConflict: {mode}, keyColumn: hapax_key"), &delivery);
    world.sql("DROP TABLE orders; CREATE TABLE orders (hapax_key TEXT NOT NULL UNIQUE, id INTEGER, amount INTEGER)");
    for lines in [first, then] {
        world.append("orders.jsonl", lines);
        world.hapax(&["run", "--once"]).exits(0);
    }
    world.amounts()
}

/// Goal: an event that is made of others is one row whichever of them came first. Method: `derived` by its name; the
/// contributors exchanged, and another window.
#[test]
fn an_event_made_of_others_is_known_whichever_came_first() {
    let event = |id, a, b, window| {
        format!("{{\"id\":{id},\"amount\":{id}0,\"a\":\"{a}\",\"b\":\"{b}\",\"window\":\"{window}\"}}\n")
    };
    let then = event(2, "y", "x", "w1") + &event(3, "x", "y", "w2") + &event(4, "w1", "y", "x");
    let keys = "keyFields: [a, b, window], strategy: derived";
    assert_eq!(keyed_runs("ignore", keys, &event(1, "x", "y", "w1"), &then), "1:10 3:30 4:40");
}

/// Goal: a window's correction is told from a repeat of what it said first, and belongs to the same window. Method:
/// `window-sequence` by its name; the same number, the next one, and window and number exchanged.
#[test]
fn a_correction_of_a_window_is_told_from_a_repeat() {
    let event = |id, window, number| {
        format!("{{\"id\":{id},\"amount\":{id}0,\"window\":\"{window}\",\"number\":\"{number}\"}}\n")
    };
    let then = event(2, "7", "0") + &event(3, "7", "1") + &event(4, "0", "7");
    let keys = "keyFields: [window, number], strategy: window-sequence";
    let runs = |mode| keyed_runs(mode, keys, &event(1, "7", "0"), &then);
    assert_eq!(runs("ignore"), "1:10 3:30 4:40", "a correction is an event of its own");
    assert_eq!(runs("update"), "3:30 4:40", "of the same window");
}

/// Goal: a generator's orders arrive, its poison as letters, whatever the seed. Method: updates, deletes and poison.
#[test]
fn generated_orders_arrive_and_their_poison_is_kept() {
    let sink = "deleteWhen: '.status == \"deleted\"'";
    let world = World::shop(sink, "guarantee: exactly-once, deduplication: { keyFields: [order_id] }, maxRejects: 50%");
    world.sql("DROP TABLE orders; CREATE TABLE orders (order_id INTEGER PRIMARY KEY, amount_cents INTEGER)");
    let source = "generate: { seed: 5, count: 2000, updates: 10%, poison: 5% }";
    world.write("hapax.yaml", world.read("hapax.yaml").replace("file: { path: orders.jsonl }", source));
    world.hapax(&["run", "--once"]).exits(0);
    let progress = world.status()[0]["progress"].clone();
    assert_eq!(number(&progress["read"]), 2000);
    assert!(number(&progress["dead"]) > 20, "{progress:#}");
    assert!(world.rows() > 1000);
}
