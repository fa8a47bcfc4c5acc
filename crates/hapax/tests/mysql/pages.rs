//! The pages of a worker that delivers into MariaDB.

use super::world::Shop;
use crate::web::{address, get, metric, until_metric};
use crate::world::{KEYED, order, orders, until};

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
