//! Cuts a file into lines, or into CSV records, which may hold line ends in quotes; block by block.
//!
//! Reads: a file, from an offset on. Writes: nothing. Blank lines and a byte order mark are passed silently.
//! Invariant: memory stays below `max_line` and some blocks, however long a line is: a longer one is hashed and only
//! its beginning is kept. A line without a newline is none until the caller says so; a quote that does not close within
//! `max_line`, or closes where no field ends, costs its own line and no other.

use std::io;

use hapax_engine::batch::LETTER_HEAD_BYTES;
use hapax_engine::decode::csv::Dialect;
use memchr::{memchr, memchr_iter, memchr2};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::feed::{Fed, Feed};

const BLOCK: usize = 256 * 1024;
/// So many bytes before the next line are kept: they tell later whether the file is still what it was.
pub(super) const TAIL_BYTES: usize = 4 * 1024;
/// What some programs write at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the next line is.
#[derive(Debug)]
pub(super) enum Found {
    /// [`Lines::line`] has it, until [`Lines::pass`].
    Line,
    /// A line longer than `max_line`; already passed.
    Long(LongLine),
    /// The line that was delivered without its newline goes on.
    Continued,
    /// The budget is used up; ask again.
    Pause,
    /// What comes next is not there yet; ask later.
    Later,
    /// The file ends here, perhaps within a line.
    End,
}

/// A line that is too long to be an event.
#[derive(Debug)]
pub(super) struct LongLine {
    pub(super) start: u64,
    pub(super) line: Option<u64>,
    pub(super) head: Vec<u8>,
    pub(super) length: u64,
    pub(super) sha256: [u8; 32],
}

/// What lies between the last newline and the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing, or blanks.
    Nothing,
    /// The beginning of a JSON value, or of a quoted field: it will surely go on.
    Unfinished,
    /// Whole lines behind a quote that is still open: either the field goes on, or the quote was never meant.
    OpenQuote,
    /// Something that could be a whole line. Growth would not mend it if it is none.
    Whole,
}

/// What comes before the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seam {
    /// A newline, or the beginning of the file.
    LineStart,
    /// A line that was delivered without its newline.
    Unterminated,
}

/// What makes the end of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Every newline.
    Lines,
    /// Every newline outside quotes.
    Records(Dialect),
}

/// Whether quotes of the record at `start` are heeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Heeded,
    /// They do not go together: the record is its first line.
    Ignored,
}

/// What looking for the end of a record came to.
enum Scan {
    EndsAt(usize),
    GoesOn,
    BadQuotes,
}

#[derive(Debug, Default)]
struct Streaming {
    /// What was read before the line.
    before: Vec<u8>,
    hasher: Sha256,
    head: Vec<u8>,
    length: u64,
}

/// A place in a file, what was read ahead of it, and the last of what was read before it.
#[derive(Debug)]
pub(super) struct Lines {
    cut: Cut,
    max_line: usize,
    /// What lies before `start` was read, and is kept for [`Lines::before`].
    block: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes after `start` are known not to end the record.
    scanned: usize,
    /// The quote that is open there, if one is.
    open: Option<usize>,
    quotes: Quotes,
    /// Which line of the file the record begins in, if that is known; only records are counted.
    line_number: Option<u64>,
    line_start: u64,
    read_upto: u64,
    /// The length of the line at `start`, once its newline was found.
    found: Option<usize>,
    streaming: Option<Streaming>,
    seam: Seam,
}

/// Whether a line has nothing in it.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

impl Lines {
    pub(super) const fn new(offset: u64, cut: Cut, max_line: usize, seam: Seam) -> Self {
        Self {
            cut,
            max_line,
            block: Vec::new(),
            start: 0,
            end: 0,
            scanned: 0,
            open: None,
            quotes: Quotes::Heeded,
            line_number: if offset == 0 { Some(1) } else { None },
            line_start: offset,
            read_upto: offset,
            found: None,
            streaming: None,
            seam,
        }
    }

    /// Where the next line begins.
    pub(super) const fn offset(&self) -> u64 {
        self.line_start
    }

    /// Up to where the file was read.
    pub(super) const fn read_upto(&self) -> u64 {
        self.read_upto
    }

    /// Forgets what was read ahead.
    pub(super) fn read_again(&mut self) {
        let (line_number, before) = (self.line_number, self.before().to_vec());
        *self = Self::new(self.line_start, self.cut, self.max_line, self.seam);
        self.line_number = line_number;
        self.behind_bytes(before);
    }

    /// Which line of the file the next record begins in, if that is known.
    pub(super) const fn line_number(&self) -> Option<u64> {
        self.line_number
    }

    /// So many lines lie before the first one that is read.
    pub(super) const fn behind_lines(&mut self, before: u64) {
        self.line_number = Some(before + 1);
    }

