//! One delivery that is looked at, and everything that can be asked about it.

use hapax_connect::file::{is_compressed, was_read_to_its_end};
use hapax_engine::books::{
    Books as _, LoggedEpoch, NotedDelivery, Pause, StateBooks as _, StoredDelivery, StoredLease,
};
use hapax_engine::decode::csv::Format;
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::rows::TableShape;
use hapax_engine::source::{Follow, Source as _};
use hapax_model::contract::Contract;
use hapax_model::delivery_state::{
    DeliveryState, LeaseSeen, PauseSeen, ProgressSeen, WorkerState, decide_delivery_state,
};
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::name_list::fold_names;
use hapax_model::position::DeliveryId;

use super::super::known_workflow;
use super::super::run::{all_files_of, lease_of_pattern};
use super::clock::now_ms;
use super::reader::holds;
use super::unclear;
use crate::assemble::{AnyBooks, AnyRows, AnySource, Part, Place, Purpose, lanes, parts, plan};
use crate::cli::LookChoice;
use crate::config::checked::GenerateSource;
use crate::config::{Config, Source};
use crate::exit::Failure;

/// More epochs than a log ever keeps.
const WHOLE_LOG: usize = 1_000_000;

/// One delivery.
pub(super) struct Subject<'a> {
    pub(super) part: Part<'a>,
    pub(super) id: DeliveryId,
    config: &'a Config,
}

/// The deliveries that are meant, in the order of the configuration; at least one.
pub(super) fn subjects<'a>(config: &'a Config, choice: &LookChoice) -> Result<Vec<Subject<'a>>, Failure> {
    if let Some(workflow) = &choice.workflow {
        known_workflow(config, workflow)?;
    }
    let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
    let all = lanes(config).map(|part| Subject { part, id: part.id(), config });
    let chosen: Vec<Subject<'_>> = all
        .filter(|s| {
            is(&choice.workflow, &s.id.workflow) && is(&choice.sink, &s.id.sink) && is(&choice.lane, &s.id.lane)
        })
        .collect();
    if chosen.is_empty() {
        let known: Vec<String> = lanes(config).map(|part| part.id().to_string()).collect();
        return Err(unclear(match known.as_slice() {
            [] => "no workflow is complete: each needs a source and a sink".to_owned(),
            known => format!("no delivery fits; there are {}", fold_names(known, ", ")),
        }));
    }
    Ok(chosen)
}

/// Which keys a pipeline derives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeysWanted {
    /// Those of the workflow, so that an input dies here exactly if it dies there.
    AsDelivered,
    /// Both, for people; an input without a key has none.
    Shown,
    /// None.
    Nothing,
}

