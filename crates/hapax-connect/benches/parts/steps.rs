//! The steps of one transaction, each alone: what a single row, a batch, a begin, an abort and a commit take. The spec
//! names these benches; each line begins with that name. Medians of many, with the slowest of a hundred.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_connect::postgres::{PostgresIdempotentSink, PostgresSink};
use hapax_engine::batch::Batch;
use hapax_engine::decode::UnknownFields;
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::sink::{Claim, EpochRecord, IdempotentSink as _, Target as _, TransactionalSink as _};
use hapax_model::contract::Contract;
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::ledger::Totals;
use hapax_model::position::{Bookmark, DeliveryId, Incarnation, Position};
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};
use hapax_sql::postgres::{CommitEnd, Limits, PostgresUrl, Session, checked_commit};
use tokio_postgres::types::ToSql;

use super::tables::Table;
use super::{Bench, Mode, bare, by_hapax, far, tables};

const TIMES: usize = 200;
const IN_ONE_TRANSACTION: usize = 100_000;

pub(super) async fn all(bench: &Bench<'_>) {
    bare_upserts(bench).await;
    idempotent(bench).await;
    transactional(bench).await;
    commit_alone(bench).await;
    commit_far_away(bench).await;
}

fn told(name: &str, aim: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let (median, slow) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{name:<72} aim {aim:<10} median {:.3} ms, 99 of 100 within {:.3} ms", millis(median), millis(slow));
}

