use hapax_engine::sink::TransactionalSink as _;
use hapax_model::mode::ConflictMode;

use super::super::rig::{Rig, keyed};
use super::*;
use crate::table::contract;

/// Goal: lanes that write the same rows at once lock them in one order, so that none ends the other. Method: two lanes,
/// one with its events backwards, epochs of several statements, over one pool.
#[tokio::test(flavor = "multi_thread")]
async fn lanes_that_share_rows_do_not_deadlock() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, b int, CONSTRAINT never CHECK (b >= 0))";
    let mut rig = Rig::unclaimed(ddl, |config| {
        keyed(ConflictMode::Update)(config);
        config.rows_per_statement = 20;
    })
    .await;
    let pool = rig.config.pool();
    let lane = |id| PostgresSink::new(rig.config.clone(), pool.clone(), id);
    contract::sink::lanes_that_share_rows_do_not_deadlock(lane).await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(rig.texts(deadlocks).await, ["0"]);
    // Which lane was last is open; that an epoch is never seen in half is not.
    let seen = rig.texts("SELECT count(*) || ' ' || count(DISTINCT b) FROM t").await;
    assert_eq!(seen, ["100 1"]);
}

/// Goal: lanes of which rows are refused do not end each other. Method: lanes that share rows, in opposite orders, each with
/// a second pass in every epoch, beside one without.
#[tokio::test(flavor = "multi_thread")]
async fn lanes_with_refused_rows_do_not_deadlock() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, b int, CONSTRAINT never CHECK (b >= 0))";
    let mut rig = Rig::unclaimed(ddl, |config| {
        keyed(ConflictMode::Update)(config);
        config.rows_per_statement = 20;
    })
    .await;
    let pool = rig.config.pool();
    let lane = |id| PostgresSink::new(rig.config.clone(), pool.clone(), id);
    contract::sink::lanes_with_refused_rows_do_not_deadlock(lane).await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(rig.texts(deadlocks).await, ["0"]);
    let seen = rig.texts("SELECT count(*) || ' ' || count(DISTINCT b) FROM t").await;
    assert_eq!(seen, ["100 1"]);
}

/// Goal: a trigger may raise whatever SQLSTATE it likes, and only its row dies. Method: one of no known class.
#[tokio::test]
async fn a_trigger_may_raise_any_state() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, b int);
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF new.b = 13 THEN RAISE EXCEPTION 'not this one' USING ERRCODE = 'ABC01'; END IF; RETURN new; END $$;
        CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let done = rig.deliver(&[r#"{"id":1,"b":1}"#, r#"{"id":2,"b":13}"#]).await;
    assert_eq!(done.dead_inputs, [1]);
    assert_eq!(
        rig.texts("SELECT code || message FROM hapax.dead_letters").await,
        ["HX2036not this one (SQLSTATE ABC01)"]
    );
}

/// Goal: a commit that is dropped while the server works is in doubt, and the epoch lands once. Method: drop it while a
/// trigger sleeps, take the delivery back, commit again.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_commit_is_taken_back_and_lands_once() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, b int);
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN new; END $$;
        CREATE TRIGGER s BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()";
    let mut rig = Rig::new(ddl, |config| {
        keyed(ConflictMode::Update)(config);
        config.claim_timeout = std::time::Duration::from_millis(300);
    })
    .await;
    let record = rig.drop_commit(&[r#"{"id":1,"b":1}"#], std::time::Duration::from_millis(300)).await;
    rig.run("DROP TRIGGER s ON t").await;
    rig.sink.commit_transaction(&record).await.unwrap();
    assert_eq!(rig.texts("SELECT b FROM t").await, ["1"]);
    assert_eq!(rig.texts("SELECT epoch || ' ' || rows FROM hapax.progress").await, ["1 1"]);
}
