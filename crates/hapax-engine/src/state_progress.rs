//! `progress: state`: an idempotent sink and a progress store joined into what the runtime drives.
//!
//! Rows and position are two commits: rows first, the position every `progressInterval`, as pipelines that flush offsets
//! do. A crash between them repeats rows. With [`Order::PositionFirst`] (at-most-once) it loses them instead.
//! Invariant: what is about to be sent under keys is written down before it is sent, so that other keys are noticed.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_model::fault::{self, Bug};
use hapax_model::field::FieldPath;
use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, Letter, Stage};
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};
use hapax_model::transaction::TransactionState;
use sha2::{Digest, Sha256};

use crate::batch::Batch;
use crate::bookkeeping::EpochBooks;
use crate::lifecycle::SinkLifecycle;
use crate::sink::{
    Claim, Committed, EpochRecord, IdempotentSink, SinkError, Target, TargetIdentity, TransactionalSink, WriteOutcome,
};
use crate::state::{Intent, ProgressStore};

/// Which of the two commits comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Rows, then the position: nothing is lost, something may be repeated.
    RowsFirst,
    /// The position, then the rows, never tried again: nothing is repeated, something may be lost.
    PositionFirst,
}

/// Whether keys are watched for being the same after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchKeys {
    /// The guarantee rests on keys.
    Yes,
    /// It does not.
    No,
}

/// An idempotent sink with its progress elsewhere.
#[derive(Debug)]
pub struct StateProgress<K, P> {
    id: DeliveryId,
    sink: K,
    store: P,
    order: Order,
    watch_keys: WatchKeys,
    interval: Duration,
    lifecycle: SinkLifecycle,
    /// Rows of the staged batch are in the target; only the position is missing.
    written: Option<WriteOutcome>,
    saved: Option<Progress>,
    unsaved: Unsaved,
    keys: KeyWatch,
}

/// What is in the target but not in the saved position.
#[derive(Debug, Default)]
struct Unsaved {
    counts: Totals,
    letters: Vec<Letter>,
    since: Option<Instant>,
    /// The last epoch, opened when the first one was.
    record: Option<EpochRecord>,
}

/// The digest of all keys since the saved position, and the one to meet again after a restart.
#[derive(Debug, Default)]
struct KeyWatch {
    digest: Sha256,
    expected: Option<Expected>,
    /// The staged batch is in the digest.
    rolled: bool,
}

/// What was written down before a restart, and the digest of the same range as it is read again. That one goes on when
/// the position is saved in the middle of the range.
#[derive(Debug)]
struct Expected {
    intent: Intent,
    digest: Sha256,
}

impl<K: IdempotentSink, P: ProgressStore> StateProgress<K, P> {
    /// Joins `sink` and `store`; the position is saved every `interval`.
    pub fn new(id: DeliveryId, sink: K, store: P, order: Order, watch_keys: WatchKeys, interval: Duration) -> Self {
        Self {
            id,
            sink,
            store,
            order,
            watch_keys,
            interval,
            lifecycle: SinkLifecycle::default(),
            written: None,
            saved: None,
            unsaved: Unsaved::default(),
            keys: KeyWatch::default(),
        }
    }

    async fn commit(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let (_, batch) = self.lifecycle.work(|| self.id.sink.clone())?;
        if self.order == Order::PositionFirst || fault::planted(Bug::OffsetsBeforeEffect) {
            return self.commit_position_first(record, &batch).await;
        }
        self.write_down(record, &batch).await?;
        let outcome = match self.written.take() {
            Some(outcome) => outcome,
            None => self.sink.upsert_batch(Arc::clone(&batch)).await?,
        };
        self.written = Some(outcome.clone());
        let books = EpochBooks::close(record, &batch, &outcome)?;
        fault::point("state.rows_written");
        let since = *self.unsaved.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.interval {
            self.save(record, books.counts, books.letters.clone()).await?;
        } else {
            self.unsaved.add(record, &books);
        }
        self.written = None;
        Ok(books.committed(self.progress(), self.position_is_stored()))
    }

