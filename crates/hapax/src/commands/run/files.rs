//! The lanes of one pattern into one sink: which wait, which are open, which are at rest.
//!
//! Reads: folders, and what progress knew when this process took the pattern. Writes: nothing. Invariant: at most
//! [`MOST_OPEN`] lanes are open at once. Not here: which files a lane has (`hapax-connect`), running it (`fleet`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hapax_connect::file::earlier::{bring_together, earlier_lanes};
use hapax_connect::file::many::{Born, FoundStem, Prospect, find_stems, prospect, unpacked_name};
use hapax_connect::file::{Crowd, FileFormat, FirstSeen, RotationRule, STANDS_AT_MOST};
use hapax_engine::books::{Books as _, OldNames, StateBooks as _};
use hapax_engine::source::{Held, Source as _, SourceError};
use hapax_model::delivery_state::WorkerState;
use hapax_model::position::{Bookmark, DeliveryId};

use super::pattern_lease::PatternLease;
use super::start::SharedLook;
use crate::assemble::{
    AnyBooks, Part, Purpose, is_copy_of_read, is_whole_archive, known_lanes, lanes_gone_back, part_of,
    rests_behind_gone, under_two_names,
};
use crate::config::checked::{FileLane, FileSource};
use crate::config::{Config, Source};
use crate::exit::Failure;

/// How many lanes of a pattern are open at once: each has its own session with the target while it writes.
const MOST_OPEN: usize = 8;
/// How often the content of files at rest is compared with what was read.
const COMPARE_INTERVAL: Duration = Duration::from_secs(30);

/// The file with which each lane begins, by lane.
pub(super) type FirstFiles = HashMap<String, Option<FirstSeen>>;

/// Those that lie there now.
pub(super) fn first_files(file: &FileSource) -> FirstFiles {
    let folder = file.many.as_ref().map(|many| many.folder.clone()).unwrap_or_default();
    let stems = find_stems(&file.written, &folder, file.rotation).stems;
    stems.iter().map(|stem| (stem.lane.clone(), stem.first(Born::Before, &file.format))).collect()
}

/// The lanes of one pattern.
pub(super) struct Files {
    /// Workflow and sink; the lane is the stem's.
    of: DeliveryId,
    pattern: String,
    folder: PathBuf,
    rotation: RotationRule,
    format: FileFormat,
    /// Where each lane is: as progress had it at the start, and as this process has moved it since.
    known: BTreeMap<String, Bookmark>,
    /// Lanes that were seen further than progress is, until each was opened.
    gone_back: BTreeSet<String>,
    /// Lanes with nothing to read, and how their files looked then.
    at_rest: HashMap<String, String>,
    /// How the files of a lane looked when it was opened last, and where it was.
    tried: HashMap<String, (String, Option<Bookmark>)>,
    /// The file with which a lane begins that nobody has read yet: it waits with the file, not with its name.
    first_seen: FirstFiles,
    /// Archives that are being made beside their originals: how each looked, and since when.
    being_made: HashMap<String, (String, Instant)>,
    born: Born,
    open: HashSet<String>,
    /// Lanes that stopped for a reason: they are not tried again by themselves.
    stopped: HashSet<String>,
    waiting: VecDeque<FileLane>,
    /// The names of those.
    queued: HashSet<String>,
    crowd: Crowd,
    look: SharedLook,
    /// What could not be looked at, each said once.
    said: BTreeSet<String>,
    compare_at: Instant,
    lease: PatternLease,
}

impl Files {
    /// Reads what progress knows, and looks for files. The pattern's lease is ours by now.
    ///
    /// # Errors
    /// Why not, and the lease, which is still ours.
    pub(super) async fn of(
        part: &Part<'_>,
        config: &Config,
        first_seen: FirstFiles,
        lease: PatternLease,
    ) -> Result<Self, (Failure, PatternLease)> {
        let Source::File(file) = part.source else { unreachable!("only files have patterns") };
        let folder = file.many.as_ref().map(|many| many.folder.clone()).unwrap_or_default();
        let (workflow, sink) = (part.workflow.id.clone(), part.sink.name.clone());
        let known = match known_lanes(part, config).await {
            Ok(known) => bring_over_earlier_lanes(part, config, file, known).await,
            Err(failure) => Err(failure),
        };
        let (known, gone_back) = match (known, lanes_gone_back(part, config).await) {
            (Ok(known), Ok(gone_back)) => (known, gone_back),
            (Err(failure), _) | (_, Err(failure)) => return Err((failure, lease)),
        };
        let mut files = Self {
            of: DeliveryId { workflow, sink, lane: String::new() },
            pattern: file.written.clone(),
            folder,
            rotation: file.rotation,
            format: file.format.clone(),
            known,
            gone_back,
            at_rest: HashMap::new(),
            tried: HashMap::new(),
            first_seen,
            being_made: HashMap::new(),
            born: Born::Before,
            open: HashSet::new(),
            stopped: HashSet::new(),
            waiting: VecDeque::new(),
            queued: HashSet::new(),
            crowd: Crowd::default(),
            look: SharedLook::default(),
            said: BTreeSet::new(),
            compare_at: Instant::now(),
            lease,
        };
        if let Err(failure) = files.look(config).await {
            return Err((failure, files.lease));
        }
        let (waiting, read_before) = (files.waiting.len(), files.at_rest.len());
        tracing::info!(
            workflow = files.of.workflow,
            pattern = files.pattern,
            new = waiting,
            read_before,
            "looked for files"
        );
        // Once lanes have progress, a stem that appears later is wholly new.
        files.born = Born::Since;
        Ok(files)
    }

