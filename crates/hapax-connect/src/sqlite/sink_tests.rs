use std::time::Duration;

use hapax_engine::contract::sink::{Harness, POISON, SeenRow, every_clause};
use hapax_engine::sink::Target as _;
use hapax_engine::state_progress::AfterCrash;
use hapax_model::key::DedupStrategy;
use hapax_model::ledger::Totals;
use hapax_model::mode::ConflictMode;

use super::super::idempotent::SqliteIdempotentSink;
use super::super::rig::{File, Rig, keyed};
use super::super::sample::{Place, bare};
use super::*;
#[cfg(feature = "postgres")]
use crate::postgres::state_database::StateDatabase;
use crate::table::contract::clauses;
use crate::table::contract::state_store::{AFTER_CRASH, ByState, StateFile, StateStoreOfTest};
use crate::table::rig::{Database as _, of_contract, strs};

/// A table of every mode, under a name that wants to be more than a name.
const TABLE: &str = "a\"; DROP TABLE x; --";

struct Sqlite {
    place: Place,
    mode: ConflictMode,
}

impl Sqlite {
    fn config(&self) -> SqliteSinkConfig {
        let mut config = SqliteSinkConfig::new(self.place.path(), TABLE);
        of_contract(&mut config.table, self.mode);
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

    fn is_one_transaction(&self) -> bool {
        true
    }
}

/// The same table as a target that holds nothing of ours, with progress in a state store.
struct BareSqlite<S> {
    target: Sqlite,
    store: S,
    after_crash: AfterCrash,
}

impl<S: StateStoreOfTest> Harness for BareSqlite<S> {
    type Sink = ByState<SqliteDatabase, S>;

    fn empty(&mut self, mode: ConflictMode) {
        self.target.empty(mode);
        self.store.empty();
    }

    fn sink(&self, id: &DeliveryId) -> Self::Sink {
        let sink = SqliteIdempotentSink::new(self.target.config(), DedupStrategy::SourceOffset);
        self.store.join(sink, self.after_crash, id)
    }

    fn rows(&self) -> Vec<SeenRow> {
        self.target.rows()
    }

    fn letters(&self) -> Vec<u64> {
        self.store.letters()
    }

    fn is_one_transaction(&self) -> bool {
        false
    }
}

/// Goal: SQLite keeps the contract of every transactional sink. Method: all its clauses, on real files.
#[tokio::test]
async fn sqlite_keeps_the_contract_of_a_transactional_sink() {
    every_clause(&mut Sqlite { place: Place::new(), mode: ConflictMode::Append }).await;
}

/// Goal: with progress in a state store SQLite keeps what the same contract says, as far as two commits can. Method: all its
/// clauses, for workers that write again after a crash and for those that never do.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_the_contract_with_progress_in_the_state_store() {
    for after_crash in AFTER_CRASH {
        let target = Sqlite { place: Place::new(), mode: ConflictMode::Append };
        every_clause(&mut BareSqlite { target, store: StateFile::new(), after_crash }).await;
    }
}

/// Goal: the same where the state store is a PostgreSQL database. Method: the same clauses.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_the_contract_with_progress_in_postgres() {
    for after_crash in AFTER_CRASH {
        let target = Sqlite { place: Place::new(), mode: ConflictMode::Append };
        every_clause(&mut BareSqlite { target, store: StateDatabase::new().await, after_crash }).await;
    }
}

const PLAIN: &str = File::PLAIN;

clauses!(sink, File:
    absent_fields_take_their_default_or_stay,
    the_sink_counts_what_it_did,
    a_mapping_mistake_stops_with_the_servers_words,
    just_the_refused_die_among_many,
    an_event_is_judged_whoever_takes_its_place,
    a_deleted_row_that_is_written_again_is_a_new_one,
    a_row_that_is_brought_back_does_not_show_the_cut,
    a_stop_is_not_evaded_by_who_takes_its_place,
    repeats_are_counted_as_unchanged,
    a_new_column_is_picked_up,
    a_table_that_no_longer_fits_is_schema_evolution(
        "CREATE TABLE t (id INTEGER NOT NULL, a TEXT); CREATE UNIQUE INDEX k ON t (id)",
        "DROP INDEX k"
    ),
    the_strictly_newer_row_stays(&[("INTEGER", "9", "10"), ("TEXT", "\"B\"", "\"a\"")]),
    different_events_of_one_promised_key_collide,
    statements_are_filled_and_the_rest_is_written_too,
);

