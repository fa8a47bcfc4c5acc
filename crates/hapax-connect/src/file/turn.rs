//! From one file of a chain to the next.
//!
//! Reads: the folder of the lane, twice: before and after the next file is opened. Writes: nothing.
//! Invariant: a file is left only when it was read to its end, for the one that follows it and no other. What cannot be
//! placed for five seconds stops the lane.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use hapax_engine::source::{Follow, Polled, SourceError};
use hapax_model::name_list::fold_names;

use super::called::unavailable;
use super::chain::{Member, RotationRule, Successor, Suffix, decide_successor};
use super::copies::Older;
use super::facts::{Facts, ReadMember, first_in};
use super::header::Naming;
use super::incarnation::{Opened, without_end};
use super::lines::{Lines, Seam};
use super::reading::{Reading, Step};
use super::recognise::{late_lines, never_read};
use super::source::{FileSource, Left};

/// Names may be on their way from one file to another; after so long they are not.
pub(super) const DOUBT_LASTS: Duration = if cfg!(test) { Duration::from_millis(500) } else { Duration::from_secs(5) };

/// The file that is read next, open already.
#[derive(Debug)]
pub(super) struct NextFile {
    opened: Opened,
    naming: Naming,
    passed: Vec<Member>,
    listing: Vec<Member>,
}

/// What is known of the writer of a file that has lost its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriterOfCurrent {
    /// It writes to another file by now, or to none.
    MovedOn,
    /// No other file follows yet: it may hold this one, and write on.
    MayWriteOn,
    /// The names do not tell.
    Unknown,
}

/// What cannot be placed, and since when.
#[derive(Debug)]
pub(super) struct Doubt {
    what: String,
    since: Instant,
}

impl FileSource {
    /// The current file was read to its end and has lost its name: what follows it?
    pub(super) fn find_next(&mut self) -> Result<Step, SourceError> {
        let listing = self.members(&self.facts).map_err(|error| self.unavailable(error))?;
        match self.config.rotation {
            RotationRule::Suffixes | RotationRule::BeforeExtension | RotationRule::ByName => {
                self.next_of_chain(listing)
            }
            RotationRule::Replaced => match listing.into_iter().find(|member| member.length > 0) {
                Some(member) => self.prepare(&member, Vec::new()),
                None => Ok(self.nothing_follows()),
            },
            RotationRule::None => match listing.first() {
                Some(other) => {
                    let what = format!(
                        "{} is another file now, and `rotation: none` says that no file follows another; if that is meant, \
                         write `rotation: replaced`{}",
                        other.name,
                        self.copy_beside()?
                    );
                    self.doubt(what)
                }
                None => Ok(self.nothing_follows()),
            },
        }
    }

    /// What is known of the writer of a file that has lost its name.
    pub(super) fn writer_of_current(&self) -> Result<WriterOfCurrent, SourceError> {
        let rotation = self.config.rotation;
        let look = || -> io::Result<WriterOfCurrent> {
            let listing = self.members(&self.facts)?;
            Ok(match rotation {
                RotationRule::Suffixes | RotationRule::BeforeExtension | RotationRule::ByName => {
                    match self.index_of_current(&listing)? {
                        None => WriterOfCurrent::Unknown,
                        Some(at) => match decide_successor(&listing, at, |member| self.facts.entry(member).is_some()) {
                            Successor::None => WriterOfCurrent::MayWriteOn,
                            Successor::Next { .. } => WriterOfCurrent::MovedOn,
                            Successor::Missing(_) | Successor::Contradiction(_) => WriterOfCurrent::Unknown,
                        },
                    }
                }
                RotationRule::Replaced if listing.iter().any(|member| member.length > 0) => WriterOfCurrent::MovedOn,
                RotationRule::Replaced => WriterOfCurrent::MayWriteOn,
                // Moved out of the folder, where nobody writes to it.
                RotationRule::None if listing.is_empty() => WriterOfCurrent::MovedOn,
                RotationRule::None => WriterOfCurrent::Unknown,
            })
        };
        look().map_err(|error| self.unavailable(error))
    }

