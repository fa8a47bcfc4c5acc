//! What the first events of a source look like, for whoever proposes a table, a mapping, or judges one.
//!
//! Reads: at most [`MOST`] inputs of a source, on a cursor of its own. Writes: nothing. Not here: the table.

mod filled;
mod maps;
mod sort;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use hapax_connect::file::many::{Born, FoundStem};
use hapax_connect::file::{Crowd, many};
use hapax_connect::table::described::{Numbers, SampledField, Sort};
use hapax_engine::batch::{Batch, FieldBytes, Inputs, OutputEvent};
use hapax_engine::bookkeeping;
use hapax_engine::decode::UnknownFields;
use hapax_engine::decode::csv::{Format, read_record};
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::rows::RowReader as _;
use hapax_engine::sink::SinkError;
use hapax_engine::source::{Follow, Polled, Room, Source, SourceError, StartAt};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::letter::{Cause, CauseCount, count_causes};
use hapax_model::mode::ConflictMode;
use hapax_model::position::{Bookmark, Incarnation};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use self::filled::{Filled, filled};
use self::sort::{sort_of, sort_of_untyped};
use crate::assemble::{AnyRows, Live, Part, plan};
use crate::config;
use crate::config::checked::{FileLane, GenerateSource};

/// How many inputs are looked at.
pub(crate) const MOST: usize = 200;
/// Of how many files, if a pattern finds more.
const MOST_FILES: usize = 5;
/// How many of their bytes.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// How long a source that has nothing yet is left alone.
const PAUSE: Duration = Duration::from_millis(20);
/// How many causes of dead letters are told apart.
const MOST_CAUSES: usize = 3;
/// How much of an input that is no event is shown.
const SHOWN_CHARACTERS: usize = 80;
/// How many fields are told of.
const FIELDS_SHOWN: usize = 30;
/// How deep objects are looked into.
const DEPTH: usize = 3;

/// Names from the outside in, what the value is, and its text.
type FoundField = (Vec<String>, Sort, String);

/// What was seen of the source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    /// An object that is used as a map is one field.
    pub(crate) fields: Vec<Field>,
    /// What is inside such objects.
    pub(crate) inside_maps: Vec<FieldPath>,
    pub(crate) count: usize,
    /// In how many events each object was, by the names that lead to it.
    objects: BTreeMap<Vec<String>, usize>,
    /// Inputs that are no events.
    bad: usize,
    /// The first of them, and why it is none.
    first_bad: Option<(String, String)>,
}

/// One field.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) path: FieldPath,
    pub(crate) sort: Sort,
    /// Whether each event had its own value.
    pub(crate) unique: bool,
    seen: HashSet<String>,
    present: usize,
}

/// The first inputs of one file, or of several: each file has its own, with its own header.
pub(crate) type FirstInputs = Vec<Inputs>;

/// The first inputs of a source, at most so many.
pub(crate) async fn first_inputs(mut source: impl Source, most: usize) -> Result<Inputs, SourceError> {
    let start = source.start(StartAt::Earliest).await?;
    next_inputs(&mut source, &start, most).await
}

/// The next inputs after a bookmark, at most so many.
pub(crate) async fn next_inputs(source: &mut impl Source, from: &Bookmark, most: usize) -> Result<Inputs, SourceError> {
    source.assign(from, Follow::No).await?;
    let mut inputs = Inputs::default();
    while inputs.len() < most {
        let room = Room { events: most - inputs.len(), bytes: MOST_BYTES };
        match source.poll(&mut inputs, room).await? {
            Polled::End => break,
            Polled::Boundary => source.step().await?,
            Polled::Records => {}
            Polled::Idle => tokio::time::sleep(PAUSE).await,
        }
    }
    Ok(inputs)
}

/// Of the files of a pattern, those to look into, the newest first: it, the oldest, and some between.
pub(crate) fn files_to_look_into(mut found: Vec<FoundStem>) -> Vec<FoundStem> {
    let changed = |stem: &FoundStem| std::fs::metadata(&stem.path).and_then(|file| file.modified()).ok();
    found.sort_by_cached_key(|stem| (changed(stem), stem.path.clone()));
    let last = found.len().saturating_sub(1);
    let chosen: BTreeSet<usize> = (0..MOST_FILES).map(|n| n * last / (MOST_FILES - 1)).collect();
    let mut at = 0..;
    found.retain(|_| at.next().is_some_and(|at| chosen.contains(&at)));
    found.reverse();
    found
}

