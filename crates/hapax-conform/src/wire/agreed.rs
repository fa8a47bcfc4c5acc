//! Where our answers may differ from Apache Kafka's, and why. What is not here and differs is a bug of ours.
//!
//! Invariant: a rule names its API, versions, questions and fields, and what each side has there; anything else that differs
//! in the same answer is still seen. The page that explains it is `docs/PROTOCOL_DEVIATIONS.md`.

use super::script::Difference;
use Asked::{Anything, These};
use Value::{Is, Nothing, Number, Text};

/// What one side has in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Exactly this, as it is printed.
    Is(&'static str),
    /// A number that is not negative.
    Number,
    /// A text that is not empty.
    Text,
    /// The answer has no such field, as the third element of a list of two.
    Nothing,
}

impl Value {
    fn fits(self, found: Option<&str>) -> bool {
        match (self, found) {
            (Self::Is(expected), Some(found)) => expected == found,
            (Self::Number, Some(found)) => found.parse::<u64>().is_ok(),
            (Self::Text, Some(found)) => found.len() > 2 && found.starts_with('"') && found.ends_with('"'),
            (Self::Nothing, None) => true,
            (Self::Is(_) | Self::Number | Self::Text, None) | (Self::Nothing, Some(_)) => false,
        }
    }
}

/// Which questions of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Every one.
    Anything,
    /// Those that the scenes call so.
    These(&'static [&'static str]),
}

/// One agreed difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// The API's name.
    pub api: &'static str,
    /// The oldest and the newest version.
    pub versions: (i16, i16),
    /// The questions.
    pub asked: Asked,
    /// The field's whole path; `[*]` for every index means any element.
    pub path: &'static str,
    /// What Apache Kafka has there.
    pub kafka: Value,
    /// What ours has there.
    pub ours: Value,
    /// Words of the page's line that explains it.
    pub page: &'static str,
}

impl Agreed {
    /// Whether a difference is this one.
    #[must_use]
    pub fn covers(&self, difference: &Difference) -> bool {
        let Some((question, what)) = difference.label.split_once(": ") else { return false };
        let Some((api, version)) = question.split_once(' ') else { return false };
        let in_versions =
            version.parse().is_ok_and(|version: i16| (self.versions.0..=self.versions.1).contains(&version));
        let asked = match self.asked {
            Asked::Anything => true,
            Asked::These(questions) => questions.contains(&what),
        };
        api == self.api
            && in_versions
            && asked
            && (difference.path == self.path || pattern(&difference.path) == self.path)
            && self.kafka.fits(difference.kafka.as_deref())
            && self.ours.fits(difference.ours.as_deref())
    }
}

/// `topics[3].name` → `topics[*].name`.
fn pattern(path: &str) -> String {
    let mut parts = path.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("[*]");
        text.push_str(part.split_once(']').map_or(part, |(_, rest)| rest));
    }
    text
}

const fn rule(
    api: &'static str,
    versions: (i16, i16),
    asked: Asked,
    path: &'static str,
    kafka: Value,
    ours: Value,
    page: &'static str,
) -> Agreed {
    Agreed { api, versions, asked, path, kafka, ours, page }
}

/// What both have, each its own.
const OWN: &str = "Addresses and ids";
const CLUSTER: Asked = These(&["the cluster", "what one may do"]);
const COORDINATOR: Asked = These(&["of a group", "of a transaction"]);
const FENCED: Asked = These(&["after a restart: the old epoch", "after a restart: the epoch before"]);

const MADE_PAGE: &str = "A topic that Metadata makes";
const MADE: Asked = These(&["a topic that is made by asking"]);

const REFUSED: &str = "A refused batch";
const REFUSED_LATER: Asked = These(&[
    "a control batch",
    "an id without a sequence",
    "records of the year 2100",
    "no gzip, producer",
    "no gzip, uncompressed",
    "gzip cut short, producer",
    "gzip cut short, uncompressed",
    "fewer compressed records, producer",
    "fewer compressed records, uncompressed",
    "more compressed records, producer",
    "more compressed records, uncompressed",
    "compressed records of the year 2100, producer",
    "compressed records of the year 2100, uncompressed",
]);
const REFUSED_SILENTLY: Asked = These(&[
    "a wrong checksum",
    "an old format",
    "a control batch",
    "an id without a sequence",
    "two batches",
    "a batch cut short",
    "no gzip, producer",
    "no gzip, uncompressed",
    "gzip cut short, producer",
    "gzip cut short, uncompressed",
    "fewer compressed records, producer",
    "fewer compressed records, uncompressed",
    "more compressed records, producer",
    "more compressed records, uncompressed",
    "a megabyte and more, compressed, uncompressed",
]);
const TOO_LATE: Asked = These(&[
    "records of the year 2100",
    "compressed records of the year 2100, producer",
    "compressed records of the year 2100, uncompressed",
]);

const TRANSACTIONS: &str = "`InitProducerId` with a transactional id";
const NAMED: Asked = These(&["a named producer", "the same again", "with its epoch", "with its epoch, again"]);
const NO_TIMEOUT: Asked = These(&["too long a timeout", "no timeout"]);
const OLD_EPOCH: Asked = These(&["with an old epoch", "with another's id"]);

