//! `hapax trace`: the story of an input, told with no worker alive.

use serde_json::Value;

use crate::world::{KEYED, World, order, orders};

/// Lines 1 to 3 delivered, of which the second is a dead letter; a fourth that nobody has read yet.
fn delivered() -> World {
    let world = World::shop("onConflict: update", KEYED);
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER NOT NULL UNIQUE, customer TEXT, amount INTEGER CHECK (amount < 100))");
    world.write("orders.jsonl", [order(1, 10), order(2, 200), order(3, 30)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    world.append("orders.jsonl", order(4, 40));
    world
}

/// Where line `number` of the input begins.
fn line(number: usize) -> String {
    [order(1, 10), order(2, 200), order(3, 30)][..number - 1].concat().len().to_string()
}

fn traced(world: &World, arguments: &[&str]) -> Value {
    let mut all = vec!["trace", "--json"];
    all.extend(arguments);
    let answer = world.hapax(&all);
    answer.exits(0).json()["deliveries"][0].clone()
}

/// Goal: each input of the source has its story. Method: one delivered, one dead, one not read, one before the file's end.
#[test]
fn the_input_at_a_position_has_its_story() {
    let world = delivered();
    let first = world.hapax(&["trace", &line(1)]);
    first.exits(0).says(&[
        "epoch        1",
        "by generation 1 (pid ",
        "3 read, 2 delivered",
        "row          id=1",
        "verdict      delivered",
    ]);
    first.says(&["entity key   h1_", "event key    h1_", "past this input"]);
    let dead = world.hapax(&["trace", &line(2)]);
    dead.exits(0).says(&[
        "dead letter  number 1, dead: HX2032",
        "hapax dlq replay --id 1",
        "no such row",
        "verdict      dead letter",
    ]);
    let unread = world.hapax(&["trace", &line(4)]);
    unread.exits(0).says(&[
        "which has not reached this input",
        "\"amount\":40",
        "no such row",
        "verdict      not yet read",
    ]);
    let nowhere = traced(&world, &["5"]);
    assert_eq!(nowhere["verdict"], "delivered", "byte 5 is inside the first line, which was delivered: {nowhere:#}");
    assert_eq!(nowhere["notes"][0], "position 5 is inside the input that begins at 0");
    let beyond = world.hapax(&["trace", "4000"]);
    beyond.exits(0).says(&["verdict      no input begins there"]);
}

/// Goal: a thing is found by its key fields, and its events by reading the source, if asked.
#[test]
fn a_key_is_found_by_its_fields() {
    let world = delivered();
    world
        .hapax(&["trace", "id=3"])
        .exits(0)
        .says(&["row          id=3 customer=ann amount=30", "delivered: its row is there"]);
    let dead = traced(&world, &["id=2"]);
    assert_eq!((&dead["verdict"], &dead["inputs"][0]["letters"][0]["code"]), (&"deadLetter".into(), &"HX2032".into()));
    let unread = traced(&world, &["id=4"]);
    assert_eq!(unread["verdict"], "unknown", "{unread:#}");
    let searched = traced(&world, &["id=4", "--search"]);
    assert_eq!((&searched["verdict"], &searched["inputs"][0]["position"]), (&"notYetRead".into(), &line(4).into()));
    let nobody = traced(&world, &["id=77", "--search"]);
    assert_eq!((&nobody["verdict"], &nobody["inputsFound"]), (&"notFound".into(), &0.into()));
    let limited = world.hapax(&["trace", "id=4", "--search", "--limit", "2"]);
    limited.exits(0).says(&["searched 2 inputs from position 0 on", "raise --limit"]);
}

/// Goal: a key's text is found wherever it stands: in a letter, in a key column, in the source.
#[test]
fn a_key_is_found_by_its_text() {
    let world = delivered();
    let entity = traced(&world, &["id=2"])["keys"]["entity key"].as_str().expect("a key").to_owned();
    assert_eq!(traced(&world, &[&entity])["verdict"], "deadLetter");
    let event = traced(&world, &[&line(3)])["keys"]["event key"].as_str().expect("a key").to_owned();
    let found = traced(&world, &[&event, "--search"]);
    assert_eq!((&found["verdict"], &found["inputs"][0]["position"]), (&"delivered".into(), &line(3).into()));
    assert_eq!(found["row"]["columns"]["amount"], "30");

    let hashed = World::shop("onConflict: update, keyColumn: k", KEYED);
    hashed.sql("DROP TABLE orders; CREATE TABLE orders (k BLOB NOT NULL UNIQUE, id INTEGER, amount INTEGER)");
    hashed.write("orders.jsonl", orders(1..=2));
    hashed.hapax(&["run", "--once"]).exits(0);
    let key = traced(&hashed, &["id=2"])["keys"]["entity key"].as_str().expect("a key").to_owned();
    let row = traced(&hashed, &[&key]);
    assert_eq!((&row["verdict"], &row["row"]["columns"]["amount"]), (&"delivered".into(), &"20".into()));
}

/// Goal: a pruned log, a later start and a reset past inputs are not called delivered. Method: damage and move the books.
#[test]
fn what_the_log_cannot_tell_is_said() {
    let world = delivered();
    world.hapax(&["run", "--once"]).exits(0);
    world.sql("DELETE FROM hapax_epochs WHERE epoch = 1");
    assert_eq!(traced(&world, &[&line(1)])["verdict"], "pruned");

    let late = World::shop("onConflict: update", KEYED);
    late.write("orders.jsonl", orders(1..=3));
    let second = order(1, 10).len().to_string();
    late.hapax(&["reset", "orders", "--to", &second, "--accept", "--yes"]).exits(0);
    late.hapax(&["run", "--once"]).exits(0);
    let before = late.hapax(&["trace", "0"]);
    before.exits(0).says(&["none in the log", "verdict      before the start"]);
    assert_eq!(traced(&late, &[&second])["verdict"], "delivered");
}

/// Goal: nothing delivered yet, a question that cannot be understood, and a delivery that does not exist are told plainly.
#[test]
fn without_progress_or_sense_it_says_so() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=2));
    world.hapax(&["trace", "0"]).exits(0).says(&[
        "nothing was ever delivered",
        "\"id\":1",
        "verdict      not yet read",
    ]);
    world.hapax(&["trace", "order 7"]).exits(2).says(&["HX5040", "neither a position", "name=value"]);
    world.hapax(&["trace", "0", "--workflow", "order"]).exits(2).says(&["HX5001", "there are orders"]);
    world.hapax(&["trace", "0", "--lane", "x"]).exits(2).says(&["HX5040", "no delivery fits", "orders/sqlite/"]);
    world.hapax(&["trace", "--help"]).exits(0).says(&["Examples:", "hapax trace order_id=7 --search"]);
}