/// The first inputs of each of several sources, not more in all than of one; what some have not is left to those behind them.
pub(crate) async fn first_inputs_of_each(sources: Vec<impl Source>) -> Result<FirstInputs, SourceError> {
    let (mut all, mut left, mut waiting) = (Vec::new(), MOST, sources.len());
    for source in sources {
        let inputs = first_inputs(source, left.div_ceil(waiting)).await?;
        left -= inputs.len();
        waiting -= 1;
        all.push(inputs);
    }
    // The oldest events first, as a run reads them.
    all.reverse();
    Ok(all)
}

/// The first inputs of a part's source; none if it is a pattern that no file fits yet.
/// With the live table, a CSV header must have what it takes.
pub(crate) async fn first_inputs_of(part: &Part<'_>, live: Option<&Live>) -> Result<Option<FirstInputs>, SourceError> {
    let alone = |inputs: Inputs| Some(vec![inputs]);
    match part.source {
        config::Source::Generate(generate) => {
            let quick = without_rate(generate);
            first_inputs(Part { source: &quick, ..*part }.open_source_for(live), MOST).await.map(alone)
        }
        config::Source::File(file) => match &file.many {
            None => first_inputs(part.open_source_for(live), MOST).await.map(alone),
            Some(many) => {
                let found = many::find_stems(&file.written, &many.folder, file.rotation).stems;
                if found.is_empty() {
                    return Ok(None);
                }
                let open = |found: FoundStem| {
                    let (name, first_seen) = (found.lane.clone(), found.first(Born::Before, &file.format));
                    let lane = FileLane { name, path: found.path, first_seen, crowd: Crowd::default() };
                    Part { file: Some(&lane), ..*part }.open_source_for(live)
                };
                let sources = files_to_look_into(found).into_iter().map(open).collect();
                first_inputs_of_each(sources).await.map(Some)
            }
        },
    }
}

/// The same generator in no more time than it needs.
pub(crate) fn without_rate(generate: &GenerateSource) -> config::Source {
    config::Source::Generate(GenerateSource { rate: None, ..generate.clone() })
}

/// The events of a part that come of these inputs, with these fields, and the names of all others.
fn events_of(part: &Part<'_>, fields: &[FieldPath], inputs: &Inputs) -> (Batch, Vec<String>) {
    let keyer = Keyer::new(DedupStrategy::SourceOffset, Uniqueness::WithVersion, KeyNeed::Nothing);
    let origin = Origin { source: String::new(), lane: String::new() };
    let mut pipeline = part.with_transform(Pipeline::new(fields, keyer, None, UnknownFields::Counted, origin));
    let batch = processed(&mut pipeline, inputs);
    let others = pipeline.unknown().iter().filter(|(_, events)| *events > 0).map(|(name, _)| name.clone()).collect();
    (batch, others)
}

/// What a pipeline makes of the inputs.
fn processed(pipeline: &mut Pipeline, inputs: &Inputs) -> Batch {
    let mut batch = pipeline.batch();
    batch.inputs.set_format(inputs.format());
    for input in 0..inputs.len() {
        let (position, bytes) = (inputs.position(input), inputs.bytes(input));
        match inputs.oversized_length(input) {
            None => batch.inputs.push(position, bytes),
            // Nobody asks for the hash of what is not stored.
            Some(length) => batch.inputs.push_oversized(position, bytes, length, [0; 32]),
        }
    }
    pipeline.process(&mut batch, 0, Epoch(0), &Incarnation::new(1, ""));
    batch
}

/// Which of the first inputs would be dead letters, as far as that can be told without asking the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WouldDie {
    /// How many inputs were looked at.
    pub(crate) inputs: usize,
    /// How many of them would die.
    pub(crate) dead: usize,
    /// Of what: the first causes.
    pub(crate) causes: Vec<CauseCount>,
    /// How many died of others.
    pub(crate) of_other_causes: u64,
}

/// Takes inputs through a part's own pipeline, up to what its live table takes; writes nothing. Where the rows may not be
/// read, only what is no event at all is known.
pub(crate) async fn would_die(part: &Part<'_>, live: &Live, inputs: &[Inputs]) -> WouldDie {
    let (mut seen, mut died) = (0, Vec::new());
    for Judged { batch, misfits, .. } in judged_events(part, live, inputs).await {
        let mut dead: BTreeMap<usize, Cause> =
            batch.letters().iter().map(|(input, letter)| (*input, letter.cause.clone())).collect();
        for (event, cause) in misfits {
            dead.entry(batch.event(event).input()).or_insert(cause);
        }
        seen += batch.inputs.len();
        died.extend(dead.into_values());
    }
    let mut causes = count_causes(died.iter(), usize::MAX);
    let others = causes.split_off(causes.len().min(MOST_CAUSES));
    let of_other_causes = others.iter().map(|cause| cause.count).sum();
    WouldDie { inputs: seen, dead: died.len(), causes, of_other_causes }
}

