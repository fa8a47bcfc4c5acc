use hapax_engine::sink::Reaction;
use hapax_model::epoch::Epoch;

use super::*;

fn failure(code: i32) -> Error {
    Error::SqliteFailure(ffi::Error::new(code), Some("what SQLite said".to_owned()))
}

/// Goal: every way in which SQLite can refuse leads to the right variant. Method: list the codes.
#[test]
fn each_refusal_of_the_target_has_its_variant() {
    let cases = [
        (ffi::SQLITE_BUSY, "HX4003"),
        (ffi::SQLITE_BUSY_SNAPSHOT, "HX4003"),
        (ffi::SQLITE_LOCKED, "HX4003"),
        (ffi::SQLITE_FULL, "HX4002"),
        (ffi::SQLITE_IOERR_WRITE, "HX4002"),
        (ffi::SQLITE_READONLY, "HX4016"),
        (ffi::SQLITE_PERM, "HX4016"),
        (ffi::SQLITE_AUTH, "HX4016"),
        (ffi::SQLITE_NOTADB, "HX4101"),
        (ffi::SQLITE_CORRUPT, "HX4101"),
        (ffi::SQLITE_CANTOPEN, "HX4001"),
        (ffi::SQLITE_SCHEMA, "HX4011"),
        (ffi::SQLITE_NOMEM, "HX4004"),
    ];
    for (code, expected) in cases {
        let error = sink_error(Path::new("/no/such/a.db"), During::Claim, &failure(code));
        assert_eq!(error.code(), expected, "{code}: {error}");
    }
    let full = sink_error(Path::new("/a.db"), During::Epoch(Epoch(3)), &failure(ffi::SQLITE_FULL)).to_string();
    assert!(full.contains("disk full") && full.contains("free space") && full.contains("nothing was lost"), "{full}");
}

/// Goal: what is not understood is judged by what was being done. Method: one unknown error, each time.
#[test]
fn an_unknown_error_is_judged_by_what_was_being_done() {
    let at = |during| sink_error(Path::new("/a.db"), during, &failure(ffi::SQLITE_MISUSE));
    assert_eq!(at(During::Look).code(), "HX4002");
    assert_eq!(at(During::Claim).code(), "HX4004");
    assert_eq!(at(During::Epoch(Epoch(3))).code(), "HX4007");
}

/// Goal: only a commit whose end is unknown is in doubt. Method: each end of a COMMIT, and a panic.
#[test]
fn only_an_unknown_end_of_a_commit_is_doubt() {
    let (path, during) = (Path::new("/a.db"), During::Epoch(Epoch(3)));
    let rolled_back = |code| CommitEnd::RolledBack { code, message: "no".to_owned() };
    let reaction = |end| after_commit(path, during, end).map_err(|error| error.reaction());
    assert_eq!(reaction(CommitEnd::Committed), Ok(()));
    assert_eq!(reaction(rolled_back(ErrorCode::DiskFull)), Err(Reaction::Retry));
    assert_eq!(reaction(rolled_back(ErrorCode::DatabaseBusy)), Err(Reaction::Retry));
    assert_eq!(reaction(rolled_back(ErrorCode::ConstraintViolation)), Err(Reaction::Retry));
    assert_eq!(reaction(CommitEnd::InDoubt { message: String::new() }), Err(Reaction::InDoubt));
    let panicked = SessionLost::Panicked { path: path.to_owned(), message: String::new() };
    assert_eq!(session_lost(path, during, &panicked).reaction(), Reaction::InDoubt);
    assert_eq!(session_lost(path, During::Look, &panicked).reaction(), Reaction::Retry);
}

/// Goal: a database that cannot be opened is named with the right code. Method: each kind of open error.
#[test]
fn each_failure_to_open_has_its_variant() {
    let path = PathBuf::from("/a/b.db");
    let message = || "x".to_owned();
    let cases = [
        (OpenError::Missing { path: path.clone() }, "HX4001"),
        (OpenError::Folder { path: path.clone() }, "HX4001"),
        (OpenError::MissingFolder { path: path.clone(), folder: "/a".into() }, "HX4001"),
        (OpenError::Failed { path: path.clone(), message: message() }, "HX4001"),
        (OpenError::Busy { path: path.clone(), message: message() }, "HX4003"),
        (OpenError::Denied { path: path.clone(), message: message() }, "HX4016"),
        (OpenError::NotADatabase { path: path.clone(), message: message() }, "HX4101"),
        (OpenError::NoWriteAheadLog { path, mode: "delete".into(), message: message() }, "HX4102"),
    ];
    for (error, code) in cases {
        assert_eq!(open_error(&error).code(), code, "{error}");
        assert!(open_error(&error).to_string().contains("/a/b.db"));
    }
}

