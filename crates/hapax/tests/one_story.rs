//! Commands that look, beside each other: in every situation they tell the same story of a delivery.

use crate::world::{KEYED, World, order, orders, until};

/// What a situation is called, what leads to it, the state that `status` and `top` name, what `stuck` says beside it, and its code.
type Situation = (&'static str, fn() -> World, &'static str, &'static [&'static str], i32);

fn shop() -> World {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world
}

fn delivered() -> World {
    let world = shop();
    world.hapax(&["run", "--once"]).exits(0);
    world
}

/// Stopped with code 5: another file under the name of the one that was read.
fn another_file() -> World {
    let world = delivered();
    world.write("orders.jsonl", orders(5..=5));
    world.hapax(&["run", "--once"]).exits(5);
    world
}

/// Stopped with code 1: the table is gone.
fn without_table() -> World {
    let world = delivered();
    world.append("orders.jsonl", order(4, 40));
    world.sql("ALTER TABLE orders RENAME TO elsewhere");
    world.hapax(&["run", "--once"]).exits(1);
    world
}

fn paused(world: World) -> World {
    world.hapax(&["pause", "orders", "--why", "moving"]).exits(0);
    world
}

fn killed() -> World {
    let world = shop();
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    drop(worker);
    world.append("orders.jsonl", order(4, 40));
    until("its lease has run out", || world.status()[0]["worker"].is_null());
    world
}

/// Goal: `status`, `top` and `stuck` never disagree about how a delivery stands, and what stopped is told beside a pause.
/// Method: one situation after the other, each looked at by all three.
#[test]
fn everybody_who_looks_tells_the_same_story() {
    const SITUATIONS: &[Situation] = &[
        ("never run", shop, "never run", &["never run; ", "start hapax run"], 1),
        ("finished", delivered, "finished", &["Nothing is stuck"], 0),
        ("paused", || paused(delivered()), "paused", &["paused by", "hapax resume orders"], 1),
        ("killed", killed, "no worker", &["ended without a word", "start hapax run"], 1),
        ("stopped with 5", another_file, "stopped", &["stopped with code 5: HX3", "hapax reset orders"], 1),
        ("stopped with 1", without_table, "stopped", &["stopped with code 1: HX4", "mend it"], 1),
        (
            "stopped with 5, then paused",
            || paused(another_file()),
            "stopped",
            &["stopped with code 5: HX3", "hapax reset orders", "paused by", "hapax resume orders"],
            1,
        ),
        (
            "stopped with 1, then paused",
            || paused(without_table()),
            "stopped",
            &["stopped with code 1: HX4", "mend it", "paused by", "hapax resume orders"],
            1,
        ),
    ];
    let mut wrong = Vec::new();
    for (name, make, state, words, code) in SITUATIONS {
        let world = make();
        let status = world.status()[0].clone();
        let top = world.hapax(&["top", "--count", "1", "--json"]).exits(0).json();
        let stuck = world.hapax(&["stuck"]);
        let silent: Vec<&&str> = words.iter().filter(|words| !stuck.out.contains(**words)).collect();
        let pause_hidden = name.contains("paused") && !world.hapax(&["status"]).out.contains("paused by");
        if status["state"] != *state
            || top["state"] != *state
            || stuck.code != *code
            || !silent.is_empty()
            || pause_hidden
        {
            wrong.push(format!(
                "== {name}: status {}, top {}; stuck lacks {silent:?}; status hides the pause: {pause_hidden}\n{stuck}",
                status["state"], top["state"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} disagree\n{}", wrong.len(), SITUATIONS.len(), wrong.join("\n"));
}

/// Goal: the lane of `order: name` that has read everything is a lane like any other: `running` while a worker waits for the next file,
/// also one that found nothing to read at its start, then `drained`. Method: all three who look, at each of these.
#[test]
fn an_idle_lane_of_files_in_order_is_told_like_any_other() {
    let world = World::shop("onConflict: update", KEYED);
    let ordered = world.read("hapax.yaml").replace("path: orders.jsonl", "path: 'orders-*.jsonl', order: name");
    assert!(ordered.contains("order: name"), "{ordered}");
    world.write("hapax.yaml", ordered);
    world.write("orders-1.jsonl", orders(1..=3));
    let look = |state: &str, worker: bool| {
        until(&format!("it is {state}"), || world.status()[0]["state"] == state);
        assert_eq!(world.status()[0]["worker"].is_null(), !worker, "{state}");
        let top = world.hapax(&["top", "--count", "1", "--json"]).exits(0).json();
        assert_eq!((&top["state"], top["worker"].is_null()), (&state.into(), !worker), "{top:#}");
        world.hapax(&["status"]).exits(0).says(&[state]).keeps_silent_about(&["read to their end"]);
        world.hapax(&["stuck"]).exits(0).says(&["Nothing is stuck"]);
    };
    for rows in [3, 3, 4] {
        if rows == 4 {
            world.write("orders-2.jsonl", orders(4..=4));
        }
        let worker = world.start("worker.log", &["run"]);
        until("the rows are there", || world.rows() == rows);
        worker.until_it_says("looked for files");
        look("running", true);
        worker.terminate();
        worker.ends().exits(0);
        look("drained", false);
    }
}

/// Goal: a table that was read and is not fit, or is not there, is not called a target that cannot be read. Method: the key's index
/// is missing, then the table; `check`, `trace` and `reconcile` after each.
#[test]
fn a_table_that_was_read_is_not_called_unreadable() {
    let world = delivered();
    world.sql(
        "ALTER TABLE orders RENAME TO keyed; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER); \
         INSERT INTO orders SELECT * FROM keyed",
    );
    let mut wrong = Vec::new();
    let mut look = |words: &str, code: &str| {
        for command in [&["check", "--live"][..], &["trace", "id=1", "--search"], &["reconcile"]] {
            let answer = world.hapax(command);
            let unreadable =
                ["target cannot be read", "it cannot be read"].iter().any(|said| answer.out.contains(said));
            if !answer.out.contains(words) || !answer.out.contains(code) || unreadable {
                wrong.push(format!("== {words}: {command:?}: {answer}"));
            }
        }
    };
    look("the table is not fit", "HX4112");
    world.sql("DROP TABLE orders");
    look("the table is not there", "HX4110");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Goal: without the state store, nobody says that there is no worker: what is known of the rows is told, and what is not known is said.
/// Method: the state store's file is one that SQLite refuses, while a line waits.
#[test]
fn without_the_state_store_nobody_claims_that_there_is_no_worker() {
    let world = delivered();
    world.append("orders.jsonl", order(4, 40));
    world.write("state.db", "this is no database at all, but long enough to be taken for one".repeat(40));
    world.write("hapax.yaml", format!("state: \"sqlite://state.db\"\n{}", world.read("hapax.yaml")));
    let top = world.hapax(&["top", "--count", "1", "--json"]).exits(0).json();
    assert_eq!((&top["state"], &top["delivered"]), (&"unknown".into(), &3.into()), "{top:#}");
    let status = world.hapax(&["status"]);
    status.exits(1).says(&["unknown", "state store: HX4101"]);
    let json = world.hapax(&["status", "--json"]).exits(1).json();
    assert_eq!(
        (&json["deliveries"][0]["state"], &json["deliveries"][0]["progress"]["delivered"]),
        (&"unknown".into(), &3.into())
    );
    assert!(json["stateStore"].as_str().is_some_and(|why| why.contains("HX4101")), "{json:#}");
    let stuck = world.hapax(&["stuck"]);
    stuck.exits(1).says(&["state store", "HX4101"]).keeps_silent_about(&["no worker", "never run"]);
}
