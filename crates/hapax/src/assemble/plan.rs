//! What the configuration means for one delivery: key strategy, conflict mode, contract, audit. Pure.

use hapax_engine::decode::UnknownFields;
use hapax_engine::runtime::{AfterDoubt, Settings};
use hapax_model::audit::{
    Arbiter, Audit, AuditFacts, ChangeFields, KeyIndex, KeyKind, SinkFacts, SourceFacts, SourceKind, SqlFacts, StartAt,
    TableKind, audit,
};
use hapax_model::contract::{Contract, KEY, MODE};
use hapax_model::delivery::{Delivery, Guarantee, StrategyName};
use hapax_model::field::FieldPath;
use hapax_model::key::{Contributors, DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::rejects::RejectRule;

use crate::config::{Columns, Source, TableSink, Workflow};

/// The conflict mode as far as the configuration alone tells; a live table may know a primary key.
pub(crate) fn mode_without_table(table: &TableSink, delivery: &Delivery) -> ConflictMode {
    let keyed = !delivery.deduplication.key_fields.is_empty() || table.key_column.is_some();
    table.on_conflict.unwrap_or(if keyed { ConflictMode::Update } else { ConflictMode::Append })
}

/// How keys are made.
pub(crate) fn strategy(delivery: &Delivery) -> DedupStrategy {
    let deduplication = &delivery.deduplication;
    let fields = deduplication.key_fields.clone();
    let named = |index: usize, name: &str| fields.get(index).cloned().unwrap_or_else(|| FieldPath::of_name(name));
    match &deduplication.strategy {
        None if fields.is_empty() => DedupStrategy::SourceOffset,
        None | Some(StrategyName::Content) => DedupStrategy::content_fields(fields),
        Some(StrategyName::ContentWithEpoch) => DedupStrategy::content_fields_with_epoch(fields),
        Some(StrategyName::Composite) => DedupStrategy::composite(fields),
        Some(StrategyName::EpochSequence) => DedupStrategy::EpochSequence,
        Some(StrategyName::SourceOffset) => DedupStrategy::SourceOffset,
        Some(StrategyName::ChangeKey) => DedupStrategy::ChangeKey {
            database: FieldPath::of_name("database"),
            schema: None,
            table: FieldPath::of_name("table"),
            primary_key: if fields.is_empty() { vec![FieldPath::of_name("primaryKey")] } else { fields },
            version: FieldPath::of_name("changeVersion"),
        },
        Some(StrategyName::Derived) => {
            let (window, contributors) = match fields.split_last() {
                Some((window, rest)) if !rest.is_empty() => (window.clone(), Contributors::Fields(rest.to_vec())),
                Some(_) | None => (FieldPath::of_name("window"), Contributors::Array(named(0, "contributors"))),
            };
            DedupStrategy::Derived { contributors, window }
        }
        Some(StrategyName::WindowSequence) => {
            DedupStrategy::WindowSequence { window: named(0, "window"), sequence: named(1, "sequence") }
        }
        Some(StrategyName::Custom { name }) => DedupStrategy::Custom { name: name.clone() },
    }
}

/// What the sink uses keys for. Keyed modes always look at the key fields, so that a NULL in one is noticed; they hash
/// them where a column, or the watch over keys, wants the hash.
pub(crate) fn key_need(mode: ConflictMode, table: &TableSink, guarantee: Guarantee) -> KeyNeed {
    let watched = watches_keys(table.progress, guarantee);
    match mode {
        ConflictMode::Append if watched => KeyNeed::Event,
        ConflictMode::Append => KeyNeed::Nothing,
        ConflictMode::Ignore => KeyNeed::Event,
        ConflictMode::Update | ConflictMode::Newer if watched || table.key_column.is_some() => KeyNeed::Entity,
        ConflictMode::Update | ConflictMode::Newer => KeyNeed::Fields,
    }
}

/// Whether the guarantee rests on keys being the same after a restart.
pub(crate) fn watches_keys(progress: ProgressPlace, guarantee: Guarantee) -> bool {
    progress == ProgressPlace::State && matches!(guarantee, Guarantee::IdempotentKeys | Guarantee::ExactlyOnce)
}

/// The keyer of a delivery.
pub(crate) fn keyer(workflow: &Workflow, table: &TableSink, mode: ConflictMode) -> Keyer {
    let delivery = &workflow.delivery;
    let unique = if delivery.deduplication.unique { Uniqueness::FieldsAlone } else { Uniqueness::WithVersion };
    Keyer::new(strategy(delivery), unique, key_need(mode, table, delivery.guarantee))
}

/// The contract, less the target's identity, which only the live target knows.
pub(crate) fn contract(source_identity: &str, keyer: &Keyer, mode: ConflictMode) -> Contract {
    Contract::default()
        .with(hapax_model::contract::SOURCE, source_identity)
        .with(KEY, keyer.identity())
        .with(MODE, mode.name())
}

/// How inputs are read, in words that differ where one may be an event or not. Another version of the program may read otherwise.
pub(crate) fn reading(source: &Source) -> String {
    let how = match source {
        Source::File(file) => format!("{:?}", (&file.format, file.max_line)),
        Source::Generate(generate) => format!("{generate:?}"),
    };
    format!("{} {how}", env!("CARGO_PKG_VERSION"))
}

/// What is made of events before a sink gets them, in words that differ where that may differ.
pub(crate) fn making(settings: &Settings, program: Option<&str>) -> String {
    format!("{:?}", (program, &settings.delete_when, settings.keyer.identity(), settings.unknown_fields))
}

/// What becomes of a commit in doubt.
pub(crate) const fn after_doubt(guarantee: Guarantee) -> AfterDoubt {
    match guarantee {
        Guarantee::AtMostOnce => AfterDoubt::GiveUp,
        Guarantee::AtLeastOnce | Guarantee::IdempotentKeys | Guarantee::ExactlyOnce => AfterDoubt::CommitAgain,
    }
}

/// What may be rejected.
pub(crate) fn rejects(delivery: &Delivery) -> RejectRule {
    RejectRule::new(delivery.on_reject, delivery.max_rejects_per_mille)
}

/// What becomes of fields that no column takes.
pub(crate) const fn unknown_fields(table: &TableSink) -> UnknownFields {
    match table.columns {
        Columns::Strict => UnknownFields::Rejected,
        Columns::ByName | Columns::Mapped(_) => UnknownFields::Counted,
    }
}

/// What is known of the live table; without a look at it, what the configuration says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableFacts {
    /// What kind of table it is.
    pub(crate) kind: TableKind,
    /// The mode that is really used.
    pub(crate) mode: ConflictMode,
    /// Its unique indexes; `Unread` if nobody looked.
    pub(crate) index: KeyIndex,
}

/// Judges whether the workflow's guarantee holds for one of its sinks.
pub(crate) fn audit_sink(workflow: &Workflow, source: &Source, table: &TableSink, facts: TableFacts) -> Audit {
    let TableFacts { kind, mode, index } = facts;
    let arbiter = if table.key_column.is_some() { Arbiter::KeyColumn } else { Arbiter::KeyFields };
    let sql = SqlFacts { table: kind, index, arbiter, mode, progress: table.progress };
    let facts = AuditFacts {
        source: source_facts(source),
        sink: SinkFacts::Sql(sql),
        key: KeyKind::of(&workflow.delivery.deduplication, ChangeFields::Absent),
        delivery: &workflow.delivery,
    };
    audit(&facts)
}

fn source_facts(source: &Source) -> SourceFacts {
    match source {
        Source::File(file) => {
            let start = match file.start {
                hapax_engine::source::StartAt::Latest => StartAt::Latest,
                hapax_engine::source::StartAt::Earliest | hapax_engine::source::StartAt::At(_) => StartAt::Earliest,
            };
            SourceFacts::of(SourceKind::File, start)
        }
        Source::Generate(_) => SourceFacts::of(SourceKind::Generate, StartAt::Earliest),
    }
}