clauses!(tombstones, File: a_tombstone_does_not_show_the_cut);

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
    assert_eq!(rig.texts("SELECT a FROM t").await, [""; 0]);
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
    let done = rig.deliver(&strs(&inputs)).await;
    assert_eq!(done.dead_inputs, [1, 3]);
    assert_eq!(rig.texts("SELECT b FROM t ORDER BY b").await, ["1", "2", "3"]);
    assert_eq!(rig.texts("SELECT message FROM hapax_dead_letters").await, ["unlucky"; 2]);
    assert_eq!(done.progress.totals, Totals { read: 5, delivered: 3, filtered: 0, dead: 2, rows: 3 });
}

/// Goal: rows that a trigger drops silently are not counted as delivered. Method: RAISE(IGNORE) on one row.
#[tokio::test]
async fn a_row_that_a_trigger_swallows_is_a_dead_letter() {
    let ddl = format!("{PLAIN}; CREATE TRIGGER no BEFORE INSERT ON t WHEN new.b = 13 BEGIN SELECT RAISE(IGNORE); END");
    let mut rig = Rig::new(&ddl, |config| config.table.mode = Some(ConflictMode::Append)).await;
    let inputs: Vec<String> = (0..100).map(|b| format!("{{\"id\":{b},\"b\":{b}}}")).collect();
    let done = rig.deliver(&strs(&inputs)).await;
    assert_eq!(done.dead_inputs, [13]);
    assert_eq!(rig.texts("SELECT code FROM hapax_dead_letters").await, ["HX2023"]);
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["99"]);
}

/// Goal: the same in every mode, and for deletes. Method: the clause of databases whose triggers can leave out rows.
#[tokio::test]
async fn a_row_that_a_trigger_leaves_out_is_a_dead_letter_in_every_mode() {
    let words = crate::table::contract::triggers::LeavingOut {
        version_and_deleted: ["BLOB", "INTEGER NOT NULL DEFAULT 0"],
        rules: "; CREATE TRIGGER i BEFORE INSERT ON t WHEN new.b = 13 BEGIN SELECT RAISE(IGNORE); END;
            CREATE TRIGGER u BEFORE UPDATE ON t WHEN new.b = 14 OR old.b = 15 BEGIN SELECT RAISE(IGNORE); END;
            CREATE TRIGGER d BEFORE DELETE ON t WHEN old.b = 15 BEGIN SELECT RAISE(IGNORE); END"
            .into(),
        newest: "UPDATE t SET hapax_version = x'ffffffff' WHERE id = 5",
    };
    crate::table::contract::triggers::a_row_that_a_trigger_leaves_out_is_a_dead_letter::<File>(words).await;
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
    let codes = rig.texts("SELECT code FROM hapax_dead_letters ORDER BY id").await;
    assert_eq!(codes[..6], ["HX2020", "HX2021", "HX2021", "HX2032", "HX2031", "HX2020"]);
    let bytes = rig.texts("SELECT CAST(bytes AS TEXT) FROM hapax_dead_letters ORDER BY id").await;
    assert_eq!(bytes, inputs[1..8]);
    assert_eq!(rig.texts("SELECT id FROM t ORDER BY id").await, ["1", "8"]);
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
        let found = rig.texts("SELECT typeof(k) || length(k) || id || a FROM t ORDER BY id").await;
        let last = if mode == ConflictMode::Update { "z" } else { "x" };
        assert_eq!(found, [format!("{kind}{length}1{last}"), format!("{kind}{length}2y")], "{mode:?} {declared}");
        if declared == "TEXT" {
            assert_eq!(rig.texts("SELECT k FROM t WHERE id = 1").await, [keys[0].as_str()]);
        }
    }
}

