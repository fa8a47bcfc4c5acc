//! `hapax check`: verdicts, reasons, cures, exit codes.

use crate::world::World;

/// Goal: what holds is said to hold, with the why on request, and nothing is written. Method: all forms of the command.
#[test]
fn a_guarantee_that_holds_is_explained() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("orders.jsonl", crate::world::orders(1..=2));
    world.hapax(&["check"]).exits(0).says(&["orders → sqlite: exactly-once holds"]);
    let explained = world.hapax(&["check", "--explain"]);
    explained.exits(0).says(&["transaction (derived)", "a thing is named by .id", "assumed", "first run", "clients"]);
    let live = world.hapax(&["check", "--live"]);
    live.exits(0).says(&["update: because the key fields .id are given", "writes id, customer, amount"]);
    let json = world.hapax(&["check", "--live", "--json"]).exits(0).json();
    assert_eq!(json["checked"][0]["audit"]["verdict"], "holds");
    assert_eq!(json["checked"][0]["table"]["mode"], "update");
    assert_eq!(world.ask::<i64>("SELECT count(*) FROM sqlite_master WHERE name LIKE 'hapax%'"), 0);
    assert!(!world.path("hapax-data").exists(), "nothing is written");
}

/// Goal: with `clientGuidance` the text for clients is printed unasked, else only by `--explain`. Method: the same
/// workflow without the word and with it.
#[test]
fn client_guidance_prints_the_text_for_clients_unasked() {
    let delivery = "guarantee: exactly-once, deduplication: { keyFields: [id] }";
    let told = "Your workflow delivers exactly once";
    let world = World::shop("", delivery);
    world.hapax(&["check"]).exits(0).keeps_silent_about(&[told]);
    world.hapax(&["check", "--explain"]).exits(0).says(&[told]);
    world.configure("orders", "", &format!("{delivery}, clientGuidance: true"));
    world.hapax(&["check"]).exits(0).says(&[told]);
    let explained = world.hapax(&["check", "--explain"]);
    assert_eq!(explained.exits(0).out.matches(told).count(), 1, "once: {explained}");
}

/// Goal: what cannot hold is refused with code 3, reason, cure and the strongest that does; `run` says the same.
#[test]
fn a_guarantee_that_cannot_hold_is_refused_with_code_3() {
    let world = World::shop("onConflict: append, progress: state", "guarantee: exactly-once");
    let words = ["HX1121", "exactly-once cannot hold", "two commits", "use progress: sink", "at-least-once"];
    world.hapax(&["check"]).exits(3).says(&words);
    world.write("orders.jsonl", "");
    let run = world.hapax(&["run", "--once"]);
    run.exits(3).says(&words).says(&["repeats rows; use progress: sink"]);
    let json = world.hapax(&["check", "--json"]).exits(3).json();
    assert_eq!(json["checked"][0]["refused"]["code"], "HX1121");
}

/// Goal: a condition that nobody states is refused with what to write; written, it starts.
#[test]
fn a_condition_must_be_stated() {
    let world = World::shop("onConflict: update, progress: state", "deduplication: { keyFields: [id] }");
    let answer = world.hapax(&["check"]);
    answer.exits(3).says(&["HX1134", "holds if", "one live worker", "`conditions: [one-worker]`"]);
    let stated = "deduplication: { keyFields: [id] }, conditions: [one-worker]";
    world.configure("orders", "onConflict: update, progress: state", stated);
    world.hapax(&["check"]).exits(0);
}

/// Goal: `check` and `run` agree where the table alone decides the mode. Method: no keyFields, a table with a primary key.
#[test]
fn the_smallest_configuration_is_judged_by_its_table() {
    let world = World::shop("", "");
    world.hapax(&["check"]).exits(0).says(&["idempotent-keys holds", "update", "primary key"]);
    world.write("orders.jsonl", crate::world::orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 3);
}

/// Goal: a workflow without a sink is incomplete and no error of syntax.
#[test]
fn an_incomplete_workflow_is_named() {
    let world = World::empty();
    world.write("hapax.yaml", "workflows:\n  - id: half\n    source: { generate: { count: 1 } }\n");
    world.hapax(&["check"]).exits(0).says(&["half: incomplete, it lacks a sink"]);
    world.hapax(&["check", "--live"]).exits(2).says(&["half: incomplete, it lacks a sink"]);
    world.hapax(&["run", "--once"]).exits(2).says(&["HX5001", "source and a sink"]);
}