/// All of them.
#[rustfmt::skip]
pub const AGREED: &[Agreed] = &[
    rule("Metadata", (0, 13), Anything, "brokers[*].port", Number, Number, OWN),
    rule("Metadata", (2, 13), Anything, "cluster_id", Text, Text, OWN),
    rule("DescribeCluster", (0, 2), CLUSTER, "brokers[*].port", Number, Number, OWN),
    rule("DescribeCluster", (0, 2), CLUSTER, "cluster_id", Text, Text, OWN),
    rule("FindCoordinator", (0, 3), COORDINATOR, "port", Number, Number, OWN),
    rule("FindCoordinator", (4, 6), COORDINATOR, "coordinators[*].port", Number, Number, OWN),
    rule("Fetch", (16, 18), FENCED, "node_endpoints[*].port", Number, Number, OWN),
    rule("Metadata", (9, 9), MADE, "topics[*].error_code", Is("3"), Is("0"), MADE_PAGE),
    rule("Metadata", (9, 9), MADE, "topics[*].partitions", Is("[]"), Nothing, MADE_PAGE),
    rule("Metadata", (9, 9), MADE, "topics[*].partitions[*].error_code", Nothing, Is("0"), MADE_PAGE),
    rule("Metadata", (9, 9), MADE, "topics[*].partitions[*].partition_index", Nothing, Is("0"), MADE_PAGE),
    rule("Metadata", (9, 9), MADE, "topics[*].partitions[*].leader_id", Nothing, Is("<node>"), MADE_PAGE),
    rule("Metadata", (9, 9), MADE, "topics[*].partitions[*].leader_epoch", Nothing, Is("<epoch>"), MADE_PAGE),
    rule("Metadata", (9, 9), MADE, "topics[*].partitions[*].replica_nodes[*]", Nothing, Is("<node>"), MADE_PAGE),
    rule("Metadata", (9, 9), MADE, "topics[*].partitions[*].isr_nodes[*]", Nothing, Is("<node>"), MADE_PAGE),
    rule("Metadata", (9, 9), MADE, "topics[*].partitions[*].offline_replicas", Nothing, Is("[]"), MADE_PAGE),
    rule("InitProducerId", (0, 5), NAMED, "error_code", Is("0"), Is("53"), TRANSACTIONS),
    rule("InitProducerId", (0, 5), NAMED, "producer_id", Is("0"), Is("-1"), TRANSACTIONS),
    rule("InitProducerId", (0, 5), NAMED, "producer_epoch", Number, Is("-1"), TRANSACTIONS),
    rule("InitProducerId", (0, 5), NO_TIMEOUT, "error_code", Is("50"), Is("53"), TRANSACTIONS),
    rule("InitProducerId", (3, 3), OLD_EPOCH, "error_code", Is("47"), Is("53"), TRANSACTIONS),
    rule("InitProducerId", (4, 5), OLD_EPOCH, "error_code", Is("90"), Is("53"), TRANSACTIONS),
    rule("CreateTopics", (7, 7), These(&["only a look"]), "topics[*].topic_id",
        Is("01234567-89ab-4cde-8f01-23456789abcd"), Is("00000000-0000-0000-0000-000000000000"), "`validate_only` of CreateTopics"),
    rule("CreatePartitions", (0, 3), These(&["an unknown topic"]), "results[*].error_message",
        Is("None"), Is("\"(words)\""), "CreatePartitions of an unknown topic"),
    rule("Produce", (5, 13), REFUSED_LATER, "responses[*].partition_responses[*].log_start_offset", Is("0"), Is("-1"), REFUSED),
    rule("Produce", (8, 13), REFUSED_SILENTLY, "responses[*].partition_responses[*].error_message",
        Is("None"), Is("\"(words)\""), REFUSED),
    rule("Produce", (8, 13), TOO_LATE, "responses[*].partition_responses[*].record_errors[*].batch_index", Number, Nothing, REFUSED),
    rule("Produce", (8, 13), TOO_LATE, "responses[*].partition_responses[*].record_errors[*].batch_index_error_message",
        Is("\"(words)\""), Nothing, REFUSED),
    rule("Produce", (8, 13), TOO_LATE, "responses[*].partition_responses[*].record_errors", Nothing, Is("[]"), REFUSED),
    rule("IncrementalAlterConfigs", (0, 1), These(&["an unknown operation"]), "responses[*].error_code",
        Is("-1"), Is("42"), "IncrementalAlterConfigs with an unknown operation"),
    rule("IncrementalAlterConfigs", (0, 1), These(&["an unknown operation"]), "responses[*].error_message",
        Is("None"), Is("\"(words)\""), "IncrementalAlterConfigs with an unknown operation"),
    // All settings in the order of their names: the 22nd is min.insync.replicas, the 4th compression.type.
    rule("DescribeConfigs", (1, 4), These(&["no settings"]), "results[0].configs[21].config_source",
        Is("3"), Is("5"), "`min.insync.replicas` in DescribeConfigs"),
];

const SOME: Asked = These(&["some settings", "untouched settings"]);
const UNCOMPRESSED: &str = "Compression on PostgreSQL";

/// What differs on PostgreSQL besides.
#[rustfmt::skip]
pub const ON_POSTGRES: &[Agreed] = &[
    rule("DescribeConfigs", (1, 4), SOME, "results[0].configs[1].value", Is("\"producer\""), Is("\"uncompressed\""), UNCOMPRESSED),
    rule("DescribeConfigs", (1, 4), SOME, "results[0].configs[1].config_source", Is("5"), Is("4"), UNCOMPRESSED),
    rule("DescribeConfigs", (1, 4), These(&["no settings"]), "results[0].configs[3].value",
        Is("\"producer\""), Is("\"uncompressed\""), UNCOMPRESSED),
    rule("DescribeConfigs", (1, 4), These(&["no settings"]), "results[0].configs[3].config_source", Is("5"), Is("4"), UNCOMPRESSED),
];
