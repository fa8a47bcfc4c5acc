//! Whether a chain still leads from one bookmark to a later one by the same steps.
//!
//! Reads: the folder of the lane, and the file of each bookmark. Writes: nothing. Invariant: the later bookmark's file must
//! come out under the number that it was read as; else a file between is missing, or was not there before.

use std::time::Instant;

use hapax_engine::source::{Held, SourceError};
use hapax_model::position::Bookmark;
use tokio::time::sleep;

use super::chain::Successor;
use super::incarnation::{Opened, without_end};
use super::recognise::Place;
use super::source::{FileSource, WAIT};
use super::turn::DOUBT_LASTS;

/// Where the walk from file to file has come to.
enum Reached {
    /// The file of the wanted number.
    File(Opened),
    /// The bookmark's own file, read to its end and replaced since.
    OwnEnd,
    /// It is not there, and why.
    Nowhere(String),
}

impl FileSource {
    /// Asked again for a while before it says no: names may be on their way.
    pub(super) async fn holds_range(&mut self, from: &Bookmark, to: &Bookmark) -> Result<Held, SourceError> {
        let since = Instant::now();
        loop {
            match self.missing_between(from, to)? {
                None => return Ok(Held::Yes),
                Some(missing) if since.elapsed() >= DOUBT_LASTS => return Ok(Held::Gone { missing }),
                Some(_) => sleep(WAIT * 4).await,
            }
        }
    }

    fn missing_between(&mut self, from: &Bookmark, to: &Bookmark) -> Result<Option<String>, SourceError> {
        let (first, last) = (from.incarnation.number, to.incarnation.number);
        if last < first {
            return Ok(None); // nothing lies between
        }
        let reached = match self.walk(from, last)? {
            Reached::File(opened) => opened,
            Reached::OwnEnd if from.position == to.position => return Ok(None),
            Reached::OwnEnd => return Ok(Some("the file was replaced since".to_owned())),
            Reached::Nowhere(why) => return Ok(Some(why)),
        };
        // The witness keeps no hash of what lay before it: by place alone a compressed copy is not found again.
        if reached.is_archive_up_to(to).map_err(|error| self.unavailable(error))? {
            return Ok(None);
        }
        Ok(match self.place(to)? {
            Place::Found(opened, _) if opened.identity() == reached.identity() => None,
            Place::Found(opened, _) => Some(format!(
                "file number {last} was {}, and would now be {}: files between are missing, or others have come",
                opened.identity(),
                reached.identity()
            )),
            Place::Gone(missing) => Some(missing),
            Place::Replaced(_) | Place::Resting | Place::Restored(_) | Place::Other(_) => {
                let was = without_end(&to.incarnation.text);
                Some(format!("file number {last} ({was}) is gone, or no longer what it was"))
            }
        })
    }

    /// From the file of `from` to the one that would be read as number `last` now.
    fn walk(&mut self, from: &Bookmark, last: u32) -> Result<Reached, SourceError> {
        let (facts, mut number) = (self.facts_of(from)?, from.incarnation.number);
        let current = match self.place(from)? {
            Place::Found(opened, _) => opened,
            Place::Replaced(_) | Place::Resting if number == last => return Ok(Reached::OwnEnd),
            Place::Replaced(opened) => {
                number += 1;
                opened
            }
            Place::Resting => return Ok(Reached::Nowhere("the file is gone".to_owned())),
            Place::Restored(copy) => return Ok(Reached::Nowhere(format!("{} is a copy of it", copy.name))),
            Place::Gone(missing) | Place::Other(missing) => return Ok(Reached::Nowhere(missing)),
        };
        if number == last {
            return Ok(Reached::File(current));
        }
        let listing = self.members(&facts).map_err(|error| self.unavailable(error))?;
        let Some(mut at) = listing.iter().position(|member| member.identity == current.identity()) else {
            let identity = current.identity();
            return Ok(Reached::Nowhere(format!("file number {number} ({identity}) is no longer in its chain")));
        };
        while number < last {
            let why = match self.successor(&listing, at, &facts)? {
                Successor::Next { member, .. } => {
                    at = listing.iter().position(|other| other.name == member.name).unwrap_or(at);
                    number += 1;
                    continue;
                }
                Successor::None => format!("{} is file number {number}, and none follows it", listing[at].name),
                Successor::Missing(what) => format!("a file of the chain is gone: {what}"),
                Successor::Contradiction(what) => what,
            };
            return Ok(Reached::Nowhere(format!(
                "file number {last} was read, and number {number} is the last that is found: {why}"
            )));
        }
        let opened = self.open_member(&listing[at]).map_err(|error| self.unavailable(error))?;
        let moved = || Reached::Nowhere(format!("{} has moved just now", listing[at].name));
        Ok(opened.map_or_else(moved, Reached::File))
    }
}
