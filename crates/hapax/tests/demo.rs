//! `hapax demo`: the contrast, in plain columns and for programs.

use crate::world::{World, until};

/// Goal: the guarded worker loses and doubles nothing; the files it leaves are real. Method: a short demo with three
/// kills, without a terminal; then the written configuration is used as anybody would.
#[test]
fn the_guarded_worker_loses_nothing_and_doubles_nothing() {
    let world = World::empty();
    let answer = world.hapax(&["demo", "--orders", "3000", "--kills", "3"]);
    answer.exits(0).says(&["killed both (1 of 3)", "killed both (3 of 3)", "first row after"]);
    let row = |name: &str| -> Vec<String> {
        let line = answer.out.lines().rev().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("no row {name}: {answer}")).split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("guarded"), ["guarded", "3000", "3000", "0", "0", "0.00"], "{answer}");
    assert_eq!(row("naive")[..2], ["naive", "3000"], "{answer}");
    let header = answer.out.lines().find(|line| line.contains("doubled")).expect("a header");
    assert_eq!(header.split_whitespace().collect::<Vec<_>>().join(" "), "name sent rows lost doubled balance off by");
    assert!(!answer.out.contains(['│', '|', '\u{1b}']), "plain columns: {answer}");

    let config = ["--config", "hapax-demo/hapax.yaml"];
    world.hapax(&[&["check"], &config[..]].concat()).exits(0).says(&["guarded → sqlite: exactly-once holds"]);
    world.hapax(&[&["run", "--once"], &config[..]].concat()).exits(0);
    assert_eq!(world.ask_of::<i64>("hapax-demo/guarded.db", "SELECT count(*) FROM orders"), 3000);
    world.hapax(&[&["status"], &config[..]].concat()).exits(0).says(&["guarded/sqlite/", "finished"]);
}

/// Goal: programs get JSON and nothing else; a folder that is not the demo's is left alone.
#[test]
fn the_demo_answers_programs_in_json() {
    let world = World::empty();
    let answer = world.hapax(&["demo", "--orders", "500", "--kills", "0", "--folder", "show", "--json"]);
    let json = answer.exits(0).json();
    assert_eq!((&json["sent"], json["workers"][0]["name"].as_str()), (&500.into(), Some("guarded")), "{answer}");
    assert_eq!((&json["workers"][0]["lost"], &json["workers"][0]["doubled"]), (&0.into(), &0.into()), "{answer}");
    world.write("precious.txt", "mine");
    let refused = world.hapax(&["demo", "--folder", "."]);
    refused.exits(2).says(&["HX5006", "not from a demo", "--folder"]);
    assert_eq!(world.read("precious.txt"), "mine");
    world.hapax(&["demo", "--orders", "0"]).exits(2).says(&["HX5001", "--orders"]);
}

/// Goal: a worker of the demo that stops is told with the place of its log. Method: its table is dropped under it.
#[test]
fn a_worker_of_the_demo_that_stops_is_told() {
    let world = World::empty();
    let demo = world.start("demo.log", &["demo", "--orders", "20000", "--kills", "0"]);
    let rows = "SELECT count(*) FROM orders";
    let count = |database: &rusqlite::Connection| database.query_row(rows, [], |row| row.get::<_, i64>(0)).unwrap_or(0);
    until("its last worker delivers", || {
        world.path("hapax-demo/guarded.db").exists() && count(&world.database("hapax-demo/guarded.db")) > 100
    });
    world.database("hapax-demo/guarded.db").execute_batch("DROP TABLE orders").expect("it can be dropped");
    demo.ends().exits(1).says(&["HX5005", "the guarded worker ended with", "its log is guarded.log"]);
}
