//! Two brokers on one database: one leads, the other takes over. The server is the test's own: a broker refuses one that loses
//! what it confirmed, and the server that tests share runs without fsync.

use hapax_services::Postgres;

use crate::broker::{Running, start};
use crate::web::{address as page_address, get_json, until_metric};
use crate::world::World;

fn server() -> Postgres {
    Postgres::builder().start().expect("a server")
}

fn broker(world: &World, url: &str, id: &str) -> Running {
    world.write("hapax.yaml", "http: { listen: \"127.0.0.1:0\" }\n");
    start(world, &format!("{id}.log"), &["--store", url, "--id", id])
}

fn asked(server: &Postgres, query: &str) -> String {
    server.query(query).expect("the query is right").value().unwrap_or_default().to_owned()
}

/// Goal: a standby is not ready, takes over after a kill, and has everything. Method: SIGKILL for the leader;
/// read and write by the second; look at the tables that people look at.
#[test]
fn a_standby_takes_over_after_a_kill() {
    let (world, server) = (World::empty(), server());
    let url = server.url("postgres");
    let first = broker(&world, &url, "1");
    first.topic(&world, &["create", "orders"]).exits(0);
    first.write(&world, "orders", &[], "a\nb\n").exits(0);
    let second = broker(&world, &url, "2");
    second.broker.until_it_says("Broker 2 stands by");
    let pages = page_address(&second.broker);
    let (status, ready) = get_json(&pages, "/readyz");
    assert_eq!((status, &ready["leader"]), (503, &serde_json::json!(1)), "{ready:#}");
    assert_eq!(get_json(&pages, "/healthz").0, 200);
    assert_eq!(second.values(&world, "orders"), ["a", "b"], "clients are sent to the leader");
    drop(first);
    // As long as it takes: how soon that is on a quiet machine is measured elsewhere.
    until_metric(&pages, "hapax_broker_leads", &[], 1.0);
    assert_eq!(second.values(&world, "orders"), ["a", "b"]);
    second.write(&world, "orders", &[], "c\n").exits(0);
    assert_eq!(second.values(&world, "orders"), ["a", "b", "c"]);
    assert_eq!(get_json(&pages, "/readyz").0, 200);
    second.broker.terminate();
    second.broker.ends().exits(0);
    assert_eq!(asked(&server, "SELECT count(*) FROM kafka.producer_ids"), "2");
    assert_ne!(
        asked(&server, "SELECT count(*) FROM kafka.producer_sequences"),
        "0",
        "an orderly end writes a snapshot"
    );
}

/// Goal: a number belongs to one broker, and a password is never printed. Method: a second process under the same number; a
/// server that is not there.
#[test]
fn a_number_that_is_taken_is_refused() {
    let (world, server) = (World::empty(), server());
    let url = server.url("postgres");
    let _first = broker(&world, &url, "7");
    let second = world.hapax(&["broker", "--store", &url, "--id", "7", "--listen", "127.0.0.1:0"]);
    second.exits(1).says(&["HX4507", "under the number 7"]);
    let nowhere = world.hapax(&["broker", "--store", "postgres://u:s3cret@127.0.0.1:1/d", "--listen", "127.0.0.1:0"]);
    nowhere.exits(1).says(&["HX4201", "127.0.0.1:1"]).keeps_silent_about(&["s3cret"]);
}
