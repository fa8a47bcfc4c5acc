use crate::config::tests::{assert_problem, loaded};

fn sink(fields: &str) -> String {
    format!("workflows:\n  - id: w\n    sink:\n      sqlite:\n        path: a.db\n        table: t\n        {fields}\n")
}

/// Goal: ids and sink names are unique. Method: doubles of each, with the first's place in the message.
#[test]
fn doubled_names_are_told_with_both_places() {
    let ids = "workflows:\n  - id: a\n  - id: b\n  - id: a\n";
    assert_problem(ids, 4, "HX1030", &["the workflow \"a\" is already at etc/hapax.yaml:2:9", "a name of its own"]);
    let sinks = "workflows:\n  - id: w\n    sinks:\n      - { name: x, sqlite: { path: a, table: b } }\n      \
                 - { name: x, sqlite: { path: a, table: c } }\n";
    assert_problem(sinks, 5, "HX1031", &["the sink \"x\" is already at etc/hapax.yaml:4:17"]);
}

/// Goal: fields that cannot be true together are refused. Method: each pair.
#[test]
fn contradictions_are_told() {
    assert_problem(&sink("versionColumn: v"), 7, "HX1033", &["without onConflict", "onConflict: newer"]);
    let cases = [
        ("{ onConflict: append, keyColumn: k }", "append looks at no key"),
        ("{ onConflict: append, deleteWhen: .op == 1 }", "only onConflict: update and newer can delete"),
        ("{ onConflict: ignore, deleteWhen: .op == 1 }", "only onConflict: update and newer can delete"),
        ("{ onConflict: update, versionColumn: v }", "onConflict: newer"),
    ];
    for (fields, cure) in cases {
        let fields = fields.replace("{ ", "{ path: a, table: t, ");
        let text = format!("workflows:\n  - id: w\n    sink:\n      sqlite: {fields}\n");
        assert_problem(&text, 4, "HX1033", &["has no meaning", cure]);
    }
    let ours = "workflows:\n  - id: w\n    sink: { sqlite: { path: a, table: Hapax_progress } }\n";
    assert_problem(ours, 3, "HX1033", &["Hapax's own", "name a table of yours"]);
    let both = "workflows:\n  - id: w\n    sink: { sqlite: { path: a, table: b } }\n    sinks:\n      \
                - { name: x, sqlite: { path: a, table: c } }\n";
    assert_problem(both, 5, "HX1033", &["both sink and sinks", "keep sinks"]);
    let stateless = format!("state: none\n{}", sink("progress: state"));
    assert_problem(&stateless, 8, "HX1033", &["needs a state store", "progress: sink"]);
    let line = "memory: 16MiB\nworkflows:\n  - id: w\n    source: { file: { path: a, maxLine: 17MiB } }\n";
    assert_problem(line, 4, "HX1033", &["would not fit into memory: 16MiB", "lower maxLine"]);
    let shares = "workflows:\n  - id: w\n    source: { generate: { updates: 60%, deletes: 40%, poison: 0.1% } }\n";
    assert_problem(shares, 3, "HX1033", &["more than 100%", "lower them"]);
}

/// Goal: what the model finds wrong with a delivery block is told at its place. Method: two such blocks.
#[test]
fn a_senseless_delivery_block_is_told_at_its_place() {
    let unique = "workflows:\n  - id: w\n    delivery:\n      deduplication:\n        unique: true\n";
    assert_problem(unique, 5, "HX1151", &["delivery.deduplication.unique", "keyFields"]);
    let twice = "workflows:\n  - id: w\n    delivery:\n      deduplication: { keyFields: [a, .a] }\n";
    assert_problem(twice, 4, "HX1151", &["names .a twice", "name each field once"]);
}

/// Goal: what has no effect is accepted with a word of warning. Method: both such fields.
#[test]
fn fields_without_effect_are_warned_of() {
    let text = "delivery:\n  autoFenceOnStartup: false\nworkflows:\n  - id: a\n  - id: b\n    sink:\n      \
                sqlite: { path: a, table: b, progressInterval: 5s }\n";
    let loaded = loaded(text);
    let told: Vec<_> = loaded.warnings.iter().map(|it| (it.place.line, it.code, it.cure.as_str())).collect();
    assert_eq!(told, [(2, "HX1050", "remove it"), (7, "HX1050", "remove it")]);
}
