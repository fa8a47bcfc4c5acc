//! `transform:`: filter, map, several events, letters with the program's line, replay, what `check` says, the watchdog.

use std::time::{Duration, Instant};

use crate::world::{World, number, order, until};

/// A shop whose workflow has a program, indented as it would be by hand.
fn shop(program: &str, more: &str, delivery: &str) -> World {
    let world = World::shop("", "");
    configure(&world, program, more, delivery);
    world
}

fn configure(world: &World, program: &str, more: &str, delivery: &str) {
    let program: String = program.lines().map(|line| format!("      {line}\n")).collect();
    world.write(
        "hapax.yaml",
        format!(
            "workflows:
  - id: orders
    source: {{ file: {{ path: orders.jsonl }} }}
    transform: |
{program}    sink: {{ sqlite: {{ path: shop.db, table: orders }} }}
    delivery: {{ epoch: {{ interval: 20ms }}, lease: 2s, guarantee: exactly-once, maxRejects: 100%, deduplication: {{ keyFields: [id] }}, {delivery} }}
{more}"
        ),
    );
}

/// Goal: an input is mapped, left out or dead, and the ledger says which. Method: one of each, with a fixed table.
#[test]
fn events_are_mapped_filtered_or_dead() {
    let world =
        shop("if .amount == 2 { abort }\n.amount = to_int!(.amount) * 100\n.customer = upcase!(.customer)", "", "");
    let bad = "{\"id\":3,\"customer\":\"ann\",\"amount\":\"many\"}\n";
    world.write("orders.jsonl", [order(1, 1), order(2, 2), bad.into(), order(4, 4)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:100 4:400");
    assert_eq!(world.ask::<String>("SELECT customer FROM orders WHERE id = 1"), "ANN");
    let progress = world.status()[0]["progress"].clone();
    let count = |name: &str| number(&progress[name]);
    assert_eq!((count("read"), count("delivered"), count("filtered"), count("dead")), (4, 2, 1, 1));
    let letters = world.letters();
    assert!(letters.starts_with("HX2100 the transform failed at line 2, to_int!(.amount): "), "{letters}");
    let listed = world.hapax(&["dlq", "list", "--json"]).exits(0).json();
    assert_eq!(listed["causes"][0]["cause"], "transform line 2: to_int!(.amount)", "{listed:#}");
}

/// Goal: a replay runs the program as it is now. Method: a letter, a mended program, a replay; then none is left.
#[test]
fn a_replay_runs_the_present_program() {
    let world = shop(".amount = to_int!(.amount)", "", "");
    world.write("orders.jsonl", "{\"id\":1,\"customer\":\"ann\",\"amount\":\"many\"}\n");
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["dlq", "replay", "--yes", "--overwrite"]).exits(1).says(&["HX2100", "line 1"]);
    configure(&world, ".amount = to_int(.amount) ?? 7", "", "");
    world.hapax(&["dlq", "replay", "--yes", "--overwrite"]).exits(0).says(&["1 replayed"]);
    assert_eq!(world.amounts(), "1:7");
    world.append("orders.jsonl", order(2, 20));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:7 2:20", "a changed program is no changed contract");
}

/// Goal: one input becomes several rows, in one epoch, each with a key of its own, and a second start adds
/// none. Method: an array; the number of epochs and rows; a second start.
#[test]
fn an_input_becomes_several_rows() {
    let program = ". = [\n  { \"id\": .id, \"amount\": .amount },\n  { \"id\": int!(.id) + 100, \"amount\": 0 },\n]";
    let world = shop(program, "", "onReject: deadLetter");
    world.write("orders.jsonl", [order(1, 1), order(2, 2)].concat());
    let answer = world.hapax(&["run", "--once"]);
    // The second element overwrites the key field: that input dies whole.
    answer.exits(0);
    assert_eq!((world.rows(), world.letters().matches("HX2105").count()), (0, 2));
    let keyed = ". = [{ \"id\": .id, \"amount\": 1 }, { \"id\": .id, \"amount\": 2 }]";
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER, amount INTEGER, hapax_key TEXT NOT NULL PRIMARY KEY)");
    configure(&world, keyed, "", "");
    let text =
        world.read("hapax.yaml").replace("table: orders", "table: orders, onConflict: ignore, keyColumn: hapax_key");
    world.write("hapax.yaml", text);
    world.write("orders.jsonl", [order(1, 1), order(2, 2)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    let rows: String =
        world.ask("SELECT group_concat(id || ':' || amount, ' ') FROM (SELECT * FROM orders ORDER BY id, amount)");
    assert_eq!(rows, "1:1 1:2 2:1 2:2");
    assert_eq!(number(&world.status()[0]["progress"]["rows"]), 4);
}

/// Goal: `check` and `run` refuse a program with file, line and column, its line and a cure. Method: one of each kind.
#[test]
fn a_program_is_refused_with_its_place() {
    let world = shop(".a = 1\n.b = now()\ndel(.id)\n.c = to_int(.d)", "", "");
    for command in [&["check"][..], &["run", "--once"]] {
        let answer = world.hapax(command);
        answer.exits(2).says(&[
            "hapax.yaml:6:12: HX1402 the function now reads the clock; a transform must give the same result after a crash",
            "      .b = now()\n           ^^^",
            "hapax.yaml:7:7: HX1405 the transform drops the key field .id",
            "hapax.yaml:8:12: HX1401 the transform does not compile: unhandled fallible assignment",
        ]);
    }
    assert!(!world.path("hapax-data").exists(), "nothing was made");
}

/// Goal: what people see of a workflow is what its program makes of it. Method: tap and trace over a filter and a map.
#[test]
fn looking_shows_what_the_program_makes() {
    let world = shop("if .amount == 2 { abort }\n.amount = int!(.amount) * 100", "", "");
    world.write("orders.jsonl", [order(1, 1), order(2, 2)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["tap", "orders"]).exits(0).says(&["event", "filtered"]);
    let second = order(1, 1).len().to_string();
    world.hapax(&["trace", &second]).exits(0).says(&["filtered out: the workflow's transform"]);
    world.hapax(&["reconcile"]).exits(0);
}

/// A program that works for a long time on events that say so: `slow` rounds.
const SLOW: &str = "n = 0
rounds = int(.slow) ?? 0
outer = range!(0, rounds)
for_each(outer) -> |_i, _v| {
  for_each(outer) -> |_j, _w| { n = n + 1 }
}
.amount = int!(.amount) * 2";

fn slow(id: i64, rounds: u64) -> String {
    format!("{{\"id\":{id},\"customer\":\"ann\",\"amount\":{id},\"slow\":{rounds}}}\n")
}

/// Goal: an event that takes too long is a letter, without being run again, and everything else is delivered, by this
/// workflow and by others. Method: a real process whose watchdog has a second; the state store; without one.
#[test]
fn an_event_that_takes_too_long_is_set_aside() {
    for state in ["", "state: none\n"] {
        let other = "  - id: others
    source: { file: { path: others.jsonl } }
    sink: { sqlite: { path: others.db, table: orders } }
    delivery: { epoch: { interval: 20ms }, lease: 2s }
";
        let world = shop(SLOW, other, "");
        let text = world.read("hapax.yaml").replace(
            "    sink: { sqlite: { path: shop.db",
            "    transformTimeout: 1s\n    sink: { sqlite: { path: shop.db",
        );
        world.write("hapax.yaml", format!("{state}{text}"));
        world.database("others.db").execute_batch(crate::world::ORDERS).expect("a table");
        world.write("orders.jsonl", [slow(1, 0), slow(2, 100_000), slow(3, 0)].concat());
        world.write("others.jsonl", order(1, 1));
        let worker = world.start("log", &["run"]);
        worker.until_it_says("HX5070");
        until("the rest is delivered", || world.ask::<i64>("SELECT count(*) FROM orders") == 2);
        world.append("others.jsonl", order(2, 2));
        until("the others go on", || world.ask_of::<i64>("others.db", "SELECT count(*) FROM orders") == 2);
        assert_eq!(world.amounts(), "1:2 3:6");
        let letters = world.letters();
        assert_eq!(letters, "HX2110 the transform took longer than transformTimeout allows for one input\n");
        if state.is_empty() {
            until("the note is gone", || {
                world.ask_of::<i64>("hapax-data/state.db", "SELECT count(*) FROM hapax_suspects") == 0
            });
        }
        worker.terminate();
        let said = worker.ends();
        assert_eq!(said.err.matches("HX5070").count(), 1, "{said}");
    }
}

/// Goal: a program that cannot be started again ends with words, and the event stays where it was. Method: the program's
/// file is removed while an event takes too long.
#[test]
fn a_program_that_cannot_be_started_again_says_so() {
    let world = shop(SLOW, "", "");
    let text = world.read("hapax.yaml").replace("    sink:", "    transformTimeout: 1s\n    sink:");
    world.write("hapax.yaml", text);
    world.write("orders.jsonl", [slow(1, 0), slow(2, 100_000)].concat());
    let worker = world.start_by_shell("log", "cp \"$0\" ./hapax && exec ./hapax run");
    until("the first is delivered, or read", || world.path("hapax-data/state.db").exists());
    std::fs::remove_file(world.path("hapax")).expect("it can be removed");
    worker.ends().exits(1).says(&["HX5071", "could not be started again"]);
    world.write("hapax.yaml", world.read("hapax.yaml").replace("transformTimeout: 1s", "transformTimeout: 2s"));
    let again = world.start("again", &["run"]);
    until("the event that took too long is set aside", || world.letters().contains("HX2110"));
    drop(again);
}

/// Goal: an event that is slow and gets done is delivered, also if the process was killed over it. Method: kill -9 once
/// the state store holds a suspicion; the next worker delivers it. The event is made slower until it is suspected: how
/// long its rounds take is the machine's to say.
#[test]
fn a_suspicion_left_by_a_crash_kills_no_event() {
    let suspected = [700, 1400, 2800, 5600].into_iter().any(|rounds| {
        let world = shop(SLOW, "", "");
        let text = world.read("hapax.yaml").replace("    sink:", "    transformTimeout: 10m\n    sink:");
        world.write("hapax.yaml", text);
        world.write("orders.jsonl", slow(1, rounds));
        let suspected = killed_while_suspected(&world);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.amounts(), "1:2");
        assert_eq!(world.letters(), "");
        assert_eq!(world.ask_of::<i64>("hapax-data/state.db", "SELECT count(*) FROM hapax_suspects"), 0);
        suspected
    });
    assert!(suspected, "every event was done before anybody suspected it");
}

/// Kills a worker once the state store holds a suspicion; whether it came to that before the event was done.
fn killed_while_suspected(world: &World) -> bool {
    let suspects = "SELECT count(*) FROM hapax_suspects WHERE verdict IS NULL";
    let (started, state) = (Instant::now(), world.path("hapax-data/state.db"));
    let _worker = world.start("log", &["run"]);
    while world.rows() == 0 && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
        let noted = |database: rusqlite::Connection| database.query_row(suspects, [], |row| row.get::<_, i64>(0));
        if state.exists() && noted(world.database("hapax-data/state.db")).unwrap_or(0) == 1 {
            return true;
        }
    }
    false
}

/// Goal: a verdict and the third life count although the process died before it could act; an older life does not.
/// Method: what a worker would have left in the state store, written by hand.
#[test]
fn what_earlier_lives_wrote_down_counts() {
    for (lives, verdict, letter) in [(3, "NULL", "HX2112"), (1, "'too-long'", "HX2110"), (2, "NULL", "")] {
        let world = shop(SLOW, "", "");
        world.write("orders.jsonl", slow(1, 0));
        world.hapax(&["run", "--once"]).exits(0);
        let begins = world.read("orders.jsonl").len();
        world.append("orders.jsonl", slow(2, 0));
        let incarnation: String = world.ask("SELECT incarnation FROM hapax_progress");
        let incarnation = incarnation.lines().next().expect("the incarnation comes before its facts");
        let (sink, lane): (String, String) =
            (world.ask("SELECT sink FROM hapax_progress"), world.ask("SELECT lane FROM hapax_progress"));
        let values = format!("'orders', '{sink}', '{lane}', '{begins}', '{incarnation}', {lives}, {verdict}, 0");
        world
            .database("hapax-data/state.db")
            .execute_batch(&format!("INSERT INTO hapax_suspects VALUES ({values})"))
            .expect("a row");
        world.hapax(&["run", "--once"]).exits(0);
        let letters = world.letters();
        assert!(letters.starts_with(letter) && letters.is_empty() == letter.is_empty(), "{lives} {verdict}: {letters}");
        assert_eq!(world.ask_of::<i64>("hapax-data/state.db", "SELECT count(*) FROM hapax_suspects"), 0);
    }
}

/// Goal: a record of a CSV file is an object of strings to a program. Method: fields by name, and the whole record.
#[test]
fn a_csv_record_is_an_object_of_strings() {
    for program in [".amount = to_int!(.amount) * 2", ". = merge(., { \"amount\": to_int!(.amount) * 2 })"] {
        let world = shop(program, "", "");
        let text = world.read("hapax.yaml").replace("path: orders.jsonl", "path: orders.csv, format: csv");
        world.write("hapax.yaml", text);
        world.write("orders.csv", "id,customer,amount\n1,ann,5\n2,\"bo, b\",x\n3,eve,7\n");
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.amounts(), "1:10 3:14");
        assert!(world.letters().starts_with("HX2100 "), "{}", world.letters());
    }
}

