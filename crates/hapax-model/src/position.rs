//! Where in a lane the next input is, and which incarnation of the source that position belongs to.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The next input to read in a lane.
///
/// `offset` is the source's own count (a byte in a file, a record's number, an LSN); `index` counts inside one
/// offset where a source packs several inputs there (the changes of one transaction), else it is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// The source's own count.
    pub offset: u64,
    /// Counts inside one offset.
    pub index: u32,
}

impl Position {
    /// The position at `offset`, with nothing packed inside it.
    #[must_use]
    pub const fn at(offset: u64) -> Self {
        Self { offset, index: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.index == 0 { write!(f, "{}", self.offset) } else { write!(f, "{}.{}", self.offset, self.index) }
    }
}

/// A text that is no position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no position: write a number, or two joined by a point")]
pub struct NoPosition(pub String);

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (offset, index) = text.split_once('.').unwrap_or((text, "0"));
        match (offset.parse(), index.parse()) {
            (Ok(offset), Ok(index)) => Ok(Self { offset, index }),
            (Err(_), _) | (_, Err(_)) => Err(NoPosition(text.to_owned())),
        }
    }
}

/// Which topic, timeline or file a position belongs to.
///
/// `text` is the source's own description, compared and never parsed. `number` counts the incarnations that this
/// delivery has lived through, so that versions made from positions keep their order across a rotation or a reset.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Incarnation {
    /// Counted from 1, by the delivery.
    pub number: u32,
    /// The source's own description.
    pub text: Arc<str>,
}

impl Incarnation {
    /// The `number`th incarnation, which describes itself as `text`.
    #[must_use]
    pub fn new(number: u32, text: &str) -> Self {
        Self { number, text: text.into() }
    }

    /// The incarnation that follows this one and describes itself as `text`.
    #[must_use]
    pub fn next(&self, text: &str) -> Self {
        Self::new(self.number + 1, text)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.text)
    }
}

/// A text that is no incarnation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no incarnation: it begins with a number and a colon")]
pub struct NoIncarnation(pub String);

impl FromStr for Incarnation {
    type Err = NoIncarnation;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        parts.map(|(number, rest)| Self::new(number, rest)).ok_or_else(|| NoIncarnation(text.to_owned()))
    }
}

/// A position together with the incarnation that gives it meaning.
///
/// `facts` is what the source keeps with the place to recognise it again (hashes of what was read, files that were read
/// before). It is stored with progress and opaque to everybody but the source. Two bookmarks are equal if they name the
/// same place, whatever is known about it.
#[derive(Debug, Clone, Eq)]
pub struct Bookmark {
    /// Which incarnation of the source.
    pub incarnation: Incarnation,
    /// Where in it.
    pub position: Position,
    /// What the source needs to recognise the place; none for a source that needs nothing.
    pub facts: Option<Arc<str>>,
}

/// What stands between an incarnation and its facts in the stored form.
const FACTS_FOLLOW: char = '\n';

impl PartialEq for Bookmark {
    fn eq(&self, other: &Self) -> bool {
        self.incarnation == other.incarnation && self.position == other.position
    }
}

impl std::hash::Hash for Bookmark {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.incarnation.hash(state);
        self.position.hash(state);
    }
}

impl Bookmark {
    /// A place about which the source has kept nothing.
    #[must_use]
    pub const fn new(incarnation: Incarnation, position: Position) -> Self {
        Self { incarnation, position, facts: None }
    }

    /// A bookmark at `offset` of the first incarnation, which describes itself as `text`.
    #[must_use]
    pub fn at(text: &str, offset: u64) -> Self {
        Self::new(Incarnation::new(1, text), Position::at(offset))
    }

    /// The incarnation as progress stores it: with the facts after it.
    #[must_use]
    pub fn stored_incarnation(&self) -> String {
        match &self.facts {
            Some(facts) => format!("{}{FACTS_FOLLOW}{facts}", self.incarnation),
            None => self.incarnation.to_string(),
        }
    }

    /// Reads what [`stored_incarnation`](Self::stored_incarnation) wrote, beside its position.
    ///
    /// # Errors
    /// If the text is no incarnation.
    pub fn from_stored(position: Position, incarnation: &str) -> Result<Self, NoIncarnation> {
        let (incarnation, facts) = match incarnation.split_once(FACTS_FOLLOW) {
            Some((incarnation, facts)) => (incarnation, Some(facts.into())),
            None => (incarnation, None),
        };
        Ok(Self { incarnation: incarnation.parse()?, position, facts })
    }
}

impl fmt::Display for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.position, self.incarnation)
    }
}

/// The unit of ownership, fencing, commit and recovery: workflow × sink × lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId {
    /// The workflow's id.
    pub workflow: String,
    /// The sink's name within the workflow.
    pub sink: String,
    /// The lane: the unit of order within the source.
    pub lane: String,
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.workflow, self.sink, self.lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what progress stores reads back as the same position. Method: both shapes, and text that is none.
    #[test]
    fn a_position_survives_its_text() {
        for position in [Position::at(0), Position::at(u64::MAX), Position { offset: 7, index: 3 }] {
            assert_eq!(position.to_string().parse(), Ok(position));
        }
        for text in ["", "x", "1.", ".1", "-1", "1.2.3"] {
            assert_eq!(text.parse::<Position>(), Err(NoPosition(text.to_owned())));
        }
    }

    /// Goal: the incarnation's own text may contain anything. Method: a colon in it.
    #[test]
    fn an_incarnation_survives_its_text() {
        let incarnation = Incarnation::new(3, "inode 7: first line x");
        assert_eq!(incarnation.to_string().parse(), Ok(incarnation));
        assert_eq!("x:y".parse::<Incarnation>(), Err(NoIncarnation("x:y".to_owned())));
    }

    /// Goal: facts survive their storage, and change no place. Method: with and without them.
    #[test]
    fn facts_are_stored_behind_the_incarnation() {
        let plain = Bookmark::at("inode 7", 9);
        let known = Bookmark { facts: Some("{\"tail\":\"00\"}\n".into()), ..plain.clone() };
        for bookmark in [&plain, &known] {
            let read = Bookmark::from_stored(bookmark.position, &bookmark.stored_incarnation()).expect("it reads back");
            assert_eq!((&read, &read.facts), (bookmark, &bookmark.facts));
        }
        assert_eq!(plain, known);
        assert_eq!(plain.stored_incarnation(), "1:inode 7", "as it was before there were facts");
        assert!(Bookmark::from_stored(Position::at(0), "x\n{}").is_err());
    }
}
