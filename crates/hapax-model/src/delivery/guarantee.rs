//! The four guarantees and the four mechanisms, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// What a workflow promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Guarantee {
    /// An event may be lost; none arrives twice.
    AtMostOnce,
    /// No event is lost; one may arrive twice.
    AtLeastOnce,
    /// No event is lost; what arrives twice carries the same key, so that it has one effect.
    #[default]
    IdempotentKeys,
    /// No event is lost and none takes effect twice.
    ExactlyOnce,
}

impl Guarantee {
    /// All four, from the weakest to the strongest.
    pub const ALL: [Self; 4] = [Self::AtMostOnce, Self::AtLeastOnce, Self::IdempotentKeys, Self::ExactlyOnce];

    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtMostOnce => "at-most-once",
            Self::AtLeastOnce => "at-least-once",
            Self::IdempotentKeys => "idempotent-keys",
            Self::ExactlyOnce => "exactly-once",
        }
    }
}

/// How a promise is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// The source's position, of whatever source, is saved apart from the data; the spec's name for it.
    KafkaOffsets,
    /// Every event carries a key that a repetition carries too.
    GeneratedKeys,
    /// Data and position are one transaction of the target.
    Transaction,
    /// Events are stored in an outbox with their position, and sent from there.
    TransactionalOutbox,
}

impl Mechanism {
    /// All four.
    pub const ALL: [Self; 4] = [Self::KafkaOffsets, Self::GeneratedKeys, Self::Transaction, Self::TransactionalOutbox];

    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KafkaOffsets => "kafka-offsets",
            Self::GeneratedKeys => "generated-keys",
            Self::Transaction => "transaction",
            Self::TransactionalOutbox => "transactional-outbox",
        }
    }
}

/// A name that is not in the list it was looked up in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no {kind}; there are {}", .known.join(", "))]
pub struct UnknownName {
    /// What was written.
    pub text: String,
    /// What was expected, such as `guarantee`.
    pub kind: &'static str,
    /// The names there are.
    pub known: Vec<&'static str>,
}

/// Finds the value whose name is `text`.
pub(super) fn by_name<T: Copy>(
    kind: &'static str,
    all: &[T],
    name: fn(T) -> &'static str,
    text: &str,
) -> Result<T, UnknownName> {
    all.iter().copied().find(|value| name(*value) == text).ok_or_else(|| UnknownName {
        text: text.to_owned(),
        kind,
        known: all.iter().copied().map(name).collect(),
    })
}

impl FromStr for Guarantee {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        by_name("guarantee", &Self::ALL, Self::name, text)
    }
}

impl FromStr for Mechanism {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        by_name("mechanism", &Self::ALL, Self::name, text)
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Guarantee {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Mechanism {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every name reads back, and an unknown one is refused by its name, with the known ones.
    #[test]
    fn guarantees_and_mechanisms_are_read_by_name() {
        for guarantee in Guarantee::ALL {
            assert_eq!(guarantee.name().parse(), Ok(guarantee));
        }
        for mechanism in Mechanism::ALL {
            assert_eq!(mechanism.name().parse(), Ok(mechanism));
        }
        let error = "twice".parse::<Guarantee>().expect_err("unknown").to_string();
        let expected =
            "\"twice\" is no guarantee; there are at-most-once, at-least-once, idempotent-keys, exactly-once";
        assert_eq!(error, expected);
        assert!("Exactly-Once".parse::<Guarantee>().is_err());
        assert!("xa".parse::<Mechanism>().is_err());
    }
}
