//! The story of `hapax trace`, for people and for programs.

use std::fmt;

use hapax_engine::batch::Operation;
use hapax_engine::books::StoredDelivery;
use hapax_engine::letters::StoredLetter;
use hapax_engine::rows::{FoundRow, RowState};
use hapax_engine::sink::SinkError;
use hapax_model::position::{DeliveryId, Incarnation, Position};
use serde_json::{Value, json};

use super::super::clock::{age, moment};
use super::super::history::Range;
use super::super::short;
use super::decide::{Facts, Input, Verdict, decide};

/// How much of a value or an input a line shows.
const SHOWN_CHARACTERS: usize = 100;
const SHOWN_VALUE: usize = 40;

/// The row as it stands.
#[derive(Debug)]
pub(super) enum Row {
    Found(FoundRow),
    Missing,
    /// It could not be asked for; why.
    Unasked(String),
}

impl Row {
    pub(super) fn of(answer: Result<Option<FoundRow>, SinkError>) -> Self {
        match answer {
            Ok(Some(row)) => Self::Found(row),
            Ok(None) => Self::Missing,
            Err(error) => Self::Unasked(format!("the target cannot be asked: {error}")),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no such row"),
            Self::Unasked(why) => write!(f, "not looked at: {why}"),
            Self::Found(row) => {
                let value = |value: &Option<String>| match value {
                    Some(value) => short(value, SHOWN_VALUE),
                    None => "NULL".into(),
                };
                let columns: Vec<String> =
                    row.columns.iter().map(|(name, held)| format!("{name}={}", value(held))).collect();
                let removed = if row.state == RowState::Tombstone { " (a tombstone: the row was removed)" } else { "" };
                write!(f, "{}{removed}", columns.join(" "))
            }
        }
    }
}

/// One input, as far as it is known.
#[derive(Debug)]
pub(super) struct Sighting {
    pub(super) position: Position,
    pub(super) incarnation: Option<Incarnation>,
    /// The newest first.
    pub(super) epochs: Vec<Range>,
    /// The newest first.
    pub(super) letters: Vec<StoredLetter>,
    pub(super) input: Option<Vec<u8>>,
    /// How many bytes of it are the header of its file.
    pub(super) header: usize,
    /// The source was asked, and has no input there.
    pub(super) absent: bool,
    /// The source was asked, and has its header there.
    pub(super) is_header: bool,
    verdict: Verdict,
    aside: Option<&'static str>,
}

impl Sighting {
    pub(super) fn at(position: Position, incarnation: Option<Incarnation>) -> Self {
        Self {
            position,
            incarnation,
            epochs: Vec::new(),
            letters: Vec::new(),
            input: None,
            header: 0,
            absent: false,
            is_header: false,
            verdict: Verdict::Unknown,
            aside: None,
        }
    }