/// Goal: an event that makes the process grow beyond `memory` is a letter, and the rest is delivered. Method: a program
/// that hoards, with the least memory there may be.
#[test]
fn an_event_that_takes_too_much_memory_is_set_aside() {
    let program = "s = \"0123456789\"
for_each(range!(0, 14)) -> |_i, _v| { s = s + s }
hoard = []
for_each(range!(0, int(.slow) ?? 0)) -> |i, _v| { hoard = push(hoard, s + to_string(i)) }
.amount = int!(.amount) * 2";
    let world = shop(program, "", "");
    let text = world.read("hapax.yaml");
    world.write("hapax.yaml", format!("memory: 16MiB\n{text}"));
    world.write("orders.jsonl", [slow(1, 0), slow(2, 4_000), slow(3, 0)].concat());
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(0).says(&["HX5070"]);
    assert_eq!(world.amounts(), "1:2 3:6");
    assert!(world.letters().starts_with("HX2111 "), "{}", world.letters());
}

/// Goal: `trace` finds a thing by key fields that the program makes, and its events by reading the source. Method: a key out of an
/// object, of one event and of several, and of a CSV column, as a number and as a text.
#[test]
fn a_key_that_the_program_makes_is_traced() {
    let lines = |id: i64| format!("{{\"meta\":{{\"id\":{id}}},\"v\":{id}0}}\n");
    let split =
        "v = .v\n. = map_values([int!(.meta.id), int!(.meta.id) + 10]) -> |id| { { \"id\": id, \"amount\": v } }";
    for (program, second) in [(". = { \"id\": .meta.id, \"amount\": .v }", "2"), (split, "12")] {
        let world = shop(program, "", "");
        world.write("orders.jsonl", [lines(1), lines(2), lines(3)].concat());
        world.hapax(&["run", "--once"]).exits(0);
        let asked = format!("id={second}");
        let found = world.hapax(&["trace", &asked]);
        found.exits(0).says(&["entity key", &format!("row          id={second} "), "delivered: its row is there"]);
        let searched = world.hapax(&["trace", &asked, "--search"]);
        searched.exits(0).says(&["events       1 in", "amount=20", "verdict      delivered"]);
        let key = searched.out.split("entity key   ").nth(1).and_then(|rest| rest.lines().next()).expect("a key");
        world.hapax(&["trace", key, "--search"]).exits(0).says(&[&format!("row          id={second} ")]);
        world.hapax(&["trace", "id=77", "--search"]).exits(0).says(&["not found"]);
        world.hapax(&["trace", "customer=ann"]).exits(2).says(&["HX5040", "id missing"]);
    }
    for key in [".number", "to_int!(.number)"] {
        let world = shop(&format!(". = {{ \"id\": {key}, \"amount\": to_int!(.v) }}"), "", "");
        world.write("hapax.yaml", world.read("hapax.yaml").replace("orders.jsonl", "orders.csv"));
        world.write("orders.csv", "number,v\n1,10\n2,20\n");
        world.hapax(&["run", "--once"]).exits(0);
        world.hapax(&["trace", "id=2"]).exits(0).says(&["row          id=2 ", "delivered: its row is there"]);
        world.hapax(&["trace", "id=2", "--search"]).exits(0).says(&["events       1 in", "input        2,20"]);
    }
}

