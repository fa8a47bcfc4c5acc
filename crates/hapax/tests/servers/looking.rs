//! The commands that look: rows, log, letters, state store and locks of a real server.

use std::time::Duration;

use serde_json::Value;

use super::{Server, Shop, on_every_server};
use crate::world::{KEYED, number, order, orders, until};

on_every_server! {
    the_story_of_a_row_is_told,
    rows_are_counted_and_misfits_foretold,
    the_session_that_others_wait_for_is_named,
    wide_events_are_compared_whatever_may_idle,
}

fn first<S: Server>(shop: &Shop<S>, arguments: &[&str], code: i32) -> Value {
    shop.hapax(arguments).exits(code).json()["deliveries"][0].clone()
}

/// Goal: trace, reconcile and stuck answer from the server. Method: rows delivered, one of them dead; a row deleted and a
/// ledger that was touched.
fn the_story_of_a_row_is_told<S: Server>() {
    let shop = Shop::<S>::ready("onConflict: update", KEYED);
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
    let sound = world.hapax(&["reconcile", "--deep"]);
    sound
        .exits(0)
        .says(&["19 keys of 20 inputs from epoch 1", "verdict  adds up"])
        .keeps_silent_about(&["not compared"]);
    world.hapax(&["stuck"]).exits(1).says(&["1 dead letter waits"]).keeps_silent_about(&["no worker"]);
    world.append("orders.jsonl", order(21, 210));
    world.hapax(&["stuck"]).exits(1).says(&["no worker", "start hapax run"]);
    shop.sql("DELETE FROM orders WHERE id = 5");
    let report = first(&shop, &["reconcile", "--json"], 1);
    let found = &report["firstDifference"];
    assert_eq!((number(&found["epoch"]), &found["found"]), (1, &"no row".into()), "{report:#}");
    assert!(found["input"].to_string().contains("\\\"id\\\":5,"), "{report:#}");
    shop.sql(&format!("UPDATE {} SET delivered = delivered - 1", S::own("progress")));
    world.hapax(&["reconcile"]).exits(1).says(&["ledger   DIFFERS"]);
    world.hapax(&["stuck"]).exits(1).says(&["the ledger does not add up"]);
}

/// Goal: an append table is counted, and tap needs only the table. Method: a row too few; an event that does not fit.
fn rows_are_counted_and_misfits_foretold<S: Server>() {
    let shop = Shop::<S>::ready("onConflict: append", "guarantee: exactly-once");
    shop.sql("DROP TABLE orders; CREATE TABLE orders (id bigint, amount integer)");
    let world = &shop.world;
    world.write("orders.jsonl", [orders(1..=5), "{\"id\":6,\"amount\":\"much\"}\n".to_owned()].concat());
    world.hapax(&["tap", "orders"]).exits(0).says(&["would be a dead letter: HX2020", "\"id\":1,"]);
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["reconcile"]).exits(0).says(&["5 rows, as many as this delivery wrote"]);
    shop.sql("DELETE FROM orders WHERE id = 2");
    world.hapax(&["reconcile"]).exits(1).says(&["the table has 4 rows", "1 are missing"]);
}

/// Goal: `stuck` names the session that a worker waits for, and `top` shows the worker. Method: a transaction of the test's
/// own holds the row that the next epoch updates.
fn the_session_that_others_wait_for_is_named<S: Server>() {
    let shop = Shop::<S>::ready("onConflict: update, lockTimeout: 25s", KEYED);
    let world = &shop.world;
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || shop.rows() == 3);
    until("it says that it runs", || world.status()[0]["state"] == "running");
    let look: Value =
        serde_json::from_str(&world.hapax(&["top", "--json", "--count", "1"]).exits(0).out).expect("JSON");
    assert_eq!((&look["state"], &look["delivered"], &look["lag"]), (&"running".into(), &3.into(), &0.into()));
    let mut holder = shop.holding("UPDATE orders SET amount = 0 WHERE id = 2");
    world.append("orders.jsonl", order(2, 22));
    until("the holder is named", || {
        // MariaDB answers from a copy, which it renews only if nobody has read it for a tenth of a second: asking more often would
        // keep the old answer alive.
        std::thread::sleep(Duration::from_millis(230));
        world.hapax(&["stuck"]).out.contains(&holder.name())
    });
    world.hapax(&["stuck"]).exits(1).says(&[S::MAKES_ONE_WAIT, S::ENDS_SESSIONS]);
    holder.run("ROLLBACK").expect("the end");
    until("nothing waits any more", || world.hapax(&["stuck"]).code == 0);
    worker.terminate();
    worker.ends().exits(0);
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["verdict  adds up"]);
}

/// Goal: `reconcile` of wide events is not ended by the limit for workers that hang. Method: 500 columns, one epoch of 1,000 events, a
/// limit of one second.
fn wide_events_are_compared_whatever_may_idle<S: Server>() {
    let shop = Shop::<S>::ready("onConflict: update, idleTimeout: 1s", KEYED);
    let columns: String = (0..500).map(|n| format!(", c{n} smallint")).collect();
    shop.sql(&format!("DROP TABLE orders; CREATE TABLE orders (id bigint PRIMARY KEY{columns})"));
    let world = &shop.world;
    let fields: String = (0..500).map(|n| format!(",\"c{n}\":{n}")).collect();
    world.write("orders.jsonl", (1..=1000).map(|id| format!("{{\"id\":{id}{fields}}}\n")).collect::<String>());
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["1000 keys of 1000 inputs", "verdict  adds up"]);
}
