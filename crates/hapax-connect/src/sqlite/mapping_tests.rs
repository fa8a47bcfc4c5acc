use hapax_model::mode::{ConflictMode, ProgressPlace};

use super::super::schema::{Found, read};
use super::*;
use crate::table::config::{Columns, Deletes, TableConfig};
use crate::table::live::LiveTable;
use crate::table::mapping::{Feed, Mapping};

fn live(sql: &str) -> LiveTable<SqliteColumn> {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch(sql).unwrap();
    match read(&connection, "t").unwrap() {
        Found::Table(live) => live.live,
        other @ (Found::Nothing | Found::Other(_)) => panic!("{other:?}"),
    }
}

fn config(mode: Option<ConflictMode>, keys: &[&str]) -> TableConfig {
    let key_fields = keys.iter().map(|key| key.parse().unwrap()).collect();
    TableConfig { mode, key_fields, ..TableConfig::new("t") }
}

fn code(config: &TableConfig, sql: &str) -> &'static str {
    Mapping::resolve(config, &live(sql)).map_or_else(|unfit| unfit.code, |_| "fit")
}

/// Goal: columns take fields of their own name unless they are mapped. Method: a mapped, a plain and a special column.
#[test]
fn columns_are_fed_by_name_or_by_mapping() {
    let mut config = config(Some(ConflictMode::Update), &[".order.id"]);
    config.columns.map = vec![("ID".into(), ".order.id".parse().unwrap())];
    let live = live("CREATE TABLE t (id INTEGER PRIMARY KEY, total REAL, hapax_version BLOB, twice AS (total * 2))");
    let mapping = Mapping::resolve(&config, &live).unwrap();
    let fields: Vec<String> = mapping.fields.iter().map(ToString::to_string).collect();
    assert_eq!(fields, [".order.id", ".total"]);
    assert_eq!(mapping.columns.iter().map(|c| c.feed).collect::<Vec<_>>(), [Feed::Field(0), Feed::Field(1)]);
    assert_eq!((mapping.key, mapping.version), (vec![0], None));
}

/// Goal: the mode that nobody wrote is the one that DESIGN names, with its reason. Method: each case.
#[test]
fn the_default_mode_follows_from_what_is_known() {
    let resolve = |config: &TableConfig, sql| {
        let mapping = Mapping::resolve(config, &live(sql)).unwrap();
        (mapping.mode, mapping.why)
    };
    let (mode, why) = resolve(&config(None, &[]), "CREATE TABLE t (a)");
    assert_eq!((mode, why.contains("neither")), (ConflictMode::Append, true));
    let (mode, why) = resolve(&config(None, &[]), "CREATE TABLE t (a INTEGER PRIMARY KEY)");
    assert_eq!((mode, why.contains("primary key \"a\"")), (ConflictMode::Update, true));
    let (mode, why) = resolve(&config(None, &["b"]), "CREATE TABLE t (a, b NOT NULL UNIQUE)");
    assert_eq!((mode, why.contains("key fields .b")), (ConflictMode::Update, true));
    let (mode, why) = resolve(&config(Some(ConflictMode::Append), &["b"]), "CREATE TABLE t (a, b)");
    assert_eq!((mode, why.as_str()), (ConflictMode::Append, "as configured"));
}

