//! A walk over bytes of strangers that never panics and never allocates.

use crate::wire::WireError;

/// What is left of a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (head, tail) = self.bytes.split_at_checked(count).ok_or(WireError::TooShort)?;
        self.bytes = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, tail) = self.bytes.split_first_chunk::<N>().ok_or(WireError::TooShort)?;
        self.bytes = tail;
        Ok(*head)
    }

    pub(crate) fn i8(&mut self) -> Result<i8, WireError> {
        self.array().map(i8::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, WireError> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, WireError> {
        self.array().map(i32::from_be_bytes)
    }

    /// An unsigned number, seven bits per byte.
    pub(crate) fn varint(&mut self) -> Result<u32, WireError> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| WireError::Varint);
            }
        }
        Err(WireError::Varint)
    }

    /// A section of tagged fields, skipped; `left` is how many more the request may have.
    pub(crate) fn tags(&mut self, left: &mut usize) -> Result<(), WireError> {
        let count = self.varint()?;
        *left = left.checked_sub(count as usize).ok_or(WireError::Tags(MAX_TAGS))?;
        for _ in 0..count {
            self.varint()?;
            let size = self.varint()?;
            self.take(size as usize)?;
        }
        Ok(())
    }
}

/// Tagged fields in one request, header and all structures together. Kafka itself defines fewer than ten anywhere.
pub(crate) const MAX_TAGS: usize = 1_000;
