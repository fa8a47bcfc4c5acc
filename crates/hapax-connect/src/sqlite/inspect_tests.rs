use super::super::rig::{Rig, texts};
use super::super::sample::bare;
use super::*;
use hapax_model::mode::ConflictMode;

const PLAIN: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, a)";

/// Goal: `check` changes nothing, not even the journal mode. Method: the file's bytes before and after.
#[tokio::test]
async fn a_check_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    Connection::open(&path).unwrap().execute_batch(PLAIN).unwrap();
    let before = std::fs::read(&path).unwrap();
    let live = check_live(&SqliteSinkConfig::new(&path, "t")).await.unwrap();
    assert_eq!((live.mapping.mode, live.identity), (ConflictMode::Update, None));
    assert!(live.mapping.why.contains("primary key"), "{}", live.mapping.why);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Goal: `check` and `run` see one identity. Method: compare after the first claim.
#[tokio::test]
async fn a_check_sees_the_identity_that_a_run_made() {
    let mut rig = Rig::new(PLAIN, |_| ()).await;
    let made = hapax_engine::sink::Target::inspect(&mut rig.sink).await.unwrap();
    assert_eq!(check_live(&rig.config).await.unwrap().identity, Some(made));
}

/// Goal: a missing table is named with a statement that makes it; a refused target gets none of our tables.
/// Method: type what the message says, then try again.
#[tokio::test]
async fn a_missing_table_is_named_with_its_cure() {
    let mut rig = Rig::unclaimed("CREATE TABLE other (a)", |_| ()).await;
    let error = hapax_engine::sink::Target::inspect(&mut rig.sink).await.unwrap_err();
    assert_eq!(error.code(), NO_TABLE);
    let message = error.to_string();
    let cure = &message[message.find("CREATE TABLE").unwrap()..];
    assert_eq!(texts(&rig.look(), "SELECT name FROM sqlite_schema"), ["other"]);
    rig.look().execute_batch(cure).unwrap();
    rig.claim().await;
    let error = check_live(&SqliteSinkConfig::new(rig.database.place.path(), "")).await.unwrap_err();
    assert_eq!(error.code(), NO_TABLE);
    let error = check_live(&SqliteSinkConfig::new("/nowhere/a.db", "t")).await.unwrap_err();
    assert_eq!(error.code(), "HX4001");
}

/// Goal: a view is refused. Method: one with an INSTEAD OF trigger, which would swallow rows.
#[tokio::test]
async fn a_view_is_refused() {
    let ddl = "CREATE TABLE x (a); CREATE VIEW t AS SELECT a FROM x; \
               CREATE TRIGGER i INSTEAD OF INSERT ON t BEGIN SELECT 1; END";
    let rig = Rig::unclaimed(ddl, |_| ()).await;
    assert_eq!(check_live(&rig.config).await.unwrap_err().code(), NO_PLAIN_TABLE);
}

/// Goal: the marker is one per table, costs writes nothing and lets deletes through. Method: two sinks, then delete.
#[tokio::test]
async fn the_marker_is_one_and_harmless() {
    let rig = Rig::new(PLAIN, |_| ()).await;
    let connection = bare(&rig.database.place.path());
    inspect(&connection, &rig.config).unwrap();
    let triggers = texts(&connection, "SELECT sql FROM sqlite_schema WHERE type = 'trigger'");
    assert!(matches!(&triggers[..], [one] if one.contains("WHEN 0")), "{triggers:?}");
    connection.execute_batch("INSERT INTO t VALUES (1, 2), (2, 3)").unwrap();
    assert_eq!(connection.execute("DELETE FROM t", []), Ok(2));
}
