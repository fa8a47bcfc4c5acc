//! One file being read: fills inputs from it, and knows what its end means.
//!
//! Reads: an open file, line by line. Writes: inputs.
//! Invariant: the offset passes only what was added, blank lines aside.

use std::io;
use std::time::Duration;

use hapax_engine::batch::Inputs;
use hapax_engine::decode::csv::Format;
use hapax_engine::source::{Follow, Polled, Room};
use hapax_model::position::{Bookmark, Incarnation, Position};

use super::config::{Expected, FileFormat};
use super::facts::TailHash;
use super::feed::{Feed, Packing};
use super::header::Naming;
use super::incarnation::{FirstRecord, Opened, hash, with_end, without_end};
use super::lines::{Found, Lines, LongLine, Tail};
use super::recognise::STANDS_AT_MOST;

/// How many idle polls a rotated file is watched for the rest of a line that is surely not complete.
pub(super) const PATIENCE_POLLS: u32 = 40;
/// A file that nobody wrote to for so long need not be watched before it is left.
const RESTS_AFTER: Duration = Duration::from_secs(2);
/// How long an archive that is followed may stand still before it counts as cut off.
pub(super) const REST_PATIENCE: Duration = if cfg!(test) { Duration::from_secs(3) } else { STANDS_AT_MOST };
/// After how many idle polls a quote that is open is spoken of.
const WARN_POLLS: u32 = 400;
/// How many blocks a poll reads at most before it lets others run.
pub(super) const BLOCKS_PER_POLL: usize = 64;

#[derive(Debug)]
pub(super) struct Reading {
    pub(super) opened: Opened,
    pub(super) feed: Feed,
    pub(super) lines: Lines,
    pub(super) naming: Naming,
    pub(super) incarnation: Incarnation,
    pub(super) follow: Follow,
    /// Idle polls since another file was seen at the path.
    pub(super) rotated_polls: u32,
    /// Idle polls at the end of the file.
    pub(super) quiet_polls: u32,
    /// Idle polls at the end of an archive that is not complete.
    incomplete_polls: u32,
    /// Polls at the end of an archive whose last line has no newline, since it grew.
    pub(super) half_line_polls: u32,
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
    /// The archive is not complete, and what comes next is not there yet.
    Incomplete,
    /// The file was read to its end.
    End,
}

/// What the header of a file that has none yet is read by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) format: &'a FileFormat,
    pub(super) expected: &'a Expected,
    pub(super) max_line: usize,
}

impl Reading {
    pub(super) fn new(
        opened: Opened,
        lines: Lines,
        naming: Naming,
        incarnation: Incarnation,
        first_record: FirstRecord,
        follow: Follow,
    ) -> io::Result<Self> {
        let warning = Warning::Due;
        let feed = Feed::new(opened.file.try_clone()?);
        let mut feed = match follow {
            Follow::Yes => feed.with_patience(REST_PATIENCE),
            Follow::No => feed,
        };
        feed.decide()?;
        Ok(Self {
            opened,
            feed,
            lines,
            naming,
            incarnation,
            follow,
            rotated_polls: 0,
            quiet_polls: 0,
            incomplete_polls: 0,
            half_line_polls: 0,
            first_record,
            warning,
        })
    }

    /// Whether nobody has written to the file for a while, as its own time says.
    pub(super) fn rests(&self) -> bool {
        let modified = self.opened.file.metadata().and_then(|found| found.modified());
        modified.is_ok_and(|time| time.elapsed().is_ok_and(|rested| rested > RESTS_AFTER))
    }

    pub(super) fn is_packed(&self) -> bool {
        self.feed.packing() != Packing::None
    }

    /// The hash of what was read just before the place where it stands: of the bytes as they were then, whatever the file holds by now.
    /// None at the beginning, and inside an archive.
    pub(super) fn tail_hash(&self) -> Option<TailHash> {
        let offset = self.lines.offset();
        let is_known = offset > 0 && !self.is_packed();
        is_known.then(|| TailHash { offset, hash: hash(self.lines.before()) })
    }

