//! SyncGroup.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::event::{Save, Step, Sync, SyncAnswer, Synced, Timer};
use super::state::{Group, Phase};
use crate::model::Timestamp;

impl Group {
    /// A member asks for its assignment; the leader brings all of them.
    pub fn sync(&mut self, sync: &Sync, now: Timestamp) -> Step {
        let mut step = Step::default();
        if let Err(error) = self.check_sync(sync) {
            step.sync(sync.ticket, Err(error));
            return step;
        }
        self.unsynced.remove(&sync.identity.member);
        if self.unsynced.is_empty() {
            step.stop(Timer::Sync);
        }
        if self.phase == Phase::Stable {
            step.sync(sync.ticket, self.synced(&sync.identity.member));
            return step;
        }
        if let Some(member) = self.members.get_mut(&sync.identity.member)
            && let Some(superseded) = member.syncing.replace(sync.ticket)
        {
            step.sync(superseded, Err(ResponseError::RebalanceInProgress));
        }
        if self.leader.as_ref() == Some(&sync.identity.member) {
            self.assign(&sync.assignments, now, &mut step);
        }
        step
    }

    fn check_sync(&self, sync: &Sync) -> Result<(), ResponseError> {
        let differs = |said: &Option<Arc<str>>, ours: &Option<Arc<str>>| {
            said.as_ref().zip(ours.as_ref()).is_some_and(|(said, ours)| said != ours)
        };
        self.check_member(&sync.identity)?;
        if sync.generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        if differs(&sync.protocol_type, &self.protocol_type) || differs(&sync.protocol, &self.protocol) {
            return Err(ResponseError::InconsistentGroupProtocol);
        }
        match self.phase {
            Phase::Empty => Err(ResponseError::UnknownMemberId),
            Phase::Preparing(_) => Err(ResponseError::RebalanceInProgress),
            Phase::Completing | Phase::Stable => Ok(()),
        }
    }

    /// The rebalance is complete: everyone who waits gets what the leader gave it, or nothing, but an answer.
    fn assign(&mut self, assignments: &[(Arc<str>, Bytes)], now: Timestamp, step: &mut Step) {
        let mut given: BTreeMap<&str, &Bytes> = assignments.iter().map(|(id, bytes)| (&**id, bytes)).collect();
        for member in self.members.values_mut() {
            member.assignment = given.remove(&*member.id).cloned().unwrap_or_default();
        }
        self.turn(Phase::Stable, now);
        step.save = Save::First;
        let ids: Vec<Arc<str>> = self.members.keys().cloned().collect();
        for id in ids {
            let waiting = self.members.get_mut(&id).and_then(|member| member.syncing.take());
            let Some(ticket) = waiting else { continue };
            step.sync(ticket, self.synced(&id));
            // Its session was not counted while it waited.
            if let Some(member) = self.members.get(&id) {
                step.set(Timer::Session(Arc::clone(&id)), member.session_timeout);
            }
        }
    }

    fn synced(&self, id: &Arc<str>) -> SyncAnswer {
        let member = self.members.get(id).ok_or(ResponseError::UnknownMemberId)?;
        Ok(Synced {
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: member.assignment.clone(),
        })
    }

    /// The time to sync is over: who has not synced is removed, and the others share anew.
    pub fn sync_time_over(&mut self, now: Timestamp) -> Step {
        let mut step = Step::default();
        let rebalanced = matches!(self.phase, Phase::Completing | Phase::Stable);
        if !rebalanced || self.unsynced.is_empty() {
            return step;
        }
        let late: Vec<Arc<str>> = self.unsynced.iter().cloned().collect();
        for id in &late {
            self.expel(id, &mut step);
        }
        self.prepare(now, &mut step);
        step
    }
}

#[cfg(test)]
#[path = "sync_tests.rs"]
mod tests;
