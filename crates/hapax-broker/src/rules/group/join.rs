//! JoinGroup.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;

use super::event::{Join, JoinRefusal, Save, Step, Timer};
use super::state::{Group, Limits, Phase};
use super::subscription;
use crate::model::Timestamp;

/// From this version on a new member is sent back with an id, so that a lost answer leaves no member behind.
const ID_REQUIRED: i16 = 4;

/// From this version on a leader can be told that nothing is to be assigned.
const SKIPS_ASSIGNMENT: i16 = 9;

impl Group {
    /// Somebody joins, or joins again.
    pub fn join(&mut self, join: &Join, limits: &Limits, now: Timestamp) -> Step {
        let mut step = Step::default();
        let id = &join.identity.member;
        if join.session_timeout < limits.session_min || join.session_timeout > limits.session_max {
            step.join(join.ticket, Err(JoinRefusal::new(ResponseError::InvalidSessionTimeout, id)));
        } else if !self.has_room(id, limits) {
            self.turn_away(join, now, &mut step);
        } else if !self.accepts(&join.protocol_type, &join.protocols) {
            step.join(join.ticket, Err(JoinRefusal::new(ResponseError::InconsistentGroupProtocol, id)));
        } else if id.is_empty() {
            self.join_new(join, limits, now, &mut step);
        } else {
            self.join_again(join, limits, now, &mut step);
        }
        step
    }

    /// While members are called together, those who answered first are in; else those who are in stay in.
    fn has_room(&self, id: &Arc<str>, limits: &Limits) -> bool {
        match self.phase {
            Phase::Empty => !id.is_empty() || self.pending.len() < limits.pending_max,
            Phase::Preparing(_) => {
                let waits = self.members.get(id).is_some_and(|member| member.joining.is_some());
                waits || self.joining() < limits.members_max
            }
            Phase::Completing | Phase::Stable => {
                self.members.contains_key(id) || self.members.len() < limits.members_max
            }
        }
    }

    fn turn_away(&mut self, join: &Join, now: Timestamp, step: &mut Step) {
        self.expel(&join.identity.member, step);
        step.join(join.ticket, Err(JoinRefusal::new(ResponseError::GroupMaxSizeReached, &Arc::from(""))));
        self.finish_join_phase(now, step);
    }

    fn join_new(&mut self, join: &Join, limits: &Limits, now: Timestamp, step: &mut Step) {
        if let Some(instance) = &join.identity.instance {
            match self.instances.get(instance).cloned() {
                Some(old) => self.replace_static(join, &old, now, step),
                None => self.join_first(join, &join.new_id, limits, now, step),
            }
        } else if join.version >= ID_REQUIRED {
            self.give_id(join, limits, step);
        } else {
            self.join_first(join, &join.new_id, limits, now, step);
        }
    }

    fn give_id(&mut self, join: &Join, limits: &Limits, step: &mut Step) {
        if self.pending.len() >= limits.pending_max {
            step.join(join.ticket, Err(JoinRefusal::new(ResponseError::GroupMaxSizeReached, &Arc::from(""))));
            return;
        }
        self.pending.insert(Arc::clone(&join.new_id));
        step.set(Timer::Session(Arc::clone(&join.new_id)), join.session_timeout);
        step.join(join.ticket, Err(JoinRefusal::new(ResponseError::MemberIdRequired, &join.new_id)));
    }

    fn join_first(&mut self, join: &Join, id: &Arc<str>, limits: &Limits, now: Timestamp, step: &mut Step) {
        self.admit(Arc::clone(id), join, limits, step);
        self.rebalance(limits.initial_delay, now, step);
    }