    fn next_of_chain(&mut self, listing: Vec<Member>) -> Result<Step, SourceError> {
        let at = match self.index_of_current(&listing).map_err(|error| self.unavailable(error))? {
            Some(at) => at,
            None => return self.lost_its_name(&listing),
        };
        self.know_older(&listing, at).map_err(|error| self.unavailable(error))?;
        let older = self.unread_before(&listing, at).map_err(|error| self.unavailable(error))?;
        match older {
            Some((older, Older::Later)) => {
                let stands = self.wait_for_whole(&older).ok();
                return stands.map_or(Ok(Step::Quiet), |what| Err(self.gap(&what)));
            }
            Some((older, Older::Unread | Older::Read(_))) => {
                let what = never_read(&older, &listing[at], &self.facts);
                return self.doubt(what);
            }
            None => {}
        }
        match self.successor(&listing, at, &self.facts)? {
            Successor::None => Ok(self.nothing_follows()),
            Successor::Missing(what) => self.doubt(format!("a file of the chain vanished unread: {what}")),
            Successor::Contradiction(what) => self.doubt(what),
            Successor::Next { member, passed } => self.prepare(&member, passed),
        }
    }

    /// What follows a file of the chain; a rotated one with a header and nothing more is passed.
    pub(super) fn successor(&self, listing: &[Member], at: usize, facts: &Facts) -> Result<Successor, SourceError> {
        let mut empty: Vec<Member> = Vec::new();
        loop {
            let known = |member: &Member| {
                facts.entry(member).is_some() || empty.iter().any(|known| known.identity == member.identity)
            };
            match decide_successor(listing, at, known) {
                Successor::Next { member, mut passed } => {
                    if member.suffix != Suffix::Live && self.holds_no_record(&member)? {
                        empty.append(&mut passed);
                        empty.push(member);
                        continue;
                    }
                    passed.append(&mut empty);
                    return Ok(Successor::Next { member, passed });
                }
                decided @ (Successor::None | Successor::Missing(_) | Successor::Contradiction(_)) => {
                    return Ok(decided);
                }
            }
        }
    }

    /// Where the current file is in the chain; if it is gone, where its compressed copy is.
    fn index_of_current(&self, listing: &[Member]) -> io::Result<Option<usize>> {
        let reading = self.reading();
        let own =
            listing.iter().position(|m| m.identity == reading.opened.identity() && m.device == reading.opened.device());
        if own.is_some() || reading.is_packed() {
            return Ok(own);
        }
        let bookmark = self.current_bookmark();
        let tail = reading.tail_hash();
        let unknown = |member: &Member| member.packed && self.facts.entry(member).is_none();
        let mut found = Vec::new();
        for (index, member) in listing.iter().enumerate().filter(|(_, member)| unknown(member)) {
            let Some(opened) = self.open_member(member)? else { continue };
            if self.name_allows(&self.facts, member)? && opened.is_copy(&bookmark, tail.as_ref())? == Some(true) {
                found.push(index);
            }
        }
        // Of two that hold the same nobody can say which it is.
        Ok(found.pop().filter(|_| found.is_empty()))
    }

    /// Older files that were read before they were compressed are known by what they hold.
    fn know_older(&mut self, listing: &[Member], at: usize) -> io::Result<()> {
        let mut found = Vec::new();
        for member in listing[..at].iter().filter(|member| self.facts.entry(member).is_none()) {
            if self.facts_unknown {
                found.push(ReadMember::passed(member)); // progress of a version that kept no list
                continue;
            }
            if let Older::Read(read) = self.read_before_packing(member, &self.facts, listing)? {
                found.push(read);
            }
        }
        self.facts.read.extend(found);
        Ok(())
    }

    /// The first file before the current one that is not known, nor a copy of it.
    fn unread_before(&mut self, listing: &[Member], at: usize) -> io::Result<Option<(Member, Older)>> {
        let (current, facts) = (self.reading().opened.try_clone()?, self.facts.clone());
        for member in listing[..at].iter().filter(|member| facts.entry(member).is_none()) {
            match self.judge_older(member, &current, &facts, listing)? {
                Older::Read(_) => {}
                unread @ (Older::Later | Older::Unread) => return Ok(Some((member.clone(), unread))),
            }
        }
        Ok(None)
    }

