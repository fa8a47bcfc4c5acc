//! A group in a test: tickets are counted, answers and timers kept, and no ticket is answered twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::error::ResponseError;

use super::{
    Answer, Group, Identity, Join, JoinAnswer, Joined, Leaving, Limits, Protocol, Save, Step, Sync, SyncAnswer, Ticket,
    Timer,
};

pub(super) const SESSION: Duration = Duration::from_secs(10);
pub(super) const REBALANCE: Duration = Duration::from_secs(60);

/// A group, and what came out of it.
pub(super) struct Rig {
    pub(super) group: Group,
    pub(super) limits: Limits,
    pub(super) now: i64,
    pub(super) timers: BTreeMap<Timer, Duration>,
    pub(super) saves: usize,
    pub(super) open: BTreeSet<Ticket>,
    pub(super) answers: BTreeMap<Ticket, Answer>,
    pub(super) tickets: u64,
}

/// Who joins, and how.
#[derive(Clone)]
pub(super) struct Who {
    pub(super) id: Arc<str>,
    pub(super) instance: Option<Arc<str>>,
    pub(super) version: i16,
    pub(super) session: Duration,
    pub(super) rebalance: Duration,
    pub(super) kind: &'static str,
    pub(super) protocols: Vec<(&'static str, Bytes)>,
}

/// A dynamic consumer that has this id already, or none.
pub(super) fn member(id: &str) -> Who {
    Who {
        id: Arc::from(id),
        instance: None,
        version: 9,
        session: SESSION,
        rebalance: REBALANCE,
        kind: "consumer",
        protocols: vec![("range", subscription(&["orders"]))],
    }
}

/// A static consumer without an id.
pub(super) fn fixed(instance: &str) -> Who {
    Who { instance: Some(Arc::from(instance)), ..member("") }
}

impl Who {
    pub(super) fn version(self, version: i16) -> Self {
        Self { version, ..self }
    }

    pub(super) fn id(self, id: &str) -> Self {
        Self { id: Arc::from(id), ..self }
    }

    pub(super) fn speaks(self, protocols: &[&'static str]) -> Self {
        let protocols = protocols.iter().map(|name| (*name, subscription(&["orders"])));
        Self { protocols: protocols.collect(), ..self }
    }

    pub(super) fn wants(self, topics: &[&str]) -> Self {
        Self { protocols: vec![("range", subscription(topics))], ..self }
    }

    pub(super) fn identity(&self) -> Identity {
        Identity { member: Arc::clone(&self.id), instance: self.instance.clone() }
    }
}

/// A subscription as consumers write it, with something behind the topics.
pub(super) fn subscription(topics: &[&str]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(1);
    out.put_i32(i32::try_from(topics.len()).expect("few"));
    for topic in topics {
        out.put_i16(i16::try_from(topic.len()).expect("short"));
        out.put_slice(topic.as_bytes());
    }
    out.put_i32(-1);
    out.put_i32(0);
    out.freeze()
}

impl Rig {
    /// Without an initial delay: the first join phase ends as soon as its timer may ring.
    pub(super) fn new() -> Self {
        Self::with(Limits { initial_delay: Duration::ZERO, ..Limits::default() })
    }

    pub(super) fn with(limits: Limits) -> Self {
        Self {
            group: Group::new(0),
            limits,
            now: 0,
            timers: BTreeMap::new(),
            saves: 0,
            open: BTreeSet::new(),
            answers: BTreeMap::new(),
            tickets: 0,
        }
    }

    pub(super) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.open.insert(ticket);
        ticket
    }

    pub(super) fn take(&mut self, step: Step) {
        self.saves += usize::from(step.save == Save::First);
        for (ticket, answer) in step.answers {
            assert!(self.open.remove(&ticket), "{ticket:?} was answered twice, or never asked: {answer:?}");
            self.answers.insert(ticket, answer);
        }
        for (timer, after) in step.timers {
            match after {
                Some(after) => drop(self.timers.insert(timer, after)),
                None => drop(self.timers.remove(&timer)),
            }
        }
    }

    pub(super) fn join(&mut self, who: &Who) -> Ticket {
        let ticket = self.ticket();
        let protocols = who
            .protocols
            .iter()
            .map(|(name, metadata)| Protocol { name: Arc::from(*name), metadata: metadata.clone() });
        let join = Join {
            ticket,
            version: who.version,
            identity: who.identity(),
            new_id: Arc::from(format!("{}-{}", who.instance.as_deref().unwrap_or("client"), ticket.0)),
            client_id: Arc::from("client"),
            client_host: Arc::from("/127.0.0.1"),
            session_timeout: who.session,
            rebalance_timeout: who.rebalance,
            protocol_type: Arc::from(who.kind),
            protocols: protocols.collect(),
        };
        let step = self.group.join(&join, &self.limits, self.now);
        self.take(step);
        ticket
    }

