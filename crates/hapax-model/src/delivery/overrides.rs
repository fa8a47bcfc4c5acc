//! A `delivery:` block as written: every field may be missing.
//!
//! Two of them, the file's default and the workflow's own, and the defaults of [`Delivery`] make one [`Delivery`].
//! Invariant: what the workflow writes wins over what the file writes, and that over the default, field by field.

use std::time::Duration;

use super::*;
use crate::units::Share;

/// `delivery:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryOverride {
    /// `guarantee`.
    pub guarantee: Option<Guarantee>,
    /// `mechanism`.
    pub mechanism: Option<Mechanism>,
    /// `deduplication`.
    pub deduplication: DeduplicationOverride,
    /// `idempotencyKey`.
    pub idempotency_key: IdempotencyKeyOverride,
    /// `retries`.
    pub retries: RetriesOverride,
    /// `epoch`.
    pub epoch: EpochBoundsOverride,
    /// `onReject`.
    pub on_reject: Option<OnReject>,
    /// `maxRejects`.
    pub max_rejects: Option<Share>,
    /// `claimTimeout`.
    pub claim_timeout: Option<Duration>,
    /// `lease`.
    pub lease: Option<Duration>,
    /// `progressInterval`.
    pub progress_interval: Option<Duration>,
    /// `receiver`.
    pub receiver: ReceiverOverride,
    /// `readers`.
    pub readers: ReadersOverride,
    /// `writer`.
    pub writer: WriterOverride,
    /// `conditions`; a workflow's list replaces the file's.
    pub conditions: Option<Vec<ConditionName>>,
    /// `clientGuidance`.
    pub client_guidance: Option<bool>,
    /// `documentation`.
    pub documentation: DocumentationOverride,
    /// `autoFenceOnStartup`.
    pub auto_fence_on_startup: Option<bool>,
}

/// `deduplication:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeduplicationOverride {
    /// `keyFields`; a workflow's list replaces the file's.
    pub key_fields: Option<Vec<FieldPath>>,
    /// `ttl`.
    pub ttl: Option<Duration>,
    /// `unique`.
    pub unique: Option<bool>,
    /// `strategy`.
    pub strategy: Option<StrategyName>,
}

/// `idempotencyKey:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdempotencyKeyOverride {
    /// `format`.
    pub format: Option<KeyTemplate>,
    /// `hashAlgorithm`.
    pub hash_algorithm: Option<HashAlgorithm>,
    /// `includedInPayload`.
    pub included_in_payload: Option<bool>,
}

/// `retries:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetriesOverride {
    /// `enabled`.
    pub enabled: Option<bool>,
    /// `maxAttempts`.
    pub max_attempts: Option<u32>,
    /// `backoffMs`.
    pub backoff: Option<Vec<Duration>>,
    /// `giveUpAfter`.
    pub give_up_after: Option<Duration>,
}

/// `epoch:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EpochBoundsOverride {
    /// `interval`.
    pub interval: Option<Duration>,
    /// `maxEvents`.
    pub max_events: Option<u64>,
    /// `maxBytes`.
    pub max_bytes: Option<ByteSize>,
    /// `commitTimeout`.
    pub commit_timeout: Option<Duration>,
    /// `abortTimeout`.
    pub abort_timeout: Option<Duration>,
}

/// `receiver:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceiverOverride {
    /// `deduplicates`.
    pub deduplicates: Option<bool>,
    /// `keyTtl`.
    pub key_ttl: Option<Duration>,
    /// `refusesOlder`.
    pub refuses_older: Option<bool>,
}

/// `readers:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadersOverride {
    /// `isolation`.
    pub isolation: Option<Isolation>,
}

/// `writer:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriterOverride {
    /// `serialisesKeys`.
    pub serialises_keys: Option<bool>,
}

/// `documentation:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentationOverride {
    /// `deduplicationRequired`.
    pub deduplication_required: Option<bool>,
    /// `sdkAvailable`.
    pub sdk_available: Option<bool>,
    /// `exampleCode`.
    pub example_code: Option<String>,
}

/// Lays `$own` over `$under`, where both may be missing, field by field.
macro_rules! lay {
    ($own:expr, $under:expr => $($field:ident),+) => { Self { $($field: $own.$field.or($under.$field)),+ } };
}

/// Puts what was written into `$target`, which holds the defaults.
macro_rules! put {
    ($written:expr => $target:expr; $($field:ident),+) => { $(if let Some(value) = $written.$field { $target.$field = value; })+ };
}