/// Goal: a verdict rests on what is there: without the source, the target or the state store there is none, and the exit
/// code says so. Method: each of them missing; then all there.
#[test]
fn a_verdict_needs_what_it_rests_on() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    let answer = world.hapax(&["check", "--live"]);
    answer.exits(1).says(&["exactly-once is not judged: the source cannot be read", "HX3001", "orders.jsonl"]);
    answer.keeps_silent_about(&["exactly-once holds"]);
    let json = world.hapax(&["check", "--live", "--json"]).exits(1).json();
    assert_eq!(
        (&json["checked"][0]["judged"], &json["checked"][0]["audit"]),
        (&false.into(), &serde_json::Value::Null)
    );
    world.write("orders.jsonl", crate::world::orders(1..=2));
    world.hapax(&["check", "--live"]).exits(0).says(&["exactly-once holds"]);
    std::fs::rename(world.path("shop.db"), world.path("away.db")).expect("the target is gone");
    let answer = world.hapax(&["check", "--live"]);
    answer.exits(1).says(&["not judged: the target cannot be read", "HX4001"]).keeps_silent_about(&["once holds"]);
    std::fs::rename(world.path("away.db"), world.path("shop.db")).expect("the target is back");
    world.write("hapax.yaml", format!("state: \"sqlite://orders.jsonl\"\n{}", world.read("hapax.yaml")));
    let answer = world.hapax(&["check", "--live"]);
    answer.exits(1).says(&["state store: HX4", "exactly-once is not judged: the state store cannot be read"]);
    answer.keeps_silent_about(&["exactly-once holds"]);
    let json = world.hapax(&["check", "--live", "--json"]).exits(1).json();
    assert_eq!(json["checked"][0]["judged"], serde_json::Value::from(false));
    let pattern = world
        .read("hapax.yaml")
        .replace("orders.jsonl\"", "hapax-data/s.db\"")
        .replace("path: orders.jsonl", "path: 'in/*.jsonl'");
    world.write("hapax.yaml", pattern);
    world.hapax(&["check", "--live"]).exits(0).says(&["once holds", "no file fits the pattern yet"]);
}

/// Goal: `--live` says which columns no event of the sample fills, instead of claiming that they are written. Method: a
/// column of a nested field without its mapping, one that is always null, one that a program fills.
#[test]
fn columns_that_no_event_fills_are_named() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.sql("ALTER TABLE orders ADD COLUMN address_city TEXT; ALTER TABLE orders ADD COLUMN note TEXT");
    world.write(
        "orders.jsonl",
        "{\"id\":1,\"customer\":\"ann\",\"amount\":1,\"address\":{\"city\":\"x\"},\"note\":null}\n",
    );
    let answer = world.hapax(&["check", "--live"]);
    answer.exits(0).says(&[
        "writes id, customer, amount, note\n",
        "none of the first 1 event(s) fills address_city; map",
        "empty (NULL) in all of the first 1 event(s): note",
        "fields that no column takes: address\n",
    ]);
    let json = world.hapax(&["check", "--live", "--json"]).exits(0).json();
    let sample = serde_json::json!({
        "events": 1, "unfilled": ["address_city"], "empty": ["note"], "leftOut": ["address"], "inputs": 1, "deadLetters": 0, "causes": [],
        "ofOtherCauses": 0, "meant": [],
    });
    assert_eq!(json["checked"][0]["sample"], sample);
    world.configure("orders", "columns: { address_city: .address.city }", "deduplication: { keyFields: [id] }");
    world
        .hapax(&["check", "--live"])
        .exits(0)
        .says(&["address_city", "event(s): note"])
        .keeps_silent_about(&["no column"]);
    world.write("orders.jsonl", "");
    world.hapax(&["check", "--live"]).exits(0).says(&["the source has no event yet"]);
}

