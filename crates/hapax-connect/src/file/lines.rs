//! Cuts a file into lines, block by block.
//!
//! Reads: a file, from an offset on. Writes: nothing. Blank lines are passed silently.
//! Invariant: memory stays below `max_line` and some blocks, however long a line is: a longer one is hashed and only
//! its beginning is kept. A line without a newline is none until the caller says so.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use hapax_engine::batch::LETTER_HEAD_BYTES;
use memchr::memchr;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

const BLOCK: usize = 256 * 1024;

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
    /// The file ends here, perhaps within a line.
    End,
}

/// A line that is too long to be an event.
#[derive(Debug)]
pub(super) struct LongLine {
    pub(super) start: u64,
    pub(super) head: Vec<u8>,
    pub(super) length: u64,
    pub(super) sha256: [u8; 32],
}

/// What lies between the last newline and the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing, or blanks.
    Nothing,
    /// The beginning of a JSON value: it will surely go on.
    Unfinished,
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

#[derive(Debug, Default)]
struct Streaming {
    hasher: Sha256,
    head: Vec<u8>,
    length: u64,
}

/// A place in a file, and what was read ahead of it.
#[derive(Debug)]
pub(super) struct Lines {
    max_line: usize,
    block: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes after `start` are known to have no newline.
    scanned: usize,
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
    pub(super) const fn new(offset: u64, max_line: usize, seam: Seam) -> Self {
        Self {
            max_line,
            block: Vec::new(),
            start: 0,
            end: 0,
            scanned: 0,
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
        *self = Self::new(self.line_start, self.max_line, self.seam);
    }

    /// Looks for the next line; reads at most `budget` blocks, and takes them off it.
    pub(super) fn next(&mut self, file: &File, budget: &mut usize) -> io::Result<Found> {
        loop {
            if self.found.is_some() {
                return Ok(Found::Line);
            }
            if let Some(at) = memchr(b'\n', &self.block[self.start + self.scanned..self.end]) {
                if let Some(found) = self.line_ends(self.scanned + at) {
                    return Ok(found);
                }
                continue;
            }
            self.scanned = self.end - self.start;
            if self.goes_on() {
                return Ok(Found::Continued);
            }
            if self.streaming.is_some() || self.scanned > self.max_line {
                self.stream_rest();
            }
            if *budget == 0 {
                return Ok(Found::Pause);
            }
            *budget -= 1;
            if self.read_block(file)? == 0 {
                return Ok(Found::End);
            }
        }
    }

    /// The line that [`Found::Line`] spoke of, without its line end.
    pub(super) fn line(&self) -> &[u8] {
        let line = &self.block[self.start..self.start + self.found.unwrap_or(0)];
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
        let rest = &self.block[self.start..self.end];
        if self.streaming.is_some() {
            Tail::Whole
        } else if self.seam == Seam::Unterminated || is_blank(rest) {
            Tail::Nothing
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
        if is_blank(line) {
            self.skip(length + 1);
            return None;
        }
        self.found = Some(length);
        Some(Found::Line)
    }

    /// Whether bytes without a newline follow the line that was delivered without one.
    fn goes_on(&self) -> bool {
        self.seam == Seam::Unterminated && !matches!(&self.block[self.start..self.end], b"" | b"\r")
    }

    fn stream_rest(&mut self) {
        let streaming = self.streaming.get_or_insert_default();
        streaming.add(&self.block[self.start..self.end]);
        (self.start, self.end, self.scanned) = (0, 0, 0);
    }

    fn end_long(&mut self, length: usize, line_end: usize) -> Found {
        let mut streaming = self.streaming.take().unwrap_or_default();
        streaming.add(&self.block[self.start..self.start + length]);
        let start = self.line_start;
        self.skip(length + line_end);
        let Streaming { hasher, head, length } = streaming;
        Found::Long(LongLine { start, head, length, sha256: hasher.finalize().into() })
    }

    fn skip(&mut self, length: usize) {
        self.start += length;
        self.scanned = 0;
        self.line_start = self.read_upto - (self.end - self.start) as u64;
    }

    fn read_block(&mut self, file: &File) -> io::Result<usize> {
        if self.start > 0 {
            self.block.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end < BLOCK && self.block.len() > 4 * BLOCK {
            self.block.truncate(2 * BLOCK); // a long line is over: give its memory back
            self.block.shrink_to_fit();
        }
        if self.block.len() < self.end + BLOCK {
            self.block.resize(self.end + BLOCK, 0);
        }
        loop {
            match file.read_at(&mut self.block[self.end..], self.read_upto) {
                Ok(read) => {
                    self.end += read;
                    self.read_upto += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
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
