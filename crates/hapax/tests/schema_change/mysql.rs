//! MariaDB, which commits every change of a table by itself and swaps tables in one statement.

use super::{KEYED, Place};
use crate::mysql::world::Shop;
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
        self.count("hapax_dead_letters WHERE state = 'dead'")
    }
}

fn shop() -> Shop {
    Shop::ready("", KEYED)
}

/// Goal: a new column is filled without a gap. Method: ALTER TABLE under a stream of events.
#[test]
fn a_column_is_added() {
    super::a_column_is_added(&shop(), "ALTER TABLE orders ADD COLUMN colour varchar(20)");
}

/// Goal: a new column with a default needs no field. Method: ALTER TABLE under a stream of events.
#[test]
fn a_column_with_a_default_is_added() {
    let change = "ALTER TABLE orders ADD COLUMN state varchar(20) NOT NULL DEFAULT 'new'";
    super::a_column_with_a_default_is_added(&shop(), change);
}

/// Goal: a new column that nothing can fill stops the worker. Method: ALTER TABLE under a stream of events.
#[test]
fn a_column_that_nothing_fills_is_added() {
    let change = "ALTER TABLE orders ADD COLUMN state varchar(20) NOT NULL";
    let cure = "ALTER TABLE orders ALTER COLUMN state SET DEFAULT 'new'";
    super::a_column_that_nothing_fills_is_added(&shop(), change, cure);
}

/// Goal: wider columns take what they refused before. Method: MODIFY COLUMN under a stream of events.
#[test]
fn columns_are_widened() {
    let shop = shop();
    shop.sql("ALTER TABLE orders MODIFY COLUMN customer varchar(5)");
    let change = "ALTER TABLE orders MODIFY COLUMN amount bigint, MODIFY COLUMN customer varchar(50)";
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

/// Goal: events without a value for a column that needs one are dead letters. Method: MODIFY COLUMN under a stream.
#[test]
fn a_column_must_have_a_value() {
    super::a_column_must_have_a_value(&shop(), "ALTER TABLE orders MODIFY COLUMN customer varchar(200) NOT NULL");
}

/// Goal: another table under the name is another target. Method: both renames in one statement.
#[test]
fn the_table_is_swapped() {
    let shop = shop();
    // The server tells two tables of one definition apart by the second in which each was made.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    shop.sql("CREATE TABLE orders_new LIKE orders");
    super::the_table_is_swapped(&shop, "RENAME TABLE orders TO orders_old, orders_new TO orders");
}

/// Goal: a table that is gone stops the worker. Method: a rename, and back.
#[test]
fn the_table_is_renamed_away() {
    super::the_table_is_renamed_away(&shop(), 1, &["HX4011", "orders_old"]);
}