fn code_of(connection: &Connection, sql: &str) -> String {
    let error = connection.execute_batch(sql).unwrap_err();
    match row_fault(&error) {
        RowFault::Row { code, .. } => code.to_owned(),
        other @ (RowFault::Schema | RowFault::Target) => format!("{other:?}"),
    }
}

/// Goal: whose fault an error is, as the SQLite that we ship reports it. Method: break every kind of rule for real.
#[test]
fn a_row_that_breaks_a_rule_is_told_from_a_table_that_changed() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = ON;
             CREATE TABLE parent (id INTEGER PRIMARY KEY);
             CREATE TABLE t (
               id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT '', mail TEXT UNIQUE, age INTEGER CHECK (age < 200),
               boss INTEGER REFERENCES parent, doc TEXT CHECK (doc IS NULL OR json_extract(doc, '$.a') IS NOT 1)
             );
             CREATE TABLE strict (a INTEGER) STRICT;
             CREATE TRIGGER refuse BEFORE INSERT ON t WHEN new.age = 99
               BEGIN SELECT RAISE(ABORT, 'age 99 of row 17 is refused'); END;
             INSERT INTO t (id, mail) VALUES (1, 'a');",
        )
        .unwrap();
    connection.set_limit(rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH, 2000).unwrap();
    let cases = [
        ("INSERT INTO t (id, name) VALUES (2, NULL)", "HX2030"),
        ("INSERT INTO t (id) VALUES (1)", "HX2031"),
        ("INSERT INTO t (id, mail) VALUES (2, 'a')", "HX2031"),
        ("INSERT INTO t (id, age) VALUES (2, 300)", "HX2032"),
        ("INSERT INTO t (id, boss) VALUES (2, 7)", "HX2033"),
        ("INSERT INTO strict (a) VALUES ('x')", "HX2034"),
        ("INSERT INTO t (id) VALUES ('x')", "HX2034"),
        ("INSERT INTO t (id, name) VALUES (2, hex(zeroblob(1500)))", "HX2035"),
        ("INSERT INTO t (id, age) VALUES (2, 99)", "HX2036"),
        ("INSERT INTO t (id, doc) VALUES (2, '{')", "HX2037"),
        ("INSERT INTO t (id, gone) VALUES (2, 1)", "Schema"),
        ("INSERT INTO gone (id) VALUES (2)", "Schema"),
    ];
    for (sql, code) in cases {
        assert_eq!(code_of(&connection, sql), code, "{sql}");
    }
    connection
        .execute_batch("CREATE TRIGGER late AFTER INSERT ON parent BEGIN INSERT INTO gone VALUES (1); END")
        .unwrap();
    assert_eq!(code_of(&connection, "INSERT INTO parent VALUES (1)"), "Schema");
    for code in [ffi::SQLITE_BUSY, ffi::SQLITE_FULL, ffi::SQLITE_IOERR, ffi::SQLITE_NOMEM, ffi::SQLITE_READONLY] {
        assert_eq!(row_fault(&failure(code)), RowFault::Target, "{code}");
    }
}

/// Goal: letters of one cause share a fingerprint. Method: messages that differ only in a row's values.
#[test]
fn a_fingerprint_has_no_values_of_the_row() {
    assert_eq!(fingerprint("age 99 of row 17 is refused"), "age # of row # is refused");
    assert_eq!(fingerprint("name 'O' is bad"), fingerprint("name 'Pöl' is bad"));
    assert_eq!(fingerprint("an open 'quote"), "an open '…");
    assert_eq!(fingerprint("UNIQUE constraint failed: t.mail"), "UNIQUE constraint failed: t.mail");
}