/// Goal: a table that cannot keep the promise is refused with its own code. Method: one flaw at a time.
#[test]
fn an_unfit_table_is_refused_with_its_code() {
    let (update, ignore, newer) = (Some(ConflictMode::Update), Some(ConflictMode::Ignore), Some(ConflictMode::Newer));
    let append = Some(ConflictMode::Append);
    let good = "CREATE TABLE t (a NOT NULL UNIQUE, b)";
    assert_eq!(code(&config(update, &["a"]), good), "fit");
    assert_eq!(code(&config(update, &["a"]), "CREATE TABLE t (a NOT NULL, b)"), "HX4112");
    assert_eq!(code(&config(ignore, &["a"]), "CREATE TABLE t (a NOT NULL, b, UNIQUE (a, b))"), "HX4112");
    assert_eq!(code(&config(update, &["a"]), "CREATE TABLE t (a NOT NULL COLLATE NOCASE UNIQUE)"), "HX4112");
    assert_eq!(
        code(&config(update, &["a"]), "CREATE TABLE t (a NOT NULL, b); CREATE UNIQUE INDEX i ON t (a) WHERE b"),
        "HX4112"
    );
    assert_eq!(code(&config(ignore, &[]), "CREATE TABLE t (a)"), "HX4112");
    assert_eq!(code(&config(update, &["a"]), "CREATE TABLE t (a UNIQUE)"), "HX4113");
    assert_eq!(code(&config(update, &["x"]), good), "HX4114");
    let mapped = TableConfig {
        columns: Columns { map: vec![("x".into(), "a".parse().unwrap())], ..Default::default() },
        ..config(append, &[])
    };
    assert_eq!(code(&mapped, good), "HX4114");
    assert_eq!(
        code(&config(update, &["a"]), "CREATE TABLE t (a NOT NULL UNIQUE, hapax_version BLOB NOT NULL)"),
        "HX4115"
    );
    assert_eq!(code(&config(newer, &["a"]), good), "HX4116");
    assert_eq!(code(&config(newer, &["a"]), "CREATE TABLE t (a NOT NULL UNIQUE, hapax_version TEXT)"), "HX4116");
    assert_eq!(code(&config(newer, &["a"]), "CREATE TABLE t (a NOT NULL UNIQUE, hapax_version BLOB)"), "fit");
    let deferred =
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE t (a REFERENCES p DEFERRABLE INITIALLY DEFERRED)";
    assert_eq!(code(&config(append, &[]), deferred), "HX4118");
}

/// Goal: keys and versions by name. Method: `keyColumn` and `versionColumn`, right and wrong.
#[test]
fn named_special_columns_are_checked() {
    let with = |key: &str, version: Option<&str>| TableConfig {
        key_column: Some(key.into()),
        version_column: version.map(Into::into),
        ..config(Some(ConflictMode::Newer), &["id"])
    };
    let sql = "CREATE TABLE t (k BLOB PRIMARY KEY NOT NULL, n INTEGER NOT NULL UNIQUE, seq INTEGER, id)";
    assert_eq!(code(&with("k", Some("seq")), sql), "fit");
    assert_eq!(code(&with("k", None), sql), "HX4116");
    assert_eq!(code(&with("k", Some("x")), sql), "HX4114");
    assert_eq!(code(&with("n", Some("seq")), sql), "HX4113");
    assert_eq!(code(&with("x", Some("seq")), sql), "HX4114");
    let elsewhere = TableConfig { progress: ProgressPlace::State, ..with("k", None) };
    assert_eq!(code(&elsewhere, "CREATE TABLE t (k BLOB PRIMARY KEY NOT NULL, hapax_version BLOB)"), "HX4116");
}

/// Goal: deletes are refused where they cannot be written. Method: every mode.
#[test]
fn deletes_need_a_mode_that_has_them() {
    let with = |mode| TableConfig { deletes: Deletes::Some, ..config(Some(mode), &["a"]) };
    let sql = "CREATE TABLE t (a NOT NULL UNIQUE, hapax_version BLOB)";
    assert_eq!(code(&with(ConflictMode::Append), sql), "HX4117");
    assert_eq!(code(&with(ConflictMode::Ignore), sql), "HX4117");
    assert_eq!(code(&with(ConflictMode::Update), sql), "fit");
    assert_eq!(code(&with(ConflictMode::Newer), sql), "HX4117");
    let sql = "CREATE TABLE t (a NOT NULL UNIQUE, hapax_version BLOB, hapax_deleted)";
    assert_eq!(code(&with(ConflictMode::Newer), sql), "fit");
    let child = "CREATE TABLE t (a NOT NULL UNIQUE); CREATE TABLE c (t REFERENCES t (a) DEFERRABLE INITIALLY DEFERRED)";
    assert_eq!(code(&with(ConflictMode::Update), child), "HX4118");
    assert_eq!(code(&config(Some(ConflictMode::Update), &["a"]), child), "fit");
}

/// Goal: a refusal says what to type. Method: the message of a missing index.
#[test]
fn a_missing_index_is_named_with_its_cure() {
    let unfit = Mapping::resolve(&config(Some(ConflictMode::Update), &["a"]), &live("CREATE TABLE t (a NOT NULL)"));
    let message = unfit.unwrap_err().message;
    assert!(message.contains("CREATE UNIQUE INDEX \"t_a\" ON \"t\" (\"a\")"), "{message}");
}