/// Goal: a column of the header that is empty is no column that lacks a field, and one that the database fills needs no advice.
/// Method: CSV with both; the delimiter is no letter.
#[test]
fn an_empty_column_is_told_from_one_without_a_field() {
    let world = World::empty();
    world.sql("CREATE TABLE t (n INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER, speed REAL, made TEXT DEFAULT 'now', gone TEXT)");
    world.write("in.csv", "id\u{1}speed\u{1}extra\n1\u{1}\u{1}x\n2\u{1}\u{1}y\n");
    let text = "workflows:
  - id: w
    source: { file: { path: in.csv, csv: { delimiter: \"\\x01\" } } }
    sink: { sqlite: { path: shop.db, table: t, onConflict: append } }
    delivery: { guarantee: exactly-once }
";
    world.write("hapax.yaml", text);
    let answer = world.hapax(&["check", "--live"]);
    answer.exits(0).says(&[
        "CSV with \"\\x01\" between",
        "writes id, speed\n",
        "empty (NULL) in all of the first 2 event(s): speed\n",
        "none of the first 2 event(s) fills gone; map",
        "fields that no column takes: extra\n",
    ]);
    answer.keeps_silent_about(&["\u{1}"]);
}

/// Goal: what no column takes inside an object is told, counted, and by `strict` refused, as at the top. Method: an object of which one
/// field is mapped, checked and run; a key inside an object.
#[test]
fn fields_inside_an_object_that_no_column_takes_are_told() {
    let world = World::empty();
    world.sql("CREATE TABLE t (id INTEGER PRIMARY KEY NOT NULL, tags_a INTEGER)");
    world.write("in.jsonl", "{\"id\":1,\"tags\":{\"a\":1}}\n{\"id\":2,\"tags\":{\"a\":2,\"b\":3},\"top\":4}\n{\"id\":3,\"tags\":{\"b\":5}}\n");
    let configure = |table: &str, key: &str| {
        let text = format!(
            "workflows:
  - id: w
    source: {{ file: {{ path: in.jsonl }} }}
    sink: {{ sqlite: {{ path: shop.db, onConflict: update, {table} }} }}
    delivery: {{ guarantee: exactly-once, deduplication: {{ keyFields: [{key}] }} }}
"
        );
        world.write("hapax.yaml", text);
    };
    configure("table: t, columns: { tags_a: .tags.a }", "id");
    world.hapax(&["check", "--live"]).exits(0).says(&["fields that no column takes: .tags.b, top\n"]);
    let json = world.hapax(&["run", "--once", "--json"]).exits(0).json();
    let unknown = serde_json::json!({".tags.b": 2, "top": 1});
    assert_eq!(json["deliveries"][0]["unknownFields"], unknown, "{json}");
    world.sql("CREATE TABLE s (id INTEGER, hapax_key BLOB NOT NULL UNIQUE)");
    configure("table: s, columns: strict, keyColumn: hapax_key", ".tags.a");
    world.write("in.jsonl", "{\"id\":1,\"tags\":{\"a\":1}}\n{\"id\":2,\"tags\":{\"a\":2,\"b\":3}}\n");
    world.hapax(&["check", "--live"]).says(&[
        "1 of the first 2 input(s) would be dead letters",
        "HX2004",
        "\".tags.b\"",
    ]);
}

/// Goal: `--live` tells before a run which of the first events the table would refuse, and fails if it is all of them;
/// inputs that are no events are not taken for none. Method: a column of another type, one event that fits, plain text.
#[test]
fn events_that_would_be_dead_letters_are_counted() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    let wrong = "{\"id\":1,\"customer\":\"ann\",\"amount\":\"a lot\"}\n";
    world.write("orders.jsonl", wrong);
    let answer = world.hapax(&["check", "--live"]);
    answer.exits(1).says(&["1 of the first 1 input(s) would be dead letters", "HX2020", "column \"amount\" (INTEGER)"]);
    let json = world.hapax(&["check", "--live", "--json"]).exits(1).json();
    assert_eq!((json["checked"][0]["sample"]["deadLetters"].as_u64(), world.rows()), (Some(1), 0));
    world.write("orders.jsonl", format!("{wrong}{}", crate::world::orders(2..=3)));
    world.hapax(&["check", "--live"]).exits(0).says(&["1 of the first 3 input(s) would be dead letters", "1: HX2020"]);
    world.write("orders.jsonl", "2025-05-20 16:27:01 startup archives unpack\n\n[{\"id\":1}]\n");
    let answer = world.hapax(&["check", "--live"]);
    answer.exits(1).says(&["2 of the first 2 input(s) would be dead letters", "HX2001", "HX2005"]);
    answer.keeps_silent_about(&["no event yet"]);
    world.write("orders.jsonl", crate::world::orders(1..=2));
    world.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["dead letters"]);
}

/// Goal: the sample of a pattern reaches over its files, CSV with headers of their own too. Method: a first file of 300 sound events, a
/// later one that fits no column.
#[test]
fn the_sample_reaches_over_the_files_of_a_pattern() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    std::fs::create_dir(world.path("in")).expect("a folder");
    let yaml = world.read("hapax.yaml");
    world.write("hapax.yaml", yaml.replace("path: orders.jsonl", "path: 'in/*.jsonl'"));
    world.write("in/a.jsonl", crate::world::orders(1..=300));
    world.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["dead letters"]);
    world.write("in/b.jsonl", "{\"id\":\"x\"}\nnonsense\n");
    let answer = world.hapax(&["check", "--live"]);
    answer.exits(0).says(&["2 of the first 200 input(s) would be dead letters", "1: HX2020", "1: HX2001"]);
    world.write("hapax.yaml", yaml.replace("path: orders.jsonl", "path: 'in/*.csv'"));
    world.write("in/a.csv", "id,customer,amount\n1,ann,1\n");
    world.write("in/b.csv", "amount,customer,id\nmuch,bob,2\n3,cid,3\n");
    world.hapax(&["check", "--live"]).exits(0).says(&["1 of the first 3 input(s) would be dead letters", "much"]);
}

