//! Where events go.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use hapax_model::contract::{Contract, Difference, TARGET};
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::field::FieldPath;
use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, CauseCount};
use hapax_model::position::{Bookmark, DeliveryId, Incarnation, Position};
use hapax_model::progress::Progress;
use hapax_model::rejects::{RejectRule, RejectStop};
use hapax_model::transaction::{IllegalMove, TransactionState};

use crate::batch::{Batch, OutputEvent};
use crate::second_pass::SecondPass;

/// What a target tells before anything is claimed. Never fences, never writes the user's data.
pub trait Target: Send + 'static {
    /// Which fields of an event the target wants. They may change when the table does; a batch that was filled before
    /// says in its own layout where each field is.
    fn fields(&self) -> &[FieldPath];

    /// Reads the live target again: checks that the table is fit, and returns its identity for the contract.
    fn inspect(&mut self) -> impl Future<Output = Result<TargetIdentity, SinkError>> + Send;

    /// Reads progress without fencing.
    fn look(&mut self) -> impl Future<Output = Result<Option<Progress>, SinkError>> + Send;

    /// Progress of other deliveries that is kept in the same place: to notice a renamed workflow.
    fn others(&mut self) -> impl Future<Output = Result<Vec<(DeliveryId, Progress)>, SinkError>> + Send;
}

/// What the target is, as far as the contract cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetIdentity(pub String);

/// How to take a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// On assignment: unconditional. Inserts the row at `start` if there is none.
    Take {
        /// The resolved start of a delivery without progress.
        start: Bookmark,
        /// What must not change from now on.
        contract: Contract,
        /// Who claims, for people.
        session: String,
    },
    /// After doubt: only if the generation is still ours.
    Reclaim {
        /// Ours.
        generation: Generation,
        /// Who claims, for people.
        session: String,
    },
}

/// One epoch, as the commit writes it down.
#[derive(Debug, Clone)]
pub struct EpochRecord {
    /// Its number.
    pub epoch: Epoch,
    /// Where its inputs began: progress must say so, or we are fenced.
    pub from: Bookmark,
    /// Where the next epoch begins.
    pub to: Bookmark,
    /// Counts of this epoch, as if the target rejected nothing.
    pub counts: Totals,
    /// When the epoch was opened, in milliseconds since 1970.
    pub opened_at_ms: u64,
    /// When the barrier closed it.
    pub closed_at_ms: u64,
    /// What may be rejected.
    pub rejects: RejectRule,
    /// How a second pass goes, if rows are refused.
    pub pass: SecondPass,
}

impl EpochRecord {
    /// Which incarnation of the source its inputs belong to, as far as it was known at the end: a file without a record
    /// learns what it is with its first one. An epoch that steps over to the next incarnation has no inputs of that one.
    #[must_use]
    pub fn incarnation(&self) -> &Incarnation {
        let (from, to) = (&self.from.incarnation, &self.to.incarnation);
        if from.number == to.number { to } else { from }
    }
}

/// What a commit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Progress as it stands now. Its position lies inside the batch if only the first inputs were committed, as an
    /// epoch of their own ([`SecondPass::prefix_from`]); the rest is to become the next epoch.
    pub progress: Progress,
    /// Whether that progress is stored. A position that is saved less often than every epoch lags behind: only what is
    /// stored may be witnessed.
    pub stored: bool,
    /// Rows by what became of them.
    pub written: Written,
    /// Indexes of the batch's inputs that became dead letters in this epoch, ascending; those of the fill included.
    pub dead_inputs: Vec<usize>,
    /// Why they died, by cause.
    pub causes: Vec<CauseCount>,
}

/// Rows by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Rows sent to the target after reduction.
    pub upserts: u64,
    /// Created.
    pub inserts: u64,
    /// Overwrote an existing key.
    pub updates: u64,
    /// Removed, or turned into a tombstone.
    pub deletes: u64,
    /// Left as it was: a duplicate in `ignore`, an older version in `newer`.
    pub unchanged: u64,
    /// Rejected by the target.
    pub failures: u64,
}

