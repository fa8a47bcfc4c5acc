//! The typed form of an effective configuration.
//!
//! Reads: values that the schema and the rules found right. Writes: [`Config`].
//! Invariant: for such values nothing is missing; `None` anywhere means that a problem was told before.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use hapax_connect::file::{CsvOptions, FileFormat, HeaderFrom, RotationRule, many};
use hapax_engine::decode::csv::Dialect;
use hapax_engine::source::StartAt;
use hapax_model::delivery::{
    ConditionName, DeduplicationOverride, Delivery, DeliveryOverride, DocumentationOverride, EpochBoundsOverride,
    IdempotencyKeyOverride, ReadersOverride, ReceiverOverride, RetriesOverride, WriterOverride,
};
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::rejects::OnReject;

#[cfg(feature = "mysql")]
use super::checked::MysqlSink;
#[cfg(feature = "postgres")]
use super::checked::PostgresSink;
use super::checked::{
    Columns, Config, FileSource, GenerateSource, Http, ManyFiles, Secret, Sink, Source, SqliteSink, StateUrl,
    TableSink, Target, Workflow,
};
use super::fixture;
use super::program;
use super::value::{Held, Value};

/// The configuration; relative paths begin at `folder`.
pub(crate) fn build(effective: &Value, folder: &Path) -> Option<Config> {
    let workflows = effective.get("workflows")?.items().iter().map(|workflow| build_workflow(workflow, folder));
    Some(Config {
        state: build_state(effective.get("state")?.text()?, folder)?,
        memory: effective.get("memory")?.size()?,
        http: match effective.get("http") {
            Some(http) => Some(build_http(http)?),
            None => None,
        },
        webhook: effective.at("alerts.webhook").and_then(secret),
        #[cfg(feature = "broker")]
        broker: match effective.get("broker") {
            Some(broker) => Some(super::broker::build(broker, folder)?),
            None => None,
        },
        workflows: workflows.collect::<Option<_>>()?,
        tests: effective
            .get("tests")
            .map_or(&[][..], Value::items)
            .iter()
            .map(fixture::build)
            .collect::<Option<_>>()?,
    })
}

fn build_http(http: &Value) -> Option<Http> {
    Some(Http { listen: parsed(http.get("listen"))?, token: http.get("token").and_then(secret) })
}

fn secret(value: &Value) -> Option<Secret> {
    value.text().map(|text| Secret(text.to_owned()))
}

fn build_state(url: &str, folder: &Path) -> Option<StateUrl> {
    #[cfg(feature = "postgres")]
    if url.starts_with("postgres") {
        return url.parse().ok().map(|url| StateUrl::Postgres(Box::new(url)));
    }
    match url.strip_prefix("sqlite://") {
        Some(path) => Some(StateUrl::Sqlite(folder.join(path))),
        None => (url == "none").then_some(StateUrl::None),
    }
}

fn build_workflow(workflow: &Value, folder: &Path) -> Option<Workflow> {
    let source = match workflow.get("source") {
        Some(source) => Some(build_source(source, folder)?),
        None => None,
    };
    let single = workflow.get("sink").map(|sink| build_target(sink, folder)).map(|target| {
        let (kind, target) = target?;
        Some(Sink { name: kind.to_owned(), target })
    });
    let named = workflow.get("sinks").map_or(&[][..], Value::items).iter().map(|sink| {
        let name = sink.get("name")?.text()?.to_owned();
        Some(Sink { name, target: build_target(sink, folder)?.1 })
    });
    Some(Workflow {
        id: workflow.get("id")?.text()?.to_owned(),
        place: workflow.place.clone(),
        source,
        transform: match workflow.get("transform") {
            Some(_) => Some(program::build_transform(workflow)?),
            None => None,
        },
        sinks: single.into_iter().chain(named).collect::<Option<_>>()?,
        delivery: Delivery::from(build_delivery(workflow.get("delivery")?)),
    })
}