    /// Decides what became of it. `row` is what its key holds now, if it is the last event of its key.
    pub(super) fn decide(&mut self, facts: Facts<'_>, row: Option<&Row>, operation: Option<Operation>) {
        let input = Input {
            position: self.position,
            incarnation: self.incarnation.as_ref(),
            in_log: !self.epochs.is_empty(),
            letter: self.letters.first().map(|letter| letter.state.as_str()),
            in_doubt: self.letters.first().is_some_and(StoredLetter::is_in_doubt),
            absent: self.absent,
        };
        self.verdict = match (decide(facts, input), operation) {
            _ if self.is_header => Verdict::Header,
            (Verdict::Delivered, None) => Verdict::Filtered,
            (verdict, _) => verdict,
        };
        let arrived = matches!(self.verdict, Verdict::Delivered | Verdict::Replayed);
        self.aside = match (arrived, operation, row) {
            (true, Some(Operation::Delete), Some(Row::Missing)) => Some("and its row is gone, as it asked"),
            (true, Some(Operation::Upsert), Some(Row::Missing)) => {
                Some("but its row is not there now: a later event or somebody else removed it")
            }
            (_, _, _) => None,
        };
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, progress: Option<&StoredDelivery>) -> fmt::Result {
        match self.epochs.as_slice() {
            [] => writeln!(f, "  epoch        none in the log")?,
            epochs => {
                for range in epochs {
                    let (logged, counts) = (&range.logged, range.logged.counts);
                    let owner = progress.filter(|stored| stored.progress.generation == logged.generation);
                    let by = owner.map(|stored| format!(" ({})", stored.progress.session)).unwrap_or_default();
                    writeln!(
                        f,
                        "  epoch        {}: positions {} to {}, {} read, {} delivered, {} filtered, {} dead",
                        logged.epoch,
                        logged.from,
                        logged.to.position,
                        counts.read,
                        counts.delivered,
                        counts.filtered,
                        counts.dead
                    )?;
                    let at = moment(logged.committed_at_ms);
                    writeln!(f, "               committed {at} by generation {}{by}", logged.generation)?;
                }
            }
        }
        for letter in &self.letters {
            writeln!(f, "  dead letter  number {}, {}: {}: {}", letter.id, letter.state, letter.code, letter.message)?;
            if letter.state == "dead" {
                writeln!(f, "               deliver it again with: hapax dlq replay --id {}", letter.id)?;
            }
        }
        if let Some(input) = &self.input {
            let (header, record) = input.split_at(self.header.min(input.len()));
            if !header.is_empty() {
                let header = String::from_utf8_lossy(header);
                writeln!(f, "  header       {}", short(header.trim_end(), SHOWN_CHARACTERS))?;
            }
            writeln!(f, "  input        {}", short(&String::from_utf8_lossy(record), SHOWN_CHARACTERS))?;
        }
        Ok(())
    }

    fn as_json(&self) -> Value {
        let epochs: Vec<Value> = self.epochs.iter().map(epoch_json).collect();
        let letters: Vec<Value> = self.letters.iter().map(letter_json).collect();
        json!({
            "position": self.position.to_string(), "incarnation": self.incarnation.as_ref().map(ToString::to_string),
            "epochs": epochs, "letters": letters, "verdict": self.verdict.name(), "aside": self.aside,
            "input": self.input.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        })
    }
}

fn epoch_json(range: &Range) -> Value {
    let (logged, counts) = (&range.logged, range.logged.counts);
    json!({
        "epoch": logged.epoch.0, "generation": logged.generation.0, "from": logged.from.to_string(),
        "to": logged.to.position.to_string(), "read": counts.read, "delivered": counts.delivered,
        "filtered": counts.filtered, "dead": counts.dead, "committedAtMs": logged.committed_at_ms,
    })
}

fn letter_json(letter: &StoredLetter) -> Value {
    json!({
        "id": letter.id, "state": letter.state, "code": letter.code, "message": letter.message,
        "cause": letter.fingerprint, "stage": letter.stage, "epoch": letter.epoch,
    })
}

