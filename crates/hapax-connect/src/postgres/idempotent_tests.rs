use std::sync::Arc;

use hapax_engine::second_pass::SecondPass;
use hapax_engine::sink::{IdempotentSink as _, UpsertLimits};
use hapax_model::epoch::Epoch;
use hapax_model::key::DedupStrategy;
use hapax_model::mode::ConflictMode;
use hapax_model::rejects::{OnReject, RejectRule};

use super::super::rig::{SLEEPY, Server, end_the_sleeper, texts};
use super::PostgresIdempotentSink;
use crate::table::contract::{self, clauses};
use crate::table::rig::{Database as _, by_id};
use crate::table::sample::batch;

clauses!(idempotent, Server:
    writing_twice_leaves_what_writing_once_leaves,
    a_replayed_batch_leaves_the_same_rows,
    refused_rows_are_returned,
    too_many_refused_rows_leave_nothing_behind,
    a_row_is_judged_whoever_takes_its_place,
    the_target_gets_nothing_of_ours(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND oid > 16384 \
         UNION SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hapax%'"
    ),
    the_key_follows_from_the_mode,
    a_changed_schema_is_healed_or_named,
);

/// Goal: an upsert whose session is ended is repeated by the same sink. Method: the clause of all servers.
#[tokio::test(flavor = "multi_thread")]
async fn an_upsert_whose_session_was_ended_is_repeated() {
    let database = Server::foreign(SLEEPY).await;
    let ending = end_the_sleeper(database.place.bare().await);
    contract::idempotent::an_upsert_whose_session_was_ended_is_repeated(database, ending).await;
}

/// Goal: the upsert is prepared once and kept for the next batch. Method: two batches over a pool of one session; what that
/// session has prepared for the table, and when.
#[tokio::test]
async fn the_upsert_is_prepared_once() {
    let database = Server::foreign(Server::PLAIN).await;
    let mut config = database.config();
    config.connections = 1;
    by_id(Server::table(&mut config), ConflictMode::Update);
    let (pool, patience) = (config.pool(), config.patience);
    let mut sink = PostgresIdempotentSink::new(config, pool.clone(), DedupStrategy::SourceOffset);
    sink.inspect().await.unwrap();
    let rejects = RejectRule::new(OnReject::DeadLetter, 1000);
    let limits = UpsertLimits { epoch: Epoch(1), rejects, pass: SecondPass::default() };
    let mut seen = Vec::new();
    for id in [1, 2] {
        let batch = batch(sink.fields(), id, &[&format!("{{\"id\":{id},\"a\":\"x\",\"b\":1}}")]);
        sink.upsert_batch(Arc::new(batch), &limits).await.unwrap();
        let session = pool.take(patience).await.unwrap();
        let prepared = "SELECT prepare_time FROM pg_prepared_statements WHERE statement LIKE '%ON CONFLICT%'";
        seen.push(texts(&session, prepared).await);
    }
    assert_eq!((seen[0].len(), &seen[0]), (1, &seen[1]));
}
