//! `progress: state`: an idempotent sink and a progress store joined into what the runtime drives.
//!
//! Rows and position are two commits. What is about to be sent is written down first, under the fence; then the rows;
//! then the position, every `progressInterval`. A crash in between repeats rows ([`AfterCrash::WriteAgain`]) or makes
//! letters of them ([`AfterCrash::GiveUp`], at-most-once). Invariant: nothing is sent that was not written down.

use std::cmp::Ordering;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_model::fault::{self, Bug};
use hapax_model::field::FieldPath;
use hapax_model::ledger::Totals;
use hapax_model::letter::Letter;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};
use hapax_model::transaction::TransactionState;
use sha2::{Digest, Sha256};

use crate::batch::Batch;
use crate::bookkeeping::EpochBooks;
use crate::in_doubt::{self, SendingRules};
use crate::lifecycle::SinkLifecycle;
use crate::second_pass::SecondPass;
use crate::sink::{
    Claim, Committed, EpochRecord, IdempotentSink, Reaction, SinkError, Target, TargetIdentity, TransactionalSink,
    UpsertLimits, WriteOutcome,
};
use crate::state::{Intent, ProgressStore};

/// What becomes of inputs that were about to be sent when the worker died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCrash {
    /// They are sent again: nothing is lost, something may be repeated.
    WriteAgain,
    /// Never: they become dead letters in doubt. Nothing is repeated, and the position is saved with every epoch.
    GiveUp,
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
    after_crash: AfterCrash,
    watch_keys: WatchKeys,
    interval: Duration,
    lifecycle: SinkLifecycle,
    /// Rows of the staged batch are in the target; only the position is missing.
    written: Option<WriteOutcome>,
    /// The staged epoch, if its rows are in the target and its position was being saved.
    saving: Option<(EpochRecord, EpochBooks)>,
    saved: Option<Progress>,
    unsaved: Unsaved,
    keys: KeyWatch,
    /// What an earlier life was about to send, and must never be sent again.
    in_doubt: Option<Doubt>,
    /// How inputs are read and what is made of them, in words.
    configured: [String; 2],
}

/// What may have been sent before this worker began.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Doubt {
    /// Where it ends.
    end: Bookmark,
    /// By which rules.
    rules: SendingRules,
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
#[derive(Debug, Clone, Default)]
struct KeyWatch {
    digest: Sha256,
    expected: Option<Expected>,
    /// The staged batch is in the digest.
    rolled: bool,
}

/// What was written down before a restart, and the digest of the same range as it is read again. That one goes on when
/// the position is saved in the middle of the range.
#[derive(Debug, Clone)]
struct Expected {
    intent: Intent,
    digest: Sha256,
}

impl<K: IdempotentSink, P: ProgressStore> StateProgress<K, P> {
    /// Joins `sink` and `store`; the position is saved every `interval`.
    pub fn new(
        id: DeliveryId,
        sink: K,
        store: P,
        after_crash: AfterCrash,
        watch_keys: WatchKeys,
        interval: Duration,
    ) -> Self {
        Self {
            id,
            sink,
            store,
            after_crash,
            watch_keys,
            interval,
            lifecycle: SinkLifecycle::default(),
            written: None,
            saving: None,
            saved: None,
            unsaved: Unsaved::default(),
            keys: KeyWatch::default(),
            in_doubt: None,
            configured: [String::new(), String::new()],
        }
    }

    /// Says in words how inputs are read, and what is made of them before they come here: what a worker of the same words did not
    /// send, an earlier one did not send either.
    #[must_use]
    pub fn configured_as(mut self, reading: String, making: String) -> Self {
        self.configured = [reading, making];
        self
    }

    fn rules(&self) -> SendingRules {
        let [reading, making] = &self.configured;
        SendingRules::of(reading, making, &self.sink.row_rules())
    }

    /// What an intent remembers of the rules: those of now, as far as nothing in doubt was sent by others.
    fn intended_rules(&self) -> [u8; 32] {
        let rules = self.rules();
        self.in_doubt.as_ref().map_or(rules, |doubt| rules.common(doubt.rules)).to_digest()
    }