fn build_source(source: &Value, folder: &Path) -> Option<Source> {
    if let Some(file) = source.get("file") {
        let start = match file.get("start")?.text()? {
            "latest" => StartAt::Latest,
            _ => StartAt::Earliest,
        };
        let written = file.get("path")?.text()?.to_owned();
        let (path, max_line) = (folder.join(&written), file.get("maxLine")?.size()?);
        let format = build_format(file, &written);
        let many = many::is_pattern(&written).then(|| ManyFiles { folder: folder.to_path_buf(), lanes: Vec::new() });
        let rotation = match file.get("order").or_else(|| file.get("rotation")).and_then(Value::text) {
            Some("name") => RotationRule::ByName,
            Some("beforeExtension") => RotationRule::BeforeExtension,
            Some("none") => RotationRule::None,
            Some("replaced") => RotationRule::Replaced,
            Some(_) | None => RotationRule::Suffixes,
        };
        return Some(Source::File(FileSource { path, written, start, max_line, format, rotation, many }));
    }
    let generate = source.get("generate")?;
    Some(Source::Generate(GenerateSource {
        seed: generate.get("seed")?.integer()?,
        count: generate.get("count").and_then(Value::integer),
        rate: generate.get("rate").and_then(Value::rate).and_then(|rate| rate.count.try_into().ok()),
        keys: generate.get("keys")?.integer()?,
        updates: generate.get("updates")?.share()?,
        deletes: generate.get("deletes")?.share()?,
        poison: generate.get("poison")?.share()?,
        lanes: generate.get("lanes")?.integer()?.try_into().ok()?,
    }))
}

/// The path without what tells how it is packed.
fn unpacked(path: &str) -> &str {
    [".gz", ".gzip", ".zst", ".zstd"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path)
}

/// Whether a file holds CSV, as far as its path or the configuration tells.
pub(crate) fn is_csv(file: &Value) -> bool {
    let path = file.get("path").and_then(Value::text).unwrap_or_default().to_ascii_lowercase();
    match file.get("format").and_then(Value::text) {
        Some(format) => format == "csv",
        None => unpacked(&path).ends_with(".csv") || unpacked(&path).ends_with(".tsv"),
    }
}

fn build_format(file: &Value, path: &str) -> FileFormat {
    if !is_csv(file) {
        return FileFormat::JsonLines;
    }
    let text = |name: &str| file.at(name).and_then(Value::text);
    let tabs = unpacked(&path.to_ascii_lowercase()).ends_with(".tsv");
    let one = |text: &str| text.bytes().next();
    let delimiter = match text("csv.delimiter") {
        Some("tab") => b'\t',
        Some(text) => one(text).unwrap_or(b','),
        None if tabs => b'\t',
        None => b',',
    };
    let quote = match text("csv.quote") {
        Some("none") => None,
        Some(text) => one(text),
        None => Some(b'"'),
    };
    let names =
        file.at("csv.header").map(|list| list.items().iter().filter_map(Value::text).map(str::to_owned).collect());
    let header = names.map_or(HeaderFrom::File, HeaderFrom::Names);
    let null = text("csv.null").unwrap_or_default().to_owned();
    FileFormat::Csv(CsvOptions { dialect: Dialect { delimiter, quote }, null, header })
}

/// The kind's name and the target.
fn build_target(sink: &Value, folder: &Path) -> Option<(&'static str, Target)> {
    #[cfg(feature = "postgres")]
    if let Some(postgres) = sink.get("postgres") {
        let duration = |name: &str| postgres.get(name)?.duration();
        let target = PostgresSink {
            url: Box::new(parsed(postgres.get("url"))?),
            table: build_table(postgres)?,
            connections: postgres.get("connections")?.integer()?.try_into().ok()?,
            statement_timeout: duration("statementTimeout")?,
            lock_timeout: duration("lockTimeout")?,
            idle_timeout: duration("idleTimeout")?,
        };
        return Some(("postgres", Target::Postgres(target)));
    }
    #[cfg(feature = "mysql")]
    if let Some(mysql) = sink.get("mysql") {
        let duration = |name: &str| mysql.get(name)?.duration();
        let target = MysqlSink {
            url: Box::new(hapax_sql::mysql::MysqlUrl::parse(mysql.get("url")?.text()?).ok()?),
            table: build_table(mysql)?,
            connections: mysql.get("connections")?.integer()?.try_into().ok()?,
            statement_timeout: duration("statementTimeout")?,
            lock_timeout: duration("lockTimeout")?,
            idle_timeout: duration("idleTimeout")?,
        };
        return Some(("mysql", Target::Mysql(target)));
    }
    let sqlite = sink.get("sqlite")?;
    let target = SqliteSink {
        path: folder.join(sqlite.get("path")?.text()?),
        table: build_table(sqlite)?,
        busy_timeout: sqlite.get("busyTimeout")?.duration()?,
    };
    Some(("sqlite", Target::Sqlite(target)))
}

