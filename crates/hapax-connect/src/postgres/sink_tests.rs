use std::time::Duration;

use hapax_engine::contract::sink::{Harness, POISON, SeenRow, every_clause};
use hapax_engine::sink::Reaction;
use hapax_engine::sink::{Target as _, TransactionalSink as _};
use hapax_engine::state_progress::AfterCrash;
use hapax_model::epoch::Epoch;
use hapax_model::key::DedupStrategy;
use hapax_model::ledger::Totals;
use hapax_model::mode::ConflictMode;

use super::super::config::Deletes;
use super::super::idempotent::PostgresIdempotentSink;
use super::super::rig::{Rig, SLEEPY, Server, end_the_sleeper, keyed, texts};
use super::super::sample::{Place, id, run};
use super::super::state_database::StateDatabase;
use super::*;
use crate::table::contract::state_store::{AFTER_CRASH, ByState, StateFile, StateStoreOfTest};
use crate::table::contract::{self, clauses};
use crate::table::rig::{Database as _, block_on, of_contract, strs};

/// A table of every mode, under a name that wants to be more than a name.
const TABLE: &str = "\"a\"\"; DROP TABLE x; --\"";

struct Postgres {
    place: Place,
    mode: ConflictMode,
}

impl Postgres {
    fn config(&self) -> PostgresSinkConfig {
        let mut config = PostgresSinkConfig::new(self.place.url(), TABLE);
        config.claim_timeout = Duration::from_millis(300);
        of_contract(&mut config.table, self.mode);
        config
    }

    fn ask(&self, sql: &str) -> Vec<String> {
        block_on(async { texts(&self.place.bare().await, sql).await })
    }
}

impl Harness for Postgres {
    type Sink = PostgresSink;

    fn empty(&mut self, mode: ConflictMode) {
        let key = if mode == ConflictMode::Append { "NOT NULL" } else { "PRIMARY KEY" };
        let sql = format!(
            "CREATE TABLE x (a int); CREATE TABLE {TABLE} (id bigint {key}, \
             amount integer NOT NULL CHECK (amount <> {POISON}), seq bigint, hapax_deleted boolean DEFAULT false)"
        );
        self.mode = mode;
        // One database for all clauses: making one takes longer than a clause.
        block_on(async {
            let session = self.place.connect().await;
            let clear =
                format!("DROP TABLE IF EXISTS x, {TABLE}; TRUNCATE hapax.progress, hapax.epochs, hapax.dead_letters");
            run(&session, &format!("{clear}; {sql}")).await;
        });
    }

    fn sink(&self, id: &DeliveryId) -> PostgresSink {
        let config = self.config();
        let pool = config.pool();
        PostgresSink::new(config, pool, id.clone())
    }

    fn rows(&self) -> Vec<SeenRow> {
        let sql = format!(
            "SELECT id || ' ' || amount FROM {TABLE}, (SELECT count(*) FROM x) y \
                           WHERE hapax_deleted IS NOT true ORDER BY id, amount"
        );
        let pair = |text: &String| {
            let (id, amount) = text.split_once(' ').unwrap();
            (id.parse().unwrap(), amount.parse().unwrap())
        };
        self.ask(&sql).iter().map(pair).collect()
    }

    fn letters(&self) -> Vec<u64> {
        let texts = self.ask("SELECT position FROM hapax.dead_letters ORDER BY position::bigint");
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn is_one_transaction(&self) -> bool {
        true
    }
}

/// The same table as a target that holds nothing of ours, with progress in a state store.
struct BarePostgres<S> {
    target: Postgres,
    store: S,
    after_crash: AfterCrash,
}

impl<S: StateStoreOfTest> Harness for BarePostgres<S> {
    type Sink = ByState<PostgresDatabase, S>;

    fn empty(&mut self, mode: ConflictMode) {
        self.target.empty(mode);
        self.store.empty();
    }

