//! Compressed copies: which archive of a chain holds what was read before it was compressed, and whether one that lies beside its
//! original holds what that holds.
//!
//! Reads: the folder of the lane, archives, and the files beside them. Writes: nothing. Invariant: an archive counts as a file that
//! was read only if its name allows it, its content agrees, and it is as long as it must be; in doubt it is none.

use std::io;

use hapax_model::position::Bookmark;

use super::chain::{Member, RotationRule, Stem, Suffix, may_have_become, unpacked_name};
use super::config::OwnArchives;
use super::facts::{Facts, ReadMember, first_in};
use super::feed::Packing;
use super::header::Naming;
use super::incarnation::{Agreement, Opened, described_length};
use super::source::FileSource;

/// What an older file of the chain is to a reader that does not know it.
#[derive(Debug)]
pub(super) enum Older {
    /// The archive of a file that was read.
    Read(ReadMember),
    /// It cannot be told yet: it is being written, or its name has moved on.
    Later,
    Unread,
}

/// What came of the search for a compressed copy.
pub(super) enum Copied {
    Found(Opened),
    Growing(Member),
    /// They hold the same, so that nobody can say which it is.
    Several(Vec<String>),
    None,
}

impl FileSource {
    /// The files of the chain, oldest first. An archive of the lane's own name is among them if it is what the file that is read
    /// has become, or was left before.
    pub(super) fn members(&self, facts: &Facts) -> io::Result<Vec<Member>> {
        let stem = Stem::of(&self.config.path, self.config.rotation)?;
        let mut listing = stem.list(self.config.rotation)?;
        for archive in self.own_archives(&stem)? {
            let known = facts.entry(&archive).is_some()
                || facts.copy.as_ref() == Some(&archive.identity)
                || self.progress_knows(&archive);
            if known || self.current_has_become(&archive, &listing)? {
                let at = listing.iter().position(|member| member.suffix == Suffix::Live).unwrap_or(listing.len());
                listing.insert(at, archive);
            }
        }
        Ok(listing)
    }

    /// Archives of the lane's own name, where they are no lanes themselves.
    pub(super) fn own_archives(&self, stem: &Stem) -> io::Result<Vec<Member>> {
        match (self.config.rotation, self.config.own_archives) {
            (RotationRule::Replaced | RotationRule::ByName, _) | (_, OwnArchives::LanesThemselves) => Ok(Vec::new()),
            (RotationRule::Suffixes | RotationRule::BeforeExtension | RotationRule::None, OwnArchives::OfTheLane) => {
                stem.own_archives()
            }
        }
    }

    /// Whether the file that is being read is gone, and this is its compressed copy.
    fn current_has_become(&self, archive: &Member, listing: &[Member]) -> io::Result<bool> {
        let Some(reading) = &self.reading else { return Ok(false) };
        let identity = reading.opened.identity();
        if reading.is_packed() || listing.iter().any(|member| member.identity == identity) {
            return Ok(identity == archive.identity);
        }
        let bookmark = self.current_bookmark();
        let tail = reading.tail_hash();
        let Some(opened) = self.open_member(archive)? else { return Ok(false) };
        Ok(opened.is_copy(&bookmark, tail.as_ref())? == Some(true))
    }

    /// Whether the name of an archive allows that the file that is read has become it.
    pub(super) fn name_allows(&self, facts: &Facts, archive: &Member) -> io::Result<bool> {
        let stem = Stem::of(&self.config.path, self.config.rotation)?;
        let was = facts.name.as_deref().unwrap_or_default();
        Ok(may_have_become(self.config.rotation, &stem.name, was, archive))
    }

    /// What a file is called in its chain now.
    pub(super) fn name_of(&self, opened: &Opened, facts: &Facts) -> Option<String> {
        let listing = self.members(facts).ok()?;
        listing.into_iter().find(|member| member.identity == opened.identity()).map(|member| member.name)
    }

