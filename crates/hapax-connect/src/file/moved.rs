//! Where a lane goes on when a person moves it: with the progress of another lane, with another file of its chain, or with what
//! is there now.
//!
//! Reads: the folder of the lane, and the files that are compared. Writes: nothing.
//! Invariant: progress is taken over only onto files that hold what was read.

use std::io;

use hapax_engine::source::SourceError;
use hapax_model::position::{Bookmark, Incarnation, Position};

use super::chain::{Member, Suffix};
use super::facts::{Facts, ReadMember, first_in};
use super::feed::Packing;
use super::first_seen::FirstSeen;
use super::incarnation::{Fit, Opened, was_read_to_its_end, without_end};
use super::recognise::{Place, never_read};
use super::restored::RestoredCopy;
use super::source::FileSource;

/// Where a delivery goes on that a person accepts as it is.
#[derive(Debug)]
pub struct Accepted {
    /// The place.
    pub at: Bookmark,
    /// In words: what is gone on with, and whether anything is delivered again.
    pub how: String,
}

impl FileSource {
    /// The file that a delivery without progress begins with, if it was there when this source was made.
    #[must_use]
    pub fn first_seen(&self) -> Option<&FirstSeen> {
        self.config.first_seen.as_ref()
    }

    /// Where this lane goes on if it takes over the progress of another: at the same byte of the same file, which was renamed,
    /// or moved to another disk and has another inode there.
    ///
    /// # Errors
    /// [`SourceError::Gap`] if no file of this lane holds what was read.
    pub fn take_over(&mut self, other: &Bookmark) -> Result<Bookmark, SourceError> {
        let facts = self.facts_of(other)?;
        let listing = self.listing(&facts)?;
        let moved = match listing.iter().position(|member| is_of(member, other, &facts)) {
            Some(_) => match self.place(other)? {
                Place::Found(..) => return Ok(other.clone()),
                Place::Replaced(_) | Place::Resting => None,
                Place::Gone(what) | Place::Other(what) | Place::Restored(RestoredCopy { now: what, .. }) => {
                    return Err(self.gap(&what));
                }
            },
            None => self.find_same_content(&listing, other, &facts).map_err(|error| self.unavailable(error))?,
        };
        let Some(at) = moved else {
            return Err(self.gap("none of its files holds what the other lane has read"));
        };
        let facts = self.facts_after_move(&listing, at, &facts).map_err(|error| self.unavailable(error))?;
        if let Some(older) = listing[..at].iter().find(|member| facts.entry(member).is_none()) {
            return Err(self.gap(&never_read(older, &listing[at], &facts)));
        }
        Ok(Bookmark { facts: Some(facts.to_text().into()), ..other.clone() })
    }

