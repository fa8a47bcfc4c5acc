//! Tables that cannot carry a delivery, and tables that change under one.

use super::world::Shop;
use crate::world::{order, orders, until};

const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }";

/// Goal: a table that would lose or double rows is refused before anything is written. Method: each kind.
#[test]
fn unfit_tables_are_refused_with_the_cure() {
    for (statements, code, words) in [
        ("CREATE TABLE orders (id bigint PRIMARY KEY, amount int) ENGINE = MyISAM", "HX4400", "ENGINE = InnoDB"),
        ("CREATE TABLE orders (id bigint PRIMARY KEY, amount int) ENGINE = MEMORY", "HX4400", "ENGINE = InnoDB"),
        ("CREATE TABLE orders (id bigint PRIMARY KEY, amount int UNIQUE)", "HX4401", "amount"),
        ("CREATE TABLE orders (id varchar(40) COLLATE utf8mb4_general_ci PRIMARY KEY, amount int)", "HX4402", "id"),
        ("CREATE TABLE orders (id varchar(40) COLLATE utf8mb4_bin PRIMARY KEY, amount int)", "HX4402", "id"),
        ("CREATE TABLE orders (id text COLLATE utf8mb4_nopad_bin NOT NULL, UNIQUE (id(10)))", "HX41", "id"),
        ("CREATE TABLE orders (id bigint NOT NULL, amount int)", "HX41", "unique"),
        ("CREATE TABLE orders (id bigint UNIQUE, amount int)", "HX41", "NULL"),
        ("CREATE VIEW orders AS SELECT 1 AS id", "HX41", "view"),
        ("SELECT 1", "HX41", "CREATE TABLE"),
    ] {
        let shop = Shop::empty();
        shop.configure("", KEYED);
        shop.hapax(&["setup", "--yes"]).exits(0);
        shop.sql(statements);
        shop.world.write("orders.jsonl", orders(1..=3));
        shop.hapax(&["check", "--live"]).exits(1).says(&[code, words]);
        shop.hapax(&["run", "--once"]).exits(1).says(&[code, words]);
        assert_eq!(shop.ask("SELECT count(*) FROM hapax_progress"), "0", "{statements}");
    }
}

/// Goal: a second unique index is no obstacle where no row is overwritten. Method: append; a row that breaks it is a dead
/// letter.
#[test]
fn a_second_unique_index_is_fit_for_append() {
    let shop = Shop::empty();
    shop.configure("onConflict: append", "guarantee: exactly-once, maxRejects: 100%");
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.sql("CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount int UNIQUE)");
    shop.world.write("orders.jsonl", [order(1, 10), order(2, 10), order(3, 30)].concat());
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 3:30");
    shop.accounts_for(3, 1);
}

/// Goal: names that mean something to SQL are names. Method: a table and columns named by words of the language, with
/// spaces and backticks.
#[test]
fn any_name_is_a_name() {
    let shop = Shop::empty();
    shop.configure("columns: { \"order by\": .id, \"a`b\": .amount, key: .customer }", KEYED);
    let text = shop.world.read("hapax.yaml").replace("table: orders", "table: \"select from\"");
    shop.world.write("hapax.yaml", text);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.sql("CREATE TABLE `select from` (`order by` bigint PRIMARY KEY, `a``b` int, `key` text)");
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["check", "--live"]).exits(0).says(&["order by"]);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(
        shop.ask("SELECT group_concat(`order by`, `a``b`, `key` ORDER BY 1) FROM `select from`"),
        "110ann,220ann,330ann"
    );
    shop.hapax(&["trace", "id=2"]).exits(0).says(&["a`b=20"]);
    shop.hapax(&["reconcile", "--deep"]).exits(0).says(&["adds up"]);
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
        assert_eq!(shop.ask("SELECT delivered FROM hapax_progress"), "3", "{breaks}");
        if !mends.is_empty() {
            shop.sql(mends);
            shop.hapax(&["run", "--once"]).exits(0);
            assert_eq!(shop.rows(), 6);
            shop.accounts_for(6, 0);
        }
    }
}

/// Goal: a table that changes while a worker runs is read again, also where the server makes a new one of it. Method: add,
/// widen and drop columns under it.
#[test]
fn a_table_that_changes_is_read_again() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let worker = shop.start("worker.log", &["run"]);
    until("the first rows are there", || shop.rows() == 3);
    shop.sql("ALTER TABLE orders ADD COLUMN note varchar(20), MODIFY amount bigint");
    shop.world.append("orders.jsonl", "{\"id\":3,\"amount\":4000000000}\n");
    until("the wide number is there", || shop.ask("SELECT amount FROM orders WHERE id = 3") == "4000000000");
    shop.world.append("orders.jsonl", order(4, 40));
    until("the row is there", || shop.rows() == 4);
    shop.world.append("orders.jsonl", "{\"id\":5,\"amount\":50,\"note\":\"new\"}\n");
    until("the row is there", || shop.rows() == 5);
    shop.world.append("orders.jsonl", "{\"id\":6,\"amount\":60,\"note\":\"new\"}\n");
    until("the row is there", || shop.rows() == 6);
    shop.sql("ALTER TABLE orders DROP COLUMN customer");
    shop.world.append("orders.jsonl", "{\"id\":7,\"amount\":70}\n{\"id\":8,\"amount\":80}\n");
    until("the rows are there", || shop.rows() == 8);
    worker.terminate();
    worker.ends().exits(0);
    assert_eq!(shop.ask("SELECT concat(amount, note) FROM orders WHERE id = 6"), "60new");
    shop.accounts_for(9, 0);
}
