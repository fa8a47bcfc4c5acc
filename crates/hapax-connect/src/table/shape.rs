//! Which rows one statement can carry together: what they ask, and what they lack. The SQL is each dialect's own.

use super::mapping::{Feed, Mapping};

/// What a row asks of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// Write it, as the mode says.
    Upsert,
    /// Remove it.
    Delete,
    /// Mode `newer`: mark it as removed.
    Tombstone,
}

impl RowKind {
    /// Whether a row of this kind that lacks `absent` fills column `at`.
    #[must_use]
    pub fn fills<C>(self, mapping: &Mapping<C>, absent: &AbsentSet, at: usize) -> bool {
        match self {
            Self::Upsert => mapping.columns[at].feed != Feed::Deleted && !absent.contains(at),
            Self::Delete => mapping.key.contains(&at),
            Self::Tombstone => mapping.key.contains(&at) || mapping.version == Some(at),
        }
    }
}

/// Which fields an event lacks, one bit per column: those columns take their default, or stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AbsentSet(Vec<u64>);

impl AbsentSet {
    /// Forgets all and makes room for `columns` columns.
    pub fn reset(&mut self, columns: usize) {
        self.0.clear();
        self.0.resize(columns.div_ceil(64), 0);
    }

    /// Notes that column `at` is absent.
    pub fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Whether column `at` is absent.
    #[must_use]
    pub fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Whether nothing is absent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

/// Rows that one statement can carry together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowShape {
    /// What they ask.
    pub kind: RowKind,
    /// What they lack.
    pub absent: AbsentSet,
    /// Which of the mapping's columns are bound, in the order of the parameters of one row.
    pub bound: Vec<usize>,
}

impl RowShape {
    /// The shape of rows of `kind` that lack `absent`.
    #[must_use]
    pub fn new<C>(mapping: &Mapping<C>, kind: RowKind, absent: AbsentSet) -> Self {
        let bound = (0..mapping.columns.len()).filter(|at| kind.fills(mapping, &absent, *at)).collect();
        Self { kind, absent, bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: more than 64 columns are told apart. Method: one bit in each word.
    #[test]
    fn many_columns_can_be_absent() {
        let mut set = AbsentSet::default();
        set.reset(130);
        assert!(set.is_empty());
        set.insert(0);
        set.insert(129);
        assert_eq!((0..130).filter(|at| set.contains(*at)).collect::<Vec<_>>(), [0, 129]);
    }
}