/// Whether a run that reads these inputs next would stop because of those that would die.
pub(crate) async fn would_be_too_many(part: &Part<'_>, live: &Live, inputs: Inputs) -> Result<(), SinkError> {
    let rejects = plan::rejects(&part.workflow.delivery);
    for Judged { batch, misfits, keys } in judged_events(part, live, &[inputs]).await {
        bookkeeping::judge(&rejects, &batch, &misfits)?;
        refuse_collision(&batch, &keys, part.workflow.delivery.epoch.max_events)?;
    }
    Ok(())
}

/// Refuses two events of one key that differ, if a run may have them in one epoch, as the sink does.
fn refuse_collision(batch: &Batch, keys: &[Option<Vec<u8>>], events_of_epoch: u64) -> Result<(), SinkError> {
    let width = batch.layout().paths().len();
    let differ =
        |a: &OutputEvent<'_>, b: &OutputEvent<'_>| (0..width).any(|slot| a.field_bytes(slot) != b.field_bytes(slot));
    let mut last: HashMap<&[u8], OutputEvent<'_>> = HashMap::new();
    for (event, key) in batch.events().zip(keys) {
        if (event.index() as u64).is_multiple_of(events_of_epoch) {
            last.clear();
        }
        let Some(key) = key else { continue };
        if let Some(first) = last.insert(key, event).filter(|first| differ(first, &event)) {
            let key = event.event_key().map(|key| key.to_string()).unwrap_or_default();
            return Err(SinkError::DedupKeyCollision { first: first.position(), second: event.position(), key });
        }
    }
    Ok(())
}

/// The events that come of inputs, with the letters of those that are none.
struct Judged {
    batch: Batch,
    /// Events that the table would not take, and why.
    misfits: Vec<(usize, Cause)>,
    /// The key of each event, where two events of one key may not differ.
    keys: Vec<Option<Vec<u8>>>,
}

/// The events that come of inputs, file by file.
async fn judged_events(part: &Part<'_>, live: &Live, inputs: &[Inputs]) -> Vec<Judged> {
    let rows = AnyRows::of_part(part).await.ok();
    let fields = match &rows {
        Some(rows) => rows.shape().fields.clone(),
        None => live.fed.iter().map(|(_, path)| path.clone()).collect(),
    };
    let (table, delivery) = (part.table(), &part.workflow.delivery);
    let promised = live.mode() == ConflictMode::Ignore && delivery.deduplication.unique;
    let keyer = match promised {
        true => Keyer::new(plan::strategy(delivery), Uniqueness::FieldsAlone, KeyNeed::EntityAndEvent),
        false => plan::keyer(part.workflow, table, live.mode()),
    };
    let origin = Origin { source: String::new(), lane: String::new() };
    let pipeline = Pipeline::new(&fields, keyer, table.delete_when.clone(), plan::unknown_fields(table), origin);
    let mut pipeline = part.with_transform(pipeline);
    let judged = inputs.iter().map(|of_one_file| {
        let batch = processed(&mut pipeline, of_one_file);
        let misfits = rows.as_ref().map(|rows| rows.misfits(&batch)).unwrap_or_default();
        let keys = rows.as_ref().filter(|_| promised).map(|rows| rows.row_keys(&batch)).unwrap_or_default();
        Judged { batch, misfits, keys }
    });
    judged.collect()
}

/// The fields of a part's first events, as they come out of its program, for the table that is proposed to it. An object
/// none of whose fields is mapped goes into a column of its own name. Empty if nothing can be seen.
pub(crate) async fn sampled_fields(part: &Part<'_>, mapped: &[(String, FieldPath)]) -> Vec<SampledField> {
    let Ok(Some(inputs)) = first_inputs_of(part, None).await else { return Vec::new() };
    let sample = match &part.workflow.transform {
        None => Sample::of_inputs(&inputs),
        Some(_) => Sample::of_events(part, &inputs),
    };
    let is_mapped = |path: &FieldPath| mapped.iter().any(|(_, known)| known == path);
    let reaches_into = |name: &str| mapped.iter().any(|(_, known)| known.names().len() > 1 && known.names()[0] == name);
    let mut whole = BTreeSet::new();
    let mut fields = Vec::new();
    for Field { path, sort, .. } in &sample.fields {
        match path.names() {
            [_] => fields.push(SampledField { path: path.clone(), sort: *sort }),
            _ if is_mapped(path) => fields.push(SampledField { path: path.clone(), sort: *sort }),
            [first, ..] if !reaches_into(first) && whole.insert(first.clone()) => {
                fields.push(SampledField { path: FieldPath::of_name(first), sort: Sort::Json });
            }
            _ => {}
        }
    }
    fields
}

