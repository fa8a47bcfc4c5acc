//! Whether a batch is next, was written before, or must be refused.
//!
//! Reads: what is known of its producer in its partition. Writes: nothing.
//! Invariant: the check for a repetition comes first, so a retry of one of the last five batches always succeeds.
//! Not here: where the state is kept (`producer`), when it is judged (`log::appender`: when the group is built).

use crate::batch::Header;
use crate::rules::producer::Producer;
use crate::rules::producer_error::ProducerError;
use crate::store::RingEntry;

/// What a batch says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Who wrote it; at least 0.
    pub producer_id: i64,
    /// Under which epoch.
    pub epoch: i16,
    /// The sequence of its first record.
    pub first_sequence: i32,
    /// The sequence of its last record.
    pub last_sequence: i32,
    /// Whether it is part of a transaction.
    pub kind: Kind,
}

/// Whether a batch is part of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It stands alone.
    Plain,
    /// It is part of one.
    Transactional,
}

impl Claim {
    /// What a header says; `None` for a producer without an id, of which nothing is checked.
    pub fn of(header: &Header) -> Option<Self> {
        (header.producer_id >= 0).then(|| Self {
            producer_id: header.producer_id,
            epoch: header.producer_epoch,
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            kind: if header.is_transactional() { Kind::Transactional } else { Kind::Plain },
        })
    }
}

/// What is to be done with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Append it.
    Next,
    /// It was written before, as this.
    Duplicate(RingEntry),
}

/// A sequence `by` further on: they wrap from 2^31 - 1 to 0.
pub fn advance(sequence: i32, by: i32) -> i32 {
    ((i64::from(sequence) + i64::from(by)) & i64::from(i32::MAX)) as i32
}

/// Judges a batch.
pub fn judge(known: Option<&Producer>, claim: &Claim) -> Result<Verdict, ProducerError> {
    // Transactions are not served yet: nothing is joined, so no batch can be part of one.
    if claim.kind == Kind::Transactional {
        return Err(ProducerError::InvalidTransactionState { producer_id: claim.producer_id });
    }
    let Some(known) = known else { return Ok(Verdict::Next) };
    if let Some(entry) = known.repeated(claim) {
        return Ok(Verdict::Duplicate(entry));
    }
    if claim.epoch < known.epoch {
        return Err(ProducerError::ProducerFenced {
            producer_id: claim.producer_id,
            epoch: claim.epoch,
            expected_epoch: known.epoch,
        });
    }
    if known.open_since.is_some() {
        return Err(ProducerError::InvalidTransactionState { producer_id: claim.producer_id });
    }
    // A new epoch starts at 0, and so does one that is known only from a marker.
    let expected = match known.ring.last() {
        Some(last) if claim.epoch == known.epoch => advance(last.last_sequence, 1),
        _ => 0,
    };
    if claim.first_sequence == expected {
        return Ok(Verdict::Next);
    }
    let (producer_id, sequence) = (claim.producer_id, claim.first_sequence);
    if claim.epoch == known.epoch && is_behind(sequence, expected) {
        Err(ProducerError::DuplicateSequence { producer_id, sequence, expected })
    } else {
        Err(ProducerError::OutOfOrderSequence { producer_id, sequence, expected })
    }
}

/// Whether a sequence lies in the half of the circle before the next one.
fn is_behind(sequence: i32, expected: i32) -> bool {
    let ahead = (i64::from(sequence) - i64::from(expected)) & i64::from(i32::MAX);
    ahead > i64::from(i32::MAX / 2)
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
