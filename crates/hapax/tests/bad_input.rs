//! Bad lines: each becomes a dead letter with code, cause and bytes; the lines around it are delivered.

use crate::world::{KEYED, World, order};

/// Delivers a good line, `bad`, and another good line; `bad` must be the only letter, and say all `words`.
fn only_the_bad_line_dies(world: &World, bad: &[u8], words: &[&str]) {
    world.write("orders.jsonl", [order(1, 10).as_bytes(), bad, b"\n", order(3, 30).as_bytes()].concat());
    world.hapax(&["run", "--once"]).exits(0).says(&["1 dead"]);
    assert_eq!(world.amounts(), "1:10 3:30", "the rest of the stream goes on");
    let letters = world.letters();
    assert_eq!(letters.lines().count(), 1, "{letters}");
    words.iter().for_each(|word| assert!(letters.contains(word), "it does not say {word:?}: {letters}"));
    world.hapax(&["dlq", "list"]).exits(0).says(&words[..1]);
    let position = format!("position {}", order(1, 10).len());
    world.hapax(&["dlq", "show", "1"]).exits(0).says(&[words[0], &position]);
    let kept: Vec<u8> = world.ask("SELECT bytes FROM hapax_dead_letters");
    assert!(bad.starts_with(&kept) && !kept.is_empty(), "the letter keeps the line's bytes");
    world.accounts_for(3, 1);
}

/// Goal: a NULL key is a letter of its own, and never a shared key.
#[test]
fn an_event_with_a_null_key_dies_alone() {
    let bad = br#"{"id":null,"amount":1}"#;
    only_the_bad_line_dies(&World::shop("", KEYED), bad, &["HX2010", ".id", "fill the field"]);
}

/// Goal: an event without its key field dies alone.
#[test]
fn an_event_without_its_key_dies_alone() {
    only_the_bad_line_dies(&World::shop("", KEYED), br#"{"amount":1}"#, &["HX2010", ".id", "is missing"]);
}

/// Goal: a value that its column cannot hold names the column and the value.
#[test]
fn a_value_that_does_not_fit_names_its_column() {
    let bad = br#"{"id":2,"amount":"plenty"}"#;
    only_the_bad_line_dies(&World::shop("", KEYED), bad, &["HX2020", "\"amount\"", "INTEGER", "plenty"]);
}

/// Goal: a whole number that 64 bits cannot hold is not rounded.
#[test]
fn a_number_that_is_too_large_is_not_rounded() {
    let bad = br#"{"id":2,"amount":92233720368547758080}"#;
    only_the_bad_line_dies(&World::shop("", KEYED), bad, &["HX202", "\"amount\"", "92233720368547758080"]);
}

/// Goal: a row that the table itself refuses names the rule that refused it. Method: a CHECK, and NOT NULL.
#[test]
fn a_row_that_breaks_a_rule_of_the_table_dies_alone() {
    let world = World::shop("", KEYED);
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER CHECK (amount > 0))");
    only_the_bad_line_dies(&world, br#"{"id":2,"amount":-5}"#, &["HX2032", "amount > 0"]);
    let world = World::shop("", KEYED);
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL)");
    only_the_bad_line_dies(&world, br#"{"id":2}"#, &["HX20", "amount"]);
}

/// Goal: a line that is no JSON says what was wrong and where.
#[test]
fn a_line_that_is_no_json_dies_alone() {
    let bad = br#"{"id":2,"amount":"#;
    only_the_bad_line_dies(&World::shop("", KEYED), bad, &["HX2001", "not valid JSON", "at character"]);
}

/// Goal: JSON that is no object dies alone.
#[test]
fn a_line_that_is_no_object_dies_alone() {
    only_the_bad_line_dies(&World::shop("", KEYED), b"[1,2]", &["HX2005", "no object", "named fields"]);
}

/// Goal: bytes that are no UTF-8 die alone and are kept as they are.
#[test]
fn a_line_that_is_no_utf8_dies_alone() {
    let bad = b"{\"id\":2,\"customer\":\"\xff\xfe\"}";
    only_the_bad_line_dies(&World::shop("", KEYED), bad, &["HX2002", "not UTF-8", "byte 20"]);
}

/// Goal: a line over `maxLine` dies with its length; only its beginning is kept, and its replay says so.
#[test]
fn a_line_that_is_too_long_dies_alone() {
    let world = World::shop("", KEYED);
    let short = world.read("hapax.yaml").replace("orders.jsonl }", "orders.jsonl, maxLine: 1KiB }");
    world.write("hapax.yaml", short);
    let bad = format!("{{\"id\":2,\"customer\":\"{}\"}}", "a".repeat(5000));
    only_the_bad_line_dies(&world, bad.as_bytes(), &["HX2003", &format!("{} bytes", bad.len()), "maxLine"]);
    assert_eq!(world.ask::<i64>("SELECT length FROM hapax_dead_letters"), i64::try_from(bad.len()).expect("short"));
    assert_eq!(world.ask::<i64>("SELECT length(sha256) FROM hapax_dead_letters"), 32);
    world.hapax(&["dlq", "replay", "--dry-run"]).exits(1).says(&["impossible", "only its beginning is kept"]);
}

/// Goal: all kinds of bad lines at once lose nothing. Method: one of each between good lines; bytes come back.
#[test]
fn many_kinds_of_bad_lines_at_once_lose_nothing() {
    let world = World::shop("", &format!("{KEYED}, maxRejects: 100%"));
    let bad: [&[u8]; 6] = [b"{", b"[]", b"{\"id\":null}", b"\xff", b"{\"id\":9,\"amount\":{}}", b"null"];
    let mut lines = Vec::new();
    for (id, bad) in (1..).zip(bad) {
        lines.extend_from_slice(order(id, id).as_bytes());
        lines.extend_from_slice(bad);
        lines.push(b'\n');
    }
    world.write("orders.jsonl", lines);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 6);
    world.accounts_for(12, 6);
    world.hapax(&["dlq", "list"]).exits(0).says(&["HX2001", "HX2002", "HX2005", "HX2010", "HX202"]);
}

