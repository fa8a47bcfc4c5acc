//! What the members of a group of consumers have subscribed to.

use std::collections::BTreeSet;

use bytes::{Buf, Bytes};

use super::member::Protocol;
use super::state::{Group, Phase};

/// The protocol type whose metadata we can read.
pub const CONSUMER: &str = "consumer";

/// What a group is subscribed to, as far as can be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subscribed {
    /// To these topics.
    To(BTreeSet<String>),
    /// It may be to any: consumers, but in a language that we do not read, or nothing is settled yet.
    Unknown,
    /// Not consumers: topics mean nothing to it.
    NoTopics,
}

impl Subscribed {
    /// Whether a topic's offsets are in use.
    pub fn covers(&self, topic: &str) -> bool {
        match self {
            Self::To(topics) => topics.contains(topic),
            Self::Unknown => true,
            Self::NoTopics => false,
        }
    }
}

impl Group {
    /// What its members have subscribed to.
    pub fn subscribed(&self) -> Subscribed {
        if self.protocol_type.as_deref() != Some(CONSUMER) {
            return Subscribed::NoTopics;
        }
        if self.phase == Phase::Empty || self.members.is_empty() {
            return Subscribed::To(BTreeSet::new());
        }
        let Some(protocol) = &self.protocol else { return Subscribed::Unknown };
        let mut all = BTreeSet::new();
        for member in self.members.values() {
            match topics(member.metadata(protocol)) {
                Some(topics) => all.extend(topics),
                None => return Subscribed::Unknown,
            }
        }
        Subscribed::To(all)
    }
}

/// Whether a consumer that comes back wants the same topics as before. What else it says (which partitions it had) is
/// new every time. Others than consumers we cannot judge, and leave in peace.
pub(super) fn is_same(group: &Group, before: &[Protocol], after: &[Protocol]) -> bool {
    if group.protocol_type.as_deref() != Some(CONSUMER) {
        return true;
    }
    let chosen = |protocols: &[Protocol]| {
        let protocol = protocols.iter().find(|protocol| Some(&protocol.name) == group.protocol.as_ref());
        protocol.and_then(|protocol| topics(protocol.metadata.clone()))
    };
    chosen(before) == chosen(after)
}

/// The topics of a subscription: a version, then an array of names, the same in all versions; what follows is not read.
fn topics(mut metadata: Bytes) -> Option<BTreeSet<String>> {
    let _version = metadata.try_get_i16().ok()?;
    let count = metadata.try_get_i32().ok()?;
    let mut topics = BTreeSet::new();
    for _ in 0..count.max(0) {
        let length = usize::try_from(metadata.try_get_i16().ok()?).ok()?;
        if metadata.len() < length {
            return None;
        }
        let name = metadata.split_to(length);
        topics.insert(std::str::from_utf8(&name).ok()?.to_owned());
    }
    Some(topics)
}
