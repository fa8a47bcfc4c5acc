//! Where a delivery without progress begins.
//!
//! Reads: the folder of the lane, and the file that it begins with. Writes: nothing. Invariant: it begins with the file that was
//! seen first, and files whose order nobody can tell are refused.

use std::io;

use hapax_engine::source::{SourceError, StartAt};
use hapax_model::position::{Bookmark, Position};

use super::chain::{Stem, contradiction_among};
use super::facts::{Facts, ReadMember};
use super::feed::Packing;
use super::first_seen::Begin;
use super::incarnation::{Fit, Opened};
use super::source::FileSource;

impl FileSource {
    /// The file that a delivery without progress begins with: the one that was seen first, else the one at the path.
    fn first_file(&mut self) -> Result<Begin, SourceError> {
        if let Some(first) = self.config.first_seen.clone() {
            return self.seen_first(&first);
        }
        match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_one_of_many() => {
                Err(self.gap("the file is gone, and by its progress nothing of it was read"))
            }
            opened => opened.map(|opened| (opened, None)).map_err(|error| self.unavailable(error)),
        }
    }

    pub(super) fn resolve(&mut self, at: StartAt) -> Result<Bookmark, SourceError> {
        let (opened, described) = self.first_file()?;
        let packed = opened.packing().map_err(|error| self.unavailable(error))? != Packing::None;
        let offset = match at {
            StartAt::Earliest => 0,
            StartAt::Latest if packed => opened.unpacked_last_line_start().map_err(|error| self.unavailable(error))?,
            StartAt::Latest => opened.last_line_start().map_err(|error| self.unavailable(error))?,
            StartAt::At(position) => {
                self.refuse_unfit(&opened, position)?;
                position.offset
            }
        };
        // A header that cannot serve is refused before anybody is fenced for it.
        self.naming(&opened).map_err(|error| self.unavailable_in(&opened, error))?;
        if let Some(what) = self.contradiction_behind(&opened).map_err(|error| self.unavailable(error))? {
            return Err(self.gap(&what));
        }
        let description = match described {
            Some(original) => original,
            None => opened.describe(offset).map_err(|error| self.unavailable(error))?.text,
        };
        let facts = self.first_facts(&opened, offset).map_err(|error| self.unavailable(error))?;
        Ok(Bookmark { facts: Some(facts.to_text().into()), ..Bookmark::at(&description, offset) })
    }

    /// Whether the files that a delivery would begin with have an order.
    fn contradiction_behind(&self, first: &Opened) -> io::Result<Option<String>> {
        let listing = Stem::of(&self.config.path, self.config.rotation)?.list(self.config.rotation)?;
        let at = listing.iter().position(|member| member.identity == first.identity());
        Ok(at.and_then(|at| contradiction_among(&listing[at..])))
    }

    /// A person's position must be where a line begins.
    pub(super) fn refuse_unfit(&self, opened: &Opened, position: Position) -> Result<(), SourceError> {
        match opened.fit_unpacked(position.offset).map_err(|error| self.unavailable(error))? {
            Fit::LineStart => Ok(()),
            Fit::Short { length } => Err(self.gap(&format!("there is no byte {position}, the file ends at {length}"))),
            Fit::InsideLine | Fit::AfterUnterminated => {
                Err(self.gap(&format!("byte {position} is inside a line; name the byte after a newline")))
            }
        }
    }

    /// Older files of the chain are passed when a delivery begins, and never read later.
    fn first_facts(&self, opened: &Opened, offset: u64) -> io::Result<Facts> {
        let listing = Stem::of(&self.config.path, self.config.rotation)?.list(self.config.rotation)?;
        let at = listing.iter().position(|member| member.identity == opened.identity()).unwrap_or(0);
        let older: Vec<ReadMember> = listing[..at].iter().map(ReadMember::passed).collect();
        for member in &older {
            tracing::info!(lane = %self.lane, file = member.name, "passed: it is older than the file that the delivery begins with");
        }
        Ok(Facts {
            device: Some(opened.device()),
            tail: opened.tail_hash(offset)?,
            name: listing.get(at).filter(|member| member.identity == opened.identity()).map(|found| found.name.clone()),
            read: older,
            ..Facts::default()
        })
    }
}
