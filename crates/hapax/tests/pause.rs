//! `hapax pause` and `hapax resume`.

use crate::files::gzip;
use crate::web::{address, get_json};
use crate::world::{KEYED, World, orders, rename, until};

/// Goal: a paused worker delivers what it has read, reads no more, keeps its lease, is ready, and goes on when it is
/// resumed. Method: lines before, during and after the pause; a second worker must not take over.
#[test]
fn a_paused_workflow_rests_and_goes_on() {
    let world = crate::pages::watched("", KEYED, "");
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    until("the rows are there", || world.rows() == 3);
    world.hapax(&["pause", "orders", "--why", "moving the table"]).exits(0).says(&["orders is paused"]);
    until("the worker rests", || world.status()[0]["state"] == "paused");
    let (status, ready) = get_json(&address, "/readyz");
    assert_eq!((status, &ready["deliveries"][0]["state"]), (200, &serde_json::json!("paused")), "{ready:#}");
    world.append("orders.jsonl", orders(4..=5));
    let second = world.start("second.log", &["run"]);
    second.until_it_says("standing by");
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(world.rows(), 3, "nothing is read, and the lease of 2 s is kept");
    world.hapax(&["status"]).exits(0).says(&["paused", "moving the table", "hapax resume orders"]);
    assert_eq!(world.status()[0]["pause"]["why"], "moving the table");
    world.hapax(&["resume", "orders"]).exits(0).says(&["orders goes on"]);
    until("it goes on", || world.rows() == 5);
    until("it says so", || world.status()[0]["state"] == "running");
    world.hapax(&["resume", "orders"]).exits(0).says(&["was not paused"]);
    for worker in [second, worker] {
        worker.terminate();
        worker.ends().exits(0);
    }
    world.accounts_for(5, 0);
}

/// Goal: a pause needs no worker, outlives a restart, and ends by itself if it has an end. Method: pause first, start,
/// end, start again; then a pause of a second.
#[test]
fn a_pause_is_there_before_the_worker_and_after_it() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["pause", "orders"]).exits(0);
    assert_eq!(world.status()[0]["state"], "paused");
    for name in ["first.log", "second.log"] {
        let worker = world.start(name, &["run"]);
        worker.until_it_says("paused");
        assert_eq!(world.rows(), 0);
        worker.terminate();
        worker.ends().exits(0);
    }
    let json = world.hapax(&["pause", "orders", "--for", "1s", "--json"]);
    assert!(json.exits(0).json()["untilMs"].is_u64());
    let worker = world.start("third.log", &["run"]);
    until("the time is over", || world.rows() == 3);
    worker.terminate();
    worker.ends().exits(0);
    world.accounts_for(3, 0);
}

/// Goal: what cannot be done is refused with a cure. Method: no state store; a workflow that does not exist; no duration.
#[test]
fn a_pause_that_nobody_would_hear_is_refused() {
    let world = World::shop("", KEYED);
    world.hapax(&["pause", "order"]).exits(2).says(&["HX5001", "there are orders"]);
    world.hapax(&["pause", "orders", "--for", "soon"]).exits(2).says(&["HX5001", "--for soon"]);
    world.write("hapax.yaml", "state: none\n".to_owned() + &world.read("hapax.yaml"));
    for command in ["pause", "resume"] {
        world.hapax(&[command, "orders"]).exits(2).says(&["HX5063", "state store", "SIGTERM"]);
    }
}

/// Goal: a worker that is paused before its first claim waits with the file that it found, not with its name. Method: the file is
/// rotated meanwhile; a path and a pattern.
#[test]
fn a_file_that_is_rotated_before_the_first_claim_is_read() {
    for path in ["orders.jsonl", "orders.jsonl*"] {
        let world = World::shop("", KEYED);
        world.write("hapax.yaml", world.read("hapax.yaml").replace("path: orders.jsonl", &format!("path: '{path}'")));
        world.write("orders.jsonl", orders(1..=2));
        world.hapax(&["pause", "orders"]).exits(0);
        let worker = world.start("worker.log", &["run"]);
        worker.until_it_says("paused");
        rename(&world.path("orders.jsonl"), &world.path("orders.jsonl.1"));
        world.write("orders.jsonl", orders(3..=3));
        world.hapax(&["resume", "orders"]).exits(0);
        until("both files are read", || world.rows() == 3);
        worker.terminate();
        worker.ends().exits(0);
        world.accounts_for(3, 0);
    }
}

/// Goal: a worker that is paused before its first claim reads the file that it found, though that was compressed meanwhile, and those
/// that came after it; of one that was empty nothing is guessed. Method: a file rotated and compressed, then two others; a path, a
/// pattern that finds all of them, and one that does not; the same with an empty file.
#[test]
fn a_file_that_is_compressed_before_the_first_claim_is_read() {
    for (path, first) in [("orders.jsonl", 2), ("orders.jsonl*", 2), ("o*.jsonl", 2), ("orders.jsonl", 0)] {
        let world = World::shop("", KEYED);
        world.write("hapax.yaml", world.read("hapax.yaml").replace("path: orders.jsonl", &format!("path: '{path}'")));
        world.write("orders.jsonl", orders(1..=first));
        world.hapax(&["pause", "orders"]).exits(0);
        let worker = world.start("worker.log", &["run"]);
        worker.until_it_says("paused");
        world.write("orders.jsonl.2.gz", gzip(orders(1..=2).as_bytes()));
        std::fs::remove_file(world.path("orders.jsonl")).expect("compressed");
        world.write("orders.jsonl.1", orders(3..=3));
        world.write("orders.jsonl", orders(4..=4));
        world.hapax(&["resume", "orders"]).exits(0);
        if first == 0 {
            let ended = worker.ends();
            ended.exits(5).says(&["HX3002", "orders.jsonl is gone before anything of it was read; orders.jsonl.2.gz"]);
            continue;
        }
        until(&format!("all files of {path} are read"), || world.rows() == 4);
        worker.terminate();
        worker.ends().exits(0);
        world.accounts_for(4, 0);
    }
}
