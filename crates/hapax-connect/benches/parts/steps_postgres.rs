//! The steps that only PostgreSQL's own statements can measure: the bare upsert, the COMMIT alone, both far away.

use hapax_sql::postgres::{CommitEnd, Limits, PostgresUrl, Session, checked_commit};
use tokio_postgres::types::ToSql;

use super::contest::Table;
use super::sinks::Postgres;
use super::steps::{self, Claimed, TIMES, timed, told};
use super::{Bench, bare, far, tables};

pub(super) async fn all(bench: &Bench<'_>) {
    bare_upserts(bench).await;
    steps::idempotent(bench, "postgres").await;
    steps::transactional(bench, "postgres").await;
    commit_alone(bench).await;
    commit_far_away(bench).await;
}

/// What the server itself takes, without anything of ours.
async fn bare_upserts(bench: &Bench<'_>) {
    for (name, rows) in
        [("bench_postgres_upsert_single, bare", 1), ("bench_postgres_upsert_batch of 1,000, bare", 1000)]
    {
        tables::make(&bench.admin, "steps", Table::Keyed, 0).await;
        let client = bare::connect(&bench.url).await;
        let statement = client.prepare(&bare::upsert_sql("steps")).await.expect("prepares");
        let columns = bare::Columns::share(&bench.orders, bench.orders.len(), 0, 1);
        let mut times = Vec::new();
        for piece in bare::pieces(0..columns.len(), rows).take(TIMES) {
            let (ids, customers) = (&columns.ids[piece.clone()], &columns.customers[piece.clone()]);
            let (amounts, statuses) = (&columns.amounts[piece.clone()], &columns.statuses[piece]);
            let values: [&(dyn ToSql + Sync); 4] = [&ids, &customers, &amounts, &statuses];
            times.push(timed(async { client.execute(&statement, &values).await.expect("writes") }).await);
        }
        told(name, if rows == 1 { "< 2 ms" } else { "< 20 ms" }, times);
        tables::remove(&bench.admin, "steps").await;
    }
}

/// The COMMIT itself, checked as every one of ours, after as many rows as an epoch has.
async fn commit_alone(bench: &Bench<'_>) {
    tables::make(&bench.admin, "steps", Table::Keyed, 0).await;
    let url = PostgresUrl::parse(&bench.url).expect("a URL");
    let session = Session::connect(&url, &Limits::default()).await.expect("a session");
    let (mut times, mut rollbacks) = (Vec::new(), Vec::new());
    for n in 0..20 {
        let sql = |n: usize| {
            let (from, to) = (n * 20_000, n * 20_000 + 19_999);
            format!("INSERT INTO steps SELECT n, 'customer', n, 'paid' FROM generate_series({from}, {to}) AS n")
        };
        session.begin().await.expect("begins");
        session.client().batch_execute(&sql(n)).await.expect("writes");
        times.push(timed(async { assert!(matches!(checked_commit(&session).await, CommitEnd::Committed)) }).await);
        session.begin().await.expect("begins");
        session.client().batch_execute(&sql(n + 100)).await.expect("writes");
        rollbacks.push(timed(async { session.rollback().await.expect("rolls back") }).await);
    }
    told("bench_jdbc_txn_commit: the checked COMMIT after 20,000 rows", "<= 50 ms", times);
    told("bench_txn_abort: ROLLBACK after 20,000 rows", "< 50 ms", rollbacks);
    tables::remove(&bench.admin, "steps").await;
}

/// The same COMMIT, and a whole epoch, over a line on which a round trip takes 20 ms.
async fn commit_far_away(bench: &Bench<'_>) {
    tables::make(&bench.admin, "steps", Table::Keyed, 0).await;
    let (scheme_and_user, address) = bench.url.split_once('@').expect("a user in the URL");
    let (address, database) = address.split_once('/').expect("a database in the URL");
    let url = format!("{scheme_and_user}@127.0.0.1:{}/{database}", far::away(address));
    let session =
        Session::connect(&PostgresUrl::parse(&url).expect("a URL"), &Limits::default()).await.expect("a session");
    let mut claimed = Claimed::<Postgres>::new(&url).await;
    let (mut commits, mut epochs) = (Vec::new(), Vec::new());
    for n in 0..20 {
        let row = format!("INSERT INTO steps VALUES ({}, 'customer', 1, 'paid')", 1_000_000 + n);
        session.begin().await.expect("begins");
        session.client().batch_execute(&row).await.expect("writes");
        commits.push(timed(async { assert!(matches!(checked_commit(&session).await, CommitEnd::Committed)) }).await);
        epochs.push(claimed.epoch(claimed.batch(&bench.orders, 1000)).await.1);
    }
    let trip = far::ONE_WAY * 2;
    told(&format!("bench_jdbc_txn_commit: the checked COMMIT, {trip:?} away"), "<= 200 ms", commits);
    told(&format!("bench_jdbc_txn_commit: a whole epoch of 1,000 rows, {trip:?} away"), "<= 200 ms", epochs);
    tables::remove(&bench.admin, "steps").await;
}