async fn timed<R>(work: impl Future<Output = R>) -> Duration {
    let started = Instant::now();
    work.await;
    started.elapsed()
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

/// Generated orders as a batch, from number `first` on.
fn batch(bench: &Bench<'_>, fields: &[FieldPath], first: u64, count: u64) -> Arc<Batch> {
    let origin = Origin { source: "steps".into(), lane: "0".into() };
    let mut pipeline = Pipeline::new(fields, by_hapax::keyer(Mode::Upsert), None, UnknownFields::Counted, origin);
    let mut batch = pipeline.batch();
    for n in first..first + count {
        let order = bench.orders.get(n % bench.orders.len());
        let json = serde_json::json!({
            "order_id": n, "customer": order.customer, "amount_cents": order.amount, "status": order.status
        });
        batch.inputs.push(Position::at(n), json.to_string().as_bytes());
    }
    pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
    Arc::new(batch)
}

/// `at-least-once` with progress elsewhere: a transaction of its own for each call.
async fn idempotent(bench: &Bench<'_>) {
    tables::make(&bench.admin, "steps", Table::Keyed, 0).await;
    let config = by_hapax::config(&bench.url, "steps", Mode::Upsert);
    let strategy = by_hapax::keyer(Mode::Upsert).strategy().clone();
    let mut sink = PostgresIdempotentSink::new(config.clone(), config.pool(), strategy);
    sink.inspect().await.expect("a fit table");
    let (mut single, mut many) = (Vec::new(), Vec::new());
    for n in 0..TIMES as u64 {
        let one = batch(bench, sink.fields(), n, 1);
        single.push(timed(async { sink.upsert(&one.event(0)).await.expect("writes") }).await);
        let thousand = batch(bench, sink.fields(), 1_000_000 + n * 1000, 1000);
        many.push(timed(async { sink.upsert_batch(thousand).await.expect("writes") }).await);
    }
    told("bench_postgres_upsert_single, at-least-once: sink.upsert", "< 2 ms", single);
    told("bench_postgres_upsert_batch of 1,000, at-least-once: upsert_batch", "< 20 ms", many);
    tables::remove(&bench.admin, "steps").await;
}

/// A sink that has claimed.
struct Claimed {
    sink: PostgresSink,
    progress: Progress,
}

impl Claimed {
    async fn new(url: &str) -> Self {
        let config = by_hapax::config(url, "steps", Mode::Upsert);
        let id = DeliveryId { workflow: "steps".into(), sink: "bench".into(), lane: url.into() };
        let mut sink = PostgresSink::new(config.clone(), config.pool(), id);
        sink.inspect().await.expect("a fit table");
        let start = Bookmark::at("only", 0);
        let claim = Claim::Take { start, contract: Contract::default(), session: "bench".into() };
        let progress = sink.init_transactions(&claim).await.expect("claims");
        Self { sink, progress }
    }

    fn batch(&self, bench: &Bench<'_>, count: u64) -> Arc<Batch> {
        batch(bench, self.sink.fields(), self.progress.bookmark.position.offset, count)
    }

    /// How long begin and commit took.
    async fn epoch(&mut self, batch: Arc<Batch>) -> (Duration, Duration) {
        let read = batch.inputs.len() as u64;
        let mut to = self.progress.bookmark.clone();
        to.position.offset += read;
        let record = EpochRecord {
            epoch: self.progress.epoch.next(),
            from: self.progress.bookmark.clone(),
            to,
            counts: Totals { read, delivered: read, filtered: 0, dead: 0, rows: read },
            opened_at_ms: 1,
            closed_at_ms: 2,
            rejects: RejectRule::new(OnReject::DeadLetter, 1000),
        };
        let started = Instant::now();
        self.sink.begin_transaction(record.epoch).expect("begins");
        let begun = started.elapsed();
        self.sink.write(batch).expect("writes");
        let started = Instant::now();
        self.progress = self.sink.commit_transaction(&record).await.expect("commits").progress;
        (begun, started.elapsed())
    }
}

/// `exactly-once`: an epoch with its fence, its rows, its log and a checked COMMIT.
async fn transactional(bench: &Bench<'_>) {
    tables::make(&bench.admin, "steps", Table::Keyed, 0).await;
    let mut claimed = Claimed::new(&bench.url).await;
    let (mut begins, mut empty, mut single, mut many, mut aborts) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..TIMES {
        let batch = claimed.batch(bench, 0);
        empty.push(claimed.epoch(batch).await.1);
        let batch = claimed.batch(bench, 1);
        single.push(claimed.epoch(batch).await.1);
        let batch = claimed.batch(bench, 1000);
        let (begun, committed) = claimed.epoch(batch).await;
        begins.push(begun);
        many.push(committed);
        claimed.sink.begin_transaction(claimed.progress.epoch.next()).expect("begins");
        claimed.sink.write(claimed.batch(bench, 1000)).expect("writes");
        aborts.push(timed(async { claimed.sink.abort_transaction().await.expect("aborts") }).await);
    }
    told("bench_txn_begin: begin_transaction (touches no database)", "< 1 ms", begins);
    told("bench_txn_abort: abort_transaction with 1,000 rows staged", "< 50 ms", aborts);
    told("bench_jdbc_txn_commit: a whole epoch without rows", "<= 50 ms", empty);
    told("bench_postgres_upsert_single, exactly-once: a whole epoch of one row", "< 2 ms", single);
    told("bench_postgres_upsert_batch of 1,000, exactly-once: a whole epoch", "< 20 ms", many);
    let mut speeds = Vec::new();
    for _ in 0..5 {
        let batch = claimed.batch(bench, IN_ONE_TRANSACTION as u64);
        speeds.push(IN_ONE_TRANSACTION as f64 / claimed.epoch(batch).await.1.as_secs_f64());
    }
    speeds.sort_by(f64::total_cmp);
    let name = "bench_txn_write_throughput: an epoch of 100,000 rows, upsert";
    println!("{name:<72} aim > 100,000  median {:.0} rows/s", speeds[speeds.len() / 2]);
    tables::remove(&bench.admin, "steps").await;
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
    let mut claimed = Claimed::new(&url).await;
    let (mut commits, mut epochs) = (Vec::new(), Vec::new());
    for n in 0..20 {
        let row = format!("INSERT INTO steps VALUES ({}, 'customer', 1, 'paid')", 1_000_000 + n);
        session.begin().await.expect("begins");
        session.client().batch_execute(&row).await.expect("writes");
        commits.push(timed(async { assert!(matches!(checked_commit(&session).await, CommitEnd::Committed)) }).await);
        epochs.push(claimed.epoch(claimed.batch(bench, 1000)).await.1);
    }
    let trip = far::ONE_WAY * 2;
    told(&format!("bench_jdbc_txn_commit: the checked COMMIT, {trip:?} away"), "<= 200 ms", commits);
    told(&format!("bench_jdbc_txn_commit: a whole epoch of 1,000 rows, {trip:?} away"), "<= 200 ms", epochs);
    tables::remove(&bench.admin, "steps").await;
}
