//! A batch with its records compressed otherwise, or some of them left out.

use std::borrow::Cow;

use bytes::Bytes;

use crate::batch::codec::{Compression, Limits, compress, decompress};
use crate::batch::header::{BEFORE_LENGTH, at, bit};
use crate::batch::stamp::{put, whole};
use crate::batch::{BatchError, HEADER, Header, crc_of};

/// The records of a batch without compression; borrowed where there was none.
pub fn uncompressed<'a>(header: &Header, batch: &'a [u8], limits: Limits) -> Result<Cow<'a, [u8]>, BatchError> {
    whole(batch)?;
    let records = &batch[HEADER..];
    let compression = header.compression()?;
    if compression == Compression::None {
        return Ok(Cow::Borrowed(records));
    }
    Ok(Cow::Owned(decompress(compression, records, limits)?))
}

/// The same batch under another compression, with a checksum of its own.
pub fn rewrite(batch: &[u8], to: Compression, limits: Limits) -> Result<Bytes, BatchError> {
    let header = Header::read(batch)?;
    assemble(&header, to, &uncompressed(&header, batch, limits)?)
}

/// A batch of these records under this header, whose `size`, `crc` and compression are made anew.
pub fn assemble(header: &Header, compression: Compression, records: &[u8]) -> Result<Bytes, BatchError> {
    let body =
        if compression == Compression::None { Cow::Borrowed(records) } else { compress(compression, records)?.into() };
    let mut out = Vec::with_capacity(HEADER + body.len());
    out.resize(HEADER, 0);
    out.extend_from_slice(&body);
    seal(header, compression, out)
}

/// A batch of bytes that have room for a header in front.
pub(crate) fn seal(header: &Header, compression: Compression, mut out: Vec<u8>) -> Result<Bytes, BatchError> {
    whole(&out)?;
    let size = out.len();
    let length = i32::try_from(size - BEFORE_LENGTH).map_err(|_| BatchError::Length { said: i64::MAX, found: size })?;
    let attributes = (header.attributes & !bit::COMPRESSION) | compression.id();
    put(&mut out, at::BASE_OFFSET, &header.base_offset.to_be_bytes());
    put(&mut out, at::LENGTH, &length.to_be_bytes());
    put(&mut out, at::LEADER_EPOCH, &header.leader_epoch.to_be_bytes());
    put(&mut out, at::MAGIC, &[2]);
    put(&mut out, at::ATTRIBUTES, &attributes.to_be_bytes());
    put(&mut out, at::LAST_OFFSET_DELTA, &header.last_offset_delta.to_be_bytes());
    put(&mut out, at::BASE_TIMESTAMP, &header.base_timestamp.to_be_bytes());
    put(&mut out, at::MAX_TIMESTAMP, &header.max_timestamp.to_be_bytes());
    put(&mut out, at::PRODUCER_ID, &header.producer_id.to_be_bytes());
    put(&mut out, at::PRODUCER_EPOCH, &header.producer_epoch.to_be_bytes());
    put(&mut out, at::BASE_SEQUENCE, &header.base_sequence.to_be_bytes());
    put(&mut out, at::COUNT, &header.count.to_be_bytes());
    let crc = crc_of(&out);
    put(&mut out, at::CRC, &crc.to_be_bytes());
    Ok(out.into())
}
