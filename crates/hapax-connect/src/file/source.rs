//! The file as a source: one lane, position = byte offset of a line.
//!
//! Reads: the file at the path, and files that a rotation moved away from it. Writes: inputs.
//! Invariant: the bookmark passes complete lines only, or a last line that was delivered as it stood; a file is left
//! for its successor only when it was read to its end.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use hapax_engine::batch::Inputs;
use hapax_engine::source::{Follow, Held, Polled, Room, Source, SourceError, StartAt};
use hapax_model::fault::{Bug, planted};
use hapax_model::position::{Bookmark, Incarnation, Position};
use tokio::time::sleep;

use super::called::{unavailable, unavailable_behind};
use super::chain::{RotationRule, Stem};
use super::config::{Crowd, FileSourceConfig};
use super::facts::Facts;
use super::feed::{Feed, Packing};
use super::header::Naming;
use super::incarnation::{FirstRecord, Opened};
use super::lines::{Lines, Seam, Tail};
use super::reading::{Filled, PATIENCE_POLLS, Reading, Rules, Step};
use super::recognise::{GrowingCopy, Place, continued, vanished};
use super::restored::RestoredCopy;
use super::turn::{DOUBT_LASTS, Doubt, NextFile, WriterOfCurrent};

/// How long a poll waits when there is nothing.
pub(super) const WAIT: Duration = Duration::from_millis(25);
/// How many idle polls a rotated file is watched for late lines.
const GRACE_POLLS: u32 = 2;
/// How many idle polls a lane of many waits before it makes room for another.
const YIELD_POLLS: u32 = 8;
/// How long a lane of many keeps its place while others wait, quiet or not.
const YIELD_AFTER: Duration = Duration::from_secs(1);

/// JSON lines or CSV records in a file, and in those that a rotation makes of it.
#[derive(Debug)]
pub struct FileSource {
    pub(super) config: FileSourceConfig,
    pub(super) lane: String,
    pub(super) reading: Option<Reading>,
    /// What progress keeps of the files, as of the current one.
    pub(super) facts: Facts,
    /// Whether progress comes from a version that kept no facts.
    pub(super) facts_unknown: bool,
    /// The file before this one: kept open to notice lines that come late.
    pub(super) left: Option<Left>,
    /// The file after this one.
    pub(super) next: Option<NextFile>,
    /// What cannot be placed at the moment.
    pub(super) doubt: Option<Doubt>,
    /// A compressed copy that is being written.
    pub(super) growing: Option<GrowingCopy>,
    /// Archives that were compared with the file beside them, as they were then.
    pub(super) compared: BTreeSet<String>,
    /// Where a delivery without progress begins, once that was resolved: it waits with the file, not with its name.
    resolved: Option<(StartAt, Bookmark)>,
    /// Progress, where places before it are looked for: it knows the files that they lie in.
    pub(super) looking_back_from: Option<Bookmark>,
    assigned_at: Instant,
    assigned_offset: u64,
    assigned_number: u32,
}

#[derive(Debug)]
pub(super) struct Left {
    pub(super) opened: Opened,
    pub(super) feed: Feed,
    pub(super) lines: Lines,
}

impl FileSource {
    /// A source that reads the file of `config`.
    #[must_use]
    pub fn new(config: FileSourceConfig) -> Self {
        Self {
            lane: config.name.lane.clone(),
            config: config.seen_now(),
            reading: None,
            facts: Facts::default(),
            facts_unknown: false,
            left: None,
            next: None,
            doubt: None,
            growing: None,
            compared: BTreeSet::new(),
            resolved: None,
            looking_back_from: None,
            assigned_at: Instant::now(),
            assigned_offset: 0,
            assigned_number: 0,
        }
    }

    pub(super) fn unavailable(&self, source: io::Error) -> SourceError {
        unavailable(&self.config.path, source)
    }

    pub(super) fn gap(&self, what: &str) -> SourceError {
        SourceError::Gap { what: format!("{}: {what}", self.lane) }
    }

    pub(super) fn reading(&self) -> &Reading {
        self.reading.as_ref().expect("`assign` comes before `poll`")
    }

    /// The files that are open: they may have been deleted meanwhile.
    pub(super) fn handles(&self) -> impl Iterator<Item = &Opened> {
        self.reading.iter().map(|reading| &reading.opened).chain(self.left.iter().map(|left| &left.opened))
    }

    pub(super) fn open(&self) -> io::Result<Opened> {
        let path = self.config.live_path().ok_or(io::ErrorKind::NotFound)?;
        Opened::open(path, &self.config.format)
    }

