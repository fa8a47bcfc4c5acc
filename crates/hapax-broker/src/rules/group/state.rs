//! The state of a group, and who is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::error::ResponseError;

use super::event::{Identity, Join, JoinRefusal, Joined, JoinedMember, Step, Timer};
use super::member::{Member, Protocol};
use crate::model::Timestamp;

/// What all groups are held to; Kafka's defaults.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The shortest session that a member may ask for.
    pub session_min: Duration,
    /// The longest.
    pub session_max: Duration,
    /// Members of one group, at most.
    pub members_max: usize,
    /// Ids given out in one group to members that have not come back yet, at most.
    pub pending_max: usize,
    /// How long the first join of an empty group waits for others.
    pub initial_delay: Duration,
    /// A new member whose first join is not answered for so long is taken for gone.
    pub new_member_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            session_min: Duration::from_secs(6),
            session_max: Duration::from_secs(30 * 60),
            members_max: i32::MAX as usize,
            pending_max: 10_000,
            initial_delay: Duration::from_secs(3),
            new_member_timeout: Duration::from_secs(5 * 60),
        }
    }
}

/// How the first rebalance of an empty group waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialDelay {
    /// The delay that runs.
    pub(super) running: Duration,
    /// What may follow it, all in all.
    pub(super) remaining: Duration,
    /// Somebody joined since it began.
    pub(super) grown: bool,
}

/// Where a group stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// No members.
    Empty,
    /// Members are called together; the first time they get a delay.
    Preparing(Option<InitialDelay>),
    /// All have joined; the leader's assignment is awaited.
    Completing,
    /// Everyone has an assignment, or may fetch it.
    Stable,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub(super) phase: Phase,
    pub(super) since: Timestamp,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<Arc<str>>,
    pub(super) protocol: Option<Arc<str>>,
    pub(super) leader: Option<Arc<str>>,
    pub(super) members: BTreeMap<Arc<str>, Member>,
    /// Static names and who has them.
    pub(super) instances: BTreeMap<Arc<str>, Arc<str>>,
    /// Ids that were given out and have not come back.
    pub(super) pending: BTreeSet<Arc<str>>,
    /// Members of this generation that have not sent SyncGroup.
    pub(super) unsynced: BTreeSet<Arc<str>>,
}

impl Group {
    /// A group of which nothing is known yet.
    pub fn new(now: Timestamp) -> Self {
        Self {
            phase: Phase::Empty,
            since: now,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            pending: BTreeSet::new(),
            unsynced: BTreeSet::new(),
        }
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Kafka's name for where it stands.
    pub fn phase_name(&self) -> &'static str {
        match self.phase {
            Phase::Empty => "Empty",
            Phase::Preparing(_) => "PreparingRebalance",
            Phase::Completing => "CompletingRebalance",
            Phase::Stable => "Stable",
        }
    }

    /// Its generation.
    pub fn generation(&self) -> i32 {
        self.generation
    }

    /// "consumer", "connect", …; none before the first member.
    pub fn protocol_type(&self) -> Option<&Arc<str>> {
        self.protocol_type.as_ref()
    }

    /// The chosen protocol.
    pub fn protocol(&self) -> Option<&Arc<str>> {
        self.protocol.as_ref()
    }

    /// Its members, by id.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// Since when it has had no members.
    pub fn empty_since(&self) -> Option<Timestamp> {
        (self.phase == Phase::Empty).then_some(self.since)
    }

    /// Nothing would be lost with it: it never had a generation, and nobody is about to join.
    pub fn is_blank(&self) -> bool {
        self.phase == Phase::Empty && self.generation == 0 && self.protocol_type.is_none() && self.pending.is_empty()
    }

    /// Somebody has an id and is about to join.
    pub fn is_awaited(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn turn(&mut self, phase: Phase, now: Timestamp) {
        self.phase = phase;
        self.since = now;
    }

    /// Whether a member of this kind could work with all others.
    pub(super) fn accepts(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.phase == Phase::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|protocol| self.is_common(&protocol.name))
    }

    fn is_common(&self, protocol: &str) -> bool {
        self.members.values().all(|member| member.supports(protocol))
    }

