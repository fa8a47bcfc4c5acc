use hapax_engine::contract::sink::{Harness, POISON, SeenRow, every_clause};
use hapax_engine::sink::{Target as _, TransactionalSink as _};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;
use std::time::Duration;

use super::super::config::{Deletes, UniqueKeys};
use super::super::rig::Rig;
use super::super::sample::{Place, bare, id, take};
use super::*;
use hapax_model::ledger::Totals;

/// A table of every mode, under a name that wants to be more than a name.
const TABLE: &str = "a\"; DROP TABLE x; --";

struct Sqlite {
    place: Place,
    mode: ConflictMode,
}

impl Sqlite {
    fn config(&self) -> SqliteSinkConfig {
        let mut config = SqliteSinkConfig::new(self.place.path(), TABLE);
        config.table.mode = Some(self.mode);
        if self.mode != ConflictMode::Append {
            config.table.key_fields = vec![FieldPath::of_name("id")];
        }
        if matches!(self.mode, ConflictMode::Update | ConflictMode::Newer) {
            config.table.deletes = Deletes::Some;
        }
        if self.mode == ConflictMode::Newer {
            config.table.version_column = Some("seq".into());
        }
        config
    }
}

impl Harness for Sqlite {
    type Sink = SqliteSink;

    fn empty(&mut self, mode: ConflictMode) {
        (self.place, self.mode) = (Place::new(), mode);
        let key = if mode == ConflictMode::Append { "INTEGER NOT NULL" } else { "INTEGER PRIMARY KEY" };
        let sql = format!(
            "CREATE TABLE x (a); CREATE TABLE \"a\"\"; DROP TABLE x; --\" (id {key}, \
             amount INTEGER NOT NULL CHECK (amount <> {POISON}), seq INTEGER, hapax_deleted INTEGER DEFAULT 0)"
        );
        bare(&self.place.path()).execute_batch(&sql).unwrap();
    }

    fn sink(&self, id: &DeliveryId) -> SqliteSink {
        SqliteSink::new(self.config(), id.clone())
    }

    fn rows(&self) -> Vec<SeenRow> {
        let sql = "SELECT id, amount FROM \"a\"\"; DROP TABLE x; --\" WHERE hapax_deleted IS NOT 1 ORDER BY 1, 2";
        let connection = bare(&self.place.path());
        connection.query_row("SELECT count(*) FROM x", [], |row| row.get::<_, i64>(0)).expect("x is still there");
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    }

    fn letters(&self) -> Vec<u64> {
        let connection = bare(&self.place.path());
        let mut statement =
            connection.prepare("SELECT CAST(position AS INTEGER) FROM hapax_dead_letters ORDER BY 1").unwrap();
        statement.query_map([], |row| row.get::<_, i64>(0)).unwrap().map(|n| n.unwrap().cast_unsigned()).collect()
    }
}

/// Goal: SQLite keeps the contract of every transactional sink. Method: all its clauses, on real files.
#[tokio::test]
async fn sqlite_keeps_the_contract_of_a_transactional_sink() {
    every_clause(&mut Sqlite { place: Place::new(), mode: ConflictMode::Append }).await;
}

fn keyed(mode: ConflictMode) -> impl FnOnce(&mut SqliteSinkConfig) {
    move |config| {
        config.table.mode = Some(mode);
        config.table.key_fields = vec![FieldPath::of_name("id")];
    }
}

const PLAIN: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT DEFAULT 'none', b INTEGER)";

