//! A file that is gone though files of its chain still lie there: what is said of it, and what follows once a person has accepted
//! that.
//!
//! Reads: the folder of the lane, and the files that are compared. Writes: nothing.
//! Invariant: only a file that nobody has read follows one that is gone, and only after a person has said so.

use std::io;
use std::path::Path;

use hapax_engine::source::{SourceError, StartAt};
use hapax_model::name_list::fold_names;
use hapax_model::position::{Bookmark, Incarnation, Position};

use super::chain::Member;
use super::copies::Older;
use super::facts::{Facts, TailHash};
use super::feed::Packing;
use super::incarnation::{was_read_to_its_end, with_end};
use super::moved::Accepted;
use super::recognise::Place;
use super::source::FileSource;

impl FileSource {
    /// What is said of the file of `bookmark`, one of many, which is nowhere.
    pub(super) fn how_gone(&self, bookmark: &Bookmark, facts: &Facts) -> String {
        let (at, may_be) = (bookmark.position.offset, self.may_be_archive(bookmark, facts));
        if !was_read_to_its_end(&bookmark.incarnation.text) {
            return format!("the file is gone, and was read only up to byte {at}{may_be}");
        }
        let listing = self.members(facts).unwrap_or_default();
        let names: Vec<&str> = listing.iter().map(|member| member.name.as_str()).collect();
        let called = facts.name.as_ref().map(|name| format!(" (it was called {name})")).unwrap_or_default();
        let beside = match names.is_empty() {
            true => String::new(),
            false => format!(
                "; nobody can say whether lines came to it after that, or another file after it. Of its chain these lie there: {}",
                fold_names(&names, ", ")
            ),
        };
        format!("the file is gone{called}; it was read to its end then, byte {at}{beside}{may_be}")
    }

    /// What follows a file of which a person has accepted that it is gone.
    pub(super) fn after_gone(&mut self, bookmark: &Bookmark, facts: &Facts) -> Result<Place, SourceError> {
        self.same_device(facts).map_err(|error| self.unavailable(error))?;
        if let Some(copy) = self.find_restored(bookmark, facts).map_err(|error| self.unavailable(error))? {
            return Ok(Place::Restored(copy));
        }
        let listing = self.members(facts).map_err(|error| self.unavailable(error))?;
        let Some(at) = self.oldest_unread(&listing, facts)? else { return Ok(Place::Resting) };
        let opened = self.open_member(&listing[at]).map_err(|error| self.unavailable(error))?;
        let moved = || self.unavailable(io::Error::other(format!("{} has moved just now", listing[at].name)));
        opened.map(Place::Replaced).ok_or_else(moved)
    }

    /// The oldest file of the chain that holds something and that nobody has read, also under another inode or compressed.
    pub(super) fn oldest_unread(&mut self, listing: &[Member], facts: &Facts) -> Result<Option<usize>, SourceError> {
        let known = self.recognised(listing, facts).map_err(|error| self.unavailable(error))?;
        for (at, member) in listing.iter().enumerate() {
            if member.length == 0 || known.entry(member).is_some() {
                continue;
            }
            match self.read_before_packing(member, facts, listing).map_err(|error| self.unavailable(error))? {
                Older::Read(_) => {}
                Older::Later => return Err(self.not_whole_yet(member)),
                Older::Unread => return Ok(Some(at)),
            }
        }
        Ok(None)
    }

    /// An archive that is being written is waited for; who has waited long enough is told so.
    fn not_whole_yet(&mut self, member: &Member) -> SourceError {
        match self.wait_for_whole(member) {
            Ok(stands) => self.gap(&stands),
            Err(waits) => waits,
        }
    }

    /// Whether the file of `bookmark` is gone with a person's consent, and there is nothing else to read yet.
    #[must_use]
    pub fn rests(&mut self, bookmark: &Bookmark) -> bool {
        self.facts_of(bookmark).is_ok_and(|facts| facts.gone) && matches!(self.place(bookmark), Ok(Place::Resting))
    }

    /// Where a person goes on who wants only what comes from now on: behind the file of the lane's own name, or else behind the
    /// youngest; where no file is left, with the next one that comes.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn latest(&mut self, bookmark: &Bookmark) -> Result<Accepted, SourceError> {
        if self.config.live_path().is_some_and(Path::exists) {
            return Ok(Accepted { at: self.resolve(StartAt::Latest)?, how: String::new() });
        }
        let facts = self.facts_of(bookmark)?;
        self.same_device(&facts).map_err(|error| self.unavailable(error))?;
        let listing = self.members(&facts).map_err(|error| self.unavailable(error))?;
        let Some(at) = listing.len().checked_sub(1) else { return Ok(Self::accept_gone(bookmark, facts)) };
        let begins = self.beginning_of(&listing, at, bookmark, facts)?;
        let opened = self.open_member(&listing[at]).map_err(|error| self.unavailable(error))?;
        let opened = opened.ok_or_else(|| self.gap("the file has gone just now"))?;
        let look = || -> io::Result<(u64, String, Option<TailHash>)> {
            let packed = opened.packing()? != Packing::None;
            let offset = if packed { opened.unpacked_last_line_start()? } else { opened.last_line_start()? };
            Ok((offset, opened.describe(offset)?.text, opened.tail_hash(offset)?))
        };
        let (offset, text, tail) = look().map_err(|error| self.unavailable_in(&opened, error))?;
        let facts = Facts { tail, ..self.facts_of(&begins)? };
        let incarnation = Incarnation::new(begins.incarnation.number, &text);
        let at_end = Bookmark::new(incarnation, Position::at(offset));
        let how = format!("goes on behind {}, the youngest file, with what comes from now on", listing[at].name);
        Ok(Accepted { at: Bookmark { facts: Some(facts.to_text().into()), ..at_end }, how })
    }

    /// A person accepts that the file of `bookmark` is gone; others that were read lie there still.
    pub(super) fn accept_gone(bookmark: &Bookmark, facts: Facts) -> Accepted {
        let text = &bookmark.incarnation.text;
        let rest = match was_read_to_its_end(text) {
            true => "which was read to its end: nothing is delivered again".to_owned(),
            false => format!("whose rest from byte {} on is given up", bookmark.position),
        };
        let name = facts.name.clone().unwrap_or_else(|| "the file".to_owned());
        let how = format!("rests behind {name}, {rest}; goes on with the next file that comes");
        let incarnation = Incarnation::new(bookmark.incarnation.number, &with_end(text));
        let facts = Facts { gone: true, ..facts };
        Accepted { at: Bookmark { incarnation, facts: Some(facts.to_text().into()), ..bookmark.clone() }, how }
    }
}
