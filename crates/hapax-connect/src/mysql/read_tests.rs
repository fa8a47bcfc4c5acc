use std::time::Duration;

use hapax_engine::decode::UnknownFields;
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::rows::{ByHash, RowOrder};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::mode::ConflictMode;
use hapax_model::position::{Incarnation, Position};

use super::super::sample::{Place, number, run};
use super::*;

/// The table `t` of a database of its own, and a look at it.
async fn table(place: &Place, ddl: &str, configure: impl FnOnce(&mut MysqlSinkConfig)) -> MysqlRows {
    run(&mut place.bare().await, ddl).await;
    let mut config = MysqlSinkConfig::new(place.url(), "t");
    configure(&mut config);
    MysqlRows::open(&config).await.unwrap()
}

fn batch(rows: &MysqlRows, inputs: &[&str]) -> Arc<Batch> {
    let strategy = DedupStrategy::content_fields(vec![FieldPath::of_name("id")]);
    let keyer = Keyer::new(strategy, Uniqueness::FieldsAlone, KeyNeed::EntityAndEvent);
    let origin = Origin { source: "file:a".into(), lane: "lane".into() };
    let mut pipeline = Pipeline::new(&rows.shape().fields, keyer, None, UnknownFields::Counted, origin);
    let mut batch = pipeline.batch();
    for (n, input) in (0..).zip(inputs) {
        batch.inputs.push(Position::at(n), input.as_bytes());
    }
    pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
    Arc::new(batch)
}

