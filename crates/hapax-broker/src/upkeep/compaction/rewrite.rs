//! Rows without what is superseded: pure, bytes in and bytes out.
//!
//! Invariant: offsets, sequences and timestamps of what stays are what they were, and a batch of which something stays
//! keeps its first and last offset.

use bytes::{Bytes, BytesMut};

use super::map::LastOffsets;
use crate::batch::{BatchError, Batches, Header, Limits, Record, Records, assemble, uncompressed};
use crate::model::Offset;

/// What may go.
pub(super) struct Rules<'a> {
    /// The last offset of each key written in the part that was mapped.
    pub(super) last: &'a LastOffsets,
    /// Tombstones below this offset have been seen long enough.
    pub(super) tombstones_below: Offset,
}

impl Rules<'_> {
    fn keeps(&self, record: &Record<'_>, offset: Offset) -> bool {
        // A record without a key can never be superseded, and a compacted topic takes none: it is from before.
        let Some(key) = record.key else { return false };
        let spent = record.value.is_none() && offset < self.tombstones_below;
        !spent && !self.last.is_superseded(key, offset)
    }
}

/// What becomes of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rewritten {
    /// Nothing was to go.
    Same,
    /// Less of it.
    Less(Bytes),
    /// Nothing of it.
    Nothing,
}

/// Notes the keys of a row.
pub(super) fn map(row: &[u8], last: &mut LastOffsets) -> Result<(), BatchError> {
    for batch in Batches::new(row) {
        let (range, header) = batch?;
        if header.is_control() {
            continue;
        }
        for record in Records::new(&uncompressed(&header, &row[range], Limits::default())?) {
            let record = record?;
            if let Some(key) = record.key {
                last.put(key, header.base_offset + i64::from(record.offset_delta));
            }
        }
    }
    Ok(())
}

/// Leaves out of a row what may go.
pub(super) fn rewrite(row: &Bytes, rules: &Rules<'_>) -> Result<Rewritten, BatchError> {
    let mut kept = BytesMut::new();
    let mut changed = false;
    for batch in Batches::new(row) {
        let (range, header) = batch?;
        match rewrite_batch(&header, &row[range.clone()], rules)? {
            Rewritten::Same => kept.extend_from_slice(&row[range]),
            Rewritten::Less(less) => {
                changed = true;
                kept.extend_from_slice(&less);
            }
            Rewritten::Nothing => changed = true,
        }
    }
    Ok(match (changed, kept.is_empty()) {
        (false, _) => Rewritten::Same,
        (true, true) => Rewritten::Nothing,
        (true, false) => Rewritten::Less(kept.freeze()),
    })
}

fn rewrite_batch(header: &Header, batch: &[u8], rules: &Rules<'_>) -> Result<Rewritten, BatchError> {
    if header.is_control() {
        return Ok(Rewritten::Same);
    }
    let records = uncompressed(header, batch, Limits::default())?;
    let mut less = Header { count: 0, max_timestamp: -1, ..*header };
    let mut kept = Vec::with_capacity(records.len());
    for record in Records::new(&records) {
        let record = record?;
        if rules.keeps(&record, header.base_offset + i64::from(record.offset_delta)) {
            kept.extend_from_slice(record.raw);
            less.count += 1;
            less.max_timestamp = less.max_timestamp.max(header.timestamp(record.timestamp_delta));
        }
    }
    if less.count == header.count {
        return Ok(Rewritten::Same);
    }
    if less.count == 0 {
        return Ok(Rewritten::Nothing);
    }
    assemble(&less, header.compression()?, &kept).map(Rewritten::Less)
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
