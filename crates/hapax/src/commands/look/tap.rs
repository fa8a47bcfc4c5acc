//! `hapax tap`: events as the workflow sees them, read on a cursor of its own.

use std::io::Write as _;

use hapax_engine::batch::{Batch, Operation};
use hapax_engine::decode::csv::{Format, read_record};
use hapax_engine::rows::RowReader as _;
use hapax_engine::source::{Follow, Source as _, StartAt};
use hapax_model::epoch::Epoch;
use hapax_model::letter::Cause;
use hapax_model::position::{Bookmark, Position};
use serde_json::{Value, json};

use super::super::load;
use super::reader::{Next, Reader, unreadable};
use super::subject::{KeysWanted, Subject, subjects};
use super::{short, unclear};
use crate::assemble::{AnyRows, find_files};
use crate::cli::{LookChoice, Shared, TapArgs};
use crate::exit::Failure;

/// How many inputs are shown unless the user says otherwise.
const COUNT: u64 = 10;
/// How much of an event a line shows.
const SHOWN_CHARACTERS: usize = 160;

/// Shows events.
pub(crate) async fn tap(args: &TapArgs, shared: &Shared) -> Result<u8, Failure> {
    let mut loaded = load(shared)?;
    find_files(&mut loaded.config).await;
    let choice = LookChoice { workflow: Some(args.workflow.clone()), sink: args.sink.clone(), lane: args.lane.clone() };
    let mut chosen = subjects(&loaded.config, &choice)?;
    // Two sinks read the same source; the first shows its events unless one was named.
    chosen.retain(|subject| args.sink.is_some() || subject.part.sink.name == subject.part.workflow.sinks[0].name);
    let start = match args.from.as_str() {
        "earliest" => StartAt::Earliest,
        "latest" => StartAt::Latest,
        other => {
            StartAt::At(other.parse::<Position>().map_err(|e| unclear(format!("--from: {e}, or earliest or latest")))?)
        }
    };
    let several = chosen.len() > 1;
    if several && args.follow {
        return Err(unclear("--follow shows one lane: name it with --lane"));
    }
    let ended = tokio::signal::ctrl_c();
    tokio::pin!(ended);
    for subject in &chosen {
        if several && !shared.json {
            println!("{}:", subject.id);
        }
        tokio::select! {
            shown = show(subject, start, args, shared) => shown?,
            _ = &mut ended => return Ok(0),
        }
    }
    Ok(0)
}

async fn show(subject: &Subject<'_>, start: StartAt, args: &TapArgs, shared: &Shared) -> Result<(), Failure> {
    let rows = match subject.rows().await {
        Ok(rows) => Some(rows),
        Err(failure) => {
            let why = crate::assemble::why_not_looked_at(&failure);
            tracing::warn!("{why}, so nothing is said of its columns: {failure}");
            None
        }
    };
    let mut source = if args.follow { subject.source() } else { subject.unpaced_source() };
    let at = source.start(start).await?;
    let follow = if args.follow { Follow::Yes } else { Follow::No };
    let mut reader = Reader::open(source, &at, follow).await.map_err(|error| unreadable(&error))?;
    let mut lens = Lens::new(subject, rows);
    let count = args.count.unwrap_or(if args.follow { u64::MAX } else { COUNT });
    let mut shown = 0;
    while shown < count {
        match reader.peek().await.map_err(|error| unreadable(&error))? {
            Next::End => break,
            Next::Idle => {
                std::io::stdout().flush().ok();
                continue;
            }
            Next::Input(at) => {
                let seen = lens.look(&mut reader, &at);
                if shared.json {
                    println!("{}", seen.as_json(subject))
                } else {
                    println!("{}", seen.line())
                }
                shown += 1;
            }
        }
    }
    if shown == 0 && !shared.json {
        println!("Nothing there: the source has no input from {} on.", at.position);
    }
    Ok(())
}

/// Turns inputs into what a person sees of them.
struct Lens {
    delivered: hapax_engine::pipeline::Pipeline,
    shown: hapax_engine::pipeline::Pipeline,
    rows: Option<AnyRows>,
    /// Which epoch an input will be in is not known yet, so keys that contain it are left out.
    with_epoch: bool,
}

