use hapax_engine::sink::{SinkError, Target as _, TransactionalSink as _};
use hapax_model::mode::ConflictMode;
use hapax_model::position::DeliveryId;

use super::super::rig::{Rig, keyed};
use super::super::sample::{id, take};
use super::*;

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
    let lane = |name: &str| {
        let id = DeliveryId { lane: name.into(), ..id("rig") };
        MysqlSink::new(rig.config.clone(), pool.clone(), id)
    };
    let forwards: Vec<String> = (0..100).map(|id| format!("{{\"id\":{id},\"b\":1}}")).collect();
    let backwards: Vec<String> = (0..100).rev().map(|id| format!("{{\"id\":{id},\"b\":2}}")).collect();
    let (one, two) = tokio::join!(deliver(lane("one"), &rig, &forwards), deliver(lane("two"), &rig, &backwards));
    for sink in [one, two] {
        let metrics = sink.unwrap().metrics();
        assert_eq!((metrics.commits, metrics.commit_failures, metrics.failures), (10, 0, 0));
    }
    // Which lane was last is open; that an epoch is never seen in half is not.
    let seen = rig.texts("SELECT CONCAT(count(*), ' ', count(DISTINCT b)) FROM t").await;
    assert_eq!(seen, ["100 1"]);
}

/// Ten epochs of the same inputs.
async fn deliver(mut sink: MysqlSink, rig: &Rig, inputs: &[String]) -> Result<MysqlSink, SinkError> {
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    sink.inspect().await?;
    let mut progress = sink.init_transactions(&take(0)).await?;
    for _ in 0..10 {
        let batch = crate::table::sample::batch(sink.fields(), progress.bookmark.position.offset, &inputs);
        let record = rig.record_after(&progress, &batch);
        sink.begin_transaction(record.epoch)?;
        sink.write(batch.into())?;
        progress = sink.commit_transaction(&record).await?.progress;
    }
    Ok(sink)
}
