//! `hapax trace`: the story of one input or one key, told from the books, the target and, if asked, the source.

mod asked;
mod decide;
mod search;
mod story;
mod what;

use std::sync::Arc;

use hapax_connect::file::{FileFormat, HeaderFrom};
use hapax_engine::batch::{Batch, Inputs, Operation};
use hapax_engine::books::StoredDelivery;
use hapax_engine::decode::csv::Format;
use hapax_engine::letters::{LetterChoice, LetterStore as _, StoredLetter};
use hapax_engine::rows::{ByHash, RowChoice, RowReader as _};
use hapax_engine::source::{Source as _, StartAt};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyHash};
use hapax_model::letter::LetterBytes;
use hapax_model::position::{Bookmark, Incarnation, Position};
use serde_json::json;

use self::asked::{Asked, Way, asked};
use self::search::{Found, Wanted};
use self::story::{Row, Sighting, Story};
use self::what::What;
use super::super::{load, print_json};
use super::history::{Range, number_of, ranges};
use super::reader::{At, input_at};
use super::subject::{KeysWanted, StateSide, Subject, subjects};
use super::unclear;
use crate::assemble::{AnyBooks, why_not_looked_at};
use crate::cli::{Shared, TraceArgs};
use crate::config::Source;
use crate::exit::Failure;

/// How many letters are read to find one by its key.
const LETTERS_READ: usize = 10_000;
/// How many inputs are read to find the one at a position.
const INPUTS_READ: u64 = 1_000_000;
/// How many letters are read at once.
const PAGE: usize = 500;
/// How many events of one key are told one by one; of the others only how many there are.
const SIGHTINGS: usize = 20;
/// How much of a list of files a note shows.
const SHOWN_NUMBERS: usize = 60;

/// Tells the story.
pub(crate) async fn trace(args: &TraceArgs, shared: &Shared) -> Result<u8, Failure> {
    let what = What::parse(&args.what)?;
    let mut loaded = load(shared)?;
    crate::assemble::find_files(&mut loaded.config).await;
    let chosen = subjects(&loaded.config, &args.choice)?;
    let state = StateSide::read(&loaded.config).await?;
    let mut tracers = Vec::new();
    for subject in &chosen {
        tracers.push(Tracer::open(subject, &state).await?);
    }
    let lacks: Vec<Option<String>> = tracers.iter().map(|tracer| tracer.lacks(&what)).collect();
    if let Some(Some(lacking)) = lacks.iter().all(Option::is_some).then(|| lacks[0].clone()) {
        return Err(unclear(lacking));
    }
    let mut stories = Vec::new();
    for (tracer, lacking) in tracers.into_iter().zip(lacks) {
        stories.push(match lacking {
            Some(lacking) => tracer.story("these fields".to_owned()).close_unknown(lacking),
            None => tracer.tell(&what, args).await?,
        });
    }
    if shared.json {
        print_json(&json!({"deliveries": stories.iter().map(Story::as_json).collect::<Vec<_>>()}));
    } else {
        stories.iter().for_each(|story| print!("{story}"));
    }
    Ok(0)
}

/// A file of a chain, as people tell it from others: `2 (inode 7)`.
fn named(file: &Incarnation) -> String {
    format!("{} ({})", file.number, file.text.split(',').next().unwrap_or_default())
}

/// An input, and which of its events is meant: the one with this key, else the first.
#[derive(Clone, Copy)]
struct Keyed<'a> {
    bytes: &'a [u8],
    wanted: Option<&'a Wanted>,
}

/// Everything that is known of one delivery before the question.
struct Tracer<'a> {
    subject: &'a Subject<'a>,
    books: Option<AnyBooks>,
    progress: Option<StoredDelivery>,
    ranges: Vec<Range>,
    worker: Option<String>,
    rows: Result<crate::assemble::AnyRows, Failure>,
}

impl<'a> Tracer<'a> {
    async fn open(subject: &'a Subject<'a>, state: &StateSide) -> Result<Self, Failure> {
        let mut books = subject.books().await?;
        let (progress, log) = match &mut books {
            Some(books) => (subject.progress(books).await?, subject.log(books).await?),
            None => (None, Vec::new()),
        };
        let worker = state.lease(&subject.id).map(|lease| lease.holder.clone());
        Ok(Self { subject, books, progress, ranges: ranges(log), worker, rows: subject.rows().await })
    }

