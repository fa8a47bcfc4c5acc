//! Batches made by ourselves: by `hapax topic write`, by tests.

use bytes::Bytes;

use crate::batch::header::bit;
use crate::batch::varint::{put_i32, put_i64};
use crate::batch::{BatchError, Compression, Header, assemble};
use crate::model::Timestamp;

/// Collects records for one batch.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    header: Header,
    compression: Compression,
    records: Vec<u8>,
    scratch: Vec<u8>,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        let header = Header {
            base_offset: 0,
            size: 0,
            leader_epoch: -1,
            crc: 0,
            attributes: 0,
            last_offset_delta: -1,
            base_timestamp: -1,
            max_timestamp: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: 0,
        };
        Self { header, compression: Compression::None, records: Vec::new(), scratch: Vec::new() }
    }
}

impl BatchBuilder {
    /// A batch of a producer without id, not compressed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says who writes it, and the sequence of its first record.
    #[must_use]
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    /// Compresses the records.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Makes it part of a transaction.
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.header.attributes |= bit::TRANSACTIONAL;
        self
    }

    /// Adds a record.
    #[must_use]
    pub fn record(self, timestamp: Timestamp, key: Option<&[u8]>, value: Option<&[u8]>) -> Self {
        self.record_with(timestamp, key, value, &[])
    }

    /// Adds a record with headers.
    #[must_use]
    pub fn record_with(
        mut self,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> Self {
        self.push(timestamp, key, value, headers);
        self
    }

    /// Adds a record with headers.
    pub fn push(
        &mut self,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        if self.header.count == 0 {
            self.header.base_timestamp = timestamp;
            self.header.max_timestamp = timestamp;
        }
        self.header.max_timestamp = self.header.max_timestamp.max(timestamp);
        let mut body = std::mem::take(&mut self.scratch);
        body.clear();
        body.push(0);
        put_i64(&mut body, timestamp.wrapping_sub(self.header.base_timestamp));
        put_i32(&mut body, self.header.count);
        put_bytes(&mut body, key);
        put_bytes(&mut body, value);
        put_i32(&mut body, headers.len() as i32);
        for (name, value) in headers {
            put_bytes(&mut body, Some(name));
            put_bytes(&mut body, *value);
        }
        put_i32(&mut self.records, body.len() as i32);
        self.records.extend_from_slice(&body);
        self.scratch = body;
        self.header.count += 1;
        self.header.last_offset_delta += 1;
    }

    /// Records so far.
    pub fn count(&self) -> i32 {
        self.header.count
    }

    /// Bytes of records so far, before compression.
    pub fn bytes(&self) -> usize {
        self.records.len()
    }

    /// The batch.
    pub fn build(&self) -> Result<Bytes, BatchError> {
        assemble(&self.header, self.compression, &self.records)
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_i32(out, -1),
        Some(bytes) => {
            put_i32(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
    }
}
