//! CreatePartitions: topics grow, never shrink.

use std::collections::HashMap;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::create_topics::MAX_PARTITIONS;
use crate::api::failure::Refusal;
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::store::{Store, StoreError};

/// Adds partitions, or only says whether they could be added.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: CreatePartitionsRequest,
) -> Result<CreatePartitionsResponse, Close> {
    let mut named: HashMap<StrBytes, usize> = HashMap::new();
    for topic in &request.topics {
        *named.entry(topic.name.0.clone()).or_default() += 1;
    }
    let mode = if request.validate_only { Mode::Check } else { Mode::Make };
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let verdict = match named.remove(&topic.name.0) {
            None => continue, // its one verdict was given
            Some(1) => grow(broker, &topic, mode).await,
            Some(_) => Err(Refusal::new(ResponseError::InvalidRequest, "Duplicate topic name.")),
        };
        let result = CreatePartitionsTopicResult::default().with_name(topic.name);
        results.push(match verdict {
            Ok(()) => result.with_error_message(None),
            Err(refusal) => result.with_error_code(refusal.code()).with_error_message(refusal.text()),
        });
    }
    Ok(CreatePartitionsResponse::default().with_results(results))
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    Make,
    Check,
}

async fn grow<S: Store>(broker: &Arc<Broker<S>>, asked: &CreatePartitionsTopic, mode: Mode) -> Result<(), Refusal> {
    if !broker.lead.leads() {
        return Err(Refusal::not_controller());
    }
    let topic = broker.catalog.topic(&asked.name).await?.ok_or_else(Refusal::unknown_topic)?;
    let now = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
    let invalid = |message: String| Refusal::new(ResponseError::InvalidPartitions, message);
    if asked.count == now {
        return Err(invalid(format!("Topic already has {now} partition(s).")));
    }
    if asked.count < now {
        let name = asked.name.as_str();
        return Err(invalid(format!(
            "The topic {name} currently has {now} partition(s); {} would not be an increase.",
            asked.count
        )));
    }
    let more = asked.count - now;
    if more > MAX_PARTITIONS {
        return Err(invalid("Excessively large number of partitions per request.".to_owned()));
    }
    if let Some(assigned) = &asked.assignments
        && i32::try_from(assigned.len()) != Ok(more)
    {
        let message = format!("Attempted to add {more} additional partition(s), but {} were assigned.", assigned.len());
        return Err(Refusal::new(ResponseError::InvalidReplicaAssignment, message));
    }
    match mode {
        Mode::Check => Ok(()),
        Mode::Make => match broker.grow_topic(&topic, asked.count).await {
            Ok(_) => Ok(()),
            Err(StoreError::Conflict) => Err(invalid("The topic was changed meanwhile.".to_owned())),
            Err(error) => Err(error.into()),
        },
    }
}