    async fn tell(mut self, what: &What, args: &TraceArgs) -> Result<Story, Failure> {
        match what {
            What::Position(position) => self.tell_position(*position, args.file).await,
            What::Key(key) => self.tell_key(Wanted::of_hash(*key), Vec::new(), args).await,
            What::Fields(event) => {
                let events = asked(self.subject, event, &self.key_fields());
                let unique = self.subject.part.workflow.delivery.deduplication.unique;
                let keys = events
                    .iter()
                    .rev()
                    .map(|event| Wanted::of_fields(&self.events_of(event, KeysWanted::Shown), unique));
                let wanted = keys.reduce(|other, first| first.or(other)).expect("it is at least one event");
                self.tell_key(wanted, events, args).await
            }
        }
    }

    /// What a person asked about, as a batch.
    fn events_of(&self, asked: &Asked, keys: KeysWanted) -> Batch {
        let push = |inputs: &mut Inputs| inputs.push(Position::default(), &asked.bytes);
        self.batch_by(asked.way, &asked.format, push, None, keys)
    }

    /// The fields that the key is made of, if it is made of fields.
    fn key_fields(&self) -> Vec<FieldPath> {
        let strategy = self.subject.strategy();
        let (DedupStrategy::ContentFields { fields, .. } | DedupStrategy::Composite { fields }) = strategy else {
            return Vec::new();
        };
        fields
    }

    /// Which fields are missing, where those that were asked for are only a part of the key.
    fn lacks(&self, what: &What) -> Option<String> {
        let What::Fields(event) = what else { return None };
        let fields = self.key_fields();
        let missing: Vec<String> =
            fields.iter().filter(|field| !what::has(event, field)).map(ToString::to_string).collect();
        let makes_a_key = |event: &Asked| !self.events_of(event, KeysWanted::Shown).is_empty();
        if missing.is_empty() || asked(self.subject, event, &fields).iter().any(makes_a_key) {
            return None;
        }
        let key: Vec<String> = fields.iter().map(ToString::to_string).collect();
        let (id, missing, key) = (&self.subject.id, missing.join(", "), key.join(", "));
        Some(format!(
            "these fields are a part of a key only, and name nothing: {missing} missing; the key of {id} is {key}"
        ))
    }

    /// The file of the lane that a position is meant in: the one with this number, else the one that is read now.
    fn file(&self, number: Option<u32>) -> Result<Option<Incarnation>, Failure> {
        let present = self.progress.as_ref().map(|stored| &stored.progress.bookmark.incarnation);
        let Some(number) = number else { return Ok(present.cloned()) };
        let known = || present.into_iter().chain(self.ranges.iter().rev().flat_map(Range::incarnations));
        if let Some(file) = known().find(|file| file.number == number) {
            return Ok(Some(file.clone()));
        }
        let mut numbers: Vec<u32> = known().map(|file| file.number).collect();
        numbers.sort_unstable();
        let reach = match (numbers.first(), numbers.last()) {
            (Some(first), Some(last)) => format!("files {first} to {last}"),
            (None, _) | (_, None) => "no file yet".to_owned(),
        };
        Err(unclear(format!("{} has no file {number}: the log knows {reach}", self.subject.id)))
    }

    /// The numbers of other files of the lane that an epoch read at this position, the newest first.
    fn other_files(&self, position: Position, file: &Incarnation) -> Vec<String> {
        let holding = self.ranges.iter().rev().filter(|range| range.holds(position, None));
        let mut numbers: Vec<u32> = holding.filter_map(|range| Some(range.from.as_ref()?.incarnation.number)).collect();
        numbers.dedup();
        numbers.retain(|number| *number != file.number);
        numbers.iter().map(ToString::to_string).collect()
    }