    fn sink(&self, id: &DeliveryId) -> Self::Sink {
        let config = self.target.config();
        let pool = config.pool();
        let sink = PostgresIdempotentSink::new(config, pool, DedupStrategy::SourceOffset);
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

/// Goal: PostgreSQL keeps the contract of every transactional sink. Method: all its clauses, on a real server.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_the_contract_of_a_transactional_sink() {
    let place = Place::new().await;
    every_clause(&mut Postgres { place, mode: ConflictMode::Append }).await;
}

/// Goal: with progress in a state store PostgreSQL keeps what the same contract says, as far as two commits can. Method: all its
/// clauses, for workers that write again after a crash and for those that never do.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_the_contract_with_progress_in_the_state_store() {
    for after_crash in AFTER_CRASH {
        let target = Postgres { place: Place::new().await, mode: ConflictMode::Append };
        every_clause(&mut BarePostgres { target, store: StateFile::new(), after_crash }).await;
    }
}

/// Goal: the same where the state store is a PostgreSQL database, another one than the target. Method: the same clauses.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_the_contract_with_progress_in_postgres_elsewhere() {
    for after_crash in AFTER_CRASH {
        let target = Postgres { place: Place::new().await, mode: ConflictMode::Append };
        every_clause(&mut BarePostgres { target, store: StateDatabase::new().await, after_crash }).await;
    }
}

const PLAIN: &str = Server::PLAIN;

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
    a_table_that_no_longer_fits_is_schema_evolution(
        "CREATE TABLE t (id int NOT NULL, a text); CREATE UNIQUE INDEX k ON t (id)",
        "DROP INDEX k"
    ),
    a_key_column_takes_the_keys_hash(
        "bytea",
        &[
            (ConflictMode::Update, "bytea", 16),
            (ConflictMode::Update, "text", 29),
            (ConflictMode::Ignore, "bytea", 16),
            (ConflictMode::Newer, "char(29)", 29),
        ]
    ),
    // Times, numbers and padded text.
    a_key_is_what_the_table_takes_for_one(&[
        ("timestamptz", "\"2026-11-16T03:00:00Z\"", "\"2026-11-16 04:00:00+01:00\""),
        ("numeric", "1.50", "15e-1"),
        ("float8", "0", "-0.0"),
        ("char(5)", "\"a\"", "\"a  \""),
        ("uuid", "\"F0000000-0000-0000-0000-000000000001\"", "\"f0000000000000000000000000000001\""),
        ("date", "\"2026-11-16\"", "\"2026-11-16\""),
    ]),
    the_strictly_newer_row_stays(&[
        ("bigint", "9", "10"),
        ("text", "\"B\"", "\"a\""),
        ("timestamptz", "\"2026-01-01\"", "\"2026-01-02\""),
    ]),
    different_events_of_one_promised_key_collide,
    statements_are_filled_and_the_rest_is_written_too,
);

clauses!(tombstones, Server: a_tombstone_does_not_show_the_cut);

