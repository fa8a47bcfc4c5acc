//! Writes record batches (magic 2), with every field of the header in the caller's hands.

use bytes::{BufMut, Bytes, BytesMut};

/// A record to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRecord {
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// Its headers, in order; names may repeat.
    pub headers: Vec<(String, Option<Bytes>)>,
    /// Milliseconds since 1970.
    pub timestamp: i64,
}

impl NewRecord {
    /// A record with a value and the time now.
    #[must_use]
    pub fn of(value: impl Into<Bytes>) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let timestamp = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        Self { value: Some(value.into()), timestamp, ..Self::default() }
    }

    /// The same with a key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// What a batch says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// -1: a producer that is not idempotent.
    pub producer_id: i64,
    /// The producer's epoch, or -1.
    pub epoch: i16,
    /// The sequence of its first record, or -1.
    pub first_sequence: i32,
    /// The attribute bits: 0 for a plain batch; `0x10` transactional, `0x20` control.
    pub attributes: i16,
}

impl BatchHeader {
    /// Of a producer that is not idempotent.
    pub const PLAIN: Self = Self { producer_id: -1, epoch: -1, first_sequence: -1, attributes: 0 };
}

/// Where in a batch the CRC begins to count.
const CRC_FROM: usize = 21;

/// The bytes of a batch: base offset 0, no leader epoch, uncompressed. The same input gives the same bytes.
#[must_use]
pub fn encode(header: BatchHeader, records: &[NewRecord]) -> Bytes {
    let count = i32::try_from(records.len()).unwrap_or(i32::MAX);
    let first = records.first().map_or(0, |record| record.timestamp);
    let greatest = records.iter().map(|record| record.timestamp).max().unwrap_or(0);
    let mut out = BytesMut::new();
    out.put_i64(0);
    out.put_i32(0);
    out.put_i32(-1);
    out.put_i8(2);
    out.put_u32(0);
    out.put_i16(header.attributes);
    out.put_i32(count.saturating_sub(1));
    out.put_i64(first);
    out.put_i64(greatest);
    out.put_i64(header.producer_id);
    out.put_i16(header.epoch);
    out.put_i32(header.first_sequence);
    out.put_i32(count);
    let mut one = BytesMut::new();
    for (delta, record) in (0_i64..).zip(records) {
        one.clear();
        put_record(&mut one, delta, record.timestamp - first, record);
        put_length(&mut out, one.len());
        out.put_slice(&one);
    }
    let length = i32::try_from(out.len() - 12).unwrap_or(i32::MAX);
    out[8..12].copy_from_slice(&length.to_be_bytes());
    seal(&mut out);
    out.freeze()
}

/// Writes the CRC of a whole batch anew, for who has changed bytes of it. Shorter bytes are no batch and stay as they are.
pub fn seal(batch: &mut [u8]) {
    if batch.len() >= CRC_FROM {
        let sum = crc32c::crc32c(&batch[CRC_FROM..]);
        batch[CRC_FROM - 4..CRC_FROM].copy_from_slice(&sum.to_be_bytes());
    }
}

fn put_record(out: &mut BytesMut, delta: i64, later: i64, record: &NewRecord) {
    out.put_i8(0);
    put_varint(out, later);
    put_varint(out, delta);
    put_bytes(out, record.key.as_deref());
    put_bytes(out, record.value.as_deref());
    put_length(out, record.headers.len());
    for (name, value) in &record.headers {
        put_bytes(out, Some(name.as_bytes()));
        put_bytes(out, value.as_deref());
    }
}

fn put_bytes(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_length(out, bytes.len());
            out.put_slice(bytes);
        }
    }
}

fn put_length(out: &mut BytesMut, length: usize) {
    put_varint(out, i64::try_from(length).unwrap_or(i64::MAX));
}

/// Zigzag, seven bits at a time.
fn put_varint(out: &mut BytesMut, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.put_u8((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}
