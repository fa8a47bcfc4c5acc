//! What is known of the producers of one partition: epochs and the last five batches of each.
//!
//! Invariant: nothing here allocates per batch, and a [`Draft`] changes nothing until it is kept.

use std::collections::HashMap;

use crate::batch::Header;
use crate::model::{Offset, Timestamp};
use crate::rules::producer_error::ProducerError;
use crate::rules::sequence::{Claim, Verdict, judge};
use crate::store::{ProducerSnapshot, ProducerState, RingEntry};

/// Batches of a producer that a retry is compared with.
pub const RING: usize = 5;

/// The last batches of a producer, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    entries: [RingEntry; RING],
    length: u8,
}

const NOTHING: RingEntry = RingEntry { first_sequence: 0, last_sequence: 0, base_offset: 0, timestamp: 0 };

impl Ring {
    /// Without a batch.
    pub const EMPTY: Self = Self { entries: [NOTHING; RING], length: 0 };

    /// The batches, oldest first.
    pub fn entries(&self) -> &[RingEntry] {
        &self.entries[..usize::from(self.length)]
    }

    /// The newest batch.
    pub fn last(&self) -> Option<&RingEntry> {
        self.entries().last()
    }

    fn push(&mut self, entry: RingEntry) {
        if usize::from(self.length) == RING {
            self.entries.rotate_left(1);
            self.entries[RING - 1] = entry;
        } else {
            self.entries[usize::from(self.length)] = entry;
            self.length += 1;
        }
    }
}

/// What is known of one producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Producer {
    /// Its epoch.
    pub epoch: i16,
    /// Its last batches under that epoch.
    pub ring: Ring,
    /// Where its open transaction began.
    pub open_since: Option<Offset>,
    /// When it last wrote, by our clock.
    pub updated: Timestamp,
}

impl Producer {
    /// The batch of the last five that this one repeats.
    pub fn repeated(&self, claim: &Claim) -> Option<RingEntry> {
        let same = |entry: &&RingEntry| {
            entry.first_sequence == claim.first_sequence && entry.last_sequence == claim.last_sequence
        };
        if claim.epoch != self.epoch {
            return None;
        }
        self.ring.entries().iter().find(same).copied()
    }
}

/// All producers of a partition.
#[derive(Debug, Clone, Default)]
pub struct Producers {
    known: HashMap<i64, Producer>,
}

impl Producers {
    /// As a snapshot has them.
    pub fn restore(snapshot: &ProducerSnapshot) -> Self {
        let known = snapshot.producers.iter().map(|state| {
            let mut ring = Ring::EMPTY;
            state.ring.iter().for_each(|entry| ring.push(*entry));
            let producer = Producer { epoch: state.epoch, ring, open_since: state.open_since, updated: state.updated };
            (state.producer_id, producer)
        });
        Self { known: known.collect() }
    }

    /// For a snapshot that reaches to `upto`.
    pub fn snapshot(&self, upto: Offset) -> ProducerSnapshot {
        let mut producers: Vec<_> = self.known.iter().map(|(id, producer)| state_of(*id, producer)).collect();
        producers.sort_unstable_by_key(|state| state.producer_id);
        ProducerSnapshot { upto, producers }
    }

    /// Takes over a batch that is in the log already.
    pub fn replay(&mut self, header: &Header, now: Timestamp) {
        if let Some(claim) = Claim::of(header).filter(|_| !header.is_control()) {
            let entry = entry_of(&claim, header.base_offset, header.max_timestamp);
            let next = follow(self.known.get(&claim.producer_id), &claim, entry, now);
            self.known.insert(claim.producer_id, next);
        }
    }

    /// Forgets those that wrote nothing since `before`, unless a transaction of theirs is open. How many went.
    pub fn expire(&mut self, before: Timestamp) -> usize {
        let count = self.known.len();
        self.known.retain(|_, producer| producer.updated >= before || producer.open_since.is_some());
        count - self.known.len()
    }

    /// One producer.
    pub fn get(&self, producer_id: i64) -> Option<&Producer> {
        self.known.get(&producer_id)
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Keeps what a draft has become, now that it is durable.
    pub fn keep(&mut self, draft: Draft) {
        self.known.extend(draft.changed);
    }
}

/// What a group that is being built makes of the producers; thrown away if the group fails.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    changed: HashMap<i64, Producer>,
}

impl Draft {
    /// Judges a batch by what is durable and what the group holds already.
    pub fn judge(&self, durable: &Producers, claim: &Claim) -> Result<Verdict, ProducerError> {
        let known = self.changed.get(&claim.producer_id).or_else(|| durable.get(claim.producer_id));
        judge(known, claim)
    }

    /// Takes in a batch that was judged to be next.
    pub fn accept(
        &mut self,
        durable: &Producers,
        claim: &Claim,
        base_offset: Offset,
        timestamp: Timestamp,
        now: Timestamp,
    ) {
        let known = self.changed.get(&claim.producer_id).or_else(|| durable.get(claim.producer_id));
        let next = follow(known, claim, entry_of(claim, base_offset, timestamp), now);
        self.changed.insert(claim.producer_id, next);
    }
}

fn entry_of(claim: &Claim, base_offset: Offset, timestamp: Timestamp) -> RingEntry {
    RingEntry { first_sequence: claim.first_sequence, last_sequence: claim.last_sequence, base_offset, timestamp }
}

/// A producer after one more batch. A new epoch begins with an empty ring.
fn follow(known: Option<&Producer>, claim: &Claim, entry: RingEntry, now: Timestamp) -> Producer {
    let fresh = Producer { epoch: claim.epoch, ring: Ring::EMPTY, open_since: None, updated: now };
    let mut next = match known {
        Some(known) if known.epoch == claim.epoch => Producer { updated: now, ..*known },
        Some(_) | None => fresh,
    };
    next.ring.push(entry);
    next
}

fn state_of(producer_id: i64, producer: &Producer) -> ProducerState {
    ProducerState {
        producer_id,
        epoch: producer.epoch,
        ring: producer.ring.entries().to_vec(),
        open_since: producer.open_since,
        updated: producer.updated,
    }
}

#[cfg(test)]
#[path = "producer_tests.rs"]
mod tests;
