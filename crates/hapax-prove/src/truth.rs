//! What must be true after any number of inputs.
//!
//! Reads: the inputs as they were written. Writes: nothing.
//! Invariant: the digest of a table does not depend on the order of its rows.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::shape::{Contents, Row, Shape};
use crate::workload::{Fate, Input};

/// A sum over the rows of a table: equal tables have equal digests, in whatever order they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest {
    /// Sum of the rows' hashes.
    pub sum: u64,
    /// How many rows.
    pub rows: u64,
}

impl Digest {
    /// With one more row.
    pub fn add(&mut self, row: &Row) {
        self.sum = self.sum.wrapping_add(hash(row));
        self.rows += 1;
    }

    /// With one row less.
    pub fn remove(&mut self, row: &Row) {
        self.sum = self.sum.wrapping_sub(hash(row));
        self.rows -= 1;
    }

    /// Of all rows given.
    #[must_use]
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut digest = Self::default();
        rows.into_iter().for_each(|row| digest.add(row));
        digest
    }
}

fn hash(row: &Row) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.hash(&mut hasher);
    hasher.finish()
}

/// The inputs of a cell and everything that follows from them.
#[derive(Debug, Clone)]
pub struct Truth {
    /// The kind of table.
    pub shape: Shape,
    /// All inputs, in lane order.
    pub inputs: Vec<Input>,
    digests: Vec<Digest>,
}

impl Truth {
    /// Computes what the table must hold after each input.
    #[must_use]
    pub fn new(shape: Shape, inputs: Vec<Input>) -> Self {
        let mut contents = Contents::new();
        let mut digest = Digest::default();
        let mut digests = vec![digest];
        for input in &inputs {
            for row in input.rows() {
                let (left, came) = shape.apply(&mut contents, row);
                left.iter().for_each(|row| digest.remove(row));
                came.iter().for_each(|row| digest.add(row));
            }
            digests.push(digest);
        }
        Self { shape, inputs, digests }
    }

    /// The digest of the table after `read` inputs; none if there are not so many.
    #[must_use]
    pub fn digest_after(&self, read: u64) -> Option<Digest> {
        self.digests.get(usize::try_from(read).ok()?).copied()
    }

    /// What the table must hold after `read` inputs.
    #[must_use]
    pub fn contents_after(&self, read: usize) -> Contents {
        let mut contents = Contents::new();
        for row in self.inputs.iter().take(read).flat_map(Input::rows) {
            self.shape.apply(&mut contents, row);
        }
        contents.retain(|_, row| self.shape.is_alive(row));
        contents
    }

    /// What the table must hold once the refused among the first `read` inputs have been replayed.
    #[must_use]
    pub fn contents_replayed(&self, read: usize) -> Contents {
        let mut contents = Contents::new();
        let delivered = self.inputs.iter().take(read).flat_map(Input::rows);
        for row in delivered.chain(self.refused_after(read)) {
            self.shape.apply(&mut contents, row);
        }
        contents.retain(|_, row| self.shape.is_alive(row));
        contents
    }

    /// The lines that must be dead letters after `read` inputs, in lane order.
    pub fn dead_after(&self, read: usize) -> impl Iterator<Item = &str> {
        self.inputs.iter().take(read).filter(|input| input.rows().is_empty()).map(|input| input.line.as_str())
    }

    /// Rows that a replay brings once the refusing trigger is gone, among the first `read` inputs.
    pub fn refused_after(&self, read: usize) -> impl Iterator<Item = &Row> {
        self.inputs.iter().take(read).filter_map(|input| match &input.fate {
            Fate::Refused(row) => Some(row),
            Fate::Row(_) | Fate::Pair(_) | Fate::Dead => None,
        })
    }

    /// The event with number `n`, if it can ever be a row.
    #[must_use]
    pub fn event(&self, n: i64) -> Option<&Row> {
        let index = usize::try_from(n).ok()?.checked_sub(1)?;
        // Inputs are alike: all are pairs, or none is.
        let per_input = self.inputs.first().map_or(1, |first| first.rows().len().max(1));
        match &self.inputs.get(index / per_input)?.fate {
            Fate::Row(row) | Fate::Refused(row) => Some(row),
            Fate::Pair(rows) => rows.get(index % per_input),
            Fate::Dead => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Mix, inputs};

    /// Goal: the quick digest and the slow computation agree. Method: every hundredth prefix of every shape.
    #[test]
    fn the_digest_of_each_prefix_is_that_of_its_contents() {
        for shape in [Shape::Append, Shape::IgnoreFirst, Shape::Update, Shape::UpdateJoined, Shape::NewerDeclared] {
            let truth = Truth::new(shape, inputs(shape, Mix::Poisoned, 600, 5));
            for read in (0..=600).step_by(100) {
                let contents = truth.contents_after(read);
                assert_eq!(truth.digest_after(read as u64), Some(Digest::of(contents.values())), "{shape:?} {read}");
            }
            assert_eq!(truth.digest_after(601), None);
        }
    }

    /// Goal: an event is found by its number in an input of two, and both count at once.
    #[test]
    fn an_event_of_a_pair_is_found_by_its_number() {
        let truth = Truth::new(Shape::Append, inputs(Shape::Append, Mix::Paired, 300, 5));
        assert!((1..=300).all(|n| truth.event(n).is_some_and(|row| row.n == n)));
        assert!(truth.event(0).is_none() && truth.event(301).is_none());
        assert_eq!(truth.digest_after(1).map(|digest| digest.rows), Some(2));
        assert_eq!((truth.contents_after(75).len(), truth.dead_after(150).count()), (150, 0));
    }

    /// Goal: an event is found by its number, and poison is not.
    #[test]
    fn an_event_is_found_by_its_number() {
        let truth = Truth::new(Shape::Append, inputs(Shape::Append, Mix::Poisoned, 300, 5));
        for n in 1..=300 {
            assert!(truth.event(n).is_none_or(|row| row.n == n));
        }
        assert!(truth.event(0).is_none() && truth.event(301).is_none() && truth.event(-1).is_none());
    }
}
