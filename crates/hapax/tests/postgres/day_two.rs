//! What a person needs on day two, with target and state store in PostgreSQL: pages, pause, reload, alerts.

use super::world::Shop;
#[cfg(feature = "http")]
use crate::chat::Chat;
use crate::web::{address, get, metric, until_metric};
use crate::world::{KEYED, order, orders, until};

/// A shop with more at the top of its configuration.
fn with(top: &str) -> Shop {
    let shop = Shop::ready("", KEYED);
    shop.world.write("hapax.yaml", format!("{top}\n{}", shop.world.read("hapax.yaml")));
    shop
}

/// Goal: the pages tell inserts from updates and who keeps old row versions alive. Method: new and overwritten keys,
/// beside a transaction that stays open.
#[test]
fn the_pages_tell_inserts_from_updates_and_name_an_old_transaction() {
    let shop = with("http: { listen: \"127.0.0.1:0\" }");
    let looker = shop.holding("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM orders");
    shop.world.write("orders.jsonl", orders(1..=5));
    let worker = shop.start("worker.log", &["run"]);
    let address = address(&worker);
    until("the rows are there", || shop.rows() == 5);
    shop.world.append("orders.jsonl", format!("{}{}", order(3, 7), order(6, 60)));
    let delivery = ["workflow=\"orders\"", "sink=\"postgres\""];
    until_metric(&address, "hapax_inputs_delivered_total", &delivery, 7.0);
    let page = get(&address, "/metrics").1;
    let upserts = |result: &str| metric(&page, "hapax_upserts_total", &[result]);
    assert_eq!((upserts("\"insert\""), upserts("\"update\"")), (Some(6.0), Some(1.0)), "{page}");
    let age = metric(&page, "hapax_oldest_snapshot_seconds", &[shop.database()]);
    assert!(age.is_some_and(|age| age > 0.0), "{page}");
    drop(looker);
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: pause and resume work through a state store on a server. Method: lines before and during a pause.
#[test]
fn a_paused_workflow_rests_and_goes_on() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let worker = shop.start("worker.log", &["run"]);
    until("the rows are there", || shop.rows() == 3);
    shop.hapax(&["pause", "orders", "--why", "moving the table"]).exits(0).says(&["orders is paused"]);
    until("the worker rests", || shop.world.status()[0]["state"] == "paused");
    shop.world.append("orders.jsonl", orders(4..=5));
    shop.hapax(&["stuck"]).exits(1).says(&["moving the table"]);
    assert_eq!(shop.rows(), 3);
    shop.hapax(&["resume", "orders"]).exits(0).says(&["orders goes on"]);
    until("it goes on", || shop.rows() == 5);
    worker.terminate();
    worker.ends().exits(0);
    shop.accounts_for(5, 0);
}

/// Goal: somebody is called for a new cause of dead letters that the server found. Method: two rows that a CHECK
/// refuses; one call.
#[cfg(feature = "http")]
#[test]
fn a_new_cause_of_dead_letters_calls_somebody() {
    let chat = Chat::new(&[]);
    let shop = with(&format!("alerts: {{ webhook: \"http://{}/hook\" }}", chat.address));
    shop.sql("ALTER TABLE orders ADD CHECK (amount < 1000)");
    shop.world.write("orders.jsonl", format!("{}{}{}", order(1, 10), order(2, 2000), order(3, 3000)));
    shop.hapax(&["run", "--once"]).exits(0);
    let calls = chat.posted();
    assert_eq!(calls.len(), 1, "{calls:#?}");
    assert!(calls[0].1["text"].as_str().is_some_and(|text| text.contains("HX203")), "{calls:#?}");
    shop.accounts_for(3, 2);
}
