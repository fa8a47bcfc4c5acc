//! What a person asks of deliveries, and does to them, with no worker alive: listing, tracing, resetting, pausing.
//!
//! Two places: beside progress ([`Books`]), and in the state store ([`StateBooks`]); one database may be both.
//! Invariant: whatever moves a delivery also fences the worker that has it. Each call is one transaction.
//! Not here: questions, dry runs and the lease check, which are the command line's.

use std::collections::BTreeMap;
use std::future::Future;

use hapax_model::contract::Contract;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::ledger::Totals;
use hapax_model::letter::Cause;
use hapax_model::position::{Bookmark, DeliveryId, Position};
use hapax_model::progress::{Progress, Witness};

use crate::letters::{LetterChoice, LetterStore};
use crate::sink::SinkError;
use crate::state::DeliveryNote;

/// Adopting would overwrite progress that the new workflow already has.
pub const ADOPT_CLASH: &str = "HX4191";
/// There is no such delivery.
pub const NO_DELIVERY: &str = "HX4192";

/// Progress, epoch log and dead letters of all deliveries that keep them in one database.
///
/// A database without our tables has no deliveries: that is an empty answer, never an error. Nothing here makes
/// tables. The list of letters and their discarding come with [`LetterStore`].
pub trait Books: LetterStore {
    /// All deliveries, ordered by id.
    fn deliveries(&mut self) -> impl Future<Output = Result<Vec<StoredDelivery>, SinkError>> + Send;

    /// The last epochs of a delivery, the newest first, at most `limit`.
    fn recent_epochs(
        &mut self,
        id: &DeliveryId,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<LoggedEpoch>, SinkError>> + Send;

    /// How many letters of one delivery are in each state.
    fn letter_counts(&mut self, id: &DeliveryId) -> impl Future<Output = Result<LetterCounts, SinkError>> + Send;

    /// The chosen letters with a number above `after`, grouped by cause, the largest group first. With `after` 0: all.
    ///
    /// Numbers are given when letters are written, not when their epoch commits: of two epochs that commit at once, the
    /// later may have the lower numbers. Who must not miss a cause asks for all and compares.
    fn causes(
        &mut self,
        choice: &LetterChoice,
        after: i64,
    ) -> impl Future<Output = Result<Vec<LetterGroup>, SinkError>> + Send;

    /// Whose letters and logged epochs are here, in whatever state; also of deliveries that have no progress any more.
    fn owners(&mut self) -> impl Future<Output = Result<Vec<DeliveryId>, SinkError>> + Send;

    /// Before outputs are written elsewhere that must not be written twice: in one transaction, those of `ids` that are
    /// `dead` and not in doubt become letters in doubt ([`in_doubt_after_replay`], with their own cause behind it). Returns
    /// them; of two replays at once only one is given a letter.
    ///
    /// [`in_doubt_after_replay`]: crate::in_doubt::in_doubt_after_replay
    fn take_in_doubt(&mut self, ids: &[i64]) -> impl Future<Output = Result<Vec<i64>, SinkError>> + Send;

    /// After outputs were written elsewhere, in one transaction: marks `good` as replayed, and gives those that were refused
    /// again the newer reason. Returns how many of `good` were still `dead`.
    fn mark_replayed(
        &mut self,
        good: &[i64],
        refused: &BTreeMap<i64, Cause>,
    ) -> impl Future<Output = Result<u64, SinkError>> + Send;

    /// Moves a delivery to another place in its source, and fences the worker that has it, which then goes on from
    /// there. `contract` replaces the stored one (a person accepts what changed); with it, a delivery without progress
    /// is made. Fails with [`NO_DELIVERY`] if there is no such delivery and no contract to make it with.
    fn reset(
        &mut self,
        id: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
    ) -> impl Future<Output = Result<Progress, SinkError>> + Send;

    /// Gives all lanes of a sink of a renamed workflow to its new name, and fences the old one for good: its workers
    /// find no progress, and a new claim under the old name is refused. Returns how many lanes moved. Fails with
    /// [`ADOPT_CLASH`] if the new name already has progress on one of them, [`NO_DELIVERY`] if the old one has none.
    fn adopt(&mut self, old: &str, new: &str, sink: &str) -> impl Future<Output = Result<u64, SinkError>> + Send;

    /// Gives the progress and letters of lanes to one lane, which goes on at `to`, and fences the workers that have the old ones. Their
    /// epochs follow one another in the order of `old`; the last one keeps its memory. The new lane may be one of them. `contract`
    /// replaces the stored one. Fails with [`ADOPT_CLASH`] if the new lane has progress and is none of `old`, [`NO_DELIVERY`] if one of them has none.
    fn adopt_lanes(
        &mut self,
        old: &[DeliveryId],
        new: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
        names: OldNames,
    ) -> impl Future<Output = Result<Progress, SinkError>> + Send;

    /// Removes all that is known of one delivery here. The user's rows stay. A worker that still has it finds itself
    /// fenced.
    fn forget(&mut self, id: &DeliveryId) -> impl Future<Output = Result<Forgotten, SinkError>> + Send;
}

/// What becomes of the names of lanes whose progress was given to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldNames {
    /// Another file may come there, and begin a lane.
    Free,
    /// Nobody can claim them again.
    Fenced,
}