/// One input as the workflow sees it.
struct Seen {
    at: Bookmark,
    /// Nothing, if the workflow's program leaves it out.
    operation: Option<Operation>,
    keys: (Option<String>, Option<String>),
    letter: Option<Cause>,
    event: Value,
    bytes: Vec<u8>,
    length: u64,
}

impl Lens {
    fn new(subject: &Subject<'_>, rows: Option<AnyRows>) -> Self {
        let shape = rows.as_ref().map(|rows| rows.shape());
        Self {
            delivered: subject.pipeline(shape, KeysWanted::AsDelivered),
            shown: subject.pipeline(None, KeysWanted::Shown),
            rows,
            with_epoch: subject.strategy().contains_epoch(),
        }
    }

    fn look<S: hapax_engine::source::Source>(&mut self, reader: &mut Reader<S>, at: &Bookmark) -> Seen {
        let epoch = Epoch(0);
        let mut batch = self.delivered.batch();
        reader.take(&mut batch.inputs);
        self.delivered.process(&mut batch, 0, epoch, &at.incarnation);
        let bytes = batch.inputs.bytes(0).to_vec();
        let length = batch.inputs.oversized_length(0).unwrap_or(bytes.len() as u64);
        let mut keyed = self.shown.batch();
        keyed.inputs.set_format(batch.inputs.format());
        keyed.inputs.push(at.position, &bytes);
        self.shown.process(&mut keyed, 0, epoch, &at.incarnation);
        let died = batch.letters().first().map(|(_, letter)| letter.cause.clone());
        let misfit = || self.rows.as_ref().and_then(|rows| rows.misfits(&batch).into_iter().next()).map(|(_, c)| c);
        let letter = died.or_else(misfit);
        let operation = if batch.is_empty() { Operation::Upsert } else { batch.event(0).operation() };
        let operation = (batch.filtered() == 0).then_some(operation);
        let event = event_of(batch.inputs.format(), &bytes);
        Seen { at: at.clone(), operation, keys: self.keys(&keyed), letter, event, bytes, length }
    }

    /// Entity key and event key of a batch of one event.
    fn keys(&self, batch: &Batch) -> (Option<String>, Option<String>) {
        if batch.is_empty() {
            return (None, None);
        }
        let event = batch.event(0);
        let event_key = event.event_key().filter(|_| !self.with_epoch);
        (event.entity_key().map(|key| key.to_string()), event_key.map(|key| key.to_string()))
    }
}

/// The event as JSON; a text where it is none.
fn event_of(format: &Format, bytes: &[u8]) -> Value {
    let read = match format {
        Format::Json => serde_json::from_slice(bytes).ok(),
        Format::Csv(csv) => {
            let mut fields = serde_json::Map::new();
            let take = |name: &str, field: Option<std::borrow::Cow<'_, str>>| {
                fields.insert(name.to_owned(), field.map_or(Value::Null, |text| Value::String(text.into_owned())));
            };
            read_record(csv, bytes, take).is_ok().then_some(Value::Object(fields))
        }
    };
    read.unwrap_or_else(|| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

impl Seen {
    fn word(&self) -> &'static str {
        match (&self.letter, self.operation) {
            (Some(_), _) => "dead",
            (None, Some(Operation::Upsert)) => "event",
            (None, Some(Operation::Delete)) => "delete",
            (None, None) => "filtered",
        }
    }

    fn line(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let key = self.keys.0.as_deref().or(self.keys.1.as_deref()).unwrap_or("-");
        let event = short(&text, SHOWN_CHARACTERS);
        let line = format!("{}  {:6}  {key}  {event}", self.at.position, self.word());
        match &self.letter {
            Some(cause) => format!("{line}\n        would be a dead letter: {} (stage {})", cause, cause.stage.name()),
            None => line,
        }
    }

    fn as_json(&self, subject: &Subject<'_>) -> Value {
        let letter = self.letter.as_ref().map(|cause| {
            json!({"stage": cause.stage.name(), "code": cause.code, "message": cause.message, "cause": cause.fingerprint})
        });
        json!({
            "workflow": subject.id.workflow, "lane": subject.id.lane, "position": self.at.position.to_string(),
            "incarnation": self.at.incarnation.to_string(), "operation": self.word(), "entityKey": self.keys.0,
            "eventKey": self.keys.1, "event": self.event, "length": self.length, "letter": letter,
        })
    }
}
