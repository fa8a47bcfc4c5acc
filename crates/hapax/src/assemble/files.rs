//! The files of a pattern as lanes, for commands that look at deliveries.
//!
//! Reads: directories and the books. Writes: the lanes into the configuration, where `lanes` finds them.
//! Not here: which lane a file is (`hapax-connect`), starting them (`run`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hapax_connect::file::many::{Born, FoundStem, chain_names, find_stems, is_lane_of, unpacked_name};
use hapax_connect::file::{Crowd, FileFormat, HeaderFrom};
use hapax_engine::books::{Books as _, StateBooks as _};
use hapax_model::mode::ConflictMode;
use hapax_model::name_list::fold_names;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::{Progress, WitnessVerdict, decide_witness};

use super::{AnyBooks, AnySource, Live, Part, Purpose, part_of, parts, plan};
use crate::config::checked::{FileLane, FileSource};
use crate::config::{Config, Source};
use crate::exit::Failure;

/// How many rotated lanes are shown with their files.
const CHAINS_SHOWN: usize = 5;

/// Looks for the files of every pattern, and for the lanes that progress knows.
pub(crate) async fn find_files(config: &mut Config) {
    let mut found = Vec::new();
    for part in parts(config).filter(Part::has_many_files) {
        let Source::File(file) = part.source else { continue };
        let Some(many) = &file.many else { continue };
        let known = known_lanes(&part, config).await.unwrap_or_else(|failure| {
            tracing::warn!(workflow = part.workflow.id, %failure, "what was delivered cannot be read; only files are shown");
            BTreeMap::new()
        });
        let lanes = lanes_of_files(file, &many.folder, known);
        let id = DeliveryId { workflow: part.workflow.id.clone(), sink: part.sink.name.clone(), lane: String::new() };
        found.extend(lanes.into_iter().map(|lane| (id.clone(), lane)));
    }
    for workflow in &mut config.workflows {
        let Some(Source::File(file)) = &mut workflow.source else { continue };
        let Some(many) = &mut file.many else { continue };
        let own = found.iter().filter(|(id, _)| id.workflow == workflow.id);
        many.lanes = own.map(|(id, lane)| (id.sink.clone(), lane.clone())).collect();
    }
}

/// The lanes of a pattern: those whose files lie there, and those that progress knows.
pub(crate) fn lanes_of_files(file: &FileSource, folder: &Path, known: BTreeMap<String, Bookmark>) -> Vec<FileLane> {
    let mut lanes: Vec<FileLane> = find_stems(&file.written, folder, file.rotation)
        .stems
        .into_iter()
        .map(|stem| {
            let first_seen = stem.first(Born::Before, &file.format).filter(|_| !known.contains_key(&stem.lane));
            FileLane { name: stem.lane, path: stem.path, first_seen, crowd: Crowd::default() }
        })
        .collect();
    for name in known.into_keys() {
        if !lanes.iter().any(|lane| lane.name == name) {
            let path = folder.join(&name);
            lanes.push(FileLane { name, path, first_seen: None, crowd: Crowd::default() });
        }
    }
    lanes.sort_by(|a, b| a.name.cmp(&b.name));
    lanes
}

/// The lanes of a part that progress knows, and where each is.
pub(crate) async fn known_lanes(part: &Part<'_>, config: &Config) -> Result<BTreeMap<String, Bookmark>, Failure> {
    let Some(mut books) = AnyBooks::of_part(part, config, Purpose::Look).await? else { return Ok(BTreeMap::new()) };
    let stored = books.deliveries().await?;
    let own = stored.into_iter().filter(|found| {
        part_of(config, &found.id)
            .is_some_and(|of| of.workflow.id == part.workflow.id && of.sink.name == part.sink.name)
    });
    Ok(own.map(|found| (found.id.lane, found.progress.bookmark)).collect())
}

/// The lanes of a pattern that were seen further than progress is: the target was restored to an older copy. They are opened whether
/// their files lie there or not, so that what is gone is told.
pub(crate) async fn lanes_gone_back(part: &Part<'_>, config: &Config) -> Result<BTreeSet<String>, Failure> {
    let Source::File(file) = part.source else { return Ok(BTreeSet::new()) };
    let Some(mut state) = AnyBooks::of_state(config, Purpose::Look).await? else { return Ok(BTreeSet::new()) };
    let stored = match AnyBooks::of_part(part, config, Purpose::Look).await? {
        Some(mut books) => books.deliveries().await?,
        None => Vec::new(),
    };
    let progress: BTreeMap<DeliveryId, Progress> =
        stored.into_iter().map(|stored| (stored.id, stored.progress)).collect();
    let own = |id: &DeliveryId| id.workflow == part.workflow.id && id.sink == part.sink.name;
    let seen = state.witnesses().await?.into_iter().filter(|(id, _)| own(id));
    let further = seen.filter(|(id, seen)| {
        is_lane_of(&file.written, &id.lane, file.rotation)
            && decide_witness(progress.get(id), Some(seen)) == WitnessVerdict::WentBack
    });
    Ok(further.map(|(id, _)| id.lane).collect())
}

/// Whether a lane is a compressed copy of one that was read to its end: it was compressed since, and holds nothing to read.
pub(crate) fn is_copy_of_read(part: &Part<'_>, lane: &FileLane, known: &BTreeMap<String, Bookmark>) -> bool {
    let original = unpacked_name(&lane.name).and_then(|name| known.get(name));
    let (Some(original), AnySource::File(source)) = (original, Part { file: Some(lane), ..*part }.open_source()) else {
        return false;
    };
    source.is_copy_of_read(original).unwrap_or(false)
}

