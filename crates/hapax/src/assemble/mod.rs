//! From a checked configuration to deliveries that can run.
//!
//! Reads: the configuration, and the live tables where a command wants to know them. Writes: nothing but what opening
//! a state store makes. Invariant: what `check` says is what `run` does, because both come from here.

mod any;
mod books;
pub(crate) mod plan;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use hapax_connect::file::{FileSource, FileSourceConfig};
use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_connect::sqlite::config as sqlite_config;
use hapax_connect::sqlite::inspect::{LiveCheck, check_live};
use hapax_connect::sqlite::state::SqliteState;
use hapax_connect::sqlite::{SqliteIdempotentSink, SqliteSink};
use hapax_engine::runtime::{Delivery, Settings};
use hapax_engine::source::{Follow, Source as _, StartAt};
use hapax_engine::state::TakeOver;
use hapax_engine::state_progress::{Order, StateProgress, WatchKeys};
use hapax_model::audit::{Audit, KeyIndex};
use hapax_model::delivery::Guarantee;
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::position::DeliveryId;

pub(crate) use any::{AnySink, AnySource};
pub(crate) use books::{AnyBooks, Place};
pub(crate) use rows::AnyRows;

use crate::config::{Columns, Config, Sink, Source, SqliteSink as SqliteSinkConfig, StateUrl, Target, Workflow};
use crate::exit::Failure;

/// How long the state store waits for its own lock.
const STATE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// One sink of one workflow: the unit that `check` judges and `run` starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) workflow: &'a Workflow,
    pub(crate) source: &'a Source,
    pub(crate) sink: &'a Sink,
}

/// All complete workflows' sinks, in the order of the configuration.
pub(crate) fn parts(config: &Config) -> impl Iterator<Item = Part<'_>> {
    config
        .workflows
        .iter()
        .filter_map(|w| w.source.as_ref().map(|source| (w, source)))
        .flat_map(|(workflow, source)| workflow.sinks.iter().map(move |sink| Part { workflow, source, sink }))
}

/// The state store, if the configuration has one.
pub(crate) async fn open_state(config: &Config) -> Result<Option<SqliteState>, Failure> {
    match &config.state {
        StateUrl::Sqlite(path) => Ok(Some(SqliteState::open(path, STATE_BUSY_TIMEOUT).await?)),
        StateUrl::None => Ok(None),
    }
}