    /// The protocol that most members like best among those that all know; the leader's order settles a draw.
    pub(super) fn elect_protocol(&self) -> Option<Arc<str>> {
        let leader = self.leader.as_ref().and_then(|leader| self.members.get(leader));
        let leader = leader.or_else(|| self.members.values().next())?;
        let common: Vec<&Arc<str>> =
            leader.protocols.iter().map(|protocol| &protocol.name).filter(|name| self.is_common(name)).collect();
        let mut votes = vec![0_usize; common.len()];
        for member in self.members.values() {
            let mut ballot = member.protocols.iter();
            if let Some(choice) = ballot.find_map(|own| common.iter().position(|name| **name == own.name)) {
                votes[choice] += 1;
            }
        }
        // `max_by_key` takes the last of equals, so the order is reversed.
        let best = common.into_iter().zip(votes).rev().max_by_key(|(_, votes)| *votes);
        best.map(|(name, _)| Arc::clone(name))
    }

    /// The largest rebalance timeout of the members.
    pub(super) fn rebalance_timeout(&self) -> Duration {
        self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or_default()
    }

    pub(super) fn joining(&self) -> usize {
        self.members.values().filter(|member| member.joining.is_some()).count()
    }

    pub(super) fn all_have_joined(&self) -> bool {
        self.pending.is_empty() && self.members.values().all(|member| member.joining.is_some())
    }

    /// Whether this is a member: 82 if its static name belongs to another by now, 25 if it is not known.
    pub(super) fn check_member(&self, identity: &Identity) -> Result<(), ResponseError> {
        if let Some(instance) = &identity.instance {
            match self.instances.get(instance) {
                None => return Err(ResponseError::UnknownMemberId),
                Some(owner) if *owner != identity.member => return Err(ResponseError::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(&identity.member) { Ok(()) } else { Err(ResponseError::UnknownMemberId) }
    }

    /// Takes a new member in. Its first answer may take long, and it cannot send heartbeats before it.
    pub(super) fn admit(&mut self, id: Arc<str>, join: &Join, limits: &Limits, step: &mut Step) {
        if let Phase::Preparing(Some(delay)) = &mut self.phase {
            delay.grown = true;
        }
        if self.members.is_empty() {
            self.protocol_type = Some(Arc::clone(&join.protocol_type));
        }
        if let Some(instance) = &join.identity.instance {
            self.instances.insert(Arc::clone(instance), Arc::clone(&id));
        }
        self.leader.get_or_insert_with(|| Arc::clone(&id));
        self.pending.remove(&id);
        self.members.insert(Arc::clone(&id), Member::new(Arc::clone(&id), join));
        step.set(Timer::Session(id), limits.new_member_timeout);
    }

    /// Removes a member or an id that was given out; whoever still waits as it is told 25.
    pub(super) fn expel(&mut self, id: &Arc<str>, step: &mut Step) {
        let was_pending = self.pending.remove(id);
        self.unsynced.remove(id);
        let removed = self.members.remove(id);
        if was_pending || removed.is_some() {
            step.stop(Timer::Session(Arc::clone(id)));
        }
        let Some(member) = removed else { return };
        if let Some(ticket) = member.joining {
            step.join(ticket, Err(JoinRefusal::new(ResponseError::UnknownMemberId, &Arc::from(""))));
        }
        if let Some(ticket) = member.syncing {
            step.sync(ticket, Err(ResponseError::UnknownMemberId));
        }
        if let Some(instance) = &member.instance {
            self.instances.remove(instance);
        }
        if self.leader.as_ref() == Some(id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// What a member of the current generation is told.
    pub(super) fn joined(&self, member: &Arc<str>) -> Joined {
        let members = if self.leader.as_ref() == Some(member) { self.roll() } else { Vec::new() };
        Joined {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_else(|| Arc::from("")),
            member: Arc::clone(member),
            skip_assignment: false,
            members,
        }
    }

    fn roll(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let told = self.members.values().map(|member| JoinedMember {
            id: Arc::clone(&member.id),
            instance: member.instance.clone(),
            metadata: member.metadata(protocol),
        });
        told.collect()
    }
}
