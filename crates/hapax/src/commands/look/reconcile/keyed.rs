//! A table with a key: the source is read again over the logged range, and every key is asked for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hapax_engine::batch::{Batch, Inputs};
use hapax_engine::books::{LoggedEpoch, StoredDelivery};
use hapax_engine::letters::{LetterChoice, LetterStates, LetterStore as _, StoredLetter};
use hapax_engine::pipeline::Pipeline;
use hapax_engine::rows::{RowReader as _, RowState};
use hapax_engine::source::Follow;
use hapax_model::contract::{Contract, TARGET};
use hapax_model::epoch::Epoch;
use hapax_model::mode::ProgressPlace;
use hapax_model::position::{Bookmark, Position};

use super::super::UNREADABLE;
use super::super::history::{Range, number_of, ranges};
use super::super::reader::{Next, Reader, holds, unreadable};
use super::super::subject::{KeysWanted, Subject};
use super::chain::Check;
use super::doubts::{Difference, Doubts, TooMany, hash_of, misses};
use crate::assemble::{AnyBooks, AnyRows, AnySource};
use crate::exit::Failure;

/// How many keys the target is asked for at once.
const ASKED_AT_ONCE: usize = 1000;
/// How many keys are told apart to count them: about 20 MiB.
const KEYS_COUNTED: usize = 1_800_000;
/// After how many inputs the progress bar moves.
const SHOWN_EVERY: usize = 64;
/// How many letters are read at once.
const PAGE: usize = 500;

/// What came of it.
pub(super) struct Compared {
    pub(super) check: Check,
    pub(super) difference: Option<Difference>,
}

impl Compared {
    fn not(why: impl Into<String>) -> Self {
        Self { check: Check::not_compared("target", why), difference: None }
    }
}

/// Compares the newest epochs that hold at least `inputs` inputs.
pub(super) async fn compare(
    subject: &Subject<'_>,
    books: &mut AnyBooks,
    rows: &mut AnyRows,
    inputs: u64,
    bar: impl Fn(u64) -> indicatif::ProgressBar,
) -> Result<Compared, Failure> {
    let Some(stored) = subject.progress(books).await? else { return Ok(Compared::not("nothing was ever delivered")) };
    if let Some(why) = changed(subject, rows, &stored.progress.contract) {
        return Ok(Compared::not(why));
    }
    let log = ranges(subject.log(books).await?);
    let (chosen, passed_over) = match readable(subject.source_behind(Some(&stored)), sample(&log, inputs)).await {
        Ok(chosen) => chosen,
        Err(why) => return Ok(Compared::not(why)),
    };
    let total = chosen.iter().map(|range| range.logged.counts.read).sum();
    let bar = bar(total);
    let (letters, keys, in_doubt) = (HashMap::new(), KeyCount::default(), HashSet::new());
    let mut walk = Walk { subject, stored, books, rows, letters, bar, read: 0, keys, in_doubt, otherwise: 0 };
    walk.load_letters().await?;
    let found = match walk.all_parts(chosen).await {
        // A range that the log names and the source cannot give; the chain says what is wrong with the log.
        Err(failure) if failure.code == Some(UNREADABLE) => return Ok(Compared::not(failure.message)),
        found => found?,
    };
    walk.bar.finish_and_clear();
    let reach = match chosen.first() {
        Some(first) => format!("{} of {} inputs from epoch {} on", walk.keys, walk.read, first.logged.epoch),
        None => "no inputs".to_owned(),
    };
    let mut aside = match passed_over {
        0 => String::new(),
        epochs => format!("; {epochs} older epochs were passed over, the source no longer holds their inputs"),
    };
    if walk.otherwise > 0 {
        aside += &format!(
            "; {} inputs were not compared: the workflow, as it is now, makes dead letters of them, and it did not when they were \
             delivered",
            walk.otherwise
        );
    }
    if !walk.in_doubt.is_empty() {
        aside += &format!(
            "; {} of the keys could not be judged: their last event is a letter in doubt, which may have been delivered, and both \
             were accepted",
            walk.in_doubt.len()
        );
    }
    let check = match &found {
        None => Check::agrees("target", format!("{reach}, all as they should be{aside}")),
        Some(difference) => Check::differs("target", format!("{difference}{aside}")),
    };
    Ok(Compared { check, difference: found })
}

