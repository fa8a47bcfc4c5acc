use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;

use super::rig::{Rig, texts};
use crate::table::matrix::{Cell, check, events, values};

const TYPES: [&str; 13] = [
    "INTEGER",
    "REAL",
    "TEXT",
    "VARCHAR(3)",
    "BLOB",
    "NUMERIC",
    "DECIMAL(7,2)",
    "BOOLEAN",
    "DATE",
    "DATETIME",
    "UUID",
    "JSON",
    "",
];

/// Goal: every value goes into every type of column exactly, or is a dead letter that says why; the page tells which.
/// Method: one event per cell through the sink, then the rows as SQL shows them and the letters.
#[tokio::test]
async fn the_matrix_of_values_and_types_is_as_the_page_says() {
    let columns: Vec<String> = (0..).zip(TYPES).map(|(at, declared)| format!("c{at} {declared}")).collect();
    let ddl = format!("CREATE TABLE t (id INTEGER PRIMARY KEY, {})", columns.join(", "));
    let mut rig = Rig::new(&ddl, |config| {
        config.table.mode = Some(ConflictMode::Update);
        config.table.key_fields = vec![FieldPath::of_name("id")];
    })
    .await;
    let events = events(TYPES.len());
    rig.deliver(&events.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let count = values().count();
    let shown: Vec<String> = (0..TYPES.len()).map(|at| format!("WHEN {at} THEN c{at}")).collect();
    // `quote` tells 1 from '1' and x'31', but ends at a NUL.
    let rows = format!(
        "SELECT id || ' ' || CASE WHEN instr(c, char(0)) THEN typeof(c) || ' of bytes ' || hex(c) ELSE quote(c) END \
         FROM (SELECT id, CASE id / {count} {} END AS c FROM t)",
        shown.join(" ")
    );
    let letters = "SELECT json_array(position, code, message, fingerprint) FROM hapax_dead_letters";
    let mut cells = vec![None; events.len()];
    for row in texts(&rig.look(), &rows) {
        let (id, text) = row.split_once(' ').unwrap();
        cells[id.parse::<usize>().unwrap()] = Some(match text {
            "NULL" => Cell::Null,
            text => Cell::Holds(text.to_owned()),
        });
    }
    for letter in texts(&rig.look(), letters) {
        let [position, code, message, fingerprint]: [String; 4] = serde_json::from_str(&letter).unwrap();
        let place = &mut cells[position.parse::<usize>().unwrap()];
        assert_eq!(*place, None, "a row and a letter: {message}");
        *place = Some(Cell::Refused { code, message, fingerprint });
    }
    let cells: Vec<Cell> = cells.into_iter().map(|cell| cell.expect("a row or a letter")).collect();
    check("SQLite", &TYPES, &cells);
}
