//! The `delivery:` block of a workflow, typed: what is promised, how it is kept, what others have said they do.
//!
//! Reads: nothing; the configuration reader fills a [`DeliveryOverride`] from the file. Writes: nothing.
//! Invariant: a [`Delivery`] has a value for everything; what was not written has the default of [`Delivery::default`].
//! Not here: whether the promise can be kept (`audit`), how keys are made (`key`).

mod bounds;
mod guarantee;
mod overrides;
mod retries;
mod strategy;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use bounds::DeliveryProblem;
pub use guarantee::{Guarantee, Mechanism, UnknownName};
pub use overrides::{
    DeduplicationOverride, DeliveryOverride, DocumentationOverride, EpochBoundsOverride, IdempotencyKeyOverride,
    ReadersOverride, ReceiverOverride, RetriesOverride, WriterOverride,
};
pub use retries::Retries;
pub use strategy::{HashAlgorithm, KeyTemplate, NoStrategy, NoTemplate, StrategyName};

use crate::field::FieldPath;
use crate::rejects::OnReject;
use crate::units::ByteSize;

/// All that a workflow says about its delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// `guarantee`.
    pub guarantee: Guarantee,
    /// `mechanism`; derived where it is not written.
    pub mechanism: Option<Mechanism>,
    /// `deduplication`.
    pub deduplication: Deduplication,
    /// `idempotencyKey`.
    pub idempotency_key: IdempotencyKeyFormat,
    /// `retries`.
    pub retries: Retries,
    /// `epoch`.
    pub epoch: EpochBounds,
    /// `onReject`.
    pub on_reject: OnReject,
    /// `maxRejects`, in parts per thousand of the last inputs.
    pub max_rejects_per_mille: u32,
    /// `claimTimeout`: how long a claim waits before it ends the sessions that block it.
    pub claim_timeout: Duration,
    /// `lease`: after how long without a heartbeat another worker takes over.
    pub lease: Duration,
    /// `progressInterval`: how often the position is saved where progress is kept in the state store.
    pub progress_interval: Duration,
    /// `receiver`: what the receiver does with our keys, as the workflow states it.
    pub receiver: Receiver,
    /// `readers`: how the target's readers read, as the workflow states it.
    pub readers: Readers,
    /// `writer`: how the application writes its outbox, as the workflow states it.
    pub writer: Writer,
    /// `conditions`: what else the workflow states.
    pub conditions: Vec<ConditionName>,
    /// `clientGuidance`: whether the text for clients is asked for.
    pub client_guidance: bool,
    /// `documentation`.
    pub documentation: Documentation,
    /// `autoFenceOnStartup`, if it was written: read, and without effect, because fencing cannot be switched off.
    pub auto_fence_on_startup: Option<bool>,
}

impl Default for Delivery {
    fn default() -> Self {
        Self {
            guarantee: Guarantee::IdempotentKeys,
            mechanism: None,
            deduplication: Deduplication::default(),
            idempotency_key: IdempotencyKeyFormat::default(),
            retries: Retries::default(),
            epoch: EpochBounds::default(),
            on_reject: OnReject::DeadLetter,
            max_rejects_per_mille: 100,
            claim_timeout: Duration::from_secs(10),
            lease: Duration::from_secs(5),
            progress_interval: Duration::from_secs(1),
            receiver: Receiver::default(),
            readers: Readers::default(),
            writer: Writer::default(),
            conditions: Vec::new(),
            client_guidance: false,
            documentation: Documentation::default(),
            auto_fence_on_startup: None,
        }
    }
}

impl Delivery {
    /// Whether the workflow states `condition`.
    #[must_use]
    pub fn states(&self, condition: ConditionName) -> bool {
        self.conditions.contains(&condition)
    }
}

/// `deduplication:`: what names an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deduplication {
    /// `keyFields`: the fields that name the thing; empty means that none were written.
    pub key_fields: Vec<FieldPath>,
    /// `ttl`: how long *we* remember keys (inbox, dedup set); not the receiver's `keyTtl`.
    pub ttl: Option<Duration>,
    /// `unique`: the fields alone name the event, no version is needed.
    pub unique: bool,
    /// `strategy`; derived from the source and `keyFields` where it is not written.
    pub strategy: Option<StrategyName>,
}