    /// Looks for stems that are new, for files that have changed since they were read, and now and then into those.
    ///
    /// # Errors
    /// If one file lies under two names: nothing is opened, since both would deliver it.
    pub(super) async fn look(&mut self, config: &Config) -> Result<(), Failure> {
        let mut found = find_stems(&self.pattern, &self.folder, self.rotation);
        let known = self.known.keys().chain(&self.gone_back).map(String::as_str);
        found.add_known(known, &self.pattern, &self.folder, self.rotation);
        if let Some((one, other, name)) = found.twice() {
            return Err(under_two_names(&self.of.workflow, one, other, name));
        }
        for unreadable in found.unreadable.iter().chain(&found.misnamed) {
            if self.said.insert(unreadable.clone()) {
                tracing::warn!(
                    workflow = self.of.workflow,
                    pattern = self.pattern,
                    "cannot be looked at, and may be a lane: {unreadable}"
                );
            }
        }
        self.said.retain(|said| found.unreadable.contains(said) || found.misnamed.contains(said));
        for stem in &found.stems {
            if !self.is_read_copy(config, stem) && !self.rests_behind_gone(config, stem) {
                self.look_at(stem);
            }
        }
        if found.unreadable.is_empty() {
            self.look_for_vanished(&found.stems);
        }
        if Instant::now() >= self.compare_at {
            self.compare_at = Instant::now() + COMPARE_INTERVAL;
            self.compare_at_rest(config, &found.stems).await;
        }
        self.crowd.set(self.waiting.len());
        Ok(())
    }

    fn is_busy(&self, lane: &str) -> bool {
        self.open.contains(lane) || self.queued.contains(lane) || self.stopped.contains(lane)
    }

    /// Whether a stem that nobody has read is, or may be, a compressed copy of one that was read to its end.
    fn is_read_copy(&mut self, config: &Config, stem: &FoundStem) -> bool {
        if self.known.contains_key(&stem.lane) || self.is_busy(&stem.lane) {
            return false;
        }
        let signature = stem.signature();
        if self.at_rest.get(&stem.lane) == Some(&signature) {
            return true;
        }
        // Its original is gone, and is being read to its end by the handle that is open.
        let original = unpacked_name(&stem.lane).unwrap_or_default();
        if self.open.contains(original) && !self.folder.join(original).exists() {
            return true;
        }
        let Some(part) = part_of(config, &self.of) else { return false };
        let (name, path, crowd) = (stem.lane.clone(), stem.path.clone(), self.crowd.clone());
        let lane = FileLane { name, path, first_seen: None, crowd };
        if self.is_being_made(&part, &lane, &signature) {
            return true;
        }
        if self.tried.contains_key(&stem.lane) || !is_copy_of_read(&part, &lane, &self.known) {
            return false;
        }
        tracing::info!(
            workflow = self.of.workflow,
            lane = stem.lane,
            "a compressed copy of a file that was read to its end: nothing to read"
        );
        self.at_rest.insert(lane.name, signature);
        true
    }

    /// Whether an archive is being made of a file of the pattern that lies beside it: until it is whole nobody can say what it
    /// holds. When it is, one more look is left to whoever makes it, to remove the original.
    fn is_being_made(&mut self, part: &Part<'_>, lane: &FileLane, signature: &str) -> bool {
        let original = unpacked_name(&lane.name).unwrap_or_default();
        let is_ours = self.known.contains_key(original) || self.is_busy(original);
        if !is_ours || self.tried.contains_key(&lane.name) || !self.folder.join(original).exists() {
            return false;
        }
        let now = (signature.to_owned(), Instant::now());
        match self.being_made.get_mut(&lane.name) {
            Some(seen) if seen.0 != signature => {
                *seen = now; // it grows
                return true;
            }
            Some((_, since)) if since.elapsed() >= STANDS_AT_MOST => return false,
            Some(_) | None => {}
        }
        if is_whole_archive(part, lane) {
            return self.being_made.remove(&lane.name).is_some();
        }
        self.being_made.entry(lane.name.clone()).or_insert(now);
        true
    }

