use std::time::Duration;

use hapax_engine::contract::sink::{Harness, POISON, SeenRow, every_clause};
use hapax_engine::state_progress::AfterCrash;
use hapax_model::key::DedupStrategy;
use hapax_model::mode::ConflictMode;

use super::super::idempotent::MysqlIdempotentSink;
use super::super::rig::{Rig, Server, keyed, texts};
use super::super::sample::{Place, run};
use super::*;
#[cfg(feature = "postgres")]
use crate::postgres::state_database::StateDatabase;
use crate::table::contract::clauses;
use crate::table::contract::state_store::{AFTER_CRASH, ByState, StateFile, StateStoreOfTest};
use crate::table::rig::{block_on, of_contract, strs};

/// A table of every mode, under a name that wants to be more than a name.
const TABLE: &str = "`a``; DROP TABLE x; -- :b ?`";

struct Mysql {
    place: Place,
    mode: ConflictMode,
}

impl Mysql {
    fn config(&self) -> MysqlSinkConfig {
        let mut config = MysqlSinkConfig::new(self.place.url(), TABLE);
        config.claim_timeout = Duration::from_millis(300);
        of_contract(&mut config.table, self.mode);
        config
    }

    fn ask(&self, sql: &str) -> Vec<String> {
        block_on(async { texts(&mut self.place.bare().await, sql).await })
    }
}

impl Harness for Mysql {
    type Sink = MysqlSink;

    fn empty(&mut self, mode: ConflictMode) {
        let key = if mode == ConflictMode::Append { "NOT NULL" } else { "PRIMARY KEY" };
        let sql = format!(
            "CREATE TABLE x (a int); CREATE TABLE {TABLE} (id bigint {key}, \
             amount integer NOT NULL CHECK (amount <> {POISON}), seq bigint, hapax_deleted boolean DEFAULT false)"
        );
        self.mode = mode;
        // One database for all clauses: making one takes longer than a clause.
        block_on(async {
            let mut session = self.place.connect().await;
            let clear = format!(
                "DROP TABLE IF EXISTS x, {TABLE}; DELETE FROM hapax_progress; DELETE FROM hapax_epochs; \
                 DELETE FROM hapax_dead_letters"
            );
            run(&mut session, &format!("{clear}; {sql}")).await;
        });
    }

    fn sink(&self, id: &DeliveryId) -> MysqlSink {
        let config = self.config();
        let pool = config.pool();
        MysqlSink::new(config, pool, id.clone())
    }

    fn rows(&self) -> Vec<SeenRow> {
        let sql = format!(
            "SELECT CONCAT(id, ' ', amount) FROM {TABLE}, (SELECT count(*) FROM x) y \
                           WHERE hapax_deleted IS NOT true ORDER BY id, amount"
        );
        let pair = |text: &String| {
            let (id, amount) = text.split_once(' ').unwrap();
            (id.parse().unwrap(), amount.parse().unwrap())
        };
        self.ask(&sql).iter().map(pair).collect()
    }

    fn letters(&self) -> Vec<u64> {
        let texts = self.ask("SELECT position FROM hapax_dead_letters ORDER BY CAST(position AS UNSIGNED)");
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn is_one_transaction(&self) -> bool {
        true
    }
}

/// The same table as a target that holds nothing of ours, with progress in a state store.
struct BareMysql<S> {
    target: Mysql,
    store: S,
    after_crash: AfterCrash,
}

impl<S: StateStoreOfTest> Harness for BareMysql<S> {
    type Sink = ByState<MysqlDatabase, S>;

    fn empty(&mut self, mode: ConflictMode) {
        self.target.empty(mode);
        self.store.empty();
    }

