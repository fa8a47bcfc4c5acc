//! Reads what Fetch answers: batches end to end, the last one perhaps cut off.
//!
//! Invariant: never panics and never allocates more than the bytes justify, whatever they are.

use bytes::{Buf, Bytes};

use super::compression::unpack;

/// A batch as it was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedBatch {
    /// Offset of its first record, at the time it was written.
    pub base_offset: i64,
    /// The last offset it stands for.
    pub last_offset: i64,
    /// The epoch of the leader that wrote it.
    pub leader_epoch: i32,
    /// The attribute bits.
    pub attributes: i16,
    /// The greatest timestamp.
    pub max_timestamp: i64,
    /// Who wrote it, or -1.
    pub producer_id: i64,
    /// The producer's epoch, or -1.
    pub epoch: i16,
    /// The sequence of its first record, or -1.
    pub first_sequence: i32,
    /// Its records.
    pub records: Vec<FetchedRecord>,
}

impl FetchedBatch {
    /// Whether it is a marker and not data.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.attributes & 0x20 != 0
    }
}

/// A record as it was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedRecord {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value.
    pub value: Option<Bytes>,
    /// Its headers, in order; names may repeat.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

const HEADER: usize = 61;

/// All whole batches. A last one that is cut off is left out, as servers may cut.
///
/// # Errors
/// If a whole batch is not one: what is wrong, and where.
pub fn decode(mut bytes: Bytes) -> Result<Vec<FetchedBatch>, String> {
    let mut batches = Vec::new();
    while let Some(length) = whole(&bytes) {
        let batch = bytes.split_to(length);
        let at = batches.len();
        batches.push(decode_batch(batch).map_err(|reason| format!("batch {at}: {reason}"))?);
    }
    Ok(batches)
}

/// The length of the first batch, if it is all there.
fn whole(bytes: &Bytes) -> Option<usize> {
    let length = bytes.get(8..12).map(|mut length| length.get_i32())?;
    let length = usize::try_from(length).ok()?.checked_add(12)?;
    (length <= bytes.len()).then_some(length)
}

fn decode_batch(batch: Bytes) -> Result<FetchedBatch, String> {
    if batch.len() < HEADER {
        return Err(format!("{} bytes are no batch", batch.len()));
    }
    let sum = crc32c::crc32c(&batch[21..]);
    let mut head = batch.slice(..HEADER);
    let base_offset = head.get_i64();
    head.advance(4);
    let leader_epoch = head.get_i32();
    let (magic, crc, attributes, last_delta) = (head.get_i8(), head.get_u32(), head.get_i16(), head.get_i32());
    let (first_timestamp, max_timestamp) = (head.get_i64(), head.get_i64());
    let (producer_id, epoch, first_sequence, count) = (head.get_i64(), head.get_i16(), head.get_i32(), head.get_i32());
    if magic != 2 || crc != sum {
        return Err(format!("magic {magic}, crc {crc:08x}, and the bytes give {sum:08x}"));
    }
    let packed = &batch[HEADER..];
    let body = match attributes & 7 {
        0 => batch.slice(HEADER..),
        way => Bytes::from(unpack(attributes, packed).ok_or_else(|| format!("packed by way {way}, and is not"))?),
    };
    let times = Times { first: first_timestamp, all: (attributes & 8 != 0).then_some(max_timestamp) };
    let records = decode_records(body, count, base_offset, times)?;
    let last_offset = base_offset.saturating_add(i64::from(last_delta));
    let (max_timestamp, leader_epoch) = (max_timestamp, leader_epoch);
    Ok(FetchedBatch {
        base_offset,
        last_offset,
        leader_epoch,
        attributes,
        max_timestamp,
        producer_id,
        epoch,
        first_sequence,
        records,
    })
}

#[derive(Clone, Copy)]
struct Times {
    first: i64,
    /// All records have this one: the topic keeps the time of append.
    all: Option<i64>,
}

fn decode_records(mut body: Bytes, count: i32, base: i64, times: Times) -> Result<Vec<FetchedRecord>, String> {
    let count = usize::try_from(count).map_err(|_| format!("{count} records"))?;
    let mut records = Vec::with_capacity(count.min(body.len() / 7 + 1));
    for index in 0..count {
        let record = take(&mut body).flatten().and_then(|record| decode_record(record, base, times));
        records.push(record.ok_or_else(|| format!("record {index} of {count} cannot be read"))?);
    }
    if body.is_empty() { Ok(records) } else { Err(format!("{} bytes after {count} records", body.len())) }
}

fn decode_record(mut record: Bytes, base: i64, times: Times) -> Option<FetchedRecord> {
    if record.is_empty() {
        return None;
    }
    record.advance(1);
    let later = varint(&mut record)?;
    let offset = base.checked_add(varint(&mut record)?)?;
    let (key, value) = (take(&mut record)?, take(&mut record)?);
    let count = usize::try_from(varint(&mut record)?).ok()?;
    let mut headers = Vec::with_capacity(count.min(record.len() / 2 + 1));
    for _ in 0..count {
        let name = take(&mut record)??;
        headers.push((name, take(&mut record)?));
    }
    let timestamp = match times.all {
        Some(time) => time,
        None => times.first.checked_add(later)?,
    };
    record.is_empty().then_some(FetchedRecord { offset, timestamp, key, value, headers })
}

/// Bytes with their length in front; -1 is none. The outer `None`: they are not there.
fn take(bytes: &mut Bytes) -> Option<Option<Bytes>> {
    match varint(bytes)? {
        -1 => Some(None),
        length => {
            let length = usize::try_from(length).ok().filter(|length| *length <= bytes.len())?;
            Some(Some(bytes.split_to(length)))
        }
    }
}

fn varint(bytes: &mut Bytes) -> Option<i64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        if bytes.is_empty() {
            return None;
        }
        let byte = bytes.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    None
}
