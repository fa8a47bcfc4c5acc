//! Which mechanism keeps which guarantee, and where.

use super::facts::{Addressees, SinkFacts, SourceKind};
use super::refusal::Refusal;
use crate::delivery::{Guarantee, Mechanism};

/// Whether `mechanism` may be named with `guarantee` at all.
#[must_use]
pub const fn is_legal(mechanism: Mechanism, guarantee: Guarantee) -> bool {
    match mechanism {
        Mechanism::Transaction => true,
        Mechanism::KafkaOffsets => matches!(guarantee, Guarantee::AtMostOnce | Guarantee::AtLeastOnce),
        Mechanism::GeneratedKeys => matches!(guarantee, Guarantee::IdempotentKeys),
        Mechanism::TransactionalOutbox => !matches!(guarantee, Guarantee::AtMostOnce),
    }
}

/// The mechanism that keeps `guarantee` into `sink` where none is written.
#[must_use]
pub const fn derive(guarantee: Guarantee, sink: &SinkFacts) -> Mechanism {
    let atomic = sink.is_atomic();
    match (guarantee, sink) {
        (Guarantee::AtMostOnce, SinkFacts::Http { .. }) => Mechanism::KafkaOffsets,
        (_, SinkFacts::Http { addressees: Addressees::Endpoints, .. })
        | (Guarantee::ExactlyOnce, SinkFacts::Http { .. }) => Mechanism::TransactionalOutbox,
        (Guarantee::IdempotentKeys, _) => Mechanism::GeneratedKeys,
        (Guarantee::ExactlyOnce, _) => Mechanism::Transaction,
        (Guarantee::AtMostOnce | Guarantee::AtLeastOnce, _) if atomic => Mechanism::Transaction,
        (Guarantee::AtMostOnce | Guarantee::AtLeastOnce, _) => Mechanism::KafkaOffsets,
    }
}

/// Why a written `mechanism` cannot keep `guarantee` into `sink`, if it cannot.
pub(super) const fn refuse(mechanism: Mechanism, guarantee: Guarantee, sink: &SinkFacts) -> Option<Refusal> {
    if !is_legal(mechanism, guarantee) {
        return Some(Refusal::MechanismForOthers(mechanism, guarantee));
    }
    match (mechanism, sink) {
        (Mechanism::Transaction, _) if !sink.is_atomic() => Some(Refusal::TransactionImpossible),
        (Mechanism::KafkaOffsets, _) if sink.is_atomic() => Some(Refusal::PositionIsInSink),
        // At most once into endpoints is refused for a reason of its own, whatever the mechanism.
        (Mechanism::KafkaOffsets | Mechanism::GeneratedKeys, SinkFacts::Http { addressees, .. })
            if matches!(addressees, Addressees::Endpoints) && !matches!(guarantee, Guarantee::AtMostOnce) =>
        {
            Some(Refusal::EndpointsNeedOutbox(mechanism))
        }
        (
            Mechanism::Transaction
            | Mechanism::KafkaOffsets
            | Mechanism::GeneratedKeys
            | Mechanism::TransactionalOutbox,
            _,
        ) => None,
    }
}

/// Whether a written outbox has nothing to do: the target holds our position itself, and no outbox is read.
pub(super) const fn outbox_is_idle(mechanism: Mechanism, source: SourceKind, sink: &SinkFacts) -> bool {
    matches!(mechanism, Mechanism::TransactionalOutbox)
        && !matches!(source, SourceKind::Outbox)
        && !matches!(sink, SinkFacts::Http { .. })
}
