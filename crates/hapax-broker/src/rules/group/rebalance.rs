//! From one generation to the next: members are called together, and the join phase ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::event::{Save, Step, Timer};
use super::state::{Group, InitialDelay, Phase};
use crate::model::Timestamp;

impl Group {
    /// Calls the members together, or, if that has begun already, looks whether all are there.
    pub(super) fn rebalance(&mut self, initial_delay: Duration, now: Timestamp, step: &mut Step) {
        match self.phase {
            Phase::Empty => self.prepare_first(initial_delay, now, step),
            Phase::Completing | Phase::Stable => self.prepare(now, step),
            Phase::Preparing(_) => self.finish_join_phase(now, step),
        }
    }

    fn prepare_first(&mut self, initial_delay: Duration, now: Timestamp, step: &mut Step) {
        let remaining = self.rebalance_timeout().saturating_sub(initial_delay);
        step.set(Timer::Join, initial_delay);
        self.turn(Phase::Preparing(Some(InitialDelay { running: initial_delay, remaining, grown: false })), now);
    }

    /// Calls the members of a group together that has, or had, some.
    pub(super) fn prepare(&mut self, now: Timestamp, step: &mut Step) {
        if self.phase == Phase::Completing {
            self.void_assignments(step);
        }
        self.unsynced.clear();
        step.stop(Timer::Sync);
        self.turn(Phase::Preparing(None), now);
        if self.all_have_joined() {
            self.begin_generation(now, step);
        } else {
            step.set(Timer::Join, self.rebalance_timeout());
        }
    }

    fn void_assignments(&mut self, step: &mut Step) {
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
            if let Some(ticket) = member.syncing.take() {
                step.sync(ticket, Err(ResponseError::RebalanceInProgress));
                step.set(Timer::Session(Arc::clone(&member.id)), member.session_timeout);
            }
        }
    }

    /// Ends the join phase if all are there. The first one of a group runs its time.
    pub(super) fn finish_join_phase(&mut self, now: Timestamp, step: &mut Step) {
        if self.phase == Phase::Preparing(None) && self.all_have_joined() {
            self.begin_generation(now, step);
        }
    }

    /// The time to join is over.
    pub fn join_time_over(&mut self, initial_delay: Duration, now: Timestamp) -> Step {
        let mut step = Step::default();
        match self.phase {
            Phase::Preparing(Some(delay)) if delay.grown && !delay.remaining.is_zero() => {
                let running = initial_delay.min(delay.remaining);
                let remaining = delay.remaining.saturating_sub(running);
                self.phase = Phase::Preparing(Some(InitialDelay { running, remaining, grown: false }));
                step.set(Timer::Join, running);
            }
            Phase::Preparing(_) => self.begin_generation(now, &mut step),
            Phase::Empty | Phase::Completing | Phase::Stable => {}
        }
        step
    }

    /// The next generation: of those who joined, and of static members, who may be away for a while.
    pub(super) fn begin_generation(&mut self, now: Timestamp, step: &mut Step) {
        let absent: Vec<Arc<str>> = self
            .members
            .values()
            .filter(|m| m.joining.is_none() && m.instance.is_none())
            .map(|m| Arc::clone(&m.id))
            .collect();
        for id in &absent {
            self.expel(id, step);
        }
        if !self.members.is_empty() && !self.elect_leader() {
            // Only static members are left, and none of them is here: their sessions decide.
            step.set(Timer::Join, self.rebalance_timeout());
            return;
        }
        step.stop(Timer::Join);
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.unsynced.clear();
        step.save = Save::First;
        if self.members.is_empty() {
            self.protocol = None;
            self.leader = None;
            self.turn(Phase::Empty, now);
        } else {
            self.protocol = self.elect_protocol();
            self.turn(Phase::Completing, now);
            self.answer_joined(step);
            step.set(Timer::Sync, self.rebalance_timeout());
        }
    }

    /// The leader must be there: else the first who is becomes leader. False: nobody is.
    fn elect_leader(&mut self) -> bool {
        let leader = self.leader.as_ref().and_then(|leader| self.members.get(leader));
        if leader.is_some_and(|leader| leader.joining.is_some()) {
            return true;
        }
        let present = self.members.values().find(|member| member.joining.is_some());
        let Some(present) = present else { return false };
        self.leader = Some(Arc::clone(&present.id));
        true
    }

    fn answer_joined(&mut self, step: &mut Step) {
        let ids: Vec<Arc<str>> = self.members.keys().cloned().collect();
        for id in ids {
            let Some(member) = self.members.get_mut(&id) else { continue };
            member.is_new = false;
            let session = member.session_timeout;
            if let Some(ticket) = member.joining.take() {
                step.join(ticket, Ok(self.joined(&id)));
            }
            step.set(Timer::Session(Arc::clone(&id)), session);
            self.unsynced.insert(id);
        }
    }
}

#[cfg(test)]
#[path = "rebalance_tests.rs"]
mod tests;
