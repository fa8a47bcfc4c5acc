//! Tables that cannot carry a delivery, and tables that change under one.

use super::world::Shop;
use crate::world::{order, orders, until};

const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }";

/// Goal: a table that would lose or double rows is refused before anything is written. Method: each kind.
#[test]
fn unfit_tables_are_refused_with_the_cure() {
    let plain = "(id bigint PRIMARY KEY, customer text, amount integer)";
    for (statements, code, words) in [
        (format!("CREATE UNLOGGED TABLE orders {plain}"), "HX4251", "SET LOGGED"),
        ("CREATE TABLE orders (id bigint NOT NULL, customer text, amount integer)".into(), "HX41", "unique"),
        ("CREATE TABLE orders (id bigint UNIQUE, customer text, amount integer)".into(), "HX41", "NOT NULL"),
        (
            "CREATE TABLE orders (id bigint NOT NULL, amount integer); \
             CREATE UNIQUE INDEX ON orders (id) WHERE amount > 0"
                .into(),
            "HX41",
            "unique",
        ),
        ("CREATE TABLE orders (id bigint NOT NULL UNIQUE DEFERRABLE, amount integer)".into(), "HX41", "unique"),
        ("CREATE VIEW orders AS SELECT 1 AS id".into(), "HX41", "view"),
        ("SELECT 1".into(), "HX41", "CREATE TABLE"),
    ] {
        let shop = Shop::empty();
        shop.configure("", KEYED);
        shop.hapax(&["setup", "--yes"]).exits(0);
        shop.sql(&statements);
        shop.world.write("orders.jsonl", orders(1..=3));
        shop.hapax(&["check", "--live"]).exits(1).says(&[code, words]);
        shop.hapax(&["run", "--once"]).exits(1).says(&[code, words]);
        assert_eq!(shop.ask("SELECT count(*) FROM hapax.progress"), "0", "{statements}");
    }
}

/// Goal: a table that is renamed or dropped while a worker runs stops it with a reason, and nothing is lost. Method: both,
/// each mended after.
#[test]
fn a_table_that_vanishes_stops_the_worker() {
    for (breaks, mends, code, exit) in [
        ("ALTER TABLE orders RENAME TO elsewhere", "ALTER TABLE elsewhere RENAME TO orders", "HX4011", 1),
        ("DROP TABLE orders", "", "HX4011", 1),
        (
            "DROP TABLE orders; CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount integer)",
            "",
            "HX4012",
            5,
        ),
    ] {
        let shop = Shop::ready("", KEYED);
        shop.world.write("orders.jsonl", orders(1..=3));
        let worker = shop.start("worker.log", &["run"]);
        until("the first rows are there", || shop.rows() == 3);
        shop.sql(breaks);
        shop.world.append("orders.jsonl", orders(4..=6));
        worker.ends().exits(exit).says(&[code, "orders"]);
        assert_eq!(shop.ask("SELECT delivered FROM hapax.progress"), "3", "{breaks}");
        if !mends.is_empty() {
            shop.sql(mends);
            shop.hapax(&["run", "--once"]).exits(0);
            assert_eq!(shop.rows(), 6);
            shop.accounts_for(6, 0);
        }
    }
}

/// Goal: a table that changes while a worker runs is read again. Method: add, drop and widen columns under it.
#[test]
fn a_table_that_changes_is_read_again() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let worker = shop.start("worker.log", &["run"]);
    until("the first rows are there", || shop.rows() == 3);
    shop.sql("ALTER TABLE orders ADD COLUMN note text; ALTER TABLE orders ALTER amount TYPE bigint");
    // The epoch that meets the change, and the one that was opened meanwhile, were filled for the old columns.
    shop.world.append("orders.jsonl", "{\"id\":3,\"amount\":4000000000}\n");
    until("the wide number is there", || shop.ask("SELECT amount FROM orders WHERE id = 3") == "4000000000");
    shop.world.append("orders.jsonl", order(4, 40));
    until("the row is there", || shop.rows() == 4);
    shop.world.append("orders.jsonl", "{\"id\":5,\"amount\":50,\"note\":\"new\"}\n");
    until("the row is there", || shop.rows() == 5);
    shop.sql("ALTER TABLE orders DROP COLUMN customer");
    shop.world.append("orders.jsonl", "{\"id\":6,\"amount\":60}\n{\"id\":7,\"amount\":70}\n");
    until("the rows are there", || shop.rows() == 7);
    worker.terminate();
    worker.ends().exits(0);
    assert_eq!(shop.ask("SELECT amount || note FROM orders WHERE id = 5"), "50new");
    shop.accounts_for(8, 0);
}
