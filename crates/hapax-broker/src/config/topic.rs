//! What was said of one topic, and what follows from it.

use std::collections::BTreeMap;

use crate::config::Setting;

/// What was said of one topic: Kafka's own names (`retention.ms`, `cleanup.policy` …) and values as text.
///
/// Only known names with valid values get in: [`TopicConfig::checked`] is the gate, [`crate::config::SETTINGS`] the one list
/// of names, with defaults. Reading goes through [`TopicConfig::settings`].
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct TopicConfig(pub BTreeMap<String, String>);

/// Why something cannot be said of a topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Nobody knows this setting.
    #[error("Unknown topic config name: {0}")]
    Unknown(String),
    /// The setting is known, the value makes no sense.
    #[error("Invalid value {value} for configuration {name}: must be {wanted}")]
    Value {
        /// Which.
        name: String,
        /// What was said.
        value: String,
        /// What would have been right.
        wanted: String,
    },
    /// Both are fine, but not together.
    #[error("{0}")]
    Together(String),
}

/// What happens to old records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// They go by time and size.
    Delete,
    /// The last of each key stays.
    Compact,
    /// Both.
    CompactAndDelete,
}

impl Cleanup {
    /// Whether the last value of each key is kept.
    pub fn compacts(self) -> bool {
        matches!(self, Self::Compact | Self::CompactAndDelete)
    }

    /// Whether records go by time and size.
    pub fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::CompactAndDelete)
    }
}

/// How batches are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As they came.
    Producer,
    /// Not at all.
    Uncompressed,
    /// By gzip.
    Gzip,
    /// By snappy.
    Snappy,
    /// By lz4.
    Lz4,
    /// By zstd.
    Zstd,
}

/// Whose clock gives a record its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The client's.
    CreateTime,
    /// The broker's, when it appends.
    LogAppendTime,
}

/// What holds for a topic: its own word, else the broker's, else Kafka's default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TopicSettings {
    /// `cleanup.policy`.
    pub cleanup: Cleanup,
    /// `compression.type`.
    pub compression: Compression,
    /// `compression.gzip.level`.
    pub gzip_level: i32,
    /// `compression.zstd.level`.
    pub zstd_level: i32,
    /// `max.message.bytes`.
    pub max_message_bytes: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// `retention.ms`; `None`: any age.
    pub retention_ms: Option<i64>,
    /// `retention.bytes`; `None`: any size.
    pub retention_bytes: Option<u64>,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_ratio: f64,
}

impl TopicConfig {
    /// The gate: names and values as clients give them.
    pub fn checked(said: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        let config = Self(said.into_iter().collect());
        for (name, value) in &config.0 {
            let setting = Setting::find(name).ok_or_else(|| ConfigError::Unknown(name.clone()))?;
            setting.check(value).map_err(|wanted| ConfigError::Value {
                name: name.clone(),
                value: value.clone(),
                wanted,
            })?;
        }
        let lag = config.settings(&Self::default());
        if lag.min_compaction_lag_ms > lag.max_compaction_lag_ms {
            let message = "min.compaction.lag.ms must not be above max.compaction.lag.ms";
            return Err(ConfigError::Together(message.to_owned()));
        }
        Ok(config)
    }

    /// What holds, given what the broker says for all topics.
    pub fn settings(&self, defaults: &Self) -> TopicSettings {
        let sources = Sources { own: self, defaults };
        TopicSettings {
            cleanup: sources.cleanup(),
            compression: sources.compression(),
            gzip_level: sources.number("compression.gzip.level"),
            zstd_level: sources.number("compression.zstd.level"),
            max_message_bytes: sources.number("max.message.bytes"),
            timestamp_type: match sources.text("message.timestamp.type") {
                "LogAppendTime" => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            timestamp_before_max_ms: sources.number("message.timestamp.before.max.ms"),
            timestamp_after_max_ms: sources.number("message.timestamp.after.max.ms"),
            retention_ms: Some(sources.number("retention.ms")).filter(|limit: &i64| *limit >= 0),
            retention_bytes: u64::try_from(sources.number::<i64>("retention.bytes")).ok(),
            delete_retention_ms: sources.number("delete.retention.ms"),
            min_compaction_lag_ms: sources.number("min.compaction.lag.ms"),
            max_compaction_lag_ms: sources.number("max.compaction.lag.ms"),
            min_cleanable_ratio: sources.number("min.cleanable.dirty.ratio"),
        }
    }
}

struct Sources<'a> {
    own: &'a TopicConfig,
    defaults: &'a TopicConfig,
}