    async fn tell_position(&mut self, position: Position, number: Option<u32>) -> Result<Story, Failure> {
        let file = self.file(number)?;
        let mut sighting = self.sight(position, file.as_ref()).await?;
        let of = file.as_ref().filter(|file| self.is_chain(file)).map(|file| format!(" of file {}", named(file)));
        let mut story = self.story(format!("position {position}{}", of.unwrap_or_default()));
        if let (Some(file), None) = (&file, number) {
            let others = self.other_files(position, file);
            if let Some(newest) = others.first() {
                let files = super::short(&others.join(", "), SHOWN_NUMBERS);
                story.notes.push(format!("other files of this lane have a position {position} too: {files}; --file {newest} asks for that one"));
            }
        }
        let from = self.before(&sighting).await;
        if let Some(letter) = sighting.letters.first() {
            let (LetterBytes::Whole(bytes) | LetterBytes::Cut { head: bytes, .. }) = &letter.bytes;
            sighting.input = Some(bytes.clone());
        } else if let Some(from) = &from {
            let source = self.subject.source_behind(self.progress.as_ref());
            match input_at(source, from, position, INPUTS_READ).await {
                Ok(At::Input(inputs)) => {
                    let begins = inputs.position(0);
                    if begins != position {
                        story.notes.push(format!("position {position} is inside the input that begins at {begins}"));
                        sighting = self.sight(begins, file.as_ref()).await?;
                    }
                    sighting.input = Some(inputs.standing_alone(0));
                }
                Ok(At::Before(first)) if self.has_header() => {
                    story.notes.push(format!("the first record begins at {first}"));
                    story.row = Row::Unasked("a header is no event".into());
                    sighting.is_header = true;
                }
                Ok(At::Before(_) | At::Nothing) if sighting.epochs.is_empty() => sighting.absent = true,
                Ok(At::Before(_) | At::Nothing) => {}
                Err(why) => story.notes.push(format!("the input cannot be read again: {why}")),
            }
        }
        if let Some(bytes) = sighting.input.clone() {
            let (position, incarnation) = (sighting.position, from.map(|from| from.incarnation));
            let push = |inputs: &mut Inputs| inputs.push(position, &bytes);
            let keyed = self.batch_of(push, incarnation.as_ref(), KeysWanted::Shown);
            story.keys = search::keys_of(&keyed, self.subject);
            let input = Keyed { bytes: &bytes, wanted: None };
            story.row = self.row_of(input, position, incarnation.as_ref()).await;
        }
        sighting.header = sighting.input.as_deref().map_or(0, |input| self.header_length(input));
        let operation = self.operation_of(sighting.input.as_deref());
        sighting.decide(self.verdict_facts(), Some(&story.row), operation);
        story.sightings.push(sighting);
        Ok(story.close())
    }

    /// Whether files begin with a record that names the fields.
    fn has_header(&self) -> bool {
        matches!(self.subject.part.source, Source::File(file)
            if matches!(&file.format, FileFormat::Csv(csv) if csv.header == HeaderFrom::File))
    }

    /// How much of an input as it is kept is its header.
    fn header_length(&self, input: &[u8]) -> usize {
        match self.subject.part.kept_format() {
            Format::Csv(csv) => csv.header_length(input),
            Format::Json => 0,
        }
    }

    /// The nearest place before a sighting at which an input surely begins.
    async fn before(&self, sighting: &Sighting) -> Option<Bookmark> {
        if let Some(range) = sighting.epochs.first() {
            return range.from.clone();
        }
        match &self.progress {
            Some(stored) => {
                let (at, wanted) = (&stored.progress.bookmark, sighting.incarnation.as_ref());
                let same_file = wanted.is_none_or(|wanted| wanted.number == at.incarnation.number);
                (same_file && at.position <= sighting.position).then(|| at.clone())
            }
            None => self.subject.unpaced_source().start(StartAt::Earliest).await.ok(),
        }
    }

    /// What the books know of one position.
    async fn sight(&mut self, position: Position, incarnation: Option<&Incarnation>) -> Result<Sighting, Failure> {
        let epochs = self.ranges.iter().rev().filter(|range| range.holds(position, incarnation)).cloned().collect();
        let choice = LetterChoice { position: Some(position), ..self.letter_choice() };
        let letters = match &mut self.books {
            Some(books) => books.list(&choice, 0, PAGE).await?,
            None => Vec::new(),
        };
        let same =
            |letter: &StoredLetter| incarnation.is_none_or(|wanted| number_of(&letter.incarnation) == wanted.number);
        let letters = letters.into_iter().rev().filter(same).collect();
        let mut sighting = Sighting::at(position, incarnation.cloned());
        (sighting.epochs, sighting.letters) = (epochs, letters);
        Ok(sighting)
    }

    fn letter_choice(&self) -> LetterChoice {
        let id = &self.subject.id;
        LetterChoice {
            workflow: Some(id.workflow.clone()),
            sink: Some(id.sink.clone()),
            lane: Some(id.lane.clone()),
            ..LetterChoice::default()
        }
    }

