//! DeleteTopics: by name or by id.

use std::collections::HashSet;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse};

use crate::api::failure::Refusal;
use crate::api::leaders::topic_name;
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::model::Topic;
use crate::store::Store;

/// Removes topics with everything that is in them.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: DeleteTopicsRequest,
) -> Result<DeleteTopicsResponse, Close> {
    let asked: Vec<DeleteTopicState> = if call.version >= 6 {
        request.topics
    } else {
        request.topic_names.into_iter().map(|name| DeleteTopicState::default().with_name(Some(name))).collect()
    };
    let mut seen = HashSet::new();
    let mut responses = Vec::with_capacity(asked.len());
    for state in asked {
        let verdict = if seen.insert((state.name.clone(), state.topic_id)) {
            delete(broker, &state).await
        } else {
            Err(Refusal::new(ResponseError::InvalidRequest, "Duplicate topic name or id."))
        };
        let result = DeletableTopicResult::default().with_name(state.name).with_topic_id(state.topic_id);
        responses.push(match verdict {
            Ok(topic) => result.with_name(Some(topic_name(&topic.name))).with_topic_id(topic.uuid),
            Err(refusal) => {
                let message = if call.version >= 5 { refusal.text() } else { None };
                result.with_error_code(refusal.code()).with_error_message(message)
            }
        });
    }
    Ok(DeleteTopicsResponse::default().with_responses(responses))
}

async fn delete<S: Store>(broker: &Arc<Broker<S>>, state: &DeleteTopicState) -> Result<Arc<Topic>, Refusal> {
    if !broker.lead.leads() {
        return Err(Refusal::not_controller());
    }
    let topic = match (&state.name, state.topic_id) {
        (Some(_), id) if !id.is_nil() => {
            let message = "You may not specify both topic name and topic id.";
            return Err(Refusal::new(ResponseError::InvalidRequest, message));
        }
        (None, id) if id.is_nil() => {
            let message = "Neither topic name nor id were specified.";
            return Err(Refusal::new(ResponseError::InvalidRequest, message));
        }
        (Some(name), _) => broker.catalog.topic(name).await?.ok_or_else(Refusal::unknown_topic)?,
        (None, id) => broker.catalog.by_uuid(id).ok_or_else(Refusal::unknown_topic_id)?,
    };
    if broker.delete_topic(&topic).await? { Ok(topic) } else { Err(Refusal::unknown_topic()) }
}
