//! Runs one test: the real runtime over memory, plainly, in other batch sizes, and with workers ended at every cut.
//!
//! Reads: a test and the configuration. Writes: nothing outside. Invariant: every run reads the same inputs and keeps
//! what the runtime committed. Not here: what should have come out (`judge`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hapax_engine::decode::{UnknownFields, path_inside};
use hapax_engine::memory::MemoryBudget;
use hapax_engine::runtime::{Control, Delivery, DeliveryEnd, Settings, Stop, deliver};
use hapax_engine::source::{Follow, Source as _};
use hapax_engine::state::TakeOver;
use hapax_model::field::FieldPath;
use hapax_model::key::{KeyNeed, Keyer, Uniqueness};
use hapax_model::mode::ConflictMode;
use hapax_model::rejects::{OnReject, RejectRule};
use tokio::sync::watch;

use super::input::{Inputs, inputs};
use super::memory::{Ended, Kept, KeyShown, MemorySink, MemorySource, Store, View};
use super::shape::fields_of;
use crate::assemble::{AnyState, How, Part, plan};
use crate::config::{Columns, Config, Fixture};

/// Events per epoch, besides all at once.
const BATCH_SIZES: [usize; 4] = [1, 2, 3, 7];
/// More cuts than this in one run are not made: a smaller number of larger batches finds the same.
const MOST_CUTS: usize = 2000;
/// The memory that one run may borrow.
const MEMORY: usize = 64 << 20;
/// Long enough that no epoch of a test closes by time.
const NO_INTERVAL: Duration = Duration::from_secs(3600);

/// One way to run a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    /// Events per epoch; none is all.
    pub(super) batch: Option<usize>,
    pub(super) ended: Ended,
}

impl Way {
    /// All at once, by one worker.
    pub(super) const PLAIN: Self = Self { batch: None, ended: Ended::Never };
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.batch {
            None => f.write_str("all in one batch")?,
            Some(size) => write!(f, "in batches of {size}")?,
        }
        match self.ended {
            Ended::Never => Ok(()),
            Ended::AroundCommits => f.write_str(", the worker ended before and after each commit"),
        }
    }
}

/// What a run gave.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) way: Way,
    /// Or why it stopped.
    pub(super) result: Result<Kept, Stop>,
}

/// A test of one sink, ready to run.
pub(super) struct Trial<'a> {
    part: Part<'a>,
    fixture: &'a Fixture,
    settings: Settings,
    source: MemorySource,
}

impl<'a> Trial<'a> {
    pub(super) fn new(config: &Config, part: Part<'a>, fixture: &'a Fixture) -> Self {
        let how = How::new(config, Follow::No, TakeOver::Never);
        let mut settings = part.settings_unread(&how);
        settings.epoch.interval = NO_INTERVAL;
        // A test says itself which inputs die; a share of them, or `columns: strict`, is a matter of the live table.
        settings.rejects = RejectRule::new(OnReject::DeadLetter, 1000);
        settings.unknown_fields = UnknownFields::Counted;
        let (identity, lane) = (part.open_source().identity(), settings.id.lane.clone());
        let Inputs { bytes, format } = inputs(&part, &fixture.input);
        let source = MemorySource { inputs: bytes.into(), format, lane, identity, next: 0 };
        Self { part, fixture, settings, source }
    }