    /// Whether the file still has the bytes that were read just before the place where it stands.
    pub(super) fn has_what_was_read(&self) -> io::Result<bool> {
        Ok(self.is_packed() || self.opened.bytes_before(self.lines.offset())? == self.lines.before())
    }

    /// Whether the last line of an archive, which has no newline, waits for what another member may bring: who follows it gives a
    /// second, if nobody has written to it for less than two.
    pub(super) fn wait_for_member(&mut self) -> bool {
        if self.follow == Follow::No || self.lines.tail() == Tail::Nothing || self.rests() {
            return false;
        }
        self.half_line_polls += 1;
        self.awaits_member()
    }

    /// Whether that second has begun, and is not over.
    pub(super) fn awaits_member(&self) -> bool {
        (1..=PATIENCE_POLLS).contains(&self.half_line_polls)
    }

    pub(super) fn fill(&mut self, into: &mut Inputs, room: Room, rules: Rules<'_>) -> io::Result<Filled> {
        let (offset_before, read_before) = (self.lines.offset(), self.lines.read_upto());
        let count_before = into.len();
        let stopped = self.add_lines(into, room, rules);
        if self.lines.read_upto() > read_before {
            (self.rotated_polls, self.quiet_polls, self.half_line_polls) = (0, 0, 0);
            if self.incomplete_polls < PATIENCE_POLLS {
                self.incomplete_polls = 0; // what was said once is not said again
            }
        }
        if self.lines.offset() > offset_before {
            self.learn_first_record();
        }
        // What was added is handed out first; what stopped us will do so again.
        if into.len() > count_before { Ok(Filled::Step(Step::Done(Polled::Records))) } else { stopped }
    }

    fn add_lines(&mut self, into: &mut Inputs, room: Room, rules: Rules<'_>) -> io::Result<Filled> {
        let (mut budget, bytes_before) = (BLOCKS_PER_POLL, into.byte_len());
        self.say_format(into);
        let mut added = 0;
        while added < room.events {
            if added > 0 && into.byte_len() - bytes_before >= room.bytes {
                break;
            }
            match self.lines.next(&mut self.feed, &mut budget)? {
                Found::Line if self.is_header(into, rules)? => {
                    self.lines.pass();
                    continue;
                }
                Found::Line => {
                    let line = self.lines.line();
                    if added > 0 && into.byte_len() - bytes_before + line.len() > room.bytes {
                        return Ok(Filled::Step(Step::Busy));
                    }
                    into.push(Position::at(self.lines.offset()), line);
                    self.number(into, self.lines.line_number());
                    self.lines.pass();
                }
                Found::Long(long) => self.push_long(into, &long),
                Found::Pause => return Ok(Filled::Step(Step::Busy)),
                Found::Later => return Ok(Filled::Incomplete),
                Found::Continued => return Ok(Filled::Continued),
                Found::End => return Ok(Filled::End),
            }
            added += 1;
        }
        Ok(Filled::Step(Step::Busy))
    }

    /// Whether the line that was found is the header; an awaited one is there with the first line.
    fn is_header(&mut self, into: &mut Inputs, rules: Rules<'_>) -> io::Result<bool> {
        if let (Naming::Awaited, Some(csv)) = (&self.naming, rules.format.header_in_file()) {
            self.naming = match Naming::of(&self.opened, rules.format, rules.expected, rules.max_line)? {
                Naming::Awaited => Naming::learn(self.lines.line(), self.lines.offset() + 1, csv, rules.expected)?,
                known @ Naming::Known { .. } => known,
            };
            self.say_format(into);
        }
        Ok(matches!(&self.naming, Naming::Known { behind, .. } if self.lines.offset() < *behind))
    }

    fn say_format(&self, into: &mut Inputs) {
        if let Naming::Known { format, .. } = &self.naming {
            into.set_format(format);
        }
    }

    /// Records have the number of their line; of JSON lines nobody has counted them.
    fn number(&self, into: &mut Inputs, line: Option<u64>) {
        if let (Naming::Known { format: Format::Csv(_), .. }, Some(line)) = (&self.naming, line) {
            into.at_line(line);
        }
    }

    fn push_long(&self, into: &mut Inputs, long: &LongLine) {
        into.push_oversized(Position::at(long.start), &long.head, long.length, long.sha256);
        self.number(into, long.line);
    }