impl<'a> Sources<'a> {
    fn text(&self, name: &'static str) -> &'a str {
        let said = self.own.0.get(name).or_else(|| self.defaults.0.get(name));
        said.map_or_else(|| default(name), |value| value.trim())
    }

    /// A stored value that is no number (somebody wrote it past the gate) counts as not said.
    fn number<N: std::str::FromStr>(&self, name: &'static str) -> N {
        let parsed = self.text(name).parse().or_else(|_| default(name).parse());
        parsed.unwrap_or_else(|_| panic!("the default of {name} is a number"))
    }

    fn cleanup(&self) -> Cleanup {
        let text = self.text("cleanup.policy");
        let has = |word| text.split(',').any(|named| named.trim() == word);
        match (has("compact"), has("delete")) {
            (true, true) => Cleanup::CompactAndDelete,
            (true, false) => Cleanup::Compact,
            (false, _) => Cleanup::Delete,
        }
    }

    fn compression(&self) -> Compression {
        match self.text("compression.type") {
            "uncompressed" => Compression::Uncompressed,
            "gzip" => Compression::Gzip,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            _ => Compression::Producer,
        }
    }
}

fn default(name: &'static str) -> &'static str {
    Setting::find(name).expect("every name that is read is in the list").default
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SETTINGS;

    fn said(name: &str, value: &str) -> Result<TopicConfig, ConfigError> {
        TopicConfig::checked([(name.to_owned(), value.to_owned())])
    }

    /// Goal: the list is searchable and its defaults pass its own rules. Method: all of them.
    #[test]
    fn every_setting_is_found_and_takes_its_default() {
        assert!(SETTINGS.is_sorted_by_key(|setting| setting.name));
        for setting in SETTINGS {
            assert_eq!(Setting::find(setting.name), Some(setting));
            assert_eq!(setting.check(setting.default), Ok(()), "{}", setting.name);
        }
    }

    /// Goal: what Kafka refuses is refused. Method: a table of bad values and an unknown name.
    #[test]
    fn a_bad_value_and_an_unknown_name_are_refused() {
        let bad = [
            ("retention.ms", "-2"),
            ("retention.ms", "soon"),
            ("cleanup.policy", "shred"),
            ("cleanup.policy", "compact,shred"),
            ("compression.type", "rar"),
            ("min.cleanable.dirty.ratio", "1.5"),
            ("preallocate", "maybe"),
            ("remote.storage.enable", "true"),
            ("min.insync.replicas", "0"),
            ("max.message.bytes", "2147483648"),
        ];
        for (name, value) in bad {
            assert!(matches!(said(name, value), Err(ConfigError::Value { .. })), "{name}={value}");
        }
        assert_eq!(said("colour", "red"), Err(ConfigError::Unknown("colour".to_owned())));
        let lags = [("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")];
        let lags = lags.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert!(matches!(TopicConfig::checked(lags), Err(ConfigError::Together(_))));
    }

    /// Goal: a topic's own word beats the broker's, which beats Kafka's. Method: one setting of each.
    #[test]
    fn a_topics_own_word_comes_first() {
        let own = said("retention.ms", "5").expect("valid");
        let broker = TopicConfig::checked(
            [("retention.ms", "7"), ("cleanup.policy", "compact, delete")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        )
        .expect("valid");
        let settings = own.settings(&broker);
        assert_eq!(settings.retention_ms, Some(5));
        assert_eq!(settings.cleanup, Cleanup::CompactAndDelete);
        assert_eq!(settings.retention_bytes, None);
        assert_eq!(settings.max_message_bytes, 1_048_588);
        assert_eq!(said("retention.ms", "-1").expect("valid").settings(&broker).retention_ms, None);
    }
}
