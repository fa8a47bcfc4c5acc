//! Steps 2, 3 and 6 at the source's side: read, decode and key into a bounded buffer, close it at the barrier, hand it
//! to the committer, ack what has committed.
//!
//! Invariant: at most one epoch is with the committer; the buffer closes by time, by its bounds, by memory, or at an end.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hapax_model::delivery::EpochBounds;
use hapax_model::delivery_state::WorkerState;
use hapax_model::epoch::Epoch;
use hapax_model::fault::{self, Bug};
use hapax_model::position::{Bookmark, Incarnation};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use super::commit::{Committer, News};
use super::lease::{HeldLease, becomes};
use super::look::{Claimed, copy_cure, gap_cure};
use super::meter::Bound;
use super::{Control, DeliveryEnd, Settings, Stop, now_ms, point, stopping};
use crate::backoff::Backoff;
use crate::batch::Batch;
use crate::epoch_size::FIRST;
use crate::memory::{DeliveryMemory, Loan, RESERVE_BYTES};
use crate::pipeline::{Origin, Pipeline};
use crate::sink::{EpochRecord, TransactionalSink};
use crate::source::{Held, Polled, Room, Source, SourceError, SourceReaction};
use crate::state::StateStore;

/// One poll adds at most so much, so that barriers and signals are seen in time, and that what was read is still in the
/// processor's cache when it is decoded.
const CHUNK: Room = Room { events: 1024, bytes: RESERVE_BYTES };
/// A position that moved without outputs is committed at most so often.
const EMPTY_PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How often the source is asked whether it is still what it was.
const HOLD_INTERVAL: Duration = Duration::from_secs(30);

/// A closed epoch on its way to the committer.
pub(super) struct Filled {
    pub(super) record: EpochRecord,
    pub(super) batch: Batch,
    pub(super) loan: Loan,
    /// Given back when the epoch has committed: the slot for the next one.
    pub(super) slot: OwnedSemaphorePermit,
}

/// Why the filler stopped filling.
enum Ending {
    Exhausted,
    Asked,
    CommitterGone,
    Failed(Stop),
}

/// Why a paused filler looks up.
enum Rested {
    /// What was read comes first.
    DeliverFirst,
    GoOn,
    CommitterGone,
}

pub(super) struct Filler<S> {
    settings: Settings,
    source: S,
    control: Control,
    memory: Arc<DeliveryMemory>,
    epoch: Epoch,
    from: Bookmark,
    last_commit: Instant,
    /// When the source is asked next whether it is what it was: counted over all epochs, whatever flows.
    hold_at: Instant,
    /// Whether the epoch closes because the source's incarnation has ended.
    at_boundary: bool,
    /// Fields that no column takes, each named in the log once.
    named: HashSet<String>,
    /// Whether a person has paused the workflow.
    paused: watch::Receiver<bool>,
    /// How many events the epoch that fills may hold.
    most_events: usize,
    /// Whether the filler rests because of that, with everything committed.
    rests: watch::Sender<bool>,
}

/// The buffer that is being filled.
struct Buffer {
    batch: Batch,
    loan: Loan,
    opened_at: Option<(Instant, u64)>,
    /// So many bytes of it are in the meter.
    counted_bytes: usize,
    full: bool,
}

impl<S: Source> Filler<S> {
    pub(super) fn new(
        settings: &Settings,
        source: S,
        control: &Control,
        claimed: Claimed,
        paused: watch::Receiver<bool>,
    ) -> Self {
        let Claimed { progress } = claimed;
        Self {
            settings: settings.clone(),
            source,
            control: control.clone(),
            memory: DeliveryMemory::new(Arc::clone(&control.memory)),
            epoch: progress.epoch.next(),
            from: progress.bookmark,
            last_commit: Instant::now(),
            hold_at: Instant::now() + HOLD_INTERVAL,
            at_boundary: false,
            named: HashSet::new(),
            paused,
            most_events: FIRST.min(max_events(&settings.epoch)),
            rests: watch::Sender::new(false),
        }
    }