    /// Whether all files before the next one were read or passed. Those that were compressed since they were last looked at are
    /// learned now: what is not in the folder any more is forgotten at the turn. Copies of the current one are given: it is read while
    /// it is there, so that they are passed when it is left, and not before.
    fn knows_all_before(&mut self, next: &NextFile, listing: &[Member]) -> io::Result<Option<Vec<ReadMember>>> {
        if !self.config.rotation.makes_chains() {
            return Ok(Some(Vec::new()));
        }
        let until = listing.iter().position(|member| member.identity == next.opened.identity()).unwrap_or(0);
        let current = self.index_of_current(listing)?;
        self.know_older(listing, current.unwrap_or(until))?;
        let (opened, facts, mut copies) = (self.reading().opened.try_clone()?, self.facts.clone(), Vec::new());
        for (index, member) in listing[..until].iter().enumerate() {
            let known = current == Some(index)
                || facts.entry(member).is_some()
                || next.passed.iter().any(|passed| passed.identity == member.identity);
            if known {
                continue;
            }
            match self.judge_older(member, &opened, &facts, listing)? {
                Older::Read(copy) if current.is_some_and(|current| index < current) => copies.push(copy),
                Older::Read(_) | Older::Later | Older::Unread => return Ok(None),
            }
        }
        Ok(Some(copies))
    }

    /// Whether a rotated file has a header and nothing more.
    fn holds_no_record(&self, member: &Member) -> Result<bool, SourceError> {
        let look = || -> io::Result<bool> {
            let Some(opened) = self.open_member(member)? else { return Ok(false) };
            Ok(matches!(self.naming(&opened)?, Naming::Known { behind, .. } if behind == opened.length()?))
        };
        look().map_err(|error| self.unavailable(error))
    }

    /// The current file is no longer in its chain.
    fn lost_its_name(&mut self, listing: &[Member]) -> Result<Step, SourceError> {
        let others = listing.iter().any(|member| member.length > 0 && self.facts.entry(member).is_none());
        if !others {
            return Ok(self.nothing_follows());
        }
        let names: Vec<&str> = listing.iter().map(|member| member.name.as_str()).collect();
        let what = format!(
            "the file that was read up to byte {} ({}) was deleted, or renamed without a rotation's suffix, so that nobody \
             can say what follows it; beside it are {}{}",
            self.reading().lines.offset(),
            without_end(&self.reading().incarnation.text),
            fold_names(&names, ", "),
            self.copy_beside()?
        );
        self.doubt(what)
    }

    /// Something that must not be guessed: waited for a while, because names may be on their way, then said.
    fn doubt(&mut self, what: String) -> Result<Step, SourceError> {
        let doubt = self.doubt.take().filter(|doubt| doubt.what == what);
        let doubt = doubt.unwrap_or_else(|| Doubt { what, since: Instant::now() });
        let lasts = doubt.since.elapsed() >= DOUBT_LASTS;
        let what = doubt.what.clone();
        self.doubt = Some(doubt);
        if lasts { Err(self.gap(&what)) } else { Ok(Step::Quiet) }
    }

    fn nothing_follows(&mut self) -> Step {
        self.doubt = None;
        let gone = !self.config.live_path().is_some_and(Path::exists);
        let (many, reading) = (self.is_one_of_many(), self.reading.as_mut().expect("`assign` comes before `poll`"));
        match reading.follow {
            Follow::No => {
                if many {
                    reading.mark_end();
                }
                Step::Done(Polled::End)
            }
            // Without a file of the lane's own name the youngest is written to.
            Follow::Yes if many && gone && !self.config.rotation.follows_youngest() => {
                reading.mark_end();
                Step::Done(Polled::End)
            }
            Follow::Yes => self.quiet(),
        }
    }

    /// Opens the next file; if nothing moves meanwhile, the current one can be left.
    pub(super) fn prepare(&mut self, member: &Member, passed: Vec<Member>) -> Result<Step, SourceError> {
        let Some(opened) = self.open_member(member).map_err(|error| self.unavailable(error))? else {
            return Ok(Step::Quiet);
        };
        let naming = self.naming(&opened).map_err(|error| unavailable(&member.path, error))?;
        if let (Naming::Awaited, Follow::Yes) = (&naming, self.reading().follow) {
            return Ok(Step::Quiet); // only a whole header can be compared
        }
        self.reading().naming.refuse_change(&naming).map_err(|error| unavailable(&member.path, error))?;
        let listing = self.members(&self.facts).map_err(|error| self.unavailable(error))?;
        let there = listing.iter().any(|now| now.identity == opened.identity() && now.name == member.name);
        if opened.identity() != member.identity || !there {
            return Ok(Step::Quiet); // the names have moved; look again
        }
        self.doubt = None;
        self.next = Some(NextFile { opened, naming, passed, listing });
        Ok(Step::Done(Polled::Boundary))
    }

