//! Files that were restored from a copy: the same bytes under other inodes.
//!
//! Reads: the folder of the lane, and the files that are compared. Writes: nothing.
//! Invariant: a file counts as a copy only if its content agrees; nothing is read from a copy before a person accepts it.

use std::io;

use hapax_engine::source::SourceError;
use hapax_model::position::{Bookmark, Incarnation, Position};

use super::chain::{Member, RotationRule, unpacked_name};
use super::facts::{Facts, ReadMember, TailHash};
use super::feed::Packing;
use super::incarnation::Opened;
use super::recognise::{Place, compare_copy};
use super::source::FileSource;

/// A copy of the file that a bookmark was made in.
#[derive(Debug)]
pub(super) struct RestoredCopy {
    pub(super) name: String,
    pub(super) opened: Opened,
    /// What is said of it.
    pub(super) now: String,
}

impl RestoredCopy {
    fn new(name: &str, opened: Opened) -> io::Result<Self> {
        let description = opened.describe(0)?.text;
        let now = format!("{name} ({description}), a copy of what was read: the same bytes under another inode");
        Ok(Self { name: name.to_owned(), opened, now })
    }
}

impl FileSource {
    /// Where the file of `bookmark` lies as a copy, if one file of the chain and no other can be it.
    pub(super) fn find_restored(&self, bookmark: &Bookmark, facts: &Facts) -> io::Result<Option<RestoredCopy>> {
        let listing = match self.members(facts) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            listing => listing?,
        };
        let facts = &self.recognised(&listing, facts)?;
        let mut found = Vec::new();
        for (at, member) in listing.iter().enumerate().filter(|(_, member)| facts.entry(member).is_none()) {
            let Some(opened) = self.open_member(member)? else { continue };
            if !opened.holds_what_was_read(bookmark, facts)? {
                continue;
            }
            // Every file of the lane may begin with a header.
            if self.knows_header_only(bookmark, &opened)? && !self.follows_read(at, facts, &listing)? {
                continue;
            }
            if let Place::Found(opened, _) = compare_copy(opened, bookmark, facts)? {
                found.push((at, RestoredCopy::new(&member.name, opened)?));
            }
        }
        // Files that are alike up to the position are told apart by the one that was read before.
        let alone = found.len() == 1;
        let Some((at, first)) = found.into_iter().next() else { return Ok(None) };
        Ok(if alone || self.follows_read(at, facts, &listing)? { Some(first) } else { None })
    }

    /// The facts, with files that were read under the identities that they have now: those that lie there under another inode
    /// are known by their content.
    pub(super) fn recognised(&self, listing: &[Member], facts: &Facts) -> io::Result<Facts> {
        let mut taken: Vec<bool> = listing.iter().map(|member| facts.entry(member).is_some()).collect();
        let mut read = facts.read.clone();
        for entry in &mut read {
            if listing.iter().any(|member| member.identity == entry.identity) {
                continue;
            }
            let mut free: Vec<usize> = (0..listing.len()).filter(|at| !taken[*at]).collect();
            free.sort_by_key(|at| original_name(&listing[*at].name) != original_name(&entry.name));
            for at in free {
                if let Some(now) = self.read_as(&listing[at], entry)? {
                    (*entry, taken[at]) = (now, true);
                    break;
                }
            }
        }
        Ok(Facts { read, ..facts.clone() })
    }

    /// What is remembered of a file, if it holds what the file of `entry` held. One that was passed unread is known by its name and
    /// its length alone.
    fn read_as(&self, member: &Member, entry: &ReadMember) -> io::Result<Option<ReadMember>> {
        let same_length = member.length == entry.length;
        let (identity, name) = (member.identity.clone(), member.name.clone());
        let under_its_inode = ReadMember { identity, name, ..entry.clone() };
        if entry.first.is_empty() {
            return Ok((same_length && member.name == entry.name).then_some(under_its_inode));
        }
        if !same_length && !member.packed {
            return Ok(None);
        }
        let Some(opened) = self.open_member(member)? else { return Ok(None) };
        let text = format!("{}, {}", entry.identity, entry.first);
        if opened.packing()? == Packing::None {
            let same = same_length
                && opened.begins_as(&text)?
                && (entry.tail.is_none() || opened.tail(entry.length)? == entry.tail);
            return Ok(same.then_some(under_its_inode));
        }
        let same = match &entry.tail {
            // Compressed since it was read.
            Some(hash) => {
                let at = Bookmark::new(Incarnation::new(1, &text), Position::at(entry.length));
                let tail = TailHash { offset: entry.length, hash: hash.clone() };
                opened.is_copy(&at, Some(&tail))? == Some(true)
            }
            None => same_length && (opened.begins_as(&text)? || opened.unpacks_to(&text)? == Some(true)),
        };
        Ok(same.then(|| ReadMember { first: entry.first.clone(), ..ReadMember::passed(member) }))
    }

    /// From now on places of which nothing is known but their file's description, as the epoch log has them, are looked for with
    /// what `progress` remembers of the files that were read.
    pub fn look_back_from(&mut self, progress: &Bookmark) {
        self.looking_back_from = Some(progress.clone());
    }

    /// Whether progress, from which earlier places are looked for, has read this file.
    pub(super) fn progress_knows(&self, member: &Member) -> bool {
        let progress = self.looking_back_from.as_ref();
        let known = progress.and_then(|progress| self.facts_of(progress).ok());
        known.is_some_and(|known| known.entry(member).is_some() || known.copy.as_ref() == Some(&member.identity))
    }

    /// What progress knows of the file of an earlier place: how it ended when it was left, or under which inode it lies now.
    pub(super) fn facts_from_progress(&self, place: &Bookmark) -> Result<Facts, SourceError> {
        let Some(progress) = self.looking_back_from.as_ref().filter(|progress| progress.facts.is_some()) else {
            return Ok(Facts::default());
        };
        let known = self.facts_of(progress)?;
        let (number, last) = (place.incarnation.number, progress.incarnation.number);
        if number == last {
            let Facts { device, tail, copy, .. } = known;
            return Ok(Facts { device, tail, copy, ..Facts::default() });
        }
        let of_place = |entry: &&ReadMember| place.incarnation.text.starts_with(&format!("{},", entry.identity));
        match known.read.iter().find(of_place) {
            Some(entry) => {
                let tail = entry.tail.clone().map(|hash| TailHash { offset: entry.length, hash });
                Ok(Facts { tail, ..Facts::default() })
            }
            None => {
                let copy = self.read_as_number(place, last, &known).map_err(|error| self.unavailable(error))?;
                Ok(Facts { copy, ..Facts::default() })
            }
        }
    }

    /// Which file was read as the number of `place` and has another inode now, if all that were read lie there still, so that their order tells it.
    fn read_as_number(&self, place: &Bookmark, last: u32, known: &Facts) -> io::Result<Option<String>> {
        let listing = match self.members(known) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            listing => listing?,
        };
        let known = self.recognised(&listing, known)?;
        let was_read = |member: &&Member| known.entry(member).is_some_and(|entry| !entry.is_passed());
        let mut read = listing.iter().filter(was_read);
        let lies_there = listing.iter().any(|m| place.incarnation.text.starts_with(&format!("{},", m.identity)));
        if lies_there || u32::try_from(read.clone().count()).ok() != last.checked_sub(1) {
            return Ok(None);
        }
        let at = place.incarnation.number.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        Ok(at.and_then(|at| read.nth(at)).map(|member| member.identity.clone()))
    }

    /// What is said where the file that is read has lost its name, and a copy of it has come.
    pub(super) fn copy_beside(&self) -> Result<String, SourceError> {
        let bookmark = self.current_bookmark();
        let look = || -> io::Result<String> {
            let facts = Facts { tail: self.reading().tail_hash(), ..self.facts.clone() };
            let Some(copy) = self.find_restored(&bookmark, &facts)? else { return Ok(String::new()) };
            Ok(format!("; {} holds what was read, and is gone on with at byte {}", copy.name, bookmark.position))
        };
        look().map_err(|error| self.unavailable(error))
    }

    /// Files that a person gave up, and that now lie where the next ones are looked for: they are not read.
    pub(super) fn warn_of_given_up(&self, current: &Opened, facts: &Facts) -> io::Result<()> {
        if self.config.rotation != RotationRule::ByName {
            return Ok(());
        }
        let listing = self.members(facts)?;
        let behind = listing.iter().skip_while(|member| member.identity != current.identity()).skip(1);
        for member in behind {
            if facts.has_given_up(member) {
                tracing::warn!(lane = %self.lane, file = member.name,
                    "not read: it was given up, and stays so under whatever name. To have it read, copy it to a later name \
                     and remove it");
            }
        }
        Ok(())
    }
}

/// What a file was called before it was compressed.
fn original_name(name: &str) -> &str {
    unpacked_name(name).unwrap_or(name)
}
