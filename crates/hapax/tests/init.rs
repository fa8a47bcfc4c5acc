//! `hapax init`: by arguments and in a dialogue on a terminal; what it writes passes `check --live` and runs.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::world::{World, until};

const ORDERS: &str = "orderId;customer;amount;paid;at;note\n1;ann;12.50;true;2026-11-16;x\n2;bob;3;false;2026-11-17;\n";

/// Answers the questions of `hapax init` on a terminal of its own, each when it is asked; what it showed.
fn on_a_terminal(world: &World, arguments: &str, answers: &[(&str, &str)]) -> String {
    let program = format!("{} init {arguments}", env!("CARGO_BIN_EXE_hapax"));
    // A shell that starts the tests in the background lets them ignore Ctrl-C, and whoever they start.
    let mut child = Command::new("env")
        .args(["--default-signal=INT,QUIT", "script", "-qec", &program, "/dev/null"])
        .current_dir(world.path("."))
        .env_remove("HAPAX_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("script gives it a terminal");
    let shown = Arc::new(Mutex::new(Vec::new()));
    let mut screen = child.stdout.take().expect("a screen");
    let watched = Arc::clone(&shown);
    let watcher = std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = screen.read(&mut piece) {
            watched.lock().expect("no panic").extend_from_slice(&piece[..count]);
        }
    });
    let mut typing = child.stdin.take().expect("a keyboard");
    let text = || String::from_utf8_lossy(&shown.lock().expect("no panic")).into_owned();
    // What is typed before it asks would be thrown away.
    let mut seen = 0;
    for (question, keys) in answers {
        until(&format!("it asks {question:?}"), || text()[seen..].contains(question));
        seen += text()[seen..].find(question).expect("it was there") + question.len();
        typing.write_all(keys.as_bytes()).expect("typed");
        typing.flush().expect("typed");
    }
    let deadline = Instant::now() + Duration::from_secs(120);
    while child.try_wait().expect("it can be waited for").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("it ends");
            panic!("it still asks after all was typed: {}", text());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(typing);
    watcher.join().expect("no panic");
    text()
}