    /// These bytes lie just before the first line that is read.
    pub(super) fn behind_bytes(&mut self, before: Vec<u8>) {
        (self.start, self.end) = (before.len(), before.len());
        self.block = before;
    }

    /// What was read just before the next line, as it was then; less than [`TAIL_BYTES`] only where the file begins.
    pub(super) fn before(&self) -> &[u8] {
        match &self.streaming {
            Some(streaming) => &streaming.before,
            None => &self.block[self.start.saturating_sub(TAIL_BYTES)..self.start],
        }
    }

    /// Looks for the next line; reads at most `budget` blocks, and takes them off it.
    pub(super) fn next(&mut self, feed: &mut Feed, budget: &mut usize) -> io::Result<Found> {
        loop {
            if self.found.is_some() {
                return Ok(Found::Line);
            }
            match self.scan() {
                Scan::EndsAt(length) => {
                    if let Some(found) = self.line_ends(length) {
                        return Ok(found);
                    }
                    continue;
                }
                Scan::BadQuotes => {
                    self.ignore_quotes();
                    continue;
                }
                Scan::GoesOn => {}
            }
            if self.goes_on() {
                return Ok(Found::Continued);
            }
            if self.streaming.is_some() || self.end - self.start > self.max_line {
                if self.open.is_some() {
                    self.ignore_quotes();
                    continue;
                }
                self.stream_rest();
            }
            if *budget == 0 {
                return Ok(Found::Pause);
            }
            *budget -= 1;
            match self.read_block(feed)? {
                Fed::Bytes(_) => {}
                Fed::NotYet => return Ok(Found::Pause),
                Fed::Later => return Ok(Found::Later),
                Fed::End => return Ok(Found::End),
            }
        }
    }

    /// Looks for the end of the record at `start`.
    fn scan(&mut self) -> Scan {
        let bytes = &self.block[self.start..self.end];
        let (Cut::Records(Dialect { delimiter, quote: Some(quote) }), Quotes::Heeded, None) =
            (self.cut, self.quotes, &self.streaming)
        else {
            let found = memchr(b'\n', &bytes[self.scanned..]);
            return match found {
                Some(at) => Scan::EndsAt(self.scanned + at),
                None => {
                    self.scanned = bytes.len();
                    Scan::GoesOn
                }
            };
        };
        let lead = self.lead();
        loop {
            let found = match self.open {
                None => memchr2(b'\n', quote, &bytes[self.scanned..]),
                Some(_) => memchr(quote, &bytes[self.scanned..]),
            };
            let Some(at) = found.map(|found| self.scanned + found) else {
                self.scanned = bytes.len();
                return Scan::GoesOn;
            };
            if self.open.is_none() {
                if bytes[at] == b'\n' {
                    return Scan::EndsAt(at);
                }
                // A quote in the middle of a field is a character like others.
                self.open = (at == lead || at > 0 && bytes[at - 1] == delimiter).then_some(at);
                self.scanned = at + 1;
                continue;
            }
            match &bytes[at + 1..] {
                [] | [b'\r'] => {
                    self.scanned = at; // what follows will tell
                    return Scan::GoesOn;
                }
                [next, ..] if *next == quote => self.scanned = at + 2,
                [b'\r', b'\n', ..] => (self.open, self.scanned) = (None, at + 1),
                [next, ..] if *next == delimiter || *next == b'\n' => (self.open, self.scanned) = (None, at + 1),
                [_, ..] => return Scan::BadQuotes,
            }
        }
    }

    /// Takes the record at `start` for its first line, whatever its quotes say.
    pub(super) fn ignore_quotes(&mut self) {
        (self.quotes, self.open, self.scanned) = (Quotes::Ignored, None, 0);
    }

    /// How many bytes at `start` are a byte order mark.
    fn lead(&self) -> usize {
        let marked = self.line_start == 0 && self.block[self.start..self.end].starts_with(BYTE_ORDER_MARK);
        if marked { BYTE_ORDER_MARK.len() } else { 0 }
    }

