//! Messages about lanes of several files: which file is meant, and what is said where it is gone.

use std::fs;

use crate::chains::{APPEND, ids, lines, rotate, shop};
use crate::world::{World, rename};

fn with(world: &World, old: &str, new: &str) {
    let text = world.read("hapax.yaml");
    assert!(text.contains(old), "{text}");
    world.write("hapax.yaml", text.replace(old, new));
}

/// A rotated file with a line that is no event, before a live one that has another.
fn two_letters() -> World {
    let world = shop("in/app.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("in/app.log", "not an event\n");
    rotate(&world);
    world.write("in/app.log", format!("{}nor this\n", lines(3..=3)));
    world
}

/// Goal: a position is a byte of one file of a chain, and is told with the name that this has now; where it is gone that is said. Method:
/// letters of a rotated file and of the live one; then the first is compressed, and removed.
#[test]
fn a_letter_names_the_file_that_its_position_lies_in() {
    let world = two_letters();
    world.hapax(&["run", "--once"]).exits(0);
    let show = |letter: &str| world.hapax(&["dlq", "show", letter]);
    let list = || world.hapax(&["dlq", "list"]);
    let first = "byte 40 of ";
    list().exits(0).says(&[first, "/in/app.log.1"]);
    show("1").exits(0).says(&[first, "/in/app.log.1\n"]);
    show("2").exits(0).says(&["byte 20 of ", "/in/app.log\n"]).keeps_silent_about(&["app.log.1"]);
    let json = world.hapax(&["dlq", "list", "--json"]).exits(0).out.clone();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let file = json["causes"][0]["file"].as_str().unwrap_or_default();
    assert!(file.ends_with("/in/app.log.1") && json["causes"][0]["position"] == "40", "{json}");
    let packed = std::process::Command::new("gzip").arg(world.path("in/app.log.1")).status();
    assert!(packed.is_ok_and(|status| status.success()));
    show("1").exits(0).says(&[first, "/in/app.log.1.gz\n"]);
    fs::remove_file(world.path("in/app.log.1.gz")).expect("removed");
    show("1").exits(0).says(&["byte 40 of a file that is gone"]);
    list().exits(0).says(&["byte 40 of a file that is gone"]);
}

/// Goal: a stop for a rejected input names the file of the chain that holds it. Method: the line is in the rotated one.
#[test]
fn a_stop_for_rejects_names_the_file() {
    let world = two_letters();
    with(&world, "exactly-once,", "exactly-once, onReject: stop,");
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(1).says(&["HX4010", "position 40", "The position is one of ", "/in/app.log.1"]);
    world.hapax(&["status"]).says(&["/in/app.log.1"]);
}

/// Goal: a header that cannot serve is told with the file that has it, and not with the pattern. Method: the older of two files.
#[test]
fn a_header_that_cannot_serve_is_told_with_its_file() {
    let world = shop("in/batch-*.csv", APPEND.0, APPEND.1);
    with(&world, "path: 'in/batch-*.csv'", "path: 'in/batch-*.csv', order: name");
    world.write("in/batch-1.csv", "nr,amount\n1,1\n");
    world.write("in/batch-2.csv", "id,amount\n2,2\n");
    for command in [&["run", "--once"][..], &["check", "--live"]] {
        world.hapax(command).exits(5).says(&["HX3012", "/in/batch-1.csv: the header \"nr,amount\" cannot serve"]);
    }
}

/// Goal: the cure of a misspelt name is to spell it right, where it is written. Method: a key field and a mapped column, each with a
/// slip; another delimiter.
#[test]
fn a_misspelt_name_is_cured_where_it_is_written() {
    let world = shop("in/orders.csv", "onConflict: append, columns: { id: .idd, amount: .amount }", APPEND.1);
    with(&world, "keyFields: [id]", "keyFields: [idd]");
    world.write("in/orders.csv", "idx,amount\n1,1\n");
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(5).says(&["HX3012", "no column for .idd (did you mean .idx?), which keyFields and columns (id) need"]);
    answer.says(&["Probably the configuration misspells a name: write .idx for .idd in keyFields and columns (id)"]);
    answer.keeps_silent_about(&["mend the header", "header: [id"]);
    world.write("in/orders.csv", "idd;amount\n1;1\n");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3012", "csv: { delimiter: \";\" }"]);
}

