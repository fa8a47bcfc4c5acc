//! From a checked configuration to deliveries that can run.
//!
//! Reads: the configuration, and the live tables where a command wants to know them. Writes: nothing but what opening
//! a state store makes. Invariant: what `check` says is what `run` does, because both come from here.

mod any;
mod books;
mod connector;
mod files;
mod live;
pub(crate) mod plan;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod pools;
mod rows;
mod state;
mod targets;
mod writer;

use std::sync::Arc;

use hapax_connect::file::many::finds_archives_of;
use hapax_connect::file::{
    Expected, FileFormat, FileSource, FileSourceConfig, FirstSeen, LaneName, NeededBy, NeededField, OwnArchives,
};
use hapax_connect::generate::{GenerateConfig, GenerateLane, GenerateSource};
use hapax_engine::decode::csv::{CsvFormat, Format, Header};
use hapax_engine::pipeline::Pipeline;
use hapax_engine::runtime::{Delivery, Settings};
use hapax_engine::source::{Follow, Source as _, StartAt};
use hapax_engine::state::TakeOver;
use hapax_model::audit::{Audit, KeyIndex};
use hapax_model::contract::{Contract, TARGET};
use hapax_model::field::FieldPath;
use hapax_model::position::DeliveryId;

pub(crate) use any::{AnySink, AnySource};
#[cfg(feature = "postgres")]
pub(crate) use books::postgres_role;
pub(crate) use books::{AnyBooks, Making, Place, Purpose};
pub(crate) use files::{
    find_files, is_copy_of_read, is_whole_archive, known_lanes, lanes_gone_back, lanes_of_files, rests_behind_gone,
    under_two_names,
};
pub(crate) use live::Live;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use pools::make_pools;
#[cfg(feature = "postgres")]
pub(crate) use pools::postgres_pools;
pub(crate) use rows::{AnyRows, why_not_looked_at};
pub(crate) use state::AnyState;
pub(crate) use targets::{AnyBareTable, AnyTable};
pub(crate) use writer::Writer;

use crate::config::checked::FileLane;
use crate::config::{Columns, Config, Sink, Source, TableSink, Target, Workflow};
use crate::exit::Failure;

/// One sink of one workflow, and one lane of its source: the unit that `run` starts. What is judged and set up, the
/// guarantee and the table, is the same for all its lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) workflow: &'a Workflow,
    pub(crate) source: &'a Source,
    pub(crate) sink: &'a Sink,
    /// Which lane of the source, from 0.
    pub(crate) lane: u32,
    /// Which file, if the source is a pattern and a lane of it is meant.
    pub(crate) file: Option<&'a FileLane>,
    /// The file that was at the path when the delivery began to wait for its first claim, if it is known.
    pub(crate) seen: Option<&'a FirstSeen>,
}

/// All complete workflows' sinks, in the order of the configuration; of several lanes, the first stands for all.
pub(crate) fn parts(config: &Config) -> impl Iterator<Item = Part<'_>> {
    config.workflows.iter().filter_map(|w| w.source.as_ref().map(|source| (w, source))).flat_map(
        |(workflow, source)| {
            workflow.sinks.iter().map(move |sink| Part { workflow, source, sink, lane: 0, file: None, seen: None })
        },
    )
}

/// The part that a delivery belongs to, whatever its lane.
pub(crate) fn part_of<'a>(config: &'a Config, id: &DeliveryId) -> Option<Part<'a>> {
    parts(config).find(|part| part.workflow.id == id.workflow && part.sink.name == id.sink)
}

/// The same, with every lane: one for each delivery. Those of a pattern are there once `find_files` has looked.
pub(crate) fn lanes(config: &Config) -> impl Iterator<Item = Part<'_>> {
    parts(config).flat_map(|part| part.lanes())
}

