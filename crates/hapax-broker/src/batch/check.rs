//! What a batch from a client must be, before anything is done with it.

use std::cell::Cell;
use std::io::{self, Write};
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::batch::codec::{Compression, Encoder, Limits};
use crate::batch::rewrite::seal;
use crate::batch::{BatchError, HEADER, Header, Passed, Records, crc_of, pass};
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
/// record walked. What is compressed is undone piece by piece, and nothing of it is kept.
pub fn check(data: &[u8], keys: Keys, limits: Limits) -> Result<Checked, BatchError> {
    let header = sound(data)?;
    let greatest = match header.compression()? {
        Compression::None => walk(&header, &data[HEADER..], keys)?,
        Compression::Gzip | Compression::Snappy | Compression::Lz4 | Compression::Zstd => {
            walk_stream(&header, data, keys, limits, None)?
        }
    };
    Ok(judged(header, greatest))
}

/// Checks a batch as [`check`] does and compresses its records otherwise, in one go. A batch that then has more than
/// `size_max` bytes is refused before it is held.
pub fn convert(
    data: &[u8],
    keys: Keys,
    limits: Limits,
    (to, level): (Compression, Option<i32>),
    size_max: usize,
) -> Result<(Bytes, Checked), BatchError> {
    let header = sound(data)?;
    let is_over = Cell::new(false);
    let too_large = |error| if is_over.get() { BatchError::Large { limit: size_max } } else { error };
    let failed = |error: io::Error| BatchError::Corrupt { compression: to.name(), reason: error.to_string() };
    let body = Capped { out: vec![0; HEADER], max: size_max, is_over: &is_over };
    let mut encoder = Encoder::new(to, level, body).map_err(|error| too_large(failed(error)))?;
    let greatest = walk_stream(&header, data, keys, limits, Some(&mut encoder)).map_err(too_large)?;
    let body = encoder.finish().map_err(|error| too_large(failed(error)))?;
    let bytes = seal(&header, to, body.out)?;
    let header = Header::read(&bytes)?;
    Ok((bytes, judged(header, greatest)))
}

/// Bytes up to a limit; the first write beyond it fails.
struct Capped<'a> {
    out: Vec<u8>,
    max: usize,
    is_over: &'a Cell<bool>,
}

impl Write for Capped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.out.len() + bytes.len() > self.max {
            self.is_over.set(true);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One whole batch with its own checksum, and fields that can be.
fn sound(data: &[u8]) -> Result<Header, BatchError> {
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
    Ok(header)
}

fn judged(header: Header, greatest: Timestamp) -> Checked {
    let corrected_timestamp = (greatest != header.max_timestamp && !header.is_append_time()).then_some(greatest);
    Checked { header, corrected_timestamp }
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
    let mut walker = Walker::new(header, keys);
    for (index, record) in (0..).zip(Records::new(records)) {
        let record = record?;
        let (timestamp_delta, offset_delta) = (record.timestamp_delta, record.offset_delta);
        walker.see(Passed { index, timestamp_delta, offset_delta, has_key: record.key.is_some() })?;
    }
    walker.end()
}

/// The same, as they come out of their codec.
fn walk_stream(
    header: &Header,
    data: &[u8],
    keys: Keys,
    limits: Limits,
    copy: Option<&mut dyn Write>,
) -> Result<Timestamp, BatchError> {
    let mut walker = Walker::new(header, keys);
    pass(header, data, limits, copy, |record| walker.see(record).map(ControlFlow::Continue))?;
    walker.end()
}

/// What must hold from one record to the next.
struct Walker<'a> {
    header: &'a Header,
    keys: Keys,
    next: i32,
    greatest: i64,
}

impl<'a> Walker<'a> {
    fn new(header: &'a Header, keys: Keys) -> Self {
        Self { header, keys, next: 0, greatest: i64::MIN }
    }

    #[inline]
    fn see(&mut self, record: Passed) -> Result<(), BatchError> {
        let index = record.index;
        if self.next == self.header.count {
            return Err(BatchError::Record { index, fault: "there are more records than the header says" });
        }
        if record.offset_delta != self.next {
            return Err(BatchError::Record { index, fault: "its offset does not follow the one before" });
        }
        if self.keys == Keys::Required && !record.has_key {
            return Err(BatchError::NullKey { index });
        }
        self.greatest = self.greatest.max(record.timestamp_delta);
        self.next += 1;
        Ok(())
    }

    fn end(self) -> Result<Timestamp, BatchError> {
        if self.next != self.header.count {
            let (index, fault) = (self.next as u32, "there are fewer records than the header says");
            return Err(BatchError::Record { index, fault });
        }
        Ok(self.header.timestamp(self.greatest))
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
