//! Two brokers on one database: one leads, the other takes over.

use std::time::{Duration, Instant};

use super::world::Shop;
use crate::broker::{Running, start};
use crate::web::{address as page_address, get_json, until_metric};

fn broker(shop: &Shop, id: &str) -> Running {
    let url = shop.url();
    shop.world.write("hapax.yaml", "http: { listen: \"127.0.0.1:0\" }\n");
    start(&shop.world, &format!("{id}.log"), &["--store", &url, "--id", id])
}

/// Goal: a standby is not ready, takes over within seconds after a kill, and has everything. Method: SIGKILL for the leader;
/// read and write by the second; look at the tables that people look at.
#[test]
fn a_standby_takes_over_after_a_kill() {
    let shop = Shop::empty();
    let first = broker(&shop, "1");
    first.topic(&shop.world, &["create", "orders"]).exits(0);
    first.write(&shop.world, "orders", &[], "a\nb\n").exits(0);
    let second = broker(&shop, "2");
    second.broker.until_it_says("Broker 2 stands by");
    let pages = page_address(&second.broker);
    let (status, ready) = get_json(&pages, "/readyz");
    assert_eq!((status, &ready["leader"]), (503, &serde_json::json!(1)), "{ready:#}");
    assert_eq!(get_json(&pages, "/healthz").0, 200);
    assert_eq!(second.values(&shop.world, "orders"), ["a", "b"], "clients are sent to the leader");
    drop(first);
    let killed = Instant::now();
    until_metric(&pages, "hapax_broker_leads", &[], 1.0);
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    assert_eq!(second.values(&shop.world, "orders"), ["a", "b"]);
    second.write(&shop.world, "orders", &[], "c\n").exits(0);
    assert_eq!(second.values(&shop.world, "orders"), ["a", "b", "c"]);
    second.broker.terminate();
    second.broker.ends().exits(0);
    assert_eq!(shop.ask("SELECT count(*) FROM kafka.producer_ids"), "2");
    assert_ne!(
        shop.ask("SELECT count(*) FROM kafka.producer_sequences"),
        "0",
        "a broker that ends in order writes a snapshot"
    );
}

/// Goal: a number belongs to one broker. Method: a second process under the same number.
#[test]
fn a_number_that_is_taken_is_refused() {
    let shop = Shop::empty();
    let _first = broker(&shop, "7");
    let second = shop.hapax(&["broker", "--store", &shop.url(), "--id", "7", "--listen", "127.0.0.1:0"]);
    second.exits(1).says(&["HX4507", "under the number 7"]);
}