    /// What it is about.
    pub(super) const fn part(&self) -> Part<'a> {
        self.part
    }

    /// How many inputs there are; a header is none.
    pub(super) fn inputs(&self) -> usize {
        self.source.inputs.len()
    }

    /// Whether keys hold the epoch because the configuration says so, and may.
    pub(super) fn keys_hold_epoch(&self) -> bool {
        plan::strategy(&self.part.workflow.delivery).contains_epoch()
    }

    /// Every way of running it, the plain one first. One that cannot be told from another is left out.
    pub(super) fn ways(&self) -> Vec<Way> {
        let inputs = self.inputs();
        let sizes = BATCH_SIZES.into_iter().filter(|size| *size < inputs && inputs / size <= MOST_CUTS);
        let sizes: Vec<Option<usize>> = std::iter::once(None).chain(sizes.map(Some)).collect();
        let all = |ended: Ended| sizes.iter().map(move |batch| Way { batch: *batch, ended }).collect::<Vec<_>>();
        [all(Ended::Never), all(Ended::AroundCommits)].concat()
    }

    /// Runs it in every way.
    pub(super) fn run(&self) -> Vec<Ran> {
        let view = Arc::new(self.view());
        self.ways()
            .into_iter()
            .map(|way| Ran { way, result: self.run_once(&view, way).map(|(kept, _)| kept) })
            .collect()
    }

    /// What is kept of events: mapped columns, the fields that the test names, and all others that come.
    fn view(&self) -> View {
        let (workflow, table) = (self.part.workflow, self.part.table());
        let deduplication = &workflow.delivery.deduplication;
        let unique = if deduplication.unique { Uniqueness::FieldsAlone } else { Uniqueness::WithVersion };
        let key_shown = match plan::mode_without_table(table, &workflow.delivery) {
            ConflictMode::Update | ConflictMode::Newer => KeyShown::Entity,
            ConflictMode::Append | ConflictMode::Ignore => KeyShown::Event,
        };
        let keyer = Keyer::new(plan::strategy(&workflow.delivery), unique, KeyNeed::EntityAndEvent);
        let mapped = match &table.columns {
            Columns::Mapped(map) => map.clone(),
            Columns::ByName | Columns::Strict => Vec::new(),
        };
        let mut names = self.first_names(&mapped, keyer.fields());
        let identity = self.source.identity.clone();
        loop {
            let by_name = names.iter().map(|name| (name.clone(), FieldPath::of_name(name)));
            let columns = mapped.iter().cloned().chain(by_name).collect();
            let view = View { columns, keyer: keyer.clone(), key_shown, identity: identity.clone() };
            // Fields that nothing took are named by the runtime itself; it is asked again until there are none.
            let Ok((_, unknown)) = self.run_once(&Arc::new(view.clone()), Way::PLAIN) else { return view };
            let before = names.len();
            // A column is made of a whole field; of one that is mapped in parts the others are left out, as in a table.
            names.extend(unknown.into_iter().filter(|name| path_inside(name).is_none()));
            if names.len() == before {
                return view;
            }
        }
    }

    /// Fields that are looked for from the start: those of the test, and those that the runtime wants for itself. What a
    /// column was mapped from is no field of the target unless the test says so.
    fn first_names(&self, mapped: &[(String, FieldPath)], keys: &[FieldPath]) -> BTreeSet<String> {
        let root = |path: &FieldPath| path.names().first().cloned();
        let wanted = keys.iter().chain(self.settings.delete_when.as_ref().map(|condition| &condition.path));
        let taken: BTreeSet<String> = mapped.iter().filter_map(|(_, path)| root(path)).collect();
        let mut names: BTreeSet<String> = wanted.filter_map(root).filter(|name| !taken.contains(name)).collect();
        names.extend(self.fixture.expect.iter().chain(&self.fixture.deletes).flat_map(|it| fields_of(it).into_keys()));
        names.retain(|name| mapped.iter().all(|(column, _)| column != name));
        names
    }

    /// One run, with as many workers as it takes; and the fields that nothing took.
    fn run_once(&self, view: &Arc<View>, way: Way) -> Result<(Kept, Vec<String>), Stop> {
        let store = Arc::new(Store::default());
        let mut settings = self.settings.clone();
        settings.epoch.max_events = way.batch.unwrap_or(usize::MAX) as u64;
        loop {
            let sink = MemorySink::new(settings.id.clone(), Arc::clone(&store), Arc::clone(view), way.ended);
            let delivery = Delivery { settings: settings.clone(), source: self.source.clone(), sink, state: None };
            match work(delivery, &store) {
                Worked::Ended => {}
                Worked::Done(unknown) => return Ok((store.kept(), unknown)),
                Worked::Stopped(stop) => return Err(stop),
            }
        }
    }
}

/// How a worker's life went.
enum Worked {
    /// It was ended in the middle.
    Ended,
    /// It delivered everything. These fields nothing took.
    Done(Vec<String>),
    Stopped(Stop),
}

/// One worker's life, on a runtime of its own: when that goes, nothing of the worker is left.
fn work(delivery: Delivery<MemorySource, MemorySink, AnyState>, store: &Store) -> Worked {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Worked::Stopped(no_runtime(&error)),
    };
    let (_stop, stopped) = watch::channel(false);
    let control = Control { stop: stopped, memory: MemoryBudget::new(MEMORY), meter: Arc::default() };
    let meter = Arc::clone(&control.meter);
    let end = runtime.block_on(async {
        tokio::select! {
            end = Box::pin(deliver(delivery, control)) => Some(end),
            () = store.over.notified() => None,
        }
    });
    match end {
        None => Worked::Ended,
        Some(DeliveryEnd::Stopped(stop)) => Worked::Stopped(stop),
        Some(DeliveryEnd::Finished | DeliveryEnd::Drained) => {
            Worked::Done(meter.read().unknown_fields.into_iter().map(|(name, _)| name).collect())
        }
    }
}

fn no_runtime(error: &std::io::Error) -> Stop {
    Stop { exit_code: 1, code: "HX5009", message: format!("no worker could be started: {error}") }
}