/// Goal: a part of a key names nothing: the missing fields are named. Method: a key of two fields; two workflows, of which one has
/// all that it needs.
#[test]
fn a_part_of_a_key_is_refused() {
    let world =
        World::shop("onConflict: update", "guarantee: exactly-once, deduplication: { keyFields: [id, customer] }");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER NOT NULL, customer TEXT NOT NULL, amount INTEGER, PRIMARY KEY (id, customer))");
    world.write("orders.jsonl", orders(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    for arguments in [&["trace", "id=2"][..], &["trace", "id=2", "--search"]] {
        world.hapax(arguments).exits(2).says(&["HX5040", "customer missing", "id, "]);
    }
    world.hapax(&["trace", "id=2,customer=ann"]).exits(0).says(&["verdict      delivered: its row is there"]);
    let whole = "  - id: byid
    source: { file: { path: orders.jsonl } }
    sink: { sqlite: { path: shop.db, table: byid, onConflict: update } }
    delivery: { guarantee: exactly-once, deduplication: { keyFields: [id] } }
";
    world.sql("CREATE TABLE byid (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)");
    world.write("hapax.yaml", world.read("hapax.yaml") + whole);
    world.hapax(&["run", "--once"]).exits(0);
    let both = world.hapax(&["trace", "id=2"]);
    both.exits(0).says(&["unknown: these fields are a part of a key only", "verdict      delivered: its row is there"]);
}

/// Goal: a position belongs to one file of a chain, and its verdict to that file. Method: a file that was read and one that was
/// not, at the same position; the other is named.
#[test]
fn a_position_of_a_chain_belongs_to_one_file() {
    let world = World::shop("onConflict: update", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    crate::world::rename(&world.path("orders.jsonl"), &world.path("orders.jsonl.1"));
    world.write("orders.jsonl", order(7, 70));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("orders.jsonl", order(8, 80));
    let second = order(7, 70).len().to_string();
    let unread = world.hapax(&["trace", &second]);
    unread.exits(0).says(&[
        "of file 2 (inode ",
        "which has not reached this input",
        "\"id\":8",
        "verdict      not yet read",
    ]);
    unread.says(&["too: 1; --file 1 asks for that one"]);
    let read = world.hapax(&["trace", &second, "--file", "1"]);
    read.exits(0).says(&["of file 1 (inode ", "past this input", "\"id\":2", "verdict      delivered"]);
    read.keeps_silent_about(&["--file"]);
    world.hapax(&["trace", "0"]).exits(0).says(&["of file 2", "\"id\":7", "verdict      delivered"]);
    world.hapax(&["trace", "0", "--file", "9"]).exits(2).says(&["HX5040", "has no file 9", "files 1 to 2"]);
}

/// Goal: of a wide CSV file the record is shown, and where the header lies nothing was delivered. Method: a header that is longer than what
/// is shown; a record, the header, a byte of it.
#[test]
fn the_record_of_a_wide_file_is_shown_and_its_header_is_none() {
    let world = World::empty();
    let names: Vec<String> = (1..=40).map(|n| format!("column_{n}")).collect();
    let texts: Vec<String> = (1..=40).map(|n| format!("value{n}")).collect();
    let header = format!("id,{}\n", names.join(","));
    world.write("in.csv", format!("{header}7,{}\n", texts.join(",")));
    world.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY NOT NULL, column_1 TEXT)");
    let text = "workflows:
  - id: orders
    source: { file: { path: in.csv } }
    sink: { sqlite: { path: shop.db, table: orders, onConflict: update } }
    delivery: { guarantee: exactly-once, deduplication: { keyFields: [id] } }
";
    world.write("hapax.yaml", text);
    for delivered in [false, true] {
        let first = header.len().to_string();
        let told = world.hapax(&["trace", &first]);
        told.exits(0).says(&["header       id,column_1", "input        7,value1,value2"]);
        for byte in ["0", "5"] {
            let told = world.hapax(&["trace", byte]);
            told.exits(0).says(&["the header of the file lies there", &format!("the first record begins at {first}")]);
            told.keeps_silent_about(&["verdict      delivered"]);
            assert_eq!(traced(&world, &[byte])["verdict"], "header", "{delivered}");
        }
        world.hapax(&["run", "--once"]).exits(0);
    }
}

/// Goal: every byte of the last input of a file leads to its story. Method: JSON lines and CSV, the file that is read and the one before
/// it; behind the end there is nothing.
#[test]
fn the_last_input_of_a_file_is_found_by_any_byte_of_it() {
    let csv = |range: std::ops::RangeInclusive<i64>| {
        range.fold("id,customer,amount\n".to_owned(), |text, id| format!("{text}{id},ann,{id}0\n"))
    };
    for (name, text) in [("orders.jsonl", orders(1..=3)), ("orders.csv", csv(1..=3))] {
        let world = World::shop("onConflict: update", KEYED);
        world.write("hapax.yaml", world.read("hapax.yaml").replace("orders.jsonl", name));
        world.write(name, &text);
        world.hapax(&["run", "--once"]).exits(0);
        let last = text.trim_end().rfind('\n').expect("it has lines") + 1;
        let inside = (last + 3).to_string();
        let note = format!("position {inside} is inside the input that begins at {last}");
        let live = world.hapax(&["trace", &inside]);
        live.exits(0).says(&[&note, "row          id=3", "entity key", "verdict      delivered"]);
        let next = if name.ends_with("csv") { csv(4..=9) } else { orders(4..=9) };
        crate::world::rename(&world.path(name), &world.path(&format!("{name}.1")));
        world.write(name, &next);
        world.hapax(&["run", "--once"]).exits(0);
        let read = world.hapax(&["trace", &inside, "--file", "1"]);
        read.exits(0).says(&[&note, "row          id=3", "verdict      delivered"]);
        let behind = world.hapax(&["trace", &(text.len() + 1).to_string(), "--file", "1"]);
        behind.exits(0).keeps_silent_about(&["is inside the input"]);
    }
}
