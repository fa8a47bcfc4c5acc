//! Tables of MariaDB that cannot carry a delivery, and odd ones that can.

use super::world::{Mysql, Shop};
use crate::servers;
use crate::world::{KEYED, order, orders};

/// Goal: a table that would lose or double rows is refused before anything is written. Method: each kind.
#[test]
fn unfit_tables_are_refused_with_the_cure() {
    let cases = [
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
    ];
    servers::unfit_tables_are_refused_with_the_cure::<Mysql>(&cases);
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