/// Goal: a wide table is told shortly, and in full to whoever asks. Method: 60 columns; with `--explain` and as JSON too.
#[test]
fn the_columns_of_a_wide_table_are_told_shortly() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    let columns: String = (0..60).map(|n| format!(", c{n} INTEGER")).collect();
    world.sql(&format!("DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY{columns})"));
    let fields: String = (0..60).map(|n| format!(",\"c{n}\":{n}")).collect();
    world.write("orders.jsonl", format!("{{\"id\":1{fields}}}\n"));
    let short = world.hapax(&["check", "--live"]);
    short
        .exits(0)
        .says(&["writes id, c0, c1,", "c18 and 41 more columns (--explain names them)"])
        .keeps_silent_about(&["c59"]);
    world.hapax(&["check", "--live", "--explain"]).exits(0).says(&["c58, c59\n"]);
    world.hapax(&["check", "--live", "--json"]).exits(0).says(&["c58, c59"]);
}

/// Goal: a file whose own name looks like a pattern is not waited for without a word. Method: `init` and `check --live`
/// with the name, and with what they say to write.
#[test]
fn a_file_with_brackets_in_its_name_is_hinted_at() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("all [new] orders.jsonl", crate::world::orders(1..=2));
    let yaml = world.read("hapax.yaml");
    let with = |path: &str| world.write("hapax.yaml", yaml.replace("path: orders.jsonl", &format!("path: '{path}'")));
    with("all [new] orders.jsonl");
    let literal = "all [[]new[]] orders.jsonl";
    world.hapax(&["check", "--live"]).exits(0).says(&["no file fits the pattern yet", literal]);
    let init = ["init", "--to", "sqlite:shop.db", "--output", "other.yaml", "--from"];
    world.hapax(&[&init[..], &["all [new] orders.jsonl"]].concat()).exits(2).says(&["HX5092", literal]);
    world.hapax(&[&init[..], &[literal]].concat()).exits(0);
    assert!(!world.read("other.yaml").contains("start: latest"), "a pattern cannot begin at its end");
    with(literal);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 2);
}

