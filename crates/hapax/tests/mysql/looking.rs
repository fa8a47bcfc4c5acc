//! The commands that look, with the rows, the log, the letters and the locks of a real MariaDB server.

use serde_json::Value;

use super::world::Shop;
use crate::web::{address, get, metric, until_metric};
use crate::world::{number, order, orders, until};

const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }";

fn first(shop: &Shop, arguments: &[&str], code: i32) -> Value {
    shop.hapax(arguments).exits(code).json()["deliveries"][0].clone()
}

/// Goal: trace, reconcile and stuck answer from MariaDB. Method: rows delivered, one of them dead; a row deleted and a
/// ledger that was touched.
#[test]
fn the_story_of_a_row_is_told_from_mariadb() {
    let shop = Shop::ready("onConflict: update", KEYED);
    shop.sql("ALTER TABLE orders ADD CONSTRAINT small CHECK (amount < 1000)");
    let world = &shop.world;
    world.hapax(&["reconcile"]).exits(0).says(&["nothing was ever delivered"]);
    world.write("orders.jsonl", [orders(1..=10), order(11, 2000), orders(12..=20)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    world
        .hapax(&["trace", "id=7"])
        .exits(0)
        .says(&["row          id=7 customer=ann amount=70", "delivered: its row is there"]);
    let dead = first(&shop, &["trace", "id=11", "--json"], 0);
    assert_eq!((&dead["verdict"], &dead["row"]["found"]), (&"deadLetter".into(), &false.into()), "{dead:#}");
    world.hapax(&["trace", "0"]).exits(0).says(&["epoch        1", "row          id=1 ", "verdict      delivered"]);
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["19 keys of 20 inputs from epoch 1", "verdict  adds up"]);
    world.hapax(&["stuck"]).exits(1).says(&["1 dead letter waits"]).keeps_silent_about(&["no worker"]);
    world.append("orders.jsonl", order(21, 210));
    world.hapax(&["stuck"]).exits(1).says(&["no worker", "start hapax run"]);
    shop.sql("DELETE FROM orders WHERE id = 5");
    let report = first(&shop, &["reconcile", "--json"], 1);
    let found = &report["firstDifference"];
    assert_eq!((number(&found["epoch"]), &found["found"]), (1, &"no row".into()), "{report:#}");
    shop.sql("UPDATE hapax_progress SET delivered = delivered - 1");
    world.hapax(&["reconcile"]).exits(1).says(&["ledger   DIFFERS"]);
    world.hapax(&["stuck"]).exits(1).says(&["the ledger does not add up"]);
}

/// Goal: an append table is counted, and tap needs only the table. Method: a row too few; an event that does not fit.
#[test]
fn rows_in_mariadb_are_counted_and_misfits_foretold() {
    let shop = Shop::ready("onConflict: append", "guarantee: exactly-once");
    shop.sql("DROP TABLE orders; CREATE TABLE orders (id bigint, amount integer)");
    let world = &shop.world;
    world.write("orders.jsonl", [orders(1..=5), "{\"id\":6,\"amount\":\"much\"}\n".to_owned()].concat());
    world.hapax(&["tap", "orders"]).exits(0).says(&["would be a dead letter: HX2020", "\"id\":1,"]);
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["reconcile"]).exits(0).says(&["5 rows, as many as this delivery wrote"]);
    shop.sql("DELETE FROM orders WHERE id = 2");
    world.hapax(&["reconcile"]).exits(1).says(&["the table has 4 rows", "1 are missing"]);
}

/// Goal: `stuck` names the session that a worker waits for. Method: a transaction of the test's own holds the row that the
/// next epoch updates.
#[test]
fn the_session_that_others_wait_for_is_named() {
    let shop = Shop::ready("onConflict: update, lockTimeout: 25s", KEYED);
    let world = &shop.world;
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || shop.rows() == 3);
    let holder = shop.holding("UPDATE orders SET amount = 0 WHERE id = 2");
    world.append("orders.jsonl", order(2, 22));
    let named = format!("KILL {}", holder.connection());
    until("the holder is named", || world.hapax(&["stuck"]).out.contains(&named));
    holder.roll_back();
    until("nothing waits any more", || world.hapax(&["stuck"]).code == 0);
    worker.terminate();
    worker.ends().exits(0);
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["verdict  adds up"]);
}

/// Goal: the pages tell inserts from updates. Method: new and overwritten keys under a running worker, then a pause.
#[test]
fn the_pages_tell_inserts_from_updates() {
    let shop = Shop::ready("", KEYED);
    let written = shop.world.read("hapax.yaml");
    shop.world.write("hapax.yaml", format!("http: {{ listen: \"127.0.0.1:0\" }}\n{written}"));
    shop.world.write("orders.jsonl", orders(1..=5));
    let worker = shop.start("worker.log", &["run"]);
    let address = address(&worker);
    until("the rows are there", || shop.rows() == 5);
    shop.world.append("orders.jsonl", format!("{}{}", order(3, 7), order(6, 60)));
    let delivery = ["workflow=\"orders\"", "sink=\"mysql\""];
    until_metric(&address, "hapax_inputs_delivered_total", &delivery, 7.0);
    let page = get(&address, "/metrics").1;
    let upserts = |result: &str| metric(&page, "hapax_upserts_total", &[result]);
    assert_eq!((upserts("\"insert\""), upserts("\"update\"")), (Some(6.0), Some(1.0)), "{page}");
    shop.hapax(&["pause", "orders", "--why", "moving the table"]).exits(0).says(&["orders is paused"]);
    until("the worker rests", || shop.world.status()[0]["state"] == "paused");
    shop.hapax(&["resume", "orders"]).exits(0);
    worker.terminate();
    worker.ends().exits(0);
}
