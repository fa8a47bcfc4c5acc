//! Dead letters at rest: listing, replaying and discarding them, with no worker alive.

use std::future::Future;

use hapax_model::letter::{IN_DOUBT, LetterBytes};
use hapax_model::position::{DeliveryId, Position};

use crate::batch::Batch;
use crate::sink::{SinkError, Written};

/// A dead letter as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLetter {
    /// Its number in its store.
    pub id: i64,
    /// Whose it is.
    pub delivery: DeliveryId,
    /// The epoch that wrote it.
    pub epoch: u64,
    /// Where the input was.
    pub position: Position,
    /// The incarnation of that position.
    pub incarnation: String,
    /// At which stage it died.
    pub stage: String,
    /// The error's code.
    pub code: String,
    /// The whole message.
    pub message: String,
    /// What letters of one cause share.
    pub fingerprint: String,
    /// The original bytes.
    pub bytes: LetterBytes,
    /// The event key, if there was one.
    pub event_key: Option<String>,
    /// When it was written, in milliseconds since 1970.
    pub written_at_ms: u64,
    /// `dead`, `replayed` or `discarded`.
    pub state: String,
}

impl StoredLetter {
    /// Whether its rows may be in the target all the same: replaying it may write them twice.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.code == IN_DOUBT
    }
}

/// Which letters are meant. An empty choice means all that are `dead`; letters chosen by number, position or event key
/// are meant in any state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LetterChoice {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// Only of this sink.
    pub sink: Option<String>,
    /// Only with this fingerprint, or a prefix of it.
    pub cause: Option<String>,
    /// Only of this lane.
    pub lane: Option<String>,
    /// Only those whose input was at this position.
    pub position: Option<Position>,
    /// Only those with this event key.
    pub event_key: Option<String>,
    /// Only these numbers.
    pub ids: Vec<i64>,
    /// In which states, if no single letters are named.
    pub states: LetterStates,
}

/// The states that a choice is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LetterStates {
    /// Those that wait.
    #[default]
    Dead,
    /// Those that were replayed or discarded too.
    Any,
}

impl LetterChoice {
    /// Whether single letters were named: then their state does not matter.
    #[must_use]
    pub fn names_letters(&self) -> bool {
        !self.ids.is_empty() || self.position.is_some() || self.event_key.is_some()
    }

    /// Whether letters of every state are meant.
    #[must_use]
    pub fn means_any_state(&self) -> bool {
        self.names_letters() || self.states == LetterStates::Any
    }
}

/// Where letters live: beside progress.
pub trait LetterStore: Send {
    /// Letters in the order of their numbers, `after` exclusive, at most `limit`.
    fn list(
        &mut self,
        choice: &LetterChoice,
        after: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<StoredLetter>, SinkError>> + Send;

    /// Marks letters as discarded, in one transaction; returns how many were still `dead`.
    fn discard(&mut self, ids: &[i64]) -> impl Future<Output = Result<u64, SinkError>> + Send;
}

/// A target into which letters of the same database can be replayed.
pub trait Replay: LetterStore {
    /// One transaction where the letters live: lock those of `letters` that are still `dead`, write the events of
    /// `batch` (event `i` comes from `letters[batch input of i]`), mark, COMMIT. No position, no epoch changes.
    /// Letters whose output is refused stay `dead` and are returned with the new reason.
    fn replay(
        &mut self,
        letters: &[i64],
        batch: Batch,
        rule: ReplayRule,
    ) -> impl Future<Output = Result<Replayed, SinkError>> + Send;
}

/// Which rows a replay may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayRule {
    /// Any: what is there is treated as the conflict mode has it.
    Any,
    /// Only of letters none of whose keys has a row when the replay begins; the others stay `dead`. No worker of the
    /// delivery commits between that look and the replay's COMMIT.
    OnlyAbsent,
}

/// What a replay did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Letters whose outputs are in the target now.
    pub replayed: u64,
    /// Letters that another replay or a discard had taken meanwhile.
    pub taken: u64,
    /// Letters refused again, with the reason.
    pub refused: Vec<(i64, String)>,
    /// Letters that were left as they are, because a row of theirs is there ([`ReplayRule::OnlyAbsent`]).
    pub present: Vec<i64>,
    /// Rows by what became of them.
    pub written: Written,
}
