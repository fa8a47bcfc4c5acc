//! A table as a target that holds our progress beside the data: `progress: sink`.
//!
//! One sink for all dialects, over what each database does in its own way ([`Home`]). Invariant: what was staged is kept
//! until its outcome is known; a commit whose future was dropped counts as in doubt. Not here: SQL.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_engine::batch::Batch;
use hapax_engine::letters::ReplayRule;
use hapax_engine::lifecycle::SinkLifecycle;
use hapax_engine::sink::{Claim, Committed, EpochRecord, SinkError, Target, TargetIdentity, TransactionalSink};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_model::transaction::TransactionState;

use super::mapping::Mapping;
use super::replay::ReplayJob;
use super::seen::{Inspection, Seen};
use crate::metrics::SinkMetrics;

/// A database that holds a table and our progress beside it. It is asked by one [`TableSink`], one question at a time.
pub trait Home: Debug + Send + 'static {
    /// What the workflow says about it.
    type Config: Debug + Send + Sync;
    /// The live table as it is read there.
    type Inspected: Inspection;

    /// What the workflow says about it.
    fn config(&self) -> &Arc<Self::Config>;

    /// The target as messages name it.
    fn target(&self) -> &str;

    /// Reads the live table.
    fn inspect(&mut self) -> impl Future<Output = Result<Self::Inspected, SinkError>> + Send;

    /// Progress as it stands, without a claim.
    fn look(&mut self, id: &DeliveryId) -> impl Future<Output = Result<Option<Progress>, SinkError>> + Send;

    /// Progress of other deliveries.
    fn others(
        &mut self,
        id: &DeliveryId,
    ) -> impl Future<Output = Result<Vec<(DeliveryId, Progress)>, SinkError>> + Send;

    /// Fences every older owner, then reads progress.
    fn claim(&mut self, id: &DeliveryId, claim: &Claim) -> impl Future<Output = Result<Progress, SinkError>> + Send;

    /// The one transaction of an epoch, in as many tries as it takes.
    fn commit(&mut self, job: Job<Self>) -> impl Future<Output = Result<Done<Self::Inspected>, SinkError>> + Send
    where
        Self: Sized;
}

/// All that a commit needs.
#[derive(Debug)]
pub struct Job<H: Home> {
    pub(crate) config: Arc<H::Config>,
    pub(crate) target: String,
    pub(crate) id: DeliveryId,
    pub(crate) inspected: Arc<H::Inspected>,
    pub(crate) was: Progress,
    pub(crate) record: EpochRecord,
    pub(crate) batch: Arc<Batch>,
}

/// What a commit did.
#[derive(Debug)]
pub struct Done<I> {
    /// None if nothing was committed, because the table got columns that the events were not decoded for.
    pub(crate) committed: Option<Committed>,
    /// The table as it was read last: it may have changed.
    pub(crate) inspected: Arc<I>,
    /// From the moment there was a session.
    pub(crate) took: Duration,
}

/// Delivers one lane into one table, with progress in the same database.
#[derive(Debug)]
pub struct TableSink<H: Home> {
    home: H,
    id: DeliveryId,
    seen: Seen<H::Inspected>,
    lifecycle: SinkLifecycle,
    metrics: SinkMetrics,
}

impl<H: Home> TableSink<H> {
    pub(crate) fn over(home: H, id: DeliveryId) -> Self {
        Self { home, id, seen: Seen::default(), lifecycle: SinkLifecycle::default(), metrics: SinkMetrics::default() }
    }

    /// What the sink counted so far.
    #[must_use]
    pub fn metrics(&self) -> SinkMetrics {
        self.metrics.clone()
    }

    /// How the table is written, once it was inspected: the resolved mode, why it is this one, the columns.
    #[must_use]
    pub fn mapping(&self) -> Option<&Mapping<<H::Inspected as Inspection>::Column>> {
        self.seen.mapping()
    }

