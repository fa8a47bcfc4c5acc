//! Access lists: there are none, and Kafka's code for that is 54.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::create_acls_response::AclCreationResult;
use kafka_protocol::messages::delete_acls_response::DeleteAclsFilterResult;
use kafka_protocol::messages::{
    CreateAclsRequest, CreateAclsResponse, DeleteAclsRequest, DeleteAclsResponse, DescribeAclsRequest,
    DescribeAclsResponse,
};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::store::Store;

const CODE: i16 = ResponseError::SecurityDisabled.code();

fn message() -> Option<StrBytes> {
    Some(StrBytes::from_static_str("No Authorizer is configured on the broker"))
}

pub(crate) mod describe {
    use super::*;

    /// Nothing to describe.
    pub(crate) async fn handle<S: Store>(
        _broker: &Arc<Broker<S>>,
        _call: &Call,
        _request: DescribeAclsRequest,
    ) -> Result<DescribeAclsResponse, Close> {
        Ok(DescribeAclsResponse::default().with_error_code(CODE).with_error_message(message()))
    }
}

pub(crate) mod create {
    use super::*;

    /// Nothing is made.
    pub(crate) async fn handle<S: Store>(
        _broker: &Arc<Broker<S>>,
        _call: &Call,
        request: CreateAclsRequest,
    ) -> Result<CreateAclsResponse, Close> {
        let refused = AclCreationResult::default().with_error_code(CODE).with_error_message(message());
        Ok(CreateAclsResponse::default().with_results(vec![refused; request.creations.len()]))
    }
}

pub(crate) mod delete {
    use super::*;

    /// Nothing is removed.
    pub(crate) async fn handle<S: Store>(
        _broker: &Arc<Broker<S>>,
        _call: &Call,
        request: DeleteAclsRequest,
    ) -> Result<DeleteAclsResponse, Close> {
        let refused = DeleteAclsFilterResult::default().with_error_code(CODE).with_error_message(message());
        Ok(DeleteAclsResponse::default().with_filter_results(vec![refused; request.filters.len()]))
    }
}
