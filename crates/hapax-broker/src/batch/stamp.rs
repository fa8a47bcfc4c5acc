//! What the leader writes into a batch.

use crate::batch::header::{at, bit};
use crate::batch::{BatchError, HEADER};
use crate::model::{Offset, Timestamp};

/// Writes the offset and the leader's epoch in. Both are outside the checksum.
pub fn stamp(batch: &mut [u8], base_offset: Offset, leader_epoch: i32) {
    put(batch, at::BASE_OFFSET, &base_offset.to_be_bytes());
    put(batch, at::LEADER_EPOCH, &leader_epoch.to_be_bytes());
}

/// Gives all records of a batch the time of their append.
pub fn set_append_time(batch: &mut [u8], now: Timestamp) {
    let [high, low] = [batch[at::ATTRIBUTES], batch[at::ATTRIBUTES + 1]];
    let attributes = i16::from_be_bytes([high, low]) | bit::APPEND_TIME;
    put(batch, at::ATTRIBUTES, &attributes.to_be_bytes());
    set_max_timestamp(batch, now);
}

/// Corrects the greatest timestamp.
pub fn set_max_timestamp(batch: &mut [u8], timestamp: Timestamp) {
    put(batch, at::MAX_TIMESTAMP, &timestamp.to_be_bytes());
    let crc = crc_of(batch);
    put(batch, at::CRC, &crc.to_be_bytes());
}

/// The checksum of a whole batch by its bytes.
pub fn crc_of(batch: &[u8]) -> u32 {
    crc32c::crc32c(batch.get(at::ATTRIBUTES..).unwrap_or_default())
}

/// Refuses bytes that have no header, so that the others need not look.
pub(crate) fn whole(batch: &[u8]) -> Result<(), BatchError> {
    if batch.len() < HEADER { Err(BatchError::Short { size: batch.len() }) } else { Ok(()) }
}

pub(crate) fn put(batch: &mut [u8], at: usize, bytes: &[u8]) {
    batch[at..at + bytes.len()].copy_from_slice(bytes);
}