    pub(super) const fn is_one_of_many(&self) -> bool {
        self.config.crowd.is_some()
    }

    pub(super) fn current_bookmark(&self) -> Bookmark {
        let reading = self.reading();
        Bookmark::new(reading.incarnation.clone(), Position::at(reading.lines.offset()))
    }

    fn open_at(&mut self, bookmark: &Bookmark, follow: Follow) -> Result<Reading, SourceError> {
        let (opened, seam) = match self.place(bookmark)? {
            Place::Found(opened, seam) => (opened, seam),
            Place::Replaced(opened) => return self.reading_of_next(opened, bookmark, follow),
            Place::Gone(missing) => return Err(self.gap(&missing)),
            Place::Resting => return Err(self.unavailable(io::ErrorKind::NotFound.into())),
            Place::Restored(RestoredCopy { now, .. }) | Place::Other(now) => {
                return Err(self.gap(&vanished(bookmark, &now)));
            }
        };
        let naming = self.naming(&opened).map_err(|error| self.unavailable_in(&opened, error))?;
        let reading = self.reading_at(opened, naming, seam, bookmark, follow);
        reading.map_err(|error| self.unavailable(error))
    }

    /// The file that has replaced the one of `bookmark`, from its beginning.
    fn reading_of_next(&self, opened: Opened, bookmark: &Bookmark, follow: Follow) -> Result<Reading, SourceError> {
        let read = || -> io::Result<Reading> {
            let description = opened.describe(0)?;
            let incarnation = bookmark.incarnation.next(&description.text);
            let next = Bookmark::new(incarnation, Position::at(0));
            self.reading_at(opened.try_clone()?, self.naming(&opened)?, Seam::LineStart, &next, follow)
        };
        read().map_err(|error| self.unavailable(error))
    }

    fn reading_at(
        &self,
        opened: Opened,
        naming: Naming,
        seam: Seam,
        bookmark: &Bookmark,
        follow: Follow,
    ) -> io::Result<Reading> {
        let offset = bookmark.position.offset;
        let mut lines = Lines::new(offset, self.config.format.cut(), self.config.max_line, seam);
        if let (true, Some(before)) = (self.config.format.counts_lines(), opened.lines_before(offset)?) {
            lines.behind_lines(before);
        }
        if opened.packing()? == Packing::None {
            lines.behind_bytes(opened.bytes_before(offset)?);
        }
        let is_copy = !opened.was(bookmark);
        let first = match is_copy {
            true => FirstRecord::Known,
            false => opened.settled(&bookmark.incarnation.text)?,
        };
        let mut incarnation = bookmark.incarnation.clone();
        if planted(Bug::IncarnationLearnedAnew) && !is_copy {
            incarnation = Incarnation::new(incarnation.number, &opened.describe(offset)?.text);
        }
        Reading::new(opened, lines, naming, incarnation, first, follow)
    }

    pub(super) fn naming(&self, opened: &Opened) -> io::Result<Naming> {
        Naming::of(opened, &self.config.format, &self.config.expected, self.config.max_line)
    }

    /// One step of reading; never waits.
    fn read_on(&mut self, into: &mut Inputs, room: Room) -> Result<Step, SourceError> {
        let Self { config, reading, .. } = self;
        let reading = reading.as_mut().expect("`assign` comes before `poll`");
        let rules = Rules { format: &config.format, expected: &config.expected, max_line: config.max_line };
        let filled = match reading.fill(into, room, rules) {
            Ok(filled) => filled,
            Err(error) => {
                let delivered = reading.lines.offset();
                return Err(unavailable_behind(&self.path_of(&self.reading().opened), error, Some(delivered)));
            }
        };
        match filled {
            Filled::Step(step) => Ok(step),
            Filled::Continued => {
                let what = continued(reading.lines.offset());
                Err(self.gap(&what))
            }
            Filled::Incomplete => Ok(self.wait_for_rest()),
            Filled::End => self.at_end(into),
        }
    }

    /// The file was read to its end.
    fn at_end(&mut self, into: &mut Inputs) -> Result<Step, SourceError> {
        self.check_left()?;
        let at_path = look(self.config.live_path()).map_err(|error| self.unavailable(error))?;
        let Self { config, reading, .. } = self;
        let reading = reading.as_mut().expect("`assign` comes before `poll`");
        if reading.is_packed() {
            return self.end_of_archive(into);
        }
        let length = reading.opened.length().map_err(|error| unavailable(&config.path, error))?;
        let offset = reading.lines.offset();
        if length < offset {
            return Err(self.gap(&truncated(offset, length)));
        }
        if length != reading.lines.read_upto() {
            if length < reading.lines.read_upto() {
                reading.lines.read_again(); // an unfinished line was taken back, or is being written anew
            }
            return Ok(Step::Busy);
        }
        self.at_quiet_end(at_path.as_ref(), into)
    }

