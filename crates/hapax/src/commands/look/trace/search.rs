//! Finding the events of a key: in dead letters, and, if asked, by reading the source again.

use std::fmt;

use hapax_engine::batch::Batch;
use hapax_engine::letters::StoredLetter;
use hapax_engine::pipeline::Pipeline;
use hapax_engine::source::{Follow, Source as _, StartAt};
use hapax_model::epoch::Epoch;
use hapax_model::key::KeyHash;
use hapax_model::letter::LetterBytes;
use hapax_model::position::{Bookmark, Incarnation};

use super::super::history::Range;
use super::super::reader::{Next, Reader, holds, unreadable};
use super::super::subject::{KeysWanted, Subject};
use crate::assemble::AnySource;
use crate::exit::Failure;

/// The key that is looked for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Names the thing.
    entity: Option<KeyHash>,
    /// Names one event.
    event: Option<KeyHash>,
    /// The same fields, read otherwise.
    or: Option<Box<Wanted>>,
}

impl Wanted {
    /// A key that may be either.
    pub(super) const fn of_hash(key: KeyHash) -> Self {
        Self { entity: Some(key), event: Some(key), or: None }
    }

    /// The key of an event made of key fields alone. Its event key counts only if the fields alone make it.
    pub(super) fn of_fields(batch: &Batch, unique: bool) -> Self {
        if batch.is_empty() {
            return Self { entity: None, event: None, or: None };
        }
        let event = batch.event(0);
        Self { entity: event.entity_key(), event: event.event_key().filter(|_| unique), or: None }
    }

    /// Also looks for another key.
    pub(super) fn or(self, other: Self) -> Self {
        Self { or: Some(Box::new(other)), ..self }
    }

    /// The key as one hash, if there is any.
    pub(super) const fn hash(&self) -> Option<KeyHash> {
        match (self.entity, self.event) {
            (Some(key), _) | (None, Some(key)) => Some(key),
            (None, None) => None,
        }
    }

    /// Entity key and event key, for people; a hash that may be either is named once.
    pub(super) fn keys(&self) -> Vec<(&'static str, String)> {
        match (self.entity, self.event) {
            (Some(entity), Some(event)) if entity == event => vec![("key", entity.to_string())],
            (entity, event) => {
                let named = [("entity key", entity), ("event key", event)];
                named.into_iter().filter_map(|(name, key)| Some((name, key?.to_string()))).collect()
            }
        }
    }

    fn fits(&self, batch: &Batch) -> bool {
        self.place_in(batch).is_some()
    }

    /// Which event of the batch has the key.
    pub(super) fn place_in(&self, batch: &Batch) -> Option<usize> {
        let here = batch.events().position(|event| {
            (self.entity.is_some() && event.entity_key() == self.entity)
                || (self.event.is_some() && event.event_key() == self.event)
        });
        here.or_else(|| self.or.as_ref()?.place_in(batch))
    }

    /// The hashes of all keys that are looked for.
    pub(super) fn hashes(&self) -> Vec<KeyHash> {
        let others = self.or.as_ref().map(|other| other.hashes()).unwrap_or_default();
        self.hash().into_iter().chain(others).collect()
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hash() {
            Some(key) => write!(f, "key {key}"),
            None => f.write_str("these fields (the workflow makes no key of them)"),
        }
    }
}

/// An input that has the key.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) at: Bookmark,
    pub(super) bytes: Vec<u8>,
    epoch: u64,
}

impl Found {
    /// The input of a letter.
    pub(super) fn of_letter(letter: &StoredLetter) -> Self {
        let (LetterBytes::Whole(bytes) | LetterBytes::Cut { head: bytes, .. }) = &letter.bytes;
        let incarnation = letter.incarnation.parse().unwrap_or_else(|_| Incarnation::new(1, &letter.incarnation));
        Self { at: Bookmark::new(incarnation, letter.position), bytes: bytes.clone(), epoch: letter.epoch }
    }
}

/// Derives both keys of inputs.
pub(super) struct Lens {
    pipeline: Pipeline,
    batch: Batch,
}

impl Lens {
    pub(super) fn new(subject: &Subject<'_>) -> Self {
        let pipeline = subject.pipeline(None, KeysWanted::Shown);
        let mut batch = pipeline.batch();
        batch.inputs.set_format(&subject.part.kept_format());
        Self { pipeline, batch }
    }

    /// Whether the input has the key.
    pub(super) fn has(&mut self, place: &Found, wanted: &Wanted) -> bool {
        self.batch.clear();
        self.batch.inputs.push(place.at.position, &place.bytes);
        self.pipeline.process(&mut self.batch, 0, Epoch(place.epoch), &place.at.incarnation);
        wanted.fits(&self.batch)
    }
}

/// The keys of a batch of one event, as far as they can be told.
pub(super) fn keys_of(batch: &Batch, subject: &Subject<'_>) -> Vec<(&'static str, String)> {
    if batch.is_empty() {
        return Vec::new();
    }
    let event = batch.event(0);
    let with_epoch = subject.strategy().contains_epoch();
    let named = [("entity key", event.entity_key()), ("event key", event.event_key().filter(|_| !with_epoch))];
    named.into_iter().filter_map(|(name, key)| Some((name, key?.to_string()))).collect()
}

/// What a search found.
pub(super) struct Searched {
    pub(super) found: Vec<Found>,
    read: u64,
    from: Bookmark,
    limited: bool,
}

impl Searched {
    pub(super) fn summary(&self) -> String {
        let end = if self.limited { "; there is more: raise --limit, or begin at a later --from" } else { "" };
        format!("searched {} inputs from position {} on{end}", self.read, self.from.position)
    }
}

/// Reads the source from `from`, or from where the log begins, and collects the inputs that have the key.
pub(super) async fn search(
    subject: &Subject<'_>,
    mut source: AnySource,
    ranges: &[Range],
    wanted: &Wanted,
    from: Option<&Bookmark>,
    limit: u64,
) -> Result<Searched, Failure> {
    let begins = from.or_else(|| ranges.first().and_then(|range| range.from.as_ref()));
    let mut begin = None;
    if let Some(at) = begins.filter(|at| !at.incarnation.text.is_empty()) {
        match (holds(&mut source, at).await, from) {
            (Ok(()), _) => begin = Some(at.clone()),
            (Err(why), Some(_)) => return Err(Failure::new(super::super::UNREADABLE, why)),
            (Err(_), None) => {}
        }
    }
    let begin = match (begin, from) {
        (Some(at), _) => at,
        (None, Some(at)) => source.start(StartAt::At(at.position)).await?,
        (None, None) => source.start(StartAt::Earliest).await?,
    };
    let mut reader = Reader::open(source, &begin, Follow::No).await.map_err(|error| unreadable(&error))?;
    let mut lens = Lens::new(subject);
    let mut searched = Searched { found: Vec::new(), read: 0, from: begin, limited: false };
    let mut epochs = ranges.iter().peekable();
    while let Next::Input(at) = reader.peek().await.map_err(|error| unreadable(&error))? {
        if searched.read == limit {
            searched.limited = true;
            break;
        }
        while epochs.peek().is_some_and(|range| !range.holds(at.position, Some(&at.incarnation))) {
            epochs.next();
        }
        let mut inputs = hapax_engine::batch::Inputs::default();
        reader.take(&mut inputs);
        searched.read += 1;
        let epoch = epochs.peek().map_or(0, |range| range.logged.epoch.0);
        let place = Found { at, bytes: inputs.standing_alone(0), epoch };
        if lens.has(&place, wanted) {
            searched.found.push(place);
        }
    }
    Ok(searched)
}
