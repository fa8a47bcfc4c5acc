//! SyncGroup.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};

use super::group_fields::{check_name, identity, shared, text};
use super::{Call, Close};
use crate::broker::Broker;
use crate::group::UNNUMBERED;
use crate::rules::group::{Sync, SyncAnswer};
use crate::store::Store;

/// From this version on a member says which protocol it speaks.
const SAYS_PROTOCOL: i16 = 5;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: SyncGroupRequest,
) -> Result<SyncGroupResponse, Close> {
    let answer = match check(broker, call.version, &request) {
        Ok(()) => broker.groups.sync(&request.group_id, sync(&request)).await,
        Err(error) => Err(error),
    };
    Ok(response(answer))
}

fn check<S: Store>(broker: &Broker<S>, version: i16, request: &SyncGroupRequest) -> Result<(), ResponseError> {
    let is_silent = request.protocol_type.is_none() || request.protocol_name.is_none();
    if version >= SAYS_PROTOCOL && is_silent {
        return Err(ResponseError::InconsistentGroupProtocol);
    }
    check_name(&request.group_id)?;
    broker.coordinates()
}

fn sync(request: &SyncGroupRequest) -> Sync {
    let assignments = request.assignments.iter().map(|given| {
        let member = shared(&given.member_id);
        (member, Bytes::copy_from_slice(&given.assignment))
    });
    Sync {
        ticket: UNNUMBERED,
        identity: identity(&request.member_id, request.group_instance_id.as_ref()),
        generation: request.generation_id,
        protocol_type: request.protocol_type.as_ref().map(shared),
        protocol: request.protocol_name.as_ref().map(shared),
        assignments: assignments.collect(),
    }
}

fn response(answer: SyncAnswer) -> SyncGroupResponse {
    match answer {
        Ok(synced) => {
            let response = SyncGroupResponse::default().with_assignment(synced.assignment);
            let response = response.with_protocol_type(synced.protocol_type.as_deref().map(text));
            response.with_protocol_name(synced.protocol.as_deref().map(text))
        }
        Err(error) => SyncGroupResponse::default().with_error_code(error.code()),
    }
}
