//! LeaveGroup: one member, or from version 3 on a list of them.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

use super::group_fields::{check_name, code, identity};
use super::{Call, Close};
use crate::broker::Broker;
use crate::rules::group::Leaving;
use crate::store::Store;

/// From this version on a list leaves.
const MANY: i16 = 3;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: LeaveGroupRequest,
) -> Result<LeaveGroupResponse, Close> {
    let members = match call.version {
        MANY.. => request.members,
        _ => vec![MemberIdentity::default().with_member_id(request.member_id)],
    };
    let left = match check_name(&request.group_id).and_then(|()| broker.coordinates()) {
        Ok(()) => {
            let leaving = members.iter().map(|member| {
                let reason = member.reason.as_deref().unwrap_or("not given");
                tracing::info!(group = &**request.group_id, member = &*member.member_id, reason, "leave");
                Leaving { identity: identity(&member.member_id, member.group_instance_id.as_ref()) }
            });
            let leaving = leaving.collect();
            broker.groups.leave(&request.group_id, leaving).await
        }
        Err(error) => Err(error),
    };
    Ok(response(call.version, members, left))
}

fn response(
    version: i16,
    members: Vec<MemberIdentity>,
    left: Result<Vec<Result<(), ResponseError>>, ResponseError>,
) -> LeaveGroupResponse {
    let response = LeaveGroupResponse::default();
    match left {
        Err(error) => response.with_error_code(error.code()),
        Ok(answers) if version < MANY => response.with_error_code(answers.first().map_or(0, code)),
        Ok(answers) => {
            let answered = members.into_iter().zip(answers).map(|(member, answer)| {
                let answered = MemberResponse::default().with_member_id(member.member_id);
                answered.with_group_instance_id(member.group_instance_id).with_error_code(code(&answer))
            });
            response.with_members(answered.collect())
        }
    }
}
