//! The file as a source: one lane, position = byte offset of a line.
//!
//! Reads: the file at the path, and files that a rotation moved away from it. Writes: inputs.
//! Invariant: the bookmark passes complete lines only, or a last line that was delivered as it stood; a file is left
//! for its successor only when it was read to its end.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::Duration;

use hapax_engine::batch::Inputs;
use hapax_engine::source::{Follow, Held, Polled, Room, Source, SourceError, StartAt};
use hapax_model::position::{Bookmark, Position};
use tokio::time::sleep;

use super::config::{FileSourceConfig, Rotation};
use super::feed::{Fed, Feed, Packing, Unreadable};
use super::header::Naming;
use super::incarnation::{Fit, Opened};
use super::lines::{Found, Lines, Seam, Tail};
use super::reading::{BLOCKS_PER_POLL, Filled, PATIENCE_POLLS, Reading, Rules, Step};
use super::rotation;

/// How long a poll waits when there is nothing.
const WAIT: Duration = Duration::from_millis(25);
/// How many idle polls a rotated file is watched for late lines.
const GRACE_POLLS: u32 = 2;
/// How many idle polls a lane of many waits before it makes room for another.
const YIELD_POLLS: u32 = 8;

/// JSON lines or CSV records in a file.
#[derive(Debug)]
pub struct FileSource {
    config: FileSourceConfig,
    lane: String,
    reading: Option<Reading>,
    /// The file before this one: kept open to notice lines that come late, and to go back to if a commit fails.
    left: Option<Left>,
}

#[derive(Debug)]
struct Left {
    opened: Opened,
    feed: Feed,
    lines: Lines,
}

/// Where the file of a bookmark is.
#[derive(Debug)]
enum Whereabouts {
    Here(Opened),
    /// The same file, but shorter than it was.
    Truncated {
        length: u64,
    },
    /// Not found; something else is at the path.
    Elsewhere {
        now: String,
    },
}

/// Whether reading can go on from a bookmark, and with what.
#[derive(Debug)]
enum Place {
    Found(Opened, Seam),
    Gone(String),
    Other(String),
}

impl FileSource {
    /// A source that reads the file of `config`.
    #[must_use]
    pub fn new(config: FileSourceConfig) -> Self {
        let lane = config.name.lane.clone();
        Self { config, lane, reading: None, left: None }
    }

    fn unavailable(&self, source: io::Error) -> SourceError {
        unavailable(&self.config.path, source)
    }

    fn gap(&self, what: &str) -> SourceError {
        SourceError::Gap { what: format!("{}: {what}", self.lane) }
    }

    /// The handles we have come first: a file that we read may have been deleted meanwhile.
    fn find(&self, bookmark: &Bookmark) -> io::Result<Whereabouts> {
        let ours = self.reading.iter().map(|reading| &reading.opened).chain(self.left.iter().map(|left| &left.opened));
        for opened in ours {
            if opened.belongs(bookmark)? {
                return Ok(Whereabouts::Here(opened.try_clone()?));
            }
        }
        let at_path = self.open();
        if let Ok(opened) = &at_path
            && opened.belongs(bookmark)?
        {
            return Ok(Whereabouts::Here(at_path?));
        }
        match &at_path {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            Ok(_) | Err(_) => {
                if let Some(opened) = rotation::find(&self.config.path, &self.config.format, bookmark)? {
                    return Ok(Whereabouts::Here(opened));
                }
            }
        }
        let opened = at_path?;
        let length = opened.length()?;
        if opened.was(bookmark) && length < bookmark.position.offset {
            return Ok(Whereabouts::Truncated { length });
        }
        Ok(Whereabouts::Elsewhere { now: opened.describe(0)?.text })
    }

    fn open(&self) -> io::Result<Opened> {
        Opened::open(&self.config.path, &self.config.format)
    }

    const fn is_one_of_many(&self) -> bool {
        matches!(self.config.rotation, Rotation::OtherLanes(_))
    }

