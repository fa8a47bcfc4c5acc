//! Steps 5 and 6 at the sink's side: commit, find out what became of a commit in doubt, witness.
//!
//! Invariant: the buffer is kept until the outcome is known; after doubt progress is read only behind a fence.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_model::delivery_state::WorkerState;
use hapax_model::epoch::Generation;
use hapax_model::fault::{self, Bug, planted};
use hapax_model::field::FieldPath;
use hapax_model::letter::IN_DOUBT;
use hapax_model::outcome::{FoundAt, Outcome, Owner, decide_outcome};
use hapax_model::position::Bookmark;
use hapax_model::progress::{Progress, Witness};
use hapax_model::rejects::RejectRule;
use hapax_model::tracker::EpochState;
use tokio::sync::{mpsc, watch};

use super::fill::Filled;
use super::look::Claimed;
use super::meter::{Meter, TakenBy};
use super::{AfterDoubt, Control, Settings, Stop, now_ms, point, stopping, suspect, wait_for_target};
use crate::backoff::Backoff;
use crate::batch::Batch;
use crate::bookkeeping::{causes, prefix_record};
use crate::epoch_size::EpochSize;
use crate::in_doubt;
use crate::pipeline::Origin;
use crate::pulse::Pulse;
use crate::second_pass::{PassWatch, SecondPass};
use crate::sink::{Claim, Committed, EpochRecord, Reaction, SinkError, TransactionalSink, Written};
use crate::state::StateStore;
use crate::state_progress::lies_after;

/// The witness is saved at most so often.
const WITNESS_INTERVAL: Duration = Duration::from_secs(1);

/// How often a commit is tried once the process was asked to end.
const TRIES_WHILE_DRAINING: u32 = 5;
/// The longest wait between these.
const WAIT_WHILE_DRAINING: Duration = Duration::from_secs(1);

/// A second pass commits what it has judged after this part of `commitTimeout`.
const PREFIX_PART: u32 = 3;

/// So often a person is told what a second pass meets.
const SAY_EVERY: Duration = Duration::from_millis(500);

/// What the committer tells the filler.
#[derive(Debug, Clone)]
pub(super) struct News {
    /// Everything before it has committed.
    pub(super) committed: Option<Bookmark>,
    /// The fields that the target wants; they change when its table does.
    pub(super) fields: Arc<[FieldPath]>,
    /// How large the next epochs should be.
    pub(super) size: EpochSize,
}

pub(super) struct Committer<K, T> {
    settings: Settings,
    sink: K,
    state: Option<T>,
    control: Control,
    progress: Progress,
    rejects: RejectRule,
    news: watch::Sender<News>,
    witnessed: Option<Instant>,
    /// Which input stream the events come from.
    origin: Origin,
}

/// How a commit ended that did not stop the delivery.
enum CommitEnd {
    /// It is there, all of it or its first inputs.
    Committed(Box<Committed>),
    /// It was in doubt, is not there, and must not be repeated.
    GivenUp,
    /// Nothing is there: the target wants other fields than the events were decoded for.
    OtherFields,
}

impl<K: TransactionalSink, T: StateStore> Committer<K, T> {
    pub(super) fn new(
        settings: &Settings,
        sink: K,
        state: Option<T>,
        control: &Control,
        claimed: Claimed,
        origin: Origin,
    ) -> Self {
        let bound = usize::try_from(settings.epoch.max_events).unwrap_or(usize::MAX);
        let size = EpochSize::new(bound, settings.epoch.interval);
        let news = watch::Sender::new(News { committed: None, fields: sink.fields().into(), size });
        Self {
            settings: settings.clone(),
            sink,
            state,
            control: control.clone(),
            progress: claimed.progress,
            rejects: settings.rejects.clone(),
            news,
            witnessed: None,
            origin,
        }
    }

