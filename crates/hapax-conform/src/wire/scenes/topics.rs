//! Metadata, CreateTopics, CreatePartitions, DeleteTopics, DescribeTopicPartitions.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use kafka_protocol::messages::create_partitions_request::{CreatePartitionsRequest, CreatePartitionsTopic};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use kafka_protocol::messages::create_topics_response::CreateTopicsResponse;
use kafka_protocol::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use kafka_protocol::messages::describe_topic_partitions_request::{DescribeTopicPartitionsRequest, TopicRequest};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse};

use super::{STRANGER, Script, Stage, metadata_of, text, topic_name};

pub(super) async fn play(script: &mut Script, stage: &Stage) -> Result<()> {
    metadata(script, stage).await?;
    for version in 2..=7 {
        creating(script, version).await?;
    }
    for version in 0..=3 {
        growing(script, version).await?;
    }
    describing(script, stage).await?;
    for version in 1..=6 {
        deleting(script, version).await?;
    }
    Ok(())
}

fn wanted(name: &str, partitions: i32) -> CreatableTopic {
    CreatableTopic::default().with_name(topic_name(name)).with_num_partitions(partitions).with_replication_factor(1)
}

/// Makes a topic without noting it.
pub(super) async fn create(script: &mut Script, name: &str, partitions: i32) -> Result<()> {
    create_one(script, name, wanted(name, partitions)).await
}

/// The same, with one setting.
pub(super) async fn create_with(script: &mut Script, name: &str, setting_name: &str, value: &str) -> Result<()> {
    create_one(script, name, wanted(name, 1).with_configs(setting(setting_name, value))).await
}

fn setting(name: &str, value: &str) -> Vec<CreatableTopicConfig> {
    vec![CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))]
}

async fn create_one(script: &mut Script, name: &str, topic: CreatableTopic) -> Result<()> {
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
    let response = script.ask(5, &request).await?;
    ensure!(response.topics.iter().all(|topic| topic.error_code == 0), "{name}: {response:?}");
    wait(script, name).await.map(drop)
}