/// Goal: a field of the input that no event has is not named as one that no column takes; one that an event has is. Method: several
/// events of one input, one event, an input that is left out; `check --live` and the log.
#[test]
fn fields_that_the_program_leaves_out_are_not_named() {
    let split = "id = .id\n. = map_values(array!(.l)) -> |x| { { \"id\": id, \"more\": x } }";
    for program in [split, ". = { \"id\": .id, \"more\": 1 }", "if .id == 5 { abort }\ndel(.l)\n.more = 1"] {
        let world = shop(program, "", "");
        let left = if program.contains("abort") { 5 } else { 6 };
        world.write(
            "orders.jsonl",
            format!("{{\"id\":{left},\"l\":[7,8],\"other\":{{\"a\":1}}}}\n{{\"id\":9,\"l\":[1]}}\n"),
        );
        let checked = world.hapax(&["check", "--live"]);
        checked.exits(0).says(&["fields that no column takes: more\n"]);
        let ran = world.hapax(&["run", "--once"]);
        ran.exits(0).says(&["field=\"more\""]);
        ran.keeps_silent_about(&["field=\"other\"", "field=\"l\""]);
    }
}

/// Goal: the program may make the key of a file without one, where the configuration names its columns. Method: lines of text in one
/// column; a column that is there must not be written into.
#[test]
fn the_key_of_a_plain_text_file_is_made() {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id TEXT PRIMARY KEY NOT NULL, amount INTEGER)");
    configure(&world, "w = split!(.line, \" \")\n.id = w[1]\n.amount = to_int!(w[2])\ndel(.line)", "", "");
    let source = "path: orders.log, format: csv, csv: { header: [line], quote: none }";
    world.write("hapax.yaml", world.read("hapax.yaml").replace("path: orders.jsonl", source));
    world.write("orders.log", "sold apple 3\nsold pear 4\n");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.ask::<String>("SELECT group_concat(id || amount, ' ') FROM orders"), "apple3 pear4");
    world.hapax(&["trace", "id=pear"]).exits(0).says(&["row          id=pear amount=4"]);
    world.write("hapax.yaml", world.read("hapax.yaml").replace("[line]", "[line, id]"));
    world.hapax(&["check"]).exits(2).says(&["HX1405", "overwrites the key field .id", "csv.header"]);
}
