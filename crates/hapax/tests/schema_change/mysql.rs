//! MariaDB, which commits every change of a table by itself and swaps tables in one statement.

use super::Place;
use crate::mysql::world::{Mysql, Shop};

fn shop() -> Shop {
    Place::ready()
}

/// Goal: a new column that nothing can fill stops the worker. Method: ALTER TABLE under a stream of events.
#[test]
fn a_column_that_nothing_fills_is_added() {
    let change = "ALTER TABLE orders ADD COLUMN state varchar(20) NOT NULL";
    let cure = "ALTER TABLE orders ALTER COLUMN state SET DEFAULT 'new'";
    super::a_column_that_nothing_fills_is_added(&shop(), change, cure);
}

/// Goal: events without a value for a column that needs one are dead letters. Method: MODIFY COLUMN under a stream.
#[test]
fn a_column_must_have_a_value() {
    super::a_column_must_have_a_value(&shop(), "ALTER TABLE orders MODIFY COLUMN customer varchar(200) NOT NULL");
}

/// Goal: another table under the name is another target. Method: both renames in one statement.
#[test]
fn the_table_is_swapped() {
    let shop: Shop = Place::ready();
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

/// Goal: wider columns take what they refused before. Method: both columns change their type under a stream of events.
#[test]
fn columns_are_widened() {
    super::columns_are_widened::<Mysql>();
}
