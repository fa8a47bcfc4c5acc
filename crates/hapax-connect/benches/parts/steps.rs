//! The steps of one transaction, each alone: what a single row, a batch, a begin, an abort and a commit take. The spec
//! names these benches; each line begins with that name. Medians of many, with the slowest of a hundred.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_engine::batch::Batch;
use hapax_engine::decode::UnknownFields;
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::second_pass::SecondPass;
use hapax_engine::sink::{Claim, EpochRecord, IdempotentSink as _, Target as _, TransactionalSink as _, UpsertLimits};
use hapax_model::contract::Contract;
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::ledger::Totals;
use hapax_model::position::{Bookmark, DeliveryId, Incarnation, Position};
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};

use super::by_hapax::{self, Sinks};
use super::contest::{Arena, Mode, Table};
use super::orders::Orders;

pub(crate) const TIMES: usize = 200;
const IN_ONE_TRANSACTION: usize = 100_000;

pub(crate) fn told(name: &str, aim: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let (median, slow) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{name:<72} aim {aim:<10} median {:.3} ms, 99 of 100 within {:.3} ms", millis(median), millis(slow));
}

pub(crate) async fn timed<R>(work: impl Future<Output = R>) -> Duration {
    let started = Instant::now();
    work.await;
    started.elapsed()
}

/// Generated orders as a batch, from number `first` on.
fn batch(orders: &Orders, fields: &[FieldPath], first: u64, count: u64) -> Arc<Batch> {
    let origin = Origin { source: "steps".into(), lane: "0".into() };
    let mut pipeline = Pipeline::new(fields, by_hapax::keyer(Mode::Upsert), None, UnknownFields::Counted, origin);
    let mut batch = pipeline.batch();
    for n in first..first + count {
        let order = orders.get(n % orders.len());
        let json = serde_json::json!({
            "order_id": n, "customer": order.customer, "amount_cents": order.amount, "status": order.status
        });
        batch.inputs.push(Position::at(n), json.to_string().as_bytes());
    }
    pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
    Arc::new(batch)
}

/// `at-least-once` with progress elsewhere: a transaction of its own for each call.
pub(crate) async fn idempotent<A: Arena>(arena: &A, database: &str) {
    arena.make("steps", Table::Keyed, 0).await;
    let config = by_hapax::config::<A::Sinks>(arena.url(), "steps", Mode::Upsert);
    let strategy = by_hapax::keyer(Mode::Upsert).strategy().clone();
    let mut sink = A::Sinks::idempotent(config.clone(), A::Sinks::pool(&config), strategy);
    sink.inspect().await.expect("a fit table");
    let (mut single, mut many) = (Vec::new(), Vec::new());
    for n in 0..TIMES as u64 {
        let one = batch(arena.orders(), sink.fields(), n, 1);
        single.push(timed(async { sink.upsert(&one.event(0)).await.expect("writes") }).await);
        let thousand = batch(arena.orders(), sink.fields(), 1_000_000 + n * 1000, 1000);
        let rejects = RejectRule::new(OnReject::DeadLetter, 1000);
        let limits = UpsertLimits { epoch: Epoch(n + 1), rejects, pass: SecondPass::default() };
        many.push(timed(async { sink.upsert_batch(thousand, &limits).await.expect("writes") }).await);
    }
    told(&format!("bench_{database}_upsert_single, at-least-once: sink.upsert"), "< 2 ms", single);
    told(&format!("bench_{database}_upsert_batch of 1,000, at-least-once: upsert_batch"), "< 20 ms", many);
    arena.remove("steps").await;
}

/// A sink that has claimed.
pub(crate) struct Claimed<S: Sinks> {
    sink: S::Transactional,
    progress: Progress,
}

impl<S: Sinks> Claimed<S> {
    pub(crate) async fn new(url: &str) -> Self {
        let config = by_hapax::config::<S>(url, "steps", Mode::Upsert);
        let id = DeliveryId { workflow: "steps".into(), sink: "bench".into(), lane: url.into() };
        let mut sink = S::transactional(config.clone(), S::pool(&config), id);
        sink.inspect().await.expect("a fit table");
        let start = Bookmark::at("only", 0);
        let claim = Claim::Take { start, contract: Contract::default(), session: "bench".into() };
        let progress = sink.init_transactions(&claim).await.expect("claims");
        Self { sink, progress }
    }

    pub(crate) fn batch(&self, orders: &Orders, count: u64) -> Arc<Batch> {
        batch(orders, self.sink.fields(), self.progress.bookmark.position.offset, count)
    }

    /// How long begin and commit took.
    pub(crate) async fn epoch(&mut self, batch: Arc<Batch>) -> (Duration, Duration) {
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
            pass: SecondPass::default(),
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
pub(crate) async fn transactional<A: Arena>(arena: &A, database: &str) {
    arena.make("steps", Table::Keyed, 0).await;
    let mut claimed = Claimed::<A::Sinks>::new(arena.url()).await;
    let (mut begins, mut empty, mut single, mut many, mut aborts) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..TIMES {
        let batch = claimed.batch(arena.orders(), 0);
        empty.push(claimed.epoch(batch).await.1);
        let batch = claimed.batch(arena.orders(), 1);
        single.push(claimed.epoch(batch).await.1);
        let batch = claimed.batch(arena.orders(), 1000);
        let (begun, committed) = claimed.epoch(batch).await;
        begins.push(begun);
        many.push(committed);
        claimed.sink.begin_transaction(claimed.progress.epoch.next()).expect("begins");
        claimed.sink.write(claimed.batch(arena.orders(), 1000)).expect("writes");
        aborts.push(timed(async { claimed.sink.abort_transaction().await.expect("aborts") }).await);
    }
    told("bench_txn_begin: begin_transaction (touches no database)", "< 1 ms", begins);
    told("bench_txn_abort: abort_transaction with 1,000 rows staged", "< 50 ms", aborts);
    told("bench_jdbc_txn_commit: a whole epoch without rows", "<= 50 ms", empty);
    told(&format!("bench_{database}_upsert_single, exactly-once: a whole epoch of one row"), "< 2 ms", single);
    told(&format!("bench_{database}_upsert_batch of 1,000, exactly-once: a whole epoch"), "< 20 ms", many);
    let mut speeds = Vec::new();
    for _ in 0..5 {
        let batch = claimed.batch(arena.orders(), IN_ONE_TRANSACTION as u64);
        speeds.push(IN_ONE_TRANSACTION as f64 / claimed.epoch(batch).await.1.as_secs_f64());
    }
    speeds.sort_by(f64::total_cmp);
    let name = "bench_txn_write_throughput: an epoch of 100,000 rows, upsert";
    println!("{name:<72} aim > 100,000  median {:.0} rows/s", speeds[speeds.len() / 2]);
    arena.remove("steps").await;
}
