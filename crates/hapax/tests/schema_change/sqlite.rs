//! SQLite, whose columns hold whatever comes and whose tables change by being made anew.

use super::{KEYED, Place};
use crate::world::World;

impl Place for World {
    fn ready() -> Self {
        World::shop("", KEYED)
    }

    fn world(&self) -> &World {
        self
    }

    fn configure(&self, sink: &str, delivery: &str) {
        World::configure(self, "orders", sink, delivery);
    }

    fn sql(&self, statements: &str) {
        World::sql(self, statements);
    }

    fn ask(&self, query: &str) -> String {
        self.ask::<Option<String>>(&format!("SELECT CAST(({query}) AS TEXT)")).unwrap_or_default()
    }

    fn letters(&self) -> u64 {
        self.count("hapax_dead_letters WHERE state = 'dead'")
    }
}

/// Goal: another table under the name is another target. Method: two renames in one transaction.
#[test]
fn the_table_is_swapped() {
    let shop = World::ready();
    shop.sql("CREATE TABLE orders_new (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)");
    super::the_table_is_swapped(
        &shop,
        "BEGIN IMMEDIATE; ALTER TABLE orders RENAME TO orders_old; ALTER TABLE orders_new RENAME TO orders; COMMIT",
    );
}

/// Goal: a table that is gone stops the worker. Method: a rename, and back.
#[test]
fn the_table_is_renamed_away() {
    super::the_table_is_renamed_away(&World::ready(), 5, &["HX4012"]);
}

/// Goal: a table that is made anew, as SQLite's own manual changes a type or adds NOT NULL, is another target: code 5, and
/// nothing is lost. Method: the manual's steps under a stream of events.
#[test]
fn the_table_is_made_anew() {
    let shop = World::ready();
    let change = "BEGIN IMMEDIATE; CREATE TABLE made (id INTEGER PRIMARY KEY, customer VARCHAR(50) NOT NULL, amount BIGINT); \
                  INSERT INTO made SELECT id, customer, amount FROM orders; DROP TABLE orders; \
                  ALTER TABLE made RENAME TO orders; COMMIT";
    super::the_table_is_made_anew(&shop, change);
}
