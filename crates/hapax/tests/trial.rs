//! `hapax test`: what a configuration says of itself, run without any database.

use crate::world::{KEYED, World};

const SINK: &str = "sqlite: { path: shop.db, table: orders, SINK }";

/// A folder with one workflow, no database, and these tests.
fn world(sink: &str, delivery: &str, tests: &str) -> World {
    let world = World::empty();
    let sink = SINK.replace(", SINK", &if sink.is_empty() { String::new() } else { format!(", {sink}") });
    world.write(
        "hapax.yaml",
        format!(
            "state: none
workflows:
  - id: orders
    source: {{ file: {{ path: orders.jsonl }} }}
    sink: {{ {sink} }}
    delivery: {{ {delivery} }}
tests:
{tests}"
        ),
    );
    world
}

/// Goal: what comes out as expected passes, whatever the batches and restarts; nothing is touched. Method: fields in
/// another order, numbers spelled otherwise, null, nested values, a bad line, a missing key, pinned keys.
#[test]
fn a_test_that_holds_passes_without_a_database() {
    let world = world(
        "",
        KEYED,
        "  - name: all kinds
    workflow: orders
    input:
      - { id: 7, amount: 12.50, note: ~, lines: [{ sku: a, n: 1.0 }] }
      - '{\"id\": 8, \"amount\": 9007199254740993}'
      - 'not JSON'
      - { amount: 3 }
      - { id: 9 }
    expect:
      - { amount: 1.25e1, id: 7, lines: [{ n: 1, sku: a }], note: null }
      - { id: 8, amount: 9007199254740993 }
      - { id: 9 }
    rejects:
      - { code: HX2001, input: 3 }
      - { input: 4, says: \".id\" }
",
    );
    let answer = world.hapax(&["test"]);
    answer.exits(0).says(&["✓ orders: all kinds (5 inputs, 8 runs", "1 passed"]);
    assert!(!world.path("shop.db").exists() && !world.path("orders.jsonl").exists());
    let json = world.hapax(&["test", "--json"]).exits(0).json();
    assert_eq!((&json["passed"], &json["failed"]), (&1.into(), &0.into()));
    let key = json["tests"][0]["outputs"][0]["key"].as_str().expect("a key").to_owned();

    // The printed form, pasted, holds; and a pinned key that is not the event's own does not.
    let printed = world.hapax(&["test", "--print"]).exits(0).out.clone();
    assert!(printed.contains("    expect:\n      - { \"amount\": 12.50, \"id\": 7,"), "{printed}");
    let keys = printed.lines().find(|line| line.starts_with("    keys: [")).expect("keys").to_owned();
    world.append("hapax.yaml", format!("{keys}\n"));
    world.hapax(&["test"]).exits(0);
    let yaml = world.read("hapax.yaml").replace(&key, "h1_aaaaaaaaaaaaaaaaaaaaaaaaaa");
    world.write("hapax.yaml", yaml);
    world.hapax(&["test"]).exits(1).says(&["key 1, from input 1", "expected h1_aaaaaaaaaaaaaaaaaaaaaaaaaa", &key]);
}

/// Goal: what is not as expected is told field by field, with the place of the test. Method: a wrong value, a field too
/// many and one too few, absent against null, an output too many, a dead letter that nobody expected.
#[test]
fn a_difference_is_told_field_by_field() {
    let world = world(
        "",
        KEYED,
        "  - workflow: orders
    input: [{ id: 1, amount: 5, x: { y: [1, 2] } }, { id: 2, note: ~ }, { id: 3 }, '{']
    expect: [{ id: 1, amount: 6, x: { y: [1, 3] }, name: ann }, { id: 2 }]
",
    );
    let answer = world.hapax(&["test"]);
    answer.exits(1).says(&[
        "✗ orders: test 1",
        "hapax.yaml:8:5",
        "output 1, from input 1: .amount\n    expected 6\n    got      5",
        ".x.y[2]\n    expected 3\n    got      2",
        ".name\n    expected \"ann\"\n    got      nothing: the field is absent",
        "output 2, from input 2: .note\n    expected nothing: the field is absent\n    got      null",
        "output 3, from input 3\n    expected nothing more\n    got      { \"id\": 3 }",
        "input 4 became a dead letter",
        "HX2001",
        "1 of 1 failed",
    ]);
    let json = world.hapax(&["test", "--json"]).exits(1).json();
    assert_eq!(json["tests"][0]["failures"][0]["expected"], "6");
}

/// Goal: the mapping of the sink is applied, and deletes are told apart. Method: columns from paths, `deleteWhen`.
#[test]
fn columns_and_deletes_are_applied_as_the_sink_would() {
    let world = world(
        "onConflict: update, columns: { number: .order.id, who: .customer }, deleteWhen: '.op == \"d\"'",
        "guarantee: exactly-once, deduplication: { keyFields: [.order.id] }",
        "  - workflow: orders
    input: [{ order: { id: 1 }, customer: ann }, { order: { id: 1 }, op: d }]
    expect: [{ number: 1, who: ann }]
    deletes: [{ number: 1 }]
",
    );
    world.hapax(&["test"]).exits(0).says(&["1 passed"]);
}

/// Goal: CSV is read as the file would be. Method: a header and records as text, an event as fields, a record too short, a
/// null, a header in the configuration.
#[test]
fn csv_is_tested_by_its_lines_or_its_fields() {
    let world = world(
        "",
        KEYED,
        "  - workflow: orders
    input:
      - |
        id,name,note
        1,ann,
        2,\"a, b\",x
        3
      - { id: 4, name: eve, note: ~ }
    expect:
      - { id: '1', name: ann, note: ~ }
      - { id: '2', name: 'a, b', note: x }
      - { id: '4', name: eve, note: ~ }
    rejects: [{ code: HX2080, input: 3 }]
",
    );
    let yaml = world.read("hapax.yaml").replace("orders.jsonl", "orders.csv");
    world.write("hapax.yaml", &yaml);
    world.hapax(&["test"]).exits(0).says(&["4 inputs", "1 passed"]);
    let yaml = yaml.replace("        id,name,note\n", "");
    let yaml = yaml.replace("path: orders.csv", "path: orders.csv, csv: { header: [id, name, note] }");
    world.write("hapax.yaml", yaml);
    world.hapax(&["test"]).exits(0).says(&["4 inputs", "1 passed"]);
}

/// Goal: a program is tested with the workflow, and its own error is printed with its place. Method: a transform that
/// changes, filters, emits several and fails.
#[cfg(feature = "transform")]
#[test]
fn a_transform_is_tested_with_its_workflow() {
    let world = world(
        "",
        KEYED,
        "  - workflow: orders
    input: [{ id: 1, cents: 1250 }, { id: 2, cents: 5, test: true }, { id: 3, cents: x }]
    expect: [{ id: 1, amount: 12.5 }]
    rejects: [{ input: 3, says: line 1 }]
",
    );
    let program = "    transform: |\n      .amount = to_int!(.cents) / 100\n      del(.cents)\n      if .test == true { abort }\n";
    let yaml = world.read("hapax.yaml").replace("    sink: {", &format!("{program}    sink: {{"));
    world.write("hapax.yaml", &yaml);
    world.hapax(&["test"]).exits(0).says(&["1 passed"]);
    world.write("hapax.yaml", yaml.replace("    rejects: [{ input: 3, says: line 1 }]\n", ""));
    world.hapax(&["test"]).exits(1).says(&["input 3 became a dead letter", "line 1", "HX2"]);
}

/// Goal: a key that depends on how the input was cut is found. Method: a key with the epoch, under a guarantee that rests
/// on keys, and under one that does not.
#[test]
fn a_key_that_depends_on_the_epoch_is_found_by_other_batch_sizes() {
    let tests = "  - workflow: orders
    input: [{ id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }]
    expect: [{ id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }]
";
    let delivery = |guarantee: &str| {
        format!("guarantee: {guarantee}, deduplication: {{ keyFields: [id], strategy: content-with-epoch }}")
    };
    let refused = world("onConflict: ignore, keyColumn: k", &delivery("idempotent-keys"), tests);
    refused.hapax(&["test"]).exits(1).says(&[
        "the key of event 3, from input 3, after the cut before input 3 (in batches of 2)",
        "by another worker (in batches of 1, the worker ended before and after each commit)",
        "(as in one batch)",
    ]);
    let borne = world("onConflict: ignore, keyColumn: k", &delivery("exactly-once"), tests);
    borne.hapax(&["test"]).exits(0).says(&["note: the keys hold the epoch"]);
}

/// Goal: without tests the command says how to write one; what is written wrong is told with its line. Method: none, an
/// unknown workflow, a scalar for an event, `--only` with a name that nothing has, an incomplete workflow.
#[test]
fn what_cannot_be_run_is_said_with_the_cure() {
    let none = World::shop("", "guarantee: at-least-once");
    none.hapax(&["test"]).exits(2).says(&["HX5080", "workflow: orders", "expect:"]);
    let wrong = |test: &str| world("", KEYED, test);
    wrong("  - { workflow: order, input: [{ id: 1 }] }\n")
        .hapax(&["test"])
        .exits(2)
        .says(&["HX1450", "did you mean orders?"]);
    wrong("  - { workflow: orders, sink: erp, input: [{ id: 1 }] }\n")
        .hapax(&["test"])
        .exits(2)
        .says(&["HX1450", "sqlite"]);
    wrong("  - { workflow: orders, input: [7] }\n")
        .hapax(&["check"])
        .exits(2)
        .says(&["HX1011", "the fields of an event"]);
    let good = wrong("  - { name: one, workflow: orders, input: [{ id: 1 }], expect: [{ id: 1 }] }\n");
    good.hapax(&["test", "--only", "two"]).exits(2).says(&["HX5081", "there are one"]);
    good.hapax(&["test", "--only", "one"]).exits(0).says(&["1 passed"]);
    good.hapax(&["config", "show"]).exits(0).says(&["expect: [{\"id\":1}]"]);
    let incomplete = World::empty();
    incomplete.write("hapax.yaml", "workflows: [{ id: w }]\ntests: [{ workflow: w, input: [{ id: 1 }] }]\n");
    incomplete.hapax(&["test"]).exits(2).says(&["HX5001", "it lacks a source and a sink"]);
}