/// Delivers one lane into a target that can hold our progress beside the data.
///
/// Call order: [`init_transactions`](Self::init_transactions), then (`begin_transaction` `write`* `commit_transaction`)*.
/// After an error of `commit_transaction` whose reaction is [`Reaction::InDoubt`] the outcome is unknown:
/// `init_transactions` with [`Claim::Reclaim`], and ask `decide_outcome`; what was staged is kept until then, so that
/// `commit_transaction` can be called again. After any other error of `commit_transaction` nothing is visible, what was
/// staged is kept, and it may be called again after `init_transactions`, or the epoch aborted.
/// A commit may end with the first inputs only, as an epoch of their own: the caller commits the rest as the next one.
/// Illegal moves are [`SinkError::Illegal`] and change nothing. Dropping the future of a commit leaves it in doubt.
pub trait TransactionalSink: Target {
    /// The claim: fences every older owner, *then* reads progress.
    fn init_transactions(&mut self, claim: &Claim) -> impl Future<Output = Result<Progress, SinkError>> + Send;

    /// Opens the buffer of `epoch`; refused unless the state is `Idle`. Touches no database.
    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError>;

    /// Stages a batch, in lane order; no reader may see it yet. An epoch has one batch.
    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError>;

    /// One transaction of the target: progress, data, dead letters, epoch log. All of it becomes visible, or nothing.
    fn commit_transaction(&mut self, record: &EpochRecord)
    -> impl Future<Output = Result<Committed, SinkError>> + Send;

    /// Forgets what was staged.
    fn abort_transaction(&mut self) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// Where the life cycle stands.
    fn transaction_state(&self) -> TransactionState;

    /// Saves what the sink has kept back (a position outside the target that is saved less often than every epoch): at the
    /// delivery's end, and when it is [due](Self::save_due). A sink whose progress commits with the data has nothing to do.
    fn finish(&mut self) -> impl Future<Output = Result<(), SinkError>> + Send;

    /// When what it has kept back must be saved, if no epoch comes before; none if there is nothing.
    fn save_due(&self) -> Option<Instant>;
}

/// Writes events by key into a target that holds none of our tables: writing an event twice leaves what writing it
/// once leaves (in `append` it does not, which is why the audit then promises at-least-once and no more).
///
/// Each event has one deterministic key; the target's upsert is atomic; there is no commit step. Who retries: the
/// caller, with the same batch, after any error. Progress is the caller's affair ([`ProgressStore`](crate::state::ProgressStore)).
pub trait IdempotentSink: Send + 'static {
    /// Which fields of an event the target wants.
    fn fields(&self) -> &[FieldPath];

    /// Reads the live target again; see [`Target::inspect`].
    fn inspect(&mut self) -> impl Future<Output = Result<TargetIdentity, SinkError>> + Send;

    /// The key under which `event` is written: the entity key in `update` and `newer`, else the event key.
    fn derive_dedup_key(&self, event: &OutputEvent<'_>) -> Option<hapax_model::key::KeyHash>;

    /// Writes one event: updates or creates. Visible at once.
    fn upsert(&mut self, event: &OutputEvent<'_>) -> impl Future<Output = Result<Written, SinkError>> + Send;

    /// Writes a batch, cheaper per event than singles. A row that the target refuses is returned, not an error, unless
    /// more are refused than `limits` allow: then [`SinkError::Rejected`], and nothing of the batch is visible.
    /// If the future is dropped, the write has ended, or can no longer take effect, before another one begins.
    fn upsert_batch(
        &mut self,
        batch: Arc<Batch>,
        limits: &UpsertLimits,
    ) -> impl Future<Output = Result<WriteOutcome, SinkError>> + Send;

    /// How rows are made of events, in words that differ wherever an event may become another row, or none; empty before the
    /// target was inspected.
    fn row_rules(&self) -> String;

    /// Events that are refused before anything is sent, with the cause, ascending; as far as that can be told without asking the
    /// target.
    fn misfits(&self, batch: &Batch) -> Vec<(usize, Cause)>;

    /// How keys are made, for logs and `check`.
    fn dedup_strategy(&self) -> &hapax_model::key::DedupStrategy;
}

/// Which epoch a batch of upserts belongs to, and what may be refused of it.
#[derive(Debug, Clone)]
pub struct UpsertLimits {
    /// The epoch, for messages and for what an unclear end means.
    pub epoch: Epoch,
    /// What may be rejected.
    pub rejects: RejectRule,
    /// How a second pass goes, if rows are refused.
    pub pass: SecondPass,
}

/// What became of a batch's rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteOutcome {
    /// Rows by what became of them.
    pub written: Written,
    /// Events that the target refused, in lane order: index of the event in the batch, and why. None of the rows of
    /// their inputs is there.
    pub refused: Vec<(usize, Cause)>,
    /// How many of the first inputs were tried; none if all were.
    pub inputs: Option<usize>,
}

