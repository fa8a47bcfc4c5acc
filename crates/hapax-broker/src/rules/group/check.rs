//! What may be done to a group as it is: heartbeats, offsets, deletion.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::error::ResponseError;

use super::event::Identity;
use super::state::{Group, Phase};
use super::subscription::CONSUMER;

impl Group {
    /// A heartbeat. The session that it keeps alive, and for how long; and what the member is told.
    pub fn heartbeat(&self, identity: &Identity, generation: i32) -> (Option<Duration>, Result<(), ResponseError>) {
        if let Err(error) = self.check_member(identity) {
            return (None, Err(error));
        }
        if generation != self.generation {
            return (None, Err(ResponseError::IllegalGeneration));
        }
        match self.phase {
            Phase::Empty => (None, Err(ResponseError::UnknownMemberId)),
            Phase::Preparing(_) => (self.session(&identity.member), Err(ResponseError::RebalanceInProgress)),
            Phase::Completing | Phase::Stable => (self.session(&identity.member), Ok(())),
        }
    }

    fn session(&self, id: &Arc<str>) -> Option<Duration> {
        self.members.get(id).map(|member| member.session_timeout)
    }

    /// Whether offsets may be committed; if so, the session that this keeps alive.
    pub fn check_commit(&self, identity: &Identity, generation: i32) -> Result<Option<Duration>, ResponseError> {
        if generation < 0 && self.phase == Phase::Empty {
            return Ok(None);
        }
        if generation < 0 && identity.member.is_empty() && identity.instance.is_none() {
            return Err(ResponseError::UnknownMemberId);
        }
        self.check_member(identity)?;
        if generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        match self.phase {
            Phase::Completing => Err(ResponseError::RebalanceInProgress),
            Phase::Empty => Ok(None),
            Phase::Preparing(_) | Phase::Stable => Ok(self.session(&identity.member)),
        }
    }

    /// Whether single offsets may be deleted at all; topics are asked for one by one.
    pub fn check_offset_delete(&self) -> Result<(), ResponseError> {
        let of_consumers = self.protocol_type.as_deref() == Some(CONSUMER);
        if self.phase == Phase::Empty || of_consumers { Ok(()) } else { Err(ResponseError::NonEmptyGroup) }
    }

    /// Whether the group may be deleted with all its offsets.
    pub fn check_delete(&self) -> Result<(), ResponseError> {
        if self.phase == Phase::Empty { Ok(()) } else { Err(ResponseError::NonEmptyGroup) }
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