    /// What happens to a key that is already there, and why; once the table was inspected.
    #[must_use]
    pub fn resolved_mode(&self) -> Option<(ConflictMode, &str)> {
        self.mapping().map(|mapping| (mapping.mode, mapping.why.as_str()))
    }

    /// The fields that columns take: whatever else an event has is unknown to the table.
    #[must_use]
    pub fn known_fields(&self) -> &[FieldPath] {
        self.seen.fields()
    }

    pub(crate) const fn home(&mut self) -> &mut H {
        &mut self.home
    }

    /// All that a replay of these letters needs; the table is read again first.
    pub(crate) async fn replay_job(
        &mut self,
        letters: &[i64],
        batch: Batch,
        rule: ReplayRule,
    ) -> Result<ReplayJob<H>, SinkError> {
        self.inspect().await?;
        Ok(ReplayJob {
            config: Arc::clone(self.home.config()),
            target: self.home.target().to_owned(),
            id: self.id.clone(),
            inspected: self.inspected().await?,
            letters: letters.to_vec(),
            batch,
            rule,
        })
    }

    async fn inspected(&mut self) -> Result<Arc<H::Inspected>, SinkError> {
        if let Some(inspected) = self.seen.table() {
            return Ok(inspected);
        }
        let inspected = Arc::new(self.home.inspect().await?);
        self.seen.keep(Arc::clone(&inspected));
        Ok(inspected)
    }

    async fn commit(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let inspected = self.inspected().await?;
        let (was, batch) = self.lifecycle.work(|| self.home.target().to_owned())?;
        let events = batch.len() as u64;
        let job = Job {
            config: Arc::clone(self.home.config()),
            target: self.home.target().to_owned(),
            id: self.id.clone(),
            inspected,
            was,
            record: record.clone(),
            batch,
        };
        let done = self.home.commit(job).await?;
        self.seen.keep(done.inspected);
        let Some(committed) = done.committed else {
            return Err(SinkError::FieldsAdded { target: self.home.target().to_owned() });
        };
        self.metrics.committed(events, &committed.written, done.took);
        Ok(committed)
    }
}

impl<H: Home> Target for TableSink<H> {
    fn fields(&self) -> &[FieldPath] {
        self.known_fields()
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        let was = std::mem::take(&mut self.seen);
        match self.home.inspect().await {
            Ok(inspected) => Ok(self.seen.keep_after(&was, inspected)),
            Err(error) => {
                self.seen = was;
                Err(error)
            }
        }
    }

    async fn look(&mut self) -> Result<Option<Progress>, SinkError> {
        self.home.look(&self.id).await
    }

    async fn others(&mut self) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        self.home.others(&self.id).await
    }
}

impl<H: Home> TransactionalSink for TableSink<H> {
    async fn init_transactions(&mut self, claim: &Claim) -> Result<Progress, SinkError> {
        self.lifecycle.may_claim()?;
        self.inspected().await?;
        let progress = self.home.claim(&self.id, claim).await?;
        self.lifecycle.claimed(progress.clone())?;
        Ok(progress)
    }

    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError> {
        self.lifecycle.begin(epoch, || self.home.target().to_owned())
    }

    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        self.lifecycle.write(batch)
    }

    async fn commit_transaction(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let committing = self.lifecycle.committing()?;
        let committed = self.commit(record).await.inspect_err(|_| self.metrics.commit_failures += 1)?;
        self.lifecycle.committed(committing, committed.progress.clone())?;
        Ok(committed)
    }

    async fn abort_transaction(&mut self) -> Result<(), SinkError> {
        self.lifecycle.abort()?;
        self.metrics.aborts += 1;
        Ok(())
    }

    fn transaction_state(&self) -> TransactionState {
        self.lifecycle.state()
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        // Progress commits with every epoch.
        Ok(())
    }

    fn save_due(&self) -> Option<Instant> {
        None
    }
}
