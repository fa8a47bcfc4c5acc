//! Heartbeat of a member of a classic group.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::group_fields::{check_name, code, identity};
use super::{Call, Close};
use crate::broker::Broker;
use crate::store::Store;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: HeartbeatRequest,
) -> Result<HeartbeatResponse, Close> {
    let answer = match check_name(&request.group_id).and_then(|()| broker.coordinates()) {
        Ok(()) => {
            let identity = identity(&request.member_id, request.group_instance_id.as_ref());
            broker.groups.heartbeat(&request.group_id, &identity, request.generation_id).await
        }
        // As in Kafka: clients do not expect to hear of loading here, and their sessions begin anew anyway.
        Err(ResponseError::CoordinatorLoadInProgress) => Ok(()),
        Err(error) => Err(error),
    };
    Ok(HeartbeatResponse::default().with_error_code(code(&answer)))
}