/// What every kind of table has.
fn build_table(sink: &Value) -> Option<TableSink> {
    let text_of = |name: &str| sink.get(name).and_then(Value::text).map(str::to_owned);
    let on_conflict = match sink.get("onConflict").and_then(Value::text) {
        Some(name) => Some(conflict_mode(name)?),
        None => None,
    };
    Some(TableSink {
        name: text_of("table")?,
        on_conflict,
        key_column: text_of("keyColumn"),
        version_column: text_of("versionColumn"),
        columns: build_columns(sink.get("columns"))?,
        delete_when: parsed(sink.get("deleteWhen")),
        progress: if text_of("progress")? == "state" { ProgressPlace::State } else { ProgressPlace::Sink },
        progress_interval: sink.get("progressInterval")?.duration()?,
    })
}

fn conflict_mode(name: &str) -> Option<ConflictMode> {
    let modes = [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer];
    modes.into_iter().find(|mode| mode.name() == name)
}

fn build_columns(columns: Option<&Value>) -> Option<Columns> {
    let Some(columns) = columns else { return Some(Columns::ByName) };
    if let Held::Map(entries) = &columns.held {
        let mapped = entries.iter().map(|(column, path)| Some((column.clone(), path.text()?.parse().ok()?)));
        return Some(Columns::Mapped(mapped.collect::<Option<_>>()?));
    }
    (columns.text() == Some("strict")).then_some(Columns::Strict)
}

/// A text that its rule has already read once.
fn parsed<T: FromStr>(value: Option<&Value>) -> Option<T> {
    value?.text()?.parse().ok()
}

/// The block; what is missing or wrong is missing here too.
pub(crate) fn build_delivery(delivery: &Value) -> DeliveryOverride {
    let at = |path: &str| delivery.at(path);
    let duration = |path: &str| at(path).and_then(Value::duration);
    let boolean = |path: &str| at(path).and_then(Value::boolean);
    DeliveryOverride {
        guarantee: parsed(at("guarantee")),
        mechanism: parsed(at("mechanism")),
        deduplication: DeduplicationOverride {
            key_fields: at("deduplication.keyFields")
                .map(|list| list.items().iter().flat_map(|it| parsed(Some(it))).collect()),
            ttl: duration("deduplication.ttl"),
            unique: boolean("deduplication.unique"),
            strategy: parsed(at("deduplication.strategy")),
        },
        idempotency_key: IdempotencyKeyOverride {
            format: parsed(at("idempotencyKey.format")),
            hash_algorithm: parsed(at("idempotencyKey.hashAlgorithm")),
            included_in_payload: boolean("idempotencyKey.includedInPayload"),
        },
        retries: RetriesOverride {
            enabled: boolean("retries.enabled"),
            max_attempts: at("retries.maxAttempts").and_then(Value::integer).and_then(|count| count.try_into().ok()),
            backoff: at("retries.backoffMs").map(|list| list.items().iter().filter_map(millis).collect()),
            give_up_after: duration("retries.giveUpAfter"),
        },
        epoch: EpochBoundsOverride {
            interval: duration("epoch.interval"),
            max_events: at("epoch.maxEvents").and_then(Value::integer),
            max_bytes: at("epoch.maxBytes").and_then(Value::size),
            commit_timeout: duration("epoch.commitTimeout"),
            abort_timeout: duration("epoch.abortTimeout"),
        },
        on_reject: at("onReject").and_then(Value::text).map(on_reject),
        max_rejects: at("maxRejects").and_then(Value::share),
        claim_timeout: duration("claimTimeout"),
        lease: duration("lease"),
        // How often a position is saved is a matter of each sink, beside its `progress`.
        progress_interval: None,
        receiver: ReceiverOverride {
            deduplicates: boolean("receiver.deduplicates"),
            key_ttl: duration("receiver.keyTtl"),
            refuses_older: boolean("receiver.refusesOlder"),
        },
        readers: ReadersOverride { isolation: parsed(at("readers.isolation")) },
        writer: WriterOverride { serialises_keys: boolean("writer.serialisesKeys") },
        conditions: at("conditions").map(|list| list.items().iter().filter_map(condition).collect()),
        client_guidance: boolean("clientGuidance"),
        documentation: DocumentationOverride {
            deduplication_required: boolean("documentation.deduplicationRequired"),
            sdk_available: boolean("documentation.sdkAvailable"),
            example_code: at("documentation.exampleCode").and_then(Value::text).map(str::to_owned),
        },
        auto_fence_on_startup: boolean("autoFenceOnStartup"),
    }
}

fn millis(value: &Value) -> Option<Duration> {
    value.integer().map(Duration::from_millis)
}

fn on_reject(name: &str) -> OnReject {
    if name == "stop" { OnReject::Stop } else { OnReject::DeadLetter }
}

fn condition(value: &Value) -> Option<ConditionName> {
    let name = value.text()?;
    ConditionName::ALL.into_iter().find(|condition| condition.name() == name)
}