/// What can go wrong at a sink. Variants say the fact; [`SinkError::reaction`] says what follows from it.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The target could not be opened at all.
    #[error("{target}: {message}")]
    ConnectionFailed {
        /// Which target.
        target: String,
        /// What it said.
        message: String,
    },
    /// The connection broke, or a resource of the target ran out, outside a commit.
    #[error("{target}: {message}")]
    ConnectionLost {
        /// Which target.
        target: String,
        /// What it said.
        message: String,
    },
    /// Another session holds the lock that the claim or the commit needs.
    #[error(
        "{target} is locked by {holder}: end its transaction, or, if it is only slow, raise busyTimeout (SQLite) or \
         lockTimeout (PostgreSQL, MySQL)"
    )]
    Locked {
        /// Which target.
        target: String,
        /// Who holds it: process id and session, as far as the system tells.
        holder: String,
    },
    /// The claim failed.
    #[error("{target}: the claim failed: {message}")]
    TransactionInitFailed {
        /// Which target.
        target: String,
        /// What it said.
        message: String,
    },
    /// A move that the life cycle does not allow here (`TransactionBeginFailed` for a begin).
    #[error(transparent)]
    Illegal(#[from] IllegalMove),
    /// The commit was sent and no clear answer came.
    #[error("{target}: the outcome of the commit of epoch {epoch} is unknown: {message}")]
    CommitInDoubt {
        /// Which target.
        target: String,
        /// Which epoch.
        epoch: Epoch,
        /// What is known.
        message: String,
    },
    /// The target rolled the epoch back: nothing of it is visible.
    #[error("{target}: epoch {epoch} was rolled back: {message}")]
    TransactionCommitFailed {
        /// Which target.
        target: String,
        /// Which epoch.
        epoch: Epoch,
        /// What it said.
        message: String,
    },
    /// The staged events could not be forgotten cleanly; the next claim does it.
    #[error("{target}: abort failed: {message}")]
    TransactionAbortFailed {
        /// Which target.
        target: String,
        /// What it said.
        message: String,
    },
    /// A newer generation owns the delivery.
    #[error("another worker took this delivery over{}", by.as_ref().map(|s| format!(": {s}")).unwrap_or_default())]
    FencedOut {
        /// Our generation.
        ours: Generation,
        /// Who has it now, if it is known.
        by: Option<String>,
    },
    /// `onReject: stop` met a rejected input, or `maxRejects` was passed. Nothing of the epoch is visible.
    #[error("{}", reject_text(*stop, position, message))]
    Rejected {
        /// Which rule.
        stop: RejectStop,
        /// Where the input is that broke it.
        position: Position,
        /// Why the input was rejected.
        message: String,
    },
    /// The table changed so that the statements no longer fit it, and reading the schema again did not help.
    #[error("{target}: the table no longer fits: {message}")]
    SchemaEvolution {
        /// Which target.
        target: String,
        /// What does not fit.
        message: String,
    },
    /// The table got columns that the events were not decoded for. Nothing is visible; [`Target::fields`] tells the fields
    /// that it wants now.
    #[error("{target}: the table got columns after the events were read: read them again")]
    FieldsAdded {
        /// Which target.
        target: String,
    },
    /// The target is not fit for what the workflow asks of it.
    #[error("{target}: {message}")]
    Unfit {
        /// The code of the page that explains it.
        code: &'static str,
        /// Which target.
        target: String,
        /// What is wrong, and the cure.
        message: String,
    },
    /// The contract of stored progress differs from what is configured or found now.
    #[error("the contract of {id} has changed: {}", contract_text(id, differences))]
    ContractChanged {
        /// Which delivery.
        id: DeliveryId,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// Two different events of one epoch have one key, under a strategy that promises that none do.
    #[error(
        "the events at positions {first} and {second} are different and have one key {key}, though `unique: true` says \
         that the key fields name one event: name more keyFields, or, if a thing has several events, write onConflict: update \
         or newer"
    )]
    DedupKeyCollision {
        /// The earlier event.
        first: Position,
        /// The later event.
        second: Position,
        /// Their key.
        key: String,
    },
    /// After a restart the same inputs gave other keys than before.
    #[error(
        "the inputs up to {upto} gave other keys than the last time they were read: the source or the key strategy was \
         changed in between; change it back, or accept it with `hapax reset`"
    )]
    NonDeterministicKey {
        /// Where the digests were compared.
        upto: Position,
    },
    /// Our own tables are of a version that this program does not know, or are damaged.
    #[error("{target}: {message}")]
    OwnTables {
        /// Which target.
        target: String,
        /// What is wrong, and the cure.
        message: String,
    },
    /// The target's rights do not allow what is needed.
    #[error("{target}: {message}")]
    Denied {
        /// Which target.
        target: String,
        /// What was refused, and the cure.
        message: String,
    },
}

