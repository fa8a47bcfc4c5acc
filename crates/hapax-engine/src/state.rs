//! What a worker keeps outside its targets: leases, the witness, and progress where a target may not hold it.

use std::future::Future;
use std::time::Duration;

use hapax_model::delivery_state::WorkerState;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::letter::Letter;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::{Progress, Witness};

use crate::pulse::Verdict;
use crate::sink::{Claim, EpochRecord, SinkError};

/// Who holds a delivery's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// We do.
    Ours,
    /// Another worker does.
    Held {
        /// Who, for people.
        by: String,
        /// For how much longer, as far as its last heartbeat tells.
        remaining: Duration,
    },
}

/// How a live delivery stands, for `status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryNote {
    /// What its worker says.
    pub state: WorkerState,
    /// The exit code that stopped it, if one did.
    pub exit_code: Option<u8>,
    /// The error's code, such as `HX4002`, if there is one.
    pub code: Option<String>,
    /// A sentence for people; empty if there is nothing to say.
    pub message: String,
}

/// Leases, witnesses and notes. Manners and memory: safety never rests on any of them.
///
/// All calls are short transactions of their own. A lease is time-bound: whoever does not renew it loses it.
pub trait StateStore: Send + Sync + 'static {
    /// Takes or renews the lease for `ttl` if it is free, expired or ours; `take_over` takes it in any case.
    fn lease(
        &mut self,
        id: &DeliveryId,
        ttl: Duration,
        take_over: TakeOver,
    ) -> impl Future<Output = Result<Lease, StateError>> + Send;

    /// Gives the lease back, if it is ours.
    fn release(&mut self, id: &DeliveryId) -> impl Future<Output = Result<(), StateError>> + Send;

    /// The last progress seen.
    fn load_witness(&mut self, id: &DeliveryId) -> impl Future<Output = Result<Option<Witness>, StateError>> + Send;

    /// Remembers progress; never lowers the epoch unless `reset` says so.
    fn save_witness(
        &mut self,
        id: &DeliveryId,
        witness: &Witness,
    ) -> impl Future<Output = Result<(), StateError>> + Send;

    /// Notes how the delivery stands.
    fn note(&mut self, id: &DeliveryId, note: &DeliveryNote) -> impl Future<Output = Result<(), StateError>> + Send;

    /// Writes down that an input may be one that a program never gets done with; replaces what was written before.
    fn suspect(
        &mut self,
        id: &DeliveryId,
        suspicion: &Suspicion,
    ) -> impl Future<Output = Result<(), StateError>> + Send;

    /// What was written down last, if it was not cleared.
    fn suspicion(&mut self, id: &DeliveryId) -> impl Future<Output = Result<Option<Suspicion>, StateError>> + Send;

    /// The input is delivered, or a dead letter: nothing is held against it any more.
    fn clear_suspicion(&mut self, id: &DeliveryId) -> impl Future<Output = Result<(), StateError>> + Send;

    /// Whether a person has paused this workflow, and its time is not over; asked with each heartbeat.
    fn paused(&mut self, workflow: &str) -> impl Future<Output = Result<bool, StateError>> + Send;
}

/// An input that a program was still busy with when somebody looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspicion {
    /// Where it is.
    pub at: Bookmark,
    /// In how many lives of the process it was suspected, this one included.
    pub lives: u32,
    /// What the watchdog made of it; none while it may still get done.
    pub verdict: Option<Verdict>,
}

/// Whether a lease held by another is respected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOver {
    /// Wait for it to end.
    Never,
    /// Take it now: a person said so.
    Now,
}

/// What was about to be sent to a target that holds no progress, saved before it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The saved position from which sending goes on.
    pub from: Bookmark,
    /// The end of what was sent, or was about to be.
    pub to: Bookmark,
    /// Rolling digest of the keys of all events between them, where a guarantee rests on keys. Where nothing is sent again, what is
    /// known of the rules by which rows were made; its first half is zero.
    pub digest: [u8; 32],
}

/// Progress beside the target instead of inside it (`progress: state`): the same row, claim and compare-and-swap.
pub trait ProgressStore: Send + 'static {
    /// Reads progress without fencing.
    fn look(&mut self, id: &DeliveryId) -> impl Future<Output = Result<Option<Progress>, SinkError>> + Send;

    /// Ids of other deliveries, with their progress: to notice a renamed workflow.
    fn others(
        &mut self,
        id: &DeliveryId,
    ) -> impl Future<Output = Result<Vec<(DeliveryId, Progress)>, SinkError>> + Send;

    /// Raises the generation, *then* reads progress.
    fn claim(&mut self, id: &DeliveryId, claim: &Claim) -> impl Future<Output = Result<Progress, SinkError>> + Send;

    /// Compare-and-swap on (generation, epoch, position), dead letters, epoch log: one transaction.
    fn save(
        &mut self,
        id: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
        letters: &[Letter],
    ) -> impl Future<Output = Result<Progress, SinkError>> + Send;

    /// What was about to be sent when a worker last wrote it down.
    fn load_intent(&mut self, id: &DeliveryId) -> impl Future<Output = Result<Option<Intent>, SinkError>> + Send;

    /// Writes down what is about to be sent, if the delivery is still of this generation; `epoch` is only for people.
    /// [`SinkError::FencedOut`] if it is not.
    fn save_intent(
        &mut self,
        id: &DeliveryId,
        generation: Generation,
        epoch: Epoch,
        intent: &Intent,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;
}

/// What can go wrong at a state store; a delivery goes on without its witness for a while, and says so.
#[derive(Debug, thiserror::Error)]
#[error("state store {store}: {message}")]
pub struct StateError {
    /// Which store.
    pub store: String,
    /// What it said.
    pub message: String,
}