    fn join_again(&mut self, join: &Join, limits: &Limits, now: Timestamp, step: &mut Step) {
        let id = &join.identity.member;
        // An id from the pending list never has a static name; one that claims to has invented it.
        if self.pending.contains(id) && join.identity.instance.is_none() {
            self.join_first(join, id, limits, now, step);
            return;
        }
        if let Err(error) = self.check_member(&join.identity) {
            step.join(join.ticket, Err(JoinRefusal::new(error, id)));
            return;
        }
        let unchanged = self.members.get(id).is_some_and(|member| member.protocols == join.protocols);
        let is_leader = self.leader.as_ref() == Some(id);
        match self.phase {
            Phase::Empty => step.join(join.ticket, Err(JoinRefusal::new(ResponseError::UnknownMemberId, id))),
            // It may have missed the answer: it gets it once more.
            Phase::Completing if unchanged => step.join(join.ticket, Ok(self.joined(id))),
            // A leader that joins again wants to assign anew, though nothing changed that we could see.
            Phase::Stable if unchanged && !is_leader => step.join(join.ticket, Ok(self.joined(id))),
            Phase::Preparing(_) | Phase::Completing | Phase::Stable => {
                self.renew(id, join, step);
                self.rebalance(limits.initial_delay, now, step);
            }
        }
    }

    /// A member waits for the next generation, with what it says now.
    fn renew(&mut self, id: &Arc<str>, join: &Join, step: &mut Step) {
        let Some(member) = self.members.get_mut(id) else { return };
        member.protocols = Arc::clone(&join.protocols);
        member.rebalance_timeout = join.rebalance_timeout;
        member.session_timeout = join.session_timeout;
        if let Some(superseded) = member.joining.replace(join.ticket) {
            step.join(superseded, Err(JoinRefusal::new(ResponseError::RebalanceInProgress, id)));
        }
    }

    /// A static member comes back without its id: it gets a new one, the old one is fenced, and nobody is disturbed unless
    /// its return changes what there is to share.
    fn replace_static(&mut self, join: &Join, old: &Arc<str>, now: Timestamp, step: &mut Step) {
        let id = &join.new_id;
        let leader_before = self.leader.clone().unwrap_or_else(|| Arc::from(""));
        let Some(before) = self.fence(old, step) else { return };
        let mut member = before.clone();
        member.id = Arc::clone(id);
        self.members.insert(Arc::clone(id), member);
        if let Some(instance) = &join.identity.instance {
            self.instances.insert(Arc::clone(instance), Arc::clone(id));
        }
        if self.leader.as_ref() == Some(old) {
            self.leader = Some(Arc::clone(id));
        }
        self.renew(id, join, step);
        step.set(Timer::Session(Arc::clone(id)), join.session_timeout);

        let same_protocol = self.elect_protocol() == self.protocol;
        let same_topics = subscription::is_same(self, &before.protocols, &join.protocols);
        match self.phase {
            Phase::Stable if same_protocol && same_topics => self.welcome_back(join, leader_before, step),
            // The leader already counts on the old id: its assignment would not reach the new one.
            Phase::Completing | Phase::Stable => self.prepare(now, step),
            Phase::Empty | Phase::Preparing(_) => self.finish_join_phase(now, step),
        }
    }

    /// Takes a member out and tells whoever waits as it that it is somebody else's place now.
    fn fence(&mut self, old: &Arc<str>, step: &mut Step) -> Option<super::Member> {
        let mut before = self.members.remove(old)?;
        self.unsynced.remove(old);
        step.stop(Timer::Session(Arc::clone(old)));
        if let Some(ticket) = before.joining.take() {
            step.join(ticket, Err(JoinRefusal::new(ResponseError::FencedInstanceId, old)));
        }
        if let Some(ticket) = before.syncing.take() {
            step.sync(ticket, Err(ResponseError::FencedInstanceId));
        }
        before.is_new = false;
        Some(before)
    }

    fn welcome_back(&mut self, join: &Join, leader_before: Arc<str>, step: &mut Step) {
        let id = &join.new_id;
        if let Some(member) = self.members.get_mut(id) {
            member.joining = None;
        }
        let mut joined = self.joined(id);
        if join.version >= SKIPS_ASSIGNMENT {
            joined.skip_assignment = self.leader.as_ref() == Some(id);
        } else {
            // An older leader would assign as if it were new; told of its former self, it follows.
            joined.leader = leader_before;
            joined.members = Vec::new();
        }
        step.save = Save::First;
        step.join(join.ticket, Ok(joined));
    }
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
