//! Targets that do not fit: a message with place, code and cure, and nothing written.

use crate::world::{World, order, orders};

/// Goal: a missing table is named with a statement that makes it; made, the same run delivers. Method: run, obey, run.
#[test]
fn a_missing_table_is_answered_with_the_statement_that_makes_it() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.sql("DROP TABLE orders");
    world.write("orders.jsonl", orders(1..=3));
    let words = ["HX4110", "\"orders\"", "shop.db", "there is no such table", "CREATE TABLE \"orders\""];
    world.hapax(&["run", "--once"]).exits(1).says(&words);
    world.hapax(&["check", "--live"]).exits(1).says(&words);
    assert_eq!(world.status()[0]["state"], "stopped");
    world.sql(crate::world::ORDERS);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:10 2:20 3:30");
    world.accounts_for(3, 0);
}

/// Goal: a missing database file is named. Method: no file at all.
#[test]
fn a_missing_database_is_named() {
    let world = World::shop("", "");
    std::fs::remove_file(world.path("shop.db")).expect("it is there");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(1).says(&["HX4001", "shop.db", "does not exist", "create the database"]);
    assert!(!world.path("shop.db").exists(), "a mistyped path makes no new database");
}

/// Goal: a file that is no database is named. Method: text in its place.
#[test]
fn a_file_that_is_no_database_is_named() {
    let world = World::shop("", "");
    for name in ["shop.db", "shop.db-wal", "shop.db-shm"] {
        std::fs::remove_file(world.path(name)).ok();
    }
    world.write("shop.db", "this is a letter to my aunt and no database at all, however long one looks at it");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(1).says(&["HX4101", "shop.db", "no SQLite database"]);
    assert!(world.read("shop.db").starts_with("this is a letter"), "it is left as it was");
}

/// Goal: a keyed mode without a unique index is answered with the statement that makes it. Method: run, obey, run.
#[test]
fn a_missing_unique_index_is_answered_with_the_statement_that_makes_it() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER NOT NULL, customer TEXT, amount INTEGER)");
    world.write("orders.jsonl", orders(1..=3));
    let cure = "CREATE UNIQUE INDEX \"orders_id\" ON \"orders\" (\"id\")";
    world.hapax(&["run", "--once"]).exits(1).says(&["HX4112", "\"orders\"", "shop.db", cure]);
    assert_eq!(world.rows(), 0);
    world.sql(cure);
    world.hapax(&["run", "--once"]).exits(0);
    world.accounts_for(3, 0);
}

/// Goal: a key field that no column takes is refused with the cure.
#[test]
fn a_key_field_without_a_column_is_refused() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [number] }");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(1).says(&["HX4114", ".number", "map a column to it under columns"]);
}

/// Goal: a table's name is never read as SQL. Method: a name with a quote and a statement in it, beside a table that the
/// statement would drop; deliver, look at the letters, and check.
#[test]
fn a_table_with_a_hostile_name_is_only_a_name() {
    let world = World::empty();
    world.sql(
        r#"CREATE TABLE x (id INTEGER); INSERT INTO x VALUES (1);
        CREATE TABLE "a""; DROP TABLE x; --" (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)"#,
    );
    world.configure("orders", "", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    let named = world.read("hapax.yaml").replace("table: orders", r#"table: 'a"; DROP TABLE x; --'"#);
    world.write("hapax.yaml", named);
    world.write("orders.jsonl", format!("{}{}{{\"id\":null}}\n", order(1, 5), order(2, 6)));
    world.hapax(&["check", "--live"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.ask::<i64>(r#"SELECT count(*) FROM "a""; DROP TABLE x; --""#), 2);
    assert_eq!(world.ask::<i64>("SELECT count(*) FROM x"), 1, "the other table is still there");
    world.hapax(&["dlq", "replay", "--overwrite", "--yes"]).exits(1).says(&["1 refused again"]);
    world.hapax(&["setup", "--sql"]).exits(0).says(&[r#"CREATE TABLE "a""; DROP TABLE x; --""#]);
    world.accounts_for(3, 1);
}

/// Goal: a hostile name of a table that is not there is refused like any other.
#[test]
fn a_hostile_name_of_a_missing_table_is_refused() {
    let world = World::shop("", "deduplication: { keyFields: [id] }");
    let named = world.read("hapax.yaml").replace("table: orders", r#"table: 'a"; DROP TABLE orders; --'"#);
    world.write("hapax.yaml", named);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(1).says(&["HX4110", "there is no such table"]);
    assert_eq!(world.rows(), 0, "the table is still there");
}

/// Goal: a database that another program holds is waited for and its holder named; released, everything is delivered.
#[test]
fn a_locked_database_names_its_holder() {
    let world = World::shop("busyTimeout: 50ms", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("orders.jsonl", orders(1..=3));
    let holder = world.database("shop.db");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let pid = format!("pid {}", std::process::id());
    world.hapax(&["run", "--once"]).exits(1).says(&["HX4003", "shop.db", "locked by", &pid, "end its transaction"]);
    holder.execute_batch("ROLLBACK").expect("the lock is free");
    world.hapax(&["run", "--once"]).exits(0);
    world.accounts_for(3, 0);
}

/// Goal: nobody delivers into our own tables. Method: the name of one, in other letters.
#[test]
fn our_own_tables_are_no_target() {
    let world = World::shop("", "");
    world.write("hapax.yaml", world.read("hapax.yaml").replace("table: orders", "table: HAPAX_progress"));
    world.hapax(&["run", "--once"]).exits(2).says(&["hapax.yaml:4:", "HX1033", "Hapax's own", "name a table of yours"]);
}

/// Goal: a view is refused. Method: a view in the table's place.
#[test]
fn a_view_is_no_target() {
    let world = World::shop("", "deduplication: { keyFields: [id] }");
    world.sql("ALTER TABLE orders RENAME TO kept; CREATE VIEW orders AS SELECT * FROM kept");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(1).says(&["HX4111", "\"orders\"", "it is a view", "ordinary tables"]);
}

/// Goal: an event without a key for the key column is a dead letter with the cure. Method: a key column, and no fields that
/// name the thing.
#[test]
fn an_event_without_a_key_for_the_key_column_is_a_dead_letter() {
    let world = World::shop("onConflict: update, keyColumn: hapax_key", "guarantee: at-least-once, maxRejects: 100%");
    world.sql("DROP TABLE orders; CREATE TABLE orders (hapax_key TEXT NOT NULL UNIQUE, id INTEGER, amount INTEGER)");
    world.write("orders.jsonl", orders(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.letters().matches("HX2024 the event has no key for the key column").count(), 2);
    world.accounts_for(2, 2);
}
