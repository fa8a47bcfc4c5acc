use hapax_model::field::FieldPath;

use super::super::config::{Deletes, SqliteSinkConfig};
use super::super::schema::{Found, read};
use super::*;

fn mapping(mode: ConflictMode) -> Mapping {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let sql =
        "CREATE TABLE \"t\"\"x\" (id INTEGER PRIMARY KEY, a TEXT NOT NULL, b, hapax_version BLOB, hapax_deleted INT)";
    connection.execute_batch(sql).unwrap();
    let mut config = SqliteSinkConfig::new("a.db", "t\"x");
    config.mode = Some(mode);
    if matches!(mode, ConflictMode::Update | ConflictMode::Newer) {
        config.deletes = Deletes::Some;
    }
    config.key_fields = vec![FieldPath::of_name("id")];
    let Found::Table(live) = read(&connection, "t\"x").unwrap() else { panic!("no table") };
    Mapping::resolve(&config, &live).unwrap()
}

fn sql(mode: ConflictMode, kind: RowKind, absent: &[usize], rows: usize) -> String {
    let mapping = mapping(mode);
    let mut set = AbsentSet::default();
    set.reset(mapping.columns.len());
    absent.iter().for_each(|at| set.insert(*at));
    RowShape::new(&mapping, kind, set).sql(&mapping, rows).unwrap()
}

/// Goal: every mode says what PROTOCOL says, with the arbiter named. Method: the whole text.
#[test]
fn each_mode_has_its_statement() {
    let into = "INSERT INTO main.\"t\"\"x\" AS present";
    let upsert = |mode| sql(mode, RowKind::Upsert, &[], 1);
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
        sql(ConflictMode::Update, RowKind::Upsert, &[2], 2),
        "INSERT INTO main.\"t\"\"x\" AS present (\"id\", \"a\") VALUES (?, ?), (?, ?) \
         ON CONFLICT (\"id\") DO UPDATE SET \"a\" = excluded.\"a\""
    );
    assert!(sql(ConflictMode::Update, RowKind::Upsert, &[1, 2], 1).ends_with("DO UPDATE SET \"id\" = excluded.\"id\""));
    assert!(sql(ConflictMode::Append, RowKind::Upsert, &[0, 1, 2], 1).ends_with("AS present DEFAULT VALUES"));
}

/// Goal: deletes go by the key; a tombstone fills what must have a value. Method: the whole text.
#[test]
fn deletes_and_tombstones_have_their_statements() {
    assert_eq!(sql(ConflictMode::Update, RowKind::Delete, &[], 1), "DELETE FROM main.\"t\"\"x\" WHERE \"id\" = ?");
    let tombstone = sql(ConflictMode::Newer, RowKind::Tombstone, &[], 1);
    assert!(
        tombstone.contains("(\"id\", \"a\", \"hapax_version\", \"hapax_deleted\") VALUES (?, '', ?, 1)"),
        "{tombstone}"
    );
    assert!(tombstone.contains("SET \"hapax_version\" = excluded.\"hapax_version\", \"hapax_deleted\""), "{tombstone}");
    assert!(tombstone.contains("IS NULL OR present"), "{tombstone}");
}

/// Goal: statements carry as many rows as was asked for, within SQLite's own limit. Method: wide and narrow rows.
#[test]
fn rows_per_statement_are_bounded() {
    let mapping = mapping(ConflictMode::Update);
    let shape = |kind| RowShape::new(&mapping, kind, AbsentSet::default());
    assert_eq!(shape(RowKind::Upsert).rows_per_statement(64), 64);
    assert_eq!(shape(RowKind::Upsert).rows_per_statement(0), 1);
    assert_eq!(shape(RowKind::Upsert).rows_per_statement(1_000_000), 32_766 / 3);
    assert_eq!(shape(RowKind::Delete).rows_per_statement(64), 1);
}

/// Goal: no statement can swallow a violation of another rule. Method: no mode says so.
#[test]
fn nothing_is_ever_replaced_or_ignored_wholesale() {
    for mode in [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer] {
        let text = sql(mode, RowKind::Upsert, &[], 3);
        assert!(!text.contains("OR IGNORE") && !text.contains("REPLACE"), "{text}");
    }
}

/// Goal: more than 64 columns are told apart. Method: one bit in each word.
#[test]
fn many_columns_can_be_absent() {
    let mut set = AbsentSet::default();
    set.reset(130);
    assert!(set.is_empty());
    set.insert(0);
    set.insert(129);
    assert_eq!((0..130).filter(|at| set.contains(*at)).collect::<Vec<_>>(), [0, 129]);
}