/// Goal: who wants only what comes from now on gets that, though the file of the lane is gone. Method: a file of a pattern and a
/// single path, each removed after more was written to it; then a new file comes.
#[test]
fn a_lane_whose_file_is_gone_goes_on_with_what_comes() {
    for path in ["in/*.log", "in/app.log"] {
        let world = shop(path, APPEND.0, APPEND.1);
        world.write("in/app.log", lines(1..=2));
        world.hapax(&["run", "--once"]).exits(0);
        world.append("in/app.log", lines(3..=3));
        fs::remove_file(world.path("in/app.log")).expect("removed");
        let answer = world.hapax(&["reset", "orders", "--to", "latest", "--yes"]);
        answer.exits(0).says(&["rests behind app.log", "goes on with the next file that comes"]);
        world.write("in/app.log", lines(7..=8));
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 7 8", "{path}");
    }
}

/// Goal: the same where no file has the lane's own name: what comes to the youngest file is read, and what lies there is given up.
/// Method: files in the order of their names; then a rotated file without a live one.
#[test]
fn the_latest_of_a_chain_without_a_live_file_is_behind_its_youngest() {
    let world = shop("in/batch-*.jsonl", APPEND.0, APPEND.1);
    with(&world, "path: 'in/batch-*.jsonl'", "path: 'in/batch-*.jsonl', order: name");
    world.write("in/batch-1.jsonl", lines(1..=1));
    world.hapax(&["run", "--once"]).exits(0);
    world.write("in/batch-2.jsonl", lines(2..=2));
    world.write("in/batch-3.jsonl", lines(3..=3));
    let answer = world.hapax(&["reset", "orders", "--to", "latest", "--yes"]);
    answer.exits(0).says(&["goes on behind batch-3.jsonl", "given up unread: batch-2.jsonl"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1");
    world.append("in/batch-3.jsonl", lines(4..=4));
    world.write("in/batch-4.jsonl", lines(5..=5));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 4 5");

    let world = shop("in/app.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=1));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("in/app.log", lines(2..=2));
    rename(&world.path("in/app.log"), &world.path("in/app.log.1"));
    world.hapax(&["reset", "orders", "--to", "latest", "--yes"]).exits(0).says(&["goes on behind app.log.1"]);
    world.append("in/app.log.1", lines(3..=3));
    world.write("in/app.log", lines(4..=4));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 3 4");
}

/// Goal: a chain of many files is folded in `check`, and told whole, a file a line, to who asks for more. Method: 30 files, in one chain
/// of a pattern and in one of a single path.
#[test]
fn a_long_chain_is_folded() {
    let world = shop("in/batch-*.jsonl", APPEND.0, APPEND.1);
    with(&world, "path: 'in/batch-*.jsonl'", "path: 'in/batch-*.jsonl', order: name");
    (1..=30).for_each(|n| world.write(&format!("in/batch-{n:02}.jsonl"), lines(n..=n)));
    let answer = world.hapax(&["check"]);
    answer.exits(0).says(&["batch-01.jsonl → … 28 more … → batch-30.jsonl"]).keeps_silent_about(&["batch-17"]);
    world
        .hapax(&["check", "--explain"])
        .exits(0)
        .says(&["oldest first:\n    batch-01.jsonl\n", "\n    batch-17.jsonl\n"]);
    let json = world.hapax(&["check", "--json"]).exits(0).out.clone();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["checked"][0]["chains"][0]["files"].as_array().map(Vec::len), Some(30), "{json}");

    let world = shop("in/app.log", APPEND.0, APPEND.1);
    (1..=30).for_each(|n| world.write(&format!("in/app.log.{n}"), lines(n..=n)));
    world.write("in/app.log", lines(31..=31));
    let answer = world.hapax(&["check"]);
    answer.exits(0).says(&["app.log.30 → … 29 more … → app.log"]).keeps_silent_about(&["app.log.17"]);
}
