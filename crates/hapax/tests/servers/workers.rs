//! Two workers on one delivery into a server: in PostgreSQL its leases are there too, beside MariaDB they are in a file.

use super::{Server, Shop, on_every_server};
use crate::world::{KEYED, orders, until};

on_every_server! {
    a_second_worker_waits_and_takes_over_when_the_first_is_killed,
    take_over_ends_the_first_worker_with_code_4,
}

/// Goal: hot standby. Method: two workers; the first is killed, the second takes over and loses nothing.
fn a_second_worker_waits_and_takes_over_when_the_first_is_killed<S: Server>() {
    let shop = Shop::<S>::ready("", KEYED);
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
fn take_over_ends_the_first_worker_with_code_4<S: Server>() {
    let shop = Shop::<S>::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let first = shop.start("first.log", &["run"]);
    until("the first rows are there", || shop.rows() == 3);
    let second = shop.start("second.log", &["run", "--take-over"]);
    second.until_it_says("claimed");
    shop.world.append("orders.jsonl", orders(4..=5));
    first.ends().exits(4).says(&["HX4009", &format!("orders/{}/", S::KIND)]);
    until("the second goes on", || shop.rows() == 5);
    second.terminate();
    second.ends().exits(0);
    shop.accounts_for(5, 0);
}
