use hapax_model::mode::ConflictMode;

use super::rig::{Rig, keyed};
use crate::table::matrix::{Cell, check, events, values};

const TYPES: [&str; 33] = [
    "boolean",
    "smallint",
    "integer",
    "bigint",
    "real",
    "double precision",
    "numeric",
    "numeric(7,2)",
    "price",
    "text",
    "varchar(3)",
    "char(3)",
    "bytea",
    "date",
    "time",
    "time(0)",
    "timetz",
    "timestamp",
    "timestamptz",
    "timestamptz(0)",
    "interval",
    "uuid",
    "json",
    "jsonb",
    "mood",
    "integer[]",
    "varchar(3)[]",
    "int4range",
    "inet",
    "bit(3)",
    "point",
    "xml",
    "money",
];

/// Goal: every value goes into every type of column exactly, or is a dead letter that says why; the page tells which.
/// Method: one event per cell through the sink, then the rows as SQL shows them and the letters.
#[tokio::test]
async fn the_matrix_of_values_and_types_is_as_the_page_says() {
    let columns: Vec<String> = (0..).zip(TYPES).map(|(at, declared)| format!("c{at} {declared}")).collect();
    let ddl = format!(
        "CREATE TYPE mood AS ENUM ('abc', 'true'); CREATE DOMAIN price AS numeric(7,2) CHECK (VALUE >= 0); \
         CREATE TABLE t (id int PRIMARY KEY, {})",
        columns.join(", ")
    );
    let mut rig = Rig::new(&ddl, keyed(ConflictMode::Update)).await;
    let events = events(TYPES.len());
    rig.deliver(&events.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let count = values().count();
    let shown: Vec<String> =
        (0..TYPES.len()).map(|at| format!("WHEN {at} THEN coalesce('=' || c{at}::text, 'NULL')")).collect();
    let rows = format!("SELECT id || ' ' || CASE id / {count} {} END FROM t", shown.join(" "));
    let letters = "SELECT json_build_array(position, code, message, fingerprint) FROM hapax.dead_letters";
    let mut cells = vec![None; events.len()];
    for row in rig.texts(&format!("SET extra_float_digits = 1; {rows}")).await {
        let (id, text) = row.split_once(' ').unwrap();
        let cell = text.strip_prefix('=').map_or(Cell::Null, |text| Cell::Holds(text.to_owned()));
        cells[id.parse::<usize>().unwrap()] = Some(cell);
    }
    for letter in rig.texts(letters).await {
        let [position, code, message, fingerprint]: [String; 4] = serde_json::from_str(&letter).unwrap();
        let place = &mut cells[position.parse::<usize>().unwrap()];
        assert_eq!(*place, None, "a row and a letter: {message}");
        *place = Some(Cell::Refused { code, message, fingerprint });
    }
    let cells: Vec<Cell> = cells.into_iter().map(|cell| cell.expect("a row or a letter")).collect();
    check("PostgreSQL", &TYPES, &cells);
}
