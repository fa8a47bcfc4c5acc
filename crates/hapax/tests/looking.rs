//! `hapax stuck`, `hapax top` and `hapax tap`: what waits, what moves, what comes.

use serde_json::Value;

use crate::world::{KEYED, World, order, orders, until};

fn stuck(world: &World, code: i32) -> Vec<Value> {
    world.hapax(&["stuck", "--json"]).exits(code).json()["stuck"].as_array().expect("a list").clone()
}

/// Goal: a delivery that waits for a person to start it, and one that is done, are told apart.
#[test]
fn a_delivery_without_a_worker_is_stuck_while_inputs_wait() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["stuck"]).exits(1).says(&["never run", "start hapax run"]);
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["stuck"]).exits(0).says(&["Nothing is stuck"]);
    assert_eq!(stuck(&world, 0), Vec::<Value>::new());
    world.append("orders.jsonl", order(4, 40));
    world.hapax(&["stuck"]).exits(1).says(&["no worker", "behind", "start hapax run"]);
}

/// Goal: a live worker is not stuck, a killed one is, and says whose turn it is. Method: SIGKILL, more inputs.
#[test]
fn a_killed_worker_leaves_its_delivery_stuck() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    until("it says that it runs", || world.status()[0]["state"] == "running");
    world.hapax(&["stuck"]).exits(0).says(&["Nothing is stuck"]);
    drop(worker);
    world.append("orders.jsonl", order(4, 40));
    until("its lease has run out", || world.status()[0]["state"] == "no worker");
    let waits = stuck(&world, 1);
    assert!(waits[0]["why"].as_str().is_some_and(|why| why.contains("ended without a word")), "{waits:#?}");
}

/// Goal: a stop that needs a person, letters that wait, and a target that is gone each have their line.
#[test]
fn each_thing_that_waits_has_its_line() {
    let world = World::shop("onConflict: append, progress: state", "guarantee: exactly-once");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(3);
    world.hapax(&["stuck"]).exits(1).says(&["stopped with code 3: HX1121", "hapax check --explain"]);

    let letters = World::shop("onConflict: update", KEYED);
    letters.write("orders.jsonl", format!("{}not an event\n", order(1, 10)));
    letters.hapax(&["run", "--once"]).exits(0);
    letters.hapax(&["stuck"]).exits(1).says(&["1 dead letter waits", "hapax dlq list --workflow orders"]);

    let changed = World::shop("onConflict: update", KEYED);
    changed.write("orders.jsonl", orders(1..=3));
    changed.hapax(&["run", "--once"]).exits(0);
    changed.write("orders.jsonl", orders(5..=5));
    changed.hapax(&["run", "--once"]).exits(5);
    changed.hapax(&["stuck"]).exits(1).says(&["stopped with code 5: HX3", "hapax reset orders"]);
}

/// Goal: a process that holds the table's lock for long is named. Method: a transaction of the test's own.
#[test]
fn who_holds_the_lock_is_named() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    let holder = world.database("shop.db");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let pid = format!("pid {}", std::process::id());
    world.hapax(&["stuck"]).exits(1).says(&[&pid, "holds the file's lock for writing"]);
    holder.execute_batch("ROLLBACK").expect("the end");
    world.hapax(&["stuck"]).exits(0);
}

