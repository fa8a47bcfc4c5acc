//! The common case, read by hand in one pass: one flat object of plain strings, numbers and literals.
//!
//! Reads: the text of one input, known to be UTF-8. Writes: nothing; it hands names and values out. Invariant: what it
//! accepts is valid JSON, and it reads it as any reader would. Whatever else it meets, an error too, it leaves alone:
//! the careful reader then looks from the beginning.

use std::ops::Range;

use crate::batch::FieldSpan;

/// Something that is not in the common case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotFlat;

/// Hands every name and value of a flat object to `take`, in the order of the text.
pub(super) fn read(text: &str, mut take: impl FnMut(&str, FieldSpan)) -> Result<(), NotFlat> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    scan.skip_blank();
    scan.expect(b'{')?;
    scan.skip_blank();
    if scan.expect(b'}').is_err() {
        loop {
            let name = scan.string()?;
            scan.skip_blank();
            scan.expect(b':')?;
            scan.skip_blank();
            let value = scan.value()?;
            take(&text[name], value);
            scan.skip_blank();
            if scan.expect(b',').is_err() {
                break;
            }
            scan.skip_blank();
        }
        scan.expect(b'}')?;
    }
    scan.skip_blank();
    if scan.at == text.len() { Ok(()) } else { Err(NotFlat) }
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, wanted: u8) -> Result<(), NotFlat> {
        if self.peek() == Some(wanted) {
            self.at += 1;
            return Ok(());
        }
        Err(NotFlat)
    }

    /// The inside of a string that has no escapes.
    fn string(&mut self) -> Result<Range<usize>, NotFlat> {
        self.expect(b'"')?;
        let start = self.at;
        let rest = self.bytes.get(start..).ok_or(NotFlat)?;
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).ok_or(NotFlat)?;
        self.at = start + end;
        self.expect(b'"')?;
        Ok(start..start + end)
    }

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
    fn digits(&mut self) -> Result<(), NotFlat> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(NotFlat) }
    }
}