impl Subject<'_> {
    /// The database of its progress, log and letters; none if there is no state store to hold them.
    pub(super) fn place(&self) -> Option<Place> {
        Place::of_part(&self.part, self.config)
    }

    /// Its progress, log and letters; none if the database is not there yet.
    pub(super) async fn books(&self) -> Result<Option<AnyBooks>, Failure> {
        AnyBooks::of_part(&self.part, self.config, Purpose::Look).await
    }

    /// Its target's rows.
    pub(super) async fn rows(&self) -> Result<AnyRows, Failure> {
        AnyRows::of_part(&self.part).await
    }

    /// Its source, not yet reading.
    pub(super) fn source(&self) -> AnySource {
        self.part.open_source()
    }

    /// The same without the generator's rate: what was generated once is generated again at once.
    pub(super) fn unpaced_source(&self) -> AnySource {
        match self.part.source {
            Source::Generate(generate) => {
                let unpaced = Source::Generate(GenerateSource { rate: None, ..generate.clone() });
                Part { source: &unpaced, ..self.part }.open_source()
            }
            Source::File(_) => self.source(),
        }
    }

    /// The same to read what was delivered before `progress`, which remembers the files of it.
    pub(super) fn source_behind(&self, progress: Option<&StoredDelivery>) -> AnySource {
        let mut source = self.unpaced_source();
        if let (AnySource::File(file), Some(stored)) = (&mut source, progress) {
            file.look_back_from(&stored.progress.bookmark);
        }
        source
    }

    /// An event of key fields, given as JSON, as an input of this source would have it.
    pub(super) fn as_input(&self, event: &str) -> Vec<u8> {
        let Format::Csv(csv) = self.part.kept_format() else { return event.as_bytes().to_vec() };
        let mut fields = Vec::new();
        if let Ok(serde_json::Value::Object(event)) = serde_json::from_str(event) {
            flatten("", &event, &mut fields);
        }
        csv.dialect.record_of(&fields)
    }

    /// The workflow's own way from inputs to events, for a table of this shape.
    pub(super) fn pipeline(&self, shape: Option<&TableShape>, keys: KeysWanted) -> Pipeline {
        self.part.with_transform(self.pipeline_behind_transform(shape, keys))
    }

    /// The same for events as the workflow's program leaves them.
    pub(super) fn pipeline_behind_transform(&self, shape: Option<&TableShape>, keys: KeysWanted) -> Pipeline {
        let (workflow, sink) = (self.part.workflow, self.part.table());
        let deduplication = &workflow.delivery.deduplication;
        let unique = if deduplication.unique { Uniqueness::FieldsAlone } else { Uniqueness::WithVersion };
        let mode = shape.map_or_else(|| plan::mode_without_table(sink, &workflow.delivery), |shape| shape.mode);
        let keyer = match keys {
            KeysWanted::AsDelivered => plan::keyer(workflow, sink, mode),
            KeysWanted::Shown => Keyer::new(self.strategy(), unique, KeyNeed::EntityAndEvent),
            KeysWanted::Nothing => Keyer::new(self.strategy(), unique, KeyNeed::Nothing),
        };
        let source = self.source();
        let origin = Origin { source: source.identity(), lane: source.lane().to_owned() };
        let fields: &[FieldPath] = shape.map_or(&[], |shape| &shape.fields);
        Pipeline::new(fields, keyer, sink.delete_when.clone(), plan::unknown_fields(sink), origin)
    }

    /// How its keys are made.
    pub(super) fn strategy(&self) -> DedupStrategy {
        plan::strategy(&self.part.workflow.delivery)
    }

    /// What must not have changed since it delivered, less the target's identity.
    pub(super) fn contract(&self, mode: ConflictMode) -> Contract {
        let keyer = plan::keyer(self.part.workflow, self.part.table(), mode);
        self.part.with_rotation(plan::contract(&self.source().identity(), &keyer, mode))
    }

    /// Whether its events may be deletes.
    pub(super) const fn deletes(&self) -> bool {
        self.part.table().delete_when.is_some()
    }

    /// Where its progress is kept.
    pub(super) fn progress_place(&self) -> ProgressPlace {
        self.part.table().progress
    }

    /// Progress as it stands.
    pub(super) async fn progress(&self, books: &mut AnyBooks) -> Result<Option<StoredDelivery>, Failure> {
        Ok(books.deliveries().await?.into_iter().find(|stored| stored.id == self.id))
    }

    /// The whole epoch log, the oldest first.
    pub(super) async fn log(&self, books: &mut AnyBooks) -> Result<Vec<LoggedEpoch>, Failure> {
        let mut log = books.recent_epochs(&self.id, WHOLE_LOG).await?;
        log.reverse();
        Ok(log)
    }
}

/// What workers and people left in the state store.
#[derive(Debug, Default)]
pub(crate) struct StateSide {
    pub(crate) notes: Vec<NotedDelivery>,
    pub(crate) leases: Vec<StoredLease>,
    pub(crate) pauses: Vec<Pause>,
    /// What the leases of patterns are called.
    pub(crate) patterns: Vec<DeliveryId>,
    /// Why it could not be read: then nothing is known of workers and pauses.
    pub(crate) trouble: Option<String>,
}

impl StateSide {
    /// Reads it; empty if there is no state store yet.
    pub(crate) async fn read(config: &Config) -> Result<Self, Failure> {
        match AnyBooks::of_state(config, Purpose::Look).await? {
            Some(mut books) => Self::read_from(&mut books, config).await,
            None => Ok(Self::default()),
        }
    }

    /// Reads it from a state store that is open.
    pub(crate) async fn read_from(books: &mut AnyBooks, config: &Config) -> Result<Self, Failure> {
        let (notes, leases, pauses) = (books.notes().await?, books.leases().await?, books.pauses().await?);
        let patterns = parts(config).filter_map(|part| lease_of_pattern(&part)).collect();
        Ok(Self { notes, leases, pauses, patterns, trouble: None })
    }

    /// One that could not be read.
    pub(crate) fn unread(failure: &Failure) -> Self {
        Self { trouble: Some(failure.to_string()), ..Self::default() }
    }

    /// The worker's last note.
    pub(crate) fn note(&self, id: &DeliveryId) -> Option<&NotedDelivery> {
        self.notes.iter().find(|noted| noted.id == *id)
    }

    /// The lease, if it has not run out: the lane's own, or that of all files of the pattern, whose holder opens the lane as soon as
    /// there is something to read.
    pub(crate) fn lease(&self, id: &DeliveryId) -> Option<&StoredLease> {
        self.own_lease(id).or_else(|| self.own_lease(&all_files_of(id)))
    }

    fn own_lease(&self, id: &DeliveryId) -> Option<&StoredLease> {
        self.leases.iter().find(|lease| lease.id == *id && lease.expires_at_ms > now_ms())
    }

    /// The lease of all files of the pattern that finds the lane, where nobody has opened the lane itself.
    pub(crate) fn pattern_lease(&self, id: &DeliveryId) -> Option<&StoredLease> {
        if self.own_lease(id).is_some() {
            return None;
        }
        let pattern = self.patterns.iter().find(|of| of.workflow == id.workflow && of.sink == id.sink);
        pattern.and_then(|pattern| self.own_lease(pattern))
    }

