//! ListPartitionReassignments: partitions do not move between directories or replicas here.

use std::sync::Arc;

use kafka_protocol::messages::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};

use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::store::Store;

/// None is under way, ever.
pub(crate) async fn handle<S: Store>(
    _broker: &Arc<Broker<S>>,
    _call: &Call,
    _request: ListPartitionReassignmentsRequest,
) -> Result<ListPartitionReassignmentsResponse, Close> {
    Ok(ListPartitionReassignmentsResponse::default().with_error_message(None))
}