/// What workers keep in a state store, as a person sees it.
///
/// A store without our tables answers as an empty one; [`pause`](Self::pause) needs them.
pub trait StateBooks: Send {
    /// What live and stopped workers noted of their deliveries, ordered by id.
    fn notes(&mut self) -> impl Future<Output = Result<Vec<NotedDelivery>, SinkError>> + Send;

    /// All leases, expired ones too, ordered by id.
    fn leases(&mut self) -> impl Future<Output = Result<Vec<StoredLease>, SinkError>> + Send;

    /// The witness of every delivery, ordered by id.
    fn witnesses(&mut self) -> impl Future<Output = Result<Vec<(DeliveryId, Witness)>, SinkError>> + Send;

    /// Forgets the witness of a delivery, and what its last worker said: a person accepts that its progress went back.
    fn reset_witness(&mut self, id: &DeliveryId) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Gives the memory of a renamed workflow to its new name: witness and intent. For a state store that is another
    /// database than the one that holds progress, after [`Books::adopt`] there.
    fn adopt_memory(&mut self, old: &str, new: &str, sink: &str) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Gives the memory of a lane to another: its intent; the witnesses and notes of both are forgotten. For a state store that is another
    /// database than the one that holds progress, after [`Books::adopt_lanes`] there.
    fn adopt_lane_memory(
        &mut self,
        old: &DeliveryId,
        new: &DeliveryId,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Asks the workers of a workflow to read no more until it is resumed, or its time is over; they see it with their
    /// next heartbeat ([`StateStore::paused`](crate::state::StateStore::paused)). Pausing again replaces all of it.
    fn pause(&mut self, pause: &Pause) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Takes the pause back; whether there was one.
    fn resume(&mut self, workflow: &str) -> impl Future<Output = Result<bool, SinkError>> + Send;

    /// All pauses, ordered by workflow; those whose time is over too.
    fn pauses(&mut self) -> impl Future<Output = Result<Vec<Pause>, SinkError>> + Send;
}

/// A delivery as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelivery {
    /// Which.
    pub id: DeliveryId,
    /// Its progress.
    pub progress: Progress,
    /// The time of its last commit or claim, in milliseconds since 1970.
    pub updated_at_ms: u64,
}

/// One row of the epoch log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEpoch {
    /// Its number.
    pub epoch: Epoch,
    /// Who committed it.
    pub generation: Generation,
    /// Where its inputs began.
    pub from: Position,
    /// Where the next epoch began.
    pub to: Bookmark,
    /// What became of its inputs.
    pub counts: Totals,
    /// When it was opened, in milliseconds since 1970.
    pub opened_at_ms: u64,
    /// When the barrier closed it.
    pub closed_at_ms: u64,
    /// When its transaction was about to commit.
    pub committed_at_ms: u64,
}

/// Letters that share one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterGroup {
    /// What they share.
    pub fingerprint: String,
    /// The error's code.
    pub code: String,
    /// At which stage they died.
    pub stage: String,
    /// How many there are.
    pub count: u64,
    /// When the first was written, in milliseconds since 1970.
    pub first_at_ms: u64,
    /// When the last was written.
    pub last_at_ms: u64,
    /// The number of the first.
    pub first_id: i64,
    /// The number of the last.
    pub last_id: i64,
    /// The whole message of the first one.
    pub example: String,
}

/// How many letters are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LetterCounts {
    /// Neither replayed nor discarded.
    pub dead: u64,
    /// Their outputs are in the target.
    pub replayed: u64,
    /// Given up by a person.
    pub discarded: u64,
}

/// What [`Books::forget`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// There was progress, and it is gone.
    Progress,
    /// There was none.
    Nothing,
}

/// A delivery as the state store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedDelivery {
    /// Which.
    pub id: DeliveryId,
    /// How it stands.
    pub note: DeliveryNote,
    /// Who noted it: process and host.
    pub session: String,
    /// When, in milliseconds since 1970.
    pub noted_at_ms: u64,
}

/// A lease as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLease {
    /// Of which delivery.
    pub id: DeliveryId,
    /// Who holds it: process and host.
    pub holder: String,
    /// Until when, in milliseconds since 1970.
    pub expires_at_ms: u64,
}

/// A workflow that a person has paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Which.
    pub workflow: String,
    /// Who asked for it: process and host.
    pub by: String,
    /// Why, in their words; may be empty.
    pub why: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// Until when, if not until it is resumed.
    pub until_ms: Option<u64>,
}

impl Pause {
    /// Until it is resumed, for no reason given.
    #[must_use]
    pub fn new(workflow: &str, by: &str, since_ms: u64) -> Self {
        Self { workflow: workflow.to_owned(), by: by.to_owned(), why: String::new(), since_ms, until_ms: None }
    }

    /// Whether it holds at `now_ms`.
    #[must_use]
    pub fn holds(&self, now_ms: u64) -> bool {
        self.until_ms.is_none_or(|until| until > now_ms)
    }
}
