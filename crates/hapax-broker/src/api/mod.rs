//! One file per API; the router.

use std::net::SocketAddr;
use std::sync::Arc;

/// Who asks, and in which version.
#[derive(Debug, Clone)]
pub struct Call {
    /// The request's version; always one that is served.
    pub version: i16,
    /// What the client calls itself.
    pub client_id: Option<Arc<str>>,
    /// Where it is.
    pub peer: SocketAddr,
}

/// Why a connection ends without an answer; goes to the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Close(pub String);