    /// The line that [`Found::Line`] spoke of, without its line end.
    pub(super) fn line(&self) -> &[u8] {
        let line = &self.block[self.start..self.start + self.found.unwrap_or(0)];
        let line = line.get(self.lead()..).unwrap_or_default();
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Goes past the line that [`Found::Line`] spoke of.
    pub(super) fn pass(&mut self) {
        if let Some(length) = self.found.take() {
            self.skip(length + 1);
        }
    }

    /// What the file ends with; asked after [`Found::End`].
    pub(super) fn tail(&self) -> Tail {
        let rest = &self.block[self.start + self.lead()..self.end];
        if self.streaming.is_some() {
            Tail::Whole
        } else if self.seam == Seam::Unterminated || self.is_blank(rest) {
            Tail::Nothing
        } else if let Cut::Records(dialect) = self.cut {
            let behind = &self.block[self.start + self.scanned..self.end];
            let closed = matches!(behind, [last] | [last, b'\r'] if Some(*last) == dialect.quote);
            match self.open {
                Some(_) if closed => Tail::Whole,
                Some(_) if memchr(b'\n', rest).is_some() => Tail::OpenQuote,
                Some(_) => Tail::Unfinished,
                None => Tail::Whole,
            }
        } else if serde_json::from_slice::<&RawValue>(rest).is_err_and(|error| error.is_eof()) {
            Tail::Unfinished
        } else {
            Tail::Whole
        }
    }

    /// Takes what the file ends with as a line, though its newline is missing.
    pub(super) fn take_tail(&mut self) -> Found {
        self.seam = Seam::Unterminated;
        if self.streaming.is_some() {
            return self.end_long(self.end - self.start, 0);
        }
        self.found = Some(self.end - self.start);
        Found::Line
    }

    /// Goes past the line that [`Lines::take_tail`] gave.
    pub(super) fn pass_tail(&mut self) {
        if let Some(length) = self.found.take() {
            self.skip(length);
        }
    }

    /// The newline is `length` bytes behind `start`.
    fn line_ends(&mut self, length: usize) -> Option<Found> {
        let line = &self.block[self.start..self.start + length];
        if self.seam == Seam::Unterminated {
            if !matches!(line, b"" | b"\r") {
                return Some(Found::Continued);
            }
            self.seam = Seam::LineStart;
            self.skip(length + 1);
            return None;
        }
        if self.streaming.is_some() || length > self.max_line {
            return Some(self.end_long(length, 1));
        }
        if self.is_blank(line.get(self.lead()..).unwrap_or_default()) {
            self.skip(length + 1);
            return None;
        }
        self.found = Some(length);
        Some(Found::Line)
    }

    /// Whether a line is none. In CSV blanks are a value, and a tab may be a delimiter.
    fn is_blank(&self, line: &[u8]) -> bool {
        match self.cut {
            Cut::Lines => is_blank(line),
            Cut::Records(_) => matches!(line, [] | [b'\r']),
        }
    }

    /// Whether bytes without a newline follow the line that was delivered without one.
    fn goes_on(&self) -> bool {
        self.seam == Seam::Unterminated && !matches!(&self.block[self.start..self.end], b"" | b"\r")
    }

    fn stream_rest(&mut self) {
        if self.streaming.is_none() {
            let before = self.before().to_vec();
            self.streaming = Some(Streaming { before, ..Streaming::default() });
        }
        if let Some(streaming) = &mut self.streaming {
            streaming.add(&self.block[self.start..self.end]);
        }
        (self.start, self.scanned) = (self.end, 0);
    }

    fn end_long(&mut self, length: usize, line_end: usize) -> Found {
        let mut streaming = self.streaming.take().unwrap_or_default();
        streaming.add(&self.block[self.start..self.start + length]);
        let (start, line) = (self.line_start, self.line_number);
        self.skip(length + line_end);
        let Streaming { hasher, head, length, .. } = streaming;
        Found::Long(LongLine { start, line, head, length, sha256: hasher.finalize().into() })
    }

    fn skip(&mut self, length: usize) {
        if let (Cut::Records(_), Some(line)) = (self.cut, &mut self.line_number) {
            *line += memchr_iter(b'\n', &self.block[self.start..self.start + length]).count() as u64;
        }
        self.start += length;
        (self.scanned, self.open, self.quotes) = (0, None, Quotes::Heeded);
        self.line_start = self.read_upto - (self.end - self.start) as u64;
    }

    fn read_block(&mut self, feed: &mut Feed) -> io::Result<Fed> {
        if let Some(surplus) = self.start.checked_sub(TAIL_BYTES) {
            self.block.copy_within(surplus..self.end, 0);
            (self.start, self.end) = (self.start - surplus, self.end - surplus);
        }
        if self.end < BLOCK && self.block.len() > 4 * BLOCK {
            self.block.truncate(2 * BLOCK); // a long line is over: give its memory back
            self.block.shrink_to_fit();
        }
        if self.block.len() < self.end + BLOCK {
            self.block.resize(self.end + BLOCK, 0);
        }
        let fed = feed.read_at(&mut self.block[self.end..], self.read_upto)?;
        if let Fed::Bytes(read) = fed {
            // On its way to here a packed file was unpacked from its beginning.
            if self.read_upto == self.line_start {
                if self.line_number.is_none() {
                    let own = memchr_iter(b'\n', &self.block[self.end..self.end + read]).count() as u64;
                    self.line_number = feed.lines_passed().map(|all| all - own + 1);
                }
                // Behind anything but a newline lies what was delivered without one.
                if feed.byte_before().is_some_and(|byte| byte != b'\n') {
                    self.seam = Seam::Unterminated;
                }
            }
            self.end += read;
            self.read_upto += read as u64;
        }
        Ok(fed)
    }
}

impl Streaming {
    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        let room = LETTER_HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
