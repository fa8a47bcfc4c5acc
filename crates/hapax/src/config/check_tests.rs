use crate::config::tests::{World, assert_problem, loaded, problems_of};

/// Puts `field: value` into a sink that is otherwise right; the field stands on line 7.
fn in_sink(field: &str) -> String {
    format!("workflows:\n  - id: w\n    sink:\n      sqlite:\n        path: a.db\n        table: t\n        {field}\n")
}

/// Puts `field: value` into a delivery block; the field stands on line 4.
fn in_delivery(field: &str) -> String {
    format!("workflows:\n  - id: w\n    delivery:\n      {field}\n")
}

/// Goal: an unknown field is offered the name that was meant. Method: slips at every level, and strangers.
#[test]
fn an_unknown_field_is_offered_the_nearest_name() {
    let cases: [(&str, usize, &[&str]); 8] = [
        ("workflow:\n  - id: w\n", 1, &["\"workflow\" is no field of the file", "did you mean workflows?"]),
        (&in_sink("on_conflict: update"), 7, &["no field of \"workflows.sink.sqlite\"", "did you mean onConflict?"]),
        (&in_delivery("guarentee: exactly-once"), 4, &["\"guarentee\"", "did you mean guarantee?"]),
        (&in_delivery("deduplication: { keyfields: [id] }"), 4, &["did you mean keyFields?"]),
        (&in_delivery("maxAttempts: 7"), 4, &["it belongs under retries"]),
        ("sink: { sqlite: { path: a, table: b } }\n", 1, &["it belongs under workflows"]),
        (&in_sink("colour: red"), 7, &["there are path, table, onConflict"]),
        ("workflows:\n  - id: w\n    sink: { sqlit: { path: a, table: b } }\n", 3, &["did you mean sqlite?"]),
    ];
    for (text, line, parts) in cases {
        assert_problem(text, line, "HX1010", parts);
    }
}

/// Goal: a wrong type is told with what is expected, by example. Method: each kind with a value of another.
#[test]
fn a_wrong_type_is_told_what_is_expected() {
    let cases: [(&str, &str); 14] = [
        (&in_sink("keyColumn: 7"), "put it in quotes: \"7\""),
        (&in_sink("keyColumn: true"), "put it in quotes: \"true\""),
        (&in_sink("keyColumn: [a]"), "write the name of a column, such as hapax_key"),
        (&in_sink("busyTimeout: 5"), "a duration with its unit"),
        (&in_sink("columns: 7"), "such as { name: .order.id }, or the word strict"),
        (&in_sink("columns: [a]"), "or the word strict"),
        (&in_sink("columns: loose"), "or the word strict"),
        (&in_delivery("clientGuidance: yes"), "write true or false"),
        (&in_delivery("epoch: fast"), "a block of fields (interval, maxEvents"),
        (&in_delivery("epoch: [1]"), "a block of fields"),
        (&in_delivery("epoch: { maxEvents: many }"), "a whole number, such as 1"),
        (&in_delivery("epoch: { maxEvents: 1.5 }"), "a whole number"),
        (&in_delivery("deduplication: { keyFields: id }"), "a list, such as [.order.id]"),
        (&in_delivery("maxRejects: 10"), "a share, such as 10%"),
    ];
    for (text, cure) in cases {
        let line = text.lines().count();
        assert_problem(text, line, "HX1011", &[cure]);
    }
    assert_problem("workflows: { id: w }\n", 1, "HX1011", &["\"workflows\" is a block of fields", "write a list"]);
}

