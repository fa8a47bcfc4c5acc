//! What goes into a group, and what comes out of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::member::Protocol;

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Who says it: the member id, and the name that a static member keeps over restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The id that the coordinator gave; empty: none yet.
    pub member: Arc<str>,
    /// `group.instance.id`.
    pub instance: Option<Arc<str>>,
}

/// A JoinGroup.
#[derive(Debug, Clone)]
pub struct Join {
    /// Whom to answer.
    pub ticket: Ticket,
    /// The request's version: 4 asks new members to come back with an id, 9 knows of skipped assignments.
    pub version: i16,
    /// Who joins.
    pub identity: Identity,
    /// The id it gets if it has none.
    pub new_id: Arc<str>,
    /// What the client calls itself.
    pub client_id: Arc<str>,
    /// Where it is.
    pub client_host: Arc<str>,
    /// Silence that removes it.
    pub session_timeout: Duration,
    /// How long a rebalance may wait for it.
    pub rebalance_timeout: Duration,
    /// "consumer", "connect", …
    pub protocol_type: Arc<str>,
    /// What it can do, its favourite first.
    pub protocols: Arc<[Protocol]>,
}

/// A SyncGroup.
#[derive(Debug, Clone)]
pub struct Sync {
    /// Whom to answer.
    pub ticket: Ticket,
    /// Who asks.
    pub identity: Identity,
    /// The generation it believes in.
    pub generation: i32,
    /// The protocol type it believes in, if it says.
    pub protocol_type: Option<Arc<str>>,
    /// The protocol it believes in, if it says.
    pub protocol: Option<Arc<str>>,
    /// From the leader: what each member gets.
    pub assignments: Vec<(Arc<str>, Bytes)>,
}

/// One of those who leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// Who; an empty member id with an instance is removal by an administrator.
    pub identity: Identity,
}

/// A member as the leader is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub id: Arc<str>,
    /// Its static name.
    pub instance: Option<Arc<str>>,
    /// What it said under the chosen protocol.
    pub metadata: Bytes,
}

/// A member is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// The generation it is in.
    pub generation: i32,
    /// The group's protocol type.
    pub protocol_type: Option<Arc<str>>,
    /// The chosen protocol.
    pub protocol: Option<Arc<str>>,
    /// Who assigns.
    pub leader: Arc<str>,
    /// Its own id.
    pub member: Arc<str>,
    /// The leader came back, and what it assigned still holds.
    pub skip_assignment: bool,
    /// All members, for the leader only.
    pub members: Vec<JoinedMember>,
}

/// A member is not in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinRefusal {
    /// Why.
    pub error: ResponseError,
    /// The id to answer with.
    pub member: Arc<str>,
}

impl JoinRefusal {
    /// A refusal.
    pub fn new(error: ResponseError, member: &Arc<str>) -> Self {
        Self { error, member: Arc::clone(member) }
    }
}

/// The answer of a JoinGroup.
pub type JoinAnswer = Result<Joined, JoinRefusal>;

/// A member's assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// The group's protocol type.
    pub protocol_type: Option<Arc<str>>,
    /// The chosen protocol.
    pub protocol: Option<Arc<str>>,
    /// What the leader gave it; empty if the leader did not name it.
    pub assignment: Bytes,
}

/// The answer of a SyncGroup.
pub type SyncAnswer = Result<Synced, ResponseError>;

/// An answer to one of those who wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Of a JoinGroup.
    Join(JoinAnswer),
    /// Of a SyncGroup.
    Sync(SyncAnswer),
}

/// The clocks of a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// A member's session, or the time that a pending member has to come back.
    Session(Arc<str>),
    /// The end of the join phase.
    Join,
    /// The end of the sync phase.
    Sync,
}

/// Whether the group's state must be durable before anything else of a step happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Save {
    /// Nothing that must survive has changed.
    #[default]
    Nothing,
    /// Save first; if that fails, the step has not happened.
    First,
}

/// What follows from an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Before all else.
    pub save: Save,
    /// Who is answered.
    pub answers: Vec<(Ticket, Answer)>,
    /// Timers, in order: set anew to run for so long from now, or (`None`) stopped.
    pub timers: Vec<(Timer, Option<Duration>)>,
}

impl Step {
    pub(super) fn join(&mut self, ticket: Ticket, answer: JoinAnswer) {
        self.answers.push((ticket, Answer::Join(answer)));
    }

    pub(super) fn sync(&mut self, ticket: Ticket, answer: SyncAnswer) {
        self.answers.push((ticket, Answer::Sync(answer)));
    }

    pub(super) fn set(&mut self, timer: Timer, after: Duration) {
        self.timers.push((timer, Some(after)));
    }

    pub(super) fn stop(&mut self, timer: Timer) {
        self.timers.push((timer, None));
    }
}
