//! DeleteGroups: with all their offsets.

use std::sync::Arc;

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

use super::group_fields::code;
use super::{Call, Close};
use crate::broker::Broker;
use crate::store::Store;

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: DeleteGroupsRequest,
) -> Result<DeleteGroupsResponse, Close> {
    let mut results = Vec::with_capacity(request.groups_names.len());
    for id in request.groups_names {
        let deleted = match broker.coordinates() {
            Ok(()) => broker.groups.delete(&id).await,
            Err(error) => Err(error),
        };
        results.push(DeletableGroupResult::default().with_group_id(id).with_error_code(code(&deleted)));
    }
    Ok(DeleteGroupsResponse::default().with_results(results))
}
