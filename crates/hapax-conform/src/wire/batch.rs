//! Record batches made by hand, so that every byte can be wrong on purpose.

use std::io::Write as _;

use bytes::{BufMut as _, Bytes, BytesMut};

/// The time of all records.
pub(crate) const TIME: i64 = 1_700_000_000_000;

/// What a batch says of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) sequence: i32,
    pub(crate) count: i32,
    pub(crate) attributes: i16,
    pub(crate) magic: i8,
    pub(crate) first_time: i64,
}

impl Batch {
    /// Of a producer without idempotence.
    pub(crate) const fn plain(count: i32) -> Self {
        Self { producer_id: -1, epoch: -1, sequence: -1, count, attributes: 0, magic: 2, first_time: TIME }
    }

    /// Of a producer with idempotence.
    pub(crate) const fn idempotent(producer_id: i64, epoch: i16, sequence: i32) -> Self {
        Self { producer_id, epoch, sequence, ..Self::plain(3) }
    }

    /// The bytes: `count` records, a second apart.
    pub(crate) fn bytes(self) -> Bytes {
        self.around(&self.records(b"val"))
    }

    /// The records alone.
    pub(crate) fn records(self, value: &[u8]) -> BytesMut {
        let mut records = BytesMut::new();
        for at in 0..self.count {
            let mut record = BytesMut::new();
            record.put_i8(0);
            varint(&mut record, i64::from(at) * 1000);
            varint(&mut record, i64::from(at));
            for part in [&b"key"[..], value] {
                varint(&mut record, i64::try_from(part.len()).expect("a short text"));
                record.put_slice(part);
            }
            varint(&mut record, 0);
            varint(&mut records, i64::try_from(record.len()).expect("a short record"));
            records.put_slice(&record);
        }
        records
    }

    /// The batch around any bytes that stand for its records.
    pub(crate) fn around(self, records: &[u8]) -> Bytes {
        let mut body = BytesMut::new();
        body.put_i16(self.attributes);
        body.put_i32(self.count - 1);
        body.put_i64(self.first_time);
        body.put_i64(self.first_time + i64::from(self.count - 1) * 1000);
        body.put_i64(self.producer_id);
        body.put_i16(self.epoch);
        body.put_i32(self.sequence);
        body.put_i32(self.count);
        body.put_slice(records);
        let mut batch = BytesMut::new();
        batch.put_i64(0);
        batch.put_i32(i32::try_from(body.len() + 9).expect("a short batch"));
        batch.put_i32(-1);
        batch.put_i8(self.magic);
        batch.put_u32(crc32c::crc32c(&body));
        batch.put_slice(&body);
        batch.freeze()
    }
}

/// Records as gzip has them.
pub(crate) fn gzip(records: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(records).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn varint(to: &mut BytesMut, value: i64) {
    let mut rest = (value << 1) ^ (value >> 63);
    while rest & !0x7f != 0 {
        to.put_u8(u8::try_from(rest & 0x7f).expect("seven bits") | 0x80);
        rest >>= 7;
    }
    to.put_u8(u8::try_from(rest).expect("seven bits"));
}
