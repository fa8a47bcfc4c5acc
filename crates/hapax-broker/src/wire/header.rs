//! The head of a request: which API, which version, whose answer it is.

use std::net::SocketAddr;
use std::str;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::{Call, Route};
use crate::wire::WireError;
use crate::wire::cursor::{Cursor, MAX_TAGS};

/// A request whose head is read, and whose body is not.
#[derive(Debug)]
pub(crate) struct Request {
    /// What is asked.
    pub(crate) route: &'static Route,
    /// Comes back with the answer.
    pub(crate) correlation_id: i32,
    /// Who asks, and in which version; for ApiVersions perhaps one that is not served.
    pub(crate) call: Call,
    /// Everything after the header.
    pub(crate) body: Bytes,
}

impl Request {
    /// Reads the head of a frame.
    ///
    /// An unknown version of ApiVersions is let through without its body: its answer tells the client what we serve.
    pub(crate) fn read(frame: Bytes, peer: SocketAddr) -> Result<Self, WireError> {
        let mut cursor = Cursor::new(&frame);
        let (key, version) = (cursor.i16()?, cursor.i16()?);
        let correlation_id = cursor.i32()?;
        let route = Route::find(key).ok_or(WireError::UnknownApi { key, version })?;
        if !route.serves(version) {
            if !route.answers_any_version() {
                let (min, max) = (route.min, route.max);
                return Err(WireError::UnknownVersion { api: route.name, min, max, version });
            }
            let call = Call { version, client_id: None, peer };
            return Ok(Self { route, correlation_id, call, body: Bytes::new() });
        }
        let client_id = client_id(&mut cursor)?;
        if route.key.request_header_version(version) >= 2 {
            cursor.tags(&mut { MAX_TAGS })?;
        }
        let head = frame.len() - cursor.remaining();
        Ok(Self { route, correlation_id, call: Call { version, client_id, peer }, body: frame.slice(head..) })
    }
}

fn client_id(cursor: &mut Cursor<'_>) -> Result<Option<Arc<str>>, WireError> {
    match cursor.i16()? {
        -1 => Ok(None),
        length => {
            let length = usize::try_from(length).map_err(|_| WireError::Length(length.into()))?;
            let text = str::from_utf8(cursor.take(length)?).map_err(|_| WireError::Text)?;
            Ok(Some(Arc::from(text)))
        }
    }
}
