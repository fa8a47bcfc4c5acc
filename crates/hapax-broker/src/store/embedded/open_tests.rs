//! Opening: who may, and what is refused.

use rusqlite::Connection;
use tempfile::TempDir;

use super::super::{Embedded, EmbeddedOptions, FILE};
use super::OpenError;
use crate::store::contract::{all, append_tens, led};
use crate::store::{Brokers, Log, Producers, Topics};

fn open(directory: &TempDir) -> Result<Embedded, OpenError> {
    Embedded::open(directory.path(), EmbeddedOptions::default())
}

fn refused(directory: &TempDir) -> OpenError {
    open(directory).map(|_| ()).unwrap_err()
}

/// Goal: two brokers never write one file. Method: open twice (a lock belongs to the open file, not to the process), then
/// once more after the first has closed.
#[test]
fn a_second_broker_is_refused_while_the_first_is_open() {
    let directory = TempDir::new().unwrap();
    let first = open(&directory).unwrap();
    let error = refused(&directory);
    assert_eq!(error.code(), "HX4551");
    assert!(error.to_string().contains(&directory.path().display().to_string()), "{error}");
    drop(first);
    open(&directory).unwrap();
}

/// Goal: a directory that cannot be used is named. Method: a file where the directory should be.
#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let error = Embedded::open(&file.join("inside"), EmbeddedOptions::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "HX4550");
    assert!(error.to_string().contains("inside"), "{error}");
}

/// Goal: an older program never writes into a newer file. Method: raise the version.
#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let directory = TempDir::new().unwrap();
    drop(open(&directory).unwrap());
    let path = directory.path().join(FILE);
    Connection::open(&path).unwrap().execute("UPDATE meta SET value = 99 WHERE name = 'schema'", []).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = refused(&directory);
    assert_eq!(error.code(), "HX4552");
    assert!(error.to_string().contains("99"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// Goal: nothing is written into somebody else's file. Method: another database; bytes that are none.
#[test]
fn a_file_that_is_not_ours_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join(FILE);
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (id INTEGER)").unwrap();
    assert_eq!(refused(&directory).code(), "HX4553");
    std::fs::write(&path, vec![b'x'; 100_000]).unwrap();
    let error = refused(&directory);
    assert_eq!(error.code(), "HX4553");
    assert!(error.to_string().contains(FILE), "{error}");
}

/// Goal: what was written is there again, under the same cluster id, and nobody leads. Method: close and open.
#[tokio::test]
async fn a_store_is_what_it_was_when_opened_again() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory).unwrap();
    let (cluster_id, led) = (store.cluster_id().to_owned(), led(&store).await);
    append_tens(&store, &led, 5).await;
    let (rows, topics) = (all(&store, led.partition).await, store.topics().await.unwrap());
    let block = store.producer_id_block().await.unwrap();
    drop(store);
    let store = open(&directory).unwrap();
    assert_eq!(store.cluster_id(), cluster_id);
    assert_eq!(store.topics().await.unwrap(), topics);
    assert_eq!(all(&store, led.partition).await, rows);
    assert_eq!(store.producer_id_block().await.unwrap().start, block.end);
    assert_eq!(store.leaders().await.unwrap(), [(led.partition, None, 1)]);
    let again = store.lead(&[led.partition]).await.unwrap().remove(0);
    assert_eq!((again.epoch, again.end), (2, 50));
}

/// Goal: a person can look at producers while the broker runs. Method: a second connection, by the tables' names.
#[tokio::test]
async fn people_can_query_producers_while_the_broker_runs() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory).unwrap();
    crate::store::contract::producers::a_snapshot_is_read_as_it_was_saved(&store).await;
    crate::store::contract::producers::a_producer_is_noted_and_forgotten(&store).await;
    let person = Connection::open(directory.path().join(FILE)).unwrap();
    let sql = "SELECT producer_id, last_sequence FROM producer_sequences ORDER BY producer_id";
    let mut statement = person.prepare(sql).unwrap();
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let found: Vec<(i64, i32)> = found.collect::<Result<_, _>>().unwrap();
    assert_eq!(found, [(3, 49), (4, -1), (9, 19)]);
    let sql = "SELECT client_id, transactional_id FROM producer_ids WHERE producer_id = 8";
    let found: (String, String) = person.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(found, ("shop".to_owned(), "payments".to_owned()));
}

/// Goal: what a broker keeps is its owner's to read, and no new directory on the way is lost with the power.
/// Method: a place three levels down that does not exist; the modes of all files, before and after something was written.
#[tokio::test]
async fn the_files_are_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TempDir::new().unwrap();
    let place = directory.path().join("new/and/deep");
    let store = Embedded::open(&place, EmbeddedOptions::default()).unwrap();
    let led = led(&store).await;
    append_tens(&store, &led, 5).await;
    let mut names = Vec::new();
    for file in std::fs::read_dir(&place).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.path());
        names.push(file.file_name().into_string().unwrap());
    }
    assert!(names.iter().any(|name| name.ends_with("-wal")), "{names:?}");
}
