//! Numbered files: `init` reads them in their order, and `check` says where there is none.

use crate::world::World;

const INIT: [&str; 9] = ["init", "--from", "in/b*.jsonl", "--to", "sqlite:shop.db", "--table", "t", "--key", "id"];

/// Files of these names, each with the same keys and its own number as their value.
fn batches(names: &[&str]) -> World {
    let world = World::empty();
    std::fs::create_dir(world.path("in")).expect("a folder");
    world.sql("CREATE TABLE t (id INTEGER PRIMARY KEY NOT NULL, v INTEGER)");
    for (value, name) in names.iter().enumerate() {
        let line = |id: i64| format!("{{\"id\":{id},\"v\":{value}}}\n");
        world.write(&format!("in/{name}.jsonl"), (1..=50).map(line).collect::<String>());
    }
    world
}

/// Goal: of a key in numbered batches the last file's value stays. Method: what `init` proposes, checked and run; with a number
/// before the extension as rotations have it, too.
#[test]
fn numbered_batches_are_proposed_as_one_lane() {
    for names in [["batch-01", "batch-02", "batch-03", "batch-04"], ["b.01", "b.02", "b.03", "b.04"]] {
        let world = batches(&names);
        world.hapax(&INIT).exits(0).says(&["numbered: `order: name`"]);
        let proposed = world.read("hapax.yaml");
        assert!(proposed.contains("order: name ") && proposed.contains("one lane in the order"), "{proposed}");
        world.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["no order between"]);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.ask::<i64>("SELECT count(*) FROM t WHERE v = 3"), 50, "{names:?}");
    }
}

/// Goal: an order that the bytes of the names have not is not proposed, but told. Method: numbers of different length, days before
/// years, and numbers that will grow.
#[test]
fn numbers_that_bytes_sort_wrongly_are_told() {
    for (names, words) in [
        (["b-2", "b-9", "b-10"], "b-10.jsonl comes before b-2.jsonl"),
        (["b-30-11-2026", "b-01-12-2026", "b-02-12-2026"], "b-02-12-2026.jsonl comes before b-30-11-2026.jsonl"),
    ] {
        let world = batches(&names);
        world.hapax(&INIT).exits(0).says(&[words, "chance says which value stays"]);
        let proposed = world.read("hapax.yaml");
        assert!(!proposed.contains("\n        order:") && !proposed.contains("\n        rotation:"), "{proposed}");
        assert!(proposed.contains(words), "{proposed}");
    }
    let world = batches(&["b-1", "b-2", "b-3"]);
    world.hapax(&INIT).exits(0).says(&["a 10 would come before a 2"]);
    assert!(world.read("hapax.yaml").contains("order: name "));
}

/// Goal: lanes that may share keys are told of, where order decides what stays. Method: a pattern in each mode; a version of the
/// event's own, and one lane.
#[test]
fn a_check_tells_of_keys_in_several_lanes() {
    let world = batches(&["b-01", "b-02"]);
    world.sql("CREATE TABLE n (id INTEGER PRIMARY KEY NOT NULL, v INTEGER)");
    let configure = |source: &str, sink: &str| {
        let text = format!(
            "workflows:
  - id: t
    source: {{ file: {{ path: 'in/*.jsonl'{source} }} }}
    sink: {{ sqlite: {{ path: shop.db, {sink} }} }}
    delivery: {{ guarantee: at-least-once, deduplication: {{ keyFields: [id], unique: true }} }}
"
        );
        world.write("hapax.yaml", text);
    };
    for (mode, note) in [
        ("update", Some("update by key from 2 lanes")),
        ("ignore", Some("the first that is written stays")),
        ("append", None),
        ("newer, versionColumn: v", None),
    ] {
        configure("", &format!("table: n, onConflict: {mode}"));
        for arguments in [&["check"][..], &["check", "--live"]] {
            let answer = world.hapax(arguments);
            match note {
                Some(note) => answer.exits(0).says(&[note, "no order between them", "`order: name` makes one lane"]),
                None => answer.exits(0).keeps_silent_about(&["no order between them"]),
            };
        }
    }
    configure(", order: name", "table: n, onConflict: update");
    world.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["no order between them"]);
}
