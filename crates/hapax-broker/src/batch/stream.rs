//! Compressed records, walked as they come out of their codec.
//!
//! Reads: wire bytes, never trusted. Writes: what comes out, to whoever wants it too. Invariant: no more than a piece is held
//! here, however much comes out; the codec holds what `working_memory` says. Not here: records that lie in memory (`record`).

use std::io::{Read, Write};
use std::ops::ControlFlow;

use crate::batch::codec::{Compression, Limits, bomb, decoder, undecodable};
use crate::batch::varint::zigzag;
use crate::batch::{BatchError, HEADER, Header};

/// Bytes that come out at once.
const PIECE: usize = 16 << 10;

/// What is seen of a record on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Which record of the batch, from 0.
    pub(crate) index: u32,
    /// Its timestamp less the batch's base timestamp.
    pub(crate) timestamp_delta: i64,
    /// Its offset less the batch's base offset.
    pub(crate) offset_delta: i32,
    /// Whether it has a key.
    pub(crate) has_key: bool,
}

/// Walks the records of a whole batch, compressed or not, until they end or `look` breaks off. `copy` gets all that came out.
pub(crate) fn pass(
    header: &Header,
    batch: &[u8],
    limits: Limits,
    copy: Option<&mut dyn Write>,
    mut look: impl FnMut(Passed) -> Result<ControlFlow<()>, BatchError>,
) -> Result<(), BatchError> {
    let packed = batch.get(HEADER..).ok_or(BatchError::Short { size: batch.len() })?;
    let compression = header.compression()?;
    let limit = if compression == Compression::None { packed.len() } else { limits.of(packed.len()) };
    let undone = |error: &std::io::Error| undecodable(compression, packed.len(), limit, error);
    let reader = decoder(compression, packed, limit).map_err(|error| undone(&error))?;
    let out = Out { compression, packed: packed.len(), limit };
    let mut stream = Stream { reader, out, copy, piece: vec![0; PIECE], at: 0, end: 0, before: 0, index: 0 };
    while stream.more()? {
        let record = stream.record()?;
        stream.index += 1;
        if look(record)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// How much may come out of what.
#[derive(Clone, Copy)]
struct Out {
    compression: Compression,
    packed: usize,
    limit: usize,
}

struct Stream<'a, 'b> {
    reader: Box<dyn Read + 'a>,
    out: Out,
    copy: Option<&'b mut (dyn Write + 'b)>,
    piece: Vec<u8>,
    at: usize,
    end: usize,
    /// Bytes of pieces before this one.
    before: usize,
    index: u32,
}

impl Stream<'_, '_> {
    /// Whether anything comes; what was before is used up.
    fn more(&mut self) -> Result<bool, BatchError> {
        if self.at < self.end {
            return Ok(true);
        }
        self.before += self.end;
        (self.at, self.end) = (0, 0);
        let Out { compression, packed, limit } = self.out;
        let count = loop {
            match self.reader.read(&mut self.piece) {
                Ok(count) => break count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(undecodable(compression, packed, limit, &error)),
            }
        };
        self.end = count;
        if self.before + count > limit {
            return Err(bomb(compression, packed, limit));
        }
        if let Some(copy) = &mut self.copy {
            let refused =
                |error: std::io::Error| BatchError::Corrupt { compression: "next", reason: error.to_string() };
            copy.write_all(&self.piece[..count]).map_err(refused)?;
        }
        Ok(count > 0)
    }

    fn fail(&self, fault: &'static str) -> BatchError {
        BatchError::Record { index: self.index, fault }
    }

    fn position(&self) -> usize {
        self.before + self.at
    }

    fn byte(&mut self) -> Result<u8, BatchError> {
        if !self.more()? {
            return Err(self.fail("it is longer than its batch"));
        }
        let byte = self.piece[self.at];
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self, longest: u32) -> Result<u64, BatchError> {
        let mut number = 0_u64;
        for index in 0..longest {
            let byte = self.byte()?;
            // The tenth byte has room for one bit only.
            if index == 9 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.fail("a number is too long"))
    }

    fn long(&mut self) -> Result<i64, BatchError> {
        self.number(10).map(zigzag)
    }

    fn int(&mut self) -> Result<i32, BatchError> {
        let number = u32::try_from(self.number(5)?).map_err(|_| self.fail("a number is too large"))?;
        Ok((number >> 1) as i32 ^ -((number & 1) as i32))
    }

    /// Passes over bytes with their length in front; false: there are none, which `null` must allow.
    fn bytes(&mut self, last: usize, null: Null) -> Result<bool, BatchError> {
        let length = self.int()?;
        if length == -1 && null == Null::Allowed {
            return Ok(false);
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= last.saturating_sub(self.position()));
        let Some(mut left) = length else {
            return Err(self.fail("a field is longer than its record, or its length is wrong"));
        };
        while left > 0 {
            if !self.more()? {
                return Err(self.fail("it is longer than its batch"));
            }
            let step = left.min(self.end - self.at);
            self.at += step;
            left -= step;
        }
        Ok(true)
    }

    /// Passes over one record; every byte of it must be used.
    fn record(&mut self) -> Result<Passed, BatchError> {
        let length = self.int()?;
        let Ok(length) = usize::try_from(length) else { return Err(self.fail("its length is negative")) };
        let last = self.position().saturating_add(length);
        let _attributes = self.byte()?;
        let timestamp_delta = self.long()?;
        let offset_delta = self.int()?;
        let has_key = self.bytes(last, Null::Allowed)?;
        self.bytes(last, Null::Allowed)?;
        let headers = self.int()?;
        if headers < 0 {
            return Err(self.fail("it has a negative number of headers"));
        }
        for _ in 0..headers {
            self.bytes(last, Null::Refused)?;
            self.bytes(last, Null::Allowed)?;
        }
        if self.position() != last {
            return Err(self.fail("its length is not that of its fields"));
        }
        Ok(Passed { index: self.index, timestamp_delta, offset_delta, has_key })
    }
}

/// Whether bytes may be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Null {
    Allowed,
    Refused,
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
