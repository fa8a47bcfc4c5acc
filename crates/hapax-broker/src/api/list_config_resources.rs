//! ListConfigResources: what has settings.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::list_config_resources_response::ConfigResource;
use kafka_protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::resource::{BROKER, OTHERS, TOPIC};
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::store::Store;

/// Tells topics and brokers. Version 0 asks for client metrics only, of which there are none.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: ListConfigResourcesRequest,
) -> Result<ListConfigResourcesResponse, Close> {
    let known = |number: &i8| [TOPIC, BROKER].contains(number) || OTHERS.contains(number);
    if !request.resource_types.iter().all(known) {
        let code = ResponseError::UnsupportedVersion.code();
        return Ok(ListConfigResourcesResponse::default().with_error_code(code));
    }
    let wants =
        |number| call.version > 0 && (request.resource_types.is_empty() || request.resource_types.contains(&number));
    let resource = |name: String, number| {
        ConfigResource::default().with_resource_name(StrBytes::from_string(name)).with_resource_type(number)
    };
    let mut resources = Vec::new();
    if wants(TOPIC) {
        resources.extend(broker.catalog.all().iter().map(|topic| resource(topic.name.to_string(), TOPIC)));
    }
    if wants(BROKER) {
        resources.extend(broker.lead.brokers().iter().map(|live| resource(live.id.to_string(), BROKER)));
    }
    Ok(ListConfigResourcesResponse::default().with_config_resources(resources))
}
