//! JoinGroup.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::group_fields::{check_name, identity, shared, text};
use super::{Call, Close};
use crate::broker::Broker;
use crate::group::UNNUMBERED;
use crate::rules::group::{Join, JoinAnswer, JoinRefusal, Joined, Protocol};
use crate::store::Store;

/// From this version on a protocol may be without a name.
const NAMELESS: i16 = 7;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: JoinGroupRequest,
) -> Result<JoinGroupResponse, Close> {
    let answer = match check_name(&request.group_id).and_then(|()| broker.coordinates()) {
        Ok(()) => {
            let reason = request.reason.as_deref().unwrap_or("not given");
            tracing::debug!(group = &**request.group_id, member = &*request.member_id, reason, "join");
            broker.groups.join(&request.group_id, join(call, &request)).await
        }
        Err(error) => Err(JoinRefusal::new(error, &shared(&request.member_id))),
    };
    Ok(response(call.version, answer))
}

fn join(call: &Call, request: &JoinGroupRequest) -> Join {
    let client_id = call.client_id.clone().unwrap_or_else(|| Arc::from(""));
    let identity = identity(&request.member_id, request.group_instance_id.as_ref());
    let named_for = identity.instance.as_ref().unwrap_or(&client_id);
    let new_id = Arc::from(format!("{named_for}-{}", Uuid::new_v4()));
    let session_timeout = milliseconds(request.session_timeout_ms);
    // The first version knew only one timeout.
    let rebalance_timeout =
        if call.version == 0 { session_timeout } else { milliseconds(request.rebalance_timeout_ms) };
    let protocols = request.protocols.iter().map(|protocol| Protocol {
        name: shared(&protocol.name),
        metadata: Bytes::copy_from_slice(&protocol.metadata),
    });
    Join {
        ticket: UNNUMBERED,
        version: call.version,
        identity,
        new_id,
        client_id,
        client_host: Arc::from(format!("/{}", call.peer.ip())),
        session_timeout,
        rebalance_timeout,
        protocol_type: shared(&request.protocol_type),
        protocols: protocols.collect(),
    }
}

fn milliseconds(said: i32) -> Duration {
    Duration::from_millis(u64::try_from(said).unwrap_or(0))
}

fn response(version: i16, answer: JoinAnswer) -> JoinGroupResponse {
    let name = |name: Option<StrBytes>| if version < NAMELESS { name.or(Some(StrBytes::default())) } else { name };
    match answer {
        Ok(joined) => {
            let protocol = name(joined.protocol.as_deref().map(text));
            welcome(joined).with_protocol_name(protocol)
        }
        Err(refusal) => {
            let response = JoinGroupResponse::default().with_error_code(refusal.error.code());
            response.with_member_id(text(&refusal.member)).with_protocol_name(name(None))
        }
    }
}

fn welcome(joined: Joined) -> JoinGroupResponse {
    let members = joined.members.into_iter().map(|member| {
        let told = JoinGroupResponseMember::default().with_member_id(text(&member.id));
        told.with_group_instance_id(member.instance.as_deref().map(text)).with_metadata(member.metadata)
    });
    let response = JoinGroupResponse::default().with_generation_id(joined.generation);
    let response = response.with_protocol_type(joined.protocol_type.as_deref().map(text));
    let response = response.with_leader(text(&joined.leader)).with_member_id(text(&joined.member));
    response.with_skip_assignment(joined.skip_assignment).with_members(members.collect())
}