    /// A file that was empty is known better with its first record; it stays the same incarnation, and learns no more
    /// after that. Should the file not answer now, or not begin as it did, what was known of it stays as it is.
    fn learn_first_record(&mut self) {
        let known = Bookmark::new(self.incarnation.clone(), Position::at(self.lines.offset()));
        if self.first_record == FirstRecord::NotYet
            && self.opened.belongs(&known).unwrap_or(false)
            && let Ok(description) = self.opened.describe(self.lines.offset())
            && self.has_what_was_read().unwrap_or(false)
        {
            self.incarnation = Incarnation::new(self.incarnation.number, &description.text);
            self.first_record = description.record;
        }
        if without_end(&self.incarnation.text).len() < self.incarnation.text.len() {
            let text = without_end(&self.incarnation.text).to_owned();
            self.incarnation = Incarnation::new(self.incarnation.number, &text);
        }
    }

    /// Says in the bookmark that the file was read to its end: whoever finds it gone later knows that nothing is lost.
    pub(super) fn mark_end(&mut self) {
        let text = with_end(&self.incarnation.text);
        if *self.incarnation.text != *text {
            self.incarnation = Incarnation::new(self.incarnation.number, &text);
        }
    }

    /// The end, when nobody waits for more. A last line without a newline counts, unless it is surely not complete; a
    /// quote that stays open over whole lines was never meant, and those lines count.
    pub(super) fn end_once(&mut self, into: &mut Inputs, lane: &str, rules: Rules<'_>) -> io::Result<Step> {
        match self.lines.tail() {
            Tail::Whole => return self.deliver_tail(into, rules),
            Tail::OpenQuote => {
                self.quiet_polls += 1;
                if self.is_packed() || self.quiet_polls > PATIENCE_POLLS {
                    self.lines.ignore_quotes();
                    return Ok(Step::Busy);
                }
                return Ok(Step::Quiet);
            }
            Tail::Unfinished if self.is_packed() => return self.deliver_tail(into, rules),
            Tail::Unfinished if self.warning == Warning::Due => {
                self.warning = Warning::Given;
                let offset = self.lines.offset();
                tracing::warn!(code = "HX3003", lane, offset, "the last line is not complete and was not read");
            }
            Tail::Unfinished | Tail::Nothing => {}
        }
        Ok(Step::Done(Polled::End))
    }

    /// Hands out what the file ends with, though its newline is missing.
    pub(super) fn deliver_tail(&mut self, into: &mut Inputs, rules: Rules<'_>) -> io::Result<Step> {
        self.say_format(into);
        match self.lines.take_tail() {
            Found::Long(long) => self.push_long(into, &long),
            Found::Line | Found::Continued | Found::Pause | Found::Later | Found::End => {
                if self.is_header(into, rules)? {
                    self.lines.pass_tail();
                    return Ok(Step::Busy);
                }
                into.push(Position::at(self.lines.offset()), self.lines.line());
                self.number(into, self.lines.line_number());
                self.lines.pass_tail();
            }
        }
        self.learn_first_record();
        Ok(Step::Done(Polled::Records))
    }

    /// Counts how long the rest of an archive is waited for: `true` once, after a second.
    pub(super) fn is_incomplete_for_long(&mut self) -> bool {
        self.incomplete_polls = self.incomplete_polls.saturating_add(1);
        self.incomplete_polls == PATIENCE_POLLS && self.follow == Follow::Yes
    }

    /// Says once that lines wait behind a quote that is open for long.
    pub(super) fn warn_of_quote(&mut self, lane: &str) {
        if self.lines.tail() == Tail::OpenQuote && self.quiet_polls > WARN_POLLS && self.warning == Warning::Due {
            self.warning = Warning::Given;
            let (offset, line) = (self.lines.offset(), self.lines.line_number());
            tracing::warn!(
                code = "HX2081",
                lane,
                offset,
                line,
                "lines wait behind a quote that opens in this record and does not close; after maxLine bytes, or when the \
                 file is rotated, the record becomes a dead letter and the lines behind it are read"
            );
        }
    }
}