    fn sink(&self, id: &DeliveryId) -> Self::Sink {
        let config = self.target.config();
        let pool = config.pool();
        let sink = MysqlIdempotentSink::new(config, pool, DedupStrategy::SourceOffset);
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

/// Goal: MariaDB keeps the contract of every transactional sink. Method: all its clauses, on a real server.
#[tokio::test(flavor = "multi_thread")]
async fn mysql_keeps_the_contract_of_a_transactional_sink() {
    let place = Place::new().await;
    every_clause(&mut Mysql { place, mode: ConflictMode::Append }).await;
}

/// Goal: with progress in a state store MariaDB keeps what the same contract says, as far as two commits can. Method: all its
/// clauses, for workers that write again after a crash and for those that never do.
#[tokio::test(flavor = "multi_thread")]
async fn mysql_keeps_the_contract_with_progress_in_the_state_store() {
    for after_crash in AFTER_CRASH {
        let target = Mysql { place: Place::new().await, mode: ConflictMode::Append };
        every_clause(&mut BareMysql { target, store: StateFile::new(), after_crash }).await;
    }
}

/// Goal: the same where the state store is a PostgreSQL database. Method: the same clauses.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn mysql_keeps_the_contract_with_progress_in_postgres() {
    for after_crash in AFTER_CRASH {
        let target = Mysql { place: Place::new().await, mode: ConflictMode::Append };
        every_clause(&mut BareMysql { target, store: StateDatabase::new().await, after_crash }).await;
    }
}

/// Goal: MySQL's own server, which wants a row alias, keeps the contract too. Method: the same clauses.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MySQL's own server: `cargo xtask test` runs it where that can be had"]
async fn mysqls_own_server_keeps_the_contract_too() {
    let place = Place::of_mysql().await;
    every_clause(&mut Mysql { place, mode: ConflictMode::Append }).await;
}

/// Goal: on MySQL's own server upserts are counted as elsewhere, the newer row stays, JSON is JSON, and a table that
/// ALTER makes anew is still ours. Method: each.
#[tokio::test]
#[ignore = "needs MySQL's own server: `cargo xtask test` runs it where that can be had"]
async fn mysqls_own_server_is_written_as_mariadb_is() {
    let place = Place::of_mysql().await;
    let ddl =
        "CREATE TABLE t (id varchar(9) COLLATE utf8mb4_0900_bin PRIMARY KEY, a json, b int DEFAULT (1 + 1), v int)";
    let mut rig = Rig::over(Server::at(place, ddl).await, |config| {
        keyed(ConflictMode::Newer)(config);
        config.table.version_column = Some("v".into());
    });
    rig.claim().await;
    let first = rig.deliver(&[r#"{"id":"A","a":[1],"v":1}"#, r#"{"id":"a","a":"x","v":5}"#]).await.written;
    assert_eq!((first.inserts, first.updates), (2, 0));
    let second = rig
        .deliver(&[r#"{"id":"A","a":{"k":2},"v":2}"#, r#"{"id":"a","a":2,"v":4}"#, r#"{"id":"a ","a":3,"v":1}"#])
        .await
        .written;
    assert_eq!((second.inserts, second.updates, second.unchanged), (1, 1, 1));
    assert_eq!(rig.deliver(&[r#"{"id":"a","a":9,"v":5}"#]).await.written.unchanged, 1);
    let all = "SELECT CONCAT_WS(' ', HEX(id), a, b, v) FROM t ORDER BY id";
    assert_eq!(rig.texts(all).await, ["41 {\"k\": 2} 2 2", "61 \"x\" 2 5", "6120 3 2 1"]);
    rig.run("ALTER TABLE t MODIFY b bigint, ALGORITHM = COPY; CREATE UNIQUE INDEX e ON t ((v + 1))").await;
    let batch = rig.batch(&[r#"{"id":"b","v":1}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(error.to_string().contains("second unique index, \"e\""), "{error}");
    rig.run("DROP INDEX e ON t").await;
    let done = rig.commit_again(&[r#"{"id":"b","v":1}"#]).await;
    assert_eq!(done.unwrap().written.inserts, 1);
}

clauses!(sink, Server:
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
    different_events_of_one_promised_key_collide,
    statements_are_filled_and_the_rest_is_written_too,
);

clauses!(tombstones, Server: a_tombstone_does_not_show_the_cut);

/// Goal: what the server fills in by itself is left to it. Method: a counter, generated columns of both kinds, a default
/// that is an expression.
#[tokio::test]
async fn numbered_and_generated_columns_fill_themselves() {
    let ddl = "CREATE TABLE t (n bigint AUTO_INCREMENT PRIMARY KEY, id int, twice int AS (id * 2) STORED, \
               thrice int AS (id * 3) VIRTUAL, u varchar(36) NOT NULL DEFAULT (concat('x', 'y')))";
    let mut rig = Rig::new(ddl, |config| config.table.mode = Some(ConflictMode::Append)).await;
    rig.deliver(&[r#"{"id":5}"#, r#"{"id":6,"n":77}"#, r#"{"id":7,"twice":1}"#]).await;
    let all = "SELECT CONCAT_WS(' ', n, id, twice, thrice, u) FROM t ORDER BY n";
    assert_eq!(rig.texts(all).await, ["1 5 10 15 xy", "77 6 12 18 xy", "78 7 14 21 xy"]);
    let many: Vec<String> = (0..500).map(|id| format!("{{\"id\":{id}}}")).collect();
    let done = rig.deliver(&strs(&many)).await;
    assert_eq!(done.written.inserts, 500);
    assert_eq!(rig.texts("SELECT CONCAT(count(*), ' ', max(twice)) FROM t").await, ["503 998"]);
}

/// Goal: an event that feeds no column at all is a row of defaults. Method: append.
#[tokio::test]
async fn a_row_of_defaults_is_a_row() {
    let ddl = "CREATE TABLE t (n int AUTO_INCREMENT PRIMARY KEY, a varchar(9) DEFAULT 'none')";
    let mut rig = Rig::new(ddl, |config| config.table.mode = Some(ConflictMode::Append)).await;
    rig.deliver(&[r#"{"id":5}"#, r#"{"id":6}"#]).await;
    assert_eq!(rig.texts("SELECT CONCAT(n, a) FROM t ORDER BY n").await, ["1none", "2none"]);
}

/// Goal: an event whose number is 0 is the row 0, not the next one that the server counts. Method: the same event twice.
#[tokio::test]
async fn zero_is_a_key_like_any_other() {
    let ddl = "CREATE TABLE t (id bigint AUTO_INCREMENT PRIMARY KEY, b int)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    for b in [1, 2] {
        rig.deliver(&[&format!("{{\"id\":0,\"b\":{b}}}")]).await;
    }
    assert_eq!(rig.texts("SELECT CONCAT(id, ' ', b) FROM t").await, ["0 2"]);
}

/// Goal: where an epoch is cut does not show with a foreign key to the table itself. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_a_foreign_key_to_itself() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int, CONSTRAINT own FOREIGN KEY (b) REFERENCES t (id))";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<Server>(
        ddl,
        "SET FOREIGN_KEY_CHECKS = 0; DELETE FROM t; SET FOREIGN_KEY_CHECKS = 1",
    )
    .await;
}

/// Goal: where an epoch is cut does not show with a trigger. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_a_trigger() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int); CREATE TABLE seen (n int); \
         CREATE TRIGGER odd BEFORE UPDATE ON t FOR EACH ROW BEGIN \
         IF NEW.b = OLD.b THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the same again'; END IF; END";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<Server>(
        ddl,
        "SET FOREIGN_KEY_CHECKS = 0; DELETE FROM t; SET FOREIGN_KEY_CHECKS = 1",
    )
    .await;
}

/// Goal: a trigger sees deletes in the order of the lane. Method: three rows, deleted in another order than that of their keys, in one
/// epoch.
#[tokio::test]
async fn a_trigger_sees_deletes_in_lane_order() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9)); \
               CREATE TABLE seen (n int AUTO_INCREMENT PRIMARY KEY, id int); \
               CREATE TRIGGER gone AFTER DELETE ON t FOR EACH ROW INSERT INTO seen (id) VALUES (OLD.id)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    rig.deliver(&[r#"{"id":0,"a":"x"}"#, r#"{"id":3,"a":"x"}"#, r#"{"id":7,"a":"x"}"#]).await;
    rig.deliver(&[r#"{"id":7,"op":"d"}"#, r#"{"id":0,"op":"d"}"#, r#"{"id":3,"op":"d"}"#]).await;
    assert_eq!(rig.texts("SELECT id FROM seen ORDER BY n").await, ["7", "0", "3"]);
}
