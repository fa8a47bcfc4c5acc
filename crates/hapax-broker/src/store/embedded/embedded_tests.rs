//! The contract over the embedded store, and what only this store must do.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::{Embedded, EmbeddedOptions, FILE, FULL};
use crate::model::{Offset, PartitionId};
use crate::store::contract::{all, append_tens, led, row, topic};
use crate::store::{Append, Appended, Log, StoreError, Topics};

async fn make() -> (TempDir, Embedded) {
    let directory = TempDir::new().unwrap();
    let store = Embedded::open(directory.path(), EmbeddedOptions::default()).unwrap();
    (directory, store)
}

mod contract {
    crate::store::contract::contract_tests!(super::make);
}

/// Goal: without room nothing is half written, and with room again all goes on.
/// Method: SQLite's own limit of pages; a group of two rows of which the second does not fit.
#[tokio::test]
async fn a_full_disk_refuses_whole_and_goes_on_later() {
    let (_directory, store) = make().await;
    let led = led(&store).await;
    append_tens(&store, &led, 3).await;
    let before = all(&store, led.partition).await;
    limit(&store, 20).await;
    let rows = vec![row(led.partition, 30, 39, 9000, 100), row(led.partition, 40, 49, 9000, 4 << 20)];
    let group = Append { led: vec![(led.partition, led.epoch)], rows };
    let error = store.append(group.clone()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Full(why) if why.contains("HX4555")), "{error}");
    assert_eq!(FULL, "HX4555");
    assert_eq!(all(&store, led.partition).await, before);
    limit(&store, 1 << 20).await;
    assert_eq!(store.append(group).await, Ok(Appended::Done));
    assert_eq!(all(&store, led.partition).await.len(), 5);
}

async fn limit(store: &Embedded, pages: u32) {
    let set = move |connection: &Connection| {
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        Ok(())
    };
    store.writer.call(set).await.unwrap();
}

/// Goal: a refused operation spoils nothing of those that share its commit.
/// Method: the writer is held by a lock from outside while good and bad operations gather; then all are answered.
#[tokio::test]
async fn a_refused_operation_spoils_no_other_of_the_same_commit() {
    let (directory, store) = make().await;
    let led = led(&store).await;
    let person = Connection::open(directory.path().join(FILE)).unwrap();
    person.execute_batch("BEGIN IMMEDIATE").unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        person.execute_batch("COMMIT").unwrap();
    });
    let group = |epoch, base| Append {
        led: vec![(led.partition, epoch)],
        rows: vec![row(led.partition, base, base + 9, base, 100)],
    };
    // The third has a good row before the one that is there already.
    let mut twice = group(led.epoch, 10);
    twice.rows.push(row(led.partition, 0, 9, 0, 100));
    let (first, old, twice, second, made) = tokio::join!(
        store.append(group(led.epoch, 0)),
        store.append(group(led.epoch - 1, 10)),
        store.append(twice),
        store.append(group(led.epoch, 10)),
        topic_made(&store),
    );
    release.join().unwrap();
    assert_eq!((first, second), (Ok(Appended::Done), Ok(Appended::Done)));
    assert_eq!(old, Ok(Appended::Refused(vec![led.partition])));
    assert_eq!(twice, Err(StoreError::Conflict));
    assert!(made);
    assert_eq!(all(&store, led.partition).await.len(), 2);
}

async fn topic_made(store: &Embedded) -> bool {
    topic(store, "beside", 1).await.partitions.len() == 1
}

/// Goal: rows of a deleted topic go, though they are many, and though nothing else is asked.
/// Method: 40 MiB in two partitions, three rows elsewhere; delete; wait until only the three are left.
#[tokio::test]
async fn rows_of_a_deleted_topic_go_in_the_background() {
    let (directory, store) = make().await;
    let big = topic(&store, "big", 2).await;
    for led in store.lead(&big.partitions).await.unwrap() {
        let rows = (0..20).map(|n| row(led.partition, n, n, n, 1 << 20)).collect();
        let group = Append { led: vec![(led.partition, led.epoch)], rows };
        assert_eq!(store.append(group).await, Ok(Appended::Done));
    }
    let led = led(&store).await;
    append_tens(&store, &led, 3).await;
    assert_eq!(store.delete_topic(big.id).await, Ok(true));
    let person = Connection::open(directory.path().join(FILE)).unwrap();
    let left = |table| {
        let sql = format!("SELECT count(*) FROM {table}");
        person.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let deadline = std::time::Instant::now() + crate::patience::LIMIT;
    while left("removed_partitions") > 0 {
        assert!(std::time::Instant::now() < deadline, "{} rows are left", left("batches"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((left("batches"), left("batch_data")), (3, 3));
}

/// Goal: the write-ahead log does not grow for ever, also when somebody always reads.
/// Method: 400 MiB of appends beside two readers without pause; its size after each.
#[tokio::test]
async fn the_write_ahead_log_stays_small() {
    let (directory, store) = make().await;
    let (led, store) = (led(&store).await, Arc::new(store));
    let readers: Vec<_> = (0..2).map(|_| tokio::spawn(read_on(Arc::clone(&store), led.partition))).collect();
    let log = directory.path().join(format!("{FILE}-wal"));
    for n in 0..50 {
        let rows = (0..8).map(|i| row(led.partition, n * 8 + i, n * 8 + i, n, 1 << 20)).collect();
        let group = Append { led: vec![(led.partition, led.epoch)], rows };
        assert_eq!(store.append(group).await, Ok(Appended::Done));
        let size = std::fs::metadata(&log).unwrap().len();
        assert!(size < 128 << 20, "{size} bytes after {n}");
    }
    readers.iter().for_each(|reader| reader.abort());
}

async fn read_on(store: Arc<Embedded>, partition: PartitionId) {
    for from in (0..).map(|n| n % 50 * 8) {
        store.read(partition, from, Offset::MAX, 8 << 20).await.unwrap();
        tokio::task::yield_now().await;
    }
}

/// Goal: a person who looks for long stops nothing, and when done the write-ahead log becomes small again.
/// Method: an open read transaction from outside over 160 MiB of appends; then it ends.
#[tokio::test]
async fn a_long_look_from_outside_stops_nothing() {
    let (directory, store) = make().await;
    let led = led(&store).await;
    let log = directory.path().join(format!("{FILE}-wal"));
    let append = async |from: i64, count: i64| {
        for n in from..from + count {
            let rows = (0..8).map(|i| row(led.partition, n * 8 + i, n * 8 + i, n, 1 << 20)).collect();
            let group = Append { led: vec![(led.partition, led.epoch)], rows };
            assert_eq!(store.append(group).await, Ok(Appended::Done));
        }
    };
    let person = Connection::open(directory.path().join(FILE)).unwrap();
    person.execute_batch("BEGIN").unwrap();
    person.query_row("SELECT count(*) FROM batches", [], |row| row.get::<_, i64>(0)).unwrap();
    append(0, 20).await;
    assert!(std::fs::metadata(&log).unwrap().len() > 150 << 20);
    person.execute_batch("COMMIT").unwrap();
    append(20, 6).await;
    let size = std::fs::metadata(&log).unwrap().len();
    assert!(size <= 64 << 20, "{size} bytes are left");
}

#[path = "crash_tests.rs"]
mod crash;
