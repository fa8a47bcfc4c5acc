//! A chain of files with its progress in the state store: kills between rows and position, letters, and what `reconcile` says.

use std::fs;

use crate::world::{World, number, order, orders, rename, until};

/// Rows that are known by a key made of their position, which the database keeps apart.
const KEYED: Setting = Setting {
    table: "id INTEGER CHECK (id <> 666), amount INTEGER, k BLOB NOT NULL UNIQUE",
    sink: "onConflict: ignore, keyColumn: k",
    delivery: "guarantee: idempotent-keys, deduplication: { strategy: source-offset }",
};
/// Rows that nothing tells apart.
const REPEATED: Setting =
    Setting { table: "id INTEGER, amount INTEGER", sink: "onConflict: append", delivery: "guarantee: at-least-once" };

struct Setting {
    table: &'static str,
    sink: &'static str,
    delivery: &'static str,
}

/// Workflow `orders` from `in/*.log*`, with a position that is saved every `interval`.
fn shop(setting: &Setting, interval: &str) -> World {
    let world = World::empty();
    world.sql(&format!("CREATE TABLE orders ({})", setting.table));
    fs::create_dir(world.path("in")).expect("a folder");
    let Setting { sink, delivery, .. } = setting;
    world.write(
        "hapax.yaml",
        format!(
            "workflows:
  - id: orders
    source: {{ file: {{ path: 'in/*.log*' }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, {sink}, progress: state, progressInterval: {interval} }} }}
    delivery: {{ {delivery}, maxRejects: 100%, epoch: {{ interval: 20ms }}, lease: 2s, retries: {{ backoffMs: [50] }} }}
"
        ),
    );
    world
}

/// The file that is written to becomes `app.log.1`, and a new one with `lines` takes its name.
fn rotate(world: &World, lines: &str) {
    rename(&world.path("in/app.log"), &world.path("in/app.log.1"));
    world.write("in/app.log", lines);
}

/// One value out of the state store.
fn stored(world: &World, query: &str) -> i64 {
    world.ask_of("hapax-data/state.db", query)
}

/// The ids of all rows, each once.
fn ids(world: &World) -> String {
    world.ask("SELECT group_concat(id, ' ') FROM (SELECT DISTINCT id FROM orders ORDER BY id)")
}

/// Everything that was written is there, once where rows have a key, and the books say so.
fn nothing_is_lost(world: &World, setting: &Setting, wanted: i64) {
    let all: Vec<String> = (1..=wanted).map(|id| id.to_string()).collect();
    assert_eq!(ids(world), all.join(" "));
    if setting.table.contains("UNIQUE") {
        assert_eq!(world.rows(), wanted, "each once");
    }
    let progress = &world.status()[0]["progress"];
    assert_eq!(number(&progress["read"]), wanted.unsigned_abs(), "{progress:#}");
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["verdict  adds up"]);
}

/// Goal: a worker that met an empty file, wrote its first rows and was killed before it saved a position is followed by one that
/// finds the same keys. Method: SIGKILL once the rows are there, with a position that is saved once an hour.
#[test]
fn a_kill_before_the_first_position_of_an_empty_file_loses_nothing() {
    for setting in [KEYED, REPEATED] {
        let world = shop(&setting, "1h");
        world.write("in/app.log", "");
        let worker = world.start("worker.log", &["run"]);
        worker.until_it_says("claimed");
        world.append("in/app.log", orders(1..=3));
        until("the rows are there", || world.rows() == 3);
        world.append("in/app.log", orders(4..=5));
        until("the next rows are there", || world.rows() == 5);
        drop(worker);
        assert_eq!(stored(&world, "SELECT read FROM hapax_progress"), 0, "no position was saved");
        world.append("in/app.log", orders(6..=7));
        world.hapax(&["run", "--once", "--take-over"]).exits(0).keeps_silent_about(&["HX4014"]);
        nothing_is_lost(&world, &setting, 7);
    }
}

/// When a worker is killed beside a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Before the file is renamed.
    Before,
    /// It knows of the next file, and cannot save the step to it.
    AtTheStep,
    /// Rows of the next file are there, their position is not.
    Behind,
}

/// Goal: whoever is killed before, at or after the step to the next file of a chain is followed by one that finds the same keys and
/// loses nothing. Method: SIGKILL with rows whose position is not saved; at the step the state store is locked.
#[test]
fn a_kill_beside_the_step_to_the_next_file_loses_nothing() {
    for setting in [KEYED, REPEATED] {
        for moment in [Moment::Before, Moment::AtTheStep, Moment::Behind] {
            let world = shop(&setting, "1h");
            world.write("in/app.log", orders(1..=3));
            let worker = world.start("worker.log", &["run"]);
            until("the rows are there", || world.rows() == 3);
            let held = (moment == Moment::AtTheStep).then(|| {
                let connection = world.database("hapax-data/state.db");
                connection.execute_batch("BEGIN IMMEDIATE").expect("the lock");
                connection
            });
            match moment {
                Moment::Before => drop(worker),
                Moment::AtTheStep => {
                    rotate(&world, &orders(4..=5));
                    worker.until_it_says("locked");
                    drop(worker);
                }
                Moment::Behind => {
                    rotate(&world, &orders(4..=5));
                    until("rows of the next file are there", || world.rows() == 5);
                    drop(worker);
                }
            }
            drop(held);
            let saved = stored(&world, "SELECT read FROM hapax_progress");
            assert_eq!(saved, if moment == Moment::Behind { 3 } else { 0 }, "{moment:?}: the step alone is saved");
            if moment == Moment::Before {
                rotate(&world, &orders(4..=5));
            }
            world.append("in/app.log", orders(6..=6));
            world.hapax(&["run", "--once", "--take-over"]).exits(0).keeps_silent_about(&["HX4014"]);
            nothing_is_lost(&world, &setting, 6);
        }
    }
}

