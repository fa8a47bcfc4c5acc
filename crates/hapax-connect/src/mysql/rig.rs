//! What the tests of the sinks share: a table in a database of its own, and JSON lines delivered into it.

use hapax_engine::batch::Batch;
use hapax_engine::sink::{Committed, EpochRecord, SinkError, Target as _, TransactionalSink as _};
use hapax_model::field::FieldPath;
use hapax_model::ledger::Totals;
use hapax_model::mode::ConflictMode;
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};
use hapax_sql::mysql::Session;

use super::config::MysqlSinkConfig;
use super::sample::{Place, id, run, take};
use super::schema::text;
use super::sink::MysqlSink;
pub(super) use crate::table::sample::batch;

pub(super) struct Rig {
    pub(super) config: MysqlSinkConfig,
    pub(super) sink: MysqlSink,
    pub(super) progress: Option<Progress>,
    /// Another session, as any reader has one.
    pub(super) look: Session,
    // Last: the database is dropped after everybody has left it.
    pub(super) place: Place,
}

impl Rig {
    /// A database with the table `t`, and a sink that has claimed.
    pub(super) async fn new(ddl: &str, configure: impl FnOnce(&mut MysqlSinkConfig)) -> Self {
        let mut rig = Self::unclaimed(ddl, configure).await;
        rig.claim().await;
        rig
    }

    pub(super) async fn unclaimed(ddl: &str, configure: impl FnOnce(&mut MysqlSinkConfig)) -> Self {
        Self::at(Place::new().await, ddl, configure).await
    }

    /// In a database that is there.
    pub(super) async fn at(place: Place, ddl: &str, configure: impl FnOnce(&mut MysqlSinkConfig)) -> Self {
        let mut look = place.connect().await;
        run(&mut look, ddl).await;
        let mut config = MysqlSinkConfig::new(place.url(), "t");
        configure(&mut config);
        let sink = MysqlSink::new(config.clone(), config.pool(), id("rig"));
        Self { config, sink, progress: None, look, place }
    }

    pub(super) async fn claim(&mut self) {
        self.sink.inspect().await.unwrap();
        self.progress = Some(self.sink.init_transactions(&take(0)).await.unwrap());
    }

    /// The inputs as events with the sink's present fields, and `.id` as their key.
    pub(super) fn batch(&self, inputs: &[&str]) -> Batch {
        let first = self.progress.as_ref().map_or(0, |progress| progress.bookmark.position.offset);
        batch(self.sink.fields(), first, inputs)
    }

    pub(super) fn record(&self, batch: &Batch) -> EpochRecord {
        self.record_after(self.progress.as_ref().unwrap(), batch)
    }

    /// The epoch that follows `was`.
    pub(super) fn record_after(&self, was: &Progress, batch: &Batch) -> EpochRecord {
        let (read, dead) = (batch.inputs.len() as u64, batch.letters().len() as u64);
        let mut to = was.bookmark.clone();
        to.position.offset += read;
        EpochRecord {
            epoch: was.epoch.next(),
            from: was.bookmark.clone(),
            to,
            counts: Totals { read, delivered: read - dead, filtered: 0, dead, rows: batch.len() as u64 },
            opened_at_ms: 1,
            closed_at_ms: 2,
            rejects: RejectRule::new(OnReject::DeadLetter, 1000),
        }
    }

    pub(super) async fn try_deliver(&mut self, batch: Batch) -> Result<Committed, SinkError> {
        let record = self.record(&batch);
        self.sink.begin_transaction(record.epoch)?;
        self.sink.write(batch.into())?;
        let committed = self.sink.commit_transaction(&record).await?;
        self.progress = Some(committed.progress.clone());
        Ok(committed)
    }

    pub(super) async fn deliver(&mut self, inputs: &[&str]) -> Committed {
        let batch = self.batch(inputs);
        self.try_deliver(batch).await.unwrap()
    }

    pub(super) async fn run(&mut self, sql: &str) {
        run(&mut self.look, sql).await;
    }

    /// The only column of a query, as text.
    pub(super) async fn texts(&mut self, sql: &str) -> Vec<String> {
        texts(&mut self.look, sql).await
    }
}

pub(super) async fn texts(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = session.text_rows(sql).await.unwrap();
    rows.iter().map(|row| text(row, 0).unwrap_or_else(|| "NULL".to_owned())).collect()
}

/// Keyed by `id`, in this mode.
pub(super) fn keyed(mode: ConflictMode) -> impl FnOnce(&mut MysqlSinkConfig) {
    move |config| {
        config.table.mode = Some(mode);
        config.table.key_fields = vec![FieldPath::of_name("id")];
    }
}

/// Runs a future to its end on a thread of its own, for callers that cannot wait.
pub(super) fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        scope.spawn(move || runtime().block_on(future)).join().unwrap()
    })
}