    fn place(&self, bookmark: &Bookmark) -> io::Result<Place> {
        let at = bookmark.position.offset;
        let cut = |length: u64| format!("bytes {length} to {at}: the file was truncated in place, it ends at {length}");
        let found = match self.find(bookmark) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_one_of_many() => {
                return Ok(Place::Gone(format!("the file is gone, and was read only up to byte {at}")));
            }
            found => found?,
        };
        Ok(match found {
            Whereabouts::Elsewhere { now } => Place::Other(now),
            Whereabouts::Truncated { length } => Place::Gone(cut(length)),
            Whereabouts::Here(opened) => match opened.fit(at)? {
                Fit::LineStart => Place::Found(opened, Seam::LineStart),
                Fit::AfterUnterminated => Place::Found(opened, Seam::Unterminated),
                Fit::Short { length } => Place::Gone(cut(length)),
                Fit::InsideLine => Place::Gone(continued(at)),
            },
        })
    }

    fn resolve(&self, at: StartAt) -> Result<Bookmark, SourceError> {
        let opened = match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_one_of_many() => {
                return Err(self.gap("the file is gone, and nothing of it was read"));
            }
            opened => opened.map_err(|error| self.unavailable(error))?,
        };
        let packed = opened.packing().map_err(|error| self.unavailable(error))? != Packing::None;
        let offset = match at {
            StartAt::Earliest => 0,
            StartAt::Latest if packed => unpacked_length(&opened).map_err(|error| self.unavailable(error))?,
            StartAt::Latest => opened.last_line_start().map_err(|error| self.unavailable(error))?,
            StartAt::At(position) => match opened.fit(position.offset).map_err(|error| self.unavailable(error))? {
                Fit::LineStart => position.offset,
                Fit::Short { length } => {
                    return Err(self.gap(&format!("there is no byte {position}, the file ends at {length}")));
                }
                Fit::InsideLine | Fit::AfterUnterminated => {
                    return Err(self.gap(&format!("byte {position} is inside a line; name the byte after a newline")));
                }
            },
        };
        // A header that cannot serve is refused before anybody is fenced for it.
        self.naming(&opened).map_err(|error| self.unavailable(error))?;
        let description = opened.describe(offset).map_err(|error| self.unavailable(error))?;
        Ok(Bookmark::at(&description.text, offset))
    }

    fn open_at(&self, bookmark: &Bookmark, follow: Follow) -> Result<Reading, SourceError> {
        let (opened, seam) = match self.place(bookmark).map_err(|error| self.unavailable(error))? {
            Place::Found(opened, seam) => (opened, seam),
            Place::Gone(missing) => return Err(self.gap(&missing)),
            Place::Other(now) => return Err(self.gap(&vanished(bookmark, &now))),
        };
        let reading = self.reading_at(opened, seam, bookmark, follow);
        reading.map_err(|error| self.unavailable(error))
    }

    fn reading_at(&self, opened: Opened, seam: Seam, bookmark: &Bookmark, follow: Follow) -> io::Result<Reading> {
        let naming = self.naming(&opened)?;
        let offset = bookmark.position.offset;
        let mut lines = Lines::new(offset, self.config.format.cut(), self.config.max_line, seam);
        if let (true, Some(before)) = (self.config.format.counts_lines(), opened.lines_before(offset)?) {
            lines.behind_lines(before);
        }
        Reading::new(opened, lines, naming, bookmark.incarnation.clone(), follow)
    }

    fn naming(&self, opened: &Opened) -> io::Result<Naming> {
        Naming::of(opened, &self.config.format, &self.config.expected, self.config.max_line)
    }

    /// One step of reading; never waits.
    fn step(&mut self, into: &mut Inputs, room: Room) -> Result<Step, SourceError> {
        let Self { config, reading, .. } = self;
        let reading = reading.as_mut().expect("`assign` comes before `poll`");
        let rules = Rules { format: &config.format, expected: &config.expected, max_line: config.max_line };
        let filled = reading.fill(into, room, rules).map_err(|error| {
            let delivered = reading.lines.offset();
            unavailable_behind(&config.path, error, Some(delivered))
        })?;
        match filled {
            Filled::Step(step) => Ok(step),
            Filled::Continued => {
                let what = continued(reading.lines.offset());
                Err(self.gap(&what))
            }
            Filled::End => self.at_end(into),
        }
    }

    /// The file was read to its end.
    fn at_end(&mut self, into: &mut Inputs) -> Result<Step, SourceError> {
        self.check_left()?;
        let at_path = look(&self.config.path).map_err(|error| self.unavailable(error))?;
        let Self { config, reading, lane, .. } = self;
        let reading = reading.as_mut().expect("`assign` comes before `poll`");
        let rules = Rules { format: &config.format, expected: &config.expected, max_line: config.max_line };
        if reading.is_packed() {
            return end_of_archive(reading, into, lane, rules).map_err(|error| unavailable(&config.path, error));
        }
        let length = reading.opened.length().map_err(|error| unavailable(&config.path, error))?;
        let offset = reading.lines.offset();
        if length < offset {
            let what = format!("the file was truncated in place: it was read up to byte {offset} and ends at {length}");
            return Err(self.gap(&what));
        }
        if length != reading.lines.read_upto() {
            if length < reading.lines.read_upto() {
                reading.lines.read_again(); // an unfinished line was taken back, or is being written anew
            }
            return Ok(Step::Busy);
        }
        match at_path {
            Some(other) if !reading.opened.is(&other) => self.rotated(into, other.len()),
            None if matches!(config.rotation, Rotation::OtherLanes(_)) => self.rotated(into, 0),
            Some(_) | None => {
                reading.rotated_polls = 0;
                match reading.follow {
                    Follow::Yes => Ok(self.quiet()),
                    Follow::No => {
                        let step = reading.end_once(into, lane, rules);
                        let step = step.map_err(|error| unavailable(&config.path, error))?;
                        Ok(self.ended(step))
                    }
                }
            }
        }
    }

    /// Nothing new. A lane of many says that it has come to its end, and makes room if another waits.
    fn quiet(&mut self) -> Step {
        let reading = self.reading.as_mut().expect("`assign` comes before `poll`");
        reading.quiet_polls += 1;
        reading.warn_of_quote(&self.lane);
        let Rotation::OtherLanes(crowd) = &self.config.rotation else { return Step::Quiet };
        let (makes_room, at_end) = (crowd.is_waiting(), reading.lines.tail() == Tail::Nothing);
        if at_end && reading.quiet_polls > if makes_room { YIELD_POLLS } else { PATIENCE_POLLS } {
            reading.mark_end();
        }
        // A half line gets more time, but keeps nobody waiting for ever: the file is opened again.
        let patience = if at_end { YIELD_POLLS } else { PATIENCE_POLLS };
        if makes_room && reading.quiet_polls > patience { Step::Done(Polled::End) } else { Step::Quiet }
    }

    /// The end of a lane of many is said in its bookmark.
    fn ended(&mut self, step: Step) -> Step {
        let many = self.is_one_of_many();
        if let (Step::Done(Polled::End), true, Some(reading)) = (step, many, &mut self.reading)
            && reading.lines.tail() == Tail::Nothing
        {
            reading.mark_end();
        }
        step
    }

    /// Another file is at the path, and nothing more was found in this one.
    fn rotated(&mut self, into: &mut Inputs, length_at_path: u64) -> Result<Step, SourceError> {
        let Self { config, reading, .. } = self;
        let reading = reading.as_mut().expect("`assign` comes before `poll`");
        reading.rotated_polls += 1;
        let polls = reading.rotated_polls;
        if polls <= GRACE_POLLS {
            return Ok(Step::Quiet);
        }
        match reading.lines.tail() {
            Tail::Unfinished | Tail::OpenQuote if polls <= PATIENCE_POLLS => return Ok(Step::Quiet),
            Tail::OpenQuote => {
                reading.lines.ignore_quotes();
                return Ok(Step::Busy);
            }
            Tail::Unfinished | Tail::Whole => {
                reading.rotated_polls = 0;
                let rules = Rules { format: &config.format, expected: &config.expected, max_line: config.max_line };
                return reading.deliver_tail(into, rules).map_err(|error| unavailable(&config.path, error));
            }
            Tail::Nothing => {}
        }
        if let Rotation::OtherLanes(_) = config.rotation {
            reading.mark_end();
            return Ok(Step::Done(Polled::End));
        }
        // While the new file is empty, its directory is searched once a second only.
        let search = length_at_path > 0 || polls % PATIENCE_POLLS == GRACE_POLLS + 1;
        let next = if search { rotation::successor(&config.path, &config.format, &reading.opened) } else { Ok(None) };
        match next.map_err(|error| unavailable(&config.path, error))? {
            Some(next) => self.turn_over(next),
            None if reading.follow == Follow::No => Ok(Step::Done(Polled::End)),
            None => Ok(Step::Quiet),
        }
    }

    fn turn_over(&mut self, next: Opened) -> Result<Step, SourceError> {
        let description = next.describe(0).map_err(|error| self.unavailable(error))?;
        let naming = self.naming(&next).map_err(|error| self.unavailable(error))?;
        let old = self.reading.as_ref().expect("`assign` comes before `poll`");
        if let (Naming::Awaited, Follow::Yes) = (&naming, old.follow) {
            return Ok(Step::Quiet); // only a whole header can be compared
        }
        old.naming.refuse_change(&naming).map_err(|error| self.unavailable(error))?;
        let incarnation = old.incarnation.next(&description.text);
        tracing::info!(lane = %self.lane, from = %old.incarnation, to = %incarnation, "the file was rotated");
        let lines = Lines::new(0, self.config.format.cut(), self.config.max_line, Seam::LineStart);
        let reading = Reading::new(next, lines, naming, incarnation, old.follow);
        let reading = reading.map_err(|error| self.unavailable(error))?;
        let Some(Reading { opened, feed, lines, .. }) = self.reading.replace(reading) else { return Ok(Step::Busy) };
        self.left = Some(Left { opened, feed, lines });
        Ok(Step::Done(Polled::Boundary))
    }

    /// A line that was written to the old file after its successor had begun would be lost without a word.
    fn check_left(&mut self) -> Result<(), SourceError> {
        let Some(left) = &mut self.left else { return Ok(()) };
        let (offset, mut budget) = (left.lines.offset(), BLOCKS_PER_POLL);
        let found = left.lines.next(&mut left.feed, &mut budget);
        let late = match found.map_err(|error| unavailable(&self.config.path, error))? {
            Found::End => left.lines.tail() != Tail::Nothing,
            Found::Later => false,
            Found::Line | Found::Long(_) | Found::Continued | Found::Pause => true,
        };
        if !late {
            return Ok(());
        }
        let what = format!(
            "lines were written to the rotated file behind byte {offset} after its successor had been started; \
             they were not read: copy them into the new file"
        );
        Err(self.gap(&what))
    }
}

