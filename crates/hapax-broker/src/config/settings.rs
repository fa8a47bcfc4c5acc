//! The one list of topic settings: Kafka's names, types, bounds and defaults.

/// What a setting's value must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number of 32 bits within bounds.
    Int(i32, i32),
    /// A whole number of 64 bits within bounds.
    Long(i64, i64),
    /// A number from 0 to 1.
    Ratio,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Some of these words, with commas.
    List(&'static [&'static str]),
    /// Only the default: what it would switch on is not here.
    Only,
    /// Anything.
    Text,
}

/// One setting of a topic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Kafka's name.
    pub name: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// What holds where nobody said anything.
    pub default: &'static str,
    /// What Kafka calls the same thing among a broker's settings.
    pub broker_name: &'static str,
    /// What it does here.
    pub documentation: &'static str,
}

const fn setting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    broker_name: &'static str,
    documentation: &'static str,
) -> Setting {
    Setting { name, kind, default, broker_name, documentation }
}

const FOREVER: &str = "9223372036854775807";
const POSITIVE: Kind = Kind::Long(0, i64::MAX);
const NO_EFFECT: &str = "Accepted, without effect: batches are rows of a store here, not segment files.";
const NO_REPLICAS: &str = "Accepted, without effect: the store keeps the log, brokers do not copy it from each other.";
const NO_REMOTE: &str = "Not available: there is no remote log storage.";

