//! The header of a record batch: 61 bytes, of which the first 21 are outside the checksum.

use crate::batch::{BatchError, Compression};
use crate::model::{Offset, Timestamp};

/// Bytes of a header.
pub const HEADER: usize = 61;

/// Bytes before those that the length field counts.
pub(crate) const BEFORE_LENGTH: usize = 12;

/// Where each field lies.
pub(crate) mod at {
    pub(crate) const BASE_OFFSET: usize = 0;
    pub(crate) const LENGTH: usize = 8;
    pub(crate) const LEADER_EPOCH: usize = 12;
    pub(crate) const MAGIC: usize = 16;
    pub(crate) const CRC: usize = 17;
    pub(crate) const ATTRIBUTES: usize = 21;
    pub(crate) const LAST_OFFSET_DELTA: usize = 23;
    pub(crate) const BASE_TIMESTAMP: usize = 27;
    pub(crate) const MAX_TIMESTAMP: usize = 35;
    pub(crate) const PRODUCER_ID: usize = 43;
    pub(crate) const PRODUCER_EPOCH: usize = 51;
    pub(crate) const BASE_SEQUENCE: usize = 53;
    pub(crate) const COUNT: usize = 57;
}

/// Bits of the attributes.
pub(crate) mod bit {
    pub(crate) const COMPRESSION: i16 = 0x07;
    pub(crate) const APPEND_TIME: i16 = 0x08;
    pub(crate) const TRANSACTIONAL: i16 = 0x10;
    pub(crate) const CONTROL: i16 = 0x20;
}

/// A batch's header, read but for its magic, which is always 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The first offset; 0 from a client.
    pub base_offset: Offset,
    /// Bytes of the whole batch, header and all.
    pub size: usize,
    /// Under which leader it was appended; outside the checksum.
    pub leader_epoch: i32,
    /// CRC-32C over everything after it.
    pub crc: u32,
    /// Compression, kind of timestamp, transactional, control.
    pub attributes: i16,
    /// The last offset less the first; compaction keeps it.
    pub last_offset_delta: i32,
    /// What the records' timestamps are relative to.
    pub base_timestamp: Timestamp,
    /// The greatest timestamp, or the time of append.
    pub max_timestamp: Timestamp,
    /// Who wrote it, or -1.
    pub producer_id: i64,
    /// The producer's epoch, or -1.
    pub producer_epoch: i16,
    /// The first record's sequence, or -1.
    pub base_sequence: i32,
    /// Records.
    pub count: i32,
}

impl Header {
    /// Reads the header at the start of `bytes`. What follows it is not looked at; that `size` bytes are there is not known.
    pub fn read(bytes: &[u8]) -> Result<Self, BatchError> {
        let Some(head) = bytes.first_chunk::<HEADER>() else { return Err(BatchError::Short { size: bytes.len() }) };
        let magic = i8::from_be_bytes(array(head, at::MAGIC));
        if magic != 2 {
            return Err(BatchError::Magic { magic });
        }
        let length = i32::from_be_bytes(array(head, at::LENGTH));
        let size = usize::try_from(length).ok().map(|length| length.saturating_add(BEFORE_LENGTH));
        let Some(size) = size.filter(|size| *size >= HEADER) else {
            return Err(BatchError::Length { said: i64::from(length) + BEFORE_LENGTH as i64, found: bytes.len() });
        };
        Ok(Self {
            base_offset: i64::from_be_bytes(array(head, at::BASE_OFFSET)),
            size,
            leader_epoch: i32::from_be_bytes(array(head, at::LEADER_EPOCH)),
            crc: u32::from_be_bytes(array(head, at::CRC)),
            attributes: i16::from_be_bytes(array(head, at::ATTRIBUTES)),
            last_offset_delta: i32::from_be_bytes(array(head, at::LAST_OFFSET_DELTA)),
            base_timestamp: i64::from_be_bytes(array(head, at::BASE_TIMESTAMP)),
            max_timestamp: i64::from_be_bytes(array(head, at::MAX_TIMESTAMP)),
            producer_id: i64::from_be_bytes(array(head, at::PRODUCER_ID)),
            producer_epoch: i16::from_be_bytes(array(head, at::PRODUCER_EPOCH)),
            base_sequence: i32::from_be_bytes(array(head, at::BASE_SEQUENCE)),
            count: i32::from_be_bytes(array(head, at::COUNT)),
        })
    }

    /// The last offset it stands for.
    pub fn last_offset(&self) -> Offset {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// The last record's sequence: sequences wrap at 2^31, inside a batch too.
    pub fn last_sequence(&self) -> i32 {
        crate::rules::sequence::advance(self.base_sequence, self.last_offset_delta)
    }

    /// How its records are compressed.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        Compression::of(self.attributes & bit::COMPRESSION)
    }

    /// Whether every record has the batch's greatest timestamp as its own.
    pub fn is_append_time(&self) -> bool {
        self.attributes & bit::APPEND_TIME != 0
    }

    /// Whether it belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & bit::TRANSACTIONAL != 0
    }

    /// Whether it is a marker and no data.
    pub fn is_control(&self) -> bool {
        self.attributes & bit::CONTROL != 0
    }

    /// A record's own timestamp.
    pub fn timestamp(&self, delta: i64) -> Timestamp {
        if self.is_append_time() { self.max_timestamp } else { self.base_timestamp.wrapping_add(delta) }
    }
}

/// The bytes of one field.
fn array<const N: usize>(head: &[u8; HEADER], at: usize) -> [u8; N] {
    *head[at..].first_chunk().expect("every field lies inside the header")
}