    async fn commit(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let (was, batch) = self.lifecycle.work(|| self.id.sink.clone())?;
        refuse_elsewhere(&was, record)?;
        // No saved position, letter or intent spans two incarnations of the source: the step between them is saved by itself.
        let steps = record.from.incarnation.number != record.to.incarnation.number;
        if steps {
            self.finish().await?;
        }
        let whole = Arc::clone(&batch);
        let batch = self.without_doubtful(record, batch);
        // What died with an earlier life says nothing against the table.
        let doubted = !Arc::ptr_eq(&whole, &batch);
        let unjudged = doubted.then(|| {
            let rejects = RejectRule::new(OnReject::DeadLetter, 1000);
            EpochRecord { rejects, ..record.clone() }
        });
        let record = unjudged.as_ref().unwrap_or(record);
        let early = fault::planted(Bug::OffsetsBeforeEffect);
        let keys = self.keys.clone();
        if early {
            self.save(record, &EpochBooks::close(record, &batch, &WriteOutcome::default())?).await?;
        } else {
            self.write_down(record, &batch).await?;
        }
        let outcome = match self.write_rows(record, &batch).await {
            Err(error @ SinkError::FieldsAdded { .. }) => {
                // The same inputs come again, decoded for other fields.
                self.keys = keys;
                return Err(error);
            }
            written => written?,
        };
        self.written = Some(outcome.clone());
        let books = EpochBooks::close(record, &batch, &outcome)?;
        fault::point("state.rows_written");
        if early {
            self.written = None;
            return Ok(books.committed(self.progress(), true));
        }
        let since = *self.unsaved.since.get_or_insert_with(Instant::now);
        if self.after_crash == AfterCrash::GiveUp || steps || since.elapsed() >= self.interval {
            self.saving = Some((record.clone(), books.clone()));
            self.save(record, &books).await?;
        } else {
            self.unsaved.add(record, &books);
        }
        (self.written, self.saving) = (None, None);
        Ok(books.committed(self.progress(), self.position_is_stored()))
    }

    /// The batch, with letters in place of what an earlier life may have sent.
    fn without_doubtful(&mut self, record: &EpochRecord, batch: Arc<Batch>) -> Arc<Batch> {
        let Some(Doubt { end, rules }) = &self.in_doubt else { return batch };
        let doubtful = match record.from.incarnation.number.cmp(&end.incarnation.number) {
            // It ended in a later file than this one: all of this is before its end.
            Ordering::Less => batch.inputs.len(),
            Ordering::Equal => {
                (0..batch.inputs.len()).take_while(|at| batch.inputs.position(*at) < end.position).count()
            }
            Ordering::Greater => 0,
        };
        match doubtful {
            0 => {
                self.in_doubt = None;
                batch
            }
            doubtful => {
                tracing::warn!(delivery = %self.id, inputs = doubtful, "an earlier worker may have written these; at-most-once makes letters of them");
                let misfits = self.sink.misfits(&batch);
                Arc::new(in_doubt::with_letters(&batch, doubtful, self.rules().sent_by(*rules, &misfits)))
            }
        }
    }