    /// The position is saved before the rows are written, and the rows are written once: what fails is a dead letter.
    async fn commit_position_first(
        &mut self,
        record: &EpochRecord,
        batch: &Arc<Batch>,
    ) -> Result<Committed, SinkError> {
        self.save(record, Totals::default(), Vec::new()).await?;
        let outcome = match self.sink.upsert_batch(Arc::clone(batch)).await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(delivery = %self.id, %error, events = batch.len(), "not written: at-most-once never tries twice");
                WriteOutcome {
                    refused: (0..batch.len()).map(|event| (event, never_repeated(&error))).collect(),
                    ..WriteOutcome::default()
                }
            }
        };
        let never_stops = RejectRule::new(OnReject::DeadLetter, 1000);
        let books = EpochBooks::close(&EpochRecord { rejects: never_stops, ..record.clone() }, batch, &outcome)?;
        self.unsaved.add(record, &books);
        Ok(books.committed(self.progress(), self.position_is_stored()))
    }

    /// Writes down which keys are about to be sent, and compares with what was written down before a restart.
    async fn write_down(&mut self, record: &EpochRecord, batch: &Batch) -> Result<(), SinkError> {
        if self.watch_keys == WatchKeys::No || self.written.is_some() {
            return Ok(());
        }
        let from = self.saved.as_ref().map(|p| p.bookmark.clone()).expect("progress was claimed");
        if !self.keys.rolled {
            self.keys.roll(record, batch)?;
        }
        let intent = Intent { from, to: record.to.clone(), digest: self.keys.digest.clone().finalize().into() };
        self.store.save_intent(&self.id, record.epoch, &intent).await
    }

    /// Saves the position at the end of `record`, with everything that is in the target and not saved yet.
    async fn save(&mut self, record: &EpochRecord, counts: Totals, letters: Vec<Letter>) -> Result<(), SinkError> {
        let saved = self.saved.as_ref().expect("progress was claimed");
        let record = EpochRecord {
            from: saved.bookmark.clone(),
            counts: self.unsaved.counts.plus(counts),
            opened_at_ms: self.unsaved.record.as_ref().map_or(record.opened_at_ms, |first| first.opened_at_ms),
            ..record.clone()
        };
        let kept = self.unsaved.letters.len();
        self.unsaved.letters.extend(letters);
        match self.store.save(&self.id, saved, &record, &self.unsaved.letters).await {
            Ok(after) => {
                self.saved = Some(after);
                self.unsaved = Unsaved::default();
                self.keys.digest = Sha256::new();
                Ok(())
            }
            Err(error) => {
                self.unsaved.letters.truncate(kept);
                Err(error)
            }
        }
    }

    /// Progress as it truly is: what is saved, and what is in the target beyond it.
    fn progress(&self) -> Progress {
        let saved = self.saved.clone().expect("progress was claimed");
        let totals = saved.totals.plus(self.unsaved.counts);
        match &self.unsaved.record {
            Some(record) => Progress { epoch: record.epoch, bookmark: record.to.clone(), totals, ..saved },
            None => Progress { totals, ..saved },
        }
    }

    /// With the position first, only counts and letters wait for the next save.
    fn position_is_stored(&self) -> bool {
        let saved = self.saved.as_ref().map(|progress| progress.epoch);
        self.unsaved.record.as_ref().is_none_or(|record| Some(record.epoch) == saved)
    }
}

impl Unsaved {
    fn add(&mut self, record: &EpochRecord, books: &EpochBooks) {
        let opened_at_ms = self.record.as_ref().map_or(record.opened_at_ms, |first| first.opened_at_ms);
        self.counts = self.counts.plus(books.counts);
        self.letters.extend_from_slice(&books.letters);
        self.record = Some(EpochRecord { opened_at_ms, ..record.clone() });
    }
}