    /// There is nothing more in the file now. If it has lost its name, another may follow; else it is waited with.
    pub(super) fn at_quiet_end(&mut self, at_path: Option<&Metadata>, into: &mut Inputs) -> Result<Step, SourceError> {
        let Self { config, reading, lane, .. } = self;
        let reading = reading.as_mut().expect("`assign` comes before `poll`");
        let rules = Rules { format: &config.format, expected: &config.expected, max_line: config.max_line };
        match at_path {
            Some(other) if !reading.opened.is(other) => self.rotated(into),
            None if config.crowd.is_some() || config.rotation.makes_chains() => self.rotated(into),
            Some(_) | None => {
                reading.rotated_polls = 0;
                self.doubt = None;
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

    /// Nothing new. A lane of many says that it has come to its end, and makes room if another waits; so does one whose file
    /// will be replaced, since nobody can ask the old one later.
    pub(super) fn quiet(&mut self) -> Step {
        let reading = self.reading.as_mut().expect("`assign` comes before `poll`");
        reading.quiet_polls += 1;
        reading.warn_of_quote(&self.lane);
        let says_its_end = self.config.crowd.is_some() || self.config.rotation == RotationRule::Replaced;
        if !says_its_end {
            return Step::Quiet;
        }
        let makes_room = self.config.crowd.as_ref().is_some_and(Crowd::is_waiting);
        let at_end = reading.lines.tail() == Tail::Nothing;
        if at_end && reading.quiet_polls > if makes_room { YIELD_POLLS } else { PATIENCE_POLLS } {
            reading.mark_end();
        }
        // A half line gets more time, but keeps nobody waiting for ever: the file is opened again.
        let patience = if at_end { YIELD_POLLS } else { PATIENCE_POLLS };
        if makes_room && reading.quiet_polls > patience { Step::Done(Polled::End) } else { Step::Quiet }
    }

    /// The end of a lane of many is said in its bookmark.
    fn ended(&mut self, step: Step) -> Step {
        let says_its_end = self.is_one_of_many() || self.config.rotation == RotationRule::Replaced;
        if let (Step::Done(Polled::End), true, Some(reading)) = (step, says_its_end, &mut self.reading)
            && reading.lines.tail() == Tail::Nothing
        {
            // Nobody can ask a file that was replaced whether it has grown: it counts as read once it was quiet for a while.
            if self.config.rotation == RotationRule::Replaced && reading.quiet_polls <= PATIENCE_POLLS {
                reading.quiet_polls += 1;
                return Step::Quiet;
            }
            reading.mark_end();
        }
        step
    }

    /// The file has lost its name, and nothing more was found in it.
    fn rotated(&mut self, into: &mut Inputs) -> Result<Step, SourceError> {
        let reading = self.reading.as_mut().expect("`assign` comes before `poll`");
        reading.rotated_polls += 1;
        let polls = reading.rotated_polls;
        if polls <= GRACE_POLLS && !reading.rests() {
            return Ok(Step::Quiet);
        }
        if reading.lines.tail() != Tail::Nothing {
            return self.rotated_within_a_line(into, polls);
        }
        // After a second without a successor its folder is searched once a second only.
        if polls > PATIENCE_POLLS && !polls.is_multiple_of(PATIENCE_POLLS) && self.doubt.is_none() {
            return Ok(self.quiet());
        }
        self.find_next()
    }

    /// The same, and its last line has no newline. Its writer may hold the file for long, and complete the line: the line
    /// counts once another file follows, or nothing can follow.
    fn rotated_within_a_line(&mut self, into: &mut Inputs, polls: u32) -> Result<Step, SourceError> {
        if !polls.is_multiple_of(PATIENCE_POLLS) {
            return Ok(if polls < PATIENCE_POLLS { Step::Quiet } else { self.quiet() });
        }
        let writer = self.writer_of_current()?;
        let Self { config, reading, lane, .. } = self;
        let reading = reading.as_mut().expect("`assign` comes before `poll`");
        let rules = Rules { format: &config.format, expected: &config.expected, max_line: config.max_line };
        let step = match (writer, reading.follow, reading.lines.tail()) {
            (WriterOfCurrent::Unknown, _, _) => return self.find_next(),
            (WriterOfCurrent::MayWriteOn, Follow::Yes, _) => return Ok(self.quiet()),
            (WriterOfCurrent::MayWriteOn, Follow::No, _) => reading.end_once(into, lane, rules),
            (WriterOfCurrent::MovedOn, _, Tail::OpenQuote) => {
                reading.lines.ignore_quotes();
                Ok(Step::Busy)
            }
            (WriterOfCurrent::MovedOn, _, Tail::Unfinished | Tail::Whole | Tail::Nothing) => {
                reading.rotated_polls = 0;
                reading.deliver_tail(into, rules)
            }
        };
        step.map_err(|error| unavailable(&config.path, error))
    }

    /// Whether the source goes on from `bookmark`, as one look at its folder tells.
    fn judge_held(&mut self, bookmark: &Bookmark) -> Result<Held, SourceError> {
        let facts = self.facts_of(bookmark)?;
        match self.place(bookmark)? {
            Place::Resting => {
                let changed = self.changed_after_reading(&facts).map_err(|error| self.unavailable(error))?;
                Ok(changed.map_or(Held::Yes, |missing| Held::Gone { missing }))
            }
            Place::Replaced(opened) | Place::Found(opened, _) => {
                self.naming(&opened).map_err(|error| self.unavailable_in(&opened, error))?;
                let beside = self.other_content_beside(&facts).map_err(|error| self.unavailable(error))?;
                let changed = match beside {
                    None => self.changed_after_reading(&facts).map_err(|error| self.unavailable(error))?,
                    other => other,
                };
                let changed = match changed {
                    None if bookmark.facts.is_some() || (self.reading.is_some() && !self.facts_unknown) => {
                        self.unknown_older(&opened, &facts)?
                    }
                    changed => changed,
                };
                Ok(changed.map_or(Held::Yes, |missing| Held::Gone { missing }))
            }
            Place::Gone(missing) => Ok(Held::Gone { missing }),
            Place::Restored(copy) => Ok(Held::Copied { now: copy.now }),
            Place::Other(now) => Ok(Held::OtherIncarnation { now }),
        }
    }

    /// What the files of the chain are called now.
    fn names_now(&self) -> Vec<(String, String)> {
        let listing =
            Stem::of(&self.config.path, self.config.rotation).and_then(|stem| stem.list(self.config.rotation));
        listing.unwrap_or_default().into_iter().map(|member| (member.name, member.identity)).collect()
    }

    /// Whether others have waited long enough for this lane to make room.
    fn must_yield(&self) -> bool {
        let waiting = self.config.crowd.as_ref().is_some_and(Crowd::is_waiting);
        let half_line = self.reading.as_ref().is_some_and(Reading::awaits_member);
        waiting
            && self.assigned_at.elapsed() > YIELD_AFTER
            && self.doubt.is_none()
            && !half_line
            && self.has_had_its_turn()
    }

    /// Whether it has moved, or found nothing, since it was assigned: whoever makes room before that is not opened again, since
    /// nothing about its files has changed.
    fn has_had_its_turn(&self) -> bool {
        let had = |reading: &Reading| {
            let moved =
                reading.lines.offset() != self.assigned_offset || reading.incarnation.number != self.assigned_number;
            reading.follow == Follow::Yes && (moved || reading.quiet_polls > 0)
        };
        self.reading.as_ref().is_some_and(had)
    }
}

impl Source for FileSource {
    fn lane(&self) -> &str {
        &self.lane
    }

    fn identity(&self) -> String {
        self.config.name.identity.clone()
    }

    /// Resolved once: whoever must try again, because the target is away, begins with the same file.
    async fn start(&mut self, at: StartAt) -> Result<Bookmark, SourceError> {
        if let Some((_, bookmark)) = self.resolved.as_ref().filter(|(resolved, _)| *resolved == at) {
            return Ok(bookmark.clone());
        }
        let bookmark = self.resolve(at)?;
        self.resolved = Some((at, bookmark.clone()));
        Ok(bookmark)
    }

    async fn hold(&mut self, bookmark: &Bookmark) -> Result<Held, SourceError> {
        let began = Instant::now();
        let mut last = None;
        loop {
            let names = self.names_now();
            let held = self.judge_held(bookmark)?;
            if held == Held::Yes || began.elapsed() >= DOUBT_LASTS {
                return Ok(held);
            }
            // A folder is not read at once: while a rotation changes it, a file may be seen under two names, or under none. So
            // what speaks against going on is believed once it was said twice of the same names.
            let unchanged = names == self.names_now();
            let said = (held, names);
            if unchanged && last.as_ref() == Some(&said) {
                return Ok(said.0);
            }
            last = unchanged.then_some(said);
            sleep(WAIT).await;
        }
    }

    async fn hold_range(&mut self, from: &Bookmark, to: &Bookmark) -> Result<Held, SourceError> {
        self.holds_range(from, to).await
    }

    async fn assign(&mut self, bookmark: &Bookmark, follow: Follow) -> Result<(), SourceError> {
        let reading = self.open_at(bookmark, follow)?;
        let mut facts = self.facts_of(bookmark)?;
        facts.device = Some(reading.opened.device());
        if reading.incarnation.number == bookmark.incarnation.number {
            facts.copy = (!reading.opened.was(bookmark)).then(|| reading.opened.identity().to_owned());
        } else {
            (facts.tail, facts.archive, facts.copy) = (None, None, None);
        }
        facts.gone = false;
        facts.name = self.name_of(&reading.opened, &facts).or(facts.name);
        if planted(Bug::IncarnationLearnedAnew) {
            facts.tail = reading.opened.tail_hash(reading.lines.offset()).map_err(|error| self.unavailable(error))?;
        }
        self.warn_of_given_up(&reading.opened, &facts).map_err(|error| self.unavailable(error))?;
        (self.facts, self.facts_unknown) = (facts, bookmark.facts.is_none());
        (self.left, self.next, self.doubt) = (None, None, None);
        self.assigned_at = Instant::now();
        (self.assigned_offset, self.assigned_number) = (reading.lines.offset(), reading.incarnation.number);
        self.reading = Some(reading);
        Ok(())
    }

    /// Cancel-safe: it waits only after everything else was done.
    async fn poll(&mut self, into: &mut Inputs, room: Room) -> Result<Polled, SourceError> {
        if self.must_yield() {
            return Ok(Polled::End);
        }
        match self.read_on(into, room)? {
            Step::Done(polled) => return Ok(polled),
            Step::Busy => tokio::task::yield_now().await,
            Step::Quiet => sleep(WAIT).await,
        }
        Ok(Polled::Idle)
    }

    fn bookmark(&self) -> Bookmark {
        self.current_bookmark()
    }

    /// The bytes before the epoch's first position and those before its end are compared, so that a file that was truncated and has
    /// grown again is noticed before wrong rows land. What is kept of them is what was read, not what the file holds by now.
    async fn close_epoch(&mut self, from: &Bookmark) -> Result<Bookmark, SourceError> {
        let before = self.facts_of(from)?.tail;
        let (reading, at) = (self.reading(), self.reading().lines.offset());
        let away = |error| self.unavailable(error);
        let same_file = from.incarnation.number == reading.incarnation.number;
        if !reading.is_packed() {
            let length = reading.opened.length().map_err(away)?;
            if length < at {
                return Err(self.gap(&truncated(at, length)));
            }
            let rewritten_before = if same_file && !reading.opened.has_tail(before.as_ref()).map_err(away)? {
                Some(from.position)
            } else if !reading.has_what_was_read().map_err(away)? {
                Some(Position::at(at))
            } else {
                None
            };
            if let Some(place) = rewritten_before.filter(|_| !planted(Bug::PositionWithoutIncarnation)) {
                let what = format!(
                    "the file was rewritten in place while it was read: other bytes lie before byte {place} than when they \
                     were read"
                );
                return Err(self.gap(&what));
            }
        }
        self.facts.tail = self.reading().tail_hash();
        Ok(Bookmark { facts: Some(self.facts.to_text().into()), ..self.current_bookmark() })
    }

    async fn step(&mut self) -> Result<(), SourceError> {
        self.turn_over()
    }

    async fn reads_what(&mut self, lane: &str, other: &Bookmark) -> Result<bool, SourceError> {
        self.is_of_this_chain(lane, other)
    }

    async fn ack(&mut self, _upto: &Bookmark) -> Result<(), SourceError> {
        Ok(())
    }

    fn called(&self) -> Option<String> {
        self.reading.as_ref()?;
        let at = self.current_bookmark();
        Some(self.called_file(&at.incarnation, Some(&at)).to_string())
    }

    fn extent(&self) -> Option<u64> {
        let reading = self.reading.as_ref().filter(|reading| !reading.is_packed())?;
        reading.opened.length().ok()
    }
}

/// What is at the path now, if anything.
pub(super) fn look(path: Option<&Path>) -> io::Result<Option<Metadata>> {
    let Some(path) = path else { return Ok(None) };
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn truncated(offset: u64, length: u64) -> String {
    format!("the file was truncated in place: it was read up to byte {offset} and ends at {length}")
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
