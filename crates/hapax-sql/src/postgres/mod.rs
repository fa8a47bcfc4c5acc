//! PostgreSQL: address, TLS, a session with its limits, the pool, quoting, the checked COMMIT, error classes, and the end
//! of sessions that block a claim.

mod blockers;
mod commit;
mod connect_error;
mod fault;
mod quote;
mod session;
mod tls_stream;
mod url;

#[cfg(test)]
mod pool_tests;
#[cfg(test)]
mod test_database;
#[cfg(test)]
mod test_wire;
#[cfg(test)]
mod tls_tests;

pub use blockers::{Blocker, BlockerEnd, end_blockers};
pub use commit::{COMMIT_MESSAGE, checked_commit};
pub use connect_error::ConnectError;
pub use fault::{FaultClass, SqlFault, class_of, describe};
pub use quote::{TableName, quote_identifier, quote_table};
pub use session::{OUR_NAME, Session};
pub use tokio_postgres;
pub use url::{Host, PostgresUrl, UrlError};

pub use crate::limits::Limits;
pub use crate::pool::DEFAULT_CONNECTIONS;
pub use crate::tls::{ClientFiles, TlsError, TlsMode, TlsRoots, TlsSettings};

/// How a COMMIT ended.
pub type CommitEnd = crate::commit_end::CommitEnd<SqlFault>;
/// The sessions with one PostgreSQL database.
pub type Pool = crate::pool::Pool<Session>;
/// A session taken from a [`Pool`].
pub type Taken = crate::pool::Taken<Session>;