impl Sample {
    /// What inputs look like as they stand.
    pub(crate) fn of_inputs(inputs: &[Inputs]) -> Self {
        let mut sample = Self::default();
        for of_one_file in inputs {
            (0..of_one_file.len()).for_each(|index| sample.add(of_one_file.format(), of_one_file.bytes(index)));
        }
        sample.judged()
    }

    /// What the events look like that come out of a part's program.
    fn of_events(part: &Part<'_>, inputs: &[Inputs]) -> Self {
        let mut sample = Self::default();
        inputs.iter().for_each(|of_one_file| sample.add_events(part, of_one_file));
        sample.judged()
    }

    fn add_events(&mut self, part: &Part<'_>, inputs: &Inputs) {
        let (_, names) = events_of(part, &[], inputs);
        let fields: Vec<FieldPath> = names.iter().map(|name| FieldPath::of_name(name)).collect();
        let (batch, _) = events_of(part, &fields, inputs);
        for event in batch.events() {
            let mut found = Vec::new();
            let values: BTreeMap<usize, Value> =
                (0..names.len()).filter_map(|slot| Some((slot, value_of(event.field_bytes(slot))?))).collect();
            for (slot, value) in values {
                let untyped = value.as_str().filter(|_| event.is_untyped());
                match untyped {
                    Some(text) => found.push((vec![names[slot].clone()], sort_of_untyped(text), text.to_owned())),
                    None => {
                        let text = written(event.field_bytes(slot), &value);
                        let text = format!("{{{}:{text}}}", Value::from(names[slot].as_str()));
                        let event = serde_json::Map::from_iter([(names[slot].clone(), value)]);
                        flatten(&mut Vec::new(), &event, &text, &mut found);
                    }
                }
            }
            self.add_fields(found);
        }
    }

    /// With what all events together tell.
    fn judged(mut self) -> Self {
        (self.fields, self.inside_maps) = maps::folded(self.fields, &self.objects);
        self.judge_uniqueness();
        self
    }

    fn judge_uniqueness(&mut self) {
        for field in &mut self.fields {
            field.unique = field.seen.len() == self.count && field.present == self.count;
        }
    }

    fn add(&mut self, format: &Format, bytes: &[u8]) {
        let mut found = Vec::new();
        let flaw = match format {
            Format::Json => match serde_json::from_slice(bytes) {
                Ok(Value::Object(event)) => {
                    flatten(&mut Vec::new(), &event, &String::from_utf8_lossy(bytes), &mut found);
                    None
                }
                Ok(_) => Some("JSON, but no object".to_owned()),
                Err(_) => Some("no JSON".to_owned()),
            },
            Format::Csv(csv) => {
                let take = |name: &str, text: Option<std::borrow::Cow<'_, str>>| {
                    let sort = text.as_deref().map_or(Sort::Unknown, sort_of_untyped);
                    found.push((vec![name.to_owned()], sort, text.unwrap_or_default().into_owned()));
                };
                read_record(csv, bytes, take).err().map(|cause| format!("no record of this header ({})", cause.message))
            }
        };
        match flaw {
            None => self.add_fields(found),
            Some(flaw) => {
                self.bad += 1;
                self.first_bad.get_or_insert_with(|| (beginning(bytes), flaw));
            }
        }
    }

    /// Why there is nothing to write a configuration for: inputs are there, and none of them is an event.
    pub(crate) fn without_event(&self) -> Option<String> {
        let (input, flaw) = self.first_bad.as_ref().filter(|_| self.count == 0)?;
        Some(format!("none of the first {} input(s) is an event; the first is {flaw}: {input}", self.bad))
    }

    fn add_fields(&mut self, found: Vec<FoundField>) {
        self.count += 1;
        let objects = found.iter().flat_map(|(names, _, _)| (1..=names.len()).map(|depth| &names[..depth]));
        for object in objects.collect::<BTreeSet<&[String]>>() {
            *self.objects.entry(object.to_vec()).or_default() += 1;
        }
        for (names, sort, text) in found {
            let path = names.iter().fold(String::new(), |path, name| format!("{path}{}", FieldPath::of_name(name)));
            let Ok(path) = path.parse::<FieldPath>() else { continue };
            let at = self.fields.iter().position(|field| field.path == path).unwrap_or_else(|| {
                let seen = HashSet::new();
                self.fields.push(Field { path, sort: Sort::Unknown, unique: false, seen, present: 0 });
                self.fields.len() - 1
            });
            let field = &mut self.fields[at];
            field.sort = field.sort.or(sort);
            field.present += usize::from(sort != Sort::Unknown);
            field.seen.insert(text);
        }
    }

    /// What was seen, for people.
    pub(crate) fn describe(&self) -> Vec<String> {
        let told = |field: &Field| format!("{} ({})", shown(&field.path), word(field.sort));
        let mut fields: Vec<String> = self.fields.iter().take(FIELDS_SHOWN).map(told).collect();
        if let Some(more @ 1..) = self.fields.len().checked_sub(FIELDS_SHOWN) {
            let last = fields.pop().unwrap_or_default();
            fields.push(format!("{last} and {more} more fields"));
        }
        let mut lines = vec![format!("Looked at {} event(s): {}", self.count, fields.join(", "))];
        if self.bad > 0 {
            lines.push(format!(
                "  {} input(s) are no events and would be dead letters; `hapax tap` shows them later",
                self.bad
            ));
        }
        lines
    }
}

