//! Which producer id and epoch InitProducerId answers.
//!
//! Reads: the transactional id's row, what the client says. Writes: nothing; the caller swaps the row.
//! Invariant: an epoch is given out once, but for a retry of the request that got it; 32767 is never given out.
//! Not here: ending an open transaction, which comes with transactions.

use crate::model::Timestamp;
use crate::rules::producer_error::ProducerError;
use crate::store::TransactionalRow;

/// The longest time that a transaction may stay open.
pub const TIMEOUT_MAX_MS: i32 = 15 * 60 * 1_000;

/// The last epoch that a producer gets; the one above is for the marker that fences it.
pub const LAST_EPOCH: i16 = i16::MAX - 1;

/// What the client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Its transactional id.
    pub transactional_id: Option<String>,
    /// How long its transactions may stay open.
    pub timeout_ms: i32,
    /// Who it is already: producer id and epoch, each -1 for nobody.
    pub producer: (i64, i16),
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// A new producer id, epoch 0; nothing is kept but a note.
    Fresh,
    /// The transactional id is new: a new producer id, epoch 0.
    Begin,
    /// The same producer id under this epoch; the one before is accepted once more as a retry if it is not -1.
    Raise {
        /// The epoch from now on.
        epoch: i16,
        /// The epoch of the one who asked.
        last_epoch: i16,
    },
    /// The epochs have run out: a new producer id, epoch 0.
    Rotate {
        /// The epoch of the one who asked, or -1.
        last_epoch: i16,
    },
    /// A retry: the answer as it was, nothing is written.
    Repeat,
}

/// Decides by the row as it is now.
pub fn plan(row: Option<&TransactionalRow>, ask: &Ask) -> Result<Plan, ProducerError> {
    let (producer_id, epoch) = ask.producer;
    if (producer_id == -1) != (epoch == -1) {
        return Err(ProducerError::HalfNamed { producer_id, epoch });
    }
    let Some(transactional_id) = &ask.transactional_id else { return Ok(Plan::Fresh) };
    if transactional_id.is_empty() {
        return Err(ProducerError::EmptyTransactionalId);
    }
    if ask.timeout_ms <= 0 || ask.timeout_ms > TIMEOUT_MAX_MS {
        return Err(ProducerError::InvalidTimeout { timeout_ms: ask.timeout_ms });
    }
    let Some(row) = row else { return Ok(Plan::Begin) };
    if !is_at_rest(row) {
        return Err(ProducerError::ConcurrentTransactions { transactional_id: transactional_id.clone() });
    }
    let exhausted = row.epoch >= LAST_EPOCH;
    if producer_id == -1 {
        return Ok(if exhausted { Plan::Rotate { last_epoch: -1 } } else { raise(row, -1) });
    }
    let fenced = Err(ProducerError::ProducerFenced { producer_id, epoch, expected_epoch: row.epoch });
    let is_current = producer_id == row.producer_id && epoch == row.epoch;
    // After a rotation the retry comes with the old id.
    let asked_before = producer_id == row.producer_id || producer_id == row.prev_producer_id && epoch >= LAST_EPOCH;
    if is_current {
        Ok(if exhausted { Plan::Rotate { last_epoch: epoch } } else { raise(row, epoch) })
    } else if asked_before && epoch == row.last_epoch {
        Ok(Plan::Repeat)
    } else {
        fenced
    }
}

/// The row after the plan; `fresh` is the new producer id where the plan needs one.
pub fn apply(row: Option<&TransactionalRow>, plan: Plan, ask: &Ask, fresh: i64, now: Timestamp) -> TransactionalRow {
    let mut next = row.cloned().unwrap_or_else(|| TransactionalRow {
        id: ask.transactional_id.clone().unwrap_or_default(),
        revision: -1,
        serial: 0,
        state: 0,
        version: 0,
        producer_id: fresh,
        epoch: 0,
        last_epoch: -1,
        prev_producer_id: -1,
        next_producer_id: -1,
        timeout_ms: ask.timeout_ms,
        updated: now,
    });
    match plan {
        Plan::Raise { epoch, last_epoch } => (next.epoch, next.last_epoch) = (epoch, last_epoch),
        Plan::Rotate { last_epoch } => {
            next.prev_producer_id = next.producer_id;
            (next.producer_id, next.epoch, next.last_epoch) = (fresh, 0, last_epoch);
        }
        Plan::Begin | Plan::Fresh | Plan::Repeat => {}
    }
    next.revision += 1;
    next.state = 0;
    next.timeout_ms = ask.timeout_ms;
    next.updated = now;
    next
}

fn raise(row: &TransactionalRow, last_epoch: i16) -> Plan {
    Plan::Raise { epoch: row.epoch + 1, last_epoch }
}

/// Empty, CompleteCommit or CompleteAbort.
fn is_at_rest(row: &TransactionalRow) -> bool {
    matches!(row.state, 0 | 4 | 5)
}

#[cfg(test)]
#[path = "init_producer_tests.rs"]
mod tests;
