//! Settings as clients see them: value, where it comes from, what would hold without it.

use crate::config::{BrokerConfig, Kind, SETTINGS, TopicConfig};

/// Where a value comes from, by Kafka's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum Source {
    Topic = 1,
    StaticBroker = 4,
    Default = 5,
}

/// One setting that holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) source: Source,
    /// Kafka's number of the value's type.
    pub(crate) kind: i8,
    pub(crate) documentation: &'static str,
    pub(crate) writing: Writing,
    /// All values in the order in which they count, the one that holds first.
    pub(crate) synonyms: Vec<(String, String, Source)>,
}

/// Whether a client may change a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    Allowed,
    ReadOnly,
}

/// What holds for a topic.
pub(crate) fn topic(own: &TopicConfig, defaults: &TopicConfig) -> Vec<Entry> {
    let entry = |setting: &crate::config::Setting| {
        let mut synonyms = Vec::with_capacity(3);
        if let Some(value) = own.0.get(setting.name) {
            synonyms.push((setting.name.to_owned(), value.clone(), Source::Topic));
        }
        if let Some(value) = defaults.0.get(setting.name) {
            synonyms.push((setting.broker_name.to_owned(), value.clone(), Source::StaticBroker));
        }
        synonyms.push((setting.broker_name.to_owned(), setting.default.to_owned(), Source::Default));
        let (_, value, source) = synonyms[0].clone();
        Entry {
            name: setting.name.to_owned(),
            value,
            source,
            kind: kind_number(setting.kind),
            documentation: setting.documentation,
            writing: Writing::Allowed,
            synonyms,
        }
    };
    SETTINGS.iter().map(entry).collect()
}

/// Kafka's numbers of types.
const BOOLEAN: i8 = 1;
const STRING: i8 = 2;
const INT: i8 = 3;
const LONG: i8 = 5;
const DOUBLE: i8 = 6;
const LIST: i8 = 7;

fn kind_number(kind: Kind) -> i8 {
    match kind {
        Kind::Boolean | Kind::Only => BOOLEAN,
        Kind::Choice(_) => STRING,
        Kind::Int(..) => INT,
        Kind::Long(..) => LONG,
        Kind::Ratio => DOUBLE,
        // What has any text is a list of replicas.
        Kind::List(_) | Kind::Text => LIST,
    }
}

/// What holds for a broker; nothing of it can be changed while it runs.
pub(crate) fn broker(id: i32, config: &BrokerConfig) -> Vec<Entry> {
    let millis = |duration: std::time::Duration| duration.as_millis().to_string();
    let own = [
        ("auto.create.topics.enable", BOOLEAN, config.auto_create_topics.to_string(), MAKES_TOPICS),
        ("broker.id", INT, id.to_string(), "The number by which clients know this broker."),
        ("connections.max.idle.ms", LONG, millis(config.idle), "A connection that says nothing for so long is closed."),
        ("default.replication.factor", INT, "1".to_owned(), "The store keeps the log."),
        ("group.initial.rebalance.delay.ms", INT, millis(config.initial_rebalance_delay), WAITS),
        ("log.retention.check.interval.ms", LONG, millis(config.retention_interval), "How often retention looks."),
        ("max.connections", INT, config.max_connections.to_string(), "Connections in all."),
        ("max.connections.per.ip", INT, config.max_connections_per_address.to_string(), "Connections of one address."),
        ("node.id", INT, id.to_string(), "The number by which clients know this broker."),
        ("num.partitions", INT, config.default_partitions.to_string(), "Partitions of a topic that says nothing."),
        ("offsets.retention.minutes", INT, (config.offsets_retention.as_secs() / 60).to_string(), OFFSETS),
        ("socket.request.max.bytes", INT, config.max_frame.to_string(), "The largest request."),
        ("transactional.id.expiration.ms", INT, "604800000".to_owned(), "Unused transactional ids are forgotten."),
    ];
    let mut entries: Vec<Entry> = own
        .into_iter()
        .map(|(name, kind, value, documentation)| {
            let synonyms = vec![(name.to_owned(), value.clone(), Source::StaticBroker)];
            let (name, source, writing) = (name.to_owned(), Source::StaticBroker, Writing::ReadOnly);
            Entry { name, value, source, kind, documentation, writing, synonyms }
        })
        .collect();
    for entry in topic(&TopicConfig::default(), &config.topic_defaults) {
        let name = entry.synonyms[0].0.clone();
        if entries.iter().all(|other| other.name != name) {
            entries.push(Entry { name, writing: Writing::ReadOnly, ..entry });
        }
    }
    entries.sort_by(|left, right| left.name.cmp(&right.name));
    entries
}

const MAKES_TOPICS: &str = "A topic is made when a client asks for it by Metadata.";
const WAITS: &str = "How long the first join of an empty group waits for others.";
const OFFSETS: &str = "Offsets of an empty group are kept for so long.";
