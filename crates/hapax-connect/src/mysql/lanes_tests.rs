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
    let lane = |id| MysqlSink::new(rig.config.clone(), pool.clone(), id);
    contract::sink::lanes_that_share_rows_do_not_deadlock(lane).await;
    // Which lane was last is open; that an epoch is never seen in half is not.
    let seen = rig.texts("SELECT CONCAT(count(*), ' ', count(DISTINCT b)) FROM t").await;
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
    let lane = |id| MysqlSink::new(rig.config.clone(), pool.clone(), id);
    contract::sink::lanes_with_refused_rows_do_not_deadlock(lane).await;
    let seen = rig.texts("SELECT CONCAT(count(*), ' ', count(DISTINCT b)) FROM t").await;
    assert_eq!(seen, ["100 1"]);
}
