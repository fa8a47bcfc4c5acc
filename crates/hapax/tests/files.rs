//! Files that are no JSON lines: CSV with all its oddities, archives, and workers killed in the middle of them.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::world::{KEYED, World, rename, until};

const QUICK: &str =
    "epoch: { interval: 20ms, maxEvents: 1000 }, lease: 2s, retries: { backoffMs: [50], giveUpAfter: 300ms }";

/// Workflow `orders` from a file into table `orders` of `shop.db`.
fn shop(file: &str, table: &str, sink: &str, delivery: &str) -> World {
    let world = World::empty();
    world.sql(table);
    world.write(
        "hapax.yaml",
        format!(
            "workflows:
  - id: orders
    source: {{ file: {{ {file} }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, {sink} }} }}
    delivery: {{ {QUICK}, {delivery} }}
"
        ),
    );
    world
}

const TYPED: &str = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount REAL, paid BOOLEAN, at DATE)";

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("packs");
    encoder.finish().expect("packs")
}

/// Goal: a CSV file arrives with its types. Method: BOM, CRLF, quotes, line ends, NULL, and columns of every type.
#[test]
fn a_csv_file_arrives_by_the_types_of_its_columns() {
    let world = shop("path: orders.csv", TYPED, "", KEYED);
    world.write(
        "orders.csv",
        "\u{feff}id,customer,amount,paid,at,note\r\n1,\"Ann, \"\"the\"\" first\nof many\",12.50,t,2026-11-16,x\r\n\r\n2,,-3,no,,\r\n",
    );
    world.hapax(&["check"]).exits(0).says(&["orders.csv, CSV with \",\" between fields, named by the first record"]);
    world.hapax(&["run", "--once"]).exits(0).says(&["field=\"note\""]);
    let row = "SELECT group_concat(id || '|' || coalesce(customer, 'NULL') || '|' || amount || '|' || paid || '|' || coalesce(at, 'NULL'), ' ') FROM orders";
    assert_eq!(world.ask::<String>(row), "1|Ann, \"the\" first\nof many|12.5|1|2026-11-16 2|NULL|-3.0|0|NULL");
    world.accounts_for(2, 0);
    world.append("orders.csv", "3,Bob,1,f,,\r\n");
    world.hapax(&["run", "--once"]).exits(0);
    world.accounts_for(3, 0);
}

/// Goal: CSV into a column for JSON is parsed, or a letter; never a string that nobody wrote. Method: values of every
/// kind, and texts that are no JSON, into a column declared JSON.
#[test]
fn csv_into_a_json_column_is_parsed_or_a_letter() {
    let table = "CREATE TABLE orders (id INTEGER PRIMARY KEY, doc JSON)";
    let world = shop("path: orders.csv", table, "", &format!("{KEYED}, maxRejects: 100%"));
    world.write(
        "orders.csv",
        "id,doc\n1,12\n2,\"{\"\"a\"\":\"\n3,\"{\"\"a\"\": 1}\"\n4,\"\"\"12\"\"\"\n5,abc\n6,\n7,true\n8,007\n",
    );
    world.hapax(&["run", "--once"]).exits(0);
    let rows = "SELECT group_concat(id || '=' || coalesce(json_type(doc), 'NULL'), ' ') FROM orders";
    assert_eq!(world.ask::<String>(rows), "1=integer 3=object 4=text 6=NULL 7=true");
    world.accounts_for(8, 3);
    let letters = world.letters();
    assert_eq!(letters.matches("HX2020 column \"doc\" (JSON) takes JSON text").count(), 3, "{letters}");
}

