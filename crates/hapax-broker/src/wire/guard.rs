//! The guard before the codec: walks a request by its shape and refuses what its bytes cannot hold.
//!
//! The codec makes room for as many elements as a count claims, so a frame of twelve bytes could ask for 24 GiB. Here nothing
//! is allocated. Invariant: what passes makes the codec allocate no more than a bounded multiple of the frame.

use crate::wire::WireError;
use crate::wire::cursor::{Cursor, MAX_TAGS};
use crate::wire::shape::{Field, Kind, Shape};

/// Elements of all lists of one request together: in memory each is larger than on the wire.
pub(crate) const MAX_ELEMENTS: usize = 100_000;

/// Walks a body; gives how many bytes come after it.
pub(crate) fn check(shape: &Shape, version: i16, body: &[u8]) -> Result<usize, WireError> {
    let mut walk = Walk {
        cursor: Cursor::new(body),
        version,
        compact: version >= shape.flexible,
        tags_left: MAX_TAGS,
        elements_left: MAX_ELEMENTS,
    };
    walk.structure(shape.fields)?;
    Ok(walk.cursor.remaining())
}

struct Walk<'a> {
    cursor: Cursor<'a>,
    version: i16,
    compact: bool,
    tags_left: usize,
    elements_left: usize,
}

impl Walk<'_> {
    fn structure(&mut self, fields: &'static [Field]) -> Result<(), WireError> {
        let version = self.version;
        for field in fields.iter().filter(|field| field.tag.is_none() && has(field, version)) {
            self.value(&field.kind)?;
        }
        if self.compact { self.tags(fields) } else { Ok(()) }
    }

    fn value(&mut self, kind: &'static Kind) -> Result<(), WireError> {
        match kind {
            Kind::Fixed(size) => self.cursor.take(*size).map(drop),
            Kind::Text => {
                let length = if self.compact { self.compact_length()? } else { self.cursor.i16()?.into() };
                self.skip(length)
            }
            Kind::Data => {
                let length = if self.compact { self.compact_length()? } else { self.cursor.i32()?.into() };
                self.skip(length)
            }
            Kind::List(fields) => {
                let count = self.count(self.smallest(fields))?;
                (0..count).try_for_each(|_| self.structure(fields))
            }
            Kind::ListOf(kind) => {
                let count = self.count(self.smallest_value(kind))?;
                (0..count).try_for_each(|_| self.value(kind))
            }
            Kind::One(fields) => self.structure(fields),
            Kind::Maybe(fields) => match self.cursor.i8()? {
                -1 => Ok(()),
                _ => self.structure(fields),
            },
        }
    }

    /// One less than is written; -1: null.
    fn compact_length(&mut self) -> Result<i64, WireError> {
        Ok(i64::from(self.cursor.varint()?) - 1)
    }

    fn skip(&mut self, length: i64) -> Result<(), WireError> {
        match length {
            -1 => Ok(()),
            _ => {
                let length = usize::try_from(length).map_err(|_| WireError::Length(length))?;
                self.cursor.take(length).map(drop)
            }
        }
    }

    /// A count, if the bytes that remain can hold so many elements of at least `smallest` bytes.
    fn count(&mut self, smallest: usize) -> Result<usize, WireError> {
        let count = if self.compact { self.compact_length()? } else { self.cursor.i32()?.into() };
        if count == -1 {
            return Ok(0);
        }
        let remaining = self.cursor.remaining();
        let claimed = u32::try_from(count).map_err(|_| WireError::Length(count))?;
        let count = claimed as usize;
        if count.saturating_mul(smallest.max(1)) > remaining {
            return Err(WireError::Count { count: claimed, remaining });
        }
        self.elements_left = self.elements_left.checked_sub(count).ok_or(WireError::Elements(MAX_ELEMENTS))?;
        Ok(count)
    }

    /// Tagged fields. The codec reads those it knows by their type, whatever size is announced, so the two must agree.
    fn tags(&mut self, fields: &'static [Field]) -> Result<(), WireError> {
        let count = self.cursor.varint()?;
        self.tags_left = self.tags_left.checked_sub(count as usize).ok_or(WireError::Tags(MAX_TAGS))?;
        for _ in 0..count {
            let number = self.cursor.varint()?;
            let size = self.cursor.varint()? as usize;
            match fields.iter().find(|field| field.tag == Some(number)) {
                None => self.cursor.take(size).map(drop)?,
                Some(field) if !has(field, self.version) => return Err(WireError::Tag(number)),
                Some(field) => {
                    let before = self.cursor.remaining();
                    self.value(&field.kind)?;
                    if before - self.cursor.remaining() != size {
                        return Err(WireError::Tag(number));
                    }
                }
            }
        }
        Ok(())
    }

    /// The fewest bytes that a structure takes.
    fn smallest(&self, fields: &'static [Field]) -> usize {
        let plain = fields.iter().filter(|field| field.tag.is_none() && has(field, self.version));
        plain.map(|field| self.smallest_value(&field.kind)).sum::<usize>() + usize::from(self.compact)
    }

    fn smallest_value(&self, kind: &'static Kind) -> usize {
        match kind {
            Kind::Fixed(size) => *size,
            Kind::Text if self.compact => 1,
            Kind::Text => 2,
            Kind::Data | Kind::List(_) | Kind::ListOf(_) if self.compact => 1,
            Kind::Data | Kind::List(_) | Kind::ListOf(_) => 4,
            Kind::One(fields) => self.smallest(fields),
            Kind::Maybe(_) => 1,
        }
    }
}

fn has(field: &Field, version: i16) -> bool {
    (field.first..=field.last).contains(&version)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
