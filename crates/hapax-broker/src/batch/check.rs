//! What a batch from a client must be, before anything is done with it.

use crate::batch::codec::{Compression, Limits};
use crate::batch::{BatchError, HEADER, Header, Records, crc_of, uncompressed};
use crate::model::Timestamp;

/// Whether records may lack a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// They may.
    Optional,
    /// The topic keeps the last value per key: they must not.
    Required,
}

/// A batch that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Its header.
    pub header: Header,
    /// The greatest timestamp of its records, where they were walked and the header says another.
    pub corrected_timestamp: Option<Timestamp>,
}

/// Checks that `data` is exactly one sound batch of a client: format, length, checksum, counts, no marker, and every
/// record walked, unless they are compressed and nothing asks for their keys.
pub fn check(data: &[u8], keys: Keys, limits: Limits) -> Result<Checked, BatchError> {
    let header = Header::read(data)?;
    if header.size > data.len() {
        return Err(BatchError::Length { said: header.size as i64, found: data.len() });
    }
    if header.size < data.len() {
        return Err(BatchError::Several { extra: data.len() - header.size });
    }
    let found = crc_of(data);
    if found != header.crc {
        return Err(BatchError::Checksum { said: header.crc, found });
    }
    check_header(&header)?;
    let greatest = match (header.compression()?, keys) {
        (Compression::None, _) => walk(&header, &data[HEADER..], keys)?,
        (_, Keys::Required) => walk(&header, &uncompressed(&header, data, limits)?, keys)?,
        (_, Keys::Optional) => header.max_timestamp,
    };
    let corrected_timestamp = (greatest != header.max_timestamp && !header.is_append_time()).then_some(greatest);
    Ok(Checked { header, corrected_timestamp })
}

/// The fields that need no look at the records.
fn check_header(header: &Header) -> Result<(), BatchError> {
    let fail = |field, value, rule| Err(BatchError::Field { field, value, rule });
    if header.base_offset != 0 {
        return fail("base offset", header.base_offset, "a client sends 0");
    }
    if header.count <= 0 {
        return fail("record count", i64::from(header.count), "at least one record");
    }
    if header.last_offset_delta != header.count - 1 {
        return fail("last offset delta", i64::from(header.last_offset_delta), "one less than the record count");
    }
    if header.is_control() {
        return fail("attributes", i64::from(header.attributes), "only a broker writes markers");
    }
    if header.producer_id >= 0 && header.base_sequence < 0 {
        return fail("base sequence", i64::from(header.base_sequence), "a producer with an id counts its records");
    }
    if header.producer_id >= 0 && header.producer_epoch < 0 {
        return fail("producer epoch", i64::from(header.producer_epoch), "a producer with an id has an epoch");
    }
    header.compression()?;
    Ok(())
}

/// Walks all records: as many as the header says, offsets 0, 1, 2 …, nothing left over. The greatest timestamp.
pub fn walk(header: &Header, records: &[u8], keys: Keys) -> Result<Timestamp, BatchError> {
    let mut next = 0_i32;
    let mut greatest = i64::MIN;
    for record in Records::new(records) {
        let record = record?;
        let index = next as u32;
        if next == header.count {
            return Err(BatchError::Record { index, fault: "there are more records than the header says" });
        }
        if record.offset_delta != next {
            return Err(BatchError::Record { index, fault: "its offset does not follow the one before" });
        }
        if keys == Keys::Required && record.key.is_none() {
            return Err(BatchError::NullKey { index });
        }
        greatest = greatest.max(record.timestamp_delta);
        next += 1;
    }
    if next != header.count {
        return Err(BatchError::Record { index: next as u32, fault: "there are fewer records than the header says" });
    }
    Ok(header.timestamp(greatest))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