impl<'a> Part<'a> {
    /// The SQLite half of the sink; the only kind there is yet.
    pub(crate) const fn sqlite(&self) -> &'a SqliteSinkConfig {
        match &self.sink.target {
            Target::Sqlite(sqlite) => sqlite,
        }
    }

    /// The delivery's id.
    pub(crate) fn id(&self) -> DeliveryId {
        let lane = self.open_source().lane().to_owned();
        DeliveryId { workflow: self.workflow.id.clone(), sink: self.sink.name.clone(), lane }
    }

    /// A source that has not read anything yet.
    pub(crate) fn open_source(&self) -> AnySource {
        match self.source {
            Source::File(file) => AnySource::File(Box::new(FileSource::new(FileSourceConfig {
                path: std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone()),
                start: file.start,
                max_line: file.max_line.as_usize(),
            }))),
            Source::Generate(generate) => AnySource::Generate(Box::new(GenerateSource::new(GenerateConfig {
                seed: generate.seed,
                count: generate.count,
                rate: generate.rate,
                keys: generate.keys,
                updates_per_mille: narrow(generate.updates.per_mille()),
                deletes_per_mille: narrow(generate.deletes.per_mille()),
                poison_per_mille: narrow(generate.poison.per_mille()),
            }))),
        }
    }

    /// Where a delivery without progress begins.
    pub(crate) const fn start(&self) -> StartAt {
        match self.source {
            Source::File(file) => file.start,
            Source::Generate(_) => StartAt::Earliest,
        }
    }

    /// What the connector wants to know.
    pub(crate) fn connector(&self) -> sqlite_config::SqliteSinkConfig {
        let sqlite = self.sqlite();
        let deduplication = &self.workflow.delivery.deduplication;
        let map = match &sqlite.columns {
            Columns::Mapped(map) => map.clone(),
            Columns::ByName | Columns::Strict => Vec::new(),
        };
        let table = sqlite_config::TableConfig {
            mode: sqlite.on_conflict,
            key_fields: deduplication.key_fields.clone(),
            key_column: sqlite.key_column.clone(),
            version_column: sqlite.version_column.clone(),
            columns: sqlite_config::Columns { map, ..sqlite_config::Columns::default() },
            deletes: if sqlite.delete_when.is_some() {
                sqlite_config::Deletes::Some
            } else {
                sqlite_config::Deletes::Never
            },
            unique_keys: if deduplication.unique {
                sqlite_config::UniqueKeys::Promised
            } else {
                sqlite_config::UniqueKeys::NotPromised
            },
            progress: sqlite.progress,
            ..sqlite_config::TableConfig::new(&sqlite.table)
        };
        sqlite_config::SqliteSinkConfig {
            table,
            busy_timeout: sqlite.busy_timeout,
            claim_timeout: self.workflow.delivery.claim_timeout,
            ..sqlite_config::SqliteSinkConfig::new(&sqlite.path, &sqlite.table)
        }
    }

    /// Reads the live table without writing anything.
    pub(crate) async fn live(&self) -> Result<LiveCheck, Failure> {
        Ok(check_live(&self.connector()).await?)
    }

    /// The verdict; with what the live table said, if it was read.
    pub(crate) fn audit(&self, live: Option<&LiveCheck>) -> Audit {
        let facts = match live {
            Some(live) => plan::TableFacts { mode: live.mapping.mode, index: key_index(live.mapping.mode) },
            None => plan::TableFacts {
                mode: plan::mode_without_table(self.sqlite(), &self.workflow.delivery),
                index: KeyIndex::Unread,
            },
        };
        plan::audit_sink(self.workflow, self.source, self.sqlite(), facts)
    }

    /// Whether only the live table can tell the conflict mode: it may have a primary key.
    pub(crate) fn table_decides_mode(&self) -> bool {
        let sqlite = self.sqlite();
        let keyed = !self.workflow.delivery.deduplication.key_fields.is_empty() || sqlite.key_column.is_some();
        sqlite.on_conflict.is_none() && !keyed
    }

    /// Everything together, ready to run.
    pub(crate) fn delivery(
        &self,
        live: &LiveCheck,
        state: Option<&SqliteState>,
        how: &How,
    ) -> Result<Delivery<AnySource, AnySink, SqliteState>, Failure> {
        let source = self.open_source();
        let settings = self.settings(live, &source, how);
        let sink = self.open_sink(&settings, state)?;
        Ok(Delivery { settings, source, sink, state: state.cloned() })
    }

    fn settings(&self, live: &LiveCheck, source: &AnySource, how: &How) -> Settings {
        let (delivery, sqlite) = (&self.workflow.delivery, self.sqlite());
        let keyer = plan::keyer(self.workflow, sqlite, live.mapping.mode);
        Settings {
            id: self.id(),
            after_doubt: plan::after_doubt(delivery.guarantee),
            start: self.start(),
            follow: how.follow,
            epoch: delivery.epoch.clone(),
            retries: delivery.retries.clone(),
            rejects: plan::rejects(delivery),
            lease: delivery.lease,
            take_over: how.take_over,
            contract: plan::contract(&source.identity(), &keyer, live.mapping.mode),
            configured: Arc::clone(&how.configured),
            session: hapax_sql::process::session_name(),
            keyer,
            delete_when: sqlite.delete_when.clone(),
            unknown_fields: plan::unknown_fields(sqlite),
        }
    }

    fn open_sink(&self, settings: &Settings, state: Option<&SqliteState>) -> Result<AnySink, Failure> {
        let (sqlite, guarantee) = (self.sqlite(), self.workflow.delivery.guarantee);
        let (config, id) = (self.connector(), settings.id.clone());
        match (sqlite.progress, state) {
            (ProgressPlace::Sink, _) => Ok(AnySink::Sqlite(Box::new(SqliteSink::new(config, id)))),
            (ProgressPlace::State, Some(state)) => {
                let order = if guarantee == Guarantee::AtMostOnce { Order::PositionFirst } else { Order::RowsFirst };
                let watched = plan::watches_keys(sqlite.progress, guarantee);
                let watch = if watched { WatchKeys::Yes } else { WatchKeys::No };
                let sink = SqliteIdempotentSink::new(config, settings.keyer.strategy().clone());
                let joined = StateProgress::new(id, sink, state.clone(), order, watch, sqlite.progress_interval);
                Ok(AnySink::SqliteByState(Box::new(joined)))
            }
            (ProgressPlace::State, None) => Err(Failure::new(
                "HX5003",
                format!(
                    "workflow {} keeps its progress in the state store, and `state` is none: name a state store",
                    self.workflow.id
                ),
            )
            .with_exit(crate::exit::USAGE)),
        }
    }
}

/// How a command wants deliveries to run.
#[derive(Debug, Clone)]
pub(crate) struct How {
    pub(crate) follow: Follow,
    pub(crate) take_over: TakeOver,
    /// Workflow and sink of everything that is configured.
    pub(crate) configured: Arc<[(String, String)]>,
}

impl How {
    pub(crate) fn new(config: &Config, follow: Follow, take_over: TakeOver) -> Self {
        let configured = parts(config).map(|part| (part.workflow.id.clone(), part.sink.name.clone())).collect();
        Self { follow, take_over, configured }
    }
}

fn narrow(per_mille: u32) -> u16 {
    u16::try_from(per_mille).unwrap_or(1000)
}

/// Keyed modes are only resolved where a unique index over the key exists; `append` needs none and uses none.
const fn key_index(mode: ConflictMode) -> KeyIndex {
    match mode {
        ConflictMode::Append => KeyIndex::Missing,
        ConflictMode::Ignore | ConflictMode::Update | ConflictMode::Newer => KeyIndex::Only,
    }
}