/// Goal: a worker that has not begun yet is told as starting, and not as none. Method: another process holds the lock that its claim needs;
/// look, and let go.
#[test]
fn a_worker_that_has_not_begun_is_told_as_starting() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("orders.jsonl", orders(4..=5));
    let holder = world.database("shop.db");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let worker = world.start("worker.log", &["run"]);
    until("it says that it starts", || world.status()[0]["state"] == "starting");
    let answer = world.hapax(&["stuck"]);
    answer.says(&["starting: ", "looks through what was read before"]).keeps_silent_about(&["no worker"]);
    holder.execute_batch("ROLLBACK").expect("the end");
    until("the rows are there", || world.rows() == 5);
    until("it says that it runs", || world.status()[0]["state"] == "running");
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: `top` shows rates from the books, line by line where there is no terminal. Method: two looks while a worker runs.
#[test]
fn top_shows_what_moves() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["top", "--count", "1"]).exits(0).says(&["orders/sqlite/", "state never run"]);
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    until("it says that it runs", || world.status()[0]["state"] == "running");
    let answer = world.hapax(&["top", "--json", "--interval", "200ms", "--count", "2"]);
    let looks: Vec<Value> = answer.exits(0).out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(looks.len(), 2, "{answer}");
    assert_eq!((&looks[0]["readPerSecond"], &looks[1]["readPerSecond"]), (&Value::Null, &0.0.into()));
    assert_eq!(
        (&looks[1]["state"], &looks[1]["delivered"], &looks[1]["lag"]),
        (&"running".into(), &3.into(), &0.into())
    );
    assert!(looks[1]["worker"].as_str().is_some_and(|worker| worker.contains("pid ")));
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: `tap` shows events as the workflow sees them and delivers nothing. Method: a good line, a delete, three that would
/// die; then a look at the books.
#[test]
fn tap_shows_events_and_the_letters_they_would_become() {
    let world = World::shop("onConflict: update, deleteWhen: .op == \"d\"", KEYED);
    let lines = format!(
        "{}{{\"id\":1,\"op\":\"d\"}}\nnot an event\n{{\"amount\":5}}\n{{\"id\":2,\"amount\":\"x\"}}\n",
        order(1, 10)
    );
    world.write("orders.jsonl", &lines);
    let answer = world.hapax(&["tap", "orders", "--json"]);
    let seen: Vec<Value> = answer.exits(0).out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let words: Vec<&str> = seen.iter().filter_map(|seen| seen["operation"].as_str()).collect();
    assert_eq!(words, ["event", "delete", "dead", "dead", "dead"]);
    let codes: Vec<&str> = seen.iter().filter_map(|seen| seen["letter"]["code"].as_str()).collect();
    assert_eq!(codes[0], "HX2001");
    assert_eq!(codes[2], "HX2020");
    assert_eq!((&seen[0]["event"]["amount"], &seen[0]["position"]), (&10.into(), &"0".into()));
    assert_eq!(seen[0]["entityKey"], seen[1]["entityKey"]);
    assert_ne!(seen[0]["eventKey"], seen[1]["eventKey"]);
    let second = order(1, 10).len().to_string();
    let from = world.hapax(&["tap", "orders", "--from", &second, "--count", "1"]);
    from.exits(0).says(&[&second, "delete", "h1_"]).keeps_silent_about(&["not an event"]);
    world.hapax(&["tap", "orders", "--from", "5"]).exits(1).says(&["HX3002", "inside a line"]);
    world.hapax(&["tap", "orders", "--from", "x"]).exits(2).says(&["HX5040", "earliest or latest"]);
    world.hapax(&["status"]).exits(0).says(&["never run"]);
    assert_eq!(world.rows(), 0);
}

/// Goal: `tap` follows, and what it sees is still delivered by the worker. Method: a follower and a later line.
#[test]
fn tap_follows_the_source() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=2));
    let mut tap = world.start("tap.log", &["tap", "orders", "--from", "latest", "--follow", "--count", "1"]);
    // Nobody says when the tap has found the end of the file: lines come until it has seen one.
    let mut last = 2;
    until("the tap has seen a line", || {
        last += 1;
        world.append("orders.jsonl", order(last, 30));
        !tap.is_alive()
    });
    tap.ends().exits(0).says(&["\"id\":"]).keeps_silent_about(&["\"id\":2"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), last);
}

/// Goal: a paused workflow says who paused it, and whose turn it is. Method: pause, look, resume.
#[test]
fn a_paused_workflow_is_stuck_until_it_is_resumed() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["pause", "orders"]).exits(0);
    world.hapax(&["stuck"]).exits(1).says(&["paused by", "hapax resume orders"]);
    world.hapax(&["top", "--count", "1"]).exits(0).says(&["state paused"]);
    world.hapax(&["resume", "orders"]).exits(0);
    world.hapax(&["stuck"]).exits(0);
}

/// Goal: a source that breaks off is told as the source's fault, with the place. Method: a packed file with rubbish in it.
#[test]
fn a_source_that_cannot_be_read_is_told() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03 this is no deflated stream at all");
    world.hapax(&["tap", "orders"]).exits(1).says(&["HX5041", "orders.jsonl"]);
}