/// All that is told of one delivery.
#[derive(Debug)]
pub(super) struct Story {
    id: DeliveryId,
    asked: String,
    progress: Option<StoredDelivery>,
    worker: Option<String>,
    /// The first epoch that the log still holds.
    first: Option<u64>,
    pub(super) keys: Vec<(&'static str, String)>,
    pub(super) row: Row,
    pub(super) notes: Vec<String>,
    /// How many events a search found.
    pub(super) events: Option<usize>,
    pub(super) sightings: Vec<Sighting>,
    verdict: (&'static str, String),
}

impl Story {
    pub(super) fn new(
        id: &DeliveryId,
        asked: String,
        progress: Option<StoredDelivery>,
        worker: Option<String>,
        first: Option<&Range>,
    ) -> Self {
        Self {
            id: id.clone(),
            asked,
            progress,
            worker,
            first: first.map(|range| range.logged.epoch.0),
            keys: Vec::new(),
            row: Row::Unasked("nothing is known of the input's key".into()),
            notes: Vec::new(),
            events: None,
            sightings: Vec::new(),
            verdict: (Verdict::Unknown.name(), String::new()),
        }
    }

    /// Comes to the verdict: that of the last event, or what the row alone tells.
    pub(super) fn close(mut self) -> Self {
        let aside = |sighting: &Sighting| sighting.aside.map(|aside| format!(", {aside}")).unwrap_or_default();
        self.verdict = match (self.sightings.last(), &self.row) {
            (Some(last), _) => (last.verdict.name(), format!("{}{}", last.verdict, aside(last))),
            (None, Row::Found(row)) if row.state == RowState::Tombstone => {
                (Verdict::Delivered.name(), "delivered: the row was removed, and its tombstone is there".into())
            }
            (None, Row::Found(_)) => (Verdict::Delivered.name(), "delivered: its row is there".into()),
            (None, Row::Missing | Row::Unasked(_)) if self.progress.is_none() => {
                (Verdict::NotYetRead.name(), "not yet read: nothing was ever delivered".into())
            }
            (None, _) if self.events.is_some() => {
                ("notFound", "not found: neither the searched inputs nor the dead letters have it".into())
            }
            (None, Row::Missing) => {
                (Verdict::Unknown.name(), "no row and no dead letter has it; --search reads the source for it".into())
            }
            (None, Row::Unasked(_)) => (Verdict::Unknown.name(), "unknown; --search reads the source for it".into()),
        };
        self
    }

    /// Ends without a verdict; why.
    pub(super) fn close_unknown(mut self, why: String) -> Self {
        self.row = Row::Unasked("these fields name no row".into());
        self.verdict = (Verdict::Unknown.name(), format!("unknown: {why}"));
        self
    }

    fn place(&self, sighting: &Sighting) -> &'static str {
        let past = |stored: &StoredDelivery| {
            let at = &stored.progress.bookmark;
            let number = sighting.incarnation.as_ref().map_or(at.incarnation.number, |file| file.number);
            (number, sighting.position) < (at.incarnation.number, at.position)
        };
        match &self.progress {
            Some(stored) if past(stored) => ", past this input",
            Some(_) => ", which has not reached this input",
            None => "",
        }
    }

    pub(super) fn as_json(&self) -> Value {
        let row = match &self.row {
            Row::Found(row) => {
                let columns: serde_json::Map<String, Value> =
                    row.columns.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                json!({"found": true, "tombstone": row.state == RowState::Tombstone, "columns": columns})
            }
            Row::Missing => json!({"found": false}),
            Row::Unasked(why) => json!({"found": null, "why": why}),
        };
        let progress = self.progress.as_ref().map(|stored| {
            json!({
                "epoch": stored.progress.epoch.0, "generation": stored.progress.generation.0,
                "position": stored.progress.bookmark.position.to_string(), "updatedAtMs": stored.updated_at_ms,
                "session": stored.progress.session,
            })
        });
        let keys: serde_json::Map<String, Value> =
            self.keys.iter().map(|(name, key)| ((*name).to_owned(), json!(key))).collect();
        json!({
            "workflow": self.id.workflow, "sink": self.id.sink, "lane": self.id.lane, "asked": self.asked,
            "progress": progress, "worker": self.worker, "logFromEpoch": self.first, "keys": keys, "row": row,
            "notes": self.notes, "inputs": self.sightings.iter().map(Sighting::as_json).collect::<Vec<_>>(),
            "inputsFound": self.events, "verdict": self.verdict.0, "why": self.verdict.1,
        })
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.id, self.asked)?;
        match &self.progress {
            Some(stored) => {
                let (progress, at) = (&stored.progress, age(stored.updated_at_ms));
                let place = match self.sightings.as_slice() {
                    [one] => self.place(one),
                    [] | [..] => "",
                };
                let (epoch, position) = (progress.epoch, progress.bookmark.position);
                writeln!(f, "  progress     epoch {epoch}, position {position}{place} (last moved {at} ago)")?;
            }
            None => writeln!(f, "  progress     none: nothing was ever delivered")?,
        }
        for (name, key) in &self.keys {
            writeln!(f, "  {name:11}  {key}")?;
        }
        if let Some(events) = self.events {
            writeln!(f, "  events       {events} in the source and the dead letters")?;
        }
        for sighting in &self.sightings {
            if self.sightings.len() > 1 || self.events.is_some() {
                writeln!(f, "  position     {}: {}", sighting.position, sighting.verdict)?;
            }
            sighting.write(f, self.progress.as_ref())?;
        }
        writeln!(f, "  row          {}", self.row)?;
        for note in &self.notes {
            writeln!(f, "  note         {note}")?;
        }
        writeln!(f, "  verdict      {}", self.verdict.1)
    }
}
