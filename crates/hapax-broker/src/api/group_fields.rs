//! Between the wire's strings and ours, for requests about groups.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::protocol::StrBytes;

use crate::rules::group::Identity;

/// A copy of our own: the wire's string would keep the whole frame.
pub(crate) fn shared(text: &StrBytes) -> Arc<str> {
    Arc::from(&**text)
}

pub(crate) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(crate) fn identity(member: &StrBytes, instance: Option<&StrBytes>) -> Identity {
    Identity { member: shared(member), instance: instance.map(shared) }
}

/// 0, or the error's code.
pub(crate) fn code<T>(result: &Result<T, ResponseError>) -> i16 {
    result.as_ref().err().map_or(0, ResponseError::code)
}

/// Groups with members need a name.
pub(crate) fn check_name(group: &str) -> Result<(), ResponseError> {
    if group.is_empty() { Err(ResponseError::InvalidGroupId) } else { Ok(()) }
}
