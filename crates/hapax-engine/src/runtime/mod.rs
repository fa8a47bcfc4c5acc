//! Drives one delivery through the protocol: stand by, look, claim, resume, then fill and commit until told to stop.
//!
//! Reads: a source. Writes: a sink, the state store. Invariant: nothing is acknowledged before it has committed, and
//! at most two epochs exist at a time: one committing, one filling. Not here: which deliveries there are (the binary).

mod commit;
mod fill;
mod latency;
mod lease;
mod look;
mod meter;
mod suspect;

use std::sync::Arc;
use std::time::Duration;

use hapax_model::condition::Condition;
use hapax_model::contract::Contract;
use hapax_model::delivery::{EpochBounds, Retries};
use hapax_model::delivery_state::WorkerState;
use hapax_model::fault;
use hapax_model::field::FieldPath;
use hapax_model::key::Keyer;
use hapax_model::position::DeliveryId;
use hapax_model::rejects::RejectRule;
use tokio::sync::watch;

use crate::decode::UnknownFields;
use crate::memory::MemoryBudget;
use crate::pipeline::{Origin, Pipeline};
use crate::sink::{SinkError, TransactionalSink};
use crate::source::{Follow, Source, StartAt};
use crate::state::{DeliveryNote, StateStore, TakeOver};
use crate::transform::MakeTransform;

pub use latency::{BOUNDS_US, Histogram, Spread};
pub use look::foresee_start;
pub use meter::{ClosedEarly, Meter, Reading, Repeats, TakeOvers, Trouble};

/// What a worker may do with an epoch whose commit was in doubt and did not land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterDoubt {
    /// Commit the kept buffer again.
    CommitAgain,
    /// Never: at-most-once. Its inputs become dead letters marked "in doubt".
    GiveUp,
}

/// Everything about a delivery that the configuration decides.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which delivery.
    pub id: DeliveryId,
    /// What happens after doubt.
    pub after_doubt: AfterDoubt,
    /// Where it begins if it has no progress.
    pub start: StartAt,
    /// Whether it goes on after what is there now.
    pub follow: Follow,
    /// When an epoch closes.
    pub epoch: EpochBounds,
    /// How failures of source and target are retried.
    pub retries: Retries,
    /// What may be rejected.
    pub rejects: RejectRule,
    /// How long the lease lasts without a heartbeat.
    pub lease: Duration,
    /// Whether another worker's lease is respected.
    pub take_over: TakeOver,
    /// The contract, less the target's identity, which the live target gives.
    pub contract: Contract,
    /// Workflow and sink of every delivery that is configured: others with the same ends were renamed.
    pub configured: Arc<[(String, String)]>,
    /// Who this worker is, for people.
    pub session: String,
    /// How events are keyed.
    pub keyer: Keyer,
    /// Which events are deletes.
    pub delete_when: Option<Condition>,
    /// What becomes of fields that nothing takes.
    pub unknown_fields: UnknownFields,
    /// The program between decoding and keys, if there is one.
    pub transform: Option<Arc<dyn MakeTransform>>,
}

impl Settings {
    /// What turns inputs into events with these fields; the transform is still to be added.
    fn pipeline(&self, fields: &[FieldPath], origin: Origin) -> Pipeline {
        let Self { keyer, delete_when, unknown_fields, .. } = self;
        Pipeline::new(fields, keyer.clone(), delete_when.clone(), *unknown_fields, origin)
    }
}

/// A delivery, ready to run.
#[derive(Debug)]
pub struct Delivery<S, K, T> {
    /// What the configuration decides.
    pub settings: Settings,
    /// Where inputs come from.
    pub source: S,
    /// Where events go.
    pub sink: K,
    /// Leases, witness, notes; none if the configuration says `state: none`.
    pub state: Option<T>,
}

/// What the process gives to each of its deliveries.
#[derive(Debug, Clone)]
pub struct Control {
    /// Becomes true when the process is asked to end.
    pub stop: watch::Receiver<bool>,
    /// The process's memory budget.
    pub memory: Arc<MemoryBudget>,
    /// Where the delivery shows how it stands.
    pub meter: Arc<Meter>,
}

/// How a delivery ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryEnd {
    /// The source is exhausted and everything is delivered.
    Finished,
    /// The process was asked to end; what was read is delivered.
    Drained,
    /// Something stopped it.
    Stopped(Stop),
}

/// Why a delivery stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The process's exit code: 1 failed, 4 fenced, 5 needs a person.
    pub exit_code: u8,
    /// The code of the page that explains it.
    pub code: &'static str,
    /// The whole message, with the cure.
    pub message: String,
}

impl Stop {
    fn new(exit_code: u8, code: &'static str, message: impl Into<String>) -> Self {
        Self { exit_code, code, message: message.into() }
    }

    fn of_sink(error: &SinkError) -> Self {
        use crate::sink::Reaction;
        let exit_code = match error.reaction() {
            Reaction::Retry | Reaction::InDoubt => 1,
            Reaction::Fenced => 4,
            Reaction::Stop(code) => code,
        };
        Self::new(exit_code, error.code(), error.to_string())
    }
}

