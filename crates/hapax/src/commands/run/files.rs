//! The files of one pattern into one sink: which wait, which are open, which were read.
//!
//! Reads: directories, and once what progress knows. Writes: nothing. Invariant: at most [`MOST_OPEN`] are open at once,
//! and of files that had one path, one. Not here: which lane a file is (`hapax-connect`), running it (`fleet`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use hapax_connect::file::many::{KnownLane, Prospect, RolledLane, base_name, list, roll};
use hapax_connect::file::{Crowd, is_compressed};
use hapax_model::position::{Bookmark, DeliveryId};

use super::start::SharedLook;
use crate::assemble::{Part, known_lanes};
use crate::config::checked::FileLane;
use crate::config::{Config, Source};
use crate::exit::Failure;

/// How many files of a pattern are open at once: each has its own session with the target while it writes.
const MOST_OPEN: usize = 8;

/// The files of one pattern.
pub(super) struct Files {
    /// Workflow and sink; the lane is the file's.
    of: DeliveryId,
    pattern: String,
    folder: PathBuf,
    /// What progress knew at the start, and what was opened since.
    known: Vec<KnownLane>,
    /// How long a file was when it had been read to its end; none for an archive, which is read once.
    read: HashMap<String, Option<u64>>,
    open: HashMap<String, PathBuf>,
    /// Lanes that stopped for a reason: they are not tried again by themselves.
    stopped: HashSet<String>,
    waiting: VecDeque<FileLane>,
    /// The names of those.
    queued: HashSet<String>,
    crowd: Crowd,
    look: SharedLook,
}

impl Files {
    pub(super) async fn of(part: &Part<'_>, config: &Config) -> Result<Self, Failure> {
        let Source::File(file) = part.source else { unreachable!("only files have patterns") };
        let folder = file.many.as_ref().map(|many| many.folder.clone()).unwrap_or_default();
        let (workflow, sink) = (part.workflow.id.clone(), part.sink.name.clone());
        let mut files = Self {
            of: DeliveryId { workflow, sink, lane: String::new() },
            pattern: file.written.clone(),
            folder,
            known: known_lanes(part, config).await?,
            read: HashMap::new(),
            open: HashMap::new(),
            stopped: HashSet::new(),
            waiting: VecDeque::new(),
            queued: HashSet::new(),
            crowd: Crowd::default(),
            look: SharedLook::default(),
        };
        files.begin();
        Ok(files)
    }

    /// The first look: what was read before is not read again, and what vanished unread is said.
    fn begin(&mut self) {
        let rolled = self.roll();
        let count = |prospect: Prospect| rolled.iter().filter(|lane| lane.prospect == prospect).count();
        let (new, read_before) = (count(Prospect::New), count(Prospect::Finished));
        tracing::info!(workflow = self.of.workflow, pattern = self.pattern, new, read_before, "looked for files");
        for lane in rolled {
            match lane.prospect {
                Prospect::Finished => {
                    let length = lane.sighted.map(|sighted| sighted.length);
                    self.read.insert(lane.name, if is_compressed(&lane.path) { None } else { length });
                }
                Prospect::Gone => {}
                Prospect::New | Prospect::Unfinished | Prospect::Vanished => self.wait(lane),
            }
        }
        self.crowd.set(self.waiting.len());
    }

    fn roll(&self) -> Vec<RolledLane> {
        roll(&self.known, &list(&self.pattern, &self.folder), &self.folder)
    }

    /// A file that is new is known from now on, by what tells it from others.
    fn wait(&mut self, lane: RolledLane) {
        if let (Prospect::New, Some(sighted)) = (lane.prospect, &lane.sighted) {
            let incarnation = format!("{}, no record yet", sighted.identity());
            self.known.push(KnownLane { name: lane.name.clone(), incarnation, offset: 0 });
        }
        self.queued.insert(lane.name.clone());
        self.waiting.push_back(FileLane { name: lane.name, path: lane.path, crowd: self.crowd.clone() });
    }

    /// Looks for files that are new, and for files that have grown since they were read.
    pub(super) fn look(&mut self) {
        for lane in self.roll() {
            let busy = self.open.contains_key(&lane.name) || self.queued.contains(&lane.name);
            if busy || self.stopped.contains(&lane.name) {
                continue;
            }
            let again = match (self.read.get(&lane.name), &lane.sighted) {
                (Some(Some(read)), Some(sighted)) => *read != sighted.length,
                (Some(None), _) | (_, None) => false,
                (None, Some(_)) => true,
            };
            if again {
                self.wait(lane);
            }
        }
        self.crowd.set(self.waiting.len());
    }

    /// The next files to open: those of one path one after the other.
    pub(super) fn due(&mut self) -> Vec<(DeliveryId, FileLane, SharedLook)> {
        let (mut due, mut later) = (Vec::new(), VecDeque::new());
        while self.open.len() < MOST_OPEN
            && let Some(lane) = self.waiting.pop_front()
        {
            if self.open.keys().any(|open| base_name(open) == base_name(&lane.name)) {
                later.push_back(lane);
                continue;
            }
            self.queued.remove(&lane.name);
            self.open.insert(lane.name.clone(), lane.path.clone());
            due.push((DeliveryId { lane: lane.name.clone(), ..self.of.clone() }, lane, SharedLook::clone(&self.look)));
        }
        later.append(&mut self.waiting);
        self.waiting = later;
        self.crowd.set(self.waiting.len());
        due
    }

    pub(super) fn is_of(&self, id: &DeliveryId) -> bool {
        id.workflow == self.of.workflow && id.sink == self.of.sink
    }

    pub(super) fn workflow(&self) -> &str {
        &self.of.workflow
    }

    /// A lane came to the end of its file.
    pub(super) fn finished(&mut self, lane: &str, at: Option<&Bookmark>) {
        let packed = self.open.remove(lane).is_some_and(|path| is_compressed(&path));
        self.read.insert(lane.to_owned(), if packed { None } else { at.map(|at| at.position.offset) });
    }

    /// Lanes that have stopped may be tried again.
    pub(super) fn forgive(&mut self) {
        self.stopped.clear();
    }

    /// A lane ended otherwise.
    pub(super) fn stopped(&mut self, lane: &str) {
        self.open.remove(lane);
        self.stopped.insert(lane.to_owned());
    }
}