    pub(super) fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// Commits what comes until the filler is gone; gives the sink back.
    pub(super) async fn run(
        mut self,
        mut from: mpsc::Receiver<Filled>,
        give_back: mpsc::Sender<Batch>,
    ) -> (K, Result<(), Stop>) {
        while let Some(filled) = self.next(&mut from).await {
            let filled = match filled {
                Ok(filled) => filled,
                Err(stop) => return (self.sink, Err(stop)),
            };
            let Filled { record, batch, loan, slot } = filled;
            let batch = Arc::new(batch);
            let result = self.commit(record, &batch).await;
            if let Err(stop) = result {
                self.abort().await;
                self.save_what_was_delivered(&stop).await;
                return (self.sink, Err(stop));
            }
            if let Some(mut batch) = Arc::into_inner(batch) {
                batch.clear();
                drop(give_back.try_send(batch));
            }
            drop(loan);
            drop(slot);
        }
        let finished = self.finish().await;
        (self.sink, finished)
    }

    /// The next filled buffer, none if the filler is gone. While none comes, what the sink has kept back is saved in time.
    async fn next(&mut self, from: &mut mpsc::Receiver<Filled>) -> Option<Result<Filled, Stop>> {
        loop {
            let Some(due) = self.sink.save_due() else { return from.recv().await.map(Ok) };
            tokio::select! {
                biased;
                filled = from.recv() => return filled.map(Ok),
                () = tokio::time::sleep_until(due.into()) => {}
            }
            if let Err(stop) = self.save_kept_back().await {
                return Some(Err(stop));
            }
        }
    }

    /// Saves the position of what was delivered, until it is there or must stop.
    async fn save_kept_back(&mut self) -> Result<(), Stop> {
        let mut backoff = Backoff::new(&self.settings.retries);
        let limit = self.settings.epoch.commit_timeout;
        loop {
            let error = match tokio::time::timeout(limit, self.sink.finish()).await {
                Ok(Ok(())) => break,
                Ok(Err(error)) => error,
                Err(_) => SinkError::CommitInDoubt {
                    target: self.settings.id.sink.clone(),
                    epoch: self.progress.epoch,
                    message: format!("the position was not saved within {} ms", limit.as_millis()),
                },
            };
            match error.reaction() {
                Reaction::Fenced | Reaction::Stop(_) => return Err(Stop::of_sink(&error)),
                Reaction::Retry | Reaction::InDoubt => self.pause(&error, &mut backoff).await?,
            }
            // It may be there after all: then nothing is kept back any more.
            self.reclaim(&mut backoff, None).await?;
        }
        if backoff.attempts() > 0 {
            self.control.meter.recovered();
        }
        let witness = Witness { epoch: self.progress.epoch, bookmark: self.progress.bookmark.clone() };
        self.witness(witness, Due::IfIntervalPassed).await;
        Ok(())
    }

    /// Before it stops: the epochs before the one that failed are delivered, and where progress lags behind it is saved, or they
    /// would come again. Another worker's progress is not touched.
    async fn save_what_was_delivered(&mut self, stop: &Stop) {
        if stop.exit_code == 4 {
            return;
        }
        if let Err(left) = self.finish().await {
            tracing::warn!(delivery = %self.settings.id, code = left.code, error = left.message,
                "the position of what was delivered last could not be saved: it may come again");
        }
    }

    /// Commits a filled buffer: as one epoch, or, if a second pass took too long, as several. The epochs are numbered
    /// here, not where they were filled.
    async fn commit(&mut self, mut record: EpochRecord, batch: &Arc<Batch>) -> Result<(), Stop> {
        let mut rest = Arc::clone(batch);
        loop {
            record.epoch = self.progress.epoch.next();
            if let Some(decoded) = self.decode_again(&record, &rest) {
                rest = Arc::new(decoded);
                record.counts = rest.counts();
            }
            let Some(inputs) = self.commit_first(&record, &rest).await? else { continue };
            if inputs >= rest.inputs.len() {
                return Ok(());
            }
            rest = Arc::new(rest.after_first(inputs));
            record.from = self.progress.bookmark.clone();
            record.counts = rest.counts();
        }
    }

