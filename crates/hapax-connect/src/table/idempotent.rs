//! A table as a target that holds none of our tables: `progress: state`.
//!
//! One sink for all dialects, over what each database does in its own way ([`Foreign`]). Invariant: the database gets
//! rows of the user's table and nothing else. Not here: SQL; progress and letters (the state store's).

use std::fmt::Debug;
use std::sync::Arc;

use hapax_engine::batch::{Batch, OutputEvent};
use hapax_engine::second_pass::SecondPass;
use hapax_engine::sink::{IdempotentSink, SinkError, TargetIdentity, UpsertLimits, WriteOutcome, Written};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyHash};
use hapax_model::letter::Cause;
use hapax_model::rejects::{OnReject, RejectRule};

use super::alone::{alone, refused};
use super::config::TableConfig;
use super::mapping::Mapping;
use super::read;
use super::rows::dedup_key;
use super::seen::{Inspection, Seen};
use super::tries::Outcome;
use crate::metrics::SinkMetrics;

/// A database that holds a table and nothing of ours. It is asked by one [`KeyedSink`], one question at a time.
pub trait Foreign: Debug + Send + 'static {
    /// The live table as it is read there.
    type Inspected: Inspection;

    /// What the workflow says about the table.
    fn table(&self) -> &TableConfig;

    /// Reads the live table.
    fn inspect_foreign(&mut self) -> impl Future<Output = Result<Self::Inspected, SinkError>> + Send;

    /// One transaction with all rows of the batch, in as many tries as it takes; says what became of the rows, and what
    /// the table was in the last one. No rows are written if it has columns that the events were not decoded for.
    fn upsert(
        &mut self,
        table: Arc<Self::Inspected>,
        batch: Arc<Batch>,
        limits: &UpsertLimits,
        metrics: &mut SinkMetrics,
    ) -> impl Future<Output = Result<(Option<Outcome>, Arc<Self::Inspected>), SinkError>> + Send;
}

/// Writes rows by key, with progress elsewhere.
#[derive(Debug)]
pub struct KeyedSink<D: Foreign> {
    database: D,
    strategy: DedupStrategy,
    seen: Seen<D::Inspected>,
    metrics: SinkMetrics,
}

impl<D: Foreign> KeyedSink<D> {
    pub(crate) fn over(database: D, strategy: DedupStrategy) -> Self {
        Self { database, strategy, seen: Seen::default(), metrics: SinkMetrics::default() }
    }

    /// What the sink counted so far.
    #[must_use]
    pub fn metrics(&self) -> SinkMetrics {
        self.metrics.clone()
    }

    /// How the table is written, once it was inspected.
    #[must_use]
    pub fn mapping(&self) -> Option<&Mapping<<D::Inspected as Inspection>::Column>> {
        self.seen.mapping()
    }

    async fn inspected(&mut self) -> Result<Arc<D::Inspected>, SinkError> {
        if let Some(inspected) = self.seen.table() {
            return Ok(inspected);
        }
        let inspected = Arc::new(self.database.inspect_foreign().await?);
        self.seen.keep(Arc::clone(&inspected));
        Ok(inspected)
    }

    async fn write(&mut self, batch: Arc<Batch>, limits: &UpsertLimits) -> Result<WriteOutcome, SinkError> {
        let inspected = self.inspected().await?;
        let (outcome, inspected) = self.database.upsert(inspected, batch, limits, &mut self.metrics).await?;
        self.seen.keep(inspected);
        outcome.ok_or_else(|| SinkError::FieldsAdded { target: self.database.table().name.clone() })
    }
}

impl<D: Foreign> IdempotentSink for KeyedSink<D> {
    fn fields(&self) -> &[FieldPath] {
        self.seen.fields()
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        let was = std::mem::take(&mut self.seen);
        match self.database.inspect_foreign().await {
            Ok(inspected) => Ok(self.seen.keep_after(&was, inspected)),
            Err(error) => {
                self.seen = was;
                Err(error)
            }
        }
    }

    fn derive_dedup_key(&self, event: &OutputEvent<'_>) -> Option<KeyHash> {
        let mode = self.mapping().map(|mapping| mapping.mode).or(self.database.table().mode)?;
        dedup_key(mode, event)
    }

    async fn upsert(&mut self, event: &OutputEvent<'_>) -> Result<Written, SinkError> {
        let batch = alone(event);
        let limits = UpsertLimits {
            epoch: Epoch(0),
            rejects: RejectRule::new(OnReject::DeadLetter, 1000),
            pass: SecondPass::default(),
        };
        let (position, done) = (event.position(), self.write(Arc::new(batch), &limits).await?);
        match done.refused.into_iter().next() {
            None => Ok(done.written),
            Some((_, cause)) => Err(refused(position, cause)),
        }
    }

    async fn upsert_batch(&mut self, batch: Arc<Batch>, limits: &UpsertLimits) -> Result<WriteOutcome, SinkError> {
        self.write(batch, limits).await
    }

    fn row_rules(&self) -> String {
        self.mapping().map(Mapping::rules).unwrap_or_default()
    }

    fn misfits(&self, batch: &Batch) -> Vec<(usize, Cause)> {
        self.mapping().map(|mapping| read::misfits(mapping, batch)).unwrap_or_default()
    }

    fn dedup_strategy(&self) -> &DedupStrategy {
        &self.strategy
    }
}
