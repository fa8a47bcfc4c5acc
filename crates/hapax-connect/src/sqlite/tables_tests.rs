use std::process::Command;

use super::super::sample::{Place, bare};
use super::*;

/// Goal: making the tables twice changes nothing, and the id is made once. Method: ensure in each role, again.
#[test]
fn the_tables_are_made_once() {
    let place = Place::new();
    let connection = bare(&place.path());
    assert_eq!(database_id(&connection).unwrap(), None);
    let id = ensure(&connection, Role::Target).unwrap();
    assert_eq!(id.len(), 32);
    assert!(!has_table(&connection, "hapax_leases").unwrap());
    assert_eq!(ensure(&connection, Role::State).unwrap(), id);
    assert!(has_table(&connection, "hapax_leases").unwrap());
    assert_eq!(ensure(&connection, Role::Target).unwrap(), id);
    assert_eq!(database_id(&connection).unwrap(), Some(id.clone()));
    let elsewhere = Place::new();
    assert_ne!(ensure(&elsewhere.connect(), Role::Target).unwrap(), id);
}

/// Goal: several workers may start on a new file at once. Method: eight threads, each with a connection of its own.
#[test]
fn several_workers_make_the_tables_at_once() {
    let place = Place::new();
    bare(&place.path());
    let path = place.path();
    let makers: Vec<_> = (0..8)
        .map(|n| {
            let path = path.clone();
            let role = if n % 2 == 0 { Role::Target } else { Role::State };
            std::thread::spawn(move || ensure(&bare(&path), role).unwrap())
        })
        .collect();
    let ids: Vec<_> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
}

/// Goal: a program never writes tables that it does not understand. Method: a newer version, and none at all.
#[test]
fn newer_tables_are_refused_with_the_cure() {
    let place = Place::new();
    let connection = place.connect();
    for (version, expected) in [("2", "use the newer program"), ("x", "no number")] {
        connection.execute("UPDATE hapax_meta SET value = ?1 WHERE name = 'version'", [version]).unwrap();
        let error = ensure(&connection, Role::Target).unwrap_err();
        assert_eq!(error.code(), "HX4015");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Goal: progress that was lost does not start again from nothing in silence. Method: drop one table by hand.
#[test]
fn a_missing_table_of_ours_is_refused() {
    let place = Place::new();
    let connection = place.connect();
    connection.execute_batch("DROP TABLE hapax_progress").unwrap();
    for role in [Role::Target, Role::State] {
        let error = ensure(&connection, role).unwrap_err();
        assert!(
            matches!(error, SinkError::OwnTables { .. }) && error.to_string().contains("hapax_progress"),
            "{error}"
        );
    }
}

const KILLED: &str = "HAPAX_TEST_KILLED_IN_ENSURE";

/// Not a test of its own: run as another process by the test below, it dies while it makes the tables.
#[test]
#[ignore = "the other process of a_kill_while_making_the_tables_leaves_nothing_half_made"]
fn dies_while_making_the_tables_when_another_test_asks_for_it() {
    let path = std::env::var_os(KILLED).expect("another test runs this one and names the database");
    let connection = bare(std::path::Path::new(&path));
    let half = DDL.find("CREATE TABLE IF NOT EXISTS hapax_dead_letters").unwrap();
    connection.execute_batch(&format!("BEGIN IMMEDIATE; {}", &DDL[..half])).unwrap();
    std::process::abort();
}

/// Goal: a worker killed while it makes the tables leaves a file that the next one can use.
/// Method: a real process that dies half-way through.
#[test]
fn a_kill_while_making_the_tables_leaves_nothing_half_made() {
    let place = Place::new();
    let path = place.path();
    let me = "sqlite::tables::tests::dies_while_making_the_tables_when_another_test_asks_for_it";
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", me])
        .env(KILLED, &path)
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success(), "the other process was to die");
    let connection = bare(&path);
    assert_eq!(database_id(&connection).unwrap(), None);
    assert!(!has_table(&connection, "hapax_meta").unwrap());
    ensure(&connection, Role::Target).unwrap();
}

/// Goal: nothing of ours stays, and nothing of the user's goes. Method: drop all beside a user's table and trigger.
#[test]
fn dropping_takes_ours_and_leaves_the_users() {
    let place = Place::new();
    let connection = place.connect();
    connection
        .execute_batch(
            "CREATE TABLE orders (id INTEGER);
             CREATE TRIGGER own AFTER INSERT ON orders BEGIN SELECT 1; END;
             CREATE TRIGGER \"hapax_marker_a\"\"b\" AFTER INSERT ON orders BEGIN SELECT 1; END;",
        )
        .unwrap();
    drop_all(&connection).unwrap();
    let names: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema ORDER BY name")
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
        .unwrap();
    assert_eq!(names, ["orders", "own"]);
    drop_all(&connection).unwrap();
    assert!(ddl(Role::State).contains("hapax_intents") && !ddl(Role::Target).contains("hapax_intents"));
}
