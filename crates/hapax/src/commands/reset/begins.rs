//! Whether a record of CSV begins at a byte that a person names: a line end inside of quotes begins none.
//!
//! Reads: the file from its beginning up to that byte. Writes: nothing.

use std::time::Duration;

use hapax_connect::file::FileFormat;
use hapax_engine::batch::Inputs;
use hapax_engine::source::{Follow, Polled, Room, Source as _, SourceError, StartAt};
use hapax_model::position::Position;
use hapax_model::progress::Progress;

use crate::assemble::{AnySource, Part};
use crate::config::Source;
use crate::exit::Failure;

/// Up to where a file is read to find out.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// How much is read at once.
const ROOM: Room = Room { events: 4096, bytes: 1024 * 1024 };

/// How long a source that has nothing yet is left alone.
const PAUSE: Duration = Duration::from_millis(20);

/// What is known of the byte.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// A record begins there, or nothing but lines do.
    Yes,
    /// It is inside of the record that begins here.
    Inside(Position),
    /// It lies too far behind to read up to it, or the file cannot be read.
    Unknown,
}

/// Whether a record begins at `position` of the file that is read, or would be.
pub(super) async fn begins(part: &Part<'_>, progress: Option<&Progress>, position: Position) -> Begins {
    let Source::File(file) = part.source else { return Begins::Yes };
    match &file.format {
        FileFormat::Csv(csv) if csv.dialect.quote.is_some() && position.offset > 0 => {}
        FileFormat::Csv(_) | FileFormat::JsonLines => return Begins::Yes,
    }
    if position.offset > MOST_BYTES {
        return Begins::Unknown;
    }
    read_up_to(part, progress, position).await.unwrap_or(Begins::Unknown)
}

async fn read_up_to(part: &Part<'_>, progress: Option<&Progress>, position: Position) -> Result<Begins, SourceError> {
    let AnySource::File(mut source) = part.open_source() else { return Ok(Begins::Yes) };
    let placed = progress.and_then(|progress| source.place_in_file(&progress.bookmark, Position::at(0)).ok());
    let from = match placed {
        Some(from) => from,
        None => source.start(StartAt::Earliest).await?,
    };
    source.assign(&from, Follow::No).await?;
    loop {
        let mut inputs = Inputs::default();
        let polled = source.poll(&mut inputs, ROOM).await?;
        for input in 0..inputs.len() {
            let begins = inputs.position(input);
            if begins >= position {
                return Ok(Begins::Yes);
            }
            let length = inputs.oversized_length(input).unwrap_or(inputs.bytes(input).len() as u64);
            if position.offset <= begins.offset + length {
                return Ok(Begins::Inside(begins));
            }
        }
        match polled {
            Polled::Records => {}
            Polled::Idle => tokio::time::sleep(PAUSE).await,
            Polled::Boundary | Polled::End => return Ok(Begins::Yes),
        }
    }
}

/// What a person is told of a byte of which nothing is known.
pub(super) fn unknown(position: Position) -> String {
    format!(
        "whether a record begins at byte {position} is not known: a line end inside of quotes begins none. `hapax trace \
         {position}` shows what is read there"
    )
}

/// Why a byte is refused.
pub(super) fn refused(part: &Part<'_>, position: Position, begins: Position) -> Failure {
    let what = format!(
        "{}: byte {position} is inside of the record that begins at {begins}, in quotes; name the byte at which a record \
         begins",
        part.id().lane
    );
    SourceError::Gap { what }.into()
}
