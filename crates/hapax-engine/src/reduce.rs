//! Which events of an epoch a SQL target must see, and in which order: reduced by key, sorted by key.
//!
//! Reads: each event's key as the target compares it, and a few facts about its row. Writes: nothing.
//! Invariant: the target ends as if every event had been written in lane order.
//! Not here: what happens when the target refuses a reduced row (the sink repeats the epoch unreduced).

use hapax_model::fault::{Bug, planted};
use hapax_model::mode::ConflictMode;

/// The keys of an epoch's events, in lane order, in one arena.
///
/// Two events have one key here exactly if the target takes them for one row: the bytes are made from the values as
/// the target stores them, not as the event spells them.
#[derive(Debug, Default)]
pub struct RowKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowKeys {
    /// Room for the keys of `events` events.
    #[must_use]
    pub fn with_capacity(events: usize) -> Self {
        Self { bytes: Vec::with_capacity(events * 17), ends: Vec::with_capacity(events) }
    }

    /// Adds the next event's key: `write` appends its bytes.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key of event `index`.
    #[must_use]
    pub fn key(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// Whether every key is greater than the one before: events that create things in the order of their numbers.
    fn ascend(&self) -> bool {
        (1..self.len()).all(|index| self.key(index - 1) < self.key(index))
    }

    /// The first bytes of a key as a number: most comparisons of a sort end here.
    fn prefix(&self, index: usize) -> u128 {
        let key = self.key(index);
        let mut first = [0; 16];
        let length = key.len().min(16);
        first[..length].copy_from_slice(&key[..length]);
        u128::from_be_bytes(first)
    }
}

/// What an event's row means to the rows of the same key below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// It says all of the row (or removes it): nothing below it matters.
    Whole,
    /// It leaves columns as they are: the rows below it are needed.
    Part,
}

/// What the reduction asks about events, by their index in lane order.
pub trait RowFacts {
    /// Whether the event's row covers those below it.
    fn cover(&self, event: usize) -> Cover;

    /// Whether the event removes its row.
    fn removes(&self, event: usize) -> bool;

    /// Mode `newer`: whether `later` would overwrite `earlier`.
    fn replaces(&self, earlier: usize, later: usize) -> bool;
}

/// The events that must be written, in the order in which they are written: by key, and within one key in lane order.
///
/// `append`: all, in lane order. `ignore`: the first of each key. `update`: the last, those that it builds on, and deletes.
/// `newer`: the one with the highest version, unless one of them is only a part of its row.
#[must_use]
pub fn reduce(mode: ConflictMode, keys: &RowKeys, facts: &impl RowFacts) -> Vec<usize> {
    if mode == ConflictMode::Append || keys.ascend() {
        return (0..keys.len()).collect();
    }
    let sorted = sorted(keys);
    let mut kept = Vec::with_capacity(sorted.len());
    for group in sorted.chunk_by(|a, b| a.prefix == b.prefix && keys.key(a.event) == keys.key(b.event)) {
        match group {
            [one] => kept.push(one.event),
            several => keep(mode, several, facts, &mut kept),
        }
    }
    kept
}

struct Entry {
    prefix: u128,
    event: usize,
}

/// By key, equal keys in lane order.
fn sorted(keys: &RowKeys) -> Vec<Entry> {
    let mut entries: Vec<Entry> = (0..keys.len()).map(|event| Entry { prefix: keys.prefix(event), event }).collect();
    entries.sort_unstable_by(|a, b| {
        let by_prefix = a.prefix.cmp(&b.prefix);
        by_prefix.then_with(|| keys.key(a.event).cmp(keys.key(b.event))).then_with(|| a.event.cmp(&b.event))
    });
    entries
}

/// What stays of several events of one key, in lane order.
fn keep(mode: ConflictMode, group: &[Entry], facts: &impl RowFacts, kept: &mut Vec<usize>) {
    let events = group.iter().map(|entry| entry.event);
    match mode {
        ConflictMode::Append => kept.extend(events),
        ConflictMode::Ignore => {
            let stays = if planted(Bug::ReductionKeepsLastInIgnore) { group.last() } else { group.first() };
            kept.extend(stays.map(|entry| entry.event));
        }
        ConflictMode::Update => {
            let base = group.iter().rposition(|entry| facts.cover(entry.event) == Cover::Whole).unwrap_or(0);
            // A delete is never left out: it clears columns that no event fills, and what refers to the row goes with it.
            let (below, above) = group.split_at(base);
            kept.extend(below.iter().map(|entry| entry.event).filter(|event| facts.removes(*event)));
            kept.extend(above.iter().map(|entry| entry.event));
        }
        ConflictMode::Newer => {
            if group.iter().any(|entry| facts.cover(entry.event) == Cover::Part) {
                kept.extend(events);
            } else {
                let newest = events.reduce(|stays, next| if facts.replaces(stays, next) { next } else { stays });
                kept.extend(newest);
            }
        }
    }
}

/// The first two events of one key for which `differ` holds: under keys that promise uniqueness a collision.
#[must_use]
pub fn first_collision(keys: &RowKeys, differ: impl Fn(usize, usize) -> bool) -> Option<(usize, usize)> {
    let sorted = sorted(keys);
    let groups = sorted.chunk_by(|a, b| a.prefix == b.prefix && keys.key(a.event) == keys.key(b.event));
    groups
        .flat_map(|group| group.windows(2))
        .map(|pair| (pair[0].event, pair[1].event))
        .filter(|(first, second)| differ(*first, *second))
        .min_by_key(|(_, second)| *second)
}

#[cfg(test)]
#[path = "reduce_tests.rs"]
mod tests;
