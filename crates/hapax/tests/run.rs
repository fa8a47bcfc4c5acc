//! `hapax run`: several sinks, rejections, schema changes, drain, exit codes.

use crate::world::{KEYED, World, number, order, orders, until};

/// A workflow with two sinks: `good` into `orders` and `other` into the table `table`.
fn two_sinks(table: &str) -> World {
    let world = World::shop("", KEYED);
    let one = "sink: { sqlite: { path: shop.db, table: orders,  } }";
    let two = format!(
        "sinks:
      - {{ name: good, sqlite: {{ path: shop.db, table: orders }} }}
      - {{ name: other, sqlite: {{ path: shop.db, table: {table} }} }}"
    );
    let text = world.read("hapax.yaml");
    assert!(text.contains(one), "{text}");
    world.write("hapax.yaml", text.replace(one, &two));
    world
}

/// Goal: two sinks are two deliveries, each with its own ledger. Method: both into tables of one database.
#[test]
fn two_sinks_are_two_deliveries() {
    let world = two_sinks("copies");
    world.sql("CREATE TABLE copies (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL)");
    world.write("orders.jsonl", orders(1..=20) + "{\"id\":21}\n");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!((world.rows(), world.ask::<i64>("SELECT count(*) FROM copies")), (21, 20));
    let dead: Vec<_> = world.status().iter().map(|d| number(&d["progress"]["dead"])).collect();
    assert_eq!(dead, [0, 1], "only one of them rejected the row");
}

/// Goal: a broken sink leaves the other running, and the process ends with the highest code. Method: no table for one.
#[test]
fn a_broken_sink_leaves_the_other_running() {
    let world = two_sinks("nowhere");
    world.write("orders.jsonl", orders(1..=20));
    world.hapax(&["run", "--once"]).exits(1).says(&["HX4110", "\"nowhere\"", "orders/other/", "finished"]);
    assert_eq!(world.rows(), 20);
    let states: Vec<_> = world.status().iter().map(|d| d["state"].clone()).collect();
    assert_eq!(states, ["finished", "stopped"]);
}

/// Goal: the highest code wins. Method: one sink whose guarantee is refused (3) beside one without a table (1).
#[test]
fn the_highest_code_is_the_process_s() {
    let world = two_sinks("nowhere");
    let text =
        world.read("hapax.yaml").replace("table: orders }", "table: orders, onConflict: append, progress: state }");
    world.write("hapax.yaml", text);
    world.write("orders.jsonl", orders(1..=3));
    let answer = world.hapax(&["run", "--once", "--json"]);
    let codes = answer.exits(3).json()["deliveries"].clone();
    assert_eq!((&codes[0]["stop"]["exitCode"], &codes[1]["stop"]["exitCode"]), (&3.into(), &1.into()), "{answer}");
    answer.says(&["HX1121", "HX4110"]);
}

/// Goal: `onReject: stop` commits nothing of the epoch, and goes on once the cause is gone. Method: a row that does not
/// fit among good ones; then a wider column.
#[test]
fn on_reject_stop_leaves_nothing_of_the_epoch_visible() {
    let world = World::shop("", &format!("{KEYED}, onReject: stop"));
    world.write("orders.jsonl", orders(1..=3) + "{\"id\":4,\"amount\":\"many\"}\n" + &order(5, 50));
    world.hapax(&["run", "--once"]).exits(1).says(&[
        "HX4010",
        "position 114",
        "\"amount\"",
        "or `columns`",
        "onReject: deadLetter",
    ]);
    assert_eq!(world.rows(), 0, "nothing of the epoch is visible");
    assert_eq!(world.ask::<i64>("SELECT count(*) FROM hapax_dead_letters"), 0);
    world.write("hapax.yaml", world.read("hapax.yaml").replace("onReject: stop", "onReject: deadLetter"));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 4);
    world.accounts_for(5, 1);
}

