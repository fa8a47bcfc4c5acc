//! The rows of a target as they stand, for people who ask whether something arrived.
//!
//! Reads: the user's table, and who waits for whom in its database. Writes: nothing, and takes no lock that a writer
//! would wait for. Not here: progress, the epoch log and dead letters (`books`), which may lie in another database.

use std::future::Future;
use std::sync::Arc;

use hapax_model::field::FieldPath;
use hapax_model::key::KeyHash;
use hapax_model::letter::Cause;
use hapax_model::mode::ConflictMode;

use crate::batch::Batch;
use crate::sink::SinkError;

/// How much of a value a found row carries, in characters: a person reads it.
pub const SHOWN_CHARACTERS: usize = 200;

/// How a table is written, as far as a question about its rows depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    /// The table, as messages name it.
    pub name: String,
    /// What happens to a key that is already there.
    pub mode: ConflictMode,
    /// The fields of an event that feed columns.
    pub fields: Vec<FieldPath>,
    /// The columns of the key; none in `append`.
    pub key: Vec<String>,
    /// Whether the key is one column that holds its hash.
    pub by_hash: ByHash,
    /// What decides which of two rows of one key stays.
    pub order: RowOrder,
}

/// What the key's columns hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByHash {
    /// The hash of the key: a row is found by the key's text.
    Yes,
    /// The key's fields, or there is no key.
    No,
}

/// What decides which of two rows of one key stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// The order of the lane.
    Lane,
    /// A version that the events carry: the last event of a lane need not be the one that stays.
    Declared,
}

/// Which row is meant.
#[derive(Debug, Clone)]
pub enum RowChoice {
    /// The row that this event of a batch was, or would be, written to.
    Event(Arc<Batch>, usize),
    /// The row whose key column holds this key.
    Hash(KeyHash),
}

/// A row as it stands: columns and their values as text, shortened to [`SHOWN_CHARACTERS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRow {
    /// Column and value, in the table's order; no value is NULL.
    pub columns: Vec<(String, Option<String>)>,
    /// Whether it is a row, or marks one that was removed.
    pub state: RowState,
}

/// What is found under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// A row.
    Present,
    /// A mark that the row was removed (`hapax_deleted`).
    Tombstone,
    /// Nothing.
    Absent,
    /// The event has no key that this table can hold; it would be a dead letter.
    NoKey,
}

/// Something in the target's database that makes others wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Who makes others wait: process, session.
    pub who: String,
    /// What it does, or holds.
    pub what: String,
    /// Since when, in milliseconds since 1970, if the database tells.
    pub since_ms: Option<u64>,
    /// What a person can do about it.
    pub cure: String,
}

/// Looks at one table of a target. One connection, opened for reading.
pub trait RowReader: Send {
    /// How the table is written.
    fn shape(&self) -> &TableShape;

    /// Events that would die on their way into the table, with the cause, ascending; as far as that can be told without
    /// asking it.
    fn misfits(&self, batch: &Batch) -> Vec<(usize, Cause)>;

    /// For each event, bytes that are equal exactly for events which the table takes for one row; none for an event
    /// without a key that it can hold.
    fn row_keys(&self, batch: &Batch) -> Vec<Option<Vec<u8>>>;

    /// The row, if it is there. Always none in `append`, where no event has a row of its own.
    fn find(&mut self, choice: RowChoice) -> impl Future<Output = Result<Option<FoundRow>, SinkError>> + Send;

    /// What is there under the key of each of `events`, all seen at one moment.
    fn states(
        &mut self,
        batch: Arc<Batch>,
        events: Vec<usize>,
    ) -> impl Future<Output = Result<Vec<RowState>, SinkError>> + Send;

    /// How many rows the table has.
    fn count(&mut self) -> impl Future<Output = Result<u64, SinkError>> + Send;

    /// What makes writers of this database wait at this moment.
    fn holds(&mut self) -> impl Future<Output = Result<Vec<Hold>, SinkError>> + Send;
}

/// A text of at most [`SHOWN_CHARACTERS`].
#[must_use]
pub fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_CHARACTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Bytes as `x'…'`, shortened like a text.
#[must_use]
pub fn shown_bytes(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("x'");
    for byte in bytes.iter().take(SHOWN_CHARACTERS / 2) {
        write!(text, "{byte:02x}").expect("a String takes everything");
    }
    text.push_str(if bytes.len() > SHOWN_CHARACTERS / 2 { "…'" } else { "'" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a value of any length is shown in a line. Method: short and long, text and bytes, letters of two bytes.
    #[test]
    fn a_long_value_is_cut() {
        assert_eq!(shown("né"), "né");
        assert_eq!(shown(&"é".repeat(300)).chars().count(), SHOWN_CHARACTERS + 1);
        assert_eq!(shown_bytes(&[0, 255]), "x'00ff'");
        assert!(shown_bytes(&[7; 101]).ends_with("07…'"));
    }
}