    /// Leaves the current file for the next one, if everything is still as it was found.
    pub(super) fn turn_over(&mut self) -> Result<(), SourceError> {
        let Some(next) = self.next.take() else { return Ok(()) };
        let listing = self.members(&self.facts).map_err(|error| self.unavailable(error))?;
        let names = |members: &[Member]| -> Vec<(String, String)> {
            members.iter().map(|member| (member.name.clone(), member.identity.clone())).collect()
        };
        let old = self.reading();
        let upto = match (&self.facts.archive, old.is_packed()) {
            (Some(end), true) => end.offset,
            (None, _) | (_, false) => old.lines.read_upto(),
        };
        let grown = old.opened.length().map_err(|error| self.unavailable(error))? != upto;
        if names(&listing) != names(&next.listing) || grown {
            return Ok(());
        }
        let copies = self.knows_all_before(&next, &listing).map_err(|error| self.unavailable(error))?;
        let Some(copies) = copies else { return Ok(()) };
        let old = self.reading();
        let next_name = listing.iter().find(|member| member.identity == next.opened.identity()).map(|m| m.name.clone());
        let description = next.opened.describe(0).map_err(|error| self.unavailable(error))?;
        let before = without_end(&old.incarnation.text).to_owned();
        let incarnation = old.incarnation.next(&description.text);
        let left = listing.iter().find(|member| member.identity == old.opened.identity()).map(|m| m.name.as_str());
        tracing::info!(lane = %self.lane, left, next = next_name, number = incarnation.number, "the file was rotated: on to the next");
        let lines = Lines::new(0, self.config.format.cut(), self.config.max_line, Seam::LineStart);
        let reading = Reading::new(next.opened, lines, next.naming, incarnation, description.record, old.follow);
        let reading = reading.map_err(|error| self.unavailable(error))?;
        let read = self.read_member(&before, &listing).map_err(|error| self.unavailable(error))?;
        self.facts.remember(next.passed.iter().map(ReadMember::passed).chain(copies).chain([read]), &listing);
        (self.facts.tail, self.facts.archive, self.facts.copy) = (None, None, None);
        self.facts.name = next_name;
        self.facts_unknown = false;
        if let Some(Reading { opened, feed, lines, .. }) = self.reading.replace(reading) {
            self.left = Some(Left { opened, feed, lines });
        }
        Ok(())
    }

    /// What is remembered of the file that is left.
    fn read_member(&self, text: &str, listing: &[Member]) -> io::Result<ReadMember> {
        let old = self.reading();
        let at = self.index_of_current(listing)?.map(|at| &listing[at]);
        let length = match at {
            Some(member) if member.packed => member.length,
            Some(_) | None => old.lines.offset(),
        };
        Ok(ReadMember {
            identity: at.map_or_else(|| old.opened.identity().to_owned(), |member| member.identity.clone()),
            length,
            first: first_in(text).to_owned(),
            tail: if length == old.lines.offset() { old.tail_hash().map(|tail| tail.hash) } else { None },
            name: at.map(|member| member.name.clone()).unwrap_or_default(),
        })
    }

    /// A line that was written to the old file after its successor had begun would be lost without a word.
    pub(super) fn check_left(&mut self) -> Result<(), SourceError> {
        use super::lines::{Found, Tail};
        let Some(left) = &mut self.left else { return Ok(()) };
        let (offset, mut budget) = (left.lines.offset(), super::reading::BLOCKS_PER_POLL);
        let found = match left.lines.next(&mut left.feed, &mut budget) {
            Ok(found) => found,
            Err(error) => return Err(self.unavailable(error)),
        };
        let late = match found {
            Found::End => left.lines.tail() != Tail::Nothing,
            Found::Later => false,
            Found::Line | Found::Long(_) | Found::Continued | Found::Pause => true,
        };
        if late { Err(self.gap(&late_lines("the rotated file", offset, u64::MAX))) } else { Ok(()) }
    }
}
