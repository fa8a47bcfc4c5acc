//! Where the input of a letter lies, as a person would look for it.
//!
//! Reads: progress, which knows the files of its chain, and their folder. Writes: nothing.

use std::collections::HashMap;

use hapax_connect::file::{CalledFile, Crowd};
use hapax_engine::books::Books as _;
use hapax_engine::letters::{LetterChoice, LetterStore as _, StoredLetter};
use hapax_model::position::{Bookmark, DeliveryId, Incarnation};

use super::choice::FoundCause;
use crate::assemble::{AnyBooks, AnySource, Part, part_of};
use crate::config::checked::FileLane;
use crate::config::{Config, Source};
use crate::exit::Failure;

/// Where inputs lie that one place keeps letters of.
pub(super) struct InputPlaces<'a> {
    config: &'a Config,
    progress: HashMap<DeliveryId, Bookmark>,
}

impl<'a> InputPlaces<'a> {
    /// Reads how far the deliveries of these books are.
    pub(super) async fn of(books: &mut AnyBooks, config: &'a Config) -> Result<Self, Failure> {
        let stored = books.deliveries().await?.into_iter();
        Ok(Self { config, progress: stored.map(|stored| (stored.id, stored.progress.bookmark)).collect() })
    }

    /// The oldest letter of a cause.
    pub(super) async fn first_of(cause: &FoundCause, books: &mut AnyBooks) -> Result<Option<StoredLetter>, Failure> {
        let choice = LetterChoice { ids: vec![cause.group.first_id], ..LetterChoice::default() };
        Ok(books.list(&choice, 0, 1).await?.pop())
    }

    /// The file of the letter's input, if its source is one of files.
    pub(super) fn file_of(&self, letter: &StoredLetter) -> Option<CalledFile> {
        let part = part_of(self.config, &letter.delivery)?;
        let Source::File(file) = part.source else { return None };
        let name = &letter.delivery.lane;
        let lane = file.many.as_ref().map(|many| FileLane {
            name: name.clone(),
            path: many.folder.join(name),
            first_seen: None,
            crowd: Crowd::default(),
        });
        let of: Incarnation = letter.incarnation.parse().ok()?;
        match (Part { file: lane.as_ref(), ..part }).open_source() {
            AnySource::File(source) => Some(source.called_file(&of, self.progress.get(&letter.delivery))),
            AnySource::Generate(_) => None,
        }
    }

    /// The same in words, with the position.
    pub(super) fn in_words(&self, letter: &StoredLetter) -> String {
        match self.file_of(letter) {
            Some(file) => format!("byte {} of {file}", letter.position),
            None => format!("position {} of {}", letter.position, letter.delivery.lane),
        }
    }
}