/// Goal: rows of one key are one row however the key is spelled. Method: 1, 1.0 and "1" into a TEXT and a plain key.
#[tokio::test]
async fn a_key_is_what_the_table_takes_for_one() {
    let mut rig = Rig::new("CREATE TABLE t (id INTEGER PRIMARY KEY, a)", keyed(ConflictMode::Update)).await;
    rig.deliver(&[r#"{"id":1.0,"a":"first"}"#, r#"{"id":2,"a":"x"}"#, r#"{"id":1,"a":"last"}"#]).await;
    assert_eq!(rig.texts("SELECT a FROM t ORDER BY id").await, ["last", "x"]);
    let mut rig = Rig::new("CREATE TABLE t (id TEXT NOT NULL PRIMARY KEY, a)", keyed(ConflictMode::Update)).await;
    for _ in 0..2 {
        rig.deliver(&[r#"{"id":"1","a":"first"}"#, r#"{"id":1,"a":"second"}"#, r#"{"id":"1","a":"last"}"#]).await;
        assert_eq!(rig.texts("SELECT a FROM t").await, ["last"]);
    }
}

/// Goal: `hapax_version` orders rows across incarnations of the source. Method: a lower position in a later
/// incarnation wins, a replayed older one does not.
#[tokio::test]
async fn versions_made_from_positions_count_incarnations() {
    let ddl = "CREATE TABLE t (id INTEGER PRIMARY KEY, a, hapax_version BLOB)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Newer)).await;
    rig.deliver(&[r#"{"id":1,"a":"x"}"#, r#"{"id":1,"a":"y"}"#]).await;
    assert_eq!(rig.texts("SELECT a FROM t").await, ["y"]);
    let rotated = hapax_model::position::Incarnation::new(2, "rotated");
    rig.look().execute("UPDATE hapax_progress SET position = '0', incarnation = ?1", [rotated.to_string()]).unwrap();
    rig.claim().await;
    rig.deliver(&[r#"{"id":1,"a":"z"}"#]).await;
    assert_eq!(rig.texts("SELECT a FROM t").await, ["z"]);
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
    rig.commit_again(&[r#"{"id":1,"b":1}"#]).await.unwrap();
    assert_eq!(rig.texts("SELECT b FROM t").await, ["1"]);
}

/// Goal: an event that asks for a delete is a dead letter where rows are only added. Method: both such modes; the
/// configuration refuses `deleteWhen` there, so only a source that knows deletes by itself can bring one.
#[tokio::test]
async fn a_delete_where_rows_are_only_added_is_a_dead_letter() {
    for mode in [ConflictMode::Append, ConflictMode::Ignore] {
        let mut rig = Rig::new("CREATE TABLE t (id INTEGER NOT NULL UNIQUE)", keyed(mode)).await;
        rig.deliver(&[r#"{"id":1}"#, r#"{"id":2,"op":"d"}"#, r#"{"id":3}"#]).await;
        assert_eq!(rig.texts("SELECT id || '' FROM t ORDER BY id").await, ["1", "3"], "{mode:?}");
        assert_eq!(rig.texts("SELECT code FROM hapax_dead_letters").await, ["HX2022"], "{mode:?}");
    }
}

/// Goal: where an epoch is cut does not show with a second unique index. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_a_second_unique_index() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int UNIQUE)";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<File>(ddl, "DELETE FROM t").await;
}

/// Goal: where an epoch is cut does not show with a foreign key to the table itself. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_a_foreign_key_to_itself() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int, CONSTRAINT own FOREIGN KEY (b) REFERENCES t (id))";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<File>(ddl, "DELETE FROM t").await;
}

/// Goal: where an epoch is cut does not show with a trigger. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_a_trigger() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int); \
         CREATE TRIGGER full BEFORE INSERT ON t WHEN (SELECT count(*) FROM t WHERE b = new.b AND id <> new.id) > 0 \
         BEGIN SELECT RAISE(ABORT, 'taken'); END";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<File>(ddl, "DELETE FROM t").await;
}