    /// Who is about to begin with the delivery, and since when: it looks through what was read before, or through the files of the
    /// pattern.
    pub(crate) fn starting(&self, id: &DeliveryId) -> Option<&NotedDelivery> {
        let lease = self.own_lease(id).or_else(|| self.pattern_lease(id))?;
        let said = self.note(&lease.id).filter(|noted| noted.session == lease.holder);
        said.filter(|noted| noted.note.state == WorkerState::Starting)
    }

    /// The pause of its workflow.
    pub(crate) fn pause(&self, id: &DeliveryId) -> Option<&Pause> {
        self.pauses.iter().find(|pause| pause.workflow == id.workflow && pause.holds(now_ms()))
    }

    /// The last word of a worker that stopped, if nobody has taken the delivery since.
    pub(crate) fn stop(&self, id: &DeliveryId) -> Option<&NotedDelivery> {
        let lease = self.lease(id);
        let note = self.note(id).filter(|noted| noted.note.state == WorkerState::Stopped);
        note.filter(|noted| lease.is_none_or(|lease| lease.holder == noted.session))
    }

    /// How the delivery stands. Who has the lease now is not answerable for what another said before.
    pub(crate) fn state(&self, id: &DeliveryId, progress: ProgressSeen) -> DeliveryState {
        let (lease, note) = (self.lease(id), self.note(id));
        let note = note.filter(|noted| lease.is_none_or(|lease| lease.holder == noted.session));
        let held = match (&self.trouble, lease) {
            (Some(_), _) => LeaseSeen::Unreadable,
            (None, Some(_)) => LeaseSeen::Held,
            (None, None) => LeaseSeen::Free,
        };
        let pause = if self.pause(id).is_some() { PauseSeen::Paused } else { PauseSeen::No };
        let said = note.map(|noted| noted.note.state);
        // Nothing is left to read, and its worker waits for the next file.
        let waits_for_files = held == LeaseSeen::Held && self.own_lease(id).is_none();
        let said = if waits_for_files {
            said.filter(|said| *said == WorkerState::Stopped).or(Some(WorkerState::Running))
        } else {
            said
        };
        if self.starting(id).is_some() && pause == PauseSeen::No && said != Some(WorkerState::Stopped) {
            return DeliveryState::Said(WorkerState::Starting);
        }
        decide_delivery_state(held, said, pause, progress)
    }
}

/// What a look at progress found; with `trouble` it found nothing out.
pub(crate) const fn progress_seen(stored: Option<&StoredDelivery>, trouble: Option<&String>) -> ProgressSeen {
    match (stored, trouble) {
        (Some(_), _) => ProgressSeen::Stored,
        (None, Some(_)) => ProgressSeen::Unreadable,
        (None, None) => ProgressSeen::Nothing,
    }
}

/// How much of the source lies before a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lag {
    /// So much, in the source's own unit: bytes of a file, events of a generator.
    Known(u64),
    /// The source has no end.
    Endless,
    /// It cannot be told from here, and why.
    Unknown(String),
}

impl std::fmt::Display for Lag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Known(lag) => write!(f, "{lag}"),
            Self::Endless => f.write_str("endless"),
            Self::Unknown(_) => f.write_str("?"),
        }
    }
}

impl Subject<'_> {
    /// Whether the file is gone, or an archive: once read to its end, it has no more.
    fn cannot_grow(&self) -> bool {
        let Source::File(file) = self.part.source else { return false };
        let path = self.part.file.map_or(&file.path, |lane| &lane.path);
        !path.exists() || is_compressed(path)
    }

    /// How far the delivery is behind its source's end.
    pub(super) async fn lag(&self, progress: Option<&StoredDelivery>) -> Lag {
        let mut source = self.unpaced_source();
        let at = match progress {
            Some(stored) => stored.progress.bookmark.clone(),
            None => match source.start(self.part.start()).await {
                Ok(at) => at,
                Err(error) => return Lag::Unknown(error.to_string()),
            },
        };
        if was_read_to_its_end(&at.incarnation.text) && self.cannot_grow() {
            return Lag::Known(0);
        }
        if let Err(why) = holds(&mut source, &at).await {
            return Lag::Unknown(why);
        }
        match source.assign(&at, Follow::No).await {
            Ok(()) => source.extent().map_or(Lag::Endless, |end| Lag::Known(end.saturating_sub(at.position.offset))),
            Err(error) => Lag::Unknown(error.to_string()),
        }
    }
}

/// Fields with the names and texts that CSV would have for them.
fn flatten(before: &str, event: &serde_json::Map<String, serde_json::Value>, fields: &mut Vec<(String, String)>) {
    for (name, value) in event {
        let name = format!("{before}{name}");
        match value {
            serde_json::Value::Object(inner) => flatten(&format!("{name}."), inner, fields),
            serde_json::Value::String(text) => fields.push((name, text.clone())),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::Array(_) => fields.push((name, value.to_string())),
        }
    }
}