/// Goal: bad records are letters that name their line, and cost nobody else; they are replayed by their own header.
/// Method: too few, too many, a stray quote, no number, not UTF-8, no key; then the table is mended.
#[test]
fn bad_records_are_letters_with_their_line() {
    let world = shop("path: orders.csv", TYPED, "", &format!("{KEYED}, maxRejects: 90%"));
    let mut content =
        b"id,customer,amount\n1,ann,1\n2,ann\n3,ann,3,3\n4,\"ann,4\n5,ann,5\n6,ann,lots\n7,\xff,7\n".to_vec();
    content.extend_from_slice(b",nobody,8\n9,\"two\nlines\",9\n");
    world.write("orders.csv", content);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:1.0 5:5.0 9:9.0");
    world.accounts_for(9, 6);
    let letters = world.letters();
    for words in [
        "HX2080 line 3: the record has 2 fields, and the header names 3: id, customer, amount",
        "HX2080 line 4: the record has 4 fields",
        "HX2081 line 5: the quote that opens at byte 2",
        "HX2020",
        "HX2002 line 8:",
        "line 9:",
    ] {
        assert!(letters.contains(words), "{words}: {letters}");
    }
    world.hapax(&["dlq", "show", "4"]).exits(0).says(&["id,customer,amount", "6,ann,lots"]);
    std::fs::remove_file(world.path("orders.csv")).expect("gone");
    world.sql("ALTER TABLE orders RENAME COLUMN amount TO old; ALTER TABLE orders ADD COLUMN amount TEXT;");
    world.hapax(&["dlq", "replay", "--id", "4", "--yes", "--overwrite"]).exits(0).says(&["1 replayed"]);
    assert_eq!(world.ask::<String>("SELECT amount FROM orders WHERE id = 6"), "lots");
}

/// Goal: a header that lacks the key, or is another after a rotation, stops before anything is lost. Method: both, then
/// a person goes on.
#[test]
fn a_header_that_cannot_serve_stops() {
    let world = shop("path: orders.csv", TYPED, "", KEYED);
    world.write("orders.csv", "number,customer\n1,ann\n");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3012", "number,customer", ".id", "header: [id, …]"]);
    assert_eq!(world.rows(), 0);
    world.write("orders.csv", "id,customer\n1,ann\n");
    world.hapax(&["run", "--once"]).exits(0);
    rename(&world.path("orders.csv"), &world.path("orders.csv.1"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    world.write("orders.csv", "id,name\n2,bob\n");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3011", "\"id,customer\"", "\"id,name\"", "--to next"]);
    world.accounts_for(1, 0);
    world.hapax(&["reset", "orders", "--to", "next", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!((world.rows(), world.amounts().as_str()), (2, "1:- 2:-"));
}

/// Goal: a file that was replaced by one with another header stops with both. Method: write another in its place.
#[test]
fn a_replaced_file_shows_both_headers() {
    let world = shop("path: orders.csv", TYPED, "", KEYED);
    world.write("orders.csv", "id,customer\n1,ann\n");
    world.hapax(&["run", "--once"]).exits(0);
    world.write("next", "id,amount\n2,7\n");
    rename(&world.path("next"), &world.path("orders.csv"));
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3004", "header \"id,customer\"", "header \"id,amount\""]);
    assert_eq!(world.rows(), 1);
}

/// Goal: a truncated gzip delivers what is whole and stops; the whole one goes on from there. Method: both, by name.
#[cfg(feature = "compression")]
#[test]
fn a_truncated_archive_stops_with_name_and_offset() {
    let world = shop("path: orders.jsonl.gz", TYPED, "", KEYED);
    let content = (1..=20_000).fold(String::new(), |mut lines, id: u64| {
        writeln!(lines, "{{\"id\":{id},\"amount\":{}}}", id.wrapping_mul(0x9e37_79b9) % 100_000).expect("a line");
        lines
    });
    let whole = gzip(content.as_bytes());
    world.write("orders.jsonl.gz", &whole[..whole.len() / 2]);
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(5).says(&["HX3010", "orders.jsonl.gz", "gzip archive", "cut off", "behind byte"]);
    let half = world.rows();
    assert!(half > 1000 && half < 20_000, "{half}");
    world.write("orders.jsonl.gz", &whole);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 20_000);
    world.accounts_for(20_000, 0);
    world.hapax(&["run"]).exits(0).says(&["compressed files are read once and not followed"]);
}

