//! The last offset of each key, in bounded memory.
//!
//! A key is kept as two hashes under secret random keys: nobody can make two keys meet, and chance does not, either.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::fault::{Bug, planted};
use crate::model::Offset;

/// Keys of one pass: about 30 MiB. More keys take more passes.
const KEYS: usize = 500_000;

/// Which offset was last written for each key.
#[derive(Debug)]
pub(super) struct LastOffsets {
    first: RandomState,
    second: RandomState,
    last: HashMap<(u64, u64), Offset>,
    room: usize,
}

impl Default for LastOffsets {
    fn default() -> Self {
        Self::with_room(KEYS)
    }
}

impl LastOffsets {
    /// Room for so many keys.
    pub(super) fn with_room(room: usize) -> Self {
        Self { first: RandomState::new(), second: RandomState::new(), last: HashMap::new(), room }
    }

    /// Whether there is room for no more keys.
    pub(super) fn is_full(&self) -> bool {
        self.last.len() >= self.room
    }

    /// A key was written at this offset, later than all before.
    pub(super) fn put(&mut self, key: &[u8], offset: Offset) {
        let key = self.hashes(key);
        self.last.insert(key, offset);
    }

    /// Whether this key was written again after `offset`.
    pub(super) fn is_superseded(&self, key: &[u8], offset: Offset) -> bool {
        let last = self.last.get(&self.hashes(key)).copied();
        last.is_some_and(|last| last > offset || (last == offset && planted(Bug::BrokerCompactsLast)))
    }

    fn hashes(&self, key: &[u8]) -> (u64, u64) {
        (self.first.hash_one(key), self.second.hash_one(key))
    }
}
