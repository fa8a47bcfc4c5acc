use hapax_engine::sink::{Target as _, TransactionalSink as _};
use hapax_model::mode::ConflictMode;

use super::super::config::Deletes;
use super::super::rig::{Rig, Server, keyed};
use super::*;
use crate::table::contract::clauses;
use crate::table::rig::Database as _;

const PLAIN: &str = Server::PLAIN;

clauses!(sink, Server:
    a_table_that_no_longer_fits_is_schema_evolution(
        "CREATE TABLE t (n int PRIMARY KEY AUTO_INCREMENT, id int NOT NULL, a varchar(9)); ALTER TABLE t DROP PRIMARY KEY, \
               MODIFY n int; CREATE UNIQUE INDEX k ON t (id)",
        "DROP INDEX k ON t"
    ),
    the_strictly_newer_row_stays(&[
        ("bigint", "9", "10"),
        ("varchar(9)", "\"B\"", "\"a\""),
        ("timestamp NULL", "\"2026-01-01\"", "\"2026-01-02\""),
        ("decimal(9,2)", "9.5", "10.25"),
    ]),
    a_key_column_takes_the_keys_hash(
        "binary(18)",
        &[
            (ConflictMode::Update, "binary(16)", 16),
            (ConflictMode::Update, "varchar(40)", 29),
            (ConflictMode::Ignore, "varbinary(20)", 16),
            (ConflictMode::Newer, "char(29)", 29),
        ]
    ),
);