/// What differs, and what a person can do about it.
fn contract_text(id: &DeliveryId, differences: &[Difference]) -> String {
    let listed: Vec<String> = differences.iter().map(ToString::to_string).collect();
    let why = match differences.iter().find(|difference| difference.name == TARGET) {
        // These servers change many tables by a copy that takes the name.
        Some(target) if target.was.starts_with("mysql:") && target.is.starts_with("mysql:") => {
            " (the table was dropped, made anew, or is another one; an ALTER TABLE makes it anew too where the server changes it \
             by a copy, as MODIFY to another type does: docs/operations/schema-changes.md)"
        }
        Some(_) => " (the table was dropped, made anew, or is another one)",
        None => "",
    };
    format!(
        "{}{why}. Change it back, or, if that is meant, run `hapax reset {} --accept`, with `--to earliest` to deliver \
         everything again",
        listed.join("; "),
        id.workflow
    )
}

fn reject_text(stop: RejectStop, position: &Position, message: &str) -> String {
    match stop {
        RejectStop::First { .. } => {
            format!(
                "the input at position {position} was rejected and onReject is stop: {message}. Nothing of its epoch was \
                 written: mend the table, the input or `columns`, or write onReject: deadLetter"
            )
        }
        RejectStop::TooMany { dead, of, .. } => {
            format!(
                "{dead} of the last {of} inputs were rejected, more than maxRejects allows; the last, at position {position}: \
                 {message}. Nothing of this epoch was written: mend the table, the input or `columns`, or raise maxRejects"
            )
        }
    }
}

/// What the engine does about a sink's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Wait with backoff, claim again, commit the same buffer again.
    Retry,
    /// Reclaim and read progress: the sink is the authority.
    InDoubt,
    /// The lane is lost.
    Fenced,
    /// Stop the workflow with this exit code.
    Stop(u8),
}

impl SinkError {
    /// The only place where the reaction is decided; a new variant must choose.
    #[must_use]
    pub const fn reaction(&self) -> Reaction {
        match self {
            Self::ConnectionFailed { .. }
            | Self::ConnectionLost { .. }
            | Self::Locked { .. }
            | Self::TransactionInitFailed { .. }
            | Self::TransactionCommitFailed { .. }
            | Self::TransactionAbortFailed { .. }
            | Self::FieldsAdded { .. } => Reaction::Retry,
            Self::CommitInDoubt { .. } => Reaction::InDoubt,
            Self::FencedOut { .. } => Reaction::Fenced,
            Self::Illegal(_)
            | Self::Rejected { .. }
            | Self::SchemaEvolution { .. }
            | Self::Unfit { .. }
            | Self::DedupKeyCollision { .. }
            | Self::NonDeterministicKey { .. }
            | Self::OwnTables { .. }
            | Self::Denied { .. } => Reaction::Stop(1),
            Self::ContractChanged { .. } => Reaction::Stop(5),
        }
    }

    /// The code of the page that explains this error.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ConnectionFailed { .. } => "HX4001",
            Self::ConnectionLost { .. } => "HX4002",
            Self::Locked { .. } => "HX4003",
            Self::TransactionInitFailed { .. } => "HX4004",
            Self::Illegal(_) => "HX4005",
            Self::CommitInDoubt { .. } => "HX4006",
            Self::TransactionCommitFailed { .. } => "HX4007",
            Self::TransactionAbortFailed { .. } => "HX4008",
            Self::FencedOut { .. } => "HX4009",
            Self::Rejected { .. } => "HX4010",
            Self::SchemaEvolution { .. } | Self::FieldsAdded { .. } => "HX4011",
            Self::Unfit { code, .. } => code,
            Self::ContractChanged { .. } => "HX4012",
            Self::DedupKeyCollision { .. } => "HX4013",
            Self::NonDeterministicKey { .. } => "HX4014",
            Self::OwnTables { .. } => "HX4015",
            Self::Denied { .. } => "HX4016",
        }
    }
}
