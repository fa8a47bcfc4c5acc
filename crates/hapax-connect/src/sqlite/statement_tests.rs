use hapax_model::field::FieldPath;

use super::super::schema::{Found, read};
use super::*;
use crate::table::config::{Deletes, TableConfig};
use crate::table::shape::AbsentSet;

fn mapping(mode: ConflictMode) -> Mapping<SqliteColumn> {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let sql =
        "CREATE TABLE \"t\"\"x\" (id INTEGER PRIMARY KEY, a TEXT NOT NULL, b, hapax_version BLOB, hapax_deleted INT)";
    connection.execute_batch(sql).unwrap();
    let mut config = TableConfig::new("t\"x");
    config.mode = Some(mode);
    if matches!(mode, ConflictMode::Update | ConflictMode::Newer) {
        config.deletes = Deletes::Some;
    }
    config.key_fields = vec![FieldPath::of_name("id")];
    let Found::Table(live) = read(&connection, "t\"x").unwrap() else { panic!("no table") };
    Mapping::resolve(&config, &live.live).unwrap()
}

fn text(mode: ConflictMode, kind: RowKind, absent: &[usize], rows: usize) -> String {
    let mapping = mapping(mode);
    let mut set = AbsentSet::default();
    set.reset(mapping.columns.len());
    absent.iter().for_each(|at| set.insert(*at));
    sql(&RowShape::new(&mapping, kind, set), &mapping, rows).unwrap()
}

/// Goal: every mode says what PROTOCOL says, with the arbiter named. Method: the whole text.
#[test]
fn each_mode_has_its_statement() {
    let into = "INSERT INTO main.\"t\"\"x\" AS present";
    let upsert = |mode| text(mode, RowKind::Upsert, &[], 1);
    assert_eq!(upsert(ConflictMode::Append), format!("{into} (\"id\", \"a\", \"b\") VALUES (?, ?, ?)"));
    assert_eq!(
        upsert(ConflictMode::Ignore),
        format!("{into} (\"id\", \"a\", \"b\") VALUES (?, ?, ?) ON CONFLICT (\"id\") DO NOTHING")
    );
    assert_eq!(
        upsert(ConflictMode::Update),
        format!(
            "{into} (\"id\", \"a\", \"b\") VALUES (?, ?, ?) ON CONFLICT (\"id\") DO UPDATE SET \
             \"a\" = excluded.\"a\", \"b\" = excluded.\"b\""
        )
    );
    assert_eq!(
        upsert(ConflictMode::Newer),
        format!(
            "{into} (\"id\", \"a\", \"b\", \"hapax_version\", \"hapax_deleted\") VALUES (?, ?, ?, ?, 0) \
             ON CONFLICT (\"id\") DO UPDATE SET \"a\" = excluded.\"a\", \"b\" = excluded.\"b\", \
             \"hapax_version\" = excluded.\"hapax_version\", \"hapax_deleted\" = excluded.\"hapax_deleted\" \
             WHERE present.\"hapax_version\" IS NULL \
             OR present.\"hapax_version\" COLLATE BINARY < excluded.\"hapax_version\""
        )
    );
}

/// Goal: absent columns take no part, and many rows share one statement. Method: two rows without column b.
#[test]
fn absent_columns_are_left_out() {
    assert_eq!(
        text(ConflictMode::Update, RowKind::Upsert, &[2], 2),
        "INSERT INTO main.\"t\"\"x\" AS present (\"id\", \"a\") VALUES (?, ?), (?, ?) \
         ON CONFLICT (\"id\") DO UPDATE SET \"a\" = excluded.\"a\""
    );
    assert!(
        text(ConflictMode::Update, RowKind::Upsert, &[1, 2], 1).ends_with("DO UPDATE SET \"id\" = excluded.\"id\"")
    );
    assert!(text(ConflictMode::Append, RowKind::Upsert, &[0, 1, 2], 1).ends_with("AS present DEFAULT VALUES"));
}

/// Goal: deletes go by the key; a tombstone fills what must have a value and clears what need not. Method: the whole text.
#[test]
fn deletes_and_tombstones_have_their_statements() {
    assert_eq!(text(ConflictMode::Update, RowKind::Delete, &[], 1), "DELETE FROM main.\"t\"\"x\" WHERE \"id\" = ?");
    let tombstone = text(ConflictMode::Newer, RowKind::Tombstone, &[], 1);
    assert!(
        tombstone.contains("(\"id\", \"a\", \"b\", \"hapax_version\", \"hapax_deleted\") VALUES (?, '', NULL, ?, 1)"),
        "{tombstone}"
    );
    assert!(
        tombstone
            .contains("SET \"b\" = excluded.\"b\", \"hapax_version\" = excluded.\"hapax_version\", \"hapax_deleted\""),
        "{tombstone}"
    );
    assert!(tombstone.contains("IS NULL OR present"), "{tombstone}");
}

/// Goal: statements carry as many rows as was asked for, within SQLite's own limit. Method: wide and narrow rows.
#[test]
fn rows_per_statement_are_bounded() {
    let mapping = mapping(ConflictMode::Update);
    let shape = |kind| RowShape::new(&mapping, kind, AbsentSet::default());
    assert_eq!(rows_per_statement(&shape(RowKind::Upsert), 64), 64);
    assert_eq!(rows_per_statement(&shape(RowKind::Upsert), 0), 1);
    assert_eq!(rows_per_statement(&shape(RowKind::Upsert), 1_000_000), 32_766 / 3);
    assert_eq!(rows_per_statement(&shape(RowKind::Delete), 64), 1);
}

/// Goal: no statement can swallow a violation of another rule. Method: no mode says so.
#[test]
fn nothing_is_ever_replaced_or_ignored_wholesale() {
    for mode in [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer] {
        let text = text(mode, RowKind::Upsert, &[], 3);
        assert!(!text.contains("OR IGNORE") && !text.contains("REPLACE"), "{text}");
    }
}
