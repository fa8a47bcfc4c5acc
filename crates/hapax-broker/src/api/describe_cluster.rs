//! DescribeCluster: who is here.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::leaders::{CLUSTER_OPERATIONS, NOT_ASKED, controller};
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::store::Store;

/// Endpoints of brokers; those of controllers (2) do not exist here.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// Tells the brokers that live.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: DescribeClusterRequest,
) -> Result<DescribeClusterResponse, Close> {
    let refused = |error: ResponseError, message: &'static str| {
        DescribeClusterResponse::default()
            .with_error_code(error.code())
            .with_error_message(Some(StrBytes::from_static_str(message)))
    };
    match request.endpoint_type {
        BROKERS => {}
        CONTROLLERS => {
            let message = "The request was sent to an endpoint of the wrong type.";
            return Ok(refused(ResponseError::MismatchedEndpointType, message));
        }
        _ => return Ok(refused(ResponseError::UnsupportedEndpointType, "Unsupported endpoint type.")),
    }
    let brokers = broker.lead.brokers().into_iter().map(|live| {
        DescribeClusterBroker::default()
            .with_broker_id(BrokerId(live.id.0))
            .with_host(StrBytes::from_string(live.host))
            .with_port(live.port.into())
    });
    let operations = if request.include_cluster_authorized_operations { CLUSTER_OPERATIONS } else { NOT_ASKED };
    Ok(DescribeClusterResponse::default()
        .with_cluster_id(StrBytes::from_string(broker.store.cluster_id().to_owned()))
        .with_controller_id(controller(broker))
        .with_brokers(brokers.collect())
        .with_cluster_authorized_operations(operations))
}
