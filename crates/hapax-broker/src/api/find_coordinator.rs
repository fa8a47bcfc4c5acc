//! FindCoordinator: who coordinates a group or a transactional id.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::group_fields::text;
use super::{Call, Close};
use crate::broker::Broker;
use crate::model::LiveBroker;
use crate::store::Store;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

/// From this version on many keys are asked for at once.
const MANY: i16 = 4;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: FindCoordinatorRequest,
) -> Result<FindCoordinatorResponse, Close> {
    let found = find(broker, request.key_type);
    let (error, node, host, port) = match &found {
        Ok(leader) => (0, leader.id.0, text(&leader.host), i32::from(leader.port)),
        Err(error) => (error.code(), -1, StrBytes::default(), -1),
    };
    if call.version >= MANY {
        let keys = request.coordinator_keys.into_iter();
        let coordinators = keys.map(|key| {
            let place = Coordinator::default().with_key(key).with_error_code(error);
            place.with_node_id(BrokerId(node)).with_host(host.clone()).with_port(port)
        });
        return Ok(FindCoordinatorResponse::default().with_coordinators(coordinators.collect()));
    }
    let message = found.as_ref().err().map_or("NONE", |error| message(*error));
    let response = FindCoordinatorResponse::default().with_error_code(error);
    let response = response.with_error_message(Some(StrBytes::from_static_str(message)));
    Ok(response.with_node_id(BrokerId(node)).with_host(host).with_port(port))
}

/// The leader coordinates all groups. Any broker could serve any transactional id; it leads all partitions, so it is nearest.
fn find<S: Store>(broker: &Broker<S>, key_type: i8) -> Result<LiveBroker, ResponseError> {
    if key_type != GROUP && key_type != TRANSACTION {
        return Err(ResponseError::InvalidRequest);
    }
    broker.lead.leader().ok_or(ResponseError::CoordinatorNotAvailable)
}

fn message(error: ResponseError) -> &'static str {
    if error == ResponseError::InvalidRequest {
        "This is a kind of coordinator that does not exist here."
    } else {
        "The coordinator is not available."
    }
}