    /// Whether this is a compressed copy of the file in which `original` was made, that file was read to its end, and the copy
    /// holds nothing more: then there is nothing in it to deliver.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn is_copy_of_read(&self, original: &Bookmark) -> Result<bool, SourceError> {
        if !was_read_to_its_end(&original.incarnation.text) {
            return Ok(false);
        }
        let tail = self.facts_of(original)?.tail;
        let look = || -> io::Result<bool> {
            let Some(opened) = self.open_if_there(&self.config.path)? else { return Ok(false) };
            Ok(tail.is_some()
                && opened.is_copy(original, tail.as_ref())? == Some(true)
                && opened.unpacked_length()? == original.position.offset)
        };
        look().map_err(|error| self.unavailable(error))
    }

    /// Whether this is an archive that is whole. One that is just being made beside its original is not, nor is an empty file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn is_whole_archive(&self) -> Result<bool, SourceError> {
        let look = || -> io::Result<bool> {
            let Some(opened) = self.open_if_there(&self.config.path)? else { return Ok(false) };
            Ok(opened.packing()? != Packing::None && opened.is_whole()?)
        };
        look().map_err(|error| self.unavailable(error))
    }

    /// The file that begins as the one of `other` did, and has the same bytes before the place that was read up to.
    fn find_same_content(&self, listing: &[Member], other: &Bookmark, facts: &Facts) -> io::Result<Option<usize>> {
        for (at, member) in listing.iter().enumerate() {
            let Some(opened) = self.open_member(member)? else { continue };
            if opened.holds_what_was_read(other, facts)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The current file has another inode now, and so have those that were read before it: each is known by its content.
    fn facts_after_move(&self, listing: &[Member], at: usize, facts: &Facts) -> io::Result<Facts> {
        let mut facts = self.recognised(listing, facts)?;
        facts.read.retain(|entry| listing.iter().any(|member| member.identity == entry.identity));
        (facts.device, facts.copy) = (Some(listing[at].device), Some(listing[at].identity.clone()));
        facts.name = Some(listing[at].name.clone());
        Ok(facts)
    }

    /// The beginning of the file after the one of `bookmark`, whose rest a person gives up.
    ///
    /// # Errors
    /// [`SourceError::Gap`] if no file follows it.
    pub fn next_file(&self, bookmark: &Bookmark) -> Result<Bookmark, SourceError> {
        let facts = self.facts_of(bookmark)?;
        let listing = self.listing(&facts)?;
        let behind = listing.iter().position(|member| is_of(member, bookmark, &facts)).map_or(0, |at| at + 1);
        let follows = listing[behind..].iter().position(|member| facts.entry(member).is_none());
        match follows {
            Some(at) => self.beginning_of(&listing, behind + at, bookmark, facts),
            None => Err(self.gap("no file follows the one that is read; see `hapax status` for where it is")),
        }
    }

    /// Where the delivery of `bookmark` goes on if a person accepts what is there now: at the same place if its file, or a copy of
    /// it, holds what was read, or behind it if that was read to its end and others follow; at the beginning of the file if only
    /// its content has changed; else with the oldest file that was not read, or with the next that comes. None if none of its
    /// files is there.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn accept(&mut self, bookmark: &Bookmark) -> Result<Option<Accepted>, SourceError> {
        let facts = self.facts_of(bookmark)?;
        let listing = self.listing(&facts)?;
        let place = self.place(bookmark)?;
        let facts = self.recognised(&listing, &facts).map_err(|error| self.unavailable(error))?;
        let facts = self.less_late_lines(&listing, facts).map_err(|error| self.unavailable(error))?;
        let opened = match place {
            Place::Found(opened, _) | Place::Restored(RestoredCopy { opened, .. }) => Some(opened),
            Place::Replaced(_) | Place::Resting | Place::Gone(_) | Place::Other(_) => None,
        };
        // A member that came later goes on with a line that was delivered: going on there would stop again.
        let torn = match &opened {
            Some(opened) => {
                opened.fit_unpacked(bookmark.position.offset).map_err(|error| self.unavailable(error))?
                    == Fit::InsideLine
            }
            None => false,
        };
        let opened = opened.filter(|_| !torn);
        let current = listing.iter().position(|member| match &opened {
            Some(opened) => member.identity == opened.identity(), // also a compressed or restored copy of what was read
            None => is_of(member, bookmark, &facts),
        });
        if let (Some(opened), Some(at)) = (opened, current) {
            return self.accept_same(bookmark, facts, &listing, at, &opened).map(Some);
        }
        let unread = if current.is_none() { self.oldest_unread(&listing, &facts)? } else { None };
        let Some(at) = current.or(unread) else {
            let (many, nothing_there) = (self.is_one_of_many(), listing.is_empty());
            return Ok((many && !nothing_there).then(|| Self::accept_gone(bookmark, facts)));
        };
        let again = if current.is_some() { ", and delivers again what of it was delivered before" } else { "" };
        let how = format!("begins {} from its beginning{again}", listing[at].name);
        Ok(Some(Accepted { at: self.beginning_of(&listing, at, bookmark, facts)?, how }))
    }

    /// A file of the chain holds what was read: nothing of it is read again.
    fn accept_same(
        &self,
        bookmark: &Bookmark,
        mut facts: Facts,
        listing: &[Member],
        at: usize,
        opened: &Opened,
    ) -> Result<Accepted, SourceError> {
        let (current, position) = (&listing[at], bookmark.position);
        let kind = if opened.was(bookmark) { "" } else { ", a copy of what was read" };
        let follows = listing[at + 1..].iter().position(|member| facts.entry(member).is_none());
        if let (Some(next), false) = (follows, current.suffix == Suffix::Live)
            && content_length(opened).map_err(|error| self.unavailable(error))? == position.offset
        {
            let next = at + 1 + next;
            let how = format!(
                "goes on with {}, behind {}{kind}, which was read to its end: nothing is delivered again",
                listing[next].name, current.name
            );
            facts.read.push(read_whole(current, bookmark, &facts));
            return Ok(Accepted { at: self.beginning_of(listing, next, bookmark, facts)?, how });
        }
        // Older files that nobody read are given up.
        let others = listing.iter().enumerate().filter(|(index, _)| *index != at);
        let read = others.filter_map(|(index, member)| match facts.entry(member) {
            None if index < at => Some(ReadMember::passed(member)),
            entry => entry.cloned(),
        });
        let read = read.collect();
        (facts.read, facts.device) = (read, Some(opened.device()));
        facts.copy = (!opened.was(bookmark)).then(|| opened.identity().to_owned());
        let how =
            format!("goes on where it was: nothing is delivered again (byte {position} of {}{kind})", current.name);
        Ok(Accepted { at: Bookmark { facts: Some(facts.to_text().into()), ..bookmark.clone() }, how })
    }

    /// The facts of who gives up what came to files, or was written into them, after they were read.
    fn less_late_lines(&self, listing: &[Member], mut facts: Facts) -> io::Result<Facts> {
        for member in listing {
            for entry in facts.read.iter_mut().filter(|entry| entry.identity == member.identity) {
                if self.changed(member, entry)?.is_some() {
                    *entry = ReadMember::passed(member);
                }
            }
        }
        Ok(facts)
    }

    /// What lies there, was not read up to `from`, and is passed by who goes on at `to`: files, and parts of files.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn given_up(&mut self, from: &Bookmark, to: &Bookmark) -> Result<Vec<String>, SourceError> {
        let (before, after) = (self.facts_of(from)?, self.facts_of(to)?);
        let listing = self.listing(&before)?;
        let current = match self.place(from) {
            Ok(Place::Found(opened, _) | Place::Restored(RestoredCopy { opened, .. })) => opened.identity().to_owned(),
            Ok(Place::Replaced(_) | Place::Resting | Place::Gone(_) | Place::Other(_)) | Err(_) => String::new(),
        };
        let known = self.recognised(&listing, &before).map_err(|error| self.unavailable(error))?;
        // One that was given up before, and is known by its name alone, is named again.
        let was_known = |member: &Member| {
            before.entry(member).is_some() || known.entry(member).is_some_and(|entry| !entry.is_passed())
        };
        let mut given_up = Vec::new();
        for member in &listing {
            let Some(now) = after.entry(member) else { continue };
            if !was_known(member) && member.identity != current {
                given_up.push(format!("{} (for good, under whatever name)", member.name));
                continue;
            }
            let was = known.entry(member).filter(|_| now.is_passed() && now.length == member.length);
            given_up.extend(was.map(|was| self.given_up_of(member, was)).transpose()?.flatten());
        }
        Ok(given_up)
    }

    /// What came to a file, or was written into it, after it was read.
    fn given_up_of(&self, member: &Member, was: &ReadMember) -> Result<Option<String>, SourceError> {
        let changed = self.changed(member, was).map_err(|error| self.unavailable(error))?;
        let (name, from, to) = (&member.name, was.length, member.length);
        Ok(changed.map(|_| match (member.packed, to > from) {
            (false, true) => format!("bytes {from} to {to} of {name}"),
            (true, true) => format!("what came to {name} after it was read"),
            (_, false) => format!("{name}, which was read and rewritten since: what it holds now"),
        }))
    }

    /// The beginning of the oldest file that is there, except those that were passed when the delivery began; none if there is no
    /// file.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn oldest_file(&self, bookmark: &Bookmark) -> Result<Option<Bookmark>, SourceError> {
        let mut facts = self.facts_of(bookmark)?;
        let listing = self.listing(&facts)?;
        let passed = |member: &Member| facts.entry(member).is_some_and(ReadMember::is_passed);
        let Some(at) = listing.iter().position(|member| !passed(member)) else { return Ok(None) };
        facts.read.retain(|entry| listing[..at].iter().any(|member| member.identity == entry.identity));
        self.beginning_of(&listing, at, bookmark, facts).map(Some)
    }

    /// A position in the file of `bookmark`.
    ///
    /// # Errors
    /// [`SourceError::Gap`] if the file is not what it was, or no line begins there.
    pub fn place_in_file(&mut self, bookmark: &Bookmark, position: Position) -> Result<Bookmark, SourceError> {
        let mut facts = self.facts_of(bookmark)?;
        let opened = match self.place(bookmark)? {
            Place::Found(opened, _) => opened,
            Place::Replaced(_) | Place::Resting => {
                return Err(self.gap("the file that was read is gone; `--to next` begins the one there"));
            }
            Place::Gone(what) | Place::Other(what) | Place::Restored(RestoredCopy { now: what, .. }) => {
                return Err(self.gap(&what));
            }
        };
        self.refuse_unfit(&opened, position)?;
        facts.tail = opened.tail_hash(position.offset).map_err(|error| self.unavailable(error))?;
        let text = without_end(&bookmark.incarnation.text);
        let incarnation = Incarnation::new(bookmark.incarnation.number, text);
        Ok(Bookmark { facts: Some(facts.to_text().into()), ..Bookmark::new(incarnation, position) })
    }

    fn listing(&self, facts: &Facts) -> Result<Vec<Member>, SourceError> {
        self.members(facts).map_err(|error| self.unavailable(error))
    }

    /// The beginning of a file of the chain; those before it that were not read are given up.
    pub(super) fn beginning_of(
        &self,
        listing: &[Member],
        at: usize,
        bookmark: &Bookmark,
        mut facts: Facts,
    ) -> Result<Bookmark, SourceError> {
        let opened = self.open_member(&listing[at]).map_err(|error| self.unavailable(error))?;
        let opened = opened.ok_or_else(|| self.gap("the file has gone just now"))?;
        self.naming(&opened).map_err(|error| self.unavailable_in(&opened, error))?;
        let description = opened.describe(0).map_err(|error| self.unavailable(error))?;
        let given_up: Vec<ReadMember> =
            listing[..at].iter().filter(|member| facts.entry(member).is_none()).map(ReadMember::passed).collect();
        facts.read.retain(|entry| entry.identity != listing[at].identity);
        facts.remember(given_up, listing);
        let (device, name) = (Some(opened.device()), Some(listing[at].name.clone()));
        let facts = Facts { device, name, read: facts.read, ..Facts::default() };
        let incarnation = bookmark.incarnation.next(&description.text);
        Ok(Bookmark { facts: Some(facts.to_text().into()), ..Bookmark::new(incarnation, Position::at(0)) })
    }
}

/// What is remembered of the file of `bookmark`, which was read to its end.
fn read_whole(member: &Member, bookmark: &Bookmark, facts: &Facts) -> ReadMember {
    let at_end = facts.tail.as_ref().filter(|tail| tail.offset == member.length && !member.packed);
    let (first, tail) = (first_in(&bookmark.incarnation.text).to_owned(), at_end.map(|tail| tail.hash.clone()));
    ReadMember { first, tail, ..ReadMember::passed(member) }
}

/// How many bytes there are to read in a file, unpacked.
fn content_length(opened: &Opened) -> io::Result<u64> {
    if opened.packing()? == Packing::None { opened.length() } else { opened.unpacked_length() }
}

/// Whether a bookmark lies in this file, by inode and creation.
fn is_of(member: &Member, bookmark: &Bookmark, facts: &Facts) -> bool {
    let text = &bookmark.incarnation.text;
    text.starts_with(&format!("{},", member.identity)) || facts.copy.as_ref() == Some(&member.identity)
}
