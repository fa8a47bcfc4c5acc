//! At-most-once with `progress: state`: which inputs a killed worker cannot have sent depends on how it made rows of them.

use crate::schema_change::Place as _;
use crate::world::{World, number, order, until};

const STORE: &str = "hapax-data/state.db";
const SINK: &str = "onConflict: append, progress: state";
const DELIVERY: &str = "guarantee: at-most-once, maxRejects: 100%";

/// The codes of all letters, in the order of the lane.
fn codes(world: &World) -> String {
    let ordered = "SELECT code FROM hapax_dead_letters ORDER BY CAST(position AS INTEGER)";
    world.ask_of(STORE, &format!("SELECT coalesce(group_concat(code, ' '), '') FROM ({ordered})"))
}

/// Lets a worker read `file` to its end while the table is locked, and kills it: what it was about to write is in doubt.
fn kill_in_doubt(world: &World, file: &str) {
    let held = world.database("shop.db");
    held.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let worker = world.start("worker.log", &["run"]);
    let end = world.read(file).len().to_string();
    let about_to_write = "SELECT count(*) FROM hapax_intents WHERE to_position = '";
    until("it is about to write all of it", || world.ask_of::<i64>(STORE, &format!("{about_to_write}{end}'")) == 1);
    drop(worker);
    drop(held);
}

/// The configuration, with this filter and these fields of the source.
#[cfg(feature = "transform")]
fn configure(world: &World, filter: &str, source: &str) {
    world.configure("orders", SINK, DELIVERY);
    let plain = world.read("hapax.yaml").replace("path: orders.jsonl", &format!("path: orders.jsonl{source}"));
    world.write("hapax.yaml", plain.replace("    sink:", &format!("    transform: '{filter}'\n    sink:")));
}

/// Goal: of what a killed worker may have sent, an input that it filtered, or that was refused before anything was sent, keeps its own
/// fate if the next worker makes rows as it did; after a change of the filter, of a column or of how lines are read no input vanishes
/// as filtered that may have been sent. Method: a good line, a filtered one, one that fits no column and one that is no event, all in
/// doubt; each change; then another kill in the middle of the doubt, with the new filter.
#[cfg(feature = "transform")]
#[test]
fn what_was_filtered_or_refused_by_the_same_rules_is_not_in_doubt() {
    const TWO: &str = "if .amount == 2 { abort }";
    const TWENTY: &str = "if .amount == 20 { abort }";
    let lines =
        [&order(2, 20), &order(3, 2), "{\"id\":4,\"customer\":\"ann\",\"amount\":\"x\"}\n", "no json\n"].concat();
    for (changed, filter, source, table, expected, filtered) in [
        ("the filter", TWENTY, "", "", "HX2040 HX2040 HX2040 HX2001", 0),
        ("nothing", TWO, "", "", "HX2040 HX2020 HX2001", 1),
        ("a column", TWO, "", "ALTER TABLE orders ADD COLUMN more TEXT", "HX2040 HX2040 HX2040 HX2001", 0),
        ("the reading", TWO, ", maxLine: 1000B", "", "HX2040 HX2040 HX2040 HX2040", 0),
    ] {
        let world = World::ready();
        configure(&world, TWO, "");
        world.write("orders.jsonl", order(1, 10));
        world.hapax(&["run", "--once"]).exits(0);
        world.append("orders.jsonl", &lines);
        kill_in_doubt(&world, "orders.jsonl");
        configure(&world, filter, source);
        if !table.is_empty() {
            world.sql(table);
        }
        // A worker with the new rules that is killed too forgets nothing.
        world.append("orders.jsonl", order(5, 50));
        kill_in_doubt(&world, "orders.jsonl");
        world.append("orders.jsonl", order(6, 60));
        world.hapax(&["run", "--once", "--take-over"]).exits(0);
        assert_eq!(codes(&world), format!("{expected} HX2040"), "{changed} changed");
        let deliveries = world.status();
        assert_eq!(number(&deliveries[0]["progress"]["filtered"]), filtered, "{changed} changed: {deliveries:#?}");
        let ids: String = world.ask("SELECT group_concat(id) FROM (SELECT id FROM orders ORDER BY id)");
        assert_eq!(ids, "1,6", "{changed} changed: nothing is sent again");
        world.hapax(&["reconcile"]).exits(0).says(&["adds up"]);
    }
}

/// Goal: lanes of an earlier version that become one lane keep what was in doubt. Method: a rotated file that was read and its
/// successor, whose last line a killed worker may have sent, as an earlier version left them; they are joined.
#[test]
fn lanes_of_an_earlier_version_keep_their_doubt() {
    let world = World::ready();
    world.configure("orders", SINK, DELIVERY);
    let whole = world.read("hapax.yaml").replace("path: orders.jsonl", "path: 'in/*.log*'");
    world.write("hapax.yaml", whole.replace("in/*.log*'", "in/*.log*', rotation: none"));
    std::fs::create_dir(world.path("in")).expect("a folder");
    world.write("in/app.log.1", [order(1, 10), order(2, 20), order(6, 60)].concat());
    world.write("in/app.log", order(3, 30));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("in/app.log", order(4, 40));
    kill_in_doubt(&world, "in/app.log");
    // As an earlier version wrote it: no facts, no rule of rotation, nothing of how rows are made.
    let store = world.database(STORE);
    let earlier = "UPDATE hapax_progress SET contract = replace(contract, '\"rotation\":\"none\",', ''),
         incarnation = substr(incarnation, 1, instr(incarnation, char(10)) - 1);
         UPDATE hapax_progress SET lane = 'in/app.log#2' WHERE lane = 'in/app.log.1';
         UPDATE hapax_epochs SET lane = 'in/app.log#2' WHERE lane = 'in/app.log.1';
         UPDATE hapax_intents SET lane = 'in/app.log#2' WHERE lane = 'in/app.log.1';
         UPDATE hapax_intents SET digest = zeroblob(32)";
    store.execute_batch(earlier).expect("written");
    world.write("hapax.yaml", whole);
    world.append("in/app.log", order(5, 50));
    world.hapax(&["run", "--once", "--take-over"]).exits(0).says(&["one lane now"]);
    let ids: String = world.ask("SELECT group_concat(id) FROM (SELECT id FROM orders ORDER BY id)");
    assert_eq!((ids.as_str(), codes(&world).as_str()), ("1,2,3,5,6", "HX2040"), "never sent again");
}
