use hapax_engine::rows::{ByHash, RowOrder};
use hapax_model::key::KeyHash;
use hapax_model::mode::ConflictMode;

use super::super::rig::Rig;
use super::*;
use crate::table::config::Deletes;

async fn states_of(rig: &Rig, inputs: &[&str]) -> Vec<RowState> {
    let mut rows = SqliteRows::open(&rig.config).await.unwrap();
    let batch = Arc::new(rig.batch(inputs));
    let all = (0..batch.len()).collect();
    rows.states(batch, all).await.unwrap()
}

async fn row_of(rig: &Rig, input: &str) -> Option<FoundRow> {
    let mut rows = SqliteRows::open(&rig.config).await.unwrap();
    rows.find(RowChoice::Event(Arc::new(rig.batch(&[input])), 0)).await.unwrap()
}

/// Goal: a row is found by its key's fields, whatever else the event says. Method: one that is there, one that is not.
#[tokio::test]
async fn a_row_is_found_by_its_key() {
    let ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, extra BLOB DEFAULT x'00ff')";
    let mut rig = Rig::new(ddl, |config| config.table.key_fields = vec!["id".parse().unwrap()]).await;
    rig.deliver(&[r#"{"id":1,"name":"a"}"#, r#"{"id":2,"name":null}"#]).await;
    let found = row_of(&rig, r#"{"id":2}"#).await.unwrap();
    let expected = [("id", Some("2")), ("name", None), ("extra", Some("x'00ff'"))];
    let columns: Vec<_> = found.columns.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    assert_eq!((found.state, columns.as_slice()), (RowState::Present, expected.as_slice()));
    assert_eq!(row_of(&rig, r#"{"id":3}"#).await, None);
    let states = states_of(&rig, &[r#"{"id":3}"#, r#"{"id":1}"#, r#"{"id":"no number"}"#]).await;
    assert_eq!(states, [RowState::Absent, RowState::Present, RowState::NoKey]);
    let mut rows = SqliteRows::open(&rig.config).await.unwrap();
    assert_eq!(rows.count().await.unwrap(), 2);
    assert_eq!((rows.shape().key.as_slice(), rows.shape().by_hash), (&["id".to_owned()][..], ByHash::No));
}

/// Goal: a key column is asked by the hash, and a tombstone is no row. Method: mode newer, one row, one removed.
#[tokio::test]
async fn a_row_is_found_by_the_hash_and_a_tombstone_is_told_apart() {
    let ddl = "CREATE TABLE t (k BLOB NOT NULL UNIQUE, id INTEGER, hapax_version BLOB, hapax_deleted INTEGER)";
    let mut rig = Rig::new(ddl, |config| {
        config.table.key_column = Some("k".into());
        config.table.mode = Some(ConflictMode::Newer);
        config.table.deletes = Deletes::Some;
    })
    .await;
    rig.deliver(&[r#"{"id":1}"#, r#"{"id":2}"#]).await;
    let batch = rig.batch(&[r#"{"id":2}"#]);
    let key = batch.event(0).entity_key().unwrap();
    let mut rows = SqliteRows::open(&rig.config).await.unwrap();
    let found = rows.find(RowChoice::Hash(key)).await.unwrap().unwrap();
    assert_eq!(found.columns[1], ("id".to_owned(), Some("2".to_owned())));
    assert_eq!(rows.find(RowChoice::Hash(KeyHash([0; 16]))).await.unwrap(), None);
    assert_eq!((rows.shape().by_hash, rows.shape().order), (ByHash::Yes, RowOrder::Lane));
    rig.look().execute("UPDATE t SET hapax_deleted = 1 WHERE id = 2", []).unwrap();
    assert_eq!(rows.find(RowChoice::Hash(key)).await.unwrap().unwrap().state, RowState::Tombstone);
    let states = states_of(&rig, &[r#"{"id":1}"#, r#"{"id":2}"#]).await;
    assert_eq!(states, [RowState::Present, RowState::Tombstone]);
}

/// Goal: an event that does not fit is told without asking the table. Method: a text for a number, a missing value.
#[tokio::test]
async fn what_does_not_fit_is_told_beforehand() {
    let ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL)";
    let rig = Rig::new(ddl, |config| config.table.key_fields = vec!["id".parse().unwrap()]).await;
    let rows = SqliteRows::open(&rig.config).await.unwrap();
    let batch = rig.batch(&[r#"{"id":1,"amount":1}"#, r#"{"id":2,"amount":"x"}"#, r#"{"id":3}"#]);
    let misfits = rows.misfits(&batch);
    let found: Vec<(usize, &str)> = misfits.iter().map(|(event, cause)| (*event, cause.code)).collect();
    assert_eq!(found, [(1, "HX2020"), (2, "HX2021")]);
}

/// Goal: looking never writes, and a table without a key has no rows to find. Method: an append table; a missing file.
#[tokio::test]
async fn a_table_without_a_key_is_only_counted() {
    let mut rig =
        Rig::new("CREATE TABLE t (id INTEGER)", |config| config.table.mode = Some(ConflictMode::Append)).await;
    rig.deliver(&[r#"{"id":1}"#]).await;
    assert_eq!(row_of(&rig, r#"{"id":1}"#).await, None);
    assert_eq!(states_of(&rig, &[r#"{"id":1}"#]).await, [RowState::NoKey]);
    let mut rows = SqliteRows::open(&rig.config).await.unwrap();
    assert_eq!(rows.count().await.unwrap(), 1);
    let written = rows.run(|connection, _| Ok(connection.execute("DELETE FROM t", [])?)).await;
    assert!(matches!(written, Err(SinkError::Denied { .. })), "{written:?}");
    let nowhere = SqliteSinkConfig::new(rig.database.place.path().with_extension("none"), "t");
    assert!(SqliteRows::open(&nowhere).await.is_err());
}