impl<'a> Part<'a> {
    /// What every kind of table has.
    pub(crate) const fn table(&self) -> &'a TableSink {
        self.sink.target.table()
    }

    /// Whether the target is a server, which may be away for a while; a file that is not there was named wrongly.
    pub(crate) const fn is_remote(&self) -> bool {
        match &self.sink.target {
            Target::Sqlite(_) => false,
            #[cfg(feature = "postgres")]
            Target::Postgres(_) => true,
            #[cfg(feature = "mysql")]
            Target::Mysql(_) => true,
        }
    }

    /// How many lanes the source has.
    pub(crate) fn lane_count(&self) -> u32 {
        match self.source {
            Source::File(file) => file.many.as_ref().map_or(1, |_| u32::MAX),
            Source::Generate(generate) => generate.lanes,
        }
    }

    /// Whether the source is a pattern: how many lanes there are is not the configuration's to say.
    pub(crate) const fn has_many_files(&self) -> bool {
        matches!(self.source, Source::File(file) if file.many.is_some())
    }

    /// This part with each of its source's lanes.
    pub(crate) fn lanes(self) -> impl Iterator<Item = Part<'a>> {
        let (count, files): (u32, &'a [_]) = match self.source {
            Source::File(file) => match &file.many {
                Some(many) => (0, &many.lanes),
                None => (1, &[]),
            },
            Source::Generate(generate) => (generate.lanes, &[]),
        };
        let own = files.iter().filter(move |(sink, _)| *sink == self.sink.name);
        let files = own.map(move |(_, file)| Part { file: Some(file), ..self });
        (0..count).map(move |lane| Part { lane, ..self }).chain(files)
    }

    /// The delivery's id.
    pub(crate) fn id(&self) -> DeliveryId {
        let lane = self.open_source().lane().to_owned();
        DeliveryId { workflow: self.workflow.id.clone(), sink: self.sink.name.clone(), lane }
    }

    /// The file that a delivery without progress would begin with now: who waits for the target waits with it.
    pub(crate) fn file_seen(&self) -> Option<FirstSeen> {
        match self.open_source() {
            AnySource::File(source) => source.first_seen().cloned(),
            AnySource::Generate(_) => None,
        }
    }

    /// A source that has not read anything yet.
    pub(crate) fn open_source(&self) -> AnySource {
        self.open_source_for(None)
    }

    /// The same for a table that takes these columns: a CSV header must have some of them.
    pub(crate) fn open_source_for(&self, live: Option<&Live>) -> AnySource {
        match self.source {
            Source::File(file) => {
                let absolute =
                    |path: &std::path::Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
                let named = absolute(&file.path).to_string_lossy().into_owned();
                let identity = format!("file:{named}");
                let (path, lane) = match self.file {
                    Some(lane) => (absolute(&lane.path), lane.name.clone()),
                    None => (absolute(&file.path), named),
                };
                AnySource::File(Box::new(FileSource::new(FileSourceConfig {
                    path,
                    name: LaneName { lane, identity },
                    start: file.start,
                    max_line: file.max_line.as_usize(),
                    format: file.format.clone(),
                    expected: live.map(|live| self.expected(live)).unwrap_or_default(),
                    rotation: file.rotation,
                    first_seen: self.file.and_then(|lane| lane.first_seen.clone()).or_else(|| self.seen.cloned()),
                    crowd: self.file.map(|lane| lane.crowd.clone()),
                    own_archives: match self.file {
                        Some(lane) if finds_archives_of(&file.written, &lane.name, file.rotation) => {
                            OwnArchives::LanesThemselves
                        }
                        Some(_) | None => OwnArchives::OfTheLane,
                    },
                })))
            }
            Source::Generate(generate) => AnySource::Generate(Box::new(GenerateSource::new(GenerateConfig {
                seed: generate.seed,
                count: generate.count,
                rate: generate.rate,
                keys: generate.keys,
                updates_per_mille: narrow(generate.updates.per_mille()),
                deletes_per_mille: narrow(generate.deletes.per_mille()),
                poison_per_mille: narrow(generate.poison.per_mille()),
                lane: GenerateLane { number: self.lane, of: generate.lanes },
            }))),
        }
    }

    /// What a CSV header must have: what a person has named, and something that the table takes.
    /// What a program makes of its fields is not the header's to know.
    fn expected(&self, live: &Live) -> Expected {
        if self.workflow.transform.is_some() {
            return Expected::default();
        }
        let table = self.table();
        let needs = |path: &FieldPath, by| NeededField { path: path.clone(), by };
        let key = &self.workflow.delivery.deduplication.key_fields;
        let mut needed: Vec<NeededField> = key.iter().map(|path| needs(path, NeededBy::Key)).collect();
        needed.extend(table.delete_when.iter().map(|condition| needs(&condition.path, NeededBy::DeleteWhen)));
        if let Columns::Mapped(map) = &table.columns {
            needed.extend(map.iter().map(|(column, path)| needs(path, NeededBy::Column(column.clone()))));
        }
        Expected { needed, taken: live.columns.iter().map(|column| FieldPath::of_name(column)).collect() }
    }

    /// How inputs are written that stand alone, as letters do.
    pub(crate) fn kept_format(&self) -> Format {
        match self.source {
            Source::File(file) => match &file.format {
                FileFormat::Csv(csv) => Format::Csv(Arc::new(CsvFormat {
                    dialect: csv.dialect,
                    null: csv.null.clone(),
                    header: Header::InEachInput,
                })),
                FileFormat::JsonLines => Format::Json,
            },
            Source::Generate(_) => Format::Json,
        }
    }

    /// The same pipeline with the workflow's program in it, if there is one.
    pub(crate) fn with_transform(&self, pipeline: Pipeline) -> Pipeline {
        match &self.workflow.transform {
            Some(transform) => pipeline.with_transform(transform.make.as_ref(), Arc::default()),
            None => pipeline,
        }
    }

    /// Where a delivery without progress begins.
    pub(crate) const fn start(&self) -> StartAt {
        match self.source {
            Source::File(file) => file.start,
            Source::Generate(_) => StartAt::Earliest,
        }
    }

    /// The verdict; with what the live table said, if it was read.
    pub(crate) fn audit(&self, live: Option<&Live>) -> Audit {
        let facts = live.map_or_else(|| self.unread(), |live| live.facts);
        plan::audit_sink(self.workflow, self.source, self.table(), facts)
    }

    /// Whether only the live table can tell the conflict mode: it may have a primary key.
    pub(crate) fn table_decides_mode(&self) -> bool {
        let table = self.table();
        let keyed = !self.workflow.delivery.deduplication.key_fields.is_empty() || table.key_column.is_some();
        table.on_conflict.is_none() && !keyed
    }

    /// Everything together, ready to run.
    pub(crate) fn delivery(
        &self,
        live: &Live,
        state: Option<&AnyState>,
        how: &How,
    ) -> Result<Delivery<AnySource, AnySink, AnyState>, Failure> {
        let source = self.open_source_for(Some(live));
        let settings = self.settings(live, &source, how);
        let sink = self.open_sink(&settings, state, how.purpose)?;
        Ok(Delivery { settings, source, sink, state: state.cloned() })
    }

    /// The contract as the configuration and the live target have it now. To look, a target that has no marker of ours is told
    /// from all others, and gets none.
    pub(crate) async fn contract_now(&self, config: &Config, purpose: Purpose) -> Result<Contract, Failure> {
        self.contract_by(&self.live().await?, config, purpose).await
    }

    /// The same by what was just seen of the table.
    pub(crate) async fn contract_by(
        &self,
        live: &Live,
        config: &Config,
        purpose: Purpose,
    ) -> Result<Contract, Failure> {
        let settings = self.settings(live, &self.open_source_for(Some(live)), &How::to_look(config));
        let identity = self.target_identity(&settings, purpose).await?;
        Ok(settings.contract.with(TARGET, identity.0))
    }

    /// How rotated files are read decides what is delivered; what is usual needs no mention.
    pub(crate) fn with_rotation(&self, contract: Contract) -> Contract {
        match self.source {
            Source::File(file) => match file.rotation.in_contract() {
                Some((option, value)) => contract.with(option, value),
                None => contract,
            },
            Source::Generate(_) => contract,
        }
    }

    /// What a delivery of this part would be told, as far as it can be known without its table.
    pub(crate) fn settings_unread(&self, how: &How) -> Settings {
        let live = Live {
            facts: self.unread(),
            why: String::new(),
            columns: Vec::new(),
            fed: Vec::new(),
            fills_itself: Vec::new(),
            notes: Vec::new(),
            would_stop: None,
        };
        self.settings(&live, &self.open_source(), how)
    }

    /// What the configuration alone says of the table.
    fn unread(&self) -> plan::TableFacts {
        plan::TableFacts {
            kind: self.table_kind(),
            mode: plan::mode_without_table(self.table(), &self.workflow.delivery),
            index: KeyIndex::Unread,
        }
    }

    fn settings(&self, live: &Live, source: &AnySource, how: &How) -> Settings {
        let (delivery, table) = (&self.workflow.delivery, self.table());
        let keyer = plan::keyer(self.workflow, table, live.mode());
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
            contract: self.with_rotation(plan::contract(&source.identity(), &keyer, live.mode())),
            configured: Arc::clone(&how.configured),
            session: hapax_sql::process::session_name(),
            keyer,
            delete_when: table.delete_when.clone(),
            unknown_fields: plan::unknown_fields(table),
            transform: self.workflow.transform.as_ref().map(|transform| Arc::clone(&transform.make)),
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
    /// What the target is opened for.
    pub(crate) purpose: Purpose,
}

impl How {
    pub(crate) fn new(config: &Config, follow: Follow, take_over: TakeOver) -> Self {
        let configured = parts(config).map(|part| (part.workflow.id.clone(), part.sink.name.clone())).collect();
        Self { follow, take_over, configured, purpose: Purpose::Change }
    }

    /// As a run of what is there now would go, without touching the target.
    pub(crate) fn to_look(config: &Config) -> Self {
        Self { purpose: Purpose::Look, ..Self::new(config, Follow::No, TakeOver::Never) }
    }
}

fn narrow(per_mille: u32) -> u16 {
    u16::try_from(per_mille).unwrap_or(1000)
}