    async fn run(
        &mut self,
        to: mpsc::Sender<Filled>,
        news: watch::Receiver<News>,
        mut used: mpsc::Receiver<Batch>,
    ) -> Ending {
        let slots = Arc::new(Semaphore::new(1));
        let mut pipeline = self.pipeline(&news);
        let mut fields = Arc::clone(&news.borrow().fields);
        // The incarnation of the bookmark is over and gone, and the source stands at the next one: that step comes first.
        if self.source.bookmark().incarnation.number != self.from.incarnation.number {
            let empty = self.buffer(&pipeline, None);
            if let Err(refused) = self.commit_step(empty, &slots, &to).await {
                return refused;
            }
        }
        loop {
            let mut buffer = self.buffer(&pipeline, used.try_recv().ok());
            self.most_events = news.borrow().size.events();
            let ending = self.fill(&mut pipeline, &mut buffer, &slots, &news, &to).await;
            if let Err(refused) = self.hand_over(buffer, &slots, &to).await {
                return refused;
            }
            if std::mem::take(&mut self.at_boundary) && ending.is_none() {
                let empty = self.buffer(&pipeline, None);
                if let Err(refused) = self.step_over(empty, &slots, &to).await {
                    return refused;
                }
            }
            if let Some(ending) = ending {
                return ending;
            }
            if *news.borrow().fields != *fields {
                fields = Arc::clone(&news.borrow().fields);
                pipeline = self.pipeline(&news);
            }
        }
    }

    fn pipeline(&self, news: &watch::Receiver<News>) -> Pipeline {
        let origin = Origin { source: self.source.identity(), lane: self.settings.id.lane.clone() };
        let pipeline = self.settings.pipeline(&news.borrow().fields, origin);
        match &self.settings.transform {
            Some(transform) => pipeline.with_transform(transform.as_ref(), Arc::clone(self.control.meter.pulse())),
            None => pipeline,
        }
    }

    fn buffer(&self, pipeline: &Pipeline, used: Option<Batch>) -> Buffer {
        let batch = used.filter(|batch| batch.layout() == pipeline.layout()).unwrap_or_else(|| pipeline.batch());
        let mut loan = Loan::new(Arc::clone(&self.memory));
        loan.settle(batch.memory_bytes());
        Buffer { batch, loan, opened_at: None, counted_bytes: 0, full: false }
    }

    /// Fills until the epoch must close. `None`: only this epoch ends.
    async fn fill(
        &mut self,
        pipeline: &mut Pipeline,
        buffer: &mut Buffer,
        slots: &Arc<Semaphore>,
        news: &watch::Receiver<News>,
        to: &mpsc::Sender<Filled>,
    ) -> Option<Ending> {
        let mut backoff = Backoff::new(&self.settings.retries);
        let mut poll_after = Instant::now();
        let (mut stop, mut paused) = (self.control.stop.clone(), self.paused.clone());
        let mut acked = None;
        loop {
            self.control.meter.turned();
            if stopping(&self.control) {
                point("drain.sigterm");
                return Some(Ending::Asked);
            }
            if buffer.full || (self.is_due(buffer) && slots.available_permits() > 0) {
                return None;
            }
            self.ack(news, &mut acked).await;
            if *self.paused.borrow() {
                match self.rest(slots, to).await {
                    Rested::DeliverFirst => return None,
                    Rested::CommitterGone => return Some(Ending::CommitterGone),
                    Rested::GoOn => continue,
                }
            }
            if fault::planted(Bug::SourceComparedOnlyWhenIdle) && !buffer.batch.inputs.is_empty() {
                self.hold_at = Instant::now() + HOLD_INTERVAL;
            }
            if Instant::now() >= self.hold_at {
                self.hold_at = Instant::now() + HOLD_INTERVAL;
                if let Some(ending) = self.still_held().await {
                    return Some(ending);
                }
            }
            if !self.make_room(buffer).await {
                continue;
            }
            let room = self.room(buffer);
            let due_at = self.due_at(buffer);
            let first = buffer.batch.inputs.len();
            let polled = tokio::select! {
                biased;
                () = to.closed() => return Some(Ending::CommitterGone),
                _ = stop.wait_for(|stop| *stop) => continue,
                () = becomes(&mut paused, true) => continue,
                polled = self.source.poll(&mut buffer.batch.inputs, room), if Instant::now() >= poll_after => polled,
                () = tokio::time::sleep_until(poll_after), if Instant::now() < poll_after => continue,
                () = wait_for_slot(slots, due_at), if due_at.is_some() => continue,
            };
            // A file without a record yet learns its own description with the first one.
            let incarnation = self.source.bookmark().incarnation;
            self.take_in(pipeline, buffer, first, &incarnation);
            match polled {
                Ok(Polled::Records | Polled::Idle) => self.source_answered(&mut backoff),
                Ok(Polled::Boundary) => (buffer.full, self.at_boundary) = (true, true),
                Ok(Polled::End) => return Some(Ending::Exhausted),
                Err(error) => match self.source_failed(&error, &mut backoff) {
                    Ok(wait) => poll_after = Instant::now() + wait,
                    Err(ending) => return Some(ending),
                },
            }
            tokio::task::yield_now().await;
        }
    }

