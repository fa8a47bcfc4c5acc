//! Bodies by the codec: requests out of bytes, answers into frames.

use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::ResponseHeader;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

use crate::wire::{Request, WireError, guard, shape};

/// Reads the body of a request, after the guard has seen it. What comes after it is nobody's, as in Kafka.
pub(crate) fn decode<R: Decodable>(request: &mut Request) -> Result<R, WireError> {
    let (api, version) = (request.route.name, request.call.version);
    let shape =
        shape::shape(request.route.key).ok_or(WireError::UnknownApi { key: request.route.key as i16, version })?;
    guard::check(shape, version, &request.body)?;
    R::decode(&mut request.body, version).map_err(|cause| WireError::Body { api, version, cause: format!("{cause:#}") })
}

/// The frame of an answer: length, header, body.
pub(crate) fn encode<R: Encodable + HeaderVersion>(
    correlation_id: i32,
    version: i16,
    response: &R,
) -> Result<BytesMut, WireError> {
    let refused = |cause: String| WireError::Answer { version, cause };
    let header = ResponseHeader::default().with_correlation_id(correlation_id);
    let header_version = R::header_version(version);
    let mut length = header.compute_size(header_version).map_err(|cause| refused(format!("{cause:#}")))?;
    length += response.compute_size(version).map_err(|cause| refused(format!("{cause:#}")))?;
    let announced = i32::try_from(length).map_err(|_| refused(format!("it has {length} bytes")))?;
    let mut frame = BytesMut::with_capacity(length + 4);
    frame.put_i32(announced);
    header.encode(&mut frame, header_version).map_err(|cause| refused(format!("{cause:#}")))?;
    response.encode(&mut frame, version).map_err(|cause| refused(format!("{cause:#}")))?;
    Ok(frame)
}