/// Whether a lane's file is a whole archive; one that cannot be read is left to whoever opens it.
pub(crate) fn is_whole_archive(part: &Part<'_>, lane: &FileLane) -> bool {
    match (Part { file: Some(lane), ..*part }).open_source() {
        AnySource::File(source) => source.is_whole_archive().unwrap_or(true),
        AnySource::Generate(_) => true,
    }
}

/// Whether the file of a lane that progress knows is gone with a person's consent, and nothing else of it is to be read yet.
pub(crate) fn rests_behind_gone(part: &Part<'_>, lane: &FileLane, at: &Bookmark) -> bool {
    match (Part { file: Some(lane), ..*part }).open_source() {
        AnySource::File(mut source) => source.rests(at),
        AnySource::Generate(_) => false,
    }
}

/// Why a pattern is refused that finds one file under two names.
pub(crate) fn under_two_names(workflow: &str, one: &str, other: &str, name: &str) -> Failure {
    let message = format!(
        "workflow {workflow}: \"{one}\" and \"{other}\" hold the same file, {name}, by a hard or symbolic link: all of it would \
         be delivered twice. Let the pattern find one of the two names"
    );
    Failure::new("HX3014", message).with_exit(5)
}

impl Part<'_> {
    /// The delivery that stands for a whole pattern, if the source is one.
    pub(crate) fn pattern_id(&self) -> Option<DeliveryId> {
        let Source::File(file) = self.source else { return None };
        file.many.as_ref()?;
        let (workflow, sink) = (self.workflow.id.clone(), self.sink.name.clone());
        Some(DeliveryId { workflow, sink, lane: file.written.clone() })
    }

    /// What happens to a key that is already there: as the table has it, or without a look at it as the configuration says.
    pub(crate) fn mode(&self, live: Option<&Live>) -> ConflictMode {
        live.map_or_else(|| plan::mode_without_table(self.table(), &self.workflow.delivery), Live::mode)
    }

    /// Which of two events of one key stays, if the order in which they are written decides it.
    pub(crate) fn stays_of_a_key(&self, live: Option<&Live>) -> Option<&'static str> {
        let table = self.table();
        let is_fed = |column: &String| live.is_none_or(|live| live.fed.iter().any(|(fed, _)| fed == column));
        let stays = match self.mode(live) {
            ConflictMode::Update => "the last that is written stays",
            ConflictMode::Ignore => "the first that is written stays",
            // A version of the event's own needs no order; our own is the place in the lane.
            ConflictMode::Newer if !table.version_column.as_ref().is_some_and(is_fed) => {
                "the one further on in its file stays"
            }
            ConflictMode::Newer | ConflictMode::Append => return None,
        };
        let keyed = !self.workflow.delivery.deduplication.key_fields.is_empty() || table.key_column.is_none();
        keyed.then_some(stays)
    }

    /// A word on keys that may be in two lanes of a pattern, where the order of events decides what a row holds.
    pub(crate) fn order_note(&self, live: Option<&Live>) -> Option<String> {
        let Source::File(file) = self.source else { return None };
        let lanes = find_stems(&file.written, &file.many.as_ref()?.folder, file.rotation).stems.len();
        let stays = self.stays_of_a_key(live)?;
        (lanes > 1).then(|| {
            format!(
                "{} by key from {lanes} lanes: events of one key in two files have no order between them, {stays}. If keys \
                 repeat between files, `order: name` makes one lane of them, in the order of their names \
                 (docs/connectors/file.md)",
                self.mode(live).name()
            )
        })
    }

    /// What is read, where a file's path or pattern has told it.
    pub(crate) fn source_in_words(&self) -> Option<String> {
        let Source::File(file) = self.source else { return None };
        let format = match &file.format {
            FileFormat::JsonLines => "JSON lines".to_owned(),
            FileFormat::Csv(csv) => {
                let between = match csv.dialect.delimiter {
                    b'\t' => "tabs".to_owned(),
                    byte => format!("\"{}\"", byte.escape_ascii()),
                };
                match &csv.header {
                    HeaderFrom::File => format!("CSV with {between} between fields, named by the first record"),
                    HeaderFrom::Names(names) => format!("CSV with {between} between fields: {}", names.join(", ")),
                }
            }
        };
        match &file.many {
            None => {
                let names = chain_names(&file.path, file.rotation);
                let chain = if names.len() > 1 { format!(" ({})", fold_names(&names, " → ")) } else { String::new() };
                Some(format!("{}{chain}, {format}", file.written))
            }
            Some(many) => {
                let found = find_stems(&file.written, &many.folder, file.rotation);
                let chains: Vec<String> = found
                    .stems
                    .iter()
                    .filter(|stem| stem.names().len() > 1)
                    .take(CHAINS_SHOWN)
                    .map(|stem| format!("{} is {}", stem.lane, fold_names(&stem.names(), " → ")))
                    .collect();
                let rotated = if chains.is_empty() { String::new() } else { format!(" ({})", chains.join("; ")) };
                let count = found.stems.len();
                let several = if count > 1 { "; order holds within a lane, not between lanes" } else { "" };
                Some(format!("{}, {count} lane(s) now{rotated}, {format}{several}", file.written))
            }
        }
    }

    /// The files of each lane that has several, oldest first.
    pub(crate) fn chains(&self) -> Vec<(String, Vec<String>)> {
        let Source::File(file) = self.source else { return Vec::new() };
        let chains = match &file.many {
            None => vec![(file.written.clone(), chain_names(&file.path, file.rotation))],
            Some(many) => {
                let stems = find_stems(&file.written, &many.folder, file.rotation).stems.into_iter();
                let names = |stem: &FoundStem| stem.names().into_iter().map(str::to_owned).collect();
                stems.map(|stem| (stem.lane.clone(), names(&stem))).collect()
            }
        };
        chains.into_iter().filter(|(_, names)| names.len() > 1).collect()
    }
}