/// Goal: `ignore` over the key's own fields drops later events of a thing, so somebody must say that there are none.
/// Method: without the word, and with it.
#[test]
fn ignore_over_key_fields_must_be_told_that_they_name_an_event() {
    let world = World::shop("onConflict: ignore", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("orders.jsonl", crate::world::orders(1..=2));
    world.hapax(&["check", "--live"]).exits(3).says(&["HX1137", "keyFields alone name an event", "`unique: true`"]);
    let stated = "guarantee: exactly-once, deduplication: { keyFields: [id], unique: true }";
    world.configure("orders", "onConflict: ignore", stated);
    world.hapax(&["check", "--live"]).exits(0);
}

/// Goal: what the sample would die of is counted under its own cause, however many there are. Method: seven causes, of which three
/// are shown.
#[test]
fn causes_beyond_the_first_are_counted_for_themselves() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    let bad = [
        "{\"id\":2,\"a\":\"y\"",
        "{\"a\":\"nokey\"}",
        "[1,2]",
        "{\"id\":null}",
        "{\"id\":\"abc\"}",
        "{\"id\":{}}",
        "[3]",
    ];
    world.write("orders.jsonl", crate::world::orders(1..=2) + &bad.join("\n") + "\n");
    let answer = world.hapax(&["check", "--live"]);
    answer.exits(0).says(&[
        "7 of the first 9 input(s)",
        "1: HX2001",
        "1: HX2010",
        "2: HX2005",
        "and 3 of other causes",
    ]);
    let json = world.hapax(&["check", "--live", "--json"]).exits(0).json();
    assert_eq!(json["checked"][0]["sample"]["ofOtherCauses"], 3);
    world.hapax(&["run", "--once"]).exits(0);
    let dead = |code: &str| world.ask::<i64>(&format!("SELECT count(*) FROM hapax_dead_letters WHERE code = '{code}'"));
    assert_eq!((dead("HX2001"), dead("HX2005")), (1, 2), "{}", world.letters());
}

/// Goal: a state store that cannot be made is named as one, with the whole path and a cure, by both commands. Method: a path where
/// nobody can make a file, and one relative to the configuration.
#[test]
fn a_state_store_that_cannot_be_made_is_named_with_its_cure() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.write("orders.jsonl", crate::world::orders(1..=2));
    let yaml = world.read("hapax.yaml");
    let inside = world.path("orders.jsonl").display().to_string();
    for (state, words) in [
        ("/proc/nowhere/state.db", ["/proc/nowhere/state.db", "cannot be made in /proc: "]),
        (
            "orders.jsonl/state.db",
            [&format!("{inside}/state.db"), &format!("cannot be made in {inside}: it is no folder")],
        ),
    ] {
        world.write("hapax.yaml", format!("state: \"sqlite://{state}\"\n{yaml}"));
        let cure = ["HX4001", "state store", "let this user write in", "name another place with `state:`"];
        world.hapax(&["check", "--live"]).exits(1).says(&cure).says(&words);
        world.hapax(&["run", "--once"]).exits(1).says(&cure).says(&words);
    }
}

/// Goal: a name that differs in case or by a slip is answered with the one that was meant, each once. Method: key fields, mapped
/// fields, columns and a table, against a CSV header, JSON events and the table.
#[test]
fn a_name_that_was_probably_meant_is_offered() {
    let world = World::empty();
    world.sql("CREATE TABLE cities (City TEXT NOT NULL PRIMARY KEY, State TEXT)");
    world.write("cities.csv", "City,State\nUlm,BW\n");
    let configure = |file: &str, table: &str, columns: &str, key: &str| {
        let text = format!(
            "workflows:\n  - id: cities\n    source: {{ file: {{ path: {file} }} }}\n    sink: {{ sqlite: {{ path: shop.db, \
             table: {table}, columns: {{ {columns} }} }} }}\n    delivery: {{ deduplication: {{ keyFields: [{key}] }} }}\n"
        );
        world.write("hapax.yaml", text);
        world.hapax(&["check", "--live"])
    };
    configure("cities.csv", "cities", "", "citty").exits(1).says(&[
        "HX4114",
        ".citty",
        "did you mean keyFields: [City]?",
    ]);
    let answer = configure("cities.csv", "cities", "City: .city", "city");
    answer.exits(5).says(&["HX3012", "no column for .city (did you mean .City?), which"]);
    configure("cities.csv", "cities", "Stat: .State", "City").exits(1).says(&["HX4114", "did you mean \"State\"?"]);
    configure("cities.csv", "citie", "", "City").exits(1).says(&["HX4110", "did you mean \"cities\", which is there?"]);
    configure("cities.csv", "cities", "", "City").exits(0).keeps_silent_about(&["did you mean"]);
    world.write("cities.jsonl", "{\"City\":\"Ulm\",\"state\":\"BW\"}\n");
    let answer = configure("cities.jsonl", "cities", "City: .city", "city");
    answer.exits(1).says(&[
        "HX2010",
        "none of the first 1 event(s) has .city; did you mean .City?",
        "has .State; did you mean .state?",
    ]);
    assert_eq!(answer.out.matches("did you mean .City?").count(), 1, "{answer}");
}

