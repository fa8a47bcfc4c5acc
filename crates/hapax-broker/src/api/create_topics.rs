//! CreateTopics: one after the other, each with its own verdict.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::api::config_view::{self, Entry};
use crate::api::failure::Refusal;
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::catalog::{check_name, collision_key};
use crate::config::TopicConfig;
use crate::store::{NewTopic, Store, StoreError};

/// Partitions that one request may make, as in Kafka.
pub(crate) const MAX_PARTITIONS: i32 = 10_000;

/// Makes topics, or only says whether they could be made.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: CreateTopicsRequest,
) -> Result<CreateTopicsResponse, Close> {
    let mut named: HashMap<StrBytes, usize> = HashMap::new();
    for topic in &request.topics {
        *named.entry(topic.name.0.clone()).or_default() += 1;
    }
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mode = if request.validate_only { Mode::Check } else { Mode::Make };
        let verdict = match named.remove(&topic.name.0) {
            None => continue, // its one verdict was given
            Some(1) => create(broker, &topic, mode).await,
            Some(_) => Err(Refusal::new(ResponseError::InvalidRequest, "Duplicate topic in request.")),
        };
        results.push(result(broker, &topic, verdict));
    }
    Ok(CreateTopicsResponse::default().with_topics(results))
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    Make,
    Check,
}

struct Made {
    uuid: Uuid,
    partitions: i32,
    config: TopicConfig,
}

async fn create<S: Store>(broker: &Arc<Broker<S>>, topic: &CreatableTopic, mode: Mode) -> Result<Made, Refusal> {
    if !broker.lead.leads() {
        return Err(Refusal::not_controller());
    }
    let name = topic.name.as_str();
    check_name(name).map_err(|message| Refusal::new(ResponseError::InvalidTopicException, message))?;
    if broker.catalog.topic(name).await?.is_some() {
        return Err(exists(name));
    }
    if let Some(refusal) = collision(broker, name) {
        return Err(refusal);
    }
    let partitions = partitions(topic, broker.config.default_partitions.max(1))?;
    let config = config(&topic.configs)?;
    match mode {
        Mode::Check => Ok(Made { uuid: Uuid::nil(), partitions, config }),
        Mode::Make => {
            let new = NewTopic { name: name.to_owned(), partitions, config };
            match broker.create_topic(new).await {
                Ok(made) => Ok(Made { uuid: made.uuid, partitions, config: made.config.clone() }),
                // Somebody made it, or one that collides with it, at the same time.
                Err(StoreError::Conflict) => Err(collision(broker, name).unwrap_or_else(|| exists(name))),
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// The refusal of a name that differs from another topic's in `.` and `_` only.
fn collision<S: Store>(broker: &Broker<S>, name: &str) -> Option<Refusal> {
    let key = collision_key(name);
    let others = broker.catalog.all();
    let other = others.iter().find(|other| *other.name != *name && collision_key(&other.name) == key)?;
    let message = format!("Topic '{name}' collides with existing topic: {}", other.name);
    Some(Refusal::new(ResponseError::InvalidTopicException, message))
}

fn exists(name: &str) -> Refusal {
    Refusal::new(ResponseError::TopicAlreadyExists, format!("Topic '{name}' already exists."))
}

/// How many partitions: what is said, or the default; any number of replicas will do, there is one.
fn partitions(topic: &CreatableTopic, default: i32) -> Result<i32, Refusal> {
    let count = if topic.assignments.is_empty() {
        match (topic.num_partitions, topic.replication_factor) {
            (_, factor) if factor < -1 || factor == 0 => {
                let message = "Replication factor must be larger than 0, or -1 to use the default value.";
                return Err(Refusal::new(ResponseError::InvalidReplicationFactor, message));
            }
            (-1, _) => default,
            (count, _) if count <= 0 => {
                let message = "Number of partitions was set to an invalid non-positive value.";
                return Err(Refusal::new(ResponseError::InvalidPartitions, message));
            }
            (count, _) => count,
        }
    } else {
        assigned(topic)?
    };
    if count > MAX_PARTITIONS {
        let message = "Excessively large number of partitions per request.";
        return Err(Refusal::new(ResponseError::PolicyViolation, message));
    }
    Ok(count)
}

/// The places that a client chose are checked for form, then forgotten: the store keeps the log.
fn assigned(topic: &CreatableTopic) -> Result<i32, Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ResponseError::InvalidRequest, message));
    if topic.replication_factor != -1 {
        return invalid("A manual partition assignment was specified, but replication factor was not set to -1.");
    }
    if topic.num_partitions != -1 {
        return invalid("A manual partition assignment was specified, but numPartitions was not set to -1.");
    }
    let mut indexes: Vec<i32> = topic.assignments.iter().map(|assigned| assigned.partition_index).collect();
    indexes.sort_unstable();
    if (0..).zip(&indexes).any(|(wanted, index)| wanted != *index) {
        let message = "partitions should be a consecutive 0-based integer sequence";
        return Err(Refusal::new(ResponseError::InvalidReplicaAssignment, message));
    }
    i32::try_from(indexes.len()).map_err(|_| {
        Refusal::new(ResponseError::PolicyViolation, "Excessively large number of partitions per request.")
    })
}

fn config(said: &[CreatableTopicConfig]) -> Result<TopicConfig, Refusal> {
    let mut values = BTreeMap::new();
    for one in said {
        let Some(value) = &one.value else {
            let message = format!("Null value not supported for topic configs: {}", one.name);
            return Err(Refusal::new(ResponseError::InvalidConfig, message));
        };
        values.insert(one.name.to_string(), value.to_string());
    }
    TopicConfig::checked(values).map_err(|error| Refusal::new(ResponseError::InvalidConfig, error.to_string()))
}

fn result<S: Store>(
    broker: &Broker<S>,
    topic: &CreatableTopic,
    verdict: Result<Made, Refusal>,
) -> CreatableTopicResult {
    let result = CreatableTopicResult::default().with_name(topic.name.clone());
    match verdict {
        Err(refusal) => result
            .with_error_code(refusal.code())
            .with_error_message(refusal.text())
            .with_num_partitions(-1)
            .with_replication_factor(-1)
            .with_configs(Some(Vec::new())),
        Ok(made) => {
            let configs = config_view::topic(&made.config, &broker.config.topic_defaults);
            result
                .with_error_message(None)
                .with_topic_id(made.uuid)
                .with_num_partitions(made.partitions)
                .with_replication_factor(1)
                .with_configs(Some(configs.iter().map(created_config).collect()))
        }
    }
}

fn created_config(entry: &Entry) -> CreatableTopicConfigs {
    CreatableTopicConfigs::default()
        .with_name(StrBytes::from_string(entry.name.clone()))
        .with_value(Some(StrBytes::from_string(entry.value.clone())))
        .with_config_source(entry.source as i8)
}