    /// Writes the rows, unless they are there already.
    async fn write_rows(&mut self, record: &EpochRecord, batch: &Arc<Batch>) -> Result<WriteOutcome, SinkError> {
        if let Some(outcome) = self.written.take() {
            return Ok(outcome);
        }
        if batch.is_empty() {
            return Ok(WriteOutcome::default());
        }
        let limits = UpsertLimits {
            epoch: record.epoch,
            rejects: record.rejects.clone(),
            // The position is elsewhere: nothing of a batch is committed before all of it.
            pass: SecondPass { prefix_from: None, ..record.pass.clone() },
        };
        let error = match self.sink.upsert_batch(Arc::clone(batch), &limits).await {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        if self.after_crash == AfterCrash::WriteAgain {
            return Err(error);
        }
        if let SinkError::ConnectionLost { target, message } = error {
            // Perhaps the target has no transactions, and keeps what it got.
            return Err(SinkError::CommitInDoubt { target, epoch: record.epoch, message });
        }
        if error.reaction() != Reaction::InDoubt {
            self.take_back_intent(record).await;
        }
        Err(error)
    }

    /// Nothing was sent: a restart need not take the epoch for doubtful. If this fails it will, which is safe.
    async fn take_back_intent(&mut self, record: &EpochRecord) {
        let saved = self.saved.as_ref().expect("progress was claimed");
        let to = self.in_doubt.as_ref().map_or(&saved.bookmark, |doubt| &doubt.end).clone();
        let nothing = Intent { from: saved.bookmark.clone(), to, digest: self.intended_rules() };
        if let Err(error) = self.store.save_intent(&self.id, saved.generation, record.epoch, &nothing).await {
            tracing::debug!(delivery = %self.id, %error, "the intent was not taken back");
        }
    }

    /// Writes down what is about to be sent, under the fence; compares keys with what was written down before a restart.
    async fn write_down(&mut self, record: &EpochRecord, batch: &Batch) -> Result<(), SinkError> {
        // A step to the next incarnation sends nothing: nothing of it is in doubt, and no key is expected again.
        if self.written.is_some() || batch.inputs.is_empty() {
            return Ok(());
        }
        // Where every input died in the fill nothing is sent either: if that stops the workflow, a restart judges them again.
        if self.after_crash == AfterCrash::GiveUp && batch.is_empty() {
            return Ok(());
        }
        if self.watch_keys == WatchKeys::Yes && !self.keys.rolled {
            self.keys.roll(record, batch)?;
        }
        let digest = match (self.after_crash, self.watch_keys) {
            (AfterCrash::GiveUp, _) => self.intended_rules(),
            (AfterCrash::WriteAgain, WatchKeys::Yes) => self.keys.digest.clone().finalize().into(),
            (AfterCrash::WriteAgain, WatchKeys::No) => NOT_WATCHED,
        };
        let saved = self.saved.as_ref().expect("progress was claimed");
        // What an earlier life was about to send stays doubtful until the position has passed it.
        let doubtful = self.in_doubt.as_ref().map(|doubt| &doubt.end).filter(|end| lies_after(end, &record.to));
        let to = doubtful.unwrap_or(&record.to).clone();
        let intent = Intent { from: saved.bookmark.clone(), to, digest };
        self.store.save_intent(&self.id, saved.generation, record.epoch, &intent).await?;
        fault::point("state.intent_saved");
        Ok(())
    }

    /// Saves the position at the end of `record`, with everything that is in the target and not saved yet. Changes
    /// nothing of what is unsaved before the store has answered: if this is dropped, it can be called again.
    async fn save(&mut self, record: &EpochRecord, books: &EpochBooks) -> Result<(), SinkError> {
        let saved = self.saved.as_ref().expect("progress was claimed");
        let record = EpochRecord {
            from: saved.bookmark.clone(),
            counts: self.unsaved.counts.plus(books.counts),
            opened_at_ms: self.unsaved.record.as_ref().map_or(record.opened_at_ms, |first| first.opened_at_ms),
            ..record.clone()
        };
        let letters = [&self.unsaved.letters[..], &books.letters[..]].concat();
        let after = self.store.save(&self.id, saved, &record, &letters).await?;
        self.saved = Some(after);
        self.unsaved = Unsaved::default();
        self.keys.digest = Sha256::new();
        Ok(())
    }

    /// Goes on from progress as the store has it.
    async fn start_from(&mut self, found: Progress) -> Result<(), SinkError> {
        let intent = self.store.load_intent(&self.id).await?;
        let ends_after = |intent: &Intent| lies_after(&intent.to, &found.bookmark);
        let gives_up = self.after_crash == AfterCrash::GiveUp;
        let doubtful = intent.as_ref().filter(|intent| gives_up && ends_after(intent));
        let doubt = |intent: &Intent| Doubt { end: intent.to.clone(), rules: SendingRules::of_digest(&intent.digest) };
        self.in_doubt = doubtful.map(doubt);
        let same_keys = |intent: &Intent| intent.from == found.bookmark && in_doubt::is_of_keys(&intent.digest);
        let expected = intent.filter(|intent| self.watch_keys == WatchKeys::Yes && same_keys(intent));
        let expected = expected.map(|intent| Expected { intent, digest: Sha256::new() });
        self.keys = KeyWatch { expected, ..KeyWatch::default() };
        self.unsaved = Unsaved::default();
        self.saving = None;
        self.saved = Some(found);
        Ok(())
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

    fn position_is_stored(&self) -> bool {
        self.unsaved.record.is_none()
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
        // By number: what a file says of itself settles only with its first record.
        let ends = |bookmark: &Bookmark| bookmark.incarnation.number == record.from.incarnation.number;
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
        let same_place = |to: &Bookmark| !lies_after(to, &record.to) && !lies_after(&record.to, to);
        let reached = self.expected.as_ref().is_some_and(|e| same_place(&e.intent.to));
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

/// The digest of an intent whose keys nobody watches.
const NOT_WATCHED: [u8; 32] = [0; 32];

/// Whether one bookmark of a lane comes after the other.
pub(crate) fn lies_after(one: &Bookmark, other: &Bookmark) -> bool {
    let place = |bookmark: &Bookmark| (bookmark.incarnation.number, bookmark.position);
    place(one) > place(other)
}

/// An epoch must begin where progress ends: as the compare-and-swap of a transaction says, before anything is sent.
fn refuse_elsewhere(was: &Progress, record: &EpochRecord) -> Result<(), SinkError> {
    if record.epoch == was.epoch.next() && record.from == was.bookmark {
        return Ok(());
    }
    let by =
        format!("progress is at epoch {}, {}, and not where epoch {} begins", was.epoch, was.bookmark, record.epoch);
    Err(SinkError::FencedOut { ours: was.generation, by: Some(by) })
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
            (Claim::Reclaim { .. }, Some(saved)) if found.epoch == saved.epoch => self.saved = Some(found),
            (Claim::Reclaim { .. } | Claim::Take { .. }, _) => {
                self.start_from(found).await?;
                if matches!(claim, Claim::Take { .. }) {
                    self.written = None;
                }
            }
        }
        // At-most-once: the rows are in the target, and only their position was not saved. It is now.
        if self.after_crash == AfterCrash::GiveUp
            && let Some((record, books)) = self.saving.take()
        {
            let again = (record.clone(), books.clone());
            if let Err(error) = self.save(&record, &books).await {
                self.saving = Some(again);
                return Err(error);
            }
        }
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
        (self.written, self.saving) = (None, None);
        Ok(())
    }

    fn transaction_state(&self) -> TransactionState {
        self.lifecycle.state()
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        let Some(last) = self.unsaved.record.clone() else { return Ok(()) };
        self.save(&last, &EpochBooks::default()).await
    }

    fn save_due(&self) -> Option<Instant> {
        self.unsaved.record.as_ref().and(self.unsaved.since).map(|since| since + self.interval)
    }
}

#[cfg(test)]
#[path = "state_progress_tests.rs"]
mod tests;