    /// Whether the file of a lane is gone with a person's consent, and what lies there of its chain was read.
    fn rests_behind_gone(&mut self, config: &Config, stem: &FoundStem) -> bool {
        let Some(at) = self.known.get(&stem.lane).filter(|_| !self.is_busy(&stem.lane)) else { return false };
        let signature = stem.signature();
        let unfinished = prospect(at, Some(stem)) == Prospect::Unfinished && !self.gone_back.contains(&stem.lane);
        let tried = self.tried.get(&stem.lane).is_some_and(|(seen, _)| *seen == signature);
        let Some(part) = part_of(config, &self.of).filter(|_| unfinished && !tried) else { return false };
        let (name, path, crowd) = (stem.lane.clone(), stem.path.clone(), self.crowd.clone());
        let rests = rests_behind_gone(&part, &FileLane { name, path, first_seen: None, crowd }, at);
        if rests {
            self.at_rest.insert(stem.lane.clone(), signature);
        }
        rests
    }

    fn look_at(&mut self, stem: &FoundStem) {
        if self.is_busy(&stem.lane) {
            return;
        }
        let signature = stem.signature();
        let known = self.known.get(&stem.lane);
        if let Some(bookmark) = known {
            if self.at_rest.get(&stem.lane) == Some(&signature) {
                return;
            }
            if prospect(bookmark, Some(stem)) == Prospect::Finished && !self.gone_back.contains(&stem.lane) {
                self.at_rest.insert(stem.lane.clone(), signature);
                return;
            }
        }
        let now = (signature, known.cloned());
        // It was opened as it is now, and had nothing to give: a line that is not complete, for example.
        if self.tried.get(&stem.lane) == Some(&now) {
            return;
        }
        let born = self.born;
        let first = self.first_seen.entry(stem.lane.clone()).or_insert_with(|| stem.first(born, &self.format)).clone();
        self.tried.insert(stem.lane.clone(), now);
        self.wait(FileLane {
            name: stem.lane.clone(),
            path: stem.path.clone(),
            first_seen: first,
            crowd: self.crowd.clone(),
        });
    }

    /// Lanes that progress knows and whose files are gone, unread, or that were further once: their delivery says so.
    fn look_for_vanished(&mut self, stems: &[FoundStem]) {
        let there: HashSet<&str> = stems.iter().map(|stem| stem.lane.as_str()).collect();
        let gone: BTreeSet<String> = self
            .known
            .iter()
            .filter(|(_, bookmark)| prospect(bookmark, None) == Prospect::Vanished)
            .map(|(lane, _)| lane)
            .chain(&self.gone_back)
            .filter(|lane| !there.contains(lane.as_str()) && !self.is_busy(lane))
            .cloned()
            .collect();
        for name in gone {
            let tried = (String::new(), self.known.get(&name).cloned());
            if self.tried.get(&name) != Some(&tried) {
                self.tried.insert(name.clone(), tried);
                let path = self.folder.join(&name);
                self.wait(FileLane { name, path, first_seen: None, crowd: self.crowd.clone() });
            }
        }
    }

    /// A file at rest that was rewritten in place at the same size, or grew behind another: its delivery says so.
    async fn compare_at_rest(&mut self, config: &Config, stems: &[FoundStem]) {
        let Some(part) = part_of(config, &self.of) else { return };
        for stem in stems {
            let rests = self.at_rest.contains_key(&stem.lane) && !self.is_busy(&stem.lane);
            let Some(bookmark) = self.known.get(&stem.lane).filter(|_| rests) else { continue };
            let lane = FileLane {
                name: stem.lane.clone(),
                path: stem.path.clone(),
                first_seen: None,
                crowd: self.crowd.clone(),
            };
            let mut source = Part { file: Some(&lane), ..part }.open_source();
            let same = match source.hold(bookmark).await {
                Ok(Held::Yes) | Err(SourceError::Unavailable { .. }) => true,
                Ok(Held::OtherIncarnation { .. } | Held::Copied { .. } | Held::Gone { .. })
                | Err(SourceError::Gap { .. } | SourceError::Unreadable { .. }) => false,
            };
            drop(source);
            if !same {
                self.at_rest.remove(&stem.lane);
                self.wait(lane);
            }
        }
    }

