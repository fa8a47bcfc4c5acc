//! `hapax topic list` and `describe`: what the cluster says of its topics.

use hapax_kafka::kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use hapax_kafka::kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use hapax_kafka::kafka_protocol::messages::{DescribeConfigsRequest, MetadataResponse};
use hapax_kafka::kafka_protocol::protocol::StrBytes;
use hapax_kafka::{At, Client};
use serde_json::{Value, json};

use super::{REFUSED, failed, print_json};
use crate::cli::Shared;
use crate::commands::table::Table;
use crate::exit::Failure;

/// How Kafka numbers the kinds of things that have settings.
const TOPIC: i8 = 2;
/// A setting that somebody made for this topic.
const OF_TOPIC: i8 = 1;

/// A partition as `describe` shows it.
struct Partition {
    index: i32,
    leader: i32,
    leader_epoch: i32,
    start: i64,
    end: i64,
}

/// Lists topics.
pub(super) async fn list(client: &mut Client, shared: &Shared) -> Result<u8, Failure> {
    let metadata = client.metadata(None).await.map_err(|error| failed(&error))?;
    let mut topics: Vec<(String, usize)> = metadata.topics.iter().map(|it| (name(it), it.partitions.len())).collect();
    topics.sort();
    if shared.json {
        let topics: Vec<Value> =
            topics.iter().map(|(topic, partitions)| json!({"topic": topic, "partitions": partitions})).collect();
        print_json(&json!({"topics": topics}));
    } else if topics.is_empty() {
        println!("There are no topics. `hapax topic create NAME` makes one.");
    } else {
        let mut table = Table::new(&["topic", "partitions"]);
        topics.into_iter().for_each(|(topic, partitions)| table.row(vec![topic, partitions.to_string()]));
        print!("{table}");
    }
    Ok(0)
}

/// Shows one topic.
pub(super) async fn describe(client: &mut Client, topic: &str, shared: &Shared) -> Result<u8, Failure> {
    let partitions = partitions(client, topic).await?;
    let settings = settings(client, topic).await?;
    if shared.json {
        let partitions: Vec<Value> = partitions.iter().map(Partition::as_json).collect();
        let settings: Vec<Value> =
            settings.iter().map(|it| json!({"name": it.name, "value": it.value, "default": !it.own})).collect();
        print_json(&json!({"topic": topic, "partitions": partitions, "settings": settings}));
        return Ok(0);
    }
    println!("{topic}");
    let mut table = Table::new(&["partition", "leader", "epoch", "start", "end", "records"]);
    for it in &partitions {
        let cells = [i64::from(it.index), i64::from(it.leader), i64::from(it.leader_epoch), it.start, it.end];
        let mut row: Vec<String> = cells.iter().map(ToString::to_string).collect();
        row.push((it.end - it.start).max(0).to_string());
        table.row(row);
    }
    println!("{table}");
    let mut table = Table::new(&["setting", "value", "from"]);
    for it in settings {
        table.row(vec![it.name, it.value, if it.own { "topic" } else { "default" }.to_owned()]);
    }
    print!("{table}");
    Ok(0)
}

/// How many partitions a topic has; which is an error if there is no such topic.
pub(super) async fn partition_count(client: &mut Client, topic: &str) -> Result<i32, Failure> {
    let metadata = client.metadata(Some(&[topic])).await.map_err(|error| failed(&error))?;
    let count = found(&metadata, topic)?.partitions.len();
    Ok(i32::try_from(count).unwrap_or(i32::MAX))
}

async fn partitions(client: &mut Client, topic: &str) -> Result<Vec<Partition>, Failure> {
    let metadata = client.metadata(Some(&[topic])).await.map_err(|error| failed(&error))?;
    let mut told = Vec::new();
    for it in &found(&metadata, topic)?.partitions {
        let index = it.partition_index;
        let start = client.offset(topic, index, At::Start).await.map_err(|error| failed(&error))?;
        let end = client.offset(topic, index, At::End).await.map_err(|error| failed(&error))?;
        told.push(Partition { index, leader: it.leader_id.0, leader_epoch: it.leader_epoch, start, end });
    }
    told.sort_by_key(|it| it.index);
    Ok(told)
}

fn found<'a>(metadata: &'a MetadataResponse, topic: &str) -> Result<&'a MetadataResponseTopic, Failure> {
    let told = metadata.topics.iter().find(|it| name(it) == topic && it.error_code == 0);
    told.ok_or_else(|| {
        let message = format!(
            "there is no topic {topic}; `hapax topic list` shows those that are there, \
             `hapax topic create {topic}` makes it"
        );
        Failure::new(REFUSED, message)
    })
}

fn name(topic: &MetadataResponseTopic) -> String {
    topic.name.as_ref().map(|name| name.to_string()).unwrap_or_default()
}

struct Setting {
    name: String,
    value: String,
    own: bool,
}

async fn settings(client: &mut Client, topic: &str) -> Result<Vec<Setting>, Failure> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(StrBytes::from_string(topic.to_owned()))
        .with_configuration_keys(None);
    let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let answer = client.call(i16::MAX, &request).await.map_err(|error| failed(&error))?;
    let told = answer.results.into_iter().flat_map(|result| result.configs);
    let mut settings: Vec<Setting> = told
        .map(|it| Setting {
            name: it.name.to_string(),
            value: it.value.map(|value| value.to_string()).unwrap_or_default(),
            own: it.config_source == OF_TOPIC,
        })
        .collect();
    settings.sort_by(|a, b| (!a.own, &a.name).cmp(&(!b.own, &b.name)));
    Ok(settings)
}

impl Partition {
    fn as_json(&self) -> Value {
        json!({
            "partition": self.index, "leader": self.leader, "leaderEpoch": self.leader_epoch,
            "start": self.start, "end": self.end,
        })
    }
}