/// Goal: a field that an event lacks takes its default in a new row and stays as it is in an old one, also within
/// one epoch. Method: whole rows, parts and deletes of the same keys, in one epoch and in two.
#[tokio::test]
async fn absent_fields_take_their_default_or_stay() {
    let mut rig = Rig::new(PLAIN, |config| {
        keyed(ConflictMode::Update)(config);
        config.table.deletes = Deletes::Some;
    })
    .await;
    let events = [
        r#"{"id":1,"a":"x","b":1}"#,
        r#"{"id":2,"b":2}"#,
        r#"{"id":1,"b":3}"#,
        r#"{"id":3,"a":"y","b":4}"#,
        r#"{"id":3,"op":"d"}"#,
        r#"{"id":3,"b":5}"#,
        r#"{"id":2,"a":null}"#,
    ];
    rig.deliver(&events).await;
    let all = "SELECT id || ' ' || ifnull(a, 'null') || ' ' || b FROM t ORDER BY id";
    assert_eq!(rig.texts(all), ["1 x 3", "2 null 2", "3 none 5"]);
    rig.deliver(&[r#"{"id":3,"a":"z"}"#, r#"{"id":1,"op":"d"}"#, r#"{"id":9,"op":"d"}"#]).await;
    assert_eq!(rig.texts(all), ["2 null 2", "3 z 5"]);
}

/// Goal: sinks count what they did. Method: new keys, known keys, a repeated key, a delete, an abort, a refusal.
#[tokio::test]
async fn the_sink_counts_what_it_did() {
    let mut rig = Rig::new(PLAIN, keyed(ConflictMode::Update)).await;
    rig.deliver(&[r#"{"id":1,"a":"x","b":1}"#, r#"{"id":2,"a":"x","b":1}"#, r#"{"id":2,"a":"y","b":2}"#]).await;
    let done = rig.deliver(&[r#"{"id":2,"a":"z","b":3}"#, r#"{"id":3,"a":"x","b":1}"#, r#"{"id":4,"b":"no"}"#]).await;
    assert_eq!((done.written.inserts, done.written.updates, done.written.failures), (1, 1, 1));
    rig.sink.begin_transaction(Epoch(3)).unwrap();
    rig.sink.abort_transaction().await.unwrap();
    let metrics = rig.sink.metrics();
    assert_eq!((metrics.upserts, metrics.inserts, metrics.updates, metrics.failures), (4, 3, 1, 1));
    assert_eq!((metrics.commits, metrics.aborts, metrics.commit_failures, metrics.events_written), (2, 1, 0, 6));
    assert!(metrics.latency.count == 2 && metrics.latency.max_us >= metrics.latency.mean_us());
    let mut rival = SqliteSink::new(rig.config.clone(), id("rig"));
    rival.init_transactions(&take(0)).await.unwrap();
    let batch = rig.batch(&[r#"{"id":9}"#]);
    rig.try_deliver(batch).await.unwrap_err();
    assert_eq!(rig.sink.metrics().commit_failures, 1);
}

/// Goal: `ignore` and `newer` tell how many rows stayed as they were. Method: repeat an epoch's events.
#[tokio::test]
async fn repeats_are_counted_as_unchanged() {
    let mut rig = Rig::new(PLAIN, keyed(ConflictMode::Ignore)).await;
    let events = [r#"{"id":1,"a":"x","b":1}"#, r#"{"id":2,"a":"x","b":1}"#];
    assert_eq!(rig.deliver(&events).await.written.inserts, 2);
    let again = rig.deliver(&[events[0], r#"{"id":3,"a":"x","b":1}"#]).await.written;
    assert_eq!((again.upserts, again.inserts, again.unchanged), (2, 1, 1));
}

/// Goal: a new column is filled as soon as events are read for it, without a stop. Method: add one between epochs;
/// the epoch that was read before goes through as well.
#[tokio::test]
async fn a_new_column_is_picked_up() {
    let mut rig = Rig::new(PLAIN, keyed(ConflictMode::Update)).await;
    rig.deliver(&[r#"{"id":1,"a":"x","b":1,"c":"new"}"#]).await;
    let read_before = rig.batch(&[r#"{"id":2,"a":"x","b":2,"c":"new"}"#]);
    rig.look().execute_batch("ALTER TABLE t ADD COLUMN c TEXT DEFAULT 'old'").unwrap();
    rig.try_deliver(read_before).await.unwrap();
    assert!(rig.sink.fields().contains(&FieldPath::of_name("c")));
    rig.deliver(&[r#"{"id":3,"a":"x","b":3,"c":"new"}"#]).await;
    assert_eq!(rig.texts("SELECT c FROM t ORDER BY id"), ["old", "old", "new"]);
}

/// Goal: a table that no longer fits stops the workflow with the reason, and nothing of the epoch is there.
/// Method: drop the unique index, drop a mapped column.
#[tokio::test]
async fn a_table_that_no_longer_fits_is_schema_evolution() {
    let ddl = "CREATE TABLE t (id INTEGER NOT NULL, a TEXT); CREATE UNIQUE INDEX k ON t (id)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    rig.look().execute_batch("DROP INDEX k").unwrap();
    let batch = rig.batch(&[r#"{"id":1,"a":"x"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::SchemaEvolution { .. }), "{error}");
    assert!(error.to_string().contains("CREATE UNIQUE INDEX"), "{error}");
    assert_eq!(rig.texts("SELECT a FROM t"), [""; 0]);
    assert_eq!(super::super::sample::epoch_of(&rig.look(), &id("rig")), Some(Epoch(0)));
    // Once it fits again, the same epoch commits.
    rig.look().execute_batch("CREATE UNIQUE INDEX k ON t (id)").unwrap();
    rig.claim().await;
    rig.sink.abort_transaction().await.unwrap();
    rig.deliver(&[r#"{"id":1,"a":"x"}"#]).await;
    assert_eq!(rig.texts("SELECT a FROM t"), ["x"]);
}

/// Goal: a table that was dropped and made again is another table, between runs and in the middle of one.
/// Method: recreate it, commit; inspect; recreate it under the same rows.
#[tokio::test]
async fn a_recreated_table_is_noticed() {
    let mut rig = Rig::new(PLAIN, keyed(ConflictMode::Update)).await;
    let before = rig.sink.inspect().await.unwrap();
    rig.deliver(&[r#"{"id":1,"a":"x"}"#]).await;
    assert_eq!(rig.sink.inspect().await.unwrap(), before, "delivering changes no identity");
    rig.look().execute_batch(&format!("DROP TABLE t; {PLAIN}")).unwrap();
    let batch = rig.batch(&[r#"{"id":2,"a":"x"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::ContractChanged { .. }), "{error}");
    assert_eq!(rig.texts("SELECT a FROM t"), [""; 0]);
    assert_ne!(rig.sink.inspect().await.unwrap(), before);
}

/// Goal: a trigger of the user's that ends the whole transaction costs only the row that set it off.
/// Method: RAISE(ROLLBACK) on two rows among others.
#[tokio::test]
async fn a_trigger_that_rolls_back_kills_only_its_row() {
    let ddl = format!(
        "{PLAIN}; CREATE TRIGGER no BEFORE INSERT ON t WHEN new.b = 13 BEGIN SELECT RAISE(ROLLBACK, 'unlucky'); END"
    );
    let mut rig = Rig::new(&ddl, |config| config.table.mode = Some(ConflictMode::Append)).await;
    let inputs: Vec<String> =
        (0..).zip([1, 13, 2, 13, 3]).map(|(id, b)| format!("{{\"id\":{id},\"b\":{b}}}")).collect();
    let done = rig.deliver(&inputs.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(done.dead_inputs, [1, 3]);
    assert_eq!(rig.texts("SELECT CAST(b AS TEXT) FROM t ORDER BY b"), ["1", "2", "3"]);
    assert_eq!(rig.texts("SELECT message FROM hapax_dead_letters"), ["unlucky"; 2]);
    assert_eq!(done.progress.totals, Totals { read: 5, delivered: 3, filtered: 0, dead: 2, rows: 3 });
}

/// Goal: rows that a trigger drops silently are not counted as delivered. Method: RAISE(IGNORE) on one row.
#[tokio::test]
async fn a_row_that_a_trigger_swallows_is_a_dead_letter() {
    let ddl = format!("{PLAIN}; CREATE TRIGGER no BEFORE INSERT ON t WHEN new.b = 13 BEGIN SELECT RAISE(IGNORE); END");
    let mut rig = Rig::new(&ddl, |config| config.table.mode = Some(ConflictMode::Append)).await;
    let inputs: Vec<String> = (0..100).map(|b| format!("{{\"id\":{b},\"b\":{b}}}")).collect();
    let done = rig.deliver(&inputs.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(done.dead_inputs, [13]);
    assert_eq!(rig.texts("SELECT code FROM hapax_dead_letters"), ["HX2023"]);
    assert_eq!(rig.texts("SELECT CAST(count(*) AS TEXT) FROM t"), ["99"]);
}

/// Goal: each bad value is a dead letter that says why, with the source bytes; the rest goes on. Method: one of each.
#[tokio::test]
async fn bad_values_are_dead_letters_with_their_reason() {
    let ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL, b INTEGER CHECK (b < 100), c UNIQUE)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let inputs = [
        r#"{"id":1,"a":"x","b":1,"c":1}"#,
        r#"{"id":2,"a":"x","b":"no"}"#,
        r#"{"id":3,"a":null}"#,
        r#"{"id":4,"b":1}"#,
        r#"{"id":5,"a":"x","b":100}"#,
        r#"{"id":6,"a":"x","b":1,"c":1}"#,
        r#"{"id":7.5,"a":"x"}"#,
        "no event",
        r#"{"id":8,"a":"x","b":2}"#,
    ];
    let done = rig.deliver(&inputs).await;
    assert_eq!(done.dead_inputs, [1, 2, 3, 4, 5, 6, 7]);
    let codes = rig.texts("SELECT code FROM hapax_dead_letters ORDER BY id");
    assert_eq!(codes[..6], ["HX2020", "HX2021", "HX2021", "HX2032", "HX2031", "HX2020"]);
    let bytes = rig.texts("SELECT CAST(bytes AS TEXT) FROM hapax_dead_letters ORDER BY id");
    assert_eq!(bytes, inputs[1..8]);
    assert_eq!(rig.texts("SELECT CAST(id AS TEXT) FROM t ORDER BY id"), ["1", "8"]);
    assert!(done.progress.totals.adds_up());
}

/// Goal: a key column takes the hash, as bytes or as text, entity key or event key by the mode. Method: each.
#[tokio::test]
async fn a_key_column_takes_the_keys_hash() {
    for (mode, declared, kind, length) in [
        (ConflictMode::Update, "BLOB", "blob", "16"),
        (ConflictMode::Update, "TEXT", "text", "29"),
        (ConflictMode::Ignore, "BLOB", "blob", "16"),
    ] {
        let ddl = format!("CREATE TABLE t (k {declared} NOT NULL PRIMARY KEY, id, a)");
        let mut rig = Rig::new(&ddl, |config| {
            keyed(mode)(config);
            config.table.key_column = Some("k".into());
        })
        .await;
        let events = [r#"{"id":1,"a":"x"}"#, r#"{"id":2,"a":"y"}"#, r#"{"id":1,"a":"z"}"#];
        let batch = rig.batch(&events);
        let keys = [batch.event(0).entity_key(), batch.event(0).event_key()].map(|key| key.unwrap().text().to_string());
        rig.try_deliver(batch).await.unwrap();
        let found = rig.texts("SELECT typeof(k) || length(k) || id || a FROM t ORDER BY id");
        let last = if mode == ConflictMode::Update { "z" } else { "x" };
        assert_eq!(found, [format!("{kind}{length}1{last}"), format!("{kind}{length}2y")], "{mode:?} {declared}");
        if declared == "TEXT" {
            assert_eq!(rig.texts("SELECT k FROM t WHERE id = 1"), [keys[0].as_str()]);
        }
    }
}

/// Goal: rows of one key are one row however the key is spelled. Method: 1, 1.0 and "1" into a TEXT and a plain key.
#[tokio::test]
async fn a_key_is_what_the_table_takes_for_one() {
    let mut rig = Rig::new("CREATE TABLE t (id INTEGER PRIMARY KEY, a)", keyed(ConflictMode::Update)).await;
    rig.deliver(&[r#"{"id":1.0,"a":"first"}"#, r#"{"id":2,"a":"x"}"#, r#"{"id":1,"a":"last"}"#]).await;
    assert_eq!(rig.texts("SELECT a FROM t ORDER BY id"), ["last", "x"]);
    let mut rig = Rig::new("CREATE TABLE t (id TEXT NOT NULL PRIMARY KEY, a)", keyed(ConflictMode::Update)).await;
    for _ in 0..2 {
        rig.deliver(&[r#"{"id":"1","a":"first"}"#, r#"{"id":1,"a":"second"}"#, r#"{"id":"1","a":"last"}"#]).await;
        assert_eq!(rig.texts("SELECT a FROM t"), ["last"]);
    }
}

/// Goal: `hapax_version` orders rows across incarnations of the source. Method: a lower position in a later
/// incarnation wins, a replayed older one does not.
#[tokio::test]
async fn versions_made_from_positions_count_incarnations() {
    let ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, a, hapax_version BLOB)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Newer)).await;
    rig.deliver(&[r#"{"id":1,"a":"x"}"#, r#"{"id":1,"a":"y"}"#]).await;
    assert_eq!(rig.texts("SELECT a FROM t"), ["y"]);
    let rotated = hapax_model::position::Bookmark {
        incarnation: hapax_model::position::Incarnation::new(2, "rotated"),
        position: hapax_model::position::Position::at(0),
    };
    rig.look()
        .execute("UPDATE hapax_progress SET position = '0', incarnation = ?1", [rotated.incarnation.to_string()])
        .unwrap();
    rig.claim().await;
    rig.deliver(&[r#"{"id":1,"a":"z"}"#]).await;
    assert_eq!(rig.texts("SELECT a FROM t"), ["z"]);
}

/// Goal: NULL and equal versions behave as PROTOCOL says. Method: NULL gives way, equal stays.
#[tokio::test]
async fn the_strictly_newer_row_stays() {
    let ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, a, v INTEGER)";
    let mut rig = Rig::new(ddl, |config| {
        keyed(ConflictMode::Newer)(config);
        config.table.version_column = Some("v".into());
    })
    .await;
    for (input, stays) in [
        (r#"{"id":1,"a":"none","v":null}"#, "none"),
        (r#"{"id":1,"a":"one","v":1}"#, "one"),
        (r#"{"id":1,"a":"again","v":1}"#, "one"),
        (r#"{"id":1,"a":"null","v":null}"#, "one"),
        (r#"{"id":1,"a":"two","v":2}"#, "two"),
    ] {
        rig.deliver(&[input]).await;
        assert_eq!(rig.texts("SELECT a FROM t"), [stays]);
    }
}

/// Goal: keys that promise to be unique and are not stop the workflow; repeats of one event do not. Method: both.
#[tokio::test]
async fn different_events_of_one_promised_key_collide() {
    let mut rig = Rig::new(PLAIN, |config| {
        keyed(ConflictMode::Ignore)(config);
        config.table.unique_keys = UniqueKeys::Promised;
    })
    .await;
    rig.deliver(&[r#"{"id":1,"a":"x"}"#, r#"{"id":2,"a":"x"}"#, r#"{"a":"x","id":1}"#]).await;
    let batch = rig.batch(&[r#"{"id":3,"a":"x"}"#, r#"{"id":3,"a":"y"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::DedupKeyCollision { .. }), "{error}");
    assert_eq!(rig.texts("SELECT CAST(count(*) AS TEXT) FROM t"), ["2"]);
}

/// Goal: batches larger and smaller than a statement carries are written whole. Method: around the bound.
#[tokio::test]
async fn statements_are_filled_and_the_rest_is_written_too() {
    for rows in [1, 3, 4, 5, 9] {
        let mut rig = Rig::new(PLAIN, |config| {
            config.table.mode = Some(ConflictMode::Append);
            config.rows_per_statement = 4;
        })
        .await;
        let inputs: Vec<String> = (0..rows).map(|b| format!("{{\"id\":{b},\"b\":{b}}}")).collect();
        let done = rig.deliver(&inputs.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!((done.written.upserts, done.written.inserts), (rows, rows));
        assert_eq!(rig.texts("SELECT CAST(count(*) AS TEXT) FROM t"), [rows.to_string()]);
    }
}

/// Goal: a worker that stands still inside its transaction is named, and nothing is lost. Method: another connection
/// holds the lock.
#[tokio::test]
async fn a_locked_file_is_locked_by_someone() {
    let mut rig = Rig::new(PLAIN, |config| {
        config.table.mode = Some(ConflictMode::Append);
        config.busy_timeout = Duration::from_millis(50);
    })
    .await;
    let holder = rig.look();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let batch = rig.batch(&[r#"{"id":1,"b":1}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::Locked { .. }), "{error}");
    assert_eq!(error.reaction(), Reaction::Retry);
    holder.execute_batch("ROLLBACK").unwrap();
    rig.progress = Some(rig.sink.init_transactions(&take(0)).await.unwrap());
    let record = rig.record(&rig.batch(&[r#"{"id":1,"b":1}"#]));
    rig.sink.commit_transaction(&record).await.unwrap();
    assert_eq!(rig.texts("SELECT CAST(b AS TEXT) FROM t"), ["1"]);
}

/// Goal: a connection that dies in mid-epoch leaves nothing behind. Method: a transaction dropped with its rows.
#[tokio::test]
async fn what_a_dead_connection_wrote_is_rolled_back() {
    let mut rig = Rig::new(PLAIN, |config| config.table.mode = Some(ConflictMode::Append)).await;
    let dying = rig.look();
    dying.execute_batch("BEGIN IMMEDIATE; UPDATE hapax_progress SET epoch = 9; INSERT INTO t (b) VALUES (1)").unwrap();
    drop(dying);
    rig.claim().await;
    rig.deliver(&[r#"{"id":2,"b":2}"#]).await;
    assert_eq!(rig.texts("SELECT CAST(b AS TEXT) FROM t"), ["2"]);
}

/// Goal: an event that asks for a delete is a dead letter where rows are only added. Method: both such modes; the
/// configuration refuses `deleteWhen` there, so only a source that knows deletes by itself can bring one.
#[tokio::test]
async fn a_delete_where_rows_are_only_added_is_a_dead_letter() {
    for mode in [ConflictMode::Append, ConflictMode::Ignore] {
        let mut rig = Rig::new("CREATE TABLE t (id INTEGER NOT NULL UNIQUE)", keyed(mode)).await;
        rig.deliver(&[r#"{"id":1}"#, r#"{"id":2,"op":"d"}"#, r#"{"id":3}"#]).await;
        assert_eq!(rig.texts("SELECT id || '' FROM t ORDER BY id"), ["1", "3"], "{mode:?}");
        assert_eq!(rig.texts("SELECT code FROM hapax_dead_letters"), ["HX2022"], "{mode:?}");
    }
}
