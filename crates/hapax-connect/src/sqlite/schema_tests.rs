use super::*;

fn table(sql: &str) -> SqliteTable {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(sql).unwrap();
    match read(&connection, "T").unwrap() {
        Found::Table(live) => live,
        other @ (Found::Nothing | Found::Other(_)) => panic!("{other:?}"),
    }
}

/// Goal: types mean to us what they mean to SQLite. Method: insert '12' into each and ask SQLite what it kept.
#[test]
fn a_declared_type_has_the_affinity_that_sqlite_gives_it() {
    let connection = Connection::open_in_memory().unwrap();
    let kept = |declared: &str| -> String {
        let sql = format!("CREATE TABLE p (c {declared}); INSERT INTO p VALUES ('12'), (7), (x'00');");
        connection.execute_batch(&sql).unwrap();
        let kept = connection.query_row("SELECT group_concat(typeof(c)) FROM p", [], |row| row.get(0)).unwrap();
        connection.execute_batch("DROP TABLE p").unwrap();
        kept
    };
    for declared in [
        "INTEGER",
        "BIGINT",
        "TEXT",
        "VARCHAR(9)",
        "CLOB",
        "BLOB",
        "",
        "REAL",
        "DOUBLE",
        "FLOAT",
        "DATE",
        "DECIMAL(9,2)",
    ] {
        let expected = match affinity(declared, Typing::Loose) {
            Affinity::Integer | Affinity::Numeric => "integer,integer,blob",
            Affinity::Real => "real,real,blob",
            Affinity::Text => "text,text,blob",
            Affinity::Blob | Affinity::Any => "text,integer,blob",
        };
        assert_eq!(kept(declared), expected, "{declared}");
    }
    assert_eq!(affinity("ANY", Typing::Strict), Affinity::Any);
    assert_eq!(affinity("FLOATING POINT", Typing::Loose), Affinity::Integer, "SQLite finds INT in POINT");
}

/// Goal: what fills itself, what must have a value and what nobody can write is known. Method: a table with all of it.
#[test]
fn columns_are_read_with_their_rules() {
    let live = table(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL, b TEXT NOT NULL DEFAULT 'x', c, \
         d AS (a || b), e AS (c) STORED)",
    );
    let facts: Vec<_> = live.live.columns.iter().map(|c| (c.name.as_str(), c.required, c.fills_itself)).collect();
    assert_eq!(facts, [("id", true, true), ("a", true, false), ("b", true, true), ("c", false, false)]);
    assert_eq!(live.live.primary_key, ["id"]);
    assert_eq!(live.live.unique, [UniqueIndex { name: String::new(), columns: vec!["id".into()], flaw: None }]);
    assert_eq!(live.row_numbers, RowNumbers::Rowid);
    assert!(live.live.column("B").is_some());
}

/// Goal: keys are found in every kind of table, and NULL is known where SQLite allows it. Method: one table each.
#[test]
fn primary_keys_are_read_from_every_kind_of_table() {
    let live = table("CREATE TABLE t (a TEXT, b INT, PRIMARY KEY (b, a)) WITHOUT ROWID");
    assert_eq!(
        (live.live.primary_key.as_slice(), live.row_numbers),
        (["b".to_owned(), "a".to_owned()].as_slice(), RowNumbers::None)
    );
    assert!(live.live.columns.iter().all(|c| c.required));
    let live = table("CREATE TABLE t (a TEXT PRIMARY KEY)");
    assert!(!live.live.columns[0].required, "an old oddity of SQLite: this key may be NULL");
    let live = table("CREATE TABLE t (a TEXT PRIMARY KEY) STRICT");
    assert!(live.live.columns[0].required);
    let live = table("CREATE TABLE t (a INT PRIMARY KEY)");
    assert!(!live.live.columns[0].required, "only INTEGER is the row's number");
}

/// Goal: an index that cannot be an arbiter is known with the reason. Method: each flaw.
#[test]
fn flawed_indexes_are_named() {
    let live = table(
        "CREATE TABLE t (a TEXT NOT NULL, b TEXT COLLATE NOCASE, c); CREATE UNIQUE INDEX plain ON t (a); \
         CREATE UNIQUE INDEX part ON t (a) WHERE c > 0; CREATE UNIQUE INDEX expression ON t (lower(a)); \
         CREATE UNIQUE INDEX cased ON t (b); CREATE UNIQUE INDEX trimmed ON t (a COLLATE RTRIM); \
         CREATE INDEX not_unique ON t (c)",
    );
    let flaw = |name: &str| {
        let index = live.live.unique.iter().find(|index| index.name == name).unwrap();
        index.flaw.clone().unwrap_or_default()
    };
    assert_eq!(flaw("plain"), "");
    assert!(flaw("part").contains("WHERE"));
    assert!(flaw("expression").contains("expression"));
    assert!(flaw("cased").contains("NOCASE"));
    assert!(flaw("trimmed").contains("RTRIM"));
    assert_eq!(live.live.unique.len(), 5);
}

/// Goal: what is no ordinary table is not taken for one. Method: each kind.
#[test]
fn views_and_their_like_are_told_from_tables() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE VIEW v AS SELECT 1; CREATE VIRTUAL TABLE f USING fts5(a); CREATE TEMP TABLE m (a)")
        .unwrap();
    for (name, word) in [("v", "view"), ("f", "virtual"), ("f_data", "internal"), ("m", "temporary")] {
        match read(&connection, name).unwrap() {
            Found::Other(what) => assert!(what.contains(word), "{name}: {what}"),
            other @ (Found::Nothing | Found::Table(_)) => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(read(&connection, "none").unwrap(), Found::Nothing);
}

/// Goal: a foreign key that is only checked at COMMIT is seen, in both directions. Method: spellings of it.
#[test]
fn deferred_foreign_keys_are_seen() {
    let sql = "CREATE TABLE parent (id INTEGER PRIMARY KEY);
               CREATE TABLE t (id INTEGER PRIMARY KEY, p REFERENCES parent DEFERRABLE initially\n deferred);
               CREATE TABLE child (t REFERENCES t DEFERRABLE INITIALLY DEFERRED);
               CREATE TABLE fine (t REFERENCES t DEFERRABLE INITIALLY IMMEDIATE);";
    assert_eq!(table(sql).live.deferred, [DeferredKey::Own, DeferredKey::Of("child".into())]);
}

/// Goal: any change of the schema moves its version. Method: read, change, read.
#[test]
fn the_version_moves_with_the_schema() {
    let connection = Connection::open_in_memory().unwrap();
    let before = version(&connection).unwrap();
    connection.execute_batch("CREATE TABLE t (a)").unwrap();
    assert_ne!(version(&connection).unwrap(), before);
}
