//! `hapax.yaml`, as a cell writes it.

use std::path::PathBuf;
use std::time::Duration;

use crate::database::Engine;
use crate::setting::{Place, Setting};

/// What the configuration file says beyond the setting.
#[derive(Debug, Clone)]
pub struct Config {
    /// The workflow's id.
    pub id: String,
    /// The entity key's fields.
    pub key_fields: String,
    /// Where a target that is a file is, relative to the directory.
    pub target: PathBuf,
    /// Where a delivery without progress begins.
    pub start: &'static str,
    /// Events per epoch.
    pub epoch_events: u32,
    /// How long an epoch stays open that is not full.
    pub epoch_interval: Duration,
    /// How long a worker that does not renew it keeps its lease.
    pub lease: Duration,
    /// How long a claim waits for a lock.
    pub claim_timeout: Duration,
    /// How long a COMMIT may take.
    pub commit_timeout: Duration,
    /// Conditions that the workflow states.
    pub conditions: &'static str,
    /// The program between source and sink, if there is one.
    pub transform: Option<&'static str>,
    /// Ids of further workflows into the same table, each with an input `ID.jsonl` of its own.
    pub twins: &'static [&'static str],
    /// Lines before the workflows.
    pub head: String,
    /// Further workflows, as they stand in the file.
    pub further: String,
}

impl Config {
    /// What most cells say.
    #[must_use]
    pub fn new(setting: Setting, lease: Duration) -> Self {
        Self {
            id: "orders".into(),
            key_fields: setting.shape.key_fields().into(),
            target: "target.db".into(),
            start: "earliest",
            epoch_events: 100,
            epoch_interval: Duration::from_millis(10),
            lease,
            claim_timeout: Duration::from_secs(1),
            commit_timeout: Duration::from_secs(30),
            conditions: "one-worker",
            transform: None,
            twins: &[],
            head: String::new(),
            further: String::new(),
        }
    }

    /// The file's text; `server` is the URL of the target's database, if it is no file.
    #[must_use]
    pub fn text(&self, setting: Setting, server: Option<&str>, state: &str) -> String {
        let mut text = format!("state: \"{state}\"\n{}workflows:\n", self.head);
        text.push_str(&self.workflow(setting, server, &self.id, "input.jsonl"));
        for twin in self.twins {
            text.push_str(&self.workflow(setting, server, twin, &format!("{twin}.jsonl")));
        }
        text.push_str(&self.further);
        text
    }

    fn workflow(&self, setting: Setting, server: Option<&str>, id: &str, input: &str) -> String {
        let Self { key_fields, start, epoch_events, epoch_interval, lease, .. } = self;
        let Self { claim_timeout, commit_timeout, conditions, .. } = self;
        let (shape, place) = (setting.shape, setting.place);
        let interval = match place {
            Place::Sink => "",
            Place::State => ", progressInterval: 20ms",
        };
        let table = format!(
            "table: orders, onConflict: {mode}, progress: {place}{interval}{extra}",
            mode = shape.mode(),
            place = place.name(),
            extra = shape.sink_extra(),
        );
        let sink = match (setting.stack.engine(), server.unwrap_or_default()) {
            (Engine::Sqlite, _) => {
                format!("sqlite: {{ path: \"{}\", {table}, busyTimeout: 1s }}", self.target.display())
            }
            (Engine::Postgres, url) => format!("postgres: {{ url: \"{url}\", {table} }}"),
            (Engine::Mysql, url) => format!("mysql: {{ url: \"{url}\", {table} }}"),
        };
        format!(
            "\x20 - id: {id}\n\
             \x20   source: {{ file: {{ path: {input}, start: {start} }} }}\n\
{transform}\
             \x20   sink: {{ {sink} }}\n\
             \x20   delivery: {{ guarantee: {guarantee}, deduplication: {{ keyFields: [{key_fields}]{unique} }}, \
             epoch: {{ interval: {open}ms, maxEvents: {epoch_events}, commitTimeout: {commit}ms }}, lease: {lease}ms, \
             claimTimeout: {claim}ms, maxRejects: 50%, retries: {{ backoffMs: [20, 50, 100] }}, \
             conditions: [{conditions}] }}\n",
            transform = self.transform.map_or_else(String::new, |program| format!("    transform: \"{program}\"\n")),
            unique = shape.deduplication_extra(),
            guarantee = setting.guarantee.name(),
            open = epoch_interval.as_millis(),
            lease = lease.as_millis(),
            claim = claim_timeout.as_millis(),
            commit = commit_timeout.as_millis(),
        )
    }
}
