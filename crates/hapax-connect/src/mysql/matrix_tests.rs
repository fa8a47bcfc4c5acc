use hapax_model::mode::ConflictMode;

use super::rig::{Rig, keyed};
use crate::table::matrix::{Cell, check, events, values};

const TYPES: [&str; 30] = [
    "boolean",
    "tinyint",
    "tinyint unsigned",
    "smallint",
    "mediumint",
    "int",
    "int unsigned",
    "bigint",
    "bigint unsigned",
    "decimal(7,2)",
    "float",
    "double",
    "bit(3)",
    "year",
    "char(3)",
    "varchar(3)",
    "text",
    "varchar(40) CHARACTER SET latin1",
    "binary(3)",
    "varbinary(40)",
    "date",
    "time",
    "time(6)",
    "datetime",
    "datetime(6)",
    "timestamp(6) NULL",
    "json",
    "enum('abc','true')",
    "set('a','b c')",
    "uuid",
];

/// How SQL shows a column of this type as text.
fn shown(at: usize, declared: &str) -> String {
    match declared {
        "bit(3)" => format!("c{at} + 0"),
        _ if declared.contains("binary") => format!("concat('0x', hex(c{at}))"),
        _ => format!("CAST(c{at} AS CHAR)"),
    }
}

/// The server names the test's own database.
fn without_database(words: &str) -> String {
    let Some((before, after)) = words.split_once("`ledger_") else { return words.to_owned() };
    format!("{before}{}", after.split_once("`.").map_or("", |(_, rest)| rest))
}

/// Goal: every value goes into every type of column exactly, or is a dead letter that says why; the page tells which.
/// Method: one event per cell through the sink, then the rows as SQL shows them and the letters.
#[tokio::test]
async fn the_matrix_of_values_and_types_is_as_the_page_says() {
    let columns: Vec<String> = (0..).zip(TYPES).map(|(at, declared)| format!("c{at} {declared}")).collect();
    let ddl = format!("CREATE TABLE t (id int PRIMARY KEY, {})", columns.join(", "));
    let mut rig = Rig::new(&ddl, keyed(ConflictMode::Update)).await;
    let events = events(TYPES.len());
    rig.deliver(&events.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let count = values().count();
    let mut cells = vec![None; events.len()];
    for (at, declared) in TYPES.iter().enumerate() {
        let (shown, first) = (shown(at, declared), at * count);
        let rows = format!(
            "SELECT concat(id, ' ', coalesce(concat('=', {shown}), 'NULL')) FROM t WHERE id >= {first} AND id < {}",
            first + count
        );
        for row in rig.texts(&rows).await {
            let (id, text) = row.split_once(' ').unwrap();
            let cell = text.strip_prefix('=').map_or(Cell::Null, |text| Cell::Holds(text.to_owned()));
            cells[id.parse::<usize>().unwrap()] = Some(cell);
        }
    }
    let letters = "SELECT json_array(position, code, message, fingerprint) FROM hapax_dead_letters";
    for letter in rig.texts(letters).await {
        let [position, code, message, fingerprint]: [String; 4] = serde_json::from_str(&letter).unwrap();
        let (message, fingerprint) = (without_database(&message), without_database(&fingerprint));
        let place = &mut cells[position.parse::<usize>().unwrap()];
        assert_eq!(*place, None, "a row and a letter: {message}");
        *place = Some(Cell::Refused { code, message, fingerprint });
    }
    let cells: Vec<Cell> = cells.into_iter().map(|cell| cell.expect("a row or a letter")).collect();
    check("MariaDB", &TYPES, &cells);
}
