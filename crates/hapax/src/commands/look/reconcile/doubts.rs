//! Keys whose row is not what one event asks for, until a later event of the same key settles it. Pure.
//!
//! The target is seen as it is now, the source as it was: a row that an event wrote may be gone because a later one
//! removed it. Invariant: memory is bounded. If there are too many doubts, the keys are gone through in several parts.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use hapax_engine::batch::Operation;
use hapax_engine::rows::{RowOrder, RowState};
use hapax_model::mode::ConflictMode;
use hapax_model::position::Bookmark;
use serde_json::{Value, json};

use super::super::short;

/// How many bytes all doubts may take.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// How much of an input a difference shows.
const SHOWN_CHARACTERS: usize = 200;

/// Something that is not as the log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) epoch: u64,
    pub(super) at: Bookmark,
    /// The key's text, if the workflow makes one.
    pub(super) key: Option<String>,
    pub(super) expected: String,
    pub(super) found: String,
    /// The input whole, to ask again.
    pub(super) input: Vec<u8>,
}

impl Difference {
    pub(super) fn as_json(&self) -> Value {
        json!({
            "epoch": self.epoch, "position": self.at.position.to_string(), "incarnation": self.at.incarnation.to_string(),
            "key": self.key, "expected": self.expected, "found": self.found, "input": self.shown(),
        })
    }

    fn shown(&self) -> String {
        short(&String::from_utf8_lossy(&self.input), SHOWN_CHARACTERS)
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.key.as_ref().map(|key| format!(", key {key}")).unwrap_or_default();
        write!(
            f,
            "epoch {}, position {}{key}: expected {}, found {}; the input is {}",
            self.epoch,
            self.at.position,
            self.expected,
            self.found,
            self.shown()
        )
    }
}

/// What an event asks of its row, against what is there: none if it is as it should be.
pub(super) fn misses(
    mode: ConflictMode,
    order: RowOrder,
    operation: Operation,
    found: RowState,
) -> Option<(&'static str, &'static str)> {
    let is = match found {
        RowState::Present => "a row",
        RowState::Tombstone => "a tombstone",
        RowState::Absent => "no row",
        RowState::NoKey => return None,
    };
    let fits = match (operation, order) {
        // Only the version tells which event stays: a row of this key must be there, or its tombstone.
        (Operation::Upsert, RowOrder::Declared) => found != RowState::Absent,
        (Operation::Delete, RowOrder::Declared) => true,
        (Operation::Upsert, RowOrder::Lane) => found == RowState::Present,
        (Operation::Delete, RowOrder::Lane) => found != RowState::Present,
    };
    let wanted = match (operation, mode) {
        (Operation::Upsert, _) => "a row",
        (Operation::Delete, ConflictMode::Newer) => "a tombstone or no row",
        (Operation::Delete, ConflictMode::Append | ConflictMode::Ignore | ConflictMode::Update) => "no row",
    };
    (!fits).then_some((wanted, is))
}

/// Doubts by key.
pub(super) struct Doubts {
    parts: u64,
    part: u64,
    bytes: usize,
    held: HashMap<Vec<u8>, Difference>,
}

/// There are more doubts than memory for them: go through the keys in more parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Doubts {
    /// None yet; of the keys, only part `part` of `parts` is looked at.
    pub(super) fn new(part: u64, parts: u64) -> Self {
        Self { parts, part, bytes: 0, held: HashMap::new() }
    }

    /// Whether this key is looked at in this part.
    pub(super) fn concerns(&self, key: &[u8]) -> bool {
        hash_of(key) % self.parts == self.part
    }

    /// The last event of this key asks for something that is not there.
    pub(super) fn raise(&mut self, key: Vec<u8>, difference: Difference) -> Result<(), TooMany> {
        self.settle(&key);
        self.bytes += cost(&key, &difference);
        self.held.insert(key, difference);
        if self.bytes > BYTES_MAX { Err(TooMany) } else { Ok(()) }
    }

    /// The last event of this key asks for what is there.
    pub(super) fn settle(&mut self, key: &[u8]) {
        if let Some((key, old)) = self.held.remove_entry(key) {
            self.bytes -= cost(&key, &old);
        }
    }

    /// Whether there is one about this key.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.held.contains_key(key)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The doubts with their keys, in the order of the log.
    pub(super) fn in_order(&self) -> Vec<(Vec<u8>, Difference)> {
        let mut all: Vec<_> = self.held.iter().map(|(key, doubt)| (key.clone(), doubt.clone())).collect();
        all.sort_by_key(|(_, doubt)| (doubt.epoch, doubt.at.position));
        all
    }
}

/// Tells keys apart, as far as 64 bits do.
pub(super) fn hash_of(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

fn cost(key: &[u8], difference: &Difference) -> usize {
    key.len() + difference.input.len() + size_of::<Difference>() + 96
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt(epoch: u64, input: usize) -> Difference {
        Difference {
            epoch,
            at: Bookmark::at("f", epoch),
            key: None,
            expected: "a row".into(),
            found: "no row".into(),
            input: vec![b'x'; input],
        }
    }

    /// Goal: what each event asks for is told from what is there. Method: the whole table.
    #[test]
    fn each_event_has_its_row() {
        use ConflictMode::{Newer, Update};
        use Operation::{Delete, Upsert};
        use RowState::{Absent, Present, Tombstone};
        let fine = |mode, order, operation, found| misses(mode, order, operation, found).is_none();
        let all = [Present, Tombstone, Absent];
        assert_eq!(all.map(|found| fine(Update, RowOrder::Lane, Upsert, found)), [true, false, false]);
        assert_eq!(all.map(|found| fine(Update, RowOrder::Lane, Delete, found)), [false, true, true]);
        assert_eq!(all.map(|found| fine(Newer, RowOrder::Declared, Upsert, found)), [true, true, false]);
        assert_eq!(all.map(|found| fine(Newer, RowOrder::Declared, Delete, found)), [true, true, true]);
        assert!(fine(Update, RowOrder::Lane, Upsert, RowState::NoKey), "it is a dead letter's affair");
    }

    /// Goal: a later event settles the doubt of an earlier one, and the first that stays is named first.
    #[test]
    fn a_later_event_settles_a_doubt() {
        let mut doubts = Doubts::new(0, 1);
        for (key, epoch) in [(b"a", 1), (b"b", 3), (b"c", 2), (b"a", 4)] {
            doubts.raise(key.to_vec(), doubt(epoch, 10)).unwrap();
        }
        doubts.settle(b"c");
        let order: Vec<u64> = doubts.in_order().iter().map(|(_, doubt)| doubt.epoch).collect();
        assert_eq!(order, [3, 4]);
        doubts.settle(b"a");
        doubts.settle(b"b");
        assert!(doubts.is_empty() && doubts.bytes == 0);
    }

    /// Goal: memory is bounded, and parts cover every key once. Method: large doubts; a thousand keys in three parts.
    #[test]
    fn too_many_doubts_are_gone_through_in_parts() {
        let mut doubts = Doubts::new(0, 1);
        let raised: Vec<bool> = (0..40_u8).map(|n| doubts.raise(vec![n], doubt(1, 1024 * 1024)).is_ok()).collect();
        assert!(raised[0] && !raised[39]);
        let parts: Vec<Doubts> = (0..3).map(|part| Doubts::new(part, 3)).collect();
        for n in 0..1000_u32 {
            assert_eq!(parts.iter().filter(|part| part.concerns(&n.to_be_bytes())).count(), 1);
        }
    }
}
