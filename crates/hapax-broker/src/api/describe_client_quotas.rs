//! DescribeClientQuotas: there are none.

use std::sync::Arc;

use kafka_protocol::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};

use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::store::Store;

/// An empty list.
pub(crate) async fn handle<S: Store>(
    _broker: &Arc<Broker<S>>,
    _call: &Call,
    _request: DescribeClientQuotasRequest,
) -> Result<DescribeClientQuotasResponse, Close> {
    Ok(DescribeClientQuotasResponse::default().with_entries(Some(Vec::new())))
}