/// Goal: too many rejects stop the workflow with nothing of the epoch visible. Method: a table that fits no row.
#[test]
fn too_many_rejects_stop_with_nothing_of_the_epoch_visible() {
    let world = World::shop("", KEYED);
    let line = |id: i64| format!("{{\"id\":{id},\"amount\":{}}}\n", if id % 2 == 0 { "\"x\"" } else { "1" });
    world.write("orders.jsonl", (1..=400).map(line).collect::<String>());
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(1).says(&[
        "HX4010",
        "orders/sqlite/",
        "50 of the last 100",
        "\"amount\"",
        "or `columns`",
        "or raise maxRejects",
    ]);
    assert_eq!(world.rows(), 0);
    world.write("hapax.yaml", world.read("hapax.yaml").replace(KEYED, &format!("{KEYED}, maxRejects: 60%")));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 200);
    world.accounts_for(400, 200);
}

/// Goal: `progress: state` keeps our tables out of the target. Method: deliver, look at both databases, deliver more.
#[test]
fn progress_in_the_state_store_leaves_the_target_alone() {
    let sink = "onConflict: append, progress: state";
    let world = World::shop(sink, "guarantee: at-least-once");
    world.write("orders.jsonl", orders(1..=5) + "{oops\n");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 5);
    assert_eq!(world.ask::<i64>("SELECT count(*) FROM sqlite_master WHERE name LIKE 'hapax%'"), 0);
    let kept = world.ask_of::<i64>("hapax-data/state.db", "SELECT count(*) FROM hapax_dead_letters");
    assert_eq!(kept, 1, "the letter is in the state store");
    world.accounts_for(6, 1);
    world.append("orders.jsonl", orders(6..=7));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 7);
    world.accounts_for(8, 1);
}

/// Goal: without a state store `progress: state` is refused with the cure, and `progress: sink` works.
#[test]
fn a_workflow_needs_a_state_store_only_for_progress_state() {
    let world = World::shop("onConflict: append, progress: state", "guarantee: at-least-once");
    world.write("orders.jsonl", orders(1..=5));
    world.write("hapax.yaml", "state: none\n".to_owned() + &world.read("hapax.yaml"));
    world.hapax(&["run", "--once"]).exits(2).says(&["hapax.yaml:5:", "HX1033", "write progress: sink, or state:"]);
    world.write("hapax.yaml", world.read("hapax.yaml").replace(", progress: state", ""));
    world.hapax(&["run", "--once"]).exits(0);
    assert!(!world.path("hapax-data").exists());
    world.accounts_for(5, 0);
}

/// Goal: a column that is added while the worker runs is filled from then on. Method: ALTER TABLE beside a live worker.
#[test]
fn a_column_added_while_running_is_filled() {
    let world = World::shop("", KEYED);
    let coloured = |id: i64| format!("{{\"id\":{id},\"amount\":1,\"colour\":\"red\"}}\n");
    world.write("orders.jsonl", coloured(1));
    let worker = world.start("worker.log", &["run"]);
    until("the first row is there", || world.rows() == 1);
    world.sql("ALTER TABLE orders ADD colour TEXT");
    let mut id = 1;
    until("a colour is there", || {
        id += 1;
        world.append("orders.jsonl", coloured(id));
        until("the row is there", || world.rows() == id);
        world.ask::<i64>("SELECT count(*) FROM orders WHERE colour = 'red'") > 0
    });
    worker.terminate();
    worker.ends().exits(0);
    world.accounts_for(id.unsigned_abs(), 0);
}

/// Goal: a column that disappears stops the worker with a message, and nothing is lost. Method: rename it, add a line,
/// rename it back.
#[test]
fn a_column_that_is_renamed_away_does_not_lose_its_values_silently() {
    let world = World::shop("columns: { amount: .cents }", KEYED);
    world.write("orders.jsonl", "{\"id\":1,\"cents\":10}\n");
    world.hapax(&["run", "--once"]).exits(0);
    world.sql("ALTER TABLE orders RENAME COLUMN amount TO total");
    world.append("orders.jsonl", "{\"id\":2,\"cents\":20}\n");
    world.hapax(&["run", "--once"]).exits(1).says(&["HX41", "\"amount\"", "\"orders\""]);
    world.sql("ALTER TABLE orders RENAME COLUMN total TO amount");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:10 2:20");
}

