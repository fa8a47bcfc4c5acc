//! Tables that cannot carry a delivery, and tables that change under one.

use super::{Server, Shop, on_every_server};
use crate::world::{KEYED, order, orders, until};

on_every_server! { a_table_that_vanishes_stops_the_worker, a_table_that_changes_is_read_again }

/// Each table that `statements` make is refused with code and words before anything is written.
pub(crate) fn unfit_tables_are_refused_with_the_cure<S: Server>(cases: &[(&str, &str, &str)]) {
    for (statements, code, words) in cases {
        let shop = Shop::<S>::empty();
        shop.configure("", KEYED);
        shop.hapax(&["setup", "--yes"]).exits(0);
        shop.sql(statements);
        shop.world.write("orders.jsonl", orders(1..=3));
        shop.hapax(&["check", "--live"]).exits(1).says(&[code, words]);
        shop.hapax(&["run", "--once"]).exits(1).says(&[code, words]);
        assert_eq!(shop.ask(&format!("SELECT count(*) FROM {}", S::own("progress"))), "0", "{statements}");
    }
}

/// Goal: a table that is renamed or dropped while a worker runs stops it with a reason, and nothing is lost. Method: both,
/// each mended after.
fn a_table_that_vanishes_stops_the_worker<S: Server>() {
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
        let shop = Shop::<S>::ready("", KEYED);
        shop.world.write("orders.jsonl", orders(1..=3));
        let worker = shop.start("worker.log", &["run"]);
        until("the first rows are there", || shop.rows() == 3);
        shop.sql(breaks);
        shop.world.append("orders.jsonl", orders(4..=6));
        worker.ends().exits(exit).says(&[code, "orders"]);
        assert_eq!(shop.ask(&format!("SELECT delivered FROM {}", S::own("progress"))), "3", "{breaks}");
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
fn a_table_that_changes_is_read_again<S: Server>() {
    let shop = Shop::<S>::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let worker = shop.start("worker.log", &["run"]);
    until("the first rows are there", || shop.rows() == 3);
    let widened = S::retyped("amount", "bigint");
    shop.sql(&format!("ALTER TABLE orders ADD COLUMN note varchar(20), {widened}"));
    // The epoch that meets the change, and the one that was opened meanwhile, were filled for the old columns.
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
