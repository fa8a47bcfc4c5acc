//! What the tests of the sinks share: a table in a file of its own, and JSON lines delivered into it.

use hapax_engine::batch::Batch;
use hapax_engine::sink::{Committed, EpochRecord, SinkError, Target as _, TransactionalSink as _};
use hapax_model::ledger::Totals;
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};
use rusqlite::Connection;

use super::config::SqliteSinkConfig;
use super::sample::{Place, bare, id, take};
use super::sink::SqliteSink;
pub(super) use crate::table::sample::batch;

pub(super) struct Rig {
    pub(super) place: Place,
    pub(super) config: SqliteSinkConfig,
    pub(super) sink: SqliteSink,
    pub(super) progress: Option<Progress>,
}

impl Rig {
    /// A file with the table `t`, and a sink that has claimed.
    pub(super) async fn new(ddl: &str, configure: impl FnOnce(&mut SqliteSinkConfig)) -> Self {
        let mut rig = Self::unclaimed(ddl, configure);
        rig.claim().await;
        rig
    }

    pub(super) fn unclaimed(ddl: &str, configure: impl FnOnce(&mut SqliteSinkConfig)) -> Self {
        let place = Place::new();
        bare(&place.path()).execute_batch(ddl).unwrap();
        let mut config = SqliteSinkConfig::new(place.path(), "t");
        configure(&mut config);
        let sink = SqliteSink::new(config.clone(), id("rig"));
        Self { place, config, sink, progress: None }
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
        let was = self.progress.as_ref().unwrap();
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

    pub(super) fn look(&self) -> Connection {
        bare(&self.place.path())
    }

    /// The only column of a query, as text.
    pub(super) fn texts(&self, sql: &str) -> Vec<String> {
        texts(&self.look(), sql)
    }
}

pub(super) fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
