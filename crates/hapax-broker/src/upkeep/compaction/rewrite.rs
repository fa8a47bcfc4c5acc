//! Rows without what is superseded: pure, bytes in and bytes out.
//!
//! Invariant: offsets, sequences and timestamps of what stays are what they were, and a batch of which something stays
//! keeps its first and last offset.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::map::LastOffsets;
use crate::batch::{BatchError, Batches, Header, Limits, Record, Records, assemble, uncompressed};
use crate::model::Offset;

/// What may go.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// The last offset of each key written in the part that was mapped.
    pub(super) last: Arc<LastOffsets>,
    /// Tombstones below this offset have been seen long enough.
    pub(super) tombstones_below: Offset,
}

impl Rules {
    fn keeps(&self, record: &Record<'_>, offset: Offset) -> bool {
        // A record without a key can never be superseded, and a compacted topic takes none: it is from before.
        let Some(key) = record.key else { return false };
        let spent = record.value.is_none() && offset < self.tombstones_below;
        !spent && !self.last.is_superseded(key, offset)
    }
}

/// A batch that cannot be read, as earlier versions took them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) offset: Offset,
    pub(super) error: BatchError,
}

/// The records of a batch, if all of them can be read and are as many as it says.
fn readable<'a>(header: &Header, batch: &'a [u8]) -> Result<Cow<'a, [u8]>, Unreadable> {
    let unreadable = |error| Unreadable { offset: header.base_offset, error };
    let plain = uncompressed(header, batch, Limits::default()).map_err(unreadable)?;
    let mut count = 0;
    for record in Records::new(&plain) {
        record.map_err(unreadable)?;
        count += 1;
    }
    if count != header.count {
        let (index, fault) = (count.unsigned_abs(), "there are more or fewer records than the header says");
        return Err(unreadable(BatchError::Record { index, fault }));
    }
    Ok(plain)
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

/// Notes the keys of a row, but for those of batches that cannot be read: nobody gets those, so they supersede nothing.
pub(super) fn map(row: &[u8], last: &mut LastOffsets) -> Result<(), BatchError> {
    for batch in Batches::new(row) {
        let (range, header) = batch?;
        if header.is_control() {
            continue;
        }
        let Ok(plain) = readable(&header, &row[range]) else { continue };
        for record in Records::new(&plain).map_while(Result::ok) {
            if let Some(key) = record.key {
                last.put(key, header.base_offset + i64::from(record.offset_delta));
            }
        }
    }
    Ok(())
}

/// Leaves out of a row what may go, and names the batches that cannot be read. They stay, and so do the tombstones after
/// them: nobody knows what those bury.
pub(super) fn rewrite(row: &Bytes, rules: &mut Rules) -> Result<(Rewritten, Vec<Unreadable>), BatchError> {
    let (mut kept, mut unreadable) = (BytesMut::new(), Vec::new());
    let mut changed = false;
    for batch in Batches::new(row) {
        let (range, header) = batch?;
        let bytes = &row[range];
        let plain = match readable(&header, bytes) {
            Ok(plain) => plain,
            Err(found) => {
                rules.tombstones_below = rules.tombstones_below.min(found.offset);
                unreadable.push(found);
                kept.extend_from_slice(bytes);
                continue;
            }
        };
        match rewrite_batch(&header, &plain, rules)? {
            Rewritten::Same => kept.extend_from_slice(bytes),
            Rewritten::Less(less) => {
                changed = true;
                kept.extend_from_slice(&less);
            }
            Rewritten::Nothing => changed = true,
        }
    }
    let rewritten = match (changed, kept.is_empty()) {
        (false, _) => Rewritten::Same,
        (true, true) => Rewritten::Nothing,
        (true, false) => Rewritten::Less(kept.freeze()),
    };
    Ok((rewritten, unreadable))
}

fn rewrite_batch(header: &Header, records: &[u8], rules: &Rules) -> Result<Rewritten, BatchError> {
    if header.is_control() {
        return Ok(Rewritten::Same);
    }
    let mut less = Header { count: 0, max_timestamp: -1, ..*header };
    let mut kept = Vec::with_capacity(records.len());
    for record in Records::new(records) {
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