/// Why keys derived now would not be those of the delivery, if so.
fn changed(subject: &Subject<'_>, rows: &AnyRows, was: &Contract) -> Option<String> {
    if subject.strategy().contains_epoch() && subject.progress_place() == ProgressPlace::State {
        return Some("its keys contain the epoch, and its log puts several epochs into one row".into());
    }
    let differences = was.differences(&subject.contract(rows.shape().mode));
    let difference = differences.iter().find(|difference| difference.name != TARGET)?;
    Some(format!("the configuration is not the one that delivered it: {difference}"))
}

/// The newest epochs that hold at least `inputs` inputs.
fn sample(log: &[Range], inputs: u64) -> &[Range] {
    let mut held = 0_u64;
    let begin = log.iter().rposition(|range| {
        held = held.saturating_add(range.logged.counts.read);
        held >= inputs
    });
    &log[begin.unwrap_or(0)..]
}

/// The newest of `log`, as far back as the source holds every file of them, and how many there are before.
async fn readable(mut source: AnySource, log: &[Range]) -> Result<(&[Range], usize), String> {
    let mut why = "there is no epoch in the log".to_owned();
    let mut begin: Option<(usize, u32)> = None;
    for (at, range) in log.iter().enumerate() {
        let Some(from) = &range.from else {
            "it is not known where the first epoch of the log began".clone_into(&mut why);
            continue;
        };
        let file = from.incarnation.number;
        // A file of the chain may be gone, though an older one is there.
        begin = match begin {
            Some((first, held)) if held == file => Some((first, held)),
            Some(_) | None => match holds(&mut source, from).await {
                Ok(()) => Some((begin.map_or(at, |(first, _)| first), file)),
                Err(gone) => {
                    why = format!("the source no longer holds its inputs: {gone}");
                    None
                }
            },
        };
    }
    begin.map(|(first, _)| (&log[first..], first)).ok_or(why)
}

/// What a walk is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To ask the target for every key.
    Ask,
    /// To drop doubts about keys that newer epochs touched.
    SettleTouched,
}

/// One walk over the logged inputs.
struct Walk<'a> {
    subject: &'a Subject<'a>,
    /// Progress when the walk began.
    stored: StoredDelivery,
    books: &'a mut AnyBooks,
    rows: &'a mut AnyRows,
    /// Inputs that became letters and were not replayed: incarnation and position.
    letters: HashMap<(u32, Position), Fate>,
    bar: indicatif::ProgressBar,
    read: u64,
    keys: KeyCount,
    /// Keys of which only a letter in doubt knows better.
    in_doubt: HashSet<u64>,
    /// Inputs that were delivered, and of which the configuration as it is now makes dead letters.
    otherwise: u64,
}

/// What is known of an input that became a letter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It was not delivered.
    Dead,
    /// It may have been.
    InDoubt,
}

/// How many keys there are, each once, as far as memory reaches.
#[derive(Default)]
struct KeyCount(HashSet<u64>);

impl KeyCount {
    fn add(&mut self, key: &[u8]) {
        if self.0.len() <= KEYS_COUNTED {
            self.0.insert(hash_of(key));
        }
    }
}

impl std::fmt::Display for KeyCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let more = if self.0.len() > KEYS_COUNTED { "more than " } else { "" };
        write!(f, "{more}{} keys", self.0.len().min(KEYS_COUNTED))
    }
}

/// The last events of a key in one epoch: one that was delivered, and those after it that may have been.
#[derive(Default)]
struct LastWords {
    certain: Option<usize>,
    in_doubt: Vec<usize>,
}

impl LastWords {
    /// One of them: all have the same row.
    fn any(&self) -> usize {
        self.certain.or(self.in_doubt.first().copied()).unwrap_or_default()
    }
}