    pub(super) fn sync(&mut self, who: &Who, generation: i32, assignments: &[(&str, &'static str)]) -> Ticket {
        let ticket = self.ticket();
        let assignments = assignments.iter().map(|(id, bytes)| (Arc::from(*id), Bytes::from_static(bytes.as_bytes())));
        let sync = Sync {
            ticket,
            identity: who.identity(),
            generation,
            protocol_type: None,
            protocol: None,
            assignments: assignments.collect(),
        };
        let step = self.group.sync(&sync, self.now);
        self.take(step);
        ticket
    }

    pub(super) fn leave(&mut self, who: &[&Who]) -> Vec<Result<(), ResponseError>> {
        let leaving: Vec<Leaving> = who.iter().map(|who| Leaving { identity: who.identity() }).collect();
        let (step, answers) = self.group.leave(&leaving, self.now);
        self.take(step);
        answers
    }

    pub(super) fn heartbeat(&mut self, who: &Who, generation: i32) -> Result<(), ResponseError> {
        let (session, answer) = self.group.heartbeat(&who.identity(), generation);
        if let Some(session) = session {
            self.timers.insert(Timer::Session(Arc::clone(&who.id)), session);
        }
        answer
    }

    /// Lets a timer run out; false if it does not run.
    pub(super) fn ring(&mut self, timer: &Timer) -> bool {
        let Some(after) = self.timers.remove(timer) else { return false };
        self.now += i64::try_from(after.as_millis()).expect("short");
        let step = match timer {
            Timer::Session(id) => self.group.session_over(id, self.now),
            Timer::Join => self.group.join_time_over(self.limits.initial_delay, self.now),
            Timer::Sync => self.group.sync_time_over(self.now),
        };
        self.take(step);
        true
    }

    pub(super) fn ring_session(&mut self, who: &Who) -> bool {
        self.ring(&Timer::Session(Arc::clone(&who.id)))
    }

    pub(super) fn joined(&self, ticket: Ticket) -> Option<&JoinAnswer> {
        match self.answers.get(&ticket) {
            Some(Answer::Join(answer)) => Some(answer),
            Some(Answer::Sync(_)) | None => None,
        }
    }

    pub(super) fn welcome(&self, ticket: Ticket) -> Joined {
        self.joined(ticket).expect("is answered").clone().expect("is in")
    }

    pub(super) fn refusal(&self, ticket: Ticket) -> ResponseError {
        self.joined(ticket).expect("is answered").clone().expect_err("is not in").error
    }

    pub(super) fn synced(&self, ticket: Ticket) -> Option<&SyncAnswer> {
        match self.answers.get(&ticket) {
            Some(Answer::Sync(answer)) => Some(answer),
            Some(Answer::Join(_)) | None => None,
        }
    }

    pub(super) fn assignment(&self, ticket: Ticket) -> Bytes {
        self.synced(ticket).expect("is answered").clone().expect("is assigned").assignment
    }

    /// A member comes in the usual way: it is given an id, and joins with it.
    pub(super) fn enter(&mut self, who: &Who) -> (Who, Ticket) {
        let asked = self.join(who);
        let id = self.joined(asked).expect("is answered").clone().expect_err("an id first").member;
        let who = Who { id, ..who.clone() };
        let ticket = self.join(&who);
        (who, ticket)
    }

    /// A stable group of so many dynamic members, the leader first.
    pub(super) fn stable(count: usize) -> (Self, Vec<Who>) {
        let mut rig = Self::new();
        let entered: Vec<(Who, Ticket)> = (0..count).map(|_| rig.enter(&member(""))).collect();
        while rig.ring(&Timer::Join) {}
        let generation = rig.group.generation();
        let leader = rig.welcome(entered[0].1).leader;
        let mut members: Vec<Who> = entered.into_iter().map(|(who, _)| who).collect();
        members.sort_by_key(|who| who.id != leader);
        for who in members.iter().skip(1) {
            rig.sync(who, generation, &[]);
        }
        let given: Vec<(&str, &'static str)> = members.iter().map(|who| (&*who.id, "work")).collect();
        rig.sync(&members[0], generation, &given);
        assert_eq!(rig.group.phase_name(), "Stable");
        assert!(rig.open.is_empty(), "all are answered");
        (rig, members)
    }
}
