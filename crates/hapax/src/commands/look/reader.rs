//! A source read on a cursor of its own, input by input.
//!
//! Reads: the source. Writes: nothing, and never acknowledges. Invariant: inputs come with the incarnation that their
//! positions belong to, as a worker would have seen them.

use hapax_engine::batch::Inputs;
use hapax_engine::source::{Follow, Held, Polled, Room, Source, SourceError};
use hapax_model::letter::LetterBytes;
use hapax_model::position::{Bookmark, Incarnation, Position};

use super::UNREADABLE;
use crate::exit::Failure;

/// How much is read ahead.
const ROOM: Room = Room { events: 1024, bytes: 1024 * 1024 };

/// Reads inputs one by one.
pub(super) struct Reader<S> {
    source: S,
    pending: Inputs,
    next: usize,
    incarnation: Incarnation,
    /// How far the file was read that reading began in.
    end: Bookmark,
    follow: Follow,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// An input at this place.
    Input(Bookmark),
    /// Nothing at the moment; only where the source is followed.
    Idle,
    /// Nothing more.
    End,
}

impl<S: Source> Reader<S> {
    /// Reads from `at` on.
    pub(super) async fn open(mut source: S, at: &Bookmark, follow: Follow) -> Result<Self, SourceError> {
        source.assign(at, follow).await?;
        let (incarnation, end) = (at.incarnation.clone(), at.clone());
        Ok(Self { source, pending: Inputs::default(), next: 0, incarnation, end, follow })
    }

    /// The next input, without taking it.
    pub(super) async fn peek(&mut self) -> Result<Next, SourceError> {
        while self.next >= self.pending.len() {
            (self.pending, self.next) = (Inputs::default(), 0);
            let polled = self.source.poll(&mut self.pending, ROOM).await?;
            let read_to = self.source.bookmark();
            self.incarnation = read_to.incarnation.clone();
            if read_to.incarnation.number == self.end.incarnation.number {
                self.end = read_to;
            }
            if polled == Polled::Boundary {
                self.source.step().await?;
            }
            match polled {
                Polled::End if self.pending.is_empty() => return Ok(Next::End),
                Polled::Idle if self.follow == Follow::Yes => return Ok(Next::Idle),
                Polled::Records | Polled::Idle | Polled::Boundary | Polled::End => {}
            }
        }
        Ok(Next::Input(Bookmark::new(self.incarnation.clone(), self.pending.position(self.next))))
    }

    /// Whether the last input of the file that reading began in begins at `position` or contains it.
    fn reaches(&self, last: &Inputs, position: Position) -> bool {
        last.position(0) == position || position < self.end.position
    }

    /// Takes the input that [`peek`](Self::peek) found into `into`.
    pub(super) fn take(&mut self, into: &mut Inputs) {
        let position = self.pending.position(self.next);
        into.set_format(self.pending.format());
        match self.pending.oversized_length(self.next) {
            None => into.push(position, self.pending.bytes(self.next)),
            Some(_) => {
                if let LetterBytes::Cut { head, length, sha256 } = self.pending.letter_bytes(self.next) {
                    into.push_oversized(position, &head, length, sha256);
                }
            }
        }
        self.next += 1;
    }
}

/// Whether the source can be read from a place, and if not, why.
pub(super) async fn holds<S: Source>(source: &mut S, at: &Bookmark) -> Result<(), String> {
    match source.hold(at).await {
        Ok(Held::Yes) => Ok(()),
        Ok(Held::OtherIncarnation { now } | Held::Copied { now }) => {
            Err(format!("the source is another one now: {now}"))
        }
        Ok(Held::Gone { missing }) => Err(missing),
        Err(error) => Err(error.to_string()),
    }
}

/// What is at a position.
pub(super) enum At {
    /// This input begins there, or contains it.
    Input(Inputs),
    /// The first input from there on begins here, and what lies before it is none: the header of a file.
    Before(Position),
    /// No input begins there, as far as was read.
    Nothing,
}

impl At {
    fn of(found: Option<Inputs>) -> Self {
        found.map_or(Self::Nothing, Self::Input)
    }
}

/// The input that begins at `position` or contains it, read from `from` on, at most `limit` inputs further.
pub(super) async fn input_at<S: Source>(
    mut source: S,
    from: &Bookmark,
    position: Position,
    limit: u64,
) -> Result<At, String> {
    holds(&mut source, from).await?;
    let mut reader = Reader::open(source, from, Follow::No).await.map_err(|error| error.to_string())?;
    let mut found: Option<Inputs> = None;
    for _ in 0..limit {
        match reader.peek().await.map_err(|error| error.to_string())? {
            Next::Input(at) if at.position <= position && at.incarnation.number == from.incarnation.number => {
                let mut inputs = Inputs::default();
                reader.take(&mut inputs);
                found = Some(inputs);
            }
            // One that begins behind it: whatever contains it was found.
            Next::Input(at) => {
                let is_first = found.is_none() && from.position.offset == 0;
                let same_file = at.incarnation.number == from.incarnation.number;
                return Ok(match (same_file, is_first) {
                    (true, true) => At::Before(at.position),
                    (true, false) => At::of(found),
                    (false, _) => At::of(found.filter(|inputs| reader.reaches(inputs, position))),
                });
            }
            Next::Idle | Next::End => return Ok(At::of(found.filter(|inputs| reader.reaches(inputs, position)))),
        }
    }
    Ok(At::of(found.filter(|inputs| inputs.position(0) == position)))
}

/// A source that cannot be read, as a command says it.
pub(super) fn unreadable(error: &SourceError) -> Failure {
    Failure::new(UNREADABLE, error.to_string())
}