    /// Paused by a person: waits for the last commit, then for the word to go on. The lease is kept meanwhile.
    async fn rest(&mut self, slots: &Semaphore, to: &mpsc::Sender<Filled>) -> Rested {
        if self.source.bookmark() != self.from {
            return Rested::DeliverFirst;
        }
        let (mut stop, mut paused) = (self.control.stop.clone(), self.paused.clone());
        let (meter, id, rests) = (&self.control.meter, &self.settings.id, &self.rests);
        let resting = async {
            drop(slots.acquire().await);
            tracing::info!(delivery = %id, "paused: what was read is delivered; `hapax resume {}` lets it go on", id.workflow);
            meter.set_state(WorkerState::Paused);
            rests.send_replace(true);
            becomes(&mut paused, false).await;
            tracing::info!(delivery = %id, "resumed");
            meter.set_state(WorkerState::Running);
            rests.send_replace(false);
        };
        tokio::select! {
            biased;
            () = to.closed() => Rested::CommitterGone,
            _ = stop.wait_for(|stop| *stop) => Rested::GoOn,
            () = resting => Rested::GoOn,
        }
    }

    /// Decodes and keys what was just read.
    fn take_in(&mut self, pipeline: &mut Pipeline, buffer: &mut Buffer, first: usize, incarnation: &Incarnation) {
        let read = buffer.batch.inputs.len() - first;
        if read == 0 {
            // Whoever has nothing to read keeps nothing that others could use.
            if first == 0 && buffer.batch.memory_bytes() > RESERVE_BYTES {
                give_room_back(buffer);
            }
            return;
        }
        if buffer.opened_at.is_none() {
            let now = now_ms();
            buffer.opened_at = Some((Instant::now(), now));
            self.control.meter.epoch_begun(now);
        }
        let bytes = buffer.batch.inputs.byte_len();
        self.control.meter.read_inputs(read, bytes.saturating_sub(buffer.counted_bytes));
        buffer.counted_bytes = bytes;
        pipeline.process(&mut buffer.batch, first, self.epoch, incarnation);
        self.name_unknown(pipeline);
        buffer.loan.settle(buffer.batch.memory_bytes());
        let bounds = &self.settings.epoch;
        let too_many = buffer.batch.inputs.len() >= self.most_events;
        if too_many || bytes >= bounds.max_bytes.as_usize() {
            buffer.full = true;
            match too_many {
                // An epoch of the size that suits the target is not early.
                true if self.most_events < max_events(bounds) => {}
                true => self.control.meter.closed_early(Bound::Events),
                false => self.control.meter.closed_early(Bound::Bytes),
            }
        }
        point("fill.middle");
    }

    /// Names fields that no column takes, each once, and shows how often they came.
    fn name_unknown(&mut self, pipeline: &Pipeline) {
        let unknown = pipeline.unknown();
        if unknown.len() > self.named.len() {
            // A transform may have left a field of its input out of all that it made.
            for (field, _) in unknown.iter().filter(|(_, events)| *events > 0) {
                if self.named.insert(field.clone()) {
                    tracing::info!(delivery = %self.settings.id, field, "no column takes this field; it is left out and counted");
                }
            }
        }
        self.control.meter.set_unknown(unknown);
    }

    /// Takes memory for the next chunk: of the delivery's reserve, which others cannot take, then borrowed. False: there is
    /// none, and the epoch closes early to give its own back.
    async fn make_room(&self, buffer: &mut Buffer) -> bool {
        let wanted = buffer.batch.memory_bytes() + CHUNK.bytes;
        if buffer.loan.try_grow(wanted) {
            return true;
        }
        if !buffer.batch.inputs.is_empty() {
            self.control.meter.closed_early(Bound::Memory);
            buffer.full = true;
            return false;
        }
        // Only the epoch that is being committed can be in the way.
        give_room_back(buffer);
        let mut stop = self.control.stop.clone();
        tokio::select! {
            () = buffer.loan.grow_to_reserve() => true,
            _ = stop.wait_for(|stop| *stop) => false,
        }
    }

    fn room(&self, buffer: &Buffer) -> Room {
        let bounds = &self.settings.epoch;
        Room {
            events: self.most_events.saturating_sub(buffer.batch.inputs.len()).clamp(1, CHUNK.events),
            bytes: bounds.max_bytes.as_usize().saturating_sub(buffer.batch.inputs.byte_len()).clamp(1, CHUNK.bytes),
        }
    }