impl DeliveryOverride {
    /// This block laid over `under`: what is missing here is taken from there.
    ///
    /// A mechanism belongs to the guarantee it was written for: where this block names another guarantee and no
    /// mechanism, `under`'s mechanism is left out and the audit derives one.
    #[must_use]
    pub fn over(self, under: Self) -> Self {
        let same_promise = self.guarantee.is_none() || self.guarantee == under.guarantee;
        Self {
            guarantee: self.guarantee.or(under.guarantee),
            mechanism: self.mechanism.or(under.mechanism.filter(|_| same_promise)),
            deduplication: self.deduplication.over(under.deduplication),
            idempotency_key: self.idempotency_key.over(under.idempotency_key),
            retries: self.retries.over(under.retries),
            epoch: self.epoch.over(under.epoch),
            on_reject: self.on_reject.or(under.on_reject),
            max_rejects: self.max_rejects.or(under.max_rejects),
            claim_timeout: self.claim_timeout.or(under.claim_timeout),
            lease: self.lease.or(under.lease),
            progress_interval: self.progress_interval.or(under.progress_interval),
            receiver: self.receiver.over(under.receiver),
            readers: ReadersOverride { isolation: self.readers.isolation.or(under.readers.isolation) },
            writer: WriterOverride { serialises_keys: self.writer.serialises_keys.or(under.writer.serialises_keys) },
            conditions: self.conditions.or(under.conditions),
            client_guidance: self.client_guidance.or(under.client_guidance),
            documentation: self.documentation.over(under.documentation),
            auto_fence_on_startup: self.auto_fence_on_startup.or(under.auto_fence_on_startup),
        }
    }
}

impl DeduplicationOverride {
    fn over(self, under: Self) -> Self {
        lay!(self, under => key_fields, ttl, unique, strategy)
    }
}

impl IdempotencyKeyOverride {
    fn over(self, under: Self) -> Self {
        lay!(self, under => format, hash_algorithm, included_in_payload)
    }
}

impl RetriesOverride {
    fn over(self, under: Self) -> Self {
        lay!(self, under => enabled, max_attempts, backoff, give_up_after)
    }
}

impl EpochBoundsOverride {
    fn over(self, under: Self) -> Self {
        lay!(self, under => interval, max_events, max_bytes, commit_timeout, abort_timeout)
    }
}

impl ReceiverOverride {
    fn over(self, under: Self) -> Self {
        lay!(self, under => deduplicates, key_ttl, refuses_older)
    }
}

impl DocumentationOverride {
    fn over(self, under: Self) -> Self {
        lay!(self, under => deduplication_required, sdk_available, example_code)
    }
}

impl Delivery {
    /// A workflow's delivery: its own block over the file's `defaults` over [`Delivery::default`].
    #[must_use]
    pub fn merged(defaults: &DeliveryOverride, own: &DeliveryOverride) -> Self {
        Self::from(own.clone().over(defaults.clone()))
    }
}

impl From<DeliveryOverride> for Delivery {
    /// What was written, over the defaults.
    fn from(written: DeliveryOverride) -> Self {
        let mut delivery = Self::default();
        put!(written => delivery; guarantee, on_reject, claim_timeout, lease, progress_interval, conditions, client_guidance);
        delivery.mechanism = written.mechanism;
        delivery.auto_fence_on_startup = written.auto_fence_on_startup;
        if let Some(share) = written.max_rejects {
            delivery.max_rejects_per_mille = share.per_mille();
        }
        put!(written.deduplication => delivery.deduplication; key_fields, unique);
        delivery.deduplication.ttl = written.deduplication.ttl;
        delivery.deduplication.strategy = written.deduplication.strategy;
        put!(written.idempotency_key => delivery.idempotency_key; format, hash_algorithm, included_in_payload);
        put!(written.retries => delivery.retries; enabled, max_attempts, backoff, give_up_after);
        put!(written.epoch => delivery.epoch; interval, max_events, max_bytes, commit_timeout, abort_timeout);
        put!(written.receiver => delivery.receiver; deduplicates, refuses_older);
        delivery.receiver.key_ttl = written.receiver.key_ttl;
        delivery.readers.isolation = written.readers.isolation;
        put!(written.writer => delivery.writer; serialises_keys);
        put!(written.documentation => delivery.documentation; deduplication_required, sdk_available);
        delivery.documentation.example_code = written.documentation.example_code;
        delivery
    }
}

#[cfg(test)]
#[path = "overrides_tests.rs"]
mod tests;