    async fn tell_key(&mut self, wanted: Wanted, events: Vec<Asked>, args: &TraceArgs) -> Result<Story, Failure> {
        let mut story = self.story(wanted.to_string());
        let mut found = self.letters_with(&wanted).await?;
        if args.search {
            let from = args.from.map(|position| self.search_from(position));
            let source = self.subject.source_behind(self.progress.as_ref());
            let searched =
                search::search(self.subject, source, &self.ranges, &wanted, from.as_ref(), args.limit).await?;
            story.notes.push(searched.summary());
            for place in searched.found {
                if found.iter().all(|known: &Found| known.at.position != place.at.position) {
                    found.push(place);
                }
            }
        }
        found.sort_by_key(|place| (place.at.incarnation.number, place.at.position));
        story.events = args.search.then_some(found.len());
        let last_bytes = found.last().map(|place| place.bytes.clone());
        story.row = match (last_bytes, wanted.hash()) {
            _ if !events.is_empty() => self.row_of_fields(&events).await,
            (Some(bytes), _) => {
                let input = Keyed { bytes: &bytes, wanted: Some(&wanted) };
                self.row_of(input, Position::default(), None).await
            }
            (None, Some(key)) => self.row_of_hash(key).await,
            (None, None) => Row::Unasked("neither the key nor its fields name a row".into()),
        };
        story.keys = wanted.keys();
        for (nth, place) in found.iter().rev().take(SIGHTINGS).enumerate() {
            let mut sighting = self.sight(place.at.position, Some(&place.at.incarnation)).await?;
            (sighting.input, sighting.header) = (Some(place.bytes.clone()), self.header_length(&place.bytes));
            let operation = self.operation_of(sighting.input.as_deref());
            sighting.decide(self.verdict_facts(), Some(&story.row).filter(|_| nth == 0), operation);
            story.sightings.insert(0, sighting);
        }
        Ok(story.close())
    }

    /// The place where a search that a person bounded begins.
    fn search_from(&self, position: Position) -> Bookmark {
        let range = self.ranges.iter().rev().find(|range| range.holds(position, None));
        let incarnation = range.and_then(|range| range.from.as_ref()).map(|from| from.incarnation.clone());
        let present = || self.progress.as_ref().map(|stored| stored.progress.bookmark.incarnation.clone());
        let incarnation = incarnation.or_else(present).unwrap_or_else(|| Incarnation::new(1, ""));
        Bookmark::new(incarnation, position)
    }

