//! When committed offsets may go.

use std::time::Duration;

use super::state::{Group, Phase};
use super::subscription::{CONSUMER, Subscribed};
use crate::model::Timestamp;

/// From when on the retention of a group's offsets counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expiry {
    /// From the day the group became empty, or from a later commit: a reset by hand must not be lost at once.
    Since(Timestamp),
    /// From each commit, in topics that nobody has subscribed to.
    SinceCommit(Subscribed),
    /// Not now.
    Never,
}

impl Expiry {
    /// Of offsets that belong to no group with members: consumers that only keep their offsets here.
    pub const STANDALONE: Self = Self::SinceCommit(Subscribed::NoTopics);

    /// Whether an offset has expired.
    pub fn is_over(&self, topic: &str, committed: Timestamp, retention: Duration, now: Timestamp) -> bool {
        let retention = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
        let is_old = |since: Timestamp| now.saturating_sub(since) >= retention;
        match self {
            Self::Since(since) => is_old(committed.max(*since)),
            Self::SinceCommit(subscribed) => !subscribed.covers(topic) && is_old(committed),
            Self::Never => false,
        }
    }
}

impl Group {
    /// When this group's offsets may go.
    pub fn expiry(&self) -> Expiry {
        if self.is_awaited() {
            return Expiry::Never;
        }
        match (&self.protocol_type, self.phase) {
            (None, _) => Expiry::STANDALONE,
            (Some(_), Phase::Empty) => Expiry::Since(self.since),
            (Some(kind), Phase::Stable) if &**kind == CONSUMER => match self.subscribed() {
                Subscribed::To(topics) => Expiry::SinceCommit(Subscribed::To(topics)),
                Subscribed::Unknown | Subscribed::NoTopics => Expiry::Never,
            },
            (Some(_), Phase::Stable | Phase::Preparing(_) | Phase::Completing) => Expiry::Never,
        }
    }
}
