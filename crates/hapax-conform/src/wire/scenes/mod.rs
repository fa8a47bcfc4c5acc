//! The script: every API in every version that we serve, with at least one question each that must be refused.

mod cluster;
mod configs;
mod epochs;
mod groups;
mod offsets;
mod produce;
mod static_members;
mod topics;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{ApiVersionsRequest, GroupId, MetadataRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::script::Script;

/// An id that nothing has.
pub(crate) const STRANGER: Uuid = Uuid::from_u128(0x0123_4567_89ab_4cde_8f01_2345_6789_abcd);

/// What a scene knows of the broker.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// The topic that is there, with two partitions.
    pub(crate) topic: &'static str,
    pub(crate) topic_id: Uuid,
    /// The epoch under which its partitions are led.
    pub(crate) epoch: i32,
    /// The broker's own id.
    pub(crate) node: i32,
}

/// Plays the script on a fresh broker, up to its restart.
///
/// # Errors
/// If the broker does not answer, or not in a way that can be decoded: that is no difference but a breakdown.
pub(super) async fn play(script: &mut Script) -> Result<Stage> {
    versions(script).await?;
    let stage = set(script).await?;
    topics::play(script, &stage).await?;
    cluster::play(script, &stage).await?;
    produce::play(script, &stage).await?;
    offsets::play(script, &stage).await?;
    configs::play(script, &stage).await?;
    groups::play(script, &stage).await?;
    static_members::play(script, &stage).await?;
    unserved(script).await?;
    Ok(stage)
}

/// What is played after the broker was started again.
///
/// # Errors
/// As [`play`].
pub(super) async fn play_on(script: &mut Script, stage: &Stage) -> Result<()> {
    epochs::play(script, stage).await
}

/// Makes the topic and learns the ids.
async fn set(script: &mut Script) -> Result<Stage> {
    let topic = "stage";
    topics::create(script, topic, 2).await?;
    let metadata = topics::wait(script, topic).await?;
    let node = metadata.brokers.first().context("a broker")?.node_id.0;
    let found = metadata.topics.first().context("the topic")?;
    let epoch = found.partitions.first().context("a partition")?.leader_epoch;
    for end in ["node_id", "leader_id", "controller_id", "broker_id"] {
        script.name(end, node, "<node>");
    }
    for list in ["replica_nodes[0]", "isr_nodes[0]", "replicas[0]", "resource_name"] {
        script.name(list, node, "<node>");
    }
    script.name("", found.topic_id, "<id of stage>");
    script.name("leader_epoch", epoch, "<epoch>");
    Ok(Stage { topic, topic_id: found.topic_id, epoch, node })
}

/// ApiVersions in all its versions, in one that does not exist, and from a client with a bad name.
async fn versions(script: &mut Script) -> Result<()> {
    for version in 0..=4 {
        let mut advertised = BTreeMap::new();
        let mut request = ApiVersionsRequest::default();
        if version >= 3 {
            request = request.with_client_software_name(text("hapax")).with_client_software_version(text("1.0"));
        }
        script
            .say_but(version, "which versions", &request, |response| {
                // Each broker has its own list; that ours lies within Kafka's is checked by what is kept here.
                let range = |api: &ApiVersion| (api.api_key, (api.min_version, api.max_version));
                advertised.extend(response.api_keys.drain(..).map(|api| range(&api)));
                response.supported_features.clear();
                response.finalized_features.clear();
                response.finalized_features_epoch = -1;
            })
            .await?;
        anyhow::ensure!(version == 0 || advertised == script.advertised, "ApiVersions {version} has another list");
        script.advertised = advertised;
        if version >= 3 {
            let bad = request.with_client_software_name(text("bad name!"));
            script.say_but(version, "a bad name", &bad, |response| response.api_keys.clear()).await?;
        }
    }
    let answer = script.raw(18, 99, 2, "too new").await?.context("too new a version of ApiVersions is answered")?;
    let code = answer.get(..2).map(|bytes| i16::from_be_bytes([bytes[0], bytes[1]]));
    script.note("ApiVersions 99: too new", &format!("{code:?}"));
    Ok(())
}

/// Versions and APIs that nobody serves end the connection.
async fn unserved(script: &mut Script) -> Result<()> {
    for key in script.asked.iter().map(|(key, _)| *key).collect::<std::collections::BTreeSet<_>>() {
        if key != 18 {
            drop(script.raw(key, 99, 2, "too new").await?);
        }
    }
    for (key, version) in [(0, 2), (1, 3), (2, 0), (19, 1), (3, -1), (999, 0)] {
        drop(script.raw(key, version, 1, "too old or unknown").await?);
    }
    Ok(())
}

pub(crate) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

pub(crate) fn group_id(name: &str) -> GroupId {
    GroupId(text(name))
}

/// A request for what is known of one topic.
pub(crate) fn metadata_of(name: &str) -> MetadataRequest {
    let topic = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
    MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(true)
}