impl Walk<'_> {
    async fn load_letters(&mut self) -> Result<(), Failure> {
        let choice = LetterChoice { states: LetterStates::Any, ..self.letter_choice() };
        // With progress beside the rows, the target has said that they did not land.
        let (apart, mut after) = (self.subject.progress_place() == ProgressPlace::State, 0);
        loop {
            let page = self.books.list(&choice, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id;
            for letter in page.iter().filter(|letter| letter.state != "replayed") {
                let fate = if apart && letter.is_in_doubt() { Fate::InDoubt } else { Fate::Dead };
                self.letters.insert((number_of(&letter.incarnation), letter.position), fate);
            }
        }
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

    /// Walks over all inputs of `chosen`, once, or once for each part of the keys if there are too many doubts for one
    /// walk. The first difference; of several parts, that of the first part that has one.
    async fn all_parts(&mut self, chosen: &[Range]) -> Result<Option<Difference>, Failure> {
        let (mut part, mut parts) = (0, 1);
        while part < parts {
            match self.part(chosen, Doubts::new(part, parts)).await? {
                Ok(None) => part += 1,
                Ok(Some(difference)) => return Ok(Some(difference)),
                Err(TooMany) => (part, parts, self.otherwise) = (0, parts * 4, 0),
            }
        }
        Ok(None)
    }

    /// Walks over all inputs of `chosen`, looking at one part of the keys; the first difference that stays.
    ///
    /// A worker may go on meanwhile. What it commits before a doubt is confirmed is in the log that is read after that:
    /// a key that it touched is its affair, and a doubt about any other is a difference.
    async fn part(
        &mut self,
        chosen: &[Range],
        mut doubts: Doubts,
    ) -> Result<Result<Option<Difference>, TooMany>, Failure> {
        self.read = 0;
        self.bar.set_position(0);
        let mut pipeline = self.subject.pipeline(Some(self.rows.shape()), KeysWanted::AsDelivered);
        let Some(mut last) = chosen.last().map(|range| range.logged.epoch) else { return Ok(Ok(None)) };
        match self.walk(&mut pipeline, chosen, &mut doubts, Purpose::Ask).await? {
            Err(TooMany) => return Ok(Err(TooMany)),
            Ok(Some(difference)) => return Ok(Ok(Some(difference))),
            Ok(None) => {}
        }
        loop {
            let Some((key, difference)) = self.confirm(&mut pipeline, &mut doubts).await? else { return Ok(Ok(None)) };
            let mut newer = ranges(self.subject.log(self.books).await?);
            newer.retain(|range| range.logged.epoch > last);
            last = newer.last().map_or(last, |range| range.logged.epoch);
            match self.walk(&mut pipeline, &newer, &mut doubts, Purpose::SettleTouched).await? {
                Err(TooMany) => return Ok(Err(TooMany)),
                Ok(Some(miscounted)) => return Ok(Ok(Some(miscounted))),
                Ok(None) if doubts.has(&key) => return Ok(Ok(Some(difference))),
                Ok(None) => {}
            }
        }
    }

    /// Reads the inputs of each epoch, and does with their keys what it is for.
    async fn walk(
        &mut self,
        pipeline: &mut Pipeline,
        log: &[Range],
        doubts: &mut Doubts,
        purpose: Purpose,
    ) -> Result<Result<Option<Difference>, TooMany>, Failure> {
        let mut reader: Option<(Reader<AnySource>, Bookmark)> = None;
        for range in log {
            let Some(from) = &range.from else { continue };
            let mut reading = match reader.take() {
                Some((reading, end)) if end == *from => reading,
                Some(_) | None => {
                    let source = self.subject.source_behind(Some(&self.stored));
                    let opened = Reader::open(source, from, Follow::No).await;
                    opened.map_err(|error| unreadable(&error))?
                }
            };
            let mut batch = pipeline.batch();
            let epoch = range.logged.epoch;
            while let Next::Input(at) = reading.peek().await.map_err(|error| unreadable(&error))? {
                if range.ends_before(&at) || at.incarnation.number != from.incarnation.number {
                    break;
                }
                let first = batch.inputs.len();
                reading.take(&mut batch.inputs);
                // As the reader knows the file: what the log says of it may be older than its first record.
                pipeline.process(&mut batch, first, epoch, &at.incarnation);
                if purpose == Purpose::Ask && first.is_multiple_of(SHOWN_EVERY) {
                    self.bar.set_position(self.read + first as u64);
                }
            }
            if let Some(short) = self.miscounted(range, &batch) {
                return Ok(Ok(Some(short)));
            }
            reader = Some((reading, range.logged.to.clone()));
            if purpose == Purpose::SettleTouched {
                self.rows.row_keys(&batch).into_iter().flatten().for_each(|key| doubts.settle(&key));
                continue;
            }
            self.read += batch.inputs.len() as u64;
            self.bar.set_position(self.read);
            if self.ask(Arc::new(batch), from, &range.logged, doubts).await? == Err(TooMany) {
                return Ok(Err(TooMany));
            }
            // Where nothing is ever removed, no later event can settle it.
            if !self.subject.deletes()
                && !doubts.is_empty()
                && let Some((_, difference)) = self.confirm(pipeline, doubts).await?
            {
                return Ok(Ok(Some(difference)));
            }
        }
        Ok(Ok(None))
    }

    /// The source must give as many inputs as the epoch read.
    fn miscounted(&self, range: &Range, batch: &Batch) -> Option<Difference> {
        let (logged, found) = (range.logged.counts.read, batch.inputs.len() as u64);
        if logged == found || self.subject.progress_place() == ProgressPlace::State {
            return None;
        }
        Some(Difference {
            epoch: range.logged.epoch.0,
            at: range.from.clone()?,
            key: None,
            expected: format!("{logged} inputs up to position {}", range.logged.to.position),
            found: format!("{found} in the source"),
            input: Vec::new(),
        })
    }

    /// Asks for the last event of each key of one epoch.
    async fn ask(
        &mut self,
        batch: Arc<Batch>,
        from: &Bookmark,
        logged: &LoggedEpoch,
        doubts: &mut Doubts,
    ) -> Result<Result<(), TooMany>, Failure> {
        let (place, epoch) = (|position| Bookmark::new(from.incarnation.clone(), position), logged.epoch);
        // More than the epoch had: some are of inputs that it delivered, with a transform that was another one.
        let other_transform = batch.letters().len() as u64 > logged.counts.dead;
        for (_, letter) in batch.letters() {
            let key = letter_key(letter.position);
            if self.fate(from, letter.position).is_some() || !doubts.concerns(&key) {
                continue;
            }
            if other_transform {
                self.otherwise += 1;
                continue;
            }
            let (at, expected) = (place(letter.position), format!("a dead letter ({})", letter.cause.code));
            let input = batch.inputs.standing_alone(letter_input(&batch, letter.position));
            let doubt = Difference { epoch: epoch.0, at, key: None, expected, found: "none".into(), input };
            if doubts.raise(key, doubt).is_err() {
                return Ok(Err(TooMany));
            }
        }
        let last = self.last_words(&batch, from, doubts);
        for some in last.chunks(ASKED_AT_ONCE) {
            let events: Vec<usize> = some.iter().map(|(_, words)| words.any()).collect();
            let states = self.rows.states(Arc::clone(&batch), events).await?;
            for ((key, words), found) in some.iter().zip(states) {
                let misses = |event: usize| self.difference(&batch, event, found, &place, epoch);
                if words.in_doubt.iter().any(|event| misses(*event).is_none()) {
                    doubts.settle(key);
                    continue;
                }
                // If nothing is certain, what an earlier epoch asks for stands.
                match words.certain.map(misses) {
                    None => {}
                    Some(None) => doubts.settle(key),
                    Some(Some(doubt)) => {
                        let Ok(()) = doubts.raise(key.clone(), doubt) else { return Ok(Err(TooMany)) };
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    /// The last events of each key of one epoch.
    fn last_words(&mut self, batch: &Batch, from: &Bookmark, doubts: &Doubts) -> Vec<(Vec<u8>, LastWords)> {
        let mut last: HashMap<Vec<u8>, LastWords> = HashMap::new();
        for (event, key) in batch.events().zip(self.rows.row_keys(batch)) {
            let Some(key) = key.filter(|key| doubts.concerns(key)) else { continue };
            match self.fate(from, event.position()) {
                Some(Fate::Dead) => {}
                Some(Fate::InDoubt) => last.entry(key).or_default().in_doubt.push(event.index()),
                None => drop(last.insert(key, LastWords { certain: Some(event.index()), in_doubt: Vec::new() })),
            }
        }
        for (key, words) in &last {
            self.keys.add(key);
            match words.in_doubt.is_empty() {
                true => self.in_doubt.remove(&hash_of(key)),
                false => self.in_doubt.insert(hash_of(key)),
            };
        }
        last.into_iter().collect()
    }

    fn fate(&self, from: &Bookmark, position: Position) -> Option<Fate> {
        self.letters.get(&(from.incarnation.number, position)).copied()
    }

    fn difference(
        &self,
        batch: &Batch,
        event: usize,
        found: RowState,
        place: &impl Fn(Position) -> Bookmark,
        epoch: Epoch,
    ) -> Option<Difference> {
        let (shape, event) = (self.rows.shape(), batch.event(event));
        let (expected, found) = misses(shape.mode, shape.order, event.operation(), found)?;
        Some(Difference {
            epoch: epoch.0,
            at: place(event.position()),
            key: None,
            expected: expected.to_owned(),
            found: found.to_owned(),
            input: batch.inputs.standing_alone(event.input()),
        })
    }

    /// Names the key of the event that decides: where columns hold the key's fields, delivering it needs no hash.
    fn with_key(&self, difference: Difference) -> Difference {
        let mut pipeline = self.subject.pipeline(None, KeysWanted::Shown);
        let mut batch = pipeline.batch();
        batch.inputs.set_format(&self.subject.part.kept_format());
        batch.inputs.push(difference.at.position, &difference.input);
        pipeline.process(&mut batch, 0, Epoch(difference.epoch), &difference.at.incarnation);
        let key = batch.events().next().and_then(|event| event.entity_key().or(event.event_key()));
        Difference { key: key.map(|key| key.to_string()), ..difference }
    }

    /// Whether a letter is why its input has no row. One that was replayed has one, under the same key; only a key with the
    /// epoch in it depends on what it was replayed with.
    fn explains(&self, letter: &StoredLetter, doubt: &Difference) -> bool {
        number_of(&letter.incarnation) == doubt.at.incarnation.number
            && (letter.state != "replayed" || self.subject.strategy().contains_epoch())
    }

    /// The first doubt that stays when letters of every state and the target are asked once more, with its key.
    async fn confirm(
        &mut self,
        pipeline: &mut Pipeline,
        doubts: &mut Doubts,
    ) -> Result<Option<(Vec<u8>, Difference)>, Failure> {
        for (key, doubt) in doubts.in_order() {
            let choice = LetterChoice { position: Some(doubt.at.position), ..self.letter_choice() };
            let letters = self.books.list(&choice, 0, PAGE).await?;
            if letters.iter().any(|letter| self.explains(letter, &doubt)) {
                doubts.settle(&key);
                continue;
            }
            let mut batch = pipeline.batch();
            batch.inputs.set_format(&self.subject.part.kept_format());
            batch.inputs.push(doubt.at.position, &doubt.input);
            pipeline.process(&mut batch, 0, Epoch(doubt.epoch), &doubt.at.incarnation);
            if batch.is_empty() {
                // Its letter was replayed when the workflow still made an event of it.
                if letters.iter().any(|letter| number_of(&letter.incarnation) == doubt.at.incarnation.number) {
                    self.otherwise += 1;
                    doubts.settle(&key);
                    continue;
                }
                return Ok(Some((key, self.with_key(doubt))));
            }
            let batch = Arc::new(batch);
            let found = self.rows.states(Arc::clone(&batch), vec![0]).await?;
            let place = |_| doubt.at.clone();
            let still = found.first().and_then(|found| self.difference(&batch, 0, *found, &place, Epoch(doubt.epoch)));
            match still {
                Some(difference) => return Ok(Some((key, self.with_key(difference)))),
                None => doubts.settle(&key),
            }
        }
        Ok(None)
    }
}

/// A key of its own for an input that has none.
fn letter_key(position: Position) -> Vec<u8> {
    let mut key = b"letter ".to_vec();
    key.extend(position.offset.to_be_bytes());
    key.extend(position.index.to_be_bytes());
    key
}

fn letter_input(batch: &Batch, position: Position) -> usize {
    let inputs: &Inputs = &batch.inputs;
    (0..inputs.len()).find(|input| inputs.position(*input) == position).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::super::history::tests::logged;
    use super::*;

    /// Goal: a sample is the newest epochs, whole, and never fewer inputs than asked for while there are any.
    #[test]
    fn a_sample_is_the_newest_epochs() {
        let log = ranges(vec![logged(1, 0, 1, 10), logged(2, 10, 1, 20), logged(3, 20, 1, 30)]);
        let first = |inputs| sample(&log, inputs).first().map(|range| range.logged.epoch.0);
        assert_eq!([1, 10, 11, 30, u64::MAX].map(first), [Some(3), Some(3), Some(2), Some(1), Some(1)]);
        assert!(sample(&[], 5).is_empty());
    }
}
