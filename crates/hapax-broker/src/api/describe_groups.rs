//! DescribeGroups.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};
use kafka_protocol::protocol::StrBytes;

use super::group_fields::text;
use super::{Call, Close};
use crate::broker::Broker;
use crate::group;
use crate::store::Store;

/// From this version on a group that does not exist is an error; before, it was dead.
const KNOWS_NO_GROUP: i16 = 6;

/// Kafka's bits of everything that may be done with a group: read, delete, describe, and the same with its settings.
const GROUP_OPERATIONS: i32 = 0b1101_0100_1000;

/// "Was not asked."
const NOT_ASKED: i32 = i32::MIN;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: DescribeGroupsRequest,
) -> Result<DescribeGroupsResponse, Close> {
    let operations = if request.include_authorized_operations { GROUP_OPERATIONS } else { NOT_ASKED };
    let mut groups = Vec::with_capacity(request.groups.len());
    for id in request.groups {
        let found = match broker.coordinates() {
            Ok(()) => broker.groups.describe(&id).await,
            Err(error) => Err(error),
        };
        groups.push(match found {
            Ok(Some(found)) => described(id, found).with_authorized_operations(operations),
            Ok(None) => absent(call.version, id).with_authorized_operations(operations),
            Err(error) => DescribedGroup::default().with_group_id(id).with_error_code(error.code()),
        });
    }
    Ok(DescribeGroupsResponse::default().with_groups(groups))
}

fn described(id: GroupId, found: group::DescribedGroup) -> DescribedGroup {
    let members = found.members.into_iter().map(|member| {
        let told = DescribedGroupMember::default().with_member_id(text(&member.id));
        let told = told.with_group_instance_id(member.instance.as_deref().map(text));
        let told = told.with_client_id(text(&member.client_id)).with_client_host(text(&member.client_host));
        told.with_member_metadata(member.metadata).with_member_assignment(member.assignment)
    });
    let group = DescribedGroup::default().with_group_id(id).with_group_state(text(found.listed.phase));
    let group = group.with_protocol_type(text(&found.listed.protocol_type)).with_protocol_data(text(&found.protocol));
    group.with_members(members.collect())
}

fn absent(version: i16, id: GroupId) -> DescribedGroup {
    let dead = DescribedGroup::default().with_group_state(StrBytes::from_static_str("Dead"));
    if version < KNOWS_NO_GROUP {
        return dead.with_group_id(id);
    }
    let message = format!("Group {} not found.", &**id);
    let refused = dead.with_error_code(ResponseError::GroupIdNotFound.code());
    refused.with_error_message(Some(StrBytes::from_string(message))).with_group_id(id)
}