    /// When this epoch should close, if there is anything in it.
    fn due_at(&self, buffer: &Buffer) -> Option<Instant> {
        let outputs = !buffer.batch.is_empty() || !buffer.batch.letters().is_empty();
        match buffer.opened_at {
            Some((opened, _)) if outputs => Some(opened + self.settings.epoch.interval),
            Some(_) => Some(self.last_commit + EMPTY_PROGRESS_INTERVAL),
            None if self.source.bookmark() != self.from => Some(self.last_commit + EMPTY_PROGRESS_INTERVAL),
            None => None,
        }
    }

    fn is_due(&self, buffer: &Buffer) -> bool {
        self.due_at(buffer).is_some_and(|due| Instant::now() >= due)
    }

    async fn ack(&mut self, news: &watch::Receiver<News>, acked: &mut Option<Bookmark>) {
        let committed = news.borrow().committed.clone();
        if committed.is_some() && committed != *acked {
            if let Some(upto) = &committed
                && let Err(error) = self.source.ack(upto).await
            {
                tracing::warn!(delivery = %self.settings.id, %error, "the source did not take the ack; the sink's progress counts");
            }
            point("source.acked");
            *acked = committed;
        }
    }

    async fn still_held(&mut self) -> Option<Ending> {
        let bookmark = self.source.bookmark();
        let stop = match self.source.hold(&bookmark).await {
            Ok(Held::Yes) | Err(SourceError::Unavailable { .. }) => return None,
            Ok(Held::OtherIncarnation { now }) => Stop::new(
                5,
                "HX3004",
                format!("the source changed while it was read: it was at {bookmark}, it is now {now}. {}", self.cure()),
            ),
            Ok(Held::Copied { now }) => {
                let cure = copy_cure(&self.settings.id, &bookmark);
                let message =
                    format!("the source changed while it was read: it was at {bookmark}, it is now {now}. {cure}");
                Stop::new(5, "HX3004", message)
            }
            Ok(Held::Gone { missing }) => {
                Stop::new(5, "HX3002", format!("the source lost what comes next: {missing}. {}", self.cure()))
            }
            Err(error @ SourceError::Gap { .. }) => Stop::new(5, error.code(), format!("{error}. {}", self.cure())),
            Err(error @ SourceError::Unreadable { .. }) => Stop::new(5, error.code(), error.to_string()),
        };
        Some(Ending::Failed(stop))
    }

    fn cure(&self) -> String {
        gap_cure(&self.settings.id)
    }

    fn source_answered(&self, backoff: &mut Backoff) {
        if backoff.attempts() > 0 {
            backoff.succeeded();
            self.control.meter.recovered();
        }
    }

    fn source_failed(&self, error: &SourceError, backoff: &mut Backoff) -> Result<Duration, Ending> {
        let give_up = |exit_code, message| Ending::Failed(Stop::new(exit_code, error.code(), message));
        match error.reaction() {
            SourceReaction::StopForPerson if matches!(error, SourceError::Gap { .. }) => {
                Err(give_up(5, format!("{error}. {}", self.cure())))
            }
            SourceReaction::StopForPerson => Err(give_up(5, error.to_string())),
            SourceReaction::Retry => {
                self.control.meter.retried();
                self.control.meter.set_state(WorkerState::Waiting);
                self.control.meter.troubled(error.code(), &error.to_string());
                let wait = backoff.failed(std::time::Instant::now(), fastrand::f64());
                let wait = wait.ok_or_else(|| give_up(1, error.to_string()))?;
                tracing::warn!(delivery = %self.settings.id, code = error.code(), %error, attempt = backoff.attempts(),
                    wait_ms = wait.as_millis(), "the source is away; trying again");
                Ok(wait)
            }
        }
    }