    /// Dead letters whose input has the key.
    async fn letters_with(&mut self, wanted: &Wanted) -> Result<Vec<Found>, Failure> {
        let choice = self.letter_choice();
        let Some(books) = &mut self.books else { return Ok(Vec::new()) };
        let (mut found, mut after, mut read) = (Vec::new(), 0, 0);
        for key in wanted.hashes() {
            let named = LetterChoice { event_key: Some(key.to_string()), ..choice.clone() };
            found.extend(books.list(&named, 0, PAGE).await?.iter().map(Found::of_letter));
        }
        let mut lens = search::Lens::new(self.subject);
        while read < LETTERS_READ {
            let page = books.list(&choice, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            (after, read) = (last.id, read + page.len());
            let matching = page.iter().map(Found::of_letter).filter(|place| lens.has(place, wanted));
            let new: Vec<Found> = matching.filter(|place| found.iter().all(|known| known.at != place.at)).collect();
            found.extend(new);
        }
        Ok(found)
    }

    /// The row of an input, or why it cannot be told.
    async fn row_of(&mut self, input: Keyed<'_>, position: Position, incarnation: Option<&Incarnation>) -> Row {
        let batch = |keys| self.batch_of(|inputs| inputs.push(position, input.bytes), incarnation, keys);
        let nth = input.wanted.and_then(|wanted| wanted.place_in(&batch(KeysWanted::Shown)));
        // Without its key, the table's own key columns may still find it.
        let delivered = Some(batch(KeysWanted::AsDelivered)).filter(|batch| !batch.is_empty());
        let batch = delivered.unwrap_or_else(|| batch(KeysWanted::Nothing));
        self.row_in(batch, nth.unwrap_or_default()).await
    }

    /// The row that has these fields, however they are read.
    async fn row_of_fields(&mut self, events: &[Asked]) -> Row {
        let mut row = Row::Unasked("the input is no event".into());
        for event in events {
            let delivered = Some(self.events_of(event, KeysWanted::AsDelivered)).filter(|batch| !batch.is_empty());
            let batch = delivered.unwrap_or_else(|| self.events_of(event, KeysWanted::Nothing));
            row = self.row_in(batch, 0).await;
            if matches!(row, Row::Found(_)) {
                break;
            }
        }
        row
    }

    async fn row_in(&mut self, batch: Batch, nth: usize) -> Row {
        let rows = match &mut self.rows {
            Ok(rows) => rows,
            Err(failure) => return Row::Unasked(format!("{}: {failure}", why_not_looked_at(failure))),
        };
        if batch.is_empty() {
            return Row::Unasked("the input is no event".into());
        }
        if rows.shape().key.is_empty() {
            return Row::Unasked(format!(
                "onConflict is {}: a row of its own cannot be told from others",
                rows.shape().mode.name()
            ));
        }
        let nth = nth.min(batch.len() - 1);
        Row::of(rows.find(RowChoice::Event(Arc::new(batch), nth)).await)
    }

    async fn row_of_hash(&mut self, key: KeyHash) -> Row {
        match &mut self.rows {
            Err(failure) => Row::Unasked(format!("{}: {failure}", why_not_looked_at(failure))),
            Ok(rows) if rows.shape().by_hash == ByHash::No => {
                Row::Unasked("no column holds the key's hash; name the key fields, or say --search".into())
            }
            Ok(rows) => Row::of(rows.find(RowChoice::Hash(key)).await),
        }
    }

    /// What an input asks of its row; nothing, if the workflow's program leaves it out.
    fn operation_of(&self, input: Option<&[u8]>) -> Option<Operation> {
        let Some(bytes) = input else { return Some(Operation::Upsert) };
        let batch = self.batch_of(|inputs| inputs.push(Position::default(), bytes), None, KeysWanted::Nothing);
        let first = batch.events().next().map_or(Operation::Upsert, |event| event.operation());
        (batch.filtered() == 0).then_some(first)
    }

    fn batch_of(&self, push: impl FnOnce(&mut Inputs), incarnation: Option<&Incarnation>, keys: KeysWanted) -> Batch {
        self.batch_by(Way::Whole, &self.subject.part.kept_format(), push, incarnation, keys)
    }

    fn batch_by(
        &self,
        way: Way,
        format: &Format,
        push: impl FnOnce(&mut Inputs),
        incarnation: Option<&Incarnation>,
        keys: KeysWanted,
    ) -> Batch {
        let shape = self.rows.as_ref().ok().map(|rows| rows.shape());
        let mut pipeline = match way {
            Way::Whole => self.subject.pipeline(shape, keys),
            Way::BehindTransform => self.subject.pipeline_behind_transform(shape, keys),
        };
        let mut batch = pipeline.batch();
        batch.inputs.set_format(format);
        push(&mut batch.inputs);
        let unknown = Incarnation::new(1, "");
        pipeline.process(&mut batch, 0, Epoch(0), incarnation.unwrap_or(&unknown));
        batch
    }

    /// Whether the lane has had more than this file.
    fn is_chain(&self, file: &Incarnation) -> bool {
        file.number > 1 || self.ranges.iter().flat_map(Range::incarnations).any(|other| other.number != file.number)
    }

    fn story(&self, asked: String) -> Story {
        Story::new(&self.subject.id, asked, self.progress.clone(), self.worker.clone(), self.ranges.first())
    }

    /// The log is whole if its sum is the ledger's: epochs of several commits are one row where progress is kept apart.
    fn reach(&self) -> decide::Log {
        let sum: u64 = self.ranges.iter().map(|range| range.logged.counts.read).sum();
        let whole = self.progress.as_ref().is_some_and(|stored| stored.progress.totals.read == sum);
        if whole { decide::Log::Whole } else { decide::Log::Pruned }
    }

    fn verdict_facts(&self) -> decide::Facts<'_> {
        decide::Facts {
            progress: self.progress.as_ref().map(|stored| &stored.progress),
            worker: self.worker.as_deref(),
            first: self.ranges.first(),
            log: self.reach(),
            place: self.subject.progress_place(),
        }
    }
}
