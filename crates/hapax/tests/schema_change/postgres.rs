//! PostgreSQL, which changes a column's type in place and lets every change commit as one.

use super::Place;
use crate::postgres::world::{Postgres, Shop};

fn shop() -> Shop {
    Place::ready()
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

/// Goal: events without a value for a column that needs one are dead letters. Method: SET NOT NULL under a stream.
#[test]
fn a_column_must_have_a_value() {
    super::a_column_must_have_a_value(&shop(), "ALTER TABLE orders ALTER COLUMN customer SET NOT NULL");
}

/// Goal: another table under the name is another target. Method: two renames in one transaction.
#[test]
fn the_table_is_swapped() {
    let shop: Shop = Place::ready();
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

/// Goal: wider columns take what they refused before. Method: both columns change their type under a stream of events.
#[test]
fn columns_are_widened() {
    super::columns_are_widened::<Postgres>();
}
