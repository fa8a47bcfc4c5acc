//! What the server's OK packet says about a statement.

/// What a statement did. With found rows, which every session asks for, `affected` counts a row that an UPDATE found
/// and left as it was; of `INSERT … ON DUPLICATE KEY UPDATE` it counts 1 for a new row, 2 for a changed and 1 for an
/// unchanged one: only `records` and `duplicates` tell new rows from old ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The packet's count of rows.
    pub affected: u64,
    /// The number that the server gave the row, or what `LAST_INSERT_ID(…)` was told; 0 for neither.
    pub insert_id: u64,
    /// How many warnings `SHOW WARNINGS` would show.
    pub warnings: u16,
    /// The packet's text: `Records: 3  Duplicates: 1  Warnings: 0`; empty for an INSERT of a single row.
    pub info: String,
}

impl Outcome {
    /// How many rows an INSERT was given, from the text; none for a single row, where the server says nothing.
    #[must_use]
    pub fn records(&self) -> Option<u64> {
        self.number("Records: ")
    }

    /// How many of them met a row that was there, whether it was changed or not; none for a single row.
    #[must_use]
    pub fn duplicates(&self) -> Option<u64> {
        self.number("Duplicates: ")
    }

    /// How many rows an UPDATE found, from the text.
    #[must_use]
    pub fn matched(&self) -> Option<u64> {
        self.number("Rows matched: ")
    }

    fn number(&self, name: &str) -> Option<u64> {
        let rest = self.info.split_once(name)?.1;
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the numbers in the packet's text. Method: the texts that servers send, and none.
    #[test]
    fn the_numbers_of_the_text_are_read() {
        let of = |info: &str| Outcome { info: info.to_owned(), ..Outcome::default() };
        let insert = of("Records: 1000  Duplicates: 12  Warnings: 0");
        assert_eq!((insert.records(), insert.duplicates(), insert.matched()), (Some(1000), Some(12), None));
        assert_eq!(of("Rows matched: 7  Changed: 0  Warnings: 0").matched(), Some(7));
        assert_eq!(of("").records(), None);
        assert_eq!(of("Records: x").records(), None);
    }
}
