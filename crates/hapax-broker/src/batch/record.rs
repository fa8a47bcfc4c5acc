//! Records, borrowed from the bytes of their batch.

use crate::batch::BatchError;
use crate::batch::varint::{take_i32, take_i64};

/// One record.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// All its bytes, length and all, as they may be copied into another batch with the same base.
    pub raw: &'a [u8],
    /// Its timestamp less the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Its offset less the batch's base offset.
    pub offset_delta: i32,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Headers<'a>,
}

/// The headers of a record, in order; a name may come twice.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'a> {
    left: u32,
    rest: &'a [u8],
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let name = take_bytes(&mut self.rest)??;
        let value = take_bytes(&mut self.rest)?;
        Some((name, value))
    }
}

/// The records of a batch, uncompressed, one after the other. Ends at the first that cannot be read.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    index: u32,
}

impl<'a> Records<'a> {
    /// Walks what follows the header, already decompressed.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, index: 0 }
    }

    fn fail(&mut self, fault: &'static str) -> BatchError {
        self.rest = &[];
        BatchError::Record { index: self.index, fault }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, BatchError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let before = self.rest;
        let mut rest = before;
        let Some(length) = take_i32(&mut rest) else { return Some(Err(self.fail("its length is no number"))) };
        let body = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
        let Some((body, after)) = body else {
            return Some(Err(self.fail("it is longer than its batch, or its length is negative")));
        };
        let Some(mut record) = parse(body) else {
            return Some(Err(self.fail("a field is cut short, or its length is wrong")));
        };
        record.raw = &before[..before.len() - after.len()];
        self.rest = after;
        self.index += 1;
        Some(Ok(record))
    }
}

/// Reads the fields of one record; every byte must be used.
#[inline]
fn parse(body: &[u8]) -> Option<Record<'_>> {
    let (_attributes, mut rest) = body.split_first()?;
    let timestamp_delta = take_i64(&mut rest)?;
    let offset_delta = take_i32(&mut rest)?;
    let key = take_bytes(&mut rest)?;
    let value = take_bytes(&mut rest)?;
    let count = u32::try_from(take_i32(&mut rest)?).ok()?;
    let headers = Headers { left: count, rest };
    for _ in 0..count {
        take_bytes(&mut rest)??;
        take_bytes(&mut rest)?;
    }
    rest.is_empty().then_some(Record { raw: body, timestamp_delta, offset_delta, key, value, headers })
}

/// Takes bytes with their length in front: `None` if they cannot be read, `Some(None)` for null.
#[inline]
fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = take_i32(rest)?;
    if length == -1 {
        return Some(None);
    }
    let (bytes, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = after;
    Some(Some(bytes))
}
