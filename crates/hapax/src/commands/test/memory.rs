//! A source and a sink in memory, for the real runtime: what is read comes from a test, what is written is kept.
//!
//! Invariant: the sink keeps the contract of every transactional sink; a worker that is ended in the middle of a commit
//! finds in the store what was committed, and nothing else. Not here: what should have been written (`judge`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hapax_engine::batch::{Batch, Inputs, Operation, OutputEvent};
use hapax_engine::bookkeeping::causes;
use hapax_engine::decode::csv::Format;
use hapax_engine::sink::{
    Claim, Committed, EpochRecord, SinkError, Target, TargetIdentity, TransactionalSink, Written,
};
use hapax_engine::source::{Follow, Held, Polled, Room, Source, SourceError, StartAt};
use hapax_model::epoch::Epoch;
use hapax_model::field::{FieldPath, FieldValue};
use hapax_model::key::{KeyFacts, Keyer};
use hapax_model::ledger::Totals;
use hapax_model::position::{Bookmark, DeliveryId, Position};
use hapax_model::progress::Progress;
use hapax_model::transaction::{Move, TransactionState};
use tokio::sync::Notify;

use super::shape::{Fields, Shape};

/// The inputs of a test, at positions 0, 1, 2 …, under the name of the source that they stand for.
#[derive(Debug, Clone)]
pub(super) struct MemorySource {
    pub(super) inputs: Arc<[Vec<u8>]>,
    pub(super) format: Format,
    pub(super) lane: String,
    pub(super) identity: String,
    pub(super) next: u64,
}

/// What the incarnation of every test's inputs is called.
const INCARNATION: &str = "test";

impl Source for MemorySource {
    fn lane(&self) -> &str {
        &self.lane
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    async fn start(&mut self, _at: StartAt) -> Result<Bookmark, SourceError> {
        Ok(Bookmark::at(INCARNATION, 0))
    }

    async fn hold(&mut self, _bookmark: &Bookmark) -> Result<Held, SourceError> {
        Ok(Held::Yes)
    }

    async fn hold_range(&mut self, _from: &Bookmark, to: &Bookmark) -> Result<Held, SourceError> {
        self.hold(to).await
    }

    async fn assign(&mut self, bookmark: &Bookmark, _follow: Follow) -> Result<(), SourceError> {
        self.next = bookmark.position.offset;
        Ok(())
    }

    async fn poll(&mut self, into: &mut Inputs, room: Room) -> Result<Polled, SourceError> {
        let from = usize::try_from(self.next).unwrap_or(usize::MAX);
        into.set_format(&self.format);
        let mut polled = Polled::End;
        for (offset, input) in self.inputs.iter().enumerate().skip(from).take(room.events) {
            into.push(Position::at(offset as u64), input);
            self.next = offset as u64 + 1;
            polled = Polled::Records;
        }
        Ok(polled)
    }

    fn bookmark(&self) -> Bookmark {
        Bookmark::at(INCARNATION, self.next)
    }

    async fn close_epoch(&mut self, _from: &Bookmark) -> Result<Bookmark, SourceError> {
        Ok(self.bookmark())
    }

    async fn step(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    async fn reads_what(&mut self, _lane: &str, _other: &Bookmark) -> Result<bool, SourceError> {
        Ok(false)
    }

    async fn ack(&mut self, _upto: &Bookmark) -> Result<(), SourceError> {
        Ok(())
    }

    fn called(&self) -> Option<String> {
        None
    }

    fn extent(&self) -> Option<u64> {
        Some(self.inputs.len() as u64)
    }
}

/// An event that was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output {
    /// Which input it came from, counted from 1.
    pub(super) input: u64,
    pub(super) operation: Operation,
    pub(super) fields: Fields,
    /// The key by which the sink would write it.
    pub(super) key: Option<String>,
}

/// A dead letter that was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dead {
    /// Which input it is, counted from 1.
    pub(super) input: u64,
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// What was committed, by all workers of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    pub(super) outputs: Vec<Output>,
    pub(super) letters: Vec<Dead>,
    pub(super) totals: Totals,
    /// Before which input each epoch ended, counted from 1: where the run was cut.
    pub(super) cuts: Vec<u64>,
}

/// When a worker is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Not before it has finished.
    Never,
    /// In each commit: the first time before it has landed, the next time behind it, before anybody is told.
    AroundCommits,
}

/// What outlives a worker.
#[derive(Debug, Default)]
pub(super) struct Store {
    inner: Mutex<Inner>,
    /// Told when the worker is to be ended.
    pub(super) over: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    progress: Option<Progress>,
    kept: Kept,
    /// The epoch whose commit was already cut short once.
    cut_before: Option<Epoch>,
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was committed.
    pub(super) fn kept(&self) -> Kept {
        self.lock().kept.clone()
    }

    /// Whether this commit is the first try of its epoch, which does not land.
    fn cuts_before(&self, epoch: Epoch) -> bool {
        let mut inner = self.lock();
        let first = inner.cut_before != Some(epoch);
        inner.cut_before = Some(epoch);
        first
    }
}

/// What is kept of an event.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// Name in the target, and path in the event.
    pub(super) columns: Vec<(String, FieldPath)>,
    /// How keys are shown; it derives both.
    pub(super) keyer: Keyer,
    pub(super) key_shown: KeyShown,
    /// Of the source: keys depend on it.
    pub(super) identity: String,
}