/// Goal: rows are found by all kinds of key fields, in any order, many at once. Method: a key of four types.
#[tokio::test]
async fn rows_are_found_by_their_keys() {
    let place = Place::new().await;
    let ddl = "CREATE TABLE t (id bigint, code varchar(9) COLLATE utf8mb4_nopad_bin, at timestamp(6), price decimal(10,2), \
               note json, PRIMARY KEY (id, code, at, price)); \
               INSERT INTO t SELECT seq, CONCAT('é', seq), '2026-01-01 00:00:00', seq + 0.5, '{\"a\": [1]}' FROM seq_1_to_50";
    let mut rows = table(&place, ddl, |config| config.table.mode = Some(ConflictMode::Update)).await;
    let input =
        |n: u32| format!("{{\"id\":{n},\"code\":\"é{n}\",\"at\":\"2026-01-01T01:00:00+01:00\",\"price\":{n}.50}}");
    let inputs: Vec<String> = [51, 7, 50, 1].map(input).to_vec();
    let texts: Vec<&str> = inputs.iter().map(String::as_str).chain([r#"{"id":"x"}"#]).collect();
    let batch = batch(&rows, &texts);
    let states = rows.states(Arc::clone(&batch), vec![4, 3, 2, 1, 0]).await.unwrap();
    let (is, not) = (RowState::Present, RowState::Absent);
    assert_eq!(states, [RowState::NoKey, is, is, is, not]);
    let found = rows.find(RowChoice::Event(Arc::clone(&batch), 1)).await.unwrap().unwrap();
    assert_eq!(found.state, is);
    assert_eq!(found.columns[1], ("code".to_owned(), Some("é7".to_owned())));
    assert_eq!(found.columns[4].1.as_deref(), Some("{\"a\": [1]}"));
    assert_eq!(rows.find(RowChoice::Event(Arc::clone(&batch), 0)).await.unwrap(), None);
    assert_eq!(rows.find(RowChoice::Event(batch, 4)).await.unwrap(), None);
    assert_eq!(rows.count().await.unwrap(), 50);
    assert_eq!((rows.shape().key.len(), rows.shape().by_hash), (4, ByHash::No));
}

/// Goal: a key column is asked by the hash, as bytes and as text, and a tombstone is told apart.
#[tokio::test]
async fn a_row_is_found_by_the_hash() {
    for kind in ["binary(16)", "varchar(29)"] {
        let place = Place::new().await;
        let ddl = format!(
            "CREATE TABLE t (k {kind} PRIMARY KEY, id int, hapax_version binary(18), hapax_deleted boolean NOT NULL DEFAULT false)"
        );
        let mut rows = table(&place, &ddl, |config| {
            config.table.key_column = Some("k".into());
            config.table.mode = Some(ConflictMode::Newer);
        })
        .await;
        let batch = batch(&rows, &[r#"{"id":1}"#, r#"{"id":2}"#]);
        let (one, two) = (batch.event(0).entity_key().unwrap(), batch.event(1).entity_key().unwrap());
        let spelled = |key: KeyHash| match kind {
            "varchar(29)" => format!("'{key}'"),
            _ => format!("x'{}'", key.0.map(|byte| format!("{byte:02x}")).concat()),
        };
        let insert =
            format!("INSERT INTO t VALUES ({}, 1, NULL, false), ({}, 2, NULL, true)", spelled(one), spelled(two));
        run(&mut place.bare().await, &insert).await;
        let found = rows.find(RowChoice::Hash(one)).await.unwrap().unwrap();
        assert_eq!((found.state, found.columns[1].1.as_deref()), (RowState::Present, Some("1")));
        assert_eq!(rows.find(RowChoice::Hash(two)).await.unwrap().unwrap().state, RowState::Tombstone);
        assert_eq!(rows.find(RowChoice::Hash(KeyHash([0; 16]))).await.unwrap(), None);
        let states = rows.states(batch, vec![0, 1]).await.unwrap();
        assert_eq!(states, [RowState::Present, RowState::Tombstone]);
        assert_eq!((rows.shape().by_hash, rows.shape().order), (ByHash::Yes, RowOrder::Lane));
    }
}

/// Goal: looking never writes, and never waits for a writer. Method: deleted rows that are not committed; an insert over the same session.
#[tokio::test]
async fn looking_writes_nothing_and_waits_for_nobody() {
    let place = Place::new().await;
    let ddl = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)";
    let mut rows = table(&place, ddl, |config| config.table.key_fields = vec!["id".parse().unwrap()]).await;
    let mut writer = place.bare().await;
    run(&mut writer, "BEGIN; DELETE FROM t").await;
    let batch = batch(&rows, &[r#"{"id":1}"#]);
    assert_eq!(rows.states(batch, vec![0]).await.unwrap(), [RowState::Present]);
    assert_eq!(rows.count().await.unwrap(), 1);
    let written = rows.ask("INSERT INTO t VALUES (2)", Vec::new()).await;
    assert!(written.is_err(), "the session can only read");
    run(&mut writer, "ROLLBACK").await;
    assert_eq!(number(&mut writer, "SELECT count(*) FROM t").await, 1);
}

/// Goal: who makes others wait is named, with the cure. Method: two sessions that want one row.
#[tokio::test]
async fn who_makes_others_wait_is_named() {
    let place = Place::new().await;
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)";
    let mut rows = table(&place, ddl, |config| config.table.key_fields = vec!["id".parse().unwrap()]).await;
    let (mut holder, mut waiter) = (place.bare().await, place.bare().await);
    run(&mut holder, "BEGIN; UPDATE t SET n = 1").await;
    let waiting = tokio::spawn(async move { waiter.text("UPDATE t SET n = 2").await.map(|_| ()) });
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    let holds = loop {
        let mut holds = rows.holds().await.unwrap();
        // Other tests of this server wait for theirs.
        holds.retain(|hold| hold.who.starts_with(&format!("connection {} of", holder.connection_id())));
        if !holds.is_empty() || std::time::Instant::now() > deadline {
            break holds;
        }
        // MariaDB answers from a copy, which it renews only if nobody has read it for a tenth of a second: asking more
        // often would keep the old answer alive.
        tokio::time::sleep(std::time::Duration::from_millis(230)).await;
    };
    assert_eq!(holds.len(), 1, "{holds:?}");
    assert!(holds[0].what.contains("1 other") && holds[0].since_ms.is_some(), "{holds:?}");
    assert!(holds[0].cure.contains(&format!("KILL {}", holder.connection_id())), "{holds:?}");
    run(&mut holder, "ROLLBACK").await;
    waiting.await.unwrap().unwrap();
}

/// Goal: a look is not ended by the limit that is there for workers which hang. Method: a limit of one second, a transaction of
/// the look's own that idles for longer, then a count.
#[tokio::test]
async fn a_look_may_idle_for_longer_than_a_worker() {
    let place = Place::new().await;
    let mut rows = table(&place, "CREATE TABLE t (id bigint PRIMARY KEY)", |config| {
        config.limits.idle_in_transaction = Duration::from_secs(1);
    })
    .await;
    rows.command("START TRANSACTION READ ONLY").await.unwrap();
    assert_eq!(rows.count().await.unwrap(), 0);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(rows.count().await.unwrap(), 0);
    // Or it keeps its table from being dropped.
    rows.command("ROLLBACK").await.unwrap();
}

/// Goal: of a wide table, many rows are asked for in one go, whatever the limit for idle transactions. Method: 400 columns, 1,000
/// events, a limit of one second.
#[tokio::test]
async fn many_rows_of_a_wide_table_are_asked_for() {
    let place = Place::new().await;
    let columns: Vec<String> = (0..400).map(|n| format!("c{n} tinyint")).collect();
    let ddl = format!(
        "CREATE TABLE t (id bigint PRIMARY KEY, {}) ROW_FORMAT=DYNAMIC; INSERT INTO t (id) VALUES (7)",
        columns.join(", ")
    );
    let mut rows = table(&place, &ddl, |config| {
        config.table.mode = Some(ConflictMode::Update);
        config.limits.idle_in_transaction = Duration::from_secs(1);
    })
    .await;
    let inputs: Vec<String> = (0..1000).map(|n| format!("{{\"id\":{n}}}")).collect();
    let batch = batch(&rows, &inputs.iter().map(String::as_str).collect::<Vec<_>>());
    let states = rows.states(batch, (0..1000).collect()).await.unwrap();
    let present: Vec<usize> = (0..1000).filter(|event| states[*event] == RowState::Present).collect();
    assert_eq!(present, [7]);
}
