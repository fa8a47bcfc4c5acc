//! A group as it is kept in the store: a version, then fields of fixed order, lengths before bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::event::{Step, Timer};
use super::member::{Member, Protocol};
use super::state::{Group, Phase};
use crate::model::Timestamp;

const VERSION: u8 = 1;
const EMPTY: u8 = 0;
const COMPLETING: u8 = 1;
const STABLE: u8 = 2;

/// Why a stored group cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SavedGroupError {
    /// Written by a newer program.
    #[error("a group's state is of version {0}, which this program does not know")]
    Version(u8),
    /// Cut off, or not what was written.
    #[error("a group's state ends too early or holds what cannot be")]
    Damaged,
}

impl Group {
    /// What is to be kept: everything but who waits. A step is saved only when a generation begins, has its assignments, or
    /// a static member has come back, so a group that is being called together is never written.
    pub fn save(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u8(VERSION);
        out.put_u8(match self.phase {
            Phase::Empty => EMPTY,
            Phase::Completing => COMPLETING,
            Phase::Preparing(_) | Phase::Stable => STABLE,
        });
        out.put_i64(self.since);
        out.put_i32(self.generation);
        put_optional(&mut out, self.protocol_type.as_ref());
        put_optional(&mut out, self.protocol.as_ref());
        put_optional(&mut out, self.leader.as_ref());
        put_count(&mut out, self.members.len());
        for member in self.members.values() {
            put_text(&mut out, &member.id);
            put_optional(&mut out, member.instance.as_ref());
            put_text(&mut out, &member.client_id);
            put_text(&mut out, &member.client_host);
            put_duration(&mut out, member.session_timeout);
            put_duration(&mut out, member.rebalance_timeout);
            put_count(&mut out, member.protocols.len());
            for protocol in member.protocols.iter() {
                put_text(&mut out, &protocol.name);
                put_bytes(&mut out, &protocol.metadata);
            }
            put_bytes(&mut out, &member.assignment);
        }
        out.freeze()
    }

    /// A group as it was kept, and its clocks: members keep ids and generation, and have their full sessions anew.
    pub fn load(mut state: Bytes) -> Result<(Self, Step), SavedGroupError> {
        let from = &mut state;
        match from.try_get_u8() {
            Ok(VERSION) => {}
            Ok(other) => return Err(SavedGroupError::Version(other)),
            Err(_) => return Err(SavedGroupError::Damaged),
        }
        let group = Self::read(from).ok_or(SavedGroupError::Damaged)?;
        let mut step = Step::default();
        for member in group.members.values() {
            step.set(Timer::Session(Arc::clone(&member.id)), member.session_timeout);
        }
        if group.phase == Phase::Completing {
            step.set(Timer::Sync, group.rebalance_timeout());
        }
        Ok((group, step))
    }

    fn read(from: &mut Bytes) -> Option<Self> {
        let phase = match from.try_get_u8().ok()? {
            EMPTY => Phase::Empty,
            COMPLETING => Phase::Completing,
            STABLE => Phase::Stable,
            _ => return None,
        };
        let since: Timestamp = from.try_get_i64().ok()?;
        let generation = from.try_get_i32().ok()?;
        let protocol_type = get_optional(from)?;
        let protocol = get_optional(from)?;
        let leader = get_optional(from)?;
        let count = from.try_get_u32().ok()?;
        let mut members = BTreeMap::new();
        let mut instances = BTreeMap::new();
        for _ in 0..count {
            let member = get_member(from)?;
            if let Some(instance) = &member.instance {
                instances.insert(Arc::clone(instance), Arc::clone(&member.id));
            }
            members.insert(Arc::clone(&member.id), member);
        }
        let unsynced = if phase == Phase::Completing { members.keys().cloned().collect() } else { BTreeSet::new() };
        if (phase == Phase::Empty) != members.is_empty() {
            return None;
        }
        let pending = BTreeSet::new();
        Some(Self { phase, since, generation, protocol_type, protocol, leader, members, instances, pending, unsynced })
    }
}

fn get_member(from: &mut Bytes) -> Option<Member> {
    let id = get_text(from)?;
    let instance = get_optional(from)?;
    let client_id = get_text(from)?;
    let client_host = get_text(from)?;
    let session_timeout = Duration::from_millis(from.try_get_u64().ok()?);
    let rebalance_timeout = Duration::from_millis(from.try_get_u64().ok()?);
    let count = from.try_get_u32().ok()?;
    let protocols: Option<Arc<[Protocol]>> =
        (0..count).map(|_| Some(Protocol { name: get_text(from)?, metadata: get_bytes(from)? })).collect();
    Some(Member {
        id,
        instance,
        client_id,
        client_host,
        session_timeout,
        rebalance_timeout,
        protocols: protocols?,
        assignment: get_bytes(from)?,
        joining: None,
        syncing: None,
        is_new: false,
    })
}

fn put_count(out: &mut BytesMut, count: usize) {
    out.put_u32(u32::try_from(count).expect("what came in one frame is counted by 32 bits"));
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.put_slice(bytes);
}

fn put_text(out: &mut BytesMut, text: &str) {
    put_bytes(out, text.as_bytes());
}

fn put_optional(out: &mut BytesMut, text: Option<&Arc<str>>) {
    out.put_u8(u8::from(text.is_some()));
    if let Some(text) = text {
        put_text(out, text);
    }
}

fn put_duration(out: &mut BytesMut, duration: Duration) {
    out.put_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
}

fn get_bytes(from: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(from.try_get_u32().ok()?).ok()?;
    // A copy, so that a small field does not keep the whole blob alive.
    (from.len() >= length).then(|| Bytes::copy_from_slice(&from.split_to(length)))
}

fn get_text(from: &mut Bytes) -> Option<Arc<str>> {
    let bytes = get_bytes(from)?;
    std::str::from_utf8(&bytes).ok().map(Arc::from)
}

fn get_optional(from: &mut Bytes) -> Option<Option<Arc<str>>> {
    match from.try_get_u8().ok()? {
        0 => Some(None),
        _ => get_text(from).map(Some),
    }
}

#[cfg(test)]
#[path = "saved_tests.rs"]
mod tests;
