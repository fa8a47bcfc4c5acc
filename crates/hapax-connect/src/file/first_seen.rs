//! The file that a delivery without progress begins with, as it was when it was seen first.
//!
//! Reads: that file's beginning. Writes: nothing. Invariant: who waits for the first claim waits with the file, whatever a rotation
//! calls it by then and whether or not it was compressed.

use std::fs::Metadata;
use std::path::Path;

use hapax_engine::source::SourceError;
use hapax_model::position::Bookmark;

use super::chain::{Member, Stem};
use super::config::{FileFormat, FileSourceConfig};
use super::copies::Copied;
use super::facts::Facts;
use super::incarnation::{Opened, identity};
use super::source::FileSource;

/// A file that was seen before anything of it was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstSeen {
    /// What it was called.
    pub(super) name: String,
    /// Its identity and, if it had one, its first record.
    pub(super) description: String,
}

impl FirstSeen {
    /// What the file at `path` says of itself now, if there is one.
    pub(super) fn at(path: &Path, name: &str, format: &FileFormat) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        let described = Opened::open(path, format).and_then(|opened| opened.describe(0));
        let description = described.map_or_else(|_| identity(&metadata), |described| described.text);
        Some(Self { name: name.to_owned(), description })
    }

    /// Whether `member` is this file, whatever its name is now.
    pub(super) fn is(&self, member: &Member) -> bool {
        self.description
            .strip_prefix(&member.identity)
            .is_some_and(|record| record.is_empty() || record.starts_with(','))
    }
}

impl FileSourceConfig {
    /// Remembers which file is at the path: who waits for its first claim, for a resume or for the target, waits with that file.
    pub(super) fn seen_now(mut self) -> Self {
        if self.first_seen.is_none() && self.crowd.is_none() && self.rotation.makes_chains() {
            let name = Stem::of(&self.path, self.rotation).map(|stem| stem.name).unwrap_or_default();
            self.first_seen = FirstSeen::at(&self.path, &name, &self.format);
        }
        self
    }
}

/// The file to begin with, and what it was described as if it has been compressed since.
pub(super) type Begin = (Opened, Option<String>);

impl FileSource {
    /// The file that was seen first: under the name that it has now, or as its compressed copy.
    pub(super) fn seen_first(&mut self, first: &FirstSeen) -> Result<Begin, SourceError> {
        let listing = Stem::of(&self.config.path, self.config.rotation)
            .and_then(|stem| stem.list(self.config.rotation))
            .map_err(|error| self.unavailable(error))?;
        if let Some(member) = listing.iter().find(|member| first.is(member))
            && let Some(opened) = self.open_member(member).map_err(|error| self.unavailable(error))?
        {
            return Ok((opened, None));
        }
        let bookmark = Bookmark::at(&first.description, 0);
        let facts = Facts { name: Some(first.name.clone()), ..Facts::default() };
        match self.find_copy(&bookmark, &facts).map_err(|error| self.unavailable(error))? {
            Copied::Found(opened) => Ok((opened, Some(first.description.clone()))),
            Copied::Growing(member) => {
                let cut_off = self.wait_for_whole(&member)?;
                Err(self.gap(&cut_off))
            }
            Copied::Several(names) => Err(self.gap(&format!(
                "{} is gone before anything of it was read, and each of these may be its compressed copy: {}. Remove those that are not, \
                 and start again",
                first.name,
                names.join(", ")
            ))),
            Copied::None => {
                let archives = self.may_be_archive(&bookmark, &facts);
                Err(self.gap(&format!(
                    "{} is gone before anything of it was read{archives}. A new start begins with the file that lies there then, and \
                     passes older ones: unpack or rename what it must read",
                    first.name
                )))
            }
        }
    }
}
