//! The same rows by whole deliveries: generated, decoded, keyed, delivered, with books and progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use hapax_connect::generate::{GenerateConfig, GenerateLane, GenerateSource};
use hapax_connect::sqlite::state::SqliteState;
use hapax_connect::table::config::TableConfig;
use hapax_engine::runtime::{Delivery, DeliveryEnd, Meter, Settings, deliver};
use hapax_engine::sink::{IdempotentSink, TransactionalSink};
use hapax_engine::state_progress::{AfterCrash, StateProgress, WatchKeys};
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::mode::ConflictMode;
use hapax_model::position::DeliveryId;

use super::contest::{By, Mode, per_commit};
use super::settings;

static RUNS: AtomicU64 = AtomicU64::new(0);

/// A database's sinks, as deliveries use them.
pub(crate) trait Sinks {
    type Config: Clone;
    type Pool: Clone;
    type Transactional: TransactionalSink;
    type Idempotent: IdempotentSink;

    fn config(url: &str, table: &str) -> Self::Config;
    fn table(config: &mut Self::Config) -> &mut TableConfig;
    fn pool(config: &Self::Config) -> Self::Pool;
    fn transactional(config: Self::Config, pool: Self::Pool, id: DeliveryId) -> Self::Transactional;
    fn idempotent(config: Self::Config, pool: Self::Pool, strategy: DedupStrategy) -> Self::Idempotent;
}

/// Deliveries into one table, one per lane, ready to run.
pub(crate) struct Deliveries<S: Sinks> {
    config: S::Config,
    pool: S::Pool,
    state: SqliteState,
    settings: Vec<Settings>,
    events: u64,
    by: By,
    meters: Vec<Arc<Meter>>,
    /// Last: the state store's file is closed before.
    _folder: tempfile::TempDir,
}

/// What a delivery into this table is told.
pub(crate) fn config<S: Sinks>(url: &str, table: &str, mode: Mode) -> S::Config {
    let mut config = S::config(url, table);
    S::table(&mut config).mode = Some(match mode {
        Mode::Upsert => ConflictMode::Update,
        Mode::Append => ConflictMode::Append,
    });
    if mode == Mode::Upsert {
        S::table(&mut config).key_fields = vec![FieldPath::of_name("order_id")];
    }
    config
}

pub(crate) fn keyer(mode: Mode) -> Keyer {
    let need = if mode == Mode::Append { KeyNeed::Nothing } else { KeyNeed::Fields };
    Keyer::new(DedupStrategy::content_fields(vec![FieldPath::of_name("order_id")]), Uniqueness::WithVersion, need)
}

impl<S: Sinks> Deliveries<S> {
    /// `lanes` deliveries of `events` events together.
    pub(crate) async fn new(url: &str, table: &str, mode: Mode, by: By, events: u64, lanes: u64) -> Self {
        // Every run is a delivery of its own: what another left behind is not its progress.
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let config = config::<S>(url, table, mode);
        let folder = tempfile::tempdir().expect("a folder");
        let state =
            SqliteState::open(&folder.path().join("state.db"), Duration::from_secs(5)).await.expect("a state store");
        let of_lane = |number: u64| {
            let mut settings = Settings { keyer: keyer(mode), ..settings::keyed_by("order_id") };
            settings.epoch.max_events = per_commit() as u64;
            settings.id.workflow = format!("bench {run}");
            settings.id.lane = lane(number, lanes).name();
            settings.configured = [(settings.id.workflow.clone(), settings.id.sink.clone())].into();
            settings
        };
        let meters = (0..lanes).map(|_| Arc::new(Meter::default())).collect();
        Self {
            pool: S::pool(&config),
            config,
            state,
            settings: (0..lanes).map(of_lane).collect(),
            events,
            by,
            meters,
            _folder: folder,
        }
    }

    /// The meters of the deliveries, readable while they run.
    pub(crate) fn meters(&self) -> Vec<Arc<Meter>> {
        self.meters.clone()
    }

    /// Runs all of them to their end.
    pub(crate) async fn run(&self) {
        let lanes = self.settings.len() as u64;
        let ends = join_all((0..lanes).map(|number| self.run_one(lane(number, lanes)))).await;
        assert!(ends.iter().all(|end| *end == DeliveryEnd::Finished), "{ends:?}");
    }

    async fn run_one(&self, lane: GenerateLane) -> DeliveryEnd {
        let (at, (config, pool)) = (lane.number as usize, (self.config.clone(), self.pool.clone()));
        let settings = self.settings[at].clone();
        match self.by {
            By::Bare => unreachable!("the bare loop is no delivery"),
            By::ExactlyOnce => {
                let sink = S::transactional(config, pool, settings.id.clone());
                self.deliver(settings, sink, lane).await
            }
            By::AtLeastOnce => {
                let sink = S::idempotent(config, pool, settings.keyer.strategy().clone());
                let (after_crash, interval) = (AfterCrash::WriteAgain, Duration::from_secs(1));
                let (id, store) = (settings.id.clone(), self.state.clone());
                let sink = StateProgress::new(id, sink, store, after_crash, WatchKeys::No, interval);
                self.deliver(settings, sink, lane).await
            }
        }
    }

    async fn deliver<K: TransactionalSink>(&self, settings: Settings, sink: K, lane: GenerateLane) -> DeliveryEnd {
        let source = GenerateSource::new(GenerateConfig { count: Some(self.events), lane, ..Default::default() });
        let control = hapax_engine::runtime::Control {
            meter: Arc::clone(&self.meters[lane.number as usize]),
            ..settings::control()
        };
        let delivery = Delivery { settings, source, sink, state: Some(self.state.clone()) };
        tokio::spawn(deliver(delivery, control)).await.expect("no panic")
    }
}

fn lane(number: u64, of: u64) -> GenerateLane {
    let small = |n: u64| u32::try_from(n).expect("few lanes");
    GenerateLane { number: small(number), of: small(of) }
}
