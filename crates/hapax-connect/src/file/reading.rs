//! One file being read: fills inputs from it, and knows what its end means.
//!
//! Reads: an open file, line by line. Writes: inputs.
//! Invariant: the offset passes only what was added, blank lines aside.

use std::io;

use hapax_engine::batch::Inputs;
use hapax_engine::source::{Follow, Polled, Room};
use hapax_model::position::{Incarnation, Position};

use super::incarnation::{FirstRecord, Opened};
use super::lines::{Found, Lines, Tail};

/// How many blocks a poll reads at most before it lets others run.
pub(super) const BLOCKS_PER_POLL: usize = 64;

#[derive(Debug)]
pub(super) struct Reading {
    pub(super) opened: Opened,
    pub(super) lines: Lines,
    pub(super) incarnation: Incarnation,
    pub(super) follow: Follow,
    /// Idle polls since another file was seen at the path.
    pub(super) rotated_polls: u32,
    first_record: FirstRecord,
    warning: Warning,
}

/// Whether the log was told of a last line that is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Warning {
    Due,
    Given,
}

/// What one step of reading came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Done(Polled),
    /// There is more, but others should run first.
    Busy,
    /// There is nothing now.
    Quiet,
}

/// Where filling stopped.
#[derive(Debug)]
pub(super) enum Filled {
    Step(Step),
    /// A line that was delivered without its newline goes on.
    Continued,
    /// The file was read to its end.
    End,
}

impl Reading {
    pub(super) const fn new(opened: Opened, lines: Lines, incarnation: Incarnation, follow: Follow) -> Self {
        let (first_record, warning) = (FirstRecord::NotYet, Warning::Due);
        Self { opened, lines, incarnation, follow, rotated_polls: 0, first_record, warning }
    }

    pub(super) fn fill(&mut self, into: &mut Inputs, room: Room) -> io::Result<Filled> {
        let (offset_before, read_before) = (self.lines.offset(), self.lines.read_upto());
        let count_before = into.len();
        let stopped = self.add_lines(into, room);
        if self.lines.read_upto() > read_before {
            self.rotated_polls = 0;
        }
        if self.lines.offset() > offset_before {
            self.learn_first_record();
        }
        // What was added is handed out first; what stopped us will do so again.
        if into.len() > count_before { Ok(Filled::Step(Step::Done(Polled::Records))) } else { stopped }
    }

    fn add_lines(&mut self, into: &mut Inputs, room: Room) -> io::Result<Filled> {
        let (mut budget, bytes_before) = (BLOCKS_PER_POLL, into.byte_len());
        for added in 0..room.events {
            if added > 0 && into.byte_len() - bytes_before >= room.bytes {
                break;
            }
            match self.lines.next(&self.opened.file, &mut budget)? {
                Found::Line => {
                    let line = self.lines.line();
                    if added > 0 && into.byte_len() - bytes_before + line.len() > room.bytes {
                        return Ok(Filled::Step(Step::Busy));
                    }
                    into.push(Position::at(self.lines.offset()), line);
                    self.lines.pass();
                }
                Found::Long(long) => {
                    into.push_oversized(Position::at(long.start), &long.head, long.length, long.sha256);
                }
                Found::Pause => return Ok(Filled::Step(Step::Busy)),
                Found::Continued => return Ok(Filled::Continued),
                Found::End => return Ok(Filled::End),
            }
        }
        Ok(Filled::Step(Step::Busy))
    }

    /// A file that was empty is known better with its first record; it stays the same incarnation. Should the file not
    /// answer now, what was known of it stays true.
    fn learn_first_record(&mut self) {
        if self.first_record == FirstRecord::NotYet
            && let Ok(description) = self.opened.describe(self.lines.offset())
        {
            self.incarnation = Incarnation::new(self.incarnation.number, &description.text);
            self.first_record = description.record;
        }
    }

    /// The end, when nobody waits for more. A last line without a newline counts, unless it is surely not complete.
    pub(super) fn end_once(&mut self, into: &mut Inputs, lane: &str) -> Step {
        match self.lines.tail() {
            Tail::Whole => return self.deliver_tail(into),
            Tail::Unfinished if self.warning == Warning::Due => {
                self.warning = Warning::Given;
                let offset = self.lines.offset();
                tracing::warn!(code = "HX3003", lane, offset, "the last line is not complete and was not read");
            }
            Tail::Unfinished | Tail::Nothing => {}
        }
        Step::Done(Polled::End)
    }

    /// Hands out what the file ends with, though its newline is missing.
    pub(super) fn deliver_tail(&mut self, into: &mut Inputs) -> Step {
        let position = Position::at(self.lines.offset());
        match self.lines.take_tail() {
            Found::Long(long) => into.push_oversized(position, &long.head, long.length, long.sha256),
            Found::Line | Found::Continued | Found::Pause | Found::End => {
                into.push(position, self.lines.line());
                self.lines.pass_tail();
            }
        }
        self.learn_first_record();
        Step::Done(Polled::Records)
    }
}