    /// The inputs of a batch decoded again, if the target wants fields that the batch was not decoded for: its table got
    /// columns after the inputs were read.
    fn decode_again(&self, record: &EpochRecord, batch: &Batch) -> Option<Batch> {
        let fields = self.sink.fields();
        if fields.iter().all(|field| batch.layout().slot_of(field).is_some()) {
            return None;
        }
        let mut pipeline = self.settings.pipeline(fields, self.origin.clone());
        if let Some(transform) = &self.settings.transform {
            // The watched one is busy with the next epoch; what must not be run is known to both.
            let unwatched = Pulse::default();
            for (at, verdict) in self.control.meter.pulse().all_set_aside() {
                unwatched.set_aside(at, verdict);
            }
            pipeline = pipeline.with_transform(transform.as_ref(), Arc::new(unwatched));
        }
        let mut decoded = pipeline.batch();
        decoded.inputs = batch.inputs.clone();
        pipeline.process(&mut decoded, 0, record.epoch, record.incarnation());
        Some(decoded)
    }

    /// Commits the first inputs of a batch, all of them unless they are judged one by one and take too long; how many.
    /// None: the target wants other fields.
    async fn commit_first(&mut self, record: &EpochRecord, batch: &Arc<Batch>) -> Result<Option<usize>, Stop> {
        let record = &EpochRecord { rejects: self.rejects.clone(), ..record.clone() };
        self.sink.begin_transaction(record.epoch).map_err(|e| Stop::of_sink(&e))?;
        self.sink.write(Arc::clone(batch)).map_err(|e| Stop::of_sink(&e))?;
        self.control.meter.opened(record.epoch, batch.len(), now_ms());
        if planted(Bug::AckBeforeCommit) {
            self.acknowledge_early(record).await;
        }
        let started = Instant::now();
        let committed = match self.commit_until_known(record, batch, self.settings.after_doubt).await? {
            CommitEnd::Committed(committed) => *committed,
            CommitEnd::GivenUp => self.commit_letters(record, batch).await?,
            CommitEnd::OtherFields => {
                self.control.meter.ended(record.epoch, EpochState::Aborted, now_ms());
                self.abort_or_claim().await?;
                return Ok(None);
            }
        };
        let took = started.elapsed();
        self.control.meter.recovered();
        point("commit.answered");
        let inputs = inputs_before(&committed.progress.bookmark, record, batch);
        // What died in doubt says nothing against the table: such an epoch is not judged, and not remembered either.
        let is_in_doubt = committed.causes.iter().any(|cause| cause.code == IN_DOUBT);
        if let (false, Ok(rejects)) = (is_in_doubt, self.rejects.judge(inputs, &committed.dead_inputs)) {
            self.rejects = rejects;
        }
        let record = &prefix_record(record, batch, inputs);
        let events = batch.events().take_while(|event| event.input() < inputs).count();
        self.control.meter.committed(record, &committed, &self.settings.contract, events, took);
        self.progress = committed.progress;
        self.control.meter.ended(record.epoch, EpochState::Committed, now_ms());
        if !self.progress.totals.adds_up() {
            tracing::error!(delivery = %self.settings.id, totals = ?self.progress.totals, "the ledger does not add up");
        }
        if committed.stored {
            let witness = Witness { epoch: self.progress.epoch, bookmark: self.progress.bookmark.clone() };
            self.witness(witness, Due::IfIntervalPassed).await;
        }
        if self.settings.transform.is_some()
            && self.control.meter.pulse().committed(&self.progress.bookmark)
            && let Some(state) = &mut self.state
        {
            suspect::forget(&self.settings, state).await;
        }
        self.tell_filler(inputs, took);
        Ok(Some(inputs))
    }

    fn tell_filler(&self, inputs: usize, took: Duration) {
        let fields: Arc<[FieldPath]> = self.sink.fields().into();
        self.news.send_modify(|news| {
            news.committed = Some(self.progress.bookmark.clone());
            news.fields = fields;
            news.size.committed(inputs, took);
        });
    }