/// Goal: a file that runs, from a CSV file and a table whose names differ. Method: arguments; check, run, look.
#[test]
fn a_configuration_for_a_table_that_is_there_runs_at_once() {
    let world = World::empty();
    world.sql(
        "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer TEXT, amount REAL, paid BOOLEAN, \
         made TEXT DEFAULT 'now', extra TEXT)",
    );
    world.write("orders.csv", ORDERS);
    let answer = world.hapax(&["init", "--from", "file:orders.csv", "--to", "sqlite:shop.db", "--table", "orders"]);
    answer.exits(0).says(&[
        "Looked at 2 event(s)",
        "orderId (whole numbers)",
        "primary key order_id",
        "hapax check --live",
    ]);
    let text = world.read("hapax.yaml");
    for words in [
        "delimiter: \";\"",
        "order_id: .orderId",
        "keyFields: [orderId]",
        "Filled from the fields of the same name: customer, amount, paid",
        "Column made has no field: left to the database",
        "Column extra has no field: stays NULL",
        "Fields without a column, counted and left out: at, note",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    world.hapax(&["check", "--live"]).exits(0).says(&["exactly-once"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(
        world.ask::<String>("SELECT group_concat(order_id || customer || amount || paid, ' ') FROM orders"),
        "1ann12.51 2bob3.00"
    );
    world.hapax(&["init", "--from", "orders.csv", "--to", "sqlite:shop.db"]).exits(2).says(&["HX5091", "--force"]);
    assert_eq!(world.read("hapax.yaml"), text, "it stays as it is");
    world.hapax(&["init", "--from", "generate", "--to", "sqlite:shop.db", "--force"]).exits(0);
    assert!(world.read("hapax.yaml").contains("generate:"));
}

/// Goal: a table that is not there is proposed so that it works. Method: run the statement that the file has.
#[test]
fn the_table_that_it_proposes_fits() {
    let world = World::empty();
    world.write("in.jsonl", "{\"order\":{\"id\":7,\"lines\":[1]},\"at\":\"2026-11-16T03:25:42Z\",\"ok\":true,\"sum\":1.5,\"odd name\":\"x\"}\n{\"order\":{\"id\":8},\"sum\":2}\n");
    let answer = world.hapax(&["init", "--from", "in.jsonl", "--to", "shop.db", "--table", "order by"]);
    answer.exits(0).says(&["There is no table order by yet", "make the table"]);
    let text = world.read("hapax.yaml");
    let statement: String = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#   "))
        .skip_while(|line| !line.starts_with("CREATE TABLE"))
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        statement.contains("\"order_id\" INTEGER NOT NULL") && statement.contains("PRIMARY KEY (\"order_id\")"),
        "{text}"
    );
    world.sql(&statement);
    world.hapax(&["init", "--from", "in.jsonl", "--to", "shop.db", "--table", "order by", "--force"]).exits(0);
    world.hapax(&["check", "--live"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(
        world.ask::<String>(
            "SELECT group_concat(order_id || '|' || sum || '|' || coalesce(\"odd name\", '-'), ' ') FROM \"order by\""
        ),
        "7|1.5|x 8|2.0|-"
    );
}

/// Goal: events with objects inside fill the proposed table with the file as it was written, and HX4110 and
/// `setup --sql` propose the same table; a program between is looked through. Method: SQLite, before and after the table.
#[test]
fn nested_events_fill_the_proposed_table() {
    let statement_in = |text: &str| {
        let lines = text.lines().map(|line| line.trim().trim_start_matches("# ").trim());
        let lines: Vec<&str> = lines.skip_while(|line| !line.starts_with("CREATE TABLE")).collect();
        lines.join("\n").split_inclusive(';').next().unwrap_or_default().to_owned()
    };
    let world = World::empty();
    world.sql("CREATE TABLE other (a)");
    world.write("in.jsonl", "{\"order\":{\"id\":7,\"by\":{\"name\":\"ann\"}},\"order_id\":1,\"ok\":true}\n");
    world.hapax(&["init", "--from", "in.jsonl", "--to", "shop.db", "--table", "t", "--key", ".order.id"]).exits(0);
    let proposed = statement_in(&world.read("hapax.yaml"));
    assert!(
        proposed.contains("\"order_id_2\" INTEGER NOT NULL") && proposed.contains("\"order_by_name\" TEXT"),
        "{proposed}"
    );
    assert_eq!(statement_in(&world.hapax(&["run", "--once"]).exits(1).err), proposed);
    let printed = world.hapax(&["setup", "--sql"]).out.clone();
    assert_eq!(statement_in(printed.split_once("could write to").expect("a table").1), proposed);
    world.sql(&proposed);
    world.hapax(&["run", "--once"]).exits(0);
    let row = "SELECT order_id_2 || order_by_name || order_id || ok FROM t";
    assert_eq!(world.ask::<String>(row), "7ann11");
}

/// Goal: what is proposed takes the events that were looked at, as they stand. Method: texts that begin with a date, and
/// numbers of CSV that stand for something else; run the statement, then the file.
#[test]
fn texts_that_only_begin_like_another_type_stay_text() {
    let world = World::empty();
    world.sql("CREATE TABLE other (a)");
    world.write("log.csv", "id,msg,phone,at\n1,2025-05-20 16:27:01 startup,+4912345,2025-05-20T16:27:01Z\n2,2025-05-20 16:28:01 x,+4999,2025-05-20\n");
    let answer = world.hapax(&["init", "--from", "log.csv", "--to", "shop.db", "--table", "t", "--key", "id"]);
    answer.exits(0).says(&["id (whole numbers), msg (text), phone (text), at (times)"]);
    let text = world.read("hapax.yaml");
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("#   "));
    let statement: Vec<&str> = lines.skip_while(|line| !line.starts_with("CREATE TABLE")).collect();
    world.sql(&statement.join("\n"));
    world.hapax(&["check", "--live"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(
        world.ask::<String>("SELECT group_concat(msg || phone, '|') FROM t"),
        "2025-05-20 16:27:01 startup+4912345|2025-05-20 16:28:01 x+4999"
    );
}

/// Goal: an object that is used as a map becomes one column of JSON, and what is said of it stays short. Method: a map with new keys in
/// every event, one with few keys that are rare, beside an object with the same fields in all; run what was proposed.
#[test]
fn an_object_used_as_a_map_is_one_column() {
    let world = World::empty();
    world.sql("CREATE TABLE other (a)");
    let line = |n: usize| {
        let rare = if n == 7 { "{\"seldom\":1}" } else { "{}" };
        format!(
            "{{\"id\":{n},\"features\":{{\"flag-{n}\":[\"x\"],\"flag-{}\":[]}},\"rare\":{rare},\"at\":{{\"x\":1,\"y\":{n}}}}}\n",
            n + 1
        )
    };
    world.write("in.jsonl", (0..60).map(line).collect::<String>());
    let answer = world.hapax(&["init", "--from", "in.jsonl", "--to", "shop.db", "--table", "t", "--key", "id"]);
    answer.exits(0).says(&["Looked at 60 event(s)", "features (JSON)", "rare (JSON)", ".at.x (whole numbers)"]);
    answer.keeps_silent_about(&["flag-", "seldom"]);
    let text = world.read("hapax.yaml");
    assert!(!text.contains("flag") && !text.contains("seldom") && text.contains("at_y: .at.y"), "{text}");
    let lines = text.lines().map(|line| line.trim().trim_start_matches("# ").trim());
    let lines: Vec<&str> = lines.skip_while(|line| !line.starts_with("CREATE TABLE")).collect();
    world.sql(lines.join("\n").split_inclusive(';').next().unwrap_or_default());
    world.hapax(&["run", "--once"]).exits(0);
    let row = "SELECT features || rare || at_y FROM t WHERE id = 7";
    assert_eq!(world.ask::<String>(row), "{\"flag-7\":[\"x\"],\"flag-8\":[]}{\"seldom\":1}7");
    let many: Vec<String> = (0..200).map(|n| format!("\"field_{n}\":{n}")).collect();
    world.write("wide.jsonl", format!("{{{}}}\n", many.join(",")));
    let answer =
        world.hapax(&["init", "--from", "wide.jsonl", "--to", "shop.db", "--table", "w", "--output", "w.yaml"]);
    answer.exits(0).says(&["Looked at 1 event(s): field_0 (whole numbers), ", " and 170 more fields"]);
    assert!(world.read("w.yaml").contains("field_199"), "the table has them all");
}

/// Goal: a pattern is judged by more than its first file. Method: a first file with whole numbers only; the newest has texts there,
/// and a field of its own, and the one in the middle another.
#[test]
fn a_pattern_is_looked_at_over_several_files() {
    let world = World::empty();
    world.sql("CREATE TABLE other (a)");
    std::fs::create_dir(world.path("in")).expect("a folder");
    let lines =
        |n: usize| (0..300).map(|id| format!("{{\"id\":{},\"code\":{id}}}\n", n * 1000 + id)).collect::<String>();
    world.write("in/a.jsonl", lines(1));
    world.write("in/b.jsonl", "{\"id\":1,\"code\":1,\"middle\":true}\n");
    world.write("in/c.jsonl", "{\"id\":2,\"code\":\"x7\",\"newest\":1.5}\n");
    let answer = world.hapax(&["init", "--from", "in/*.jsonl", "--to", "shop.db", "--table", "t", "--key", "id"]);
    answer.exits(0).says(&["code (text)", "newest (numbers)", "middle (true or false)"]);
    assert!(!answer.out.contains("Looked at 302"), "no more than 200 are looked at");
}

/// Goal: where no input is an event nothing is written, and the message says why and what to do. Method: plain text, a
/// list, CSV with another number of fields; then plain text as the documentation reads it, line by line as it stands.
#[test]
fn a_source_without_an_event_is_no_configuration() {
    let world = World::empty();
    world.sql("CREATE TABLE lines (line TEXT)");
    let lines = [
        "2025-05-20 16:27:01 startup",
        "  \"quoted\", a\ttab; and a \\ backslash ",
        "{\"a\":1}",
        "陳昌倬",
        "'",
        "0012",
    ];
    world.write("dpkg.log", format!("{}\n", lines.join("\n")).replace("{\"a\":1}\n", ""));
    world.write("list.json", "[{\"id\":1}]\n");
    world.write("wrong.csv", "a,b\n1\n");
    for (file, why) in [
        ("dpkg.log", "none of the first 5 input(s) is an event; the first is no JSON: 2025-05-20 16:27:01 startup"),
        ("list.json", "JSON, but no object: [{\"id\":1}]"),
        ("wrong.csv", "no record of this header"),
    ] {
        let answer = world.hapax(&["init", "--from", file, "--to", "sqlite:shop.db", "--table", "lines"]);
        answer.exits(2).says(&["HX5092", file, why, "Nothing was written"]);
        assert!(!world.path("hapax.yaml").exists(), "{file}");
    }
    world.write("dpkg.log", format!("{}\n", lines.join("\n")));
    world.write(
        "hapax.yaml",
        "workflows:\n  - id: lines\n    source:\n      file:\n        path: dpkg.log\n        format: csv\n        \
         csv: { header: [line], delimiter: \"\\x01\", quote: none }\n    sink: { sqlite: { path: shop.db, table: lines, \
         onConflict: append } }\n    delivery: { guarantee: exactly-once }\n",
    );
    world.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["dead letters"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(
        world.ask::<String>("SELECT group_concat(line, char(10)) FROM (SELECT line FROM lines ORDER BY rowid)"),
        lines.join("\n")
    );
}

/// Goal: without a terminal what is missing is named, and nothing is written. Method: leave out each.
#[test]
fn missing_arguments_are_named() {
    let world = World::empty();
    world.hapax(&["init"]).exits(2).says(&["HX5090", "--from and --to are missing"]);
    world.hapax(&["init", "--from", "a.csv"]).exits(2).says(&["HX5090", "--to is missing"]);
    world.hapax(&["init", "--from", "a.csv", "--to", "sqlite:shop.db"]).exits(2).says(&["HX5092", "no file a.csv"]);
    world.write("a.csv", "id\n1\n");
    let answer = world.hapax(&["init", "--from", "a.csv", "--to", "oracle://me:secret@host/db"]);
    answer.exits(2).says(&["HX5092", "sqlite:FILE"]).keeps_silent_about(&["secret"]);
    world
        .hapax(&["init", "--from", "a.csv", "--to", "sqlite:shop.db", "--key", "nr"])
        .exits(2)
        .says(&["no field nr", "id"]);
    assert!(!world.path("hapax.yaml").exists());
    world.hapax(&["init", "--help"]).exits(0).says(&["Examples:", "hapax init --from orders.csv"]);
}

const FROM: (&str, &str) = ("Where do events come from?", "clients.csv\n");

/// Goal: the dialogue asks, proposes and writes; Ctrl-C leaves nothing. Method: a terminal, defaults and answers.
#[test]
fn the_dialogue_asks_with_defaults() {
    let world = World::empty();
    world.sql("CREATE TABLE clients (id INTEGER PRIMARY KEY, name TEXT)");
    world.write("clients.csv", "id,name\n1,ann\n2,bob\n");
    let shown = on_a_terminal(&world, "", &[FROM, ("Where do they go?", "\u{3}")]);
    assert!(shown.contains("Where do events come from?") && shown.contains("Looked at 2 event(s)"), "{shown}");
    assert!(!world.path("hapax.yaml").exists(), "{shown}");
    let into =
        [("Where do they go?", "sqlite:shop.db\n"), ("Into which table?", "\n"), ("Which fields name a row?", "\n")];
    let shown = on_a_terminal(&world, "", &[&[FROM], &into[..]].concat());
    for words in ["Into which table? [clients]", "Which fields name a row?", "[id]", "Wrote hapax.yaml"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    world.hapax(&["check", "--live"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.ask::<String>("SELECT group_concat(name) FROM clients"), "ann,bob");
}

/// Goal: files that are named by their day become one lane, so that the last day's value stays. Method: days with one key; the
/// proposal, its run, and files whose names say no order.
#[test]
fn files_named_by_their_day_are_proposed_as_one_lane() {
    let world = World::empty();
    std::fs::create_dir(world.path("in")).expect("a folder");
    for day in 1..=5 {
        world.write(&format!("in/flights-2013-01-0{day}.csv"), format!("id,day\n1,{day}\n{day}0,{day}\n"));
    }
    world.sql("CREATE TABLE flights (id INTEGER PRIMARY KEY, day INTEGER)");
    let init = ["init", "--from", "in/flights-*.csv", "--to", "sqlite:shop.db", "--table", "flights", "--key", "id"];
    world.hapax(&init).exits(0);
    let proposed = world.read("hapax.yaml");
    assert!(proposed.contains("rotation: beforeExtension"), "{proposed}");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.ask::<i64>("SELECT day FROM flights WHERE id = 1"), 5);
    let world = World::empty();
    std::fs::create_dir(world.path("in")).expect("a folder");
    world.write("in/north.csv", "id,day\n1,1\n");
    world.write("in/south.csv", "id,day\n2,1\n");
    world.sql("CREATE TABLE flights (id INTEGER PRIMARY KEY, day INTEGER)");
    let init = ["init", "--from", "in/*.csv", "--to", "sqlite:shop.db", "--table", "flights", "--key", "id"];
    world.hapax(&init).exits(0);
    assert!(!world.read("hapax.yaml").contains("rotation"));
}

/// Goal: the proposed table takes every number of its sample, exactly. Method: whole numbers beyond eight bytes, numbers with more digits than
/// a double has, large whole numbers among fractions; run the statement, then the file.
#[test]
fn the_proposed_table_takes_every_number_of_the_sample() {
    let world = World::empty();
    let line = |id: u64| {
        let (big, mixed) = (9_223_372_036_854_775_807_u64 + id, if id == 1 { "9007199254740993" } else { "0.5" });
        format!(
            "{{\"id\":{id},\"big\":{big},\"f\":0.30000000000000004,\"pi\":3.14159265358979323846,\"mixed\":{mixed}}}\n"
        )
    };
    world.write("events.jsonl", (1..=9).map(line).collect::<String>());
    world.sql("VACUUM");
    world.hapax(&["init", "--from", "events.jsonl", "--to", "sqlite:shop.db", "--table", "t", "--key", "id"]).exits(0);
    let text = world.read("hapax.yaml");
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("#   "));
    let statement: Vec<_> = lines.skip_while(|line| !line.starts_with("CREATE TABLE")).collect();
    world.sql(&statement.join("\n"));
    world.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["dead letters"]);
    world.hapax(&["run", "--once"]).exits(0);
    let row = "SELECT count(*) || ' ' || min(big) || ' ' || max(f) || ' ' || min(pi) || ' ' || max(mixed) FROM t";
    assert_eq!(
        world.ask::<String>(row),
        "9 9223372036854775808 0.30000000000000004 3.14159265358979323846 9007199254740993"
    );
}
