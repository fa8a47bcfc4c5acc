//! Why nothing is served.

use std::io;
use std::net::SocketAddr;

/// Why a listener was not made.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others could connect, and nobody would ask them who they are.
    #[error(
        "the broker does not listen on {address}: whoever connects may read, write and delete everything; \
         listen on 127.0.0.1 or [::1]"
    )]
    NotLoopback {
        /// What was asked.
        address: SocketAddr,
    },
    /// The system did not give the port.
    #[error("the broker cannot listen on {address}: {source}")]
    Bind {
        /// What was asked.
        address: String,
        /// What the system said.
        source: io::Error,
    },
}

impl ServeError {
    /// Its code; `docs/errors` has a page for each.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotLoopback { .. } => "HX4570",
            Self::Bind { .. } => "HX4571",
        }
    }
}
