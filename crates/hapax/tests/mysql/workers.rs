//! Two workers on one delivery into MariaDB, with the leases in a file.

use super::world::Shop;
use crate::world::{orders, until};

const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }";

/// Goal: hot standby. Method: two workers; the first is killed, the second takes over and loses nothing.
#[test]
fn a_second_worker_waits_and_takes_over_when_the_first_is_killed() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=300));
    let first = shop.start("first.log", &["run"]);
    until("the first rows are there", || shop.rows() == 300);
    let second = shop.start("second.log", &["run"]);
    second.until_it_says("standing by");
    shop.world.append("orders.jsonl", orders(301..=310));
    until("the first goes on", || shop.rows() == 310);
    drop(first);
    shop.world.append("orders.jsonl", orders(311..=320));
    second.until_it_says("claimed");
    until("the second goes on", || shop.rows() == 320);
    second.terminate();
    second.ends().exits(0);
    shop.accounts_for(320, 0);
}

/// Goal: `--take-over` fences the first worker, which ends with code 4. Method: two workers, lines for the second.
#[test]
fn take_over_ends_the_first_worker_with_code_4() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let first = shop.start("first.log", &["run"]);
    until("the first rows are there", || shop.rows() == 3);
    let second = shop.start("second.log", &["run", "--take-over"]);
    second.until_it_says("claimed");
    shop.world.append("orders.jsonl", orders(4..=5));
    first.ends().exits(4).says(&["HX4009", "orders/mysql/"]);
    until("the second goes on", || shop.rows() == 5);
    second.terminate();
    second.ends().exits(0);
    shop.accounts_for(5, 0);
}
