//! ListGroups, by state and kind.

use std::sync::Arc;

use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use super::group_fields::text;
use super::{Call, Close};
use crate::broker::Broker;
use crate::store::Store;

/// The only kind of group that is served.
const CLASSIC: &str = "classic";

/// From this version on a group has a state.
const HAS_STATE: i16 = 4;

/// From this version on a group has a kind.
const HAS_KIND: i16 = 5;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: ListGroupsRequest,
) -> Result<ListGroupsResponse, Close> {
    let listed = match broker.coordinates() {
        Ok(()) => broker.groups.list().await,
        Err(error) => Err(error),
    };
    let groups = match listed {
        Ok(groups) => groups,
        Err(error) => return Ok(ListGroupsResponse::default().with_error_code(error.code())),
    };
    let kind_fits = wants(&request.types_filter, CLASSIC);
    let fitting = groups.into_iter().filter(|group| kind_fits && wants(&request.states_filter, group.phase));
    let listed = fitting.map(|group| {
        let mut listed = ListedGroup::default().with_group_id(GroupId(text(&group.id)));
        listed.protocol_type = text(&group.protocol_type);
        if call.version >= HAS_STATE {
            listed.group_state = StrBytes::from_static_str(group.phase);
        }
        if call.version >= HAS_KIND {
            listed.group_type = StrBytes::from_static_str(CLASSIC);
        }
        listed
    });
    Ok(ListGroupsResponse::default().with_groups(listed.collect()))
}

/// No filter wants all; case does not matter.
fn wants(filter: &[StrBytes], value: &str) -> bool {
    filter.is_empty() || filter.iter().any(|wanted| wanted.trim().eq_ignore_ascii_case(value))
}