/// How long a delivery that was asked to end may take to deliver what it has read; then it ends without.
pub const DRAIN_LIMIT: Duration = Duration::from_secs(20);
/// How long the state store may take for the last word of a delivery that ended without.
const LAST_WORD_LIMIT: Duration = Duration::from_secs(2);

/// The codes of stops whose message names the position of an input.
const NAMES_A_POSITION: [&str; 2] = ["HX4010", "HX4013"];

/// How often in a minute a fenced delivery that still holds its lease claims again.
const CLAIMS_PER_MINUTE: usize = 3;

/// Runs a delivery to its end. Asked to end, it does so within [`DRAIN_LIMIT`] and a moment, whatever it waits for.
pub async fn deliver<S, K, T>(mut delivery: Delivery<S, K, T>, control: Control) -> DeliveryEnd
where
    S: Source,
    K: TransactionalSink,
    T: StateStore + Clone,
{
    let id = delivery.settings.id.clone();
    let (settings, state) = (delivery.settings.clone(), delivery.state.clone());
    let mut claims = std::collections::VecDeque::new();
    let owning = async {
        loop {
            match Box::pin(own(delivery, &control, &mut claims)).await {
                Turn::Ended(end) => break end,
                Turn::ClaimAgain(again) => delivery = *again,
            }
        }
    };
    let end = tokio::select! {
        biased;
        end = owning => end,
        () = drain_limit_passed(&control) => end_without(&settings, state, &control).await,
    };
    match &end {
        DeliveryEnd::Finished => control.meter.set_state(WorkerState::Finished),
        DeliveryEnd::Drained => control.meter.set_state(WorkerState::Drained),
        DeliveryEnd::Stopped(stop) => control.meter.refused(stop),
    }
    tracing::debug!(delivery = %id, ?end, "delivery ended");
    end
}

/// Returns [`DRAIN_LIMIT`] after the process was asked to end; never, if it is not. Cancel-safe.
async fn drain_limit_passed(control: &Control) {
    let mut stop = control.stop.clone();
    lease::becomes(&mut stop, true).await;
    tokio::time::sleep(DRAIN_LIMIT).await;
}

/// Ends a delivery that was asked to and could not in time: whatever it was about has been dropped, and is read again.
async fn end_without<T: StateStore>(settings: &Settings, state: Option<T>, control: &Control) -> DeliveryEnd {
    let waited_for = match control.meter.read().trouble {
        Some(trouble) => format!("{}: {}", trouble.code, trouble.message),
        None => "an answer of the source, the target or the state store".to_owned(),
    };
    let message = format!(
        "asked to end, and after {} s what was read was not delivered ({waited_for}): ended without. Nothing is lost, the \
         next start reads it again",
        DRAIN_LIMIT.as_secs()
    );
    let stop = Stop::new(1, "HX5065", message);
    control.meter.left(now_ms());
    let last_word = async {
        let Some(mut state) = state else { return };
        note(settings, Some(&mut state), WorkerState::Stopped, Some(&stop)).await;
        // So that a standby need not wait for the lease to end.
        drop(state.release(&settings.id).await);
    };
    if tokio::time::timeout(LAST_WORD_LIMIT, last_word).await.is_err() {
        tracing::warn!(delivery = %settings.id, "the lease could not be given back; it ends by itself");
    }
    DeliveryEnd::Stopped(stop)
}

enum Turn<S, K, T> {
    Ended(DeliveryEnd),
    ClaimAgain(Box<Delivery<S, K, T>>),
}

