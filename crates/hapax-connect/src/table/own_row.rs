//! A row of our own tables as a server gives it: progress, an epoch, a dead letter, a group of letters.
//!
//! Pure. Invariant: a value that does not read back as what we wrote is damage with a name, never a panic. Not here: the
//! questions, whose columns are in the order that is read here.

use std::borrow::Cow;

use hapax_engine::books::{LetterGroup, LoggedEpoch};
use hapax_engine::letters::StoredLetter;
use hapax_engine::sink::SinkError;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::ledger::Totals;
use hapax_model::letter::LetterBytes;
use hapax_model::position::{DeliveryId, NoPosition};

use super::stored::{StoredProgress, bookmark};

/// A row, and whom to tell about damage.
pub(crate) trait OwnRow {
    /// A whole number.
    fn number(&self, column: usize) -> Result<i64, SinkError>;
    /// A text.
    fn text(&self, column: usize) -> Result<String, SinkError>;
    /// A text, or NULL.
    fn text_if_any(&self, column: usize) -> Result<Option<String>, SinkError>;
    /// Bytes.
    fn bytes(&self, column: usize) -> Result<Vec<u8>, SinkError>;
    /// Bytes, or NULL.
    fn bytes_if_any(&self, column: usize) -> Result<Option<Vec<u8>>, SinkError>;
    /// The column's name.
    fn name(&self, column: usize) -> Cow<'_, str>;
    /// What the row holds is not what we wrote.
    fn damaged(&self, what: &str) -> SinkError;

    /// A counter as it was stored.
    fn unsigned(&self, column: usize) -> Result<u64, SinkError> {
        let found = self.number(column)?;
        u64::try_from(found).map_err(|_| {
            let name = self.name(column);
            self.damaged(&format!("{name} is {found} in a table of ours, and never was below 0; restore it"))
        })
    }

    /// Five counters, from this column on.
    fn totals(&self, first: usize) -> Result<Totals, SinkError> {
        Ok(Totals {
            read: self.unsigned(first)?,
            delivered: self.unsigned(first + 1)?,
            filtered: self.unsigned(first + 2)?,
            dead: self.unsigned(first + 3)?,
            rows: self.unsigned(first + 4)?,
        })
    }

    /// The delivery named by the first three columns.
    fn delivery(&self) -> Result<DeliveryId, SinkError> {
        Ok(DeliveryId { workflow: self.text(0)?, sink: self.text(1)?, lane: self.text(2)? })
    }

    /// Progress, from this column on.
    fn progress(&self, first: usize) -> Result<StoredProgress, SinkError> {
        Ok(StoredProgress {
            generation: self.unsigned(first)?,
            epoch: self.unsigned(first + 1)?,
            position: self.text(first + 2)?,
            incarnation: self.text(first + 3)?,
            contract: self.text(first + 4)?,
            snapshot: self.text_if_any(first + 5)?,
            session: self.text(first + 6)?,
            totals: self.totals(first + 7)?,
        })
    }

    /// A row of the epoch log of `id`.
    fn epoch(&self, id: &DeliveryId) -> Result<LoggedEpoch, SinkError> {
        let broken = |what: String| self.damaged(&format!("the epoch log of {id} is damaged: {what}"));
        let [from, to, incarnation] = [self.text(2)?, self.text(3)?, self.text(4)?];
        Ok(LoggedEpoch {
            epoch: Epoch(self.unsigned(0)?),
            generation: Generation(self.unsigned(1)?),
            from: from.parse().map_err(|error: NoPosition| broken(error.to_string()))?,
            to: bookmark(&to, &incarnation).map_err(broken)?,
            counts: self.totals(5)?,
            opened_at_ms: self.unsigned(10)?,
            closed_at_ms: self.unsigned(11)?,
            committed_at_ms: self.unsigned(12)?,
        })
    }

    /// A dead letter.
    fn letter(&self) -> Result<StoredLetter, SinkError> {
        let id = self.number(3)?;
        let broken = |what: String| self.damaged(&format!("dead letter {id} is damaged: {what}"));
        let position = self.text(5)?;
        let (bytes, length) = (self.bytes(11)?, self.unsigned(12)?);
        let bytes = match self.bytes_if_any(13)? {
            None => LetterBytes::Whole(bytes),
            Some(hash) => {
                let sha256 = hash.try_into().map_err(|_| broken("its hash has no 32 bytes".to_owned()))?;
                LetterBytes::Cut { head: bytes, length, sha256 }
            }
        };
        Ok(StoredLetter {
            id,
            delivery: self.delivery()?,
            epoch: self.unsigned(4)?,
            position: position.parse().map_err(|error: NoPosition| broken(error.to_string()))?,
            incarnation: self.text(6)?,
            stage: self.text(7)?,
            code: self.text(8)?,
            message: self.text(9)?,
            fingerprint: self.text(10)?,
            bytes,
            event_key: self.text_if_any(14)?,
            written_at_ms: self.unsigned(15)?,
            state: self.text(16)?,
        })
    }

    /// Letters of one cause.
    fn letter_group(&self) -> Result<LetterGroup, SinkError> {
        Ok(LetterGroup {
            fingerprint: self.text(0)?,
            code: self.text(1)?,
            stage: self.text(2)?,
            count: self.unsigned(3)?,
            first_id: self.number(4)?,
            last_id: self.number(5)?,
            example: self.text(6)?,
            first_at_ms: self.unsigned(7)?,
            last_at_ms: self.unsigned(8)?,
        })
    }
}