/// Goal: fields that no column takes are named once, and delivered without. Method: two events with the same extra field.
#[test]
fn a_field_without_a_column_is_named_once() {
    let world = World::shop("", KEYED);
    world.write(
        "orders.jsonl",
        "{\"id\":1,\"amount\":1,\"colour\":\"red\"}\n{\"id\":2,\"amount\":2,\"colour\":\"blue\"}\n",
    );
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(0).says(&["colour"]);
    assert_eq!(answer.err.matches("colour").count(), 1, "{answer}");
    assert_eq!(world.amounts(), "1:1 2:2");
}

/// Goal: `columns: strict` makes such an event a dead letter instead.
#[test]
fn strict_columns_reject_an_unknown_field() {
    let bad = br#"{"id":2,"amount":2,"colour":"red"}"#;
    only_the_bad_line_dies(&World::shop("columns: strict", KEYED), bad, &["HX2004", "colour"]);
}

/// Goal: line ends of other systems and empty lines are no events, and a byte order mark is no part of one.
#[test]
fn a_file_from_another_system_is_read() {
    let world = World::shop("", KEYED);
    let line = |id: i64| order(id, id).replace('\n', "\r\n");
    world.write("orders.jsonl", format!("\u{feff}{}\r\n\n   \n{}", line(1), line(2)));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:1 2:2");
    world.accounts_for(2, 0);
}

/// Goal: values are converted only where nothing is lost. Method: one event per kind of value.
#[test]
fn values_are_converted_only_where_nothing_is_lost() {
    let world = World::shop("", &format!("{KEYED}, maxRejects: 100%"));
    let amounts = ["5", "5.0", "1e3", "true", "null", "5.5", "\"7\"", "{}", "1e300"];
    let lines = (1..).zip(amounts).map(|(id, amount)| format!("{{\"id\":{id},\"amount\":{amount}}}\n"));
    world.write("orders.jsonl", lines.collect::<String>());
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:5 2:5 3:1000 4:1 5:- 7:7");
    world.accounts_for(9, 3);
}