impl Source for FileSource {
    fn lane(&self) -> &str {
        &self.lane
    }

    fn identity(&self) -> String {
        self.config.name.identity.clone()
    }

    async fn start(&mut self, at: StartAt) -> Result<Bookmark, SourceError> {
        self.resolve(at)
    }

    async fn hold(&mut self, bookmark: &Bookmark) -> Result<Held, SourceError> {
        Ok(match self.place(bookmark).map_err(|error| self.unavailable(error))? {
            Place::Found(opened, _) => {
                self.naming(&opened).map_err(|error| self.unavailable(error))?;
                Held::Yes
            }
            Place::Gone(missing) => Held::Gone { missing },
            Place::Other(now) => Held::OtherIncarnation { now },
        })
    }

    async fn assign(&mut self, bookmark: &Bookmark, follow: Follow) -> Result<(), SourceError> {
        self.reading = Some(self.open_at(bookmark, follow)?);
        self.left = None;
        Ok(())
    }

    /// Cancel-safe: it waits only after everything else was done.
    async fn poll(&mut self, into: &mut Inputs, room: Room) -> Result<Polled, SourceError> {
        match self.step(into, room)? {
            Step::Done(polled) => return Ok(polled),
            Step::Busy => tokio::task::yield_now().await,
            Step::Quiet => sleep(WAIT).await,
        }
        Ok(Polled::Idle)
    }