/// `idempotencyKey:`: what the key is made of and how it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKeyFormat {
    /// `format`: which parts the key of a changed row has.
    pub format: KeyTemplate,
    /// `hashAlgorithm`.
    pub hash_algorithm: HashAlgorithm,
    /// `includedInPayload`: the key is in the message itself, not in a header alone.
    pub included_in_payload: bool,
}

impl Default for IdempotencyKeyFormat {
    fn default() -> Self {
        Self { format: KeyTemplate::change_key(), hash_algorithm: HashAlgorithm::Sha256, included_in_payload: true }
    }
}

/// `epoch:`: when an epoch is closed, and how long its end may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochBounds {
    /// `interval`: an epoch is closed this long after its first input.
    pub interval: Duration,
    /// `maxEvents`: … or when it holds this many.
    pub max_events: u64,
    /// `maxBytes`: … or when they are this large.
    pub max_bytes: ByteSize,
    /// `commitTimeout`: after this a commit is in doubt.
    pub commit_timeout: Duration,
    /// `abortTimeout`: after this an abort is given up, and the next claim of the delivery does it.
    pub abort_timeout: Duration,
}

impl Default for EpochBounds {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(200),
            max_events: 100_000,
            max_bytes: ByteSize::mebibytes(64),
            commit_timeout: Duration::from_secs(30),
            abort_timeout: Duration::from_secs(10),
        }
    }
}

/// `receiver:`: stated about the other side of an HTTP call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receiver {
    /// `deduplicates`: it remembers keys and does nothing twice.
    pub deduplicates: bool,
    /// `keyTtl`: for how long it remembers them.
    pub key_ttl: Option<Duration>,
    /// `refusesOlder`: it refuses a version older than the one it has.
    pub refuses_older: bool,
}

/// `readers:`: stated about those who read a Kafka target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readers {
    /// `isolation`.
    pub isolation: Option<Isolation>,
}

/// What a Kafka reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Only records of committed transactions.
    ReadCommitted,
    /// All records, those of aborted transactions too.
    ReadUncommitted,
}

impl Isolation {
    /// The name in the configuration, which is Kafka's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read_committed",
            Self::ReadUncommitted => "read_uncommitted",
        }
    }
}

impl FromStr for Isolation {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        guarantee::by_name("isolation", &[Self::ReadCommitted, Self::ReadUncommitted], Self::name, text)
    }
}

/// `writer:`: stated about the application that fills an outbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Writer {
    /// `serialisesKeys`: it writes the events of one key one after the other.
    pub serialises_keys: bool,
}

/// A condition that only a person can state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionName {
    /// There is never more than one live worker.
    OneWorker,
    /// The target's storage engine keeps what it acknowledged when its server crashes.
    EngineSurvivesCrash,
    /// The custom key function gives the same key for the same event, always.
    CustomKeyDeterministic,
}

impl ConditionName {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OneWorker, Self::EngineSurvivesCrash, Self::CustomKeyDeterministic];

    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneWorker => "one-worker",
            Self::EngineSurvivesCrash => "engine-survives-crash",
            Self::CustomKeyDeterministic => "custom-key-deterministic",
        }
    }
}

impl FromStr for ConditionName {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        guarantee::by_name("condition", &Self::ALL, Self::name, text)
    }
}

impl fmt::Display for ConditionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `documentation:`: what the text for clients mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documentation {
    /// `deduplicationRequired`: clients are told to look at the key.
    pub deduplication_required: bool,
    /// `sdkAvailable`: clients are told of the library.
    pub sdk_available: bool,
    /// `exampleCode`: where clients find an example.
    pub example_code: Option<String>,
}

impl Default for Documentation {
    fn default() -> Self {
        Self { deduplication_required: true, sdk_available: true, example_code: None }
    }
}