/// Goal: bounds are named. Method: below and above, for each kind that has them.
#[test]
fn a_value_out_of_bounds_is_told_the_bounds() {
    let cases: [(&str, &str); 13] = [
        ("workflows:\n  - id: w\n    source: { generate: { rate: 30/m } }\n", "from 1/s"),
        ("workflows:\n  - id: w\n    source: { generate: { rate: 100000001 } }\n", "to 100000000/s"),
        (&in_delivery("epoch: { interval: 0ms }"), "from 1ms to 1h"),
        (&in_delivery("epoch: { interval: 2h }"), "from 1ms to 1h"),
        (&in_delivery("epoch: { maxEvents: 0 }"), "from 1 to 10000000"),
        (&in_delivery("epoch: { maxEvents: -1 }"), "from 1 to 10000000"),
        (&in_delivery("epoch: { maxEvents: 99999999999999999999999 }"), "from 1 to 10000000"),
        (&in_delivery("epoch: { maxBytes: 2GiB }"), "from 1KiB to 1GiB"),
        (&in_delivery("retries: { maxAttempts: 0 }"), "from 1 to 1000"),
        (&in_delivery("retries: { backoffMs: [] }"), "from 1 to 100 items"),
        (&in_delivery("retries: { backoffMs: [1, 86400001] }"), "from 0 to 86400000"),
        (&in_delivery("lease: 1ms"), "from 100ms to 1h"),
        ("workflows:\n  - id: w\n    source: { generate: { keys: 0 } }\n", "from 1 to 1000000000"),
    ];
    for (text, cure) in cases {
        assert_problem(text, text.lines().count(), "HX1012", &["out of bounds", cure]);
    }
}

/// Goal: a malformed value says what is wrong and what is right. Method: each form of text and quantity.
#[test]
fn a_malformed_value_is_told_the_right_form() {
    let cases: [(&str, &[&str]); 12] = [
        (&in_sink("busyTimeout: 5 weeks"), &["\"5 weeks\"", "the unit \"weeks\" is unknown", "200ms"]),
        (&in_sink("deleteWhen: .op = \"d\""), &["there is no ==", "'.op == \"d\"'"]),
        (&in_sink("columns: { id: a..b }"), &["\"workflows.sink.sqlite.columns.id\"", "a name is empty", ".order.id"]),
        (&in_sink("keyColumn: \"\""), &["it is empty", "hapax_key"]),
        (&in_delivery("maxRejects: 110%"), &["more than the whole", "10%"]),
        (&in_delivery("epoch: { maxBytes: 64 mib }"), &["the unit \"mib\" is unknown", "64MiB"]),
        (&in_delivery("deduplication: { strategy: offset }"), &["there is no such strategy", "source-offset"]),
        (&in_delivery("idempotencyKey: { format: id }"), &["names in braces"]),
        ("workflows:\n  - id: \"a/b\"\n", &["it holds '/'", "orders-to-erp"]),
        ("workflows:\n  - id: \"\"\n", &["it is empty"]),
        ("state: redis://x\n", &["\"redis\" is no state store", "sqlite://"]),
        ("workflows:\n  - id: w\n    source: { generate: { rate: 5/week } }\n", &["500/s"]),
    ];
    for (text, parts) in cases {
        assert_problem(text, text.lines().count(), "HX1016", parts);
    }
    let long = "x".repeat(101);
    assert_problem(&format!("workflows:\n  - id: {long}\n"), 2, "HX1016", &["it has 101 characters"]);
}

/// Goal: an unknown name is refused with its name and the list. Method: guarantees and other choices.
#[test]
fn an_unknown_guarantee_is_refused_by_its_name() {
    let all = "at-most-once, at-least-once, idempotent-keys, exactly-once";
    assert_problem(&in_delivery("guarantee: twice"), 4, "HX1013", &["\"twice\" is no guarantee", "write one of", all]);
    assert_problem(
        &in_delivery("guarantee: ExactlyOnce"),
        4,
        "HX1013",
        &["\"ExactlyOnce\" is no guarantee", "did you mean exactly-once?", all],
    );
    assert_problem(&in_delivery("mechanism: xa"), 4, "HX1013", &["\"xa\" is no mechanism", "transactional-outbox"]);
    assert_problem(&in_sink("onConflict: updat"), 7, "HX1013", &["did you mean update?"]);
    assert_problem(&in_delivery("conditions: [oneworker]"), 4, "HX1013", &["did you mean one-worker?"]);
}

