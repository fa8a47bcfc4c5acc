use std::time::Duration;

use super::super::config::Deletes;
use super::super::counting_relay::CountingRelay;
use super::super::rig::{Rig, Server, keyed};
use super::super::sample::run;
use super::*;
use crate::table::rig::Database as _;

const PLAIN: &str = "CREATE TABLE t (id bigint PRIMARY KEY, a bigint, hapax_deleted boolean)";
const PARTITIONED: &str = "CREATE TABLE t (id bigint PRIMARY KEY, a bigint) PARTITION BY RANGE (id); \
                           CREATE TABLE p1 PARTITION OF t FOR VALUES FROM (0) TO (300); \
                           CREATE TABLE p2 PARTITION OF t DEFAULT";

async fn deliver(rig: &mut Rig, ids: std::ops::Range<usize>, a: u32) -> (u64, u64) {
    let lines: Vec<String> = ids.map(|id| format!("{{\"id\":{id},\"a\":{a}}}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let written = rig.deliver(&lines).await.written;
    (written.inserts, written.updates)
}

/// Goal: created and overwritten rows are told apart in large epochs as in small ones, whoever counts them. Method: new
/// keys, known keys, both, with and without partitions, and with the server's counters switched off.
#[tokio::test]
async fn created_rows_are_told_from_overwritten_ones() {
    for (ddl, counters) in [(PLAIN, "on"), (PARTITIONED, "on"), (PLAIN, "off"), (PARTITIONED, "off")] {
        let mut rig = Rig::unclaimed(ddl, keyed(ConflictMode::Update)).await;
        let set = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET track_counts = {counters}', current_database()); END $$"
        );
        rig.run(&set).await;
        rig.claim().await;
        let rows = 2 * COUNT_FROM;
        assert_eq!(deliver(&mut rig, 0..rows, 1).await, (rows as u64, 0), "{ddl} {counters}");
        assert_eq!(deliver(&mut rig, 10..10 + rows, 2).await, (10, rows as u64 - 10), "{ddl} {counters}");
        assert_eq!(deliver(&mut rig, 0..COUNT_FROM - 1, 3).await, (0, COUNT_FROM as u64 - 1), "{ddl} {counters}");
        assert_eq!(rig.texts("SELECT count(*) FROM t WHERE a = 3").await, [(COUNT_FROM - 1).to_string()]);
    }
}

/// Goal: a statement carries as many rows as it may, and no more. Method: nine new keys, four to a statement; the rows of one
/// statement have one command number.
#[tokio::test]
async fn a_statement_carries_as_many_rows_as_it_may() {
    let mut rig = Rig::new(PLAIN, |config| {
        keyed(ConflictMode::Update)(config);
        config.rows_per_statement = 4;
    })
    .await;
    assert_eq!(deliver(&mut rig, 0..9, 1).await, (9, 0));
    let by_statement = "SELECT count(*) FROM t GROUP BY cmin::text ORDER BY min(id)";
    assert_eq!(rig.texts(by_statement).await, ["4", "4", "1"]);
}

/// Goal: a tombstone that had to be inserted is no created row. Method: deletes of unknown keys among many new ones.
#[tokio::test]
async fn tombstones_are_not_counted_as_created() {
    let configure = |config: &mut super::super::config::PostgresSinkConfig| {
        keyed(ConflictMode::Newer)(config);
        config.table.version_column = Some("a".into());
        config.table.deletes = Deletes::Some;
    };
    let mut rig = Rig::new(PLAIN, configure).await;
    let line = |id: usize| match id % 2 {
        0 => format!("{{\"id\":{id},\"a\":1}}"),
        _ => format!("{{\"id\":{id},\"a\":1,\"op\":\"d\"}}"),
    };
    let lines: Vec<String> = (0..2 * COUNT_FROM).map(line).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let written = rig.deliver(&lines).await.written;
    assert_eq!((written.inserts, written.updates, written.deletes), (COUNT_FROM as u64, 0, COUNT_FROM as u64));
}

/// Goal: a COPY of several pieces arrives whole, values of every length and none among them. Method: rows around the
/// size of a piece, read back.
#[tokio::test]
async fn a_copy_of_many_pieces_arrives_whole() {
    let mut rig = Rig::new("CREATE TABLE t (id bigint, a text)", |config| {
        config.table.mode = Some(ConflictMode::Append);
    })
    .await;
    let line = |id: usize| match id % 3 {
        0 => format!("{{\"id\":{id},\"a\":null}}"),
        1 => format!("{{\"id\":{id},\"a\":\"{}\"}}", "x".repeat(id)),
        _ => format!("{{\"id\":{id},\"a\":\"\"}}"),
    };
    let lines: Vec<String> = (0..1000).map(line).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(rig.deliver(&lines).await.written.inserts, 1000);
    let wrong = "SELECT count(*) FROM t WHERE CASE id % 3 WHEN 0 THEN a IS NOT NULL \
                 WHEN 1 THEN a <> repeat('x', id::int) ELSE a <> '' END";
    assert_eq!(rig.texts(wrong).await, ["0"]);
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["1000"]);
}

/// Goal: a repeat costs what a new row costs and not a question more, and waits for nobody who holds its row. Method:
/// count the requests of an epoch with a new row and of one with its repeat, while another session holds that row.
#[tokio::test]
async fn a_repeat_asks_no_more_than_a_new_row_and_waits_for_no_lock() {
    let database = Server::new(PLAIN).await;
    let relay = CountingRelay::start();
    let url = database.place.url_by(relay.port);
    let mut rig = Rig::over(database, |config| {
        keyed(ConflictMode::Ignore)(config);
        config.url = url;
    });
    rig.claim().await;
    for inserts in [1, 0] {
        assert_eq!(deliver(&mut rig, 0..1, 1).await, (inserts, 0), "the first epochs prepare what all use");
    }
    let before = relay.requests();
    assert_eq!(deliver(&mut rig, 1..2, 1).await, (1, 0));
    let new_row = relay.requests() - before;
    let other = rig.database.place.bare().await;
    run(&other, "BEGIN; SELECT 1 FROM t WHERE id = 1 FOR UPDATE").await;
    let before = relay.requests();
    let repeat = tokio::time::timeout(Duration::from_secs(60), deliver(&mut rig, 1..2, 2)).await;
    assert_eq!(repeat.expect("it waits for no lock"), (0, 0));
    assert!(new_row > 0, "the relay sees what the sink asks");
    assert_eq!(relay.requests() - before, new_row);
    assert_eq!(rig.texts("SELECT a FROM t WHERE id = 1").await, ["1"]);
}
