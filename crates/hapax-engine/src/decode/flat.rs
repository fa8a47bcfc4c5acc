//! The common case, read by hand in one pass: one flat object of plain strings, numbers and literals.
//!
//! Reads: the bytes of one input. Writes: the gaps between values, to know them again. Invariant: what it accepts is
//! valid JSON but for its UTF-8, and it reads it as any reader would. Whatever else it meets, an error too, it leaves
//! alone: the careful reader then looks from the beginning.

use std::ops::Range;

use crate::batch::FieldSpan;

/// Something that is not in the common case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotFlat;

/// Which bytes were met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// The input is UTF-8.
    Ascii,
    /// The input is UTF-8 if somebody finds its strings to be.
    Others,
}

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is read into this slot.
    Wanted(usize),
    /// Nothing takes it; it is counted under this number.
    Unknown(usize),
    /// What is inside of it is wanted, under this number, and the value itself is not.
    Inside(usize),
}

/// Whoever wants the fields.
pub(super) trait Reader {
    /// What becomes of fields of this name. The answer holds for all events.
    fn fate(&mut self, name: &str) -> Fate;
    /// The next field, in the order of the text.
    fn take(&mut self, fate: Fate, value: FieldSpan);
}

/// How many gaps are remembered, and how long they may be.
const GAPS_MAX: usize = 256;
const GAP_BYTES_MAX: usize = 64;

/// What stood before each value of the last event: braces, commas, names. Events of one source mostly differ in their
/// values alone, so that one comparison finds the next name and its fate.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<Gap>);

#[derive(Debug)]
struct Gap {
    text: Vec<u8>,
    /// The first and the last eight bytes of `text`, for those that have so many.
    first: u64,
    last: u64,
    fate: Fate,
}

impl Gap {
    fn stands_in(&self, bytes: &[u8], at: usize) -> bool {
        match self.text.len() {
            length @ 8..=16 => word(bytes, at) == Some(self.first) && word(bytes, at + length - 8) == Some(self.last),
            _ => bytes.get(at..).is_some_and(|rest| rest.starts_with(&self.text)),
        }
    }
}

impl Gaps {
    fn learn(&mut self, field: usize, text: &[u8], fate: Fate) {
        if field > self.0.len() || field >= GAPS_MAX || text.len() > GAP_BYTES_MAX {
            return;
        }
        if field == self.0.len() {
            self.0.push(Gap { text: Vec::new(), first: 0, last: 0, fate });
        }
        let gap = &mut self.0[field];
        gap.text.clear();
        gap.text.extend_from_slice(text);
        gap.first = word(text, 0).unwrap_or_default();
        gap.last = text.len().checked_sub(8).and_then(|at| word(text, at)).unwrap_or_default();
        gap.fate = fate;
    }
}

/// Hands every field of a flat object to `reader`, in the order of the text.
pub(super) fn read(bytes: &[u8], gaps: &mut Gaps, reader: &mut impl Reader) -> Result<Letters, NotFlat> {
    let mut scan = Scan { bytes, at: 0, high: 0 };
    for field in 0.. {
        let fate = match gaps.0.get(field) {
            Some(gap) if gap.stands_in(bytes, scan.at) => {
                scan.at += gap.text.len();
                gap.fate
            }
            Some(_) | None => {
                let start = scan.at;
                let Some(name) = scan.name(field)? else { break };
                let name = std::str::from_utf8(&bytes[name]).map_err(|_| NotFlat)?;
                let fate = reader.fate(name);
                gaps.learn(field, &bytes[start..scan.at], fate);
                fate
            }
        };
        scan.skip_blank();
        reader.take(fate, scan.value()?);
    }
    scan.skip_blank();
    match scan.high & HIGH_BITS {
        _ if scan.at != bytes.len() => Err(NotFlat),
        0 => Ok(Letters::Ascii),
        _ => Ok(Letters::Others),
    }
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const ONES: u64 = 0x0101_0101_0101_0101;

/// Eight bytes at once, the first one lowest.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*eight))
}

/// A bit for each byte of `word` at which a string ends or is not plain: quotes, backslashes, control characters. Bits
/// above the lowest one may be wrong.
#[inline]
const fn stops(word: u64) -> u64 {
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word
    }
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    (zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64)) | controls) & HIGH_BITS
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    /// All bytes of strings, one on top of the other.
    high: u64,
}

impl Scan<'_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn skip_blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, wanted: u8) -> Result<(), NotFlat> {
        if self.peek() == Some(wanted) {
            self.at += 1;
            return Ok(());
        }
        Err(NotFlat)
    }

    /// The name of the object's next field, with all that stands around it; none where the object ends.
    fn name(&mut self, field: usize) -> Result<Option<Range<usize>>, NotFlat> {
        self.skip_blank();
        if field == 0 {
            self.expect(b'{')?;
            self.skip_blank();
            if self.expect(b'}').is_ok() {
                return Ok(None);
            }
        } else {
            if self.expect(b',').is_err() {
                return self.expect(b'}').map(|()| None);
            }
            self.skip_blank();
        }
        let name = self.string()?;
        self.skip_blank();
        self.expect(b':')?;
        self.skip_blank();
        Ok(Some(name))
    }

    /// The inside of a string that has no escapes.
    #[inline]
    fn string(&mut self) -> Result<Range<usize>, NotFlat> {
        self.expect(b'"')?;
        let start = self.at;
        while let Some(word) = word(self.bytes, self.at) {
            self.high |= word;
            match stops(word) {
                0 => self.at += 8,
                stops => {
                    self.at += stops.trailing_zeros() as usize / 8;
                    break;
                }
            }
        }
        while let Some(byte) = self.peek().filter(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
            self.high |= u64::from(byte);
            self.at += 1;
        }
        let end = self.at;
        self.expect(b'"')?;
        Ok(start..end)
    }

    #[inline]
    fn value(&mut self) -> Result<FieldSpan, NotFlat> {
        match self.peek() {
            Some(b'"') => self.string().map(FieldSpan::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(FieldSpan::Number),
            Some(b't') => self.literal("true", FieldSpan::Bool(true)),
            Some(b'f') => self.literal("false", FieldSpan::Bool(false)),
            Some(b'n') => self.literal("null", FieldSpan::Null),
            Some(_) | None => Err(NotFlat),
        }
    }

    fn literal(&mut self, word: &str, value: FieldSpan) -> Result<FieldSpan, NotFlat> {
        let rest = self.bytes.get(self.at..).ok_or(NotFlat)?;
        if !rest.starts_with(word.as_bytes()) {
            return Err(NotFlat);
        }
        self.at += word.len();
        Ok(value)
    }

    /// `-`? (`0` or digits that begin with another) fraction? exponent?
    #[inline]
    fn number(&mut self) -> Result<Range<usize>, NotFlat> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1
        } else {
            self.digits()?
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(start..self.at)
    }

    /// At least one digit.
    #[inline]
    fn digits(&mut self) -> Result<(), NotFlat> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(NotFlat) }
    }
}