    fn wait(&mut self, lane: FileLane) {
        self.at_rest.remove(&lane.name);
        self.queued.insert(lane.name.clone());
        self.waiting.push_back(lane);
    }

    /// The next lanes to open.
    pub(super) fn due(&mut self) -> Vec<(DeliveryId, FileLane, SharedLook)> {
        let mut due = Vec::new();
        while self.open.len() < MOST_OPEN
            && let Some(lane) = self.waiting.pop_front()
        {
            self.queued.remove(&lane.name);
            self.open.insert(lane.name.clone());
            due.push((DeliveryId { lane: lane.name.clone(), ..self.of.clone() }, lane, SharedLook::clone(&self.look)));
        }
        self.crowd.set(self.waiting.len());
        due
    }

    pub(super) fn is_of(&self, id: &DeliveryId) -> bool {
        id.workflow == self.of.workflow && id.sink == self.of.sink
    }

    pub(super) fn workflow(&self) -> &str {
        &self.of.workflow
    }

    /// The delivery that stands for the whole pattern.
    pub(super) fn id(&self) -> DeliveryId {
        DeliveryId { lane: self.pattern.clone(), ..self.of.clone() }
    }

    /// Whether another worker has taken the pattern.
    pub(super) fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    /// Says that all files were looked through.
    pub(super) async fn note_opened(&self) {
        self.lease.note(WorkerState::Running).await;
    }

    /// Gives the pattern to whoever stands by.
    pub(super) async fn release(self) {
        self.lease.release().await;
    }

    /// A lane came to its end, or has made room for another.
    pub(super) fn finished(&mut self, lane: &str, at: Option<&Bookmark>) {
        self.open.remove(lane);
        if let Some(at) = at {
            self.known.insert(lane.to_owned(), at.clone());
            self.gone_back.remove(lane);
        }
    }

    /// Lanes that have stopped may be tried again.
    pub(super) fn forgive(&mut self) {
        for lane in self.stopped.drain() {
            self.tried.remove(&lane);
        }
    }

    /// A lane ended otherwise.
    pub(super) fn stopped(&mut self, lane: &str) {
        self.open.remove(lane);
        self.stopped.insert(lane.to_owned());
    }
}

/// Before lanes were stems, each rotated file was a lane of its own, `x#2` or `x.1`: together they are one lane now.
async fn bring_over_earlier_lanes(
    part: &Part<'_>,
    config: &Config,
    file: &FileSource,
    mut known: BTreeMap<String, Bookmark>,
) -> Result<BTreeMap<String, Bookmark>, Failure> {
    let folder = file.many.as_ref().map(|many| many.folder.clone()).unwrap_or_default();
    let found = find_stems(&file.written, &folder, file.rotation);
    let is_stem = |lane: &str| file.rotation != RotationRule::Suffixes || found.stems.iter().any(|s| s.lane == lane);
    let workflow = &part.workflow.id;
    for (stem, lanes) in earlier_lanes(&known, is_stem) {
        let at = found.stems.iter().find(|found| found.lane == stem);
        let together = bring_together(at, &lanes, &file.format).map_err(|why| {
            let names: Vec<&str> = lanes.iter().map(|(lane, _)| lane.as_str()).collect();
            let message = format!(
                "progress of workflow {workflow} knows lanes of an earlier version, in which every rotated file was a lane of its \
                 own: {}. They are one lane now, \"{stem}\", and cannot be brought together: {why}. Let the earlier version deliver \
                 what there is; see the page of HX3015 for the other way",
                names.join(", ")
            );
            Failure::new("HX3015", message).with_exit(5)
        })?;
        let id =
            |lane: &str| DeliveryId { workflow: workflow.clone(), sink: part.sink.name.clone(), lane: lane.to_owned() };
        let old: Vec<DeliveryId> = together.lanes.iter().map(|lane| id(lane)).collect();
        let Some(mut books) = AnyBooks::of_part(part, config, Purpose::Change).await? else { continue };
        books.adopt_lanes(&old, &id(&stem), &together.at, None, OldNames::Fenced).await?;
        if let (Some(mut state), Some(last)) = (AnyBooks::of_state(config, Purpose::Change).await?, old.last()) {
            state.adopt_lane_memory(last, &id(&stem)).await?;
        }
        let before = together.lanes.join(", ");
        tracing::info!(workflow, lane = stem, before, at = %together.at, "lanes of an earlier version are one lane now");
        known.retain(|lane, _| !together.lanes.contains(lane));
        known.insert(stem, together.at);
    }
    Ok(known)
}