    /// Only with the bug planted: the witness and the source hear of an epoch that has not committed.
    async fn acknowledge_early(&mut self, record: &EpochRecord) {
        self.witness(Witness { epoch: record.epoch, bookmark: record.to.clone() }, Due::IfIntervalPassed).await;
        self.news.send_modify(|news| news.committed = Some(record.to.clone()));
    }

    /// Commits, and if that fails finds out what became of it, until it is known to have landed or must stop.
    async fn commit_until_known(
        &mut self,
        record: &EpochRecord,
        batch: &Arc<Batch>,
        after_doubt: AfterDoubt,
    ) -> Result<CommitEnd, Stop> {
        let mut backoff = Backoff::new(&self.settings.retries);
        loop {
            let error = match self.commit_once(record).await {
                Ok(committed) => return Ok(CommitEnd::Committed(Box::new(committed))),
                Err(SinkError::FieldsAdded { .. }) => return Ok(CommitEnd::OtherFields),
                Err(error) => error,
            };
            let in_doubt = error.reaction() == Reaction::InDoubt;
            let fate = if in_doubt { EpochState::InDoubt } else { EpochState::Aborted };
            self.control.meter.ended(record.epoch, fate, now_ms());
            match error.reaction() {
                Reaction::Fenced => {
                    self.control.meter.refused_by_fence(batch.len());
                    return Err(Stop::of_sink(&error));
                }
                Reaction::Stop(_) => return Err(Stop::of_sink(&error)),
                Reaction::InDoubt | Reaction::Retry => {}
            }
            self.pause(&error, &mut backoff).await?;
            let found = self.reclaim(&mut backoff, Some(record)).await?;
            let inside = inputs_before(&found.bookmark, record, batch) < batch.inputs.len();
            let at = if inside { FoundAt::Inside } else { FoundAt::Outside };
            match decide_outcome(record.epoch, found.epoch, at, Owner::Us) {
                Outcome::Landed | Outcome::LandedInPart => {
                    self.control.meter.landed(batch.len());
                    self.abort().await; // what is staged is already there
                    let inputs = inputs_before(&found.bookmark, record, batch);
                    return Ok(CommitEnd::Committed(Box::new(landed(found, batch, inputs))));
                }
                Outcome::CommitAgain if in_doubt && after_doubt == AfterDoubt::GiveUp => return Ok(CommitEnd::GivenUp),
                Outcome::CommitAgain => {}
                Outcome::LaneLost => return Err(Stop::new(4, "HX4009", "another worker took this delivery over")),
                Outcome::Broken { tried, found } => {
                    let message = format!(
                        "epoch {tried} was being committed, and progress says {found}: the target was changed from outside"
                    );
                    return Err(Stop::new(5, "HX4018", message));
                }
            }
        }
    }

    async fn commit_once(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        let limit = self.settings.epoch.commit_timeout;
        let whole = self.settings.after_doubt == AfterDoubt::GiveUp || self.settings.keyer.contains_epoch();
        let judges = if fault::hurried("second-pass") { Duration::ZERO } else { limit / PREFIX_PART };
        let pass = SecondPass { prefix_from: (!whole).then(|| Instant::now() + judges), watch: Arc::default() };
        let watch = Arc::clone(&pass.watch);
        let record = EpochRecord { pass, ..record.clone() };
        let meter = Arc::clone(&self.control.meter);
        let committing = tokio::time::timeout(limit, self.sink.commit_transaction(&record));
        let ended = tokio::select! {
            ended = committing => ended,
            never = say_what_is_refused(&meter, &watch) => match never {},
        };
        match ended {
            Ok(result) => result,
            Err(_) => {
                let said = watch.sentence().map(|said| format!("; {said}")).unwrap_or_default();
                Err(SinkError::CommitInDoubt {
                    target: self.settings.id.sink.clone(),
                    epoch: record.epoch,
                    message: format!("no answer within {} ms{said}", limit.as_millis()),
                })
            }
        }
    }