/// Two workflows of one file into one database: sources, tables and what stands beside the table differ by the case.
fn two_workflows(of: [(&str, &str, &str); 2], delivery: &str) -> World {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER, hapax_version BLOB); CREATE TABLE log (id INTEGER, customer TEXT, amount INTEGER); CREATE TABLE other (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)");
    for name in ["a.jsonl", "b.jsonl"] {
        world.write(name, crate::world::orders(1..=2));
    }
    let workflow = |id: &str, (source, table, more): (&str, &str, &str)| {
        format!(
            "  - id: {id}\n    source: {{ file: {{ path: {source} }} }}\n    sink: {{ sqlite: {{ path: {}, table: {table}, {more} }} }}\n    \
             delivery: {{ {delivery} }}\n",
            if id == "one" { "shop.db" } else { "./linked.db" }
        )
    };
    std::os::unix::fs::symlink("shop.db", world.path("linked.db")).expect("a link");
    world.write("hapax.yaml", format!("workflows:\n{}{}", workflow("one", of[0]), workflow("two", of[1])));
    world
}

/// Goal: two workflows of one file that write into one table are told where the order between them decides what a row holds, as
/// lanes of a pattern are; and that rows of one source in `append` arrive twice. Method: each mode, two sources and one, one table
/// and two, its database under two names, with and without `--live`; versions of the events' own need no order, and it is a note only.
#[test]
fn two_workflows_into_one_table_are_told_what_decides() {
    let key = "deduplication: { keyFields: [id] }";
    let unique = "guarantee: idempotent-keys, deduplication: { keyFields: [id], unique: true }";
    let no_order = "have no order between them";
    for (of, delivery, words) in [
        (
            [("a.jsonl", "orders", ""), ("b.jsonl", "ORDERS", "")],
            key,
            Some([no_order, "the last that is written stays"]),
        ),
        (
            [("a.jsonl", "orders", "onConflict: ignore"), ("b.jsonl", "orders", "onConflict: ignore")],
            unique,
            Some([no_order, "the first that is written stays"]),
        ),
        (
            [("a.jsonl", "orders", "onConflict: newer"), ("b.jsonl", "orders", "onConflict: newer")],
            key,
            Some([no_order, "further on in its file"]),
        ),
        (
            [
                ("a.jsonl", "orders", "onConflict: newer, versionColumn: amount"),
                ("b.jsonl", "orders", "onConflict: newer, versionColumn: amount"),
            ],
            key,
            None,
        ),
        ([("a.jsonl", "orders", ""), ("b.jsonl", "other", "")], key, None),
        (
            [("a.jsonl", "log", "onConflict: append"), ("a.jsonl", "log", "onConflict: append")],
            "guarantee: exactly-once",
            Some(["reads the same source into the same table", "each row arrives twice"]),
        ),
        (
            [("a.jsonl", "log", "onConflict: append"), ("b.jsonl", "log", "onConflict: append")],
            "guarantee: exactly-once",
            None,
        ),
    ] {
        let world = two_workflows(of, delivery);
        for command in [&["check"][..], &["check", "--live"]] {
            let answer = world.hapax(command);
            answer.exits(0);
            match words {
                Some(words) => {
                    answer.says(&words).says(&["one → sqlite", "two → sqlite"]);
                    assert_eq!(answer.out.matches(words[0]).count(), 2, "on both: {answer}");
                }
                None => _ = answer.keeps_silent_about(&[no_order, "the same source"]),
            }
            let json = world.hapax(&[command, &["--json"]].concat()).exits(0).json();
            assert_eq!(json["checked"][0]["sharedTable"].is_string(), words.is_some(), "{json:#}");
        }
    }
}