impl KeyWatch {
    /// Adds the keys of `batch`; where the range written down before a restart ends inside it, compares.
    fn roll(&mut self, record: &EpochRecord, batch: &Batch) -> Result<(), SinkError> {
        self.rolled = true;
        let ends = |bookmark: &Bookmark| bookmark.incarnation == record.from.incarnation;
        let upto = self.expected.as_ref().map(|e| &e.intent.to).filter(|to| ends(to)).map(|to| to.position);
        let mut compared = false;
        for event in batch.events() {
            if upto.is_some_and(|upto| !compared && event.position() >= upto) {
                compared = true;
                self.compare()?;
            }
            if let Some(key) = event.event_key().or(event.entity_key()) {
                self.digest.update(key.0);
                if let Some(expected) = &mut self.expected {
                    expected.digest.update(key.0);
                }
            }
        }
        let reached = self.expected.as_ref().is_some_and(|e| e.intent.to == record.to);
        if reached && !compared { self.compare() } else { Ok(()) }
    }

    fn compare(&mut self) -> Result<(), SinkError> {
        let Some(expected) = self.expected.take() else { return Ok(()) };
        let now: [u8; 32] = expected.digest.finalize().into();
        if now == expected.intent.digest {
            return Ok(());
        }
        Err(SinkError::NonDeterministicKey { upto: expected.intent.to.position })
    }
}

fn never_repeated(error: &SinkError) -> Cause {
    Cause {
        stage: Stage::Write,
        code: "HX2040",
        message: format!("the write failed, and at-most-once never tries one twice: {error}"),
        fingerprint: "not written under at-most-once".into(),
    }
}

impl<K: IdempotentSink, P: ProgressStore> Target for StateProgress<K, P> {
    fn fields(&self) -> &[FieldPath] {
        self.sink.fields()
    }

    fn inspect(&mut self) -> impl Future<Output = Result<TargetIdentity, SinkError>> + Send {
        self.sink.inspect()
    }

    fn look(&mut self) -> impl Future<Output = Result<Option<Progress>, SinkError>> + Send {
        self.store.look(&self.id)
    }

    fn others(&mut self) -> impl Future<Output = Result<Vec<(DeliveryId, Progress)>, SinkError>> + Send {
        self.store.others(&self.id)
    }
}

impl<K: IdempotentSink, P: ProgressStore> TransactionalSink for StateProgress<K, P> {
    async fn init_transactions(&mut self, claim: &Claim) -> Result<Progress, SinkError> {
        self.lifecycle.may_claim()?;
        let found = self.store.claim(&self.id, claim).await?;
        match (claim, &self.saved) {
            (Claim::Reclaim { .. }, Some(saved)) if found.epoch == saved.epoch => {}
            (Claim::Reclaim { .. } | Claim::Take { .. }, _) => {
                let intent = self.store.load_intent(&self.id).await?.filter(|intent| intent.from == found.bookmark);
                let expected = intent.map(|intent| Expected { intent, digest: Sha256::new() });
                self.keys = KeyWatch { expected, ..KeyWatch::default() };
                self.unsaved = Unsaved::default();
                self.written = None;
            }
        }
        self.saved = Some(found);
        let progress = self.progress();
        self.lifecycle.claimed(progress.clone())?;
        Ok(progress)
    }

    fn begin_transaction(&mut self, epoch: hapax_model::epoch::Epoch) -> Result<(), SinkError> {
        self.lifecycle.begin(epoch, || self.id.sink.clone())
    }

    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        self.lifecycle.write(batch)?;
        self.keys.rolled = false;
        Ok(())
    }

    async fn commit_transaction(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let committing = self.lifecycle.committing()?;
        let committed = self.commit(record).await?;
        self.lifecycle.committed(committing, committed.progress.clone())?;
        Ok(committed)
    }

    async fn abort_transaction(&mut self) -> Result<(), SinkError> {
        self.lifecycle.abort()?;
        self.written = None;
        Ok(())
    }

    fn transaction_state(&self) -> TransactionState {
        self.lifecycle.state()
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        let Some(mut last) = self.unsaved.record.clone() else { return Ok(()) };
        // Position first: the epoch's position is saved already, its counts and letters get an epoch of their own.
        let saved = self.saved.as_ref().expect("progress was claimed").epoch;
        if last.epoch <= saved {
            last.epoch = saved.next();
        }
        self.save(&last, Totals::default(), Vec::new()).await
    }
}

#[cfg(test)]
#[path = "state_progress_tests.rs"]
mod tests;