/// Goal: a column that becomes shorter or goes away is noticed before a value is cut. Method: alter its type in place,
/// then drop it.
#[tokio::test]
async fn a_changed_column_is_noticed() {
    let mut rig = Rig::new(PLAIN, keyed(ConflictMode::Update)).await;
    rig.deliver(&[r#"{"id":1,"a":"xxx"}"#]).await;
    rig.run("ALTER TABLE t MODIFY COLUMN a varchar(200), ALGORITHM = INSTANT").await;
    let long = format!("{{\"id\":2,\"a\":\"{}\"}}", "y".repeat(150));
    rig.deliver(&[&long]).await;
    rig.run("ALTER TABLE t DROP COLUMN a, ALGORITHM = INSTANT").await;
    let batch = rig.batch(&[r#"{"id":3,"a":"z"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(error.to_string().contains("column \"a\" is gone"), "{error}");
    rig.claim().await;
    rig.sink.abort_transaction().await.unwrap();
    rig.deliver(&[r#"{"id":4}"#]).await;
    assert_eq!(rig.texts("SELECT id FROM t ORDER BY id").await, ["1", "2", "4"]);
}

/// Goal: nobody changes the table between our look at it and our COMMIT. Method: an ALTER that waits for the epoch.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_waits_for_the_epoch() {
    let ddl =
        "CREATE TABLE t (id int PRIMARY KEY, b int); CREATE TRIGGER s BEFORE INSERT ON t FOR EACH ROW DO SLEEP(3)";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let (mut other, mut watcher) = (rig.database.place.bare().await, rig.database.place.bare().await);
    let altering = async {
        // The trigger sleeps inside the epoch.
        super::super::sample::until_a_session_is(&mut watcher, "User sleep").await;
        super::super::sample::run(&mut other, "ALTER TABLE t DROP COLUMN b").await;
    };
    let batch = rig.batch(&[r#"{"id":1,"b":1}"#]);
    let (done, ()) = tokio::join!(rig.try_deliver(batch), altering);
    assert_eq!(done.unwrap().written.inserts, 1);
    rig.run("DROP TRIGGER s").await;
    rig.deliver(&[r#"{"id":2}"#]).await;
    assert_eq!(rig.texts("SELECT id FROM t ORDER BY id").await, ["1", "2"]);
}

/// Goal: a table that was dropped and made again is another table, between runs and in the middle of one; one that was
/// renamed is gone until it has its name again. Method: rename, recreate.
#[tokio::test]
async fn a_recreated_or_renamed_table_is_noticed() {
    let mut rig = Rig::new(PLAIN, keyed(ConflictMode::Update)).await;
    let before = rig.sink.inspect().await.unwrap();
    rig.deliver(&[r#"{"id":1,"a":"x"}"#]).await;
    assert_eq!(rig.sink.inspect().await.unwrap(), before, "delivering changes no identity");
    rig.run("RENAME TABLE t TO old").await;
    let batch = rig.batch(&[r#"{"id":2,"a":"x"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::SchemaEvolution { .. }), "{error}");
    assert!(error.to_string().contains(&format!("renamed to {}.old;", rig.database.place.name())), "{error}");
    rig.run("RENAME TABLE old TO t").await;
    rig.claim().await;
    rig.sink.abort_transaction().await.unwrap();
    assert_eq!(rig.sink.inspect().await.unwrap(), before, "a name is no identity");
    // The time when a table was made is known by the second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    rig.run(&format!("DROP TABLE t; {PLAIN}")).await;
    let batch = rig.batch(&[r#"{"id":2,"a":"x"}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::ContractChanged { .. }), "{error}");
    assert_eq!(rig.texts("SELECT a FROM t").await, [""; 0]);
}

/// Goal: versions made from positions order rows too. Method: a later event, and one that comes again.
#[tokio::test]
async fn positions_order_rows() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, a varchar(9), hapax_version binary(18))";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Newer)).await;
    let early = rig.batch(&[r#"{"id":1,"a":"early"}"#]);
    rig.deliver(&[r#"{"id":2,"a":"x"}"#, r#"{"id":1,"a":"late"}"#]).await;
    assert_eq!(rig.try_deliver(early).await.unwrap().written.unchanged, 1);
    assert_eq!(rig.texts("SELECT a FROM t ORDER BY id").await, ["late", "x"]);
}

/// Goal: a delete in `newer` is a tombstone that older events do not undo, and a newer one does. Method: each.
#[tokio::test]
async fn a_tombstone_keeps_older_events_out() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, a varchar(9) NOT NULL, u uuid NOT NULL, e enum('x','y') NOT NULL, \
               d datetime NOT NULL, v int, hapax_deleted boolean NOT NULL DEFAULT false)";
    let mut rig = Rig::new(ddl, |config| {
        keyed(ConflictMode::Newer)(config);
        config.table.version_column = Some("v".into());
        config.table.deletes = Deletes::Some;
    })
    .await;
    let done = rig.deliver(&[r#"{"id":1,"v":5,"op":"d"}"#, r#"{"id":2,"v":5,"op":"d"}"#]).await.written;
    assert_eq!(done.deletes, 2);
    let event = |v: u32| {
        let rest = r#""u":"00000000-0000-0000-0000-000000000007","e":"y","d":"2026-01-01""#;
        format!("{{\"id\":1,\"v\":{v},\"a\":\"late\",{rest}}}")
    };
    assert_eq!(rig.deliver(&[&event(4)]).await.written.unchanged, 1);
    assert_eq!(rig.texts("SELECT CONCAT(hapax_deleted, a, e) FROM t").await, ["1x", "1x"]);
    assert_eq!(rig.deliver(&[&event(6)]).await.written.updates, 1);
    assert_eq!(rig.texts("SELECT CONCAT(hapax_deleted, a, e) FROM t ORDER BY id").await, ["0latey", "1x"]);
    assert_eq!(rig.deliver(&[r#"{"id":1,"v":6,"op":"d"}"#]).await.written.unchanged, 1, "equal is not newer");
}

/// Goal: a table that ALTER made anew, or a tool exchanged for a copy, is still ours if what we delivered is in it, also
/// after a restart; an empty one under its name is not. Method: widen a column by a copy, exchange, then truncate a copy.
#[tokio::test]
async fn a_rebuilt_table_goes_on_if_it_holds_what_was_delivered() {
    let mut rig = Rig::new("CREATE TABLE t (id int PRIMARY KEY, b int)", keyed(ConflictMode::Update)).await;
    rig.deliver(&[r#"{"id":1,"b":1}"#, r#"{"id":7,"b":1}"#]).await;
    let before = rig.sink.inspect().await.unwrap();
    rig.run("ALTER TABLE t MODIFY b bigint NOT NULL, ALGORITHM = COPY").await;
    let done = rig.deliver(&[r#"{"id":2,"b":9223372036854775807}"#, r#"{"id":3,"b":null}"#]).await;
    assert_eq!(done.dead_inputs, [1]);
    let after = rig.sink.inspect().await.unwrap();
    assert_ne!(after, before);
    assert_eq!(done.progress.contract.fact(TARGET), after.0);
    let stored = rig.sink.look().await.unwrap().unwrap();
    assert_eq!((&stored.contract, stored.epoch), (&done.progress.contract, done.progress.epoch));
    rig.run("CREATE TABLE u LIKE t; INSERT INTO u SELECT * FROM t; RENAME TABLE t TO old, u TO t").await;
    rig.deliver(&[r#"{"id":4,"b":4}"#]).await;
    assert_eq!(rig.texts("SELECT id FROM t ORDER BY id").await, ["1", "2", "4", "7"]);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    rig.run("CREATE TABLE u LIKE t; DROP TABLE t; RENAME TABLE u TO t").await;
    let batch = rig.batch(&[r#"{"id":5,"b":5}"#]);
    let error = rig.try_deliver(batch).await.unwrap_err();
    assert!(matches!(error, SinkError::ContractChanged { .. }), "{error}");
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["0"]);
}
