//! Metadata: brokers, topics, where partitions are; topics are made when they are asked for.

use std::collections::HashSet;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::api::leaders::{self, CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS, place, settle, topic_name};
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::catalog::check_name;
use crate::config::TopicConfig;
use crate::model::Topic;
use crate::store::{NewTopic, Store, StoreError};

/// Tells what it is asked, about all topics or some.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: MetadataRequest,
) -> Result<MetadataResponse, Close> {
    let operations = |asked: bool, all| if asked { all } else { NOT_ASKED };
    let topic_operations = operations(request.include_topic_authorized_operations, TOPIC_OPERATIONS);
    let mut topics = match request.topics {
        Some(asked) if !asked.is_empty() || call.version > 0 => {
            let create = broker.config.auto_create_topics && (call.version < 4 || request.allow_auto_topic_creation);
            some(broker, call.version, asked, if create { Missing::Make } else { Missing::Tell }).await
        }
        Some(_) | None => all(broker).await,
    };
    for topic in &mut topics {
        topic.topic_authorized_operations = topic_operations;
    }
    Ok(MetadataResponse::default()
        .with_brokers(broker.lead.brokers().into_iter().map(live_broker).collect())
        .with_cluster_id(Some(StrBytes::from_string(broker.store.cluster_id().to_owned())))
        .with_controller_id(leaders::controller(broker))
        .with_cluster_authorized_operations(operations(
            request.include_cluster_authorized_operations,
            CLUSTER_OPERATIONS,
        ))
        .with_topics(topics))
}

/// What happens to a topic that is not there.
#[derive(Debug, Clone, Copy)]
enum Missing {
    Make,
    Tell,
}

fn live_broker(live: crate::model::LiveBroker) -> MetadataResponseBroker {
    MetadataResponseBroker::default()
        .with_node_id(BrokerId(live.id.0))
        .with_host(StrBytes::from_string(live.host))
        .with_port(live.port.into())
}

async fn all<S: Store>(broker: &Arc<Broker<S>>) -> Vec<MetadataResponseTopic> {
    let mut topics = Vec::new();
    for topic in broker.catalog.all() {
        settle(broker, &topic).await;
        topics.push(describe(broker, &topic));
    }
    topics
}

async fn some<S: Store>(
    broker: &Arc<Broker<S>>,
    version: i16,
    asked: Vec<MetadataRequestTopic>,
    missing: Missing,
) -> Vec<MetadataResponseTopic> {
    let mut seen = HashSet::new();
    let mut topics = Vec::new();
    for topic in asked {
        let name = topic.name.map(|name| name.0);
        if !seen.insert((name.clone(), topic.topic_id)) {
            continue;
        }
        topics.push(match name {
            // Versions 10 and 11 have the field, but no meaning for it.
            _ if version < 12 && (name.is_none() || !topic.topic_id.is_nil()) => {
                failed(name.as_deref().or(Some("")), topic.topic_id, ResponseError::InvalidRequest)
            }
            _ if !topic.topic_id.is_nil() => by_uuid(broker, topic.topic_id).await,
            Some(name) => by_name(broker, &name, missing).await,
            None => failed(None, topic.topic_id, ResponseError::UnknownTopicId),
        });
    }
    topics
}

async fn by_uuid<S: Store>(broker: &Arc<Broker<S>>, uuid: Uuid) -> MetadataResponseTopic {
    match broker.catalog.by_uuid(uuid) {
        Some(topic) => {
            settle(broker, &topic).await;
            describe(broker, &topic)
        }
        None => failed(None, uuid, ResponseError::UnknownTopicId),
    }
}

async fn by_name<S: Store>(broker: &Arc<Broker<S>>, name: &str, missing: Missing) -> MetadataResponseTopic {
    let found = match broker.catalog.topic(name).await {
        Ok(None) if check_name(name).is_err() => {
            return failed(Some(name), Uuid::nil(), ResponseError::InvalidTopicException);
        }
        Ok(None) => match missing {
            Missing::Make => make(broker, name).await,
            Missing::Tell => Ok(None),
        },
        found => found,
    };
    match found {
        Ok(Some(topic)) => {
            settle(broker, &topic).await;
            describe(broker, &topic)
        }
        Ok(None) => failed(Some(name), Uuid::nil(), ResponseError::UnknownTopicOrPartition),
        Err(error) => {
            tracing::warn!(topic = name, %error, "a topic could not be looked up or made");
            failed(Some(name), Uuid::nil(), ResponseError::LeaderNotAvailable)
        }
    }
}

/// Makes a topic that a client asked for. Whoever was faster made the same one; none: its name collides with another's, which
/// Kafka, too, tells a client by finding no such topic.
async fn make<S: Store>(broker: &Arc<Broker<S>>, name: &str) -> Result<Option<Arc<Topic>>, StoreError> {
    let partitions = broker.config.default_partitions.max(1);
    let new = NewTopic { name: name.to_owned(), partitions, config: TopicConfig::default() };
    match broker.create_topic(new).await {
        Ok(topic) => {
            tracing::info!(topic = name, partitions, "made a topic because a client asked for it");
            Ok(Some(topic))
        }
        Err(StoreError::Conflict) => broker.catalog.topic(name).await,
        Err(error) => Err(error),
    }
}

fn describe<S: Store>(broker: &Broker<S>, topic: &Topic) -> MetadataResponseTopic {
    let partition = |(index, id)| {
        let place = place(broker, id);
        MetadataResponsePartition::default()
            .with_error_code(place.error)
            .with_partition_index(index)
            .with_leader_id(place.leader)
            .with_leader_epoch(place.epoch)
            .with_isr_nodes(place.replicas.clone())
            .with_replica_nodes(place.replicas)
    };
    MetadataResponseTopic::default()
        .with_name(Some(topic_name(&topic.name)))
        .with_topic_id(topic.uuid)
        .with_partitions((0..).zip(topic.partitions.iter().copied()).map(partition).collect())
}

fn failed(name: Option<&str>, uuid: Uuid, error: ResponseError) -> MetadataResponseTopic {
    MetadataResponseTopic::default().with_error_code(error.code()).with_name(name.map(topic_name)).with_topic_id(uuid)
}