/// Every setting that a topic can have, by name.
pub const SETTINGS: &[Setting] = &[
    setting(
        "cleanup.policy",
        Kind::List(&["compact", "delete"]),
        "delete",
        "log.cleanup.policy",
        "delete: old batches go by time and size. compact: the last value of each key stays.",
    ),
    setting(
        "compression.gzip.level",
        Kind::Int(-1, 9),
        "-1",
        "compression.gzip.level",
        "The level where compression.type is gzip.",
    ),
    setting(
        "compression.lz4.level",
        Kind::Int(1, 17),
        "9",
        "compression.lz4.level",
        "Accepted, without effect: lz4 has one level here.",
    ),
    setting(
        "compression.type",
        Kind::Choice(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        "producer",
        "compression.type",
        "How batches are kept. producer: as they came.",
    ),
    setting(
        "compression.zstd.level",
        Kind::Int(-131_072, 22),
        "3",
        "compression.zstd.level",
        "The level where compression.type is zstd.",
    ),
    setting(
        "delete.retention.ms",
        POSITIVE,
        "86400000",
        "log.cleaner.delete.retention.ms",
        "How long compaction keeps a record without value, so that readers see the deletion.",
    ),
    setting("file.delete.delay.ms", POSITIVE, "60000", "log.segment.delete.delay.ms", NO_EFFECT),
    setting("flush.messages", Kind::Long(1, i64::MAX), FOREVER, "log.flush.interval.messages", FLUSH),
    setting("flush.ms", POSITIVE, FOREVER, "log.flush.interval.ms", FLUSH),
    setting(
        "follower.replication.throttled.replicas",
        Kind::Text,
        "",
        "follower.replication.throttled.replicas",
        NO_REPLICAS,
    ),
    setting("index.interval.bytes", Kind::Int(0, i32::MAX), "4096", "log.index.interval.bytes", NO_EFFECT),
    setting(
        "leader.replication.throttled.replicas",
        Kind::Text,
        "",
        "leader.replication.throttled.replicas",
        NO_REPLICAS,
    ),
    setting("local.retention.bytes", Kind::Long(-2, i64::MAX), "-2", "log.local.retention.bytes", NO_REMOTE),
    setting("local.retention.ms", Kind::Long(-2, i64::MAX), "-2", "log.local.retention.ms", NO_REMOTE),
    setting(
        "max.compaction.lag.ms",
        Kind::Long(1, i64::MAX),
        FOREVER,
        "log.cleaner.max.compaction.lag.ms",
        "The longest time for which a record may stay uncompacted.",
    ),
    setting(
        "max.message.bytes",
        Kind::Int(0, i32::MAX),
        "1048588",
        "message.max.bytes",
        "The largest batch that is taken, as it comes.",
    ),
    setting(
        "message.timestamp.after.max.ms",
        POSITIVE,
        "3600000",
        "log.message.timestamp.after.max.ms",
        "How far a record's own time may be ahead of the broker's.",
    ),
    setting(
        "message.timestamp.before.max.ms",
        POSITIVE,
        FOREVER,
        "log.message.timestamp.before.max.ms",
        "How far a record's own time may be behind the broker's.",
    ),
    setting(
        "message.timestamp.type",
        Kind::Choice(&["CreateTime", "LogAppendTime"]),
        "CreateTime",
        "log.message.timestamp.type",
        "Whose clock gives a record its time: the client's or the broker's.",
    ),
    setting(
        "min.cleanable.dirty.ratio",
        Kind::Ratio,
        "0.5",
        "log.cleaner.min.cleanable.ratio",
        "Which part of the log must be new before compaction works on it.",
    ),
    setting(
        "min.compaction.lag.ms",
        POSITIVE,
        "0",
        "log.cleaner.min.compaction.lag.ms",
        "The shortest time for which a record stays uncompacted.",
    ),
    setting(
        "min.insync.replicas",
        Kind::Int(1, i32::MAX),
        "1",
        "min.insync.replicas",
        "Accepted, without effect: an acknowledged batch is durable in the store, whatever acks says.",
    ),
    setting("preallocate", Kind::Boolean, "false", "log.preallocate", NO_EFFECT),
    setting("remote.log.copy.disable", Kind::Only, "false", "remote.log.copy.disable", NO_REMOTE),
    setting("remote.log.delete.on.disable", Kind::Only, "false", "remote.log.delete.on.disable", NO_REMOTE),
    setting("remote.storage.enable", Kind::Only, "false", "remote.storage.enable", NO_REMOTE),
    setting(
        "retention.bytes",
        Kind::Long(-1, i64::MAX),
        "-1",
        "log.retention.bytes",
        "Old batches go when a partition has more bytes than this; -1: any size.",
    ),
    setting(
        "retention.ms",
        Kind::Long(-1, i64::MAX),
        "604800000",
        "log.retention.ms",
        "Batches older than this go; -1: any age.",
    ),
    setting("segment.bytes", Kind::Int(14, i32::MAX), "1073741824", "log.segment.bytes", NO_EFFECT),
    setting("segment.index.bytes", Kind::Int(4, i32::MAX), "10485760", "log.index.size.max.bytes", NO_EFFECT),
    setting("segment.jitter.ms", POSITIVE, "0", "log.roll.jitter.ms", NO_EFFECT),
    setting("segment.ms", Kind::Long(1, i64::MAX), "604800000", "log.roll.ms", NO_EFFECT),
    setting("unclean.leader.election.enable", Kind::Boolean, "false", "unclean.leader.election.enable", NO_REPLICAS),
];

const FLUSH: &str = "Accepted, without effect: every acknowledged batch is flushed.";

impl Setting {
    /// The setting of a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.binary_search_by(|setting| setting.name.cmp(name)).ok().map(|at| &SETTINGS[at])
    }

    /// Whether a value is one; otherwise what one would be.
    pub fn check(&self, value: &str) -> Result<(), String> {
        let whole = |low: i64, high: i64| match value.trim().parse::<i64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(()),
            Ok(_) | Err(_) => Err(format!("a whole number from {low} to {high}")),
        };
        let known = |words: &[&str], word: &str| words.contains(&word);
        match self.kind {
            Kind::Boolean if known(&["true", "false"], &value.trim().to_ascii_lowercase()) => Ok(()),
            Kind::Boolean => Err("true or false".to_owned()),
            Kind::Int(low, high) => whole(low.into(), high.into()),
            Kind::Long(low, high) => whole(low, high),
            Kind::Ratio => match value.trim().parse::<f64>() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(()),
                Ok(_) | Err(_) => Err("a number from 0 to 1".to_owned()),
            },
            Kind::Choice(words) if known(words, value) => Ok(()),
            Kind::Choice(words) => Err(format!("one of {}", words.join(", "))),
            Kind::List(words) if value.split(',').all(|word| known(words, word.trim())) => Ok(()),
            Kind::List(words) => Err(format!("some of {}", words.join(", "))),
            Kind::Only if value == self.default => Ok(()),
            Kind::Only => Err(format!("{}, because nothing else is available here", self.default)),
            Kind::Text => Ok(()),
        }
    }
}