/// Goal: what is missing, empty or doubled is told. Method: required fields, null, none and two kinds.
#[test]
fn missing_and_doubled_fields_are_told() {
    assert_problem(
        "workflows:\n  - source: { generate: {} }\n",
        2,
        "HX1014",
        &["\"id\" is missing", "add id: orders-to-erp"],
    );
    assert_problem(
        "workflows:\n  - id: w\n    sink: { sqlite: { path: a } }\n",
        3,
        "HX1014",
        &["\"table\" is missing", "add table:"],
    );
    assert_problem(
        "workflows:\n  - id: w\n    source:\n",
        3,
        "HX1015",
        &["\"workflows.source\" has no value", "remove the line"],
    );
    assert_problem("workflows:\n", 1, "HX1015", &["\"workflows\" has no value"]);
    assert_problem("workflows:\n  - id: w\n    sink: {}\n", 3, "HX1017", &["add one of sqlite"]);
    let two = "workflows:\n  - id: w\n    source: { generate: {}, file: { path: a } }\n";
    assert_problem(two, 3, "HX1017", &["both generate and file", "keep one"]);
}

/// Goal: what is planned is refused, never ignored. Method: every planned name, alone.
#[test]
fn what_is_planned_is_refused_honestly() {
    for name in ["kafka", "outbox", "postgres", "mysql"] {
        let text = format!("workflows:\n  - id: w\n    source:\n      {name}: {{ x: 1 }}\n");
        assert_problem(&text, 4, "HX1040", &["not in this version"]);
    }
    for name in ["kafka", "http", "outbox"] {
        let text = format!("workflows:\n  - id: w\n    sink:\n      {name}: {{ url: \"x\" }}\n");
        assert_problem(&text, 4, "HX1040", &[&format!("\"workflows.sink.{name}\" is planned")]);
    }
}

/// Goal: numbers and booleans may come from variables, and no message shows what a variable held.
/// Method: right and wrong values from variables.
#[test]
fn a_variable_gives_any_scalar_and_is_never_quoted() {
    let text =
        in_delivery("{ clientGuidance: \"${FLAG}\", epoch: { maxEvents: \"${COUNT}\", maxBytes: \"${SIZE}\" } }")
            .replace("delivery:\n      ", "delivery: ");
    let world = World::of(&text).variable("FLAG", "true").variable("COUNT", "7").variable("SIZE", "1MiB");
    let loaded = world.load("etc/hapax.yaml").expect("right values");
    let delivery = &loaded.config.workflows[0].delivery;
    assert!(delivery.client_guidance);
    assert_eq!((delivery.epoch.max_events, delivery.epoch.max_bytes.0), (7, 1 << 20));
    for secret in ["hunter2", "-99", "99999999999"] {
        let world = World::of(&text).variable("FLAG", secret).variable("COUNT", secret).variable("SIZE", secret);
        let problems = world.load("etc/hapax.yaml").expect_err("wrong values");
        assert!(problems.iter().count() >= 2, "{problems}");
        assert!(!problems.to_string().contains(secret), "{problems}");
    }
}

/// Goal: a password in a URL stays out of messages. Method: a URL that is wrong for its field.
#[test]
fn the_password_of_a_url_stays_out_of_messages() {
    let problems = problems_of("state: redis://me:hunter2@host\n");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].2.contains("redis://***@host") && !problems[0].2.contains("hunter2"), "{}", problems[0].2);
}

/// Goal: a bare number is a rate per second and a size in bytes. Method: load both.
#[test]
fn bare_numbers_are_per_second_and_bytes() {
    let loaded = loaded("memory: 16777216\nworkflows:\n  - id: w\n    source: { generate: { rate: 5 } }\n");
    assert_eq!(loaded.config.memory.0, 16 << 20);
    assert!(loaded.to_yaml().contains("rate: 5/s"), "{}", loaded.to_yaml());
}