/// Goal: rows exactly once, whenever the worker dies. Method: SIGKILL in the middle, again and again, of a CSV file with
/// records over several lines, and of a gzip where the edition reads one.
#[test]
fn a_killed_worker_loses_and_doubles_nothing() {
    const TABLE: &str = "CREATE TABLE orders (id INTEGER, note TEXT)";
    for packed in [false, cfg!(feature = "compression")] {
        let name = if packed { "orders.csv.gz" } else { "orders.csv" };
        let world = shop(&format!("path: {name}"), TABLE, "onConflict: append", "guarantee: exactly-once");
        let content = (1..=60_000).fold("id,note\n".to_owned(), |mut lines, id| {
            writeln!(lines, "{id},\"order {id}\nof \"\"many\"\"\n{}\"", id * 7).expect("a record");
            lines
        });
        world.write(name, if packed { gzip(content.as_bytes()) } else { content.into_bytes() });
        let mut before = 0;
        for _ in 0..3 {
            let worker = world.start("worker.log", &["run", "--once"]);
            until("more rows are there", || {
                let answer: rusqlite::Result<i64> =
                    world.database("shop.db").query_row("SELECT count(*) FROM orders", [], |row| row.get(0));
                answer.is_ok_and(|rows| rows > before) || worker.said().contains("finished")
            });
            drop(worker);
            before = world.rows();
        }
        world.hapax(&["run", "--once"]).exits(0);
        let counts = "SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || sum(note = 'order ' || id || char(10) || 'of \"many\"' || char(10) || (id * 7)) FROM orders";
        assert_eq!(world.ask::<String>(counts), "60000 60000 60000", "{name}");
        world.accounts_for(60_000, 0);
    }
}

/// Goal: people see CSV records as events. Method: tap, trace by key and by position, reconcile.
#[test]
fn csv_is_looked_at_like_any_source() {
    let world = shop("path: orders.tsv", TYPED, "", KEYED);
    world.write("orders.tsv", "id\tcustomer\tamount\n1\tann\t5\n2\tbob\n3\t\"c\nd\"\t7\n");
    world.hapax(&["run", "--once"]).exits(0);
    let tapped = world.hapax(&["tap", "orders", "--json"]);
    let first: serde_json::Value = serde_json::from_str(tapped.out.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["event"], serde_json::json!({"id": "1", "customer": "ann", "amount": "5"}));
    world.hapax(&["trace", "id=3"]).exits(0).says(&["id=3", "delivered: its row is there"]);
    world.hapax(&["trace", "19"]).exits(0).says(&["ann"]);
    world.hapax(&["trace", "27"]).says(&["HX2080"]);
    world.hapax(&["reconcile"]).exits(0);
}

/// Goal: words about files that make no sense are refused with the cure. Method: each of them.
#[test]
fn words_about_files_that_make_no_sense_are_refused() {
    for (file, words) in [
        ("path: a.jsonl, csv: { delimiter: ';' }", ["HX1033", "format: csv"]),
        ("path: a.csv, csv: { delimiter: ';', quote: ';' }", ["HX1033", "same character"]),
        ("path: a.csv, csv: { delimiter: ab }", ["HX1016", "one ASCII character"]),
        ("path: a.csv, csv: { header: [id, id] }", ["HX1033", "\"id\""]),
        ("path: 'in/[a.csv'", ["HX1470", "no pattern"]),
        ("path: 'in/*.csv', start: latest", ["HX1033", "appears later"]),
        ("path: a.csv, format: xml", ["HX1013", "jsonl"]),
    ] {
        shop(file, TYPED, "", KEYED).hapax(&["check"]).exits(2).says(&words);
    }
}

/// Goal: in CSV a line of blanks is a record, and only a line without a byte is none. Method: one column, both kinds of lines, with and
/// without carriage returns; and several columns, where blanks are too few fields.
#[test]
fn a_line_of_blanks_is_a_record() {
    for end in ["\n", "\r\n"] {
        let world = World::empty();
        world.sql("CREATE TABLE orders (line TEXT)");
        let text = "workflows:
  - id: orders
    source: { file: { path: in.csv } }
    sink: { sqlite: { path: shop.db, table: orders, onConflict: append } }
    delivery: { guarantee: exactly-once, maxRejects: 100% }
";
        world.write("hapax.yaml", text);
        world.write("in.csv", ["line", "a", "  ", "", "b", ""].join(end));
        world.hapax(&["run", "--once"]).exits(0);
        let lines = "SELECT group_concat('<' || line || '>', '') FROM orders";
        assert_eq!(world.ask::<String>(lines), "<a><  ><b>", "{end:?}");
        world.hapax(&["reset", "orders", "--accept", "--to", "earliest", "--yes"]).exits(0);
        world.write("in.csv", ["line,more", "a,1", "  ", "b,2", ""].join(end));
        world.hapax(&["reset", "orders", "--accept", "--to", "earliest", "--yes"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0).says(&["1 dead"]);
    }
}