/// Goal: a table that was dropped and made anew is a changed contract: code 5, and `--accept` goes on.
#[test]
fn a_table_made_anew_stops_with_code_5() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=5));
    world.hapax(&["run", "--once"]).exits(0);
    world.sql("DROP TABLE orders");
    world.sql(crate::world::ORDERS);
    world.append("orders.jsonl", orders(6..=7));
    world.hapax(&["run", "--once"]).exits(5).says(&["HX4012", "made anew", "`hapax reset orders --accept`"]);
    assert_eq!(world.rows(), 0);
    world.hapax(&["reset", "orders", "--accept", "--to", "earliest", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 7);
}

/// Goal: a changed key strategy is a changed contract: code 5, naming both.
#[test]
fn a_changed_key_stops_with_code_5() {
    let world = World::shop("", KEYED);
    world.sql(
        "DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, amount INTEGER, UNIQUE (customer, id))",
    );
    world.write("orders.jsonl", orders(1..=5));
    world.hapax(&["run", "--once"]).exits(0);
    world.write("hapax.yaml", world.read("hapax.yaml").replace("[id]", "[customer, id]"));
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(5).says(&["HX4012", ".customer", "hapax reset orders --accept"]);
}

/// Goal: SIGTERM drains: everything read is delivered, code 0. Method: a slow epoch, a signal in its middle.
#[test]
fn a_terminated_worker_delivers_what_it_has_read() {
    let world = World::shop("", KEYED);
    world.write("hapax.yaml", world.read("hapax.yaml").replace("interval: 20ms", "interval: 10m"));
    world.write("orders.jsonl", orders(1..=50));
    let worker = world.start("worker.log", &["run"]);
    worker.until_it_says("claimed");
    worker.terminate();
    worker.ends().exits(0).says(&["draining", "drained"]);
    let read = number(&world.status()[0]["progress"]["read"]);
    assert_eq!(world.rows().unsigned_abs(), read, "what was read is delivered");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 50);
    world.accounts_for(50, 0);
}

/// Goal: a line without its newline is delivered by `--once`, and not twice when the file grows.
#[test]
fn the_last_line_may_lack_its_newline() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=2).trim_end());
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 2);
    world.append("orders.jsonl", format!("\n{}", order(3, 30)));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 3);
    world.accounts_for(3, 0);
}

/// Goal: an empty file is no error. Method: run on it twice, then on a line.
#[test]
fn an_empty_file_is_delivered_as_nothing() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", "");
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    world.append("orders.jsonl", order(1, 10));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:10");
    world.accounts_for(1, 0);
}

/// Goal: the answer for programs and the log for programs are JSON.
#[test]
fn the_end_and_the_log_can_be_read_by_programs() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=5) + "{oops\n");
    let answer = world.hapax(&["run", "--once", "--json", "--log-format", "json"]);
    let delivery = answer.exits(0).json()["deliveries"][0].clone();
    assert_eq!((delivery["end"].as_str(), &delivery["inserts"]), (Some("finished"), &5.into()), "{answer}");
    assert_eq!((&delivery["read"], &delivery["delivered"], &delivery["dead"]), (&6.into(), &5.into(), &1.into()));
    assert!(answer.err.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{answer}");
}

/// Goal: a configuration elsewhere finds its files beside itself. Method: run from another folder; a folder of files.
#[test]
fn paths_begin_at_the_configuration() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    std::fs::create_dir(world.path("inner")).expect("a folder");
    for name in ["hapax.yaml", "shop.db", "orders.jsonl"] {
        crate::world::rename(&world.path(name), &world.path(&format!("inner/{name}")));
    }
    world.hapax(&["run", "--once", "--config", "inner/hapax.yaml"]).exits(0);
    world.hapax(&["run", "--once", "--config", "inner"]).exits(0).says(&["3 delivered"]);
    assert_eq!(world.ask_of::<i64>("inner/shop.db", "SELECT count(*) FROM orders"), 3);
    assert!(world.path("inner/hapax-data/state.db").exists());
}