/// One time of owning the delivery: from standing by to losing it or ending.
async fn own<S, K, T>(
    delivery: Delivery<S, K, T>,
    control: &Control,
    claims: &mut std::collections::VecDeque<tokio::time::Instant>,
) -> Turn<S, K, T>
where
    S: Source,
    K: TransactionalSink,
    T: StateStore + Clone,
{
    let Delivery { settings, mut source, mut sink, mut state } = delivery;
    let lease = match lease::stand_by(&settings, state.as_ref(), control).await {
        Ok(Some(lease)) => lease,
        Ok(None) => return Turn::Ended(DeliveryEnd::Drained),
        Err(stop) => return Turn::Ended(DeliveryEnd::Stopped(stop)),
    };
    match lease.sit_out(control).await {
        lease::SatOut::GoOn => {}
        lease::SatOut::Asked => return Turn::Ended(finish(lease, &settings, state, DeliveryEnd::Drained).await),
        lease::SatOut::Lost => return Turn::ClaimAgain(Box::new(Delivery { settings, source, sink, state })),
    }
    // Looking through what was read before may take long: who asks meanwhile is told since when.
    note(&settings, state.as_mut(), WorkerState::Starting, None).await;
    let started = tokio::select! {
        started = look::look_and_claim(&settings, &mut source, &mut sink, state.as_mut(), control) => started,
        never = lease.note_troubles(&control.meter) => match never {},
    };
    let claimed = match started {
        Ok(Some(claimed)) => claimed,
        Ok(None) => return Turn::Ended(finish(lease, &settings, state, DeliveryEnd::Drained).await),
        Err(stop) => return Turn::Ended(finish(lease, &settings, state, DeliveryEnd::Stopped(stop)).await),
    };
    if settings.transform.is_some() {
        suspect::recall(&settings, state.as_mut(), control, &claimed.progress.bookmark).await;
    }
    note(&settings, state.as_mut(), WorkerState::Running, None).await;
    control.meter.set_state(WorkerState::Running);
    let origin = Origin { source: source.identity(), lane: settings.id.lane.clone() };
    let committer = commit::Committer::new(&settings, sink, state.clone(), control, claimed.clone(), origin);
    let filler = fill::Filler::new(&settings, source, control, claimed, lease.paused());
    let (source, sink, end) = fill::run_both(filler, committer, &lease).await;
    let end = with_place(end, &source);
    let fenced = matches!(&end, DeliveryEnd::Stopped(stop) if stop.exit_code == 4);
    if fenced {
        control.meter.fenced();
    }
    if fenced && lease.is_ours().await && may_claim_again(claims) {
        let why = if state.is_some() { "the lease is still ours" } else { "without a state store nobody can stand by" };
        tracing::warn!(delivery = %settings.id, "another worker claimed this delivery, but {why}: claiming again");
        tokio::time::sleep(Duration::from_millis(500)).await;
        return Turn::ClaimAgain(Box::new(Delivery { settings, source, sink, state }));
    }
    Turn::Ended(finish(lease, &settings, state, end).await)
}

/// What a stop says about a position is of use only with the thing that it is a position of. A source leaves that only after all of
/// it is committed.
fn with_place<S: Source>(end: DeliveryEnd, source: &S) -> DeliveryEnd {
    match (end, source.called()) {
        (DeliveryEnd::Stopped(stop), Some(called)) if NAMES_A_POSITION.contains(&stop.code) => {
            let message = format!("{}. The position is one of {called}", stop.message);
            DeliveryEnd::Stopped(Stop { message, ..stop })
        }
        (end, _) => end,
    }
}

fn may_claim_again(claims: &mut std::collections::VecDeque<tokio::time::Instant>) -> bool {
    let now = tokio::time::Instant::now();
    while claims.front().is_some_and(|at| now.duration_since(*at) > Duration::from_secs(60)) {
        claims.pop_front();
    }
    claims.push_back(now);
    claims.len() <= CLAIMS_PER_MINUTE
}

/// Notes how it ended and gives the lease back.
async fn finish<T: StateStore + Clone>(
    lease: lease::HeldLease<T>,
    settings: &Settings,
    mut state: Option<T>,
    end: DeliveryEnd,
) -> DeliveryEnd {
    match &end {
        DeliveryEnd::Finished => note(settings, state.as_mut(), WorkerState::Finished, None).await,
        DeliveryEnd::Drained => note(settings, state.as_mut(), WorkerState::Drained, None).await,
        // The worker that fenced this one speaks for the delivery now.
        DeliveryEnd::Stopped(stop) if stop.exit_code == 4 && !lease.is_ours().await => {}
        DeliveryEnd::Stopped(stop) => note(settings, state.as_mut(), WorkerState::Stopped, Some(stop)).await,
    }
    lease.release().await;
    end
}

async fn note<T: StateStore>(settings: &Settings, state: Option<&mut T>, now: WorkerState, stop: Option<&Stop>) {
    let Some(state) = state else { return };
    let note = DeliveryNote {
        state: now,
        exit_code: stop.map(|s| s.exit_code),
        code: stop.map(|s| s.code.to_owned()),
        message: stop.map(|s| s.message.clone()).unwrap_or_default(),
    };
    if let Err(error) = state.note(&settings.id, &note).await {
        tracing::warn!(delivery = %settings.id, %error, "the state store did not take the note");
    }
}

/// Whether the process was asked to end.
fn stopping(control: &Control) -> bool {
    *control.stop.borrow()
}

/// A target that is away is asked so often whether it is back, however long the next try would wait.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// The codes of a target that is away.
const AWAY: [&str; 2] = ["HX4001", "HX4002"];

/// Waits before the next try after the failure `code`, less if a target that was away answers before, or if the process is
/// asked to end. The probe reads progress and writes nothing.
async fn wait_for_target<K: crate::sink::Target>(control: &Control, sink: &mut K, wait: Duration, code: &str) {
    let until = tokio::time::Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        let step = if AWAY.contains(&code) { left.min(PROBE_INTERVAL) } else { left };
        sleep_or_stop(control, step).await;
        if step == left || stopping(control) || sink.look().await.is_ok() {
            return;
        }
    }
}

/// Sleeps, or returns early when the process is asked to end.
async fn sleep_or_stop(control: &Control, time: Duration) {
    let mut stop = control.stop.clone();
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// A fault point of the engine.
fn point(name: &str) {
    fault::point(name);
}

#[cfg(test)]
mod tests;