/// Goal: rows of a partitioned table are told apart as elsewhere. Method: new and known keys in two partitions, in a
/// schema of its own.
#[tokio::test]
async fn partitioned_tables_in_a_schema_are_written_and_counted() {
    let ddl =
        "CREATE SCHEMA \"Sales.x\"; CREATE TABLE \"Sales.x\".t (id int PRIMARY KEY, a text) PARTITION BY RANGE (id);
               CREATE TABLE p1 PARTITION OF \"Sales.x\".t FOR VALUES FROM (0) TO (10);
               CREATE TABLE p2 PARTITION OF \"Sales.x\".t FOR VALUES FROM (10) TO (20)";
    let mut rig = Rig::new(ddl, |config| {
        keyed(ConflictMode::Update)(config);
        config.table.name = "\"Sales.x\".t".into();
    })
    .await;
    let first = rig.deliver(&[r#"{"id":1,"a":"x"}"#, r#"{"id":11,"a":"x"}"#]).await.written;
    assert_eq!((first.inserts, first.updates), (2, 0));
    let second = rig.deliver(&[r#"{"id":1,"a":"y"}"#, r#"{"id":12,"a":"y"}"#, r#"{"id":99,"a":"no"}"#]).await;
    assert_eq!((second.written.inserts, second.written.updates, second.dead_inputs), (1, 1, vec![2]));
    assert_eq!(rig.texts("SELECT id || a FROM p1").await, ["1y"]);
    assert_eq!(rig.texts("SELECT code FROM hapax.dead_letters").await, ["HX2032"]);
}

/// Goal: what the server fills in by itself is left to it. Method: identity of both kinds, a generated column, COPY.
#[tokio::test]
async fn identity_and_generated_columns_fill_themselves() {
    let ddl = "CREATE TABLE t (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
               m bigint GENERATED BY DEFAULT AS IDENTITY, id int, twice int GENERATED ALWAYS AS (id * 2) STORED)";
    let mut rig = Rig::new(ddl, |_| ()).await;
    assert_eq!(rig.sink.resolved_mode().map(|(mode, _)| mode), Some(ConflictMode::Append));
    rig.deliver(&[r#"{"id":5,"n":77}"#, r#"{"id":6,"m":77}"#]).await;
    assert_eq!(rig.texts("SELECT concat_ws(' ', n, m, id, twice) FROM t ORDER BY id").await, ["1 1 5 10", "2 77 6 12"]);
    let many: Vec<String> = (0..500).map(|id| format!("{{\"id\":{id}}}")).collect();
    let done = rig.deliver(&strs(&many)).await;
    assert_eq!(done.written.inserts, 500);
    assert_eq!(rig.texts("SELECT count(*) || ' ' || max(twice) FROM t").await, ["502 998"]);
}

/// Goal: an event that feeds no column at all is a row of defaults. Method: append.
#[tokio::test]
async fn a_row_of_defaults_is_a_row() {
    let mut rig = Rig::new("CREATE TABLE t (n serial, a text DEFAULT 'none')", |_| ()).await;
    rig.deliver(&[r#"{"id":5}"#, r#"{"id":6}"#]).await;
    assert_eq!(rig.texts("SELECT n || a FROM t ORDER BY n").await, ["1none", "2none"]);
}

/// Goal: a column that becomes narrower or goes away is noticed before a value is rounded into it. Method: alter its
/// type, then drop it.
#[tokio::test]
async fn a_changed_column_is_noticed() {
    let mut rig = Rig::new("CREATE TABLE t (id int PRIMARY KEY, a numeric(8,3))", keyed(ConflictMode::Update)).await;
    rig.deliver(&[r#"{"id":1,"a":1.125}"#]).await;
    rig.run("ALTER TABLE t ALTER COLUMN a TYPE numeric(8,1)").await;
    let done = rig.deliver(&[r#"{"id":2,"a":2.125}"#, r#"{"id":3,"a":3.5}"#]).await;
    assert_eq!(done.dead_inputs, [0]);
    rig.run("ALTER TABLE t DROP COLUMN a").await;
    let batch = rig.batch(&[r#"{"id":4,"a":1}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(error.to_string().contains("column \"a\" is gone"), "{error}");
    rig.claim().await;
    rig.sink.abort_transaction().await.unwrap();
    rig.deliver(&[r#"{"id":5}"#, r#"{"id":6,"a":null}"#]).await;
    assert_eq!(rig.texts("SELECT id FROM t ORDER BY id").await, ["1", "3", "5", "6"]);
}

/// Goal: a table that was dropped and made again is another table, between runs and in the middle of one; one that was
/// renamed is named. Method: recreate, rename.
#[tokio::test]
async fn a_recreated_or_renamed_table_is_noticed() {
    let mut rig = Rig::new(PLAIN, keyed(ConflictMode::Update)).await;
    let before = rig.sink.inspect().await.unwrap();
    rig.deliver(&[r#"{"id":1,"a":"x"}"#]).await;
    assert_eq!(rig.sink.inspect().await.unwrap(), before, "delivering changes no identity");
    rig.run("ALTER TABLE t RENAME TO old").await;
    let batch = rig.batch(&[r#"{"id":2,"a":"x"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::SchemaEvolution { .. }), "{error}");
    assert!(error.to_string().contains("renamed to public.old"), "{error}");
    rig.run(PLAIN).await;
    rig.sink.inspect().await.unwrap();
    rig.run("DROP TABLE t; ALTER TABLE old RENAME TO t").await;
    rig.claim().await;
    assert_eq!(rig.sink.inspect().await.unwrap(), before, "a name is no identity");
    rig.run(&format!("DROP TABLE t; {PLAIN}")).await;
    rig.sink.abort_transaction().await.unwrap();
    let batch = rig.batch(&[r#"{"id":2,"a":"x"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::ContractChanged { .. }), "{error}");
    assert_eq!(rig.texts("SELECT a FROM t").await, [""; 0]);
}

/// Goal: rows that a trigger drops or refuses are dead letters, and only they. Method: a trigger that does both, by
/// COPY and by UNNEST.
#[tokio::test]
async fn a_row_that_a_trigger_swallows_or_refuses_is_a_dead_letter() {
    let ddl = "CREATE TABLE t (id int, b int);
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF new.b = 13 THEN RETURN NULL; END IF;
          IF new.b = 17 THEN RAISE 'unlucky %', new.b; END IF;
          RETURN new; END $$;
        CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()";
    for count in [30, 100] {
        let mut rig = Rig::new(ddl, |config| config.table.mode = Some(ConflictMode::Append)).await;
        let inputs: Vec<String> = (0..count).map(|b| format!("{{\"id\":{b},\"b\":{b}}}")).collect();
        let done = rig.deliver(&strs(&inputs)).await;
        assert_eq!(done.dead_inputs, [13, 17]);
        assert_eq!(rig.texts("SELECT code FROM hapax.dead_letters ORDER BY id").await, ["HX2023", "HX2036"]);
        assert_eq!(rig.texts("SELECT count(*) FROM t").await, [(count - 2).to_string()]);
        let delivered = count - 2;
        assert_eq!(done.progress.totals, Totals { read: count, delivered, filtered: 0, dead: 2, rows: delivered });
    }
}

/// Goal: the same in every mode, and for deletes. Method: the clause of databases whose triggers can leave out rows, into a
/// table, a partitioned one, and one of which only a partition has the triggers.
#[tokio::test]
async fn a_row_that_a_trigger_leaves_out_is_a_dead_letter_in_every_mode() {
    const FUNCTION: &str = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF tg_op = 'DELETE' THEN IF old.b = 15 THEN RETURN NULL; END IF; RETURN old; END IF;
          IF tg_op = 'INSERT' AND new.b = 13 THEN RETURN NULL; END IF;
          IF tg_op = 'UPDATE' AND (new.b = 14 OR old.b = 15) THEN RETURN NULL; END IF;
          RETURN new; END $$; CREATE TRIGGER no BEFORE INSERT OR UPDATE OR DELETE ON";
    const PARTS: &str = "PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF t FOR VALUES FROM (0) TO (100)";
    for (storage, on) in [("", "t"), (PARTS, "t"), (PARTS, "part")] {
        let words = crate::table::contract::triggers::LeavingOut {
            version_and_deleted: ["bytea", "boolean NOT NULL DEFAULT false"],
            rules: format!("{storage}; {FUNCTION} {on} FOR EACH ROW EXECUTE FUNCTION f()"),
            newest: "UPDATE t SET hapax_version = '\\xffffffff' WHERE id = 5",
        };
        crate::table::contract::triggers::a_row_that_a_trigger_leaves_out_is_a_dead_letter::<Server>(words).await;
    }
}

/// Goal: each bad value is a dead letter that says why, with the source bytes; the rest goes on. Method: one of each.
#[tokio::test]
async fn bad_values_are_dead_letters_with_their_reason() {
    let ddl = "CREATE TYPE mood AS ENUM ('sad', 'glad');
               CREATE TABLE t (id bigint PRIMARY KEY, a varchar(5) NOT NULL, b smallint CHECK (b < 100), c int UNIQUE, \
               d date, m mood, n numeric(5,2), p int REFERENCES t)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let inputs = [
        r#"{"id":1,"a":"x","b":1,"c":1,"m":"glad","n":1.25}"#,
        r#"{"id":2,"a":"x","b":70000}"#,
        r#"{"id":3,"a":null}"#,
        r#"{"id":4,"a":"too long"}"#,
        r#"{"id":5,"a":"x","b":100}"#,
        r#"{"id":6,"a":"x","c":1}"#,
        r#"{"id":7,"a":"x\u0000"}"#,
        r#"{"id":8,"a":"x","d":"2026-02-30"}"#,
        r#"{"id":9,"a":"x","m":"angry"}"#,
        r#"{"id":10,"a":"x","n":1234.5}"#,
        r#"{"id":11,"a":"x","p":77}"#,
        "no event",
        r#"{"id":12,"a":"x","p":1}"#,
    ];
    let done = rig.deliver(&inputs).await;
    assert_eq!(done.dead_inputs, (1..12).collect::<Vec<_>>());
    let codes = rig.texts("SELECT code FROM hapax.dead_letters ORDER BY id").await;
    let expected = ["HX2020", "HX2021", "HX2020", "HX2032", "HX2031", "HX2020", "HX2020", "HX2050", "HX2020", "HX2033"];
    assert_eq!(codes[..10], expected);
    let bytes = rig.texts("SELECT convert_from(bytes, 'UTF8') FROM hapax.dead_letters ORDER BY id").await;
    assert_eq!(bytes, inputs[1..12]);
    assert_eq!(rig.texts("SELECT id FROM t ORDER BY id").await, ["1", "12"]);
    assert!(done.progress.totals.adds_up());
}

/// Goal: after a rejection rows go in lane order, so that a second unique index rejects only the guilty. Method: a value
/// that moves from one key to another within the epoch, against the order of the keys, beside a poisoned row.
#[tokio::test]
async fn after_a_rejection_rows_go_in_lane_order() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, seat text UNIQUE, b int CHECK (b <> 13));
               INSERT INTO t VALUES (9, 'window', 0)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let mut inputs: Vec<String> = vec![
        r#"{"id":9,"seat":"aisle","b":1}"#.into(),
        r#"{"id":1,"seat":"window","b":1}"#.into(),
        r#"{"id":5,"seat":"bad","b":13}"#.into(),
    ];
    inputs.extend((100..140).map(|id| format!("{{\"id\":{id},\"seat\":\"{id}\",\"b\":1}}")));
    let done = rig.deliver(&strs(&inputs)).await;
    assert_eq!(done.dead_inputs, [2]);
    assert_eq!(rig.texts("SELECT id || seat FROM t WHERE id < 100 ORDER BY id").await, ["1window", "9aisle"]);
    assert_eq!(done.written.failures, 1);
}

/// Goal: a deferred constraint fails where its row can be blamed. Method: a foreign key that waits for COMMIT.
#[tokio::test]
async fn a_deferred_constraint_blames_its_row() {
    let ddl = "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1);
               CREATE TABLE t (id int PRIMARY KEY, p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let done = rig.deliver(&[r#"{"id":1,"p":1}"#, r#"{"id":2,"p":2}"#]).await;
    assert_eq!(done.dead_inputs, [1]);
    assert_eq!(rig.texts("SELECT id FROM t").await, ["1"]);
}

/// Goal: a delete in `newer` is a tombstone that older events do not undo. Method: delete, then an older event.
#[tokio::test]
async fn a_tombstone_keeps_older_events_out() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, a text NOT NULL, u uuid NOT NULL, v int, hapax_deleted boolean)";
    let mut rig = Rig::new(ddl, |config| {
        keyed(ConflictMode::Newer)(config);
        config.table.version_column = Some("v".into());
        config.table.deletes = Deletes::Some;
    })
    .await;
    let done = rig.deliver(&[r#"{"id":1,"v":5,"op":"d"}"#]).await.written;
    assert_eq!(done.deletes, 1);
    let late = r#"{"id":1,"v":4,"a":"late","u":"00000000-0000-0000-0000-000000000007"}"#;
    assert_eq!(rig.deliver(&[late]).await.written.unchanged, 1);
    assert_eq!(rig.texts("SELECT hapax_deleted || a FROM t").await, ["true"]);
}

/// Goal: lanes that lock each other's rows the wrong way round both get there. Method: a deadlock with another session,
/// which loses nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_is_tried_again() {
    let ddl = format!("{PLAIN}; INSERT INTO t VALUES (1, 'x', 0), (2, 'x', 0)");
    let mut rig = Rig::unclaimed(&ddl, keyed(ConflictMode::Update)).await;
    // One row per statement, so that there is a moment between the two locks.
    rig.config.rows_per_statement = 1;
    rig.sink = PostgresSink::new(rig.config.clone(), rig.config.pool(), id("rig"));
    rig.claim().await;
    let other = rig.database.place.bare().await;
    // The other session waits for longer before it looks for a deadlock: ours is the one that is ended.
    run(&other, "SET deadlock_timeout = '10s'; BEGIN; UPDATE t SET b = 7 WHERE id = 2").await;
    let theirs = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        run(&other, "UPDATE t SET b = 7 WHERE id = 1").await;
        run(&other, "COMMIT").await;
    };
    let batch = rig.batch(&[r#"{"id":1,"b":1}"#, r#"{"id":2,"b":1}"#]);
    let (done, ()) = tokio::join!(rig.try_deliver(batch), theirs);
    assert_eq!(done.unwrap().written.updates, 2);
    assert_eq!(rig.texts("SELECT b FROM t ORDER BY id").await, ["1", "1"]);
    assert_eq!(rig.sink.metrics().commit_failures, 0);
}

/// Goal: a worker that stands still inside its transaction does not keep the lane. Method: a session of ours that holds
/// the progress row is ended by the next claim; what it wrote is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_ends_a_worker_that_stands_still() {
    let mut rig = Rig::new(PLAIN, |config| {
        keyed(ConflictMode::Update)(config);
        config.claim_timeout = Duration::from_millis(300);
    })
    .await;
    let zombie = rig.database.place.bare().await;
    run(&zombie, "BEGIN; UPDATE hapax.progress SET epoch = 9; INSERT INTO t VALUES (66, 'zombie', 0)").await;
    rig.claim().await;
    assert_eq!(rig.progress.as_ref().map(|progress| progress.epoch), Some(Epoch(0)));
    rig.deliver(&[r#"{"id":1,"a":"x"}"#]).await;
    assert_eq!(rig.texts("SELECT a FROM t").await, ["x"]);
    assert!(zombie.client().batch_execute("COMMIT").await.is_err());
}

/// Goal: a table that somebody holds is waited for, then named, and nothing is lost. Method: another session locks it.
#[tokio::test]
async fn a_locked_table_is_waited_for_and_named() {
    let rig = Rig::new(PLAIN, |config| {
        keyed(ConflictMode::Update)(config);
        config.limits.lock = Duration::from_millis(200);
    })
    .await;
    contract::sink::a_locked_table_is_waited_for_and_named(
        rig,
        "BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE",
        "ROLLBACK",
    )
    .await;
}

/// Goal: a session that is ended in mid-epoch leaves nothing behind, and the same epoch lands once. Method: end it while
/// a trigger sleeps.
#[tokio::test(flavor = "multi_thread")]
async fn an_ended_session_leaves_nothing_and_the_epoch_lands_once() {
    let mut rig = Rig::new(SLEEPY, keyed(ConflictMode::Update)).await;
    let ending = end_the_sleeper(rig.database.place.bare().await);
    let batch = rig.batch(&[r#"{"id":1,"b":1}"#]);
    let (done, ()) = tokio::join!(rig.try_deliver(batch), ending);
    let error = done.unwrap_err();
    assert_eq!(error.reaction(), Reaction::Retry, "{error}");
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["0"]);
    rig.commit_again(&[r#"{"id":1,"b":1}"#]).await.unwrap();
    assert_eq!(rig.texts("SELECT b FROM t").await, ["1"]);
    assert_eq!(rig.texts("SELECT epoch FROM hapax.progress").await, ["1"]);
}

/// Goal: where an epoch is cut does not show with a second unique index. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_a_second_unique_index() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int UNIQUE)";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<Server>(ddl, "DELETE FROM t").await;
}

/// Goal: where an epoch is cut does not show with a foreign key to the table itself. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_a_foreign_key_to_itself() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int, CONSTRAINT own FOREIGN KEY (b) REFERENCES t (id))";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<Server>(ddl, "DELETE FROM t").await;
}

/// Goal: where an epoch is cut does not show with a trigger. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_a_trigger() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int); \
         CREATE FUNCTION full_house() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF (SELECT count(*) FROM t WHERE b = new.b) > 1 THEN RAISE EXCEPTION 'taken'; END IF; RETURN NULL; END $$; \
         CREATE TRIGGER full_house AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION full_house()";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<Server>(ddl, "DELETE FROM t").await;
}

/// Goal: where an epoch is cut does not show with an exclusion constraint. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_an_exclusion_constraint() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int, CONSTRAINT apart EXCLUDE USING btree (b WITH =))";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<Server>(ddl, "DELETE FROM t").await;
}

/// Goal: where an epoch is cut does not show with a deferred constraint. Method: the clause of all databases.
#[tokio::test]
async fn cuts_do_not_show_with_a_deferred_constraint() {
    let ddl = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a varchar(9), b int UNIQUE DEFERRABLE INITIALLY DEFERRED)";
    crate::table::contract::sink::where_an_epoch_is_cut_does_not_show::<Server>(ddl, "DELETE FROM t").await;
}