    fn bookmark(&self) -> Bookmark {
        let reading = self.reading.as_ref().expect("`assign` comes before `bookmark`");
        Bookmark { incarnation: reading.incarnation.clone(), position: Position::at(reading.lines.offset()) }
    }

    async fn ack(&mut self, _upto: &Bookmark) -> Result<(), SourceError> {
        Ok(())
    }

    fn extent(&self) -> Option<u64> {
        let reading = self.reading.as_ref().filter(|reading| !reading.is_packed())?;
        reading.opened.length().ok()
    }
}

/// What is at the path now, if anything.
fn look(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The end of an archive is the end of the lane: it is not followed, and what comes to its path later is another file.
fn end_of_archive(reading: &mut Reading, into: &mut Inputs, lane: &str, rules: Rules<'_>) -> io::Result<Step> {
    let step = reading.end_once(into, lane, rules)?;
    if step == Step::Done(Polled::End) {
        if reading.follow == Follow::Yes {
            tracing::info!(lane, "the archive was read to its end; compressed files are read once and not followed");
        }
        reading.mark_end();
    }
    Ok(step)
}

/// How much a packed file holds: it must be unpacked to know.
fn unpacked_length(opened: &Opened) -> io::Result<u64> {
    let (mut feed, mut block, mut length) = (Feed::new(opened.file.try_clone()?), vec![0; 256 * 1024], 0);
    loop {
        match feed.read_at(&mut block, length)? {
            Fed::Bytes(read) => length += read as u64,
            Fed::NotYet => {}
            Fed::Later => std::thread::sleep(WAIT),
            Fed::End => return Ok(length),
        }
    }
}

fn unavailable(path: &Path, source: io::Error) -> SourceError {
    unavailable_behind(path, source, None)
}

/// An error as the engine knows it: what cannot be read will not be read by trying again.
#[expect(clippy::wildcard_enum_match_arm, reason = "the system may answer anything; most of it has one cure")]
fn unavailable_behind(path: &Path, source: io::Error, delivered: Option<u64>) -> SourceError {
    if let Some(Unreadable { code, what }) = source.get_ref().and_then(|inner| inner.downcast_ref()) {
        let upto =
            delivered.map(|offset| format!("; all records before byte {offset} are delivered")).unwrap_or_default();
        return SourceError::Unreadable { code, what: format!("{}: {what}{upto}", path.display()) };
    }
    let cure = match source.kind() {
        io::ErrorKind::NotFound => "create it or correct `path`",
        io::ErrorKind::PermissionDenied => {
            "give the user that runs hapax the right to read it and to enter its directory"
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => "name a file in `path`",
        _ => "check the disk or mount that it is on",
    };
    SourceError::Unavailable { what: format!("{} cannot be read ({cure})", path.display()), source }
}

fn continued(offset: u64) -> String {
    format!(
        "the line that ends at byte {offset} was delivered without its newline, and now goes on: \
         it was delivered before it was complete"
    )
}

fn vanished(bookmark: &Bookmark, now: &str) -> String {
    format!(
        "progress is at byte {bookmark}, but the path now holds {now}, and the old file is not beside it \
         under another name: what it held from that byte on cannot be read"
    )
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
