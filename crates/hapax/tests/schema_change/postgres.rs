//! PostgreSQL, which changes a column's type in place and lets every change commit as one.

use super::{KEYED, Place};
use crate::postgres::world::Shop;
use crate::world::World;

impl Place for Shop {
    fn world(&self) -> &World {
        &self.world
    }

    fn configure(&self, sink: &str, delivery: &str) {
        Shop::configure(self, sink, delivery);
    }

    fn sql(&self, statements: &str) {
        Shop::sql(self, statements);
    }

    fn ask(&self, query: &str) -> String {
        Shop::ask(self, query)
    }

    fn letters(&self) -> u64 {
        self.count("hapax.dead_letters WHERE state = 'dead'")
    }
}

fn shop() -> Shop {
    Shop::ready("", KEYED)
}

/// Goal: a new column is filled without a gap. Method: ALTER TABLE under a stream of events.
#[test]
fn a_column_is_added() {
    super::a_column_is_added(&shop(), "ALTER TABLE orders ADD COLUMN colour text");
}

/// Goal: a new column with a default needs no field. Method: ALTER TABLE under a stream of events.
#[test]
fn a_column_with_a_default_is_added() {
    super::a_column_with_a_default_is_added(&shop(), "ALTER TABLE orders ADD COLUMN state text NOT NULL DEFAULT 'new'");
}

/// Goal: a new column that nothing can fill stops the worker. Method: its default is dropped in the same transaction.
#[test]
fn a_column_that_nothing_fills_is_added() {
    let change = "BEGIN; ALTER TABLE orders ADD COLUMN state text NOT NULL DEFAULT 'new'; \
                  ALTER TABLE orders ALTER COLUMN state DROP DEFAULT; COMMIT";
    super::a_column_that_nothing_fills_is_added(
        &shop(),
        change,
        "ALTER TABLE orders ALTER COLUMN state SET DEFAULT 'new'",
    );
}

/// Goal: wider columns take what they refused before. Method: ALTER COLUMN TYPE under a stream of events.
#[test]
fn columns_are_widened() {
    let shop = shop();
    shop.sql("ALTER TABLE orders ALTER COLUMN customer TYPE varchar(5)");
    let change = "ALTER TABLE orders ALTER COLUMN amount TYPE bigint, ALTER COLUMN customer TYPE varchar(50)";
    super::columns_are_widened(&shop, change);
}

/// Goal: a renamed column does not lose its values silently. Method: RENAME COLUMN under a stream of events.
#[test]
fn a_column_is_renamed() {
    super::a_column_is_renamed(&shop());
}

/// Goal: a dropped column whose field still comes stops the worker. Method: DROP COLUMN under a stream of events.
#[test]
fn a_column_is_dropped() {
    super::a_column_is_dropped(&shop());
}

/// Goal: a dropped column that nobody fills is no reason to stop. Method: DROP COLUMN under a stream of events.
#[test]
fn an_unused_column_is_dropped() {
    super::an_unused_column_is_dropped(&shop());
}

/// Goal: events without a value for a column that needs one are dead letters. Method: SET NOT NULL under a stream.
#[test]
fn a_column_must_have_a_value() {
    super::a_column_must_have_a_value(&shop(), "ALTER TABLE orders ALTER COLUMN customer SET NOT NULL");
}

/// Goal: another table under the name is another target. Method: two renames in one transaction.
#[test]
fn the_table_is_swapped() {
    let shop = shop();
    shop.sql("CREATE TABLE orders_new (LIKE orders INCLUDING ALL)");
    let change = "BEGIN; ALTER TABLE orders RENAME TO orders_old; ALTER TABLE orders_new RENAME TO orders; COMMIT";
    super::the_table_is_swapped(&shop, change);
}

/// Goal: a table that is gone stops the worker. Method: a rename, and back.
#[test]
fn the_table_is_renamed_away() {
    super::the_table_is_renamed_away(&shop(), 1, &["HX4011", "renamed to public.orders_old"]);
}

/// Goal: a table that is made anew is another target, and nothing is lost. Method: copy, drop and rename in one
/// transaction.
#[test]
fn the_table_is_made_anew() {
    let change = "BEGIN; LOCK TABLE orders; CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders; \
                  DROP TABLE orders; ALTER TABLE made RENAME TO orders; COMMIT";
    super::the_table_is_made_anew(&shop(), change);
}
