//! Where inputs come from.

use std::future::Future;

use hapax_model::position::{Bookmark, Position};

use crate::batch::Inputs;

/// How much a poll may add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// At most so many inputs.
    pub events: usize,
    /// Stop after the input that passes so many bytes. One input may be larger than the room; it is added alone.
    pub bytes: usize,
}

/// What a poll found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// Inputs were added.
    Records,
    /// Nothing is there at the moment; poll again. The source itself has waited a little.
    Idle,
    /// This incarnation was read to its end, and the next one is known (a file was rotated): the epoch must close here,
    /// at [`Source::bookmark`]; then [`Source::step`] goes on.
    Boundary,
    /// There is nothing more and never will be, or `Follow::No` was asked for and the end was reached.
    End,
}

/// Whether a source goes on after what is there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Wait for more.
    Yes,
    /// End at what is there now.
    No,
}

/// Where a delivery without progress begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartAt {
    /// At the first input that the source still holds.
    #[default]
    Earliest,
    /// After the last input that is there now. Resolved once, ever.
    Latest,
    /// At a position that a person named.
    At(Position),
}

/// Whether the source can go on from a bookmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// It can.
    Yes,
    /// It is another incarnation now.
    OtherIncarnation {
        /// What it is now.
        now: String,
    },
    /// It is a copy of what it was: another incarnation that holds all that was read up to the bookmark. A person who accepts it
    /// goes on at the same place.
    Copied {
        /// What it is now.
        now: String,
    },
    /// The incarnation is the same, but the range from the bookmark on is gone, or not yet there again.
    Gone {
        /// What is missing, for people, with positions.
        missing: String,
    },
}

/// One lane of a source.
///
/// Call order: [`hold`](Self::hold), [`hold_range`](Self::hold_range) and [`start`](Self::start) any time; [`assign`](Self::assign) once, then
/// [`poll`](Self::poll) until done, [`close_epoch`](Self::close_epoch) at every barrier, [`ack`](Self::ack) after commits. A source never decides what was delivered:
/// after a crash it is assigned the bookmark that progress names.
///
/// Replay: polling again from a bookmark gives the same inputs with the same positions, however they are batched.
pub trait Source: Send + 'static {
    /// The lane's name, stable for ever: part of the progress key (a path, a partition).
    fn lane(&self) -> &str;

    /// What identifies the source in the contract, such as `file:/data/orders.jsonl`.
    fn identity(&self) -> String;

    /// Resolves the start of a delivery that has no progress.
    fn start(&mut self, at: StartAt) -> impl Future<Output = Result<Bookmark, SourceError>> + Send;

    /// Whether the source can go on from `bookmark`; changes nothing. Asked at the start and every 30 s of running.
    fn hold(&mut self, bookmark: &Bookmark) -> impl Future<Output = Result<Held, SourceError>> + Send;

    /// Whether everything that was once read between `from`, which is held, and `to` can be read again, and leads to `to` by
    /// the same numbers; changes nothing. Asked when a target was restored to an older copy.
    fn hold_range(&mut self, from: &Bookmark, to: &Bookmark) -> impl Future<Output = Result<Held, SourceError>> + Send;

    /// Starts reading at `bookmark`; if its incarnation was read to its end and is gone, and the next one is known, at the
    /// beginning of that: its number is one higher, and the step is committed before anything is read.
    fn assign(&mut self, bookmark: &Bookmark, follow: Follow) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Adds inputs to `into`, within `room`. Waits at most about 100 ms when there is nothing. Cancel-safe: what was
    /// added stays added, and the bookmark moves only past what was added.
    fn poll(&mut self, into: &mut Inputs, room: Room) -> impl Future<Output = Result<Polled, SourceError>> + Send;

    /// Where the next poll reads: just past everything handed out.
    fn bookmark(&self) -> Bookmark;

    /// At the barrier of an epoch that began at `from`: makes sure that what lies before `from` is still what it was when
    /// that bookmark was made, and returns the bookmark of the epoch's end, with the facts to recognise it by. A
    /// [`SourceError::Gap`]: it is not, and nothing of the epoch may be committed.
    fn close_epoch(&mut self, from: &Bookmark) -> impl Future<Output = Result<Bookmark, SourceError>> + Send;

    /// After [`Polled::Boundary`]: goes on to the next incarnation, whose number is one higher; the bookmark is then its
    /// beginning, and none of its inputs is read before that is committed. If what was found is no longer so, nothing
    /// moves, and the next poll looks again.
    fn step(&mut self) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Whether `other`, which the lane of that name made, lies in something that this lane reads: both would deliver it. Two things
    /// that are both there are two, whatever they hold.
    fn reads_what(&mut self, lane: &str, other: &Bookmark) -> impl Future<Output = Result<bool, SourceError>> + Send;

    /// Everything before `upto` is committed; a source that keeps a cursor elsewhere may move it.
    fn ack(&mut self, upto: &Bookmark) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// What holds the inputs that are read now, where a lane is made of several things (a file of a chain): its name as a person
    /// would look for it.
    fn called(&self) -> Option<String>;

    /// How many inputs lie between the start and the end known now, if the source can say so cheaply: for progress
    /// bars. The unit is the position's own (bytes of a file, records of a generator).
    fn extent(&self) -> Option<u64>;
}

/// What can go wrong at a source.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The source could not be opened or read now; it may come back.
    #[error("{what}: {source}")]
    Unavailable {
        /// What was tried, with the place.
        what: String,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// The source lost inputs that were not read yet, or is no longer what it was. A person must decide.
    #[error("{what}")]
    Gap {
        /// What is missing, with exact positions.
        what: String,
    },
    /// What the source holds cannot be read as what it should be: a damaged archive, a changed header. A person must
    /// decide.
    #[error("{what}")]
    Unreadable {
        /// The code of the page that explains it.
        code: &'static str,
        /// What is wrong, where, and what helps.
        what: String,
    },
}

/// What the engine does about a source's error; the only place that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceReaction {
    /// Try again with backoff.
    Retry,
    /// Stop the workflow, code 5.
    StopForPerson,
}

impl SourceError {
    /// The reaction to this error.
    #[must_use]
    pub const fn reaction(&self) -> SourceReaction {
        match self {
            Self::Unavailable { .. } => SourceReaction::Retry,
            Self::Gap { .. } | Self::Unreadable { .. } => SourceReaction::StopForPerson,
        }
    }

    /// The code of the page that explains this error.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "HX3001",
            Self::Gap { .. } => "HX3002",
            Self::Unreadable { code, .. } => code,
        }
    }
}