    /// Closes the epoch and gives it to the committer, if the source has moved.
    async fn hand_over(
        &mut self,
        buffer: Buffer,
        slots: &Arc<Semaphore>,
        to: &mpsc::Sender<Filled>,
    ) -> Result<(), Ending> {
        if self.source.bookmark() == self.from {
            return Ok(());
        }
        let slot = Arc::clone(slots).acquire_owned().await.map_err(|_| Ending::CommitterGone)?;
        let upto = self.close_source().await?;
        to.send(self.close(buffer, upto, slot)).await.map_err(|_| Ending::CommitterGone)?;
        // The committer was woken on this thread: let it start before the next chunk keeps the thread busy.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// The step to the source's next incarnation is an epoch of its own, and is committed before anything is read there.
    async fn step_over(
        &mut self,
        empty: Buffer,
        slots: &Arc<Semaphore>,
        to: &mpsc::Sender<Filled>,
    ) -> Result<(), Ending> {
        if let Err(error) = self.source.step().await {
            let mut backoff = Backoff::new(&self.settings.retries);
            self.source_failed(&error, &mut backoff)?;
            return Ok(()); // the next poll looks again
        }
        if self.source.bookmark() == self.from {
            return Ok(());
        }
        self.commit_step(empty, slots, to).await
    }

    async fn commit_step(
        &mut self,
        empty: Buffer,
        slots: &Arc<Semaphore>,
        to: &mpsc::Sender<Filled>,
    ) -> Result<(), Ending> {
        self.hand_over(empty, slots, to).await?;
        tokio::select! {
            committed = slots.acquire() => committed.map(drop).map_err(|_| Ending::CommitterGone),
            () = to.closed() => Err(Ending::CommitterGone),
        }
    }

    /// The bookmark at which the epoch ends, once the source has shown that what came before it is unchanged.
    async fn close_source(&mut self) -> Result<Bookmark, Ending> {
        let mut backoff = Backoff::new(&self.settings.retries);
        loop {
            match self.source.close_epoch(&self.from).await {
                Ok(upto) => {
                    self.source_answered(&mut backoff);
                    return Ok(upto);
                }
                Err(error) => {
                    let wait = self.source_failed(&error, &mut backoff)?;
                    super::sleep_or_stop(&self.control, wait).await;
                    if stopping(&self.control) && backoff.attempts() > 1 {
                        return Err(Ending::Asked); // nothing is lost: it is read again
                    }
                }
            }
        }
    }

    /// The barrier: events read from here on belong to the next epoch.
    fn close(&mut self, buffer: Buffer, to: Bookmark, slot: OwnedSemaphorePermit) -> Filled {
        point("barrier");
        let counts = buffer.batch.counts();
        let closed_at_ms = now_ms();
        let record = EpochRecord {
            epoch: self.epoch,
            from: std::mem::replace(&mut self.from, to.clone()),
            to,
            counts,
            opened_at_ms: buffer.opened_at.map_or(closed_at_ms, |(_, ms)| ms),
            closed_at_ms,
            rejects: self.settings.rejects.clone(),
            pass: crate::second_pass::SecondPass::default(),
        };
        self.epoch = self.epoch.next();
        self.last_commit = Instant::now();
        Filled { record, batch: buffer.batch, loan: buffer.loan, slot }
    }
}

/// An empty buffer gives back the room that an earlier epoch made in it.
fn give_room_back(buffer: &mut Buffer) {
    buffer.batch = Batch::new(buffer.batch.layout().clone());
    buffer.loan.settle(0);
}

fn max_events(bounds: &EpochBounds) -> usize {
    usize::try_from(bounds.max_events).unwrap_or(usize::MAX)
}

/// Returns when the epoch is due and the committer is free. Cancel-safe: the slot is only looked at.
async fn wait_for_slot(slots: &Arc<Semaphore>, due_at: Option<Instant>) {
    if let Some(due) = due_at {
        tokio::time::sleep_until(due).await;
        drop(slots.acquire().await);
    }
}

/// The committer's task: it ends with whoever waits for it.
struct CommitterTask<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for CommitterTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs filler and committer to their end, and gives source and sink back.
pub(super) async fn run_both<S: Source, K: TransactionalSink, T: StateStore + Clone>(
    mut filler: Filler<S>,
    committer: Committer<K, T>,
    lease: &HeldLease<T>,
) -> (S, K, DeliveryEnd) {
    let (to, from) = mpsc::channel(1);
    let (give_back, used) = mpsc::channel(1);
    let news = committer.news();
    let rests = filler.rests.subscribe();
    let meter = Arc::clone(&filler.control.meter);
    let mut committing = CommitterTask(tokio::spawn(committer.run(from, give_back)));
    let ending = tokio::select! {
        never = lease.note_rests(rests) => match never {},
        never = lease.note_troubles(&meter) => match never {},
        ending = filler.run(to, news, used) => ending,
        () = lease.lost() => Ending::Failed(Stop::new(4, "HX4009", "another worker took the lease of this delivery over")),
    };
    let (sink, committed) = (&mut committing.0).await.expect("the committer does not panic");
    let end = match (committed, ending) {
        (Err(stop), _) | (Ok(()), Ending::Failed(stop)) => DeliveryEnd::Stopped(stop),
        (Ok(()), Ending::Exhausted) => DeliveryEnd::Finished,
        (Ok(()), Ending::Asked | Ending::CommitterGone) => DeliveryEnd::Drained,
    };
    (filler.source, sink, end)
}