/// Waits until a topic's partitions are led.
pub(super) async fn wait(script: &mut Script, name: &str) -> Result<MetadataResponse> {
    for _ in 0..12_000 {
        let known = script.ask(12, &metadata_of(name).with_allow_auto_topic_creation(false)).await?;
        let led = |topic: &kafka_protocol::messages::metadata_response::MetadataResponseTopic| {
            topic.error_code == 0 && topic.partitions.iter().all(|partition| partition.error_code == 0)
        };
        if known.topics.iter().all(led) && ready(script, name, known.topics[0].partitions.len()).await? {
            return Ok(known);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bail!("{name} was not led for two minutes")
}

/// Whether every partition answers: Apache Kafka names a leader a moment before that one knows.
async fn ready(script: &mut Script, name: &str, partitions: usize) -> Result<bool> {
    let at = |index| ListOffsetsPartition::default().with_partition_index(index).with_timestamp(-1);
    let topic = ListOffsetsTopic::default().with_name(topic_name(name));
    let topic = topic.with_partitions((0..i32::try_from(partitions)?).map(at).collect());
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    let answer = script.ask(3, &request).await?;
    Ok(answer.topics.iter().flat_map(|topic| &topic.partitions).all(|partition| partition.error_code == 0))
}

async fn metadata(script: &mut Script, stage: &Stage) -> Result<()> {
    for version in 0..=13 {
        script.say(version, "a topic", &metadata_of(stage.topic)).await?;
        if version >= 1 {
            let none = MetadataRequest::default().with_topics(Some(vec![])).with_allow_auto_topic_creation(true);
            script.say(version, "no topic", &none).await?;
        }
        if version >= 4 {
            let silent = metadata_of("nowhere").with_allow_auto_topic_creation(false);
            script.say(version, "an unknown topic", &silent).await?;
            let bad = metadata_of("bad name!").with_allow_auto_topic_creation(false);
            script.say(version, "a bad name", &bad).await?;
        }
        if version >= 8 {
            let mut asked = metadata_of(stage.topic).with_include_topic_authorized_operations(true);
            asked.include_cluster_authorized_operations = version <= 10;
            script.say(version, "what one may do", &asked).await?;
        }
        if version >= 12 {
            for (what, id) in [("a topic by id", stage.topic_id), ("an unknown id", STRANGER)] {
                let topic = MetadataRequestTopic::default().with_topic_id(id).with_name(None);
                let asked = MetadataRequest::default().with_topics(Some(vec![topic]));
                script.say(version, what, &asked.with_allow_auto_topic_creation(false)).await?;
            }
        }
    }
    let made = script.say(9, "a topic that is made by asking", &metadata_of("made-by-asking")).await?;
    drop(made);
    let made = wait(script, "made-by-asking").await?;
    script.note("Metadata: a topic made by asking", &format!("{}", made.topics[0].partitions.len()));
    create(script, "collides.with", 1).await?;
    for what in ["a name that collides", "a name that collides, again"] {
        script.say(9, what, &metadata_of("collides_with")).await?;
    }
    Ok(())
}

/// Settings are compared where they are asked for by name; ids are the broker's own.
fn tidy(response: &mut CreateTopicsResponse) {
    for topic in &mut response.topics {
        topic.configs = topic.configs.take().map(|_| Vec::new());
        topic.topic_id = if topic.topic_id.is_nil() { topic.topic_id } else { STRANGER };
        topic.error_message = topic.error_message.take().map(|_| text("(words)"));
    }
}

async fn creating(script: &mut Script, version: i16) -> Result<()> {
    let name = format!("created-{version}");
    let request =
        |topic: CreatableTopic| CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
    let only = request(wanted(&name, 2)).with_validate_only(true);
    script.say_but(version, "only a look", &only, tidy).await?;
    script.say_but(version, "a new topic", &request(wanted(&name, 2)), tidy).await?;
    wait(script, &name).await?;
    script.say_but(version, "the same again", &request(wanted(&name, 2)), tidy).await?;
    script.say_but(version, "a bad name", &request(wanted("bad name!", 1)), tidy).await?;
    script.say_but(version, "an empty name", &request(wanted("", 1)), tidy).await?;
    script.say_but(version, "no partitions", &request(wanted("none", 0)), tidy).await?;
    let odd = wanted("odd", 1).with_configs(setting("no.such.setting", "1"));
    script.say_but(version, "an unknown setting", &request(odd), tidy).await?;
    let odd = wanted("odd", 1).with_configs(setting("retention.ms", "soon"));
    script.say_but(version, "a setting's wrong value", &request(odd), tidy).await?;
    let twice = CreateTopicsRequest::default().with_topics(vec![wanted("twice", 1), wanted("twice", 1)]);
    script.say_but(version, "one name twice", &twice.with_timeout_ms(30_000), tidy).await?;
    if version >= 4 {
        let name = format!("default-{version}");
        let asked = request(wanted(&name, -1).with_replication_factor(-1));
        script.say_but(version, "default counts", &asked, tidy).await?;
    }
    Ok(())
}

async fn growing(script: &mut Script, version: i16) -> Result<()> {
    let name = format!("created-{}", version + 2);
    for (what, topic, count) in [
        ("one more partition", name.as_str(), 3),
        ("as many as there are", name.as_str(), 3),
        ("fewer partitions", name.as_str(), 1),
        ("an unknown topic", "nowhere", 3),
    ] {
        let wanted =
            CreatePartitionsTopic::default().with_name(topic_name(topic)).with_count(count).with_assignments(None);
        let request = CreatePartitionsRequest::default().with_topics(vec![wanted]).with_timeout_ms(30_000);
        script
            .say_but(version, what, &request, |response| {
                for topic in &mut response.results {
                    topic.error_message = topic.error_message.take().map(|_| text("(words)"));
                }
            })
            .await?;
        if what == "one more partition" {
            while wait(script, topic).await?.topics[0].partitions.len() != 3 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    Ok(())
}

async fn describing(script: &mut Script, stage: &Stage) -> Result<()> {
    for (what, name) in [("a topic", stage.topic), ("an unknown topic", "nowhere"), ("a bad name", "bad name!")] {
        let topic = TopicRequest::default().with_name(topic_name(name));
        let request =
            DescribeTopicPartitionsRequest::default().with_topics(vec![topic]).with_response_partition_limit(100);
        script.say(0, what, &request).await?;
    }
    let topic = TopicRequest::default().with_name(topic_name(stage.topic));
    let request = DescribeTopicPartitionsRequest::default().with_topics(vec![topic]).with_response_partition_limit(1);
    script.say(0, "one partition at a time", &request).await?;
    Ok(())
}

async fn deleting(script: &mut Script, version: i16) -> Result<()> {
    let name = format!("created-{}", version + 1);
    for (what, topic) in [("a topic", name.as_str()), ("an unknown topic", "nowhere")] {
        let mut request = DeleteTopicsRequest::default().with_timeout_ms(30_000);
        if version >= 6 {
            request.topics = vec![DeleteTopicState::default().with_name(Some(topic_name(topic)))];
        } else {
            request.topic_names = vec![topic_name(topic)];
        }
        script
            .say_but(version, what, &request, |response| {
                for topic in &mut response.responses {
                    topic.error_message = topic.error_message.take().map(|_| text("(words)"));
                    topic.topic_id = if topic.topic_id.is_nil() { topic.topic_id } else { STRANGER };
                }
            })
            .await?;
    }
    if version >= 6 {
        let state = DeleteTopicState::default().with_name(None).with_topic_id(STRANGER);
        let request = DeleteTopicsRequest::default().with_timeout_ms(30_000).with_topics(vec![state]);
        script
            .say_but(version, "an unknown id", &request, |response| {
                for topic in &mut response.responses {
                    topic.error_message = topic.error_message.take().map(|_| text("(words)"));
                }
            })
            .await?;
    }
    Ok(())
}