    /// Among the compressed files of the chain, by name and content.
    pub(super) fn find_copy(&self, bookmark: &Bookmark, facts: &Facts) -> io::Result<Copied> {
        let Ok(stem) = Stem::of(&self.config.path, self.config.rotation) else { return Ok(Copied::None) };
        let mut listing = match stem.list(self.config.rotation) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Copied::None),
            listing => listing?,
        };
        let own_from = listing.len();
        listing.extend(self.own_archives(&stem)?);
        let (mut found, mut names) = (Vec::new(), Vec::new());
        for (at, member) in listing.iter().enumerate() {
            if !member.packed || facts.entry(member).is_some() || !self.name_allows(facts, member)? {
                continue;
            }
            let Some(opened) = self.open_member(member)? else { continue };
            match opened.is_copy(bookmark, facts.tail.as_ref())? {
                Some(true)
                    if self.knows_header_only(bookmark, &opened)?
                        && (at >= own_from || !self.follows_read(at, facts, &listing)?) => {}
                Some(true) => {
                    names.push(member.name.clone());
                    found.push(opened);
                }
                Some(false) => {}
                None => return Ok(Copied::Growing(member.clone())),
            }
        }
        Ok(match (found.pop(), found.is_empty()) {
            (Some(one), true) => Copied::Found(one),
            (Some(_), false) => Copied::Several(names),
            (None, _) => Copied::None,
        })
    }

    /// Whether all that is known of the bookmark's file is a header, with which every file of the lane begins.
    pub(super) fn knows_header_only(&self, bookmark: &Bookmark, copy: &Opened) -> io::Result<bool> {
        let (header, known) = (self.header_end(copy)?, described_length(first_in(&bookmark.incarnation.text)));
        Ok(known.is_some_and(|known| (known as u64) <= header))
    }

    /// Where the header of a file ends, if it has one.
    pub(super) fn header_end(&self, opened: &Opened) -> io::Result<u64> {
        Ok(match self.naming(opened)? {
            Naming::Known { behind, .. } => behind,
            Naming::Awaited => 0,
        })
    }

    /// Whether the file before this one is the last that was read: then this is the one that came after it, whatever it holds.
    pub(super) fn follows_read(&self, at: usize, facts: &Facts, listing: &[Member]) -> io::Result<bool> {
        let (Some(before), Some(last)) = (at.checked_sub(1).map(|at| &listing[at]), facts.read.last()) else {
            return Ok(false);
        };
        if facts.entry(before).is_some_and(|entry| entry.identity == last.identity) {
            return Ok(true);
        }
        Ok(match self.read_before_packing(before, facts, listing)? {
            Older::Read(read) => read.first == last.first,
            Older::Later | Older::Unread => false,
        })
    }

    /// Whether a compressed file's original was read, and what is remembered of it.
    pub(super) fn read_before_packing(&self, member: &Member, facts: &Facts, listing: &[Member]) -> io::Result<Older> {
        if !member.packed {
            return Ok(Older::Unread);
        }
        let Some(opened) = self.open_member(member)? else {
            return Ok(Older::Later);
        };
        let stem = Stem::of(&self.config.path, self.config.rotation)?;
        let may_be = |entry: &&ReadMember| {
            listing.iter().all(|member| member.identity != entry.identity)
                && unpacked_name(&entry.name).is_none()
                && may_have_become(self.config.rotation, &stem.name, &entry.name, member)
        };
        let mut answer = Older::Unread;
        for entry in facts.read.iter().filter(may_be) {
            match opened.holds_all_of(entry)? {
                Some(true) => {
                    return Ok(Older::Read(ReadMember { first: entry.first.clone(), ..ReadMember::passed(member) }));
                }
                Some(false) => {}
                None => answer = Older::Later,
            }
        }
        Ok(answer)
    }

    /// The same of a file that is older than the one that is read: that may be compressed just now, and still be there. All that such
    /// an archive holds lies in it too, from its beginning on, and is read there.
    pub(super) fn judge_older(
        &mut self,
        member: &Member,
        current: &Opened,
        facts: &Facts,
        listing: &[Member],
    ) -> io::Result<Older> {
        let known = self.read_before_packing(member, facts, listing)?;
        let may_be_copy = matches!(known, Older::Unread) && member.packed && current.packing()? == Packing::None;
        if !may_be_copy || !self.name_allows(facts, member)? {
            return Ok(known);
        }
        let now = compared_as(current.identity(), member);
        if !self.compared.contains(&now) {
            let Some(opened) = self.open_member(member)? else { return Ok(Older::Later) };
            match opened.is_part_of(current)? {
                Agreement::Whole if member.length > 0 => _ = self.compared.insert(now),
                Agreement::Whole | Agreement::SoFar => return Ok(Older::Later),
                Agreement::Other => return Ok(Older::Unread),
            }
        }
        Ok(Older::Read(ReadMember::passed(member)))
    }

    /// An archive beside its original that holds something else: the original is read, and what only the archive has would not be.
    pub(super) fn other_content_beside(&mut self, facts: &Facts) -> io::Result<Option<String>> {
        if !self.config.rotation.makes_chains() {
            return Ok(None);
        }
        let stem = Stem::of(&self.config.path, self.config.rotation)?;
        for (original, archive) in stem.archives_beside(self.config.rotation)? {
            let given_up = facts.has_given_up(&original);
            let now = compared_as(&original.identity, &archive);
            if given_up || facts.entry(&archive).is_some() || self.compared.contains(&now) {
                continue;
            }
            let (Some(beside), Some(opened)) = (self.open_member(&original)?, self.open_member(&archive)?) else {
                continue;
            };
            match opened.is_part_of(&beside)? {
                Agreement::Whole => _ = self.compared.insert(now),
                Agreement::SoFar => {} // it is being written, or cut off: what is there lies in the original too
                Agreement::Other if self.open_member(&original)?.is_none() => {} // it was finished just now
                Agreement::Other => {
                    return Ok(Some(format!(
                        "{} lies beside {}, and holds something else: only {} is read, so that what only the archive has would never \
                         be. Give the archive another name, or move one of them away",
                        archive.name, original.name, original.name
                    )));
                }
            }
        }
        Ok(None)
    }
}

/// A file and an archive, as they are compared.
fn compared_as(original: &str, archive: &Member) -> String {
    format!("{original} {} {} {:?}", archive.identity, archive.length, archive.modified)
}