/// Which key names an event for its sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyShown {
    /// That of the thing, if there is one.
    Entity,
    /// Its own.
    Event,
}

/// Keeps what is committed.
#[derive(Debug)]
pub(super) struct MemorySink {
    id: DeliveryId,
    store: Arc<Store>,
    view: Arc<View>,
    fields: Vec<FieldPath>,
    ended: Ended,
    state: TransactionState,
    staged: Option<Arc<Batch>>,
}

impl MemorySink {
    pub(super) fn new(id: DeliveryId, store: Arc<Store>, view: Arc<View>, ended: Ended) -> Self {
        let mut fields: Vec<FieldPath> = Vec::new();
        for path in view.columns.iter().map(|(_, path)| path).chain(view.keyer.fields()) {
            if !fields.contains(path) {
                fields.push(path.clone());
            }
        }
        Self { id, store, view, fields, ended, state: TransactionState::Idle, staged: None }
    }

    fn apply(&self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let batch = self.staged.as_ref().expect("a commit comes after a write");
        let dead_inputs: Vec<usize> = batch.letters().iter().map(|(input, _)| *input).collect();
        let mut inner = self.store.lock();
        let row = inner.progress.as_mut().expect("a commit comes after a claim");
        if row.bookmark != record.from {
            return Err(SinkError::FencedOut { ours: row.generation, by: None });
        }
        row.epoch = record.epoch;
        row.bookmark = record.to.clone();
        row.totals = row.totals.plus(record.counts);
        let progress = row.clone();
        let kept = &mut inner.kept;
        kept.outputs.extend(batch.events().map(|event| self.view.output(&self.id, record, &event)));
        kept.letters.extend(batch.letters().iter().map(|(_, letter)| Dead {
            input: letter.position.offset + 1,
            code: letter.cause.code,
            message: letter.cause.message.clone(),
        }));
        kept.totals = progress.totals;
        kept.cuts.push(record.to.position.offset + 1);
        let causes = causes(batch, &[], batch.inputs.len());
        let written = Written { upserts: batch.len() as u64, ..Written::default() };
        Ok(Committed { progress, stored: true, written, dead_inputs, causes })
    }

    /// The worker ends here: whoever runs it is told, and nothing comes after.
    async fn end(&self) {
        self.store.over.notify_one();
        std::future::pending().await
    }
}

impl View {
    fn output(&self, id: &DeliveryId, record: &EpochRecord, event: &OutputEvent<'_>) -> Output {
        let value =
            |path: &FieldPath| event.layout().slot_of(path).map_or(FieldValue::Absent, |slot| event.field(slot));
        let fields = self.columns.iter();
        let fields = fields.filter_map(|(name, path)| Some((name.clone(), Shape::of_field(value(path))?))).collect();
        let values: Vec<FieldValue<'_>> = self.keyer.fields().iter().map(value).collect();
        let facts = KeyFacts {
            source: &self.identity,
            lane: &id.lane,
            incarnation: record.incarnation(),
            position: event.position(),
            emit: event.emit(),
            epoch: record.epoch,
            sequence: event.index() as u64,
        };
        let derived = self.keyer.derive(&facts, &values).unwrap_or_default();
        // What was delivered counts; where the sink needs no key it is only shown.
        let entity = event.entity_key().or(derived.entity).filter(|_| self.key_shown == KeyShown::Entity);
        let key = entity.or_else(|| event.event_key()).or(derived.event);
        let (input, operation) = (event.position().offset + 1, event.operation());
        Output { input, operation, fields, key: key.map(|key| key.to_string()) }
    }
}

impl Target for MemorySink {
    fn fields(&self) -> &[FieldPath] {
        &self.fields
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        Ok(TargetIdentity("memory".into()))
    }

    async fn look(&mut self) -> Result<Option<Progress>, SinkError> {
        Ok(self.store.lock().progress.clone())
    }

    async fn others(&mut self) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        Ok(Vec::new())
    }
}

impl TransactionalSink for MemorySink {
    async fn init_transactions(&mut self, claim: &Claim) -> Result<Progress, SinkError> {
        self.state = self.state.after(Move::Claim)?;
        let mut inner = self.store.lock();
        if let (None, Claim::Take { start, contract, session }) = (&inner.progress, claim) {
            inner.progress = Some(Progress::first(start, contract, session));
        }
        let row = inner.progress.as_mut().expect("a reclaim comes after a claim");
        row.generation.0 += 1;
        Ok(row.clone())
    }

    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError> {
        self.state = self.state.after(Move::Begin(epoch))?;
        Ok(())
    }

    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        self.state = self.state.after(Move::Write)?;
        self.staged = Some(batch);
        Ok(())
    }

    async fn commit_transaction(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        self.state = self.state.after(Move::Commit)?;
        if self.ended == Ended::AroundCommits && self.store.cuts_before(record.epoch) {
            self.end().await;
        }
        let committed = self.apply(record)?;
        if self.ended == Ended::AroundCommits {
            self.end().await;
        }
        self.state = self.state.after(Move::Committed)?;
        self.staged = None;
        Ok(committed)
    }

    async fn abort_transaction(&mut self) -> Result<(), SinkError> {
        self.state = self.state.after(Move::Abort)?.after(Move::Aborted)?;
        self.staged = None;
        Ok(())
    }

    fn transaction_state(&self) -> TransactionState {
        self.state
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn save_due(&self) -> Option<Instant> {
        None
    }
}