/// The beginning of an input, on one line.
fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line: String = text.chars().take(SHOWN_CHARACTERS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() { format!("{line}…") } else { line }
}

/// What to write for a file whose own name looks like a pattern, if it is there.
pub(crate) fn taken_for_a_pattern(written: &str, folder: &Path) -> Option<String> {
    let spelled = |c: char| if matches!(c, '*' | '?' | '[' | ']') { format!("[{c}]") } else { c.to_string() };
    let literal: String = written.chars().map(spelled).collect();
    folder.join(written).is_file().then(|| {
        format!(
            ". A file of this very name is there, but * ? [ make a pattern; for the file itself write \"{literal}\""
        )
    })
}

/// A field's name, or its path where it lies inside another.
pub(crate) fn shown(path: &FieldPath) -> String {
    match path.names() {
        [name] if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.is_empty() => name.clone(),
        _ => path.to_string(),
    }
}

pub(crate) const fn word(sort: Sort) -> &'static str {
    match sort {
        Sort::Unknown => "empty",
        Sort::Boolean => "true or false",
        Sort::Number(Numbers { whole: true, .. }) => "whole numbers",
        Sort::Number(_) => "numbers",
        Sort::Date => "dates",
        Sort::Timestamp => "times",
        Sort::Uuid => "uuids",
        Sort::Json => "JSON",
        Sort::Text => "text",
    }
}

/// The fields of an event; `written` is its text.
fn flatten(
    before: &mut Vec<String>,
    event: &serde_json::Map<String, Value>,
    written: &str,
    found: &mut Vec<FoundField>,
) {
    let texts: HashMap<String, &RawValue> = serde_json::from_str(written).unwrap_or_default();
    for (name, value) in event {
        before.push(name.clone());
        let written = texts.get(name).map_or("", |text| text.get());
        match value {
            Value::Object(inner) if !inner.is_empty() && before.len() < DEPTH => flatten(before, inner, written, found),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                found.push((before.clone(), sort_of(value, written), value.to_string()));
            }
        }
        before.pop();
    }
}

/// The text of a field's value, with all digits of its numbers.
fn written(field: FieldBytes<'_>, value: &Value) -> String {
    match field {
        FieldBytes::Number(json) | FieldBytes::Json(json) => String::from_utf8_lossy(json).into_owned(),
        FieldBytes::Absent | FieldBytes::Null | FieldBytes::Bool(_) | FieldBytes::Text(_) => value.to_string(),
    }
}

/// A field's value; none if the event has no such field.
fn value_of(field: FieldBytes<'_>) -> Option<Value> {
    match field {
        FieldBytes::Absent => None,
        FieldBytes::Null => Some(Value::Null),
        FieldBytes::Bool(value) => Some(Value::Bool(value)),
        FieldBytes::Text(text) => Some(Value::String(String::from_utf8_lossy(text).into_owned())),
        FieldBytes::Number(json) | FieldBytes::Json(json) => serde_json::from_slice(json).ok(),
    }
}
