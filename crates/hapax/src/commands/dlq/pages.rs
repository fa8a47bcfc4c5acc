//! Which letters are replayed in one transaction. Pure.
//!
//! Invariant: letters of one row are on one page, in the order in which they died. A replay that asks whether a row is there
//! would else take what its own earlier page wrote for somebody else's newer row.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// All letters of a replay, grouped by the rows that they write. Of a letter it keeps its number, of a row 64 bits: rows that
/// it takes for one share a page, which does no harm.
#[derive(Debug, Default)]
pub(super) struct Plan {
    letters: Vec<i64>,
    /// For each letter one of its group that died before it, or itself.
    before: Vec<usize>,
    /// A letter that writes the row.
    of_row: HashMap<u64, usize>,
}

impl Plan {
    /// The next letter, with the keys of the rows that it writes.
    pub(super) fn add<'k>(&mut self, letter: i64, keys: impl Iterator<Item = &'k [u8]>) {
        let this = self.letters.len();
        self.letters.push(letter);
        self.before.push(this);
        for key in keys {
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            let known = *self.of_row.entry(hasher.finish()).or_insert(this);
            self.join(known, this);
        }
    }

    fn first_of(&mut self, mut letter: usize) -> usize {
        while self.before[letter] != letter {
            self.before[letter] = self.before[self.before[letter]];
            letter = self.before[letter];
        }
        letter
    }

    /// Two letters write the same row, and so their groups are one.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first_of(a), self.first_of(b));
        self.before[a.max(b)] = a.min(b);
    }

    /// Pages of at least `size` letters, but for the last; each ends with the last letter of a group.
    pub(super) fn pages(mut self, size: usize) -> impl Iterator<Item = Vec<i64>> {
        let firsts: Vec<usize> = (0..self.letters.len()).map(|letter| self.first_of(letter)).collect();
        let mut order: Vec<usize> = (0..self.letters.len()).collect();
        order.sort_by_key(|letter| (firsts[*letter], *letter));
        let (letters, mut next) = (self.letters, 0);
        std::iter::from_fn(move || {
            let begin = next;
            while next < order.len() && (next - begin < size || firsts[order[next]] == firsts[order[next - 1]]) {
                next += 1;
            }
            let mut page: Vec<i64> = order[begin..next].iter().map(|letter| letters[*letter]).collect();
            page.sort_unstable();
            (!page.is_empty()).then_some(page)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(letters: &[(i64, &[&str])], size: usize) -> Vec<Vec<i64>> {
        let mut plan = Plan::default();
        letters.iter().for_each(|(letter, keys)| plan.add(*letter, keys.iter().map(|key| key.as_bytes())));
        plan.pages(size).collect()
    }

    /// Goal: letters of one row share a page, however small it should be, in their order. Method: pages of one, of two and of
    /// more letters than there are.
    #[test]
    fn a_page_ends_with_a_rows_last_letter() {
        let letters: [(i64, &[&str]); 5] = [(1, &["a"]), (2, &["b"]), (4, &["a"]), (5, &[]), (9, &["a"])];
        assert_eq!(pages(&letters, 1), [vec![1, 4, 9], vec![2], vec![5]]);
        assert_eq!(pages(&letters, 2), [vec![1, 4, 9], vec![2, 5]]);
        assert_eq!(pages(&letters, 4), [vec![1, 2, 4, 9], vec![5]]);
        assert_eq!(pages(&letters, 100), [vec![1, 2, 4, 5, 9]]);
        assert!(pages(&[], 3).is_empty());
    }

    /// Goal: a letter of several rows holds all their letters together. Method: two rows that a third letter joins, late.
    #[test]
    fn a_letter_of_several_rows_joins_them() {
        let letters: [(i64, &[&str]); 5] = [(1, &["a"]), (2, &["x"]), (3, &["b"]), (4, &["c", "b"]), (5, &["b", "a"])];
        assert_eq!(pages(&letters, 1), [vec![1, 3, 4, 5], vec![2]]);
    }
}