    /// Fence, then read: only if the generation is still ours. `tried`: the epoch that may have landed.
    async fn reclaim(&mut self, backoff: &mut Backoff, tried: Option<&EpochRecord>) -> Result<Progress, Stop> {
        let mut unanswered = 0;
        loop {
            point("reclaim.sent");
            let claim = Claim::Reclaim { generation: self.progress.generation, session: self.settings.session.clone() };
            let mut error = match self.sink.init_transactions(&claim).await {
                Ok(progress) => {
                    self.control.meter.taken_over(TakenBy::Reclaim);
                    self.progress.generation = progress.generation;
                    return Ok(progress);
                }
                Err(error) => error,
            };
            if error.reaction() == Reaction::Fenced && unanswered > 0 {
                match self.own_claim(unanswered, tried).await {
                    Ok(Some(generation)) => {
                        tracing::info!(delivery = %self.settings.id, generation = generation.0,
                            "an earlier claim of this worker had landed, and only its answer was lost");
                        (self.progress.generation, unanswered) = (generation, 0);
                        continue;
                    }
                    Ok(None) => {}
                    Err(away) => error = away,
                }
            }
            match error.reaction() {
                Reaction::Retry | Reaction::InDoubt => unanswered += 1,
                Reaction::Fenced | Reaction::Stop(_) => return Err(Stop::of_sink(&error)),
            }
            self.pause(&error, backoff).await?;
        }
    }

    /// The generation that an unanswered reclaim of this worker made, if that is what fences it now. The name is for people and
    /// may be another's too (a container's first process, on a machine of the same name): so whatever does not look
    /// like this worker's own doing, in number or in how far progress is, is another's.
    async fn own_claim(
        &mut self,
        unanswered: u64,
        tried: Option<&EpochRecord>,
    ) -> Result<Option<Generation>, SinkError> {
        let Some(found) = self.sink.look().await? else { return Ok(None) };
        let ours = self.progress.generation.0;
        let (epoch, upto) = match tried {
            Some(record) => (record.epoch, &record.to),
            None => (self.progress.epoch, &self.progress.bookmark),
        };
        let raised = found.generation.0 > ours && found.generation.0 - ours <= unanswered;
        let reached = found.epoch <= epoch && !lies_after(&found.bookmark, upto);
        Ok((found.session == self.settings.session && raised && reached).then_some(found.generation))
    }

    async fn pause(&mut self, error: &SinkError, backoff: &mut Backoff) -> Result<(), Stop> {
        self.control.meter.retried();
        self.control.meter.set_state(WorkerState::Waiting);
        self.control.meter.troubled(error.code(), &error.to_string());
        // Asked to end while the target is away: a few more tries, then without it. Nothing is lost, it is read again.
        let give_up = stopping(&self.control) && backoff.attempts() >= TRIES_WHILE_DRAINING;
        let wait = backoff.failed(Instant::now(), fastrand::f64()).filter(|_| !give_up);
        let wait = wait.ok_or_else(|| Stop::of_sink(error))?;
        tracing::warn!(delivery = %self.settings.id, code = error.code(), %error, attempt = backoff.attempts(),
            wait_ms = wait.as_millis(), "the commit did not go through; finding out what became of it");
        if stopping(&self.control) {
            tokio::time::sleep(wait.min(WAIT_WHILE_DRAINING)).await;
        } else {
            wait_for_target(&self.control, &mut self.sink, wait, error.code()).await;
        }
        Ok(())
    }

    /// At-most-once: an epoch in doubt is never repeated. Its inputs become letters, so that nobody loses them unseen;
    /// the letters are no events, and are committed until they are there.
    async fn commit_letters(&mut self, record: &EpochRecord, batch: &Arc<Batch>) -> Result<Committed, Stop> {
        self.abort_or_claim().await?;
        let letters = Arc::new(in_doubt::with_letters(batch, batch.inputs.len(), in_doubt::SentBy::ThisLife));
        let mut record = EpochRecord { counts: letters.counts(), ..record.clone() };
        record.rejects = RejectRule::new(hapax_model::rejects::OnReject::DeadLetter, 1000);
        self.sink.begin_transaction(record.epoch).map_err(|e| Stop::of_sink(&e))?;
        self.sink.write(Arc::clone(&letters)).map_err(|e| Stop::of_sink(&e))?;
        match self.commit_until_known(&record, &letters, AfterDoubt::CommitAgain).await? {
            CommitEnd::Committed(committed) => Ok(*committed),
            CommitEnd::GivenUp | CommitEnd::OtherFields => {
                unreachable!("letters are committed again, and have no fields")
            }
        }
    }

