//! LeaveGroup, and sessions that run out.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;

use super::event::{Leaving, Step};
use super::state::{Group, Phase};
use crate::model::Timestamp;

impl Group {
    /// Members leave, or are made to by an administrator. One answer per name on the list, in its order.
    pub fn leave(&mut self, leaving: &[Leaving], now: Timestamp) -> (Step, Vec<Result<(), ResponseError>>) {
        let mut step = Step::default();
        let answers: Vec<_> = leaving.iter().map(|leaving| self.leave_one(leaving, &mut step)).collect();
        if answers.iter().any(Result::is_ok) {
            match self.phase {
                Phase::Completing | Phase::Stable => self.prepare(now, &mut step),
                Phase::Preparing(_) => self.finish_join_phase(now, &mut step),
                Phase::Empty => {}
            }
        }
        (step, answers)
    }

    fn leave_one(&mut self, leaving: &Leaving, step: &mut Step) -> Result<(), ResponseError> {
        let identity = &leaving.identity;
        if identity.member.is_empty() {
            let owner = identity.instance.as_ref().and_then(|instance| self.instances.get(instance)).cloned();
            let owner = owner.ok_or(ResponseError::UnknownMemberId)?;
            self.expel(&owner, step);
        } else {
            if !self.pending.contains(&identity.member) {
                self.check_member(identity)?;
            }
            self.expel(&identity.member, step);
        }
        Ok(())
    }

    /// A session is over, or an id that was given out did not come back.
    pub fn session_over(&mut self, id: &Arc<str>, now: Timestamp) -> Step {
        let mut step = Step::default();
        if self.pending.contains(id) {
            self.expel(id, &mut step);
        } else if self.members.get(id).is_some_and(|member| !member.is_waiting()) {
            self.expel(id, &mut step);
            if matches!(self.phase, Phase::Completing | Phase::Stable) {
                self.prepare(now, &mut step);
                return step;
            }
        } else {
            return step;
        }
        if matches!(self.phase, Phase::Preparing(_)) && self.all_have_joined() {
            self.begin_generation(now, &mut step);
        }
        step
    }
}

#[cfg(test)]
#[path = "leave_tests.rs"]
mod tests;