/// Goal: letters carry the file in which their input lay, though all of them wait for one position. Method: a bad line and a refused
/// row in a file and in the one that follows it; the letters, and what `trace` says of each; mended, they are replayed under
/// the keys that reading them again gives.
#[test]
fn letters_carry_the_file_of_their_input() {
    let world = shop(&KEYED, "1h");
    let poisoned = |id: i64| format!("{}no json {id}\n{}{}", order(id, 1), order(666, id), order(id + 1, 1));
    world.write("in/app.log", poisoned(1));
    rotate(&world, &poisoned(3));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4");
    let letters: Vec<_> =
        (1..=4).map(|id| world.hapax(&["dlq", "show", &id.to_string(), "--json"]).exits(0).json()).collect();
    let text = |letter: &serde_json::Value, field: &str| letter[field].as_str().unwrap_or_default().to_owned();
    let first = [poisoned(1), poisoned(3)].map(|lines| lines.lines().next().map_or(0, str::len) + 1);
    let files = [text(&letters[0], "incarnation"), text(&letters[2], "incarnation")];
    assert_ne!(files[0], files[1], "two files: {letters:#?}");
    for (letter, (file, offset)) in letters.iter().zip([(0, 0), (0, 10), (1, 0), (1, 10)]) {
        assert_eq!(text(letter, "incarnation"), files[file], "{letter:#}");
        assert_eq!(text(letter, "position"), (first[file] + offset).to_string(), "{letter:#}");
        assert!(text(letter, "input").starts_with(if offset == 0 { "no json" } else { "{\"id\":666" }), "{letter:#}");
    }
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["verdict  adds up"]);
    for (letter, number) in letters.iter().zip(["1", "1", "2", "2"]) {
        let place = text(letter, "position");
        let traced = world.hapax(&["trace", &place, "--file", number, "--json"]).exits(0).json();
        let story = &traced["deliveries"][0];
        assert_eq!(story["verdict"], "deadLetter", "{story:#}");
        assert_eq!(story["inputs"][0]["incarnation"], letter["incarnation"], "{story:#}");
    }
    world.sql("PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = replace(sql, '<> 666', '<> 667')");
    world.hapax(&["dlq", "replay", "--yes"]).exits(1).says(&["2 replayed"]);
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["6 keys of 8 inputs", "verdict  adds up"]);
}

/// Goal: `reconcile --deep` finds a row of either file of a chain that vanished, and nothing in sound ones. Method: rows deleted by
/// hand and brought back.
#[test]
fn rows_that_vanished_from_either_file_are_named() {
    let world = shop(&KEYED, "1h");
    world.write("in/app.log", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the first rows are there", || world.rows() == 3);
    rotate(&world, &orders(4..=6));
    until("all rows are there", || world.rows() == 6);
    worker.terminate();
    worker.ends().exits(0);
    let sound = || {
        world.hapax(&["reconcile", "--deep"]).exits(0).says(&["6 keys of 6 inputs", "verdict  adds up"]);
    };
    sound();
    for id in [2, 5] {
        world.sql(&format!(
            "CREATE TABLE kept AS SELECT * FROM orders WHERE id = {id}; DELETE FROM orders WHERE id = {id}"
        ));
        let report = world.hapax(&["reconcile", "--deep", "--json"]).exits(1).json();
        let first = &report["deliveries"][0]["firstDifference"];
        assert!(first["input"].to_string().contains(&format!("\\\"id\\\":{id},")), "{report:#}");
        world.sql("INSERT INTO orders SELECT * FROM kept; DROP TABLE kept");
        sound();
    }
}

/// Goal: a key that was written in one file and deleted in the next is expected to be gone, wherever progress is kept. Method: `update`
/// with `deleteWhen` over a rotation, at once and one after the other; then the row comes back.
#[test]
fn a_key_that_the_next_file_deletes_is_expected_to_be_gone() {
    let removed = |id: i64| format!("{{\"id\":{id},\"op\":\"d\"}}\n");
    for place in ["progress: state, progressInterval: 1h", "progress: sink"] {
        for at_once in [true, false] {
            let updated = Setting {
                table: "id INTEGER PRIMARY KEY, amount INTEGER",
                sink: "onConflict: update, deleteWhen: .op == \"d\"",
                delivery: "guarantee: idempotent-keys, deduplication: { keyFields: [id] }, conditions: [one-worker]",
            };
            let world = shop(&updated, "1h");
            let text = world.read("hapax.yaml").replace("progress: state, progressInterval: 1h", place);
            world.write("hapax.yaml", text);
            world.write("in/app.log", orders(1..=4));
            if !at_once {
                world.hapax(&["run", "--once"]).exits(0);
            }
            rotate(&world, &[removed(2), removed(3), order(3, 33)].concat());
            world.hapax(&["run", "--once"]).exits(0);
            assert_eq!(world.amounts(), "1:10 3:33 4:40");
            world.hapax(&["reconcile", "--deep"]).exits(0).says(&["verdict  adds up"]);
            world.hapax(&["reconcile"]).exits(0).says(&["verdict  adds up"]);
            world.sql("INSERT INTO orders (id) VALUES (2)");
            world.hapax(&["reconcile", "--deep"]).exits(1).says(&["expected no row, found a row"]);
        }
    }
}
