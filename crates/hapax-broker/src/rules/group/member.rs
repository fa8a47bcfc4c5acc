//! One member of a group.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::event::{Join, Ticket};

/// A way of sharing the work that a member knows, with what it says under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// Its name: "range", "cooperative-sticky", …
    pub name: Arc<str>,
    /// Opaque to us, but for subscriptions of consumers.
    pub metadata: Bytes,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: Arc<str>,
    /// Its static name, if it has one.
    pub instance: Option<Arc<str>>,
    /// What the client calls itself.
    pub client_id: Arc<str>,
    /// Where it is.
    pub client_host: Arc<str>,
    /// Silence that removes it.
    pub session_timeout: Duration,
    /// How long a rebalance may wait for it.
    pub rebalance_timeout: Duration,
    /// What it can do, its favourite first.
    pub protocols: Arc<[Protocol]>,
    /// What the leader gave it.
    pub assignment: Bytes,
    /// Its JoinGroup that waits.
    pub(super) joining: Option<Ticket>,
    /// Its SyncGroup that waits.
    pub(super) syncing: Option<Ticket>,
    /// Its first join is not yet answered: waiting does not keep it alive.
    pub(super) is_new: bool,
}

impl Member {
    /// A new member, whose join waits.
    pub(super) fn new(id: Arc<str>, join: &Join) -> Self {
        Self {
            id,
            instance: join.identity.instance.clone(),
            client_id: Arc::clone(&join.client_id),
            client_host: Arc::clone(&join.client_host),
            session_timeout: join.session_timeout,
            rebalance_timeout: join.rebalance_timeout,
            protocols: Arc::clone(&join.protocols),
            assignment: Bytes::new(),
            joining: Some(join.ticket),
            syncing: None,
            is_new: true,
        }
    }

    /// Whether it knows a protocol of that name.
    pub fn supports(&self, name: &str) -> bool {
        self.protocols.iter().any(|protocol| &*protocol.name == name)
    }

    /// What it says under a protocol; empty if it does not know it.
    pub fn metadata(&self, name: &str) -> Bytes {
        let found = self.protocols.iter().find(|protocol| &*protocol.name == name);
        found.map(|protocol| protocol.metadata.clone()).unwrap_or_default()
    }

    /// Whether its silence is our doing: it waits for an answer, and has had one before.
    pub(super) fn is_waiting(&self) -> bool {
        !self.is_new && (self.joining.is_some() || self.syncing.is_some())
    }
}