    async fn witness(&mut self, witness: Witness, due: Due) {
        let recent = self.witnessed.is_some_and(|at| at.elapsed() < WITNESS_INTERVAL);
        let (Some(state), false) = (&mut self.state, recent && due == Due::IfIntervalPassed) else { return };
        match state.save_witness(&self.settings.id, &witness).await {
            Ok(()) => self.witnessed = Some(Instant::now()),
            Err(error) => tracing::warn!(delivery = %self.settings.id, %error, "the witness was not saved"),
        }
        point("witness.saved");
    }

    async fn finish(&mut self) -> Result<(), Stop> {
        self.sink.finish().await.map_err(|e| Stop::of_sink(&e))?;
        if self.news.borrow().committed.is_some() {
            let witness = Witness { epoch: self.progress.epoch, bookmark: self.progress.bookmark.clone() };
            self.witness(witness, Due::Now).await;
        }
        Ok(())
    }

    /// Forgets what is staged, if anything is. Where that fails, the next claim does it.
    async fn abort(&mut self) {
        if self.sink.transaction_state().epoch().is_none() {
            return;
        }
        if let Err(error) = self.abort_in_time().await {
            tracing::warn!(delivery = %self.settings.id, %error, "the next claim cleans up");
        }
    }

    /// Forgets what is staged, so that another transaction can begin. Where that fails, a claim does it at once.
    async fn abort_or_claim(&mut self) -> Result<(), Stop> {
        let Err(error) = self.abort_in_time().await else { return Ok(()) };
        if error.reaction() != Reaction::Retry {
            return Err(Stop::of_sink(&error));
        }
        let mut backoff = Backoff::new(&self.settings.retries);
        self.pause(&error, &mut backoff).await?;
        self.reclaim(&mut backoff, None).await?;
        Ok(())
    }

    /// An abort is given up after `abortTimeout`.
    async fn abort_in_time(&mut self) -> Result<(), SinkError> {
        let limit = self.settings.epoch.abort_timeout;
        let aborted = tokio::time::timeout(limit, self.sink.abort_transaction()).await;
        aborted.unwrap_or_else(|_| {
            let message = format!("no answer within {} ms", limit.as_millis());
            Err(SinkError::TransactionAbortFailed { target: self.settings.id.sink.clone(), message })
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    IfIntervalPassed,
    Now,
}

/// How many inputs of a batch lie before a bookmark: all, unless it is that of one of them.
fn inputs_before(bookmark: &Bookmark, record: &EpochRecord, batch: &Batch) -> usize {
    let all = batch.inputs.len();
    if *bookmark == record.to {
        return all;
    }
    (1..all).find(|input| batch.inputs.position(*input) == bookmark.position).unwrap_or(all)
}

/// While rows are judged one by one, `status` says what the target says.
async fn say_what_is_refused(meter: &Meter, watch: &PassWatch) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(SAY_EVERY).await;
        if let (Some(cause), Some(sentence)) = (watch.said(), watch.sentence()) {
            meter.troubled(cause.code, &sentence);
        }
    }
}

/// What a commit that landed in spite of its missing answer did, as far as progress tells.
fn landed(found: Progress, batch: &Batch, inputs: usize) -> Committed {
    let dead_inputs = batch.letters().iter().map(|(input, _)| *input).take_while(|input| *input < inputs).collect();
    Committed {
        progress: found,
        stored: true,
        written: Written { upserts: batch.counts_of_first(inputs).rows, ..Written::default() },
        dead_inputs,
        causes: causes(batch, &[], inputs),
    }
}
